#!/usr/bin/env bash
# Runs warpfold's tests and its benchmark on this machine. Needs an NVIDIA driver, nothing else.
#   ./run.sh                      tests, then the examples, then all ladders
#   ./run.sh cust                 the tests of cust and cuda_driver on the device, and the examples
#   ./run.sh unpack               unpacks `bench`, `tests/` and the examples, as every other command does first
#   ./run.sh sanitize [NAME...]   the GPU tests (those with one of these in their names) under compute-sanitizer's four
#                                 tools, which come with the CUDA toolkit; as many at once as there are processors
#   ./run.sh tables [NAME...]     what docs/benchmarks has tables of, or these runs of it, as JSON in the folder $TABLES
#                                 (else tables/); `cargo xtask tables` makes a page of it. About eight minutes.
#                                 Peers are measured as far as peers/build.sh has built them and python3 has PyTorch.
set -uo pipefail
cd "$(dirname "$0")"
export WARPFOLD_BENCH="$PWD/bench"
[ -x bench ] || tar -xJf programs.tar.xz || exit 1

# One tool over the tests with a name in theirs: a line with what both said, and all of it if something was wrong.
sanitize() {
    local tool=$1 name=$2 options="" log status counts
    # One test asks for more memory than there is, on purpose.
    [ "$tool" = memcheck ] && options="--report-api-errors no"
    # initcheck loses what is written while other threads start kernels: of a CUDA program of 16 threads, with nothing
    # of warpfold in it and all results right, it reports uninitialized memory each time.
    [[ $tool == initcheck && "64 threads with a stream each" == *"$name"* ]] && options="--force-blocking-launches"
    log=$(WARPFOLD_SANITIZER=1 compute-sanitizer --tool "$tool" $options --error-exitcode 9 \
        tests/gpu --test-threads 1 "$name" 2>&1)
    status=$?
    counts=$(grep -o '[0-9]* passed; [0-9]* failed; [0-9]* ignored' <<<"$log")
    echo "$tool, \"$name\": $counts, $(grep -h SUMMARY <<<"$log" | tr -d =)"
    [ $status -eq 0 ] || { echo "$log"; return 1; }
}
export -f sanitize

# The runs of `tables`: name, limit in seconds, arguments of `bench`. The cases of each table are in
# bench/src/reduce/cases.rs and bench/src/transpose/sweep.rs.
runs="sums       80 reduce --table sums --peers peers
operators  60 reduce --table operators --peers peers
rows       70 reduce --table rows --peers peers
columns    90 reduce --table columns --peers peers
segments   50 reduce --table segments --peers peers
data       150 reduce --table data --peers peers
transposes 130 transpose --table transposes,permutations --peers peers
ladders    50 ladder"

# One run, as a JSON file that says when, of what and by which command; one that its limit ends has what was measured
# until then.
table() {
    local name=$1 limit=$2 began=$SECONDS status report
    shift 2
    report=$folder/.$name
    # A case that is being measured when the limit comes is still finished.
    timeout --kill-after 20 "$limit" ./bench "$@" --format json >"$report"
    status=$?
    echo "$name: exit code $status after $((SECONDS - began)) s"
    if [ "$(tail -n 1 "$report")" != "}" ]; then
        rm -f "$report"
        echo "$name: no report" >&2
        return 1
    fi
    {
        printf '{"name": "%s", "date": "%s", ' "$name" "$(date -u +%F)"
        printf '"commit": "%s", ' "$(cat commit 2>/dev/null || echo unknown)"
        printf '"driver": %s, "pytorch": %s, ' "$driver" "$pytorch"
        printf '"command": "%s", "exit": %d, "seconds": %d, "report":\n' "bench $*" "$status" $((SECONDS - began))
        cat "$report"
        echo '}'
    } >"$folder/$name.json"
    rm -f "$report"
    return $status
}

# A version in quotes; `null` where the command has none.
version() {
    local text
    text=$("$@" 2>/dev/null | head -n 1)
    [ -n "$text" ] && printf '"%s"' "$text" || printf null
}

# Every example, on the device.
examples() {
    local example failed=0
    for example in vecadd operator rust_cuda_guide rust_cuda_vecadd rust_cuda_async_api rust_cuda_gemm; do
        echo "== the example $example"
        ./"$example" || failed=1
    done
    return $failed
}

failed=0
case "${1:-all}" in
all)
    for test in tests/*; do
        echo "== $test"
        "$test" || failed=1
    done
    examples || failed=1
    echo "== bench"
    ./bench || failed=1
    ;;
cust)
    tests/cust_gpu || failed=1
    examples || failed=1
    ;;
sanitize)
    shift
    if [ $# -gt 0 ]; then
        names=$(printf '%s\n' "$@")
    else
        # Those of all tests without their last words (`sum of f32 by`, `reduction: Sum of`), and without what another
        # begins.
        names=$(tests/gpu --list | sed -n 's/: test$//p' | sed 's/ [^ ]*$//' | LC_ALL=C sort -u |
            awk 'kept == "" || index($0, kept) != 1 { kept = $0; print }')
    fi
    # A test that looks at the device's free memory runs when no other does.
    alone="10,000 calls leave no memory behind"
    tools="racecheck memcheck initcheck synccheck"
    mapfile -t all <<<"$names"
    names=""
    for name in "${all[@]}"; do
        if [[ $alone != *"$name"* ]]; then
            names+="$name"$'\n'
            continue
        fi
        for tool in $tools; do sanitize "$tool" "$name" || failed=1; done
    done
    # racecheck looks at a block's shared memory, and at that of 64 threads' blocks for longer than anybody waits.
    [ -z "$names" ] || for tool in $tools; do
        sed "s/^/$tool /" <<<"${names%$'\n'}"
    done | grep -vE "^racecheck (64|many) threads" |
        xargs -P "$(nproc)" -d '\n' -I{} bash -c 'set -- {}; tool=$1; shift; sanitize "$tool" "$*"' || failed=1
    ;;
tables)
    shift
    folder=${TABLES:-tables}
    mkdir -p "$folder" || exit 1
    for name in "$@"; do
        grep -q "^$name " <<<"$runs" || {
            echo "no run is called \"$name\"; they are: $(cut -d ' ' -f 1 <<<"$runs" | xargs)" >&2
            exit 2
        }
    done
    driver=$(version nvidia-smi --query-gpu=driver_version --format=csv,noheader)
    pytorch=$(version python3 -c 'from importlib.metadata import version; print(version("torch"))')
    while read -r name limit arguments; do
        [ $# -eq 0 ] || [[ " $* " == *" $name "* ]] || continue
        # shellcheck disable=SC2086 # They are words.
        table "$name" "$limit" $arguments </dev/null || failed=1
    done <<<"$runs"
    ls -l "$folder"
    ;;
unpack) ;;
*)
    echo "usage: ./run.sh [unpack | cust | sanitize [NAME...] | tables [NAME...]]" >&2
    exit 2
    ;;
esac
exit $failed
