#!/usr/bin/env bash
# Runs warpfold's tests and its benchmark on this machine. Needs only an NVIDIA driver.
#   ./run.sh                      runs the tests, the examples, and all ladders
#   ./run.sh cust                 runs the GPU tests of cust, cuda_driver and the adapter for cudarc, and the examples
#   ./run.sh unpack               unpacks `bench`, `tests/` and the examples, as every other command does first
#   ./run.sh python               runs the tests of the Python package with the PyTorch, CuPy, JAX and Numba of python3,
#                                 and measures its table for `cargo xtask tables`
#   ./run.sh ranks                runs the tests of warpfold.distributed and of warpfold.torch.all_reduce with several
#                                 ranks, by torchrun, and measures 1, 2, 4 and 8 of them for `cargo xtask tables`.
#                                 Several share a GPU where there are fewer: over Gloo, or over NCCL if it is 2.30 or
#                                 later and NCCL_MULTI_RANK_GPU_ENABLE=1. $NCCL names another libnccl.so.2
#   ./run.sh sanitize [NAME...]   runs the GPU tests, or those whose names contain a NAME, under the four tools of
#                                 compute-sanitizer (from the CUDA toolkit), one process per processor
#   ./run.sh tables [NAME...]     measures the tables of docs/benchmarks, or only these runs, in about ten minutes.
#                                 Writes JSON to the folder $TABLES (default: tables), from which
#                                 `cargo xtask tables` makes a page. Measures the peers that peers/build.sh has built,
#                                 and PyTorch if python3 has it. peers/README.md says where CUB 3.6 and cuTENSOR are.
set -uo pipefail
cd "$(dirname "$0")"
export WARPFOLD_BENCH="$PWD/bench"
[ -x bench ] || tar -xJf programs.tar.xz || exit 1

# Runs the tests whose names contain NAME under one tool. Prints one line, or on an error the whole output.
sanitize() {
    local tool=$1 name=$2 options="" log status counts
    # One test requests more memory than the device has, on purpose.
    [ "$tool" = memcheck ] && options="--report-api-errors no"
    # initcheck misses writes while other host threads launch kernels. It reports uninitialized memory in each run even
    # of a CUDA program with 16 threads, without warpfold, whose results are all right.
    [[ $tool == initcheck && "64 threads with a stream each" == *"$name"* ]] && options="--force-blocking-launches"
    log=$(WARPFOLD_SANITIZER=1 compute-sanitizer --tool "$tool" $options --error-exitcode 9 \
        tests/gpu --test-threads 1 "$name" 2>&1)
    status=$?
    counts=$(grep -o '[0-9]* passed; [0-9]* failed; [0-9]* ignored' <<<"$log")
    echo "$tool, \"$name\": $counts, $(grep -h SUMMARY <<<"$log" | tr -d =)"
    [ "$counts" != "0 passed; 0 failed; 0 ignored" ] || { echo "no test has \"$name\" in its name" >&2; return 1; }
    [ $status -eq 0 ] || { echo "$log"; return 1; }
}
export -f sanitize

# The runs of `tables`: name, time limit in seconds, arguments of `bench`. The cases of each table are in
# bench/src/reduce/cases.rs and bench/src/transpose/sweep.rs.
runs="sums       110 reduce --table sums --peers peers
pairwise   110 reduce --table pairwise --peers peers
operators  90 reduce --table operators --peers peers
rows       110 reduce --table rows --peers peers
columns    120 reduce --table columns --peers peers
segments   50 reduce --table segments --peers peers
data       150 reduce --table data --peers peers
transposes 180 transpose --table transposes,permutations --peers peers
ladders    50 ladder
calls      60 calls --peers peers"

# Measures one run. Writes its report to a JSON file, with the date, the commit, the versions and the command. A run
# that exceeds its time limit writes the cases that it has measured.
table() {
    local name=$1 limit=$2 began=$SECONDS status report
    shift 2
    report=$folder/.$name
    # At the time limit, bench still finishes the current case.
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

# Prints the first line of a command's output in quotes, or `null` if there is none.
version() {
    local text
    text=$("$@" 2>/dev/null | head -n 1)
    [ -n "$text" ] && printf '"%s"' "$text" || printf null
}

# Runs every example on the GPU.
examples() {
    local example failed=0
    for example in vecadd operator on_cudarc rust_cuda_guide rust_cuda_vecadd rust_cuda_async_api rust_cuda_gemm; do
        echo "== the example $example"
        ./"$example" || failed=1
    done
    return $failed
}

# Unpacks the Python package, for every `python3` from here on.
unpack_python() {
    [ -d python ] || { echo "this bundle has no Python package: cargo xtask bundle --python adds it" >&2; exit 2; }
    for package in python/packages/*.whl; do python3 -m zipfile -e "$package" python/site || exit 1; done
    export PYTHONPATH="$PWD/python/site" PYTHONDONTWRITEBYTECODE=1
}

# Runs a program with several ranks: the number of ranks, and what torchrun runs.
ranks() {
    local count=$1
    shift
    LD_PRELOAD=${NCCL:-} timeout 180 torchrun --standalone --nproc-per-node "$count" "$@"
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
    tests/on_a_device || failed=1
    examples || failed=1
    ;;
sanitize)
    shift
    if [ $# -gt 0 ]; then
        names=$(printf '%s\n' "$@")
    else
        # The names of all tests without their last words (`sum of f32 by`, `reduction: Sum of`), except those that
        # begin with another one of these names.
        names=$(tests/gpu --list | sed -n 's/: test$//p' | sed 's/ [^ ]*$//' | LC_ALL=C sort -u |
            awk 'kept == "" || index($0, kept) != 1 { kept = $0; print }')
    fi
    # This test measures the device's free memory, so no other may run at the same time.
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
    # racecheck takes too long for the tests with many host threads.
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
            echo "unknown run \"$name\"; the runs are: $(cut -d ' ' -f 1 <<<"$runs" | xargs)" >&2
            exit 2
        }
    done
    driver=$(version nvidia-smi --query-gpu=driver_version --format=csv,noheader)
    pytorch=$(version python3 -c 'from importlib.metadata import version; print(version("torch"))')
    while read -r name limit arguments; do
        [ $# -eq 0 ] || [[ " $* " == *" $name "* ]] || continue
        # shellcheck disable=SC2086 # The arguments are separate words.
        table "$name" "$limit" $arguments </dev/null || failed=1
    done <<<"$runs"
    ls -l "$folder"
    ;;
python)
    unpack_python
    for tests in gpu_tests torch_tests; do
        echo "== $tests"
        python3 -m pytest -q -p no:cacheprovider "python/$tests" || failed=1
    done
    folder=${TABLES:-tables}
    mkdir -p "$folder"
    python3 python/benchmarks/measure.py >"$folder/python.json" || failed=1
    ;;
ranks)
    unpack_python
    # One thread each, because many ranks share the cores.
    export OMP_NUM_THREADS=1 WARPFOLD_THREADS=1 WARPFOLD_COMMIT=$(cat commit 2>/dev/null || echo unknown)
    folder=${TABLES:-tables}
    mkdir -p "$folder"
    gpus=$(python3 -c 'import torch; print(torch.cuda.device_count())')
    for count in 1 2 3 4 7 8; do
        engines="gloo"
        [ "$count" -gt "$gpus" ] && [ "${NCCL_MULTI_RANK_GPU_ENABLE:-0}" != 1 ] || engines="gloo nccl both"
        for engine in $engines; do
            echo "== $count ranks, $engine"
            ranks "$count" python/tests/on_ranks/program.py "$engine" cuda || failed=1
        done
        [[ " 1 2 4 8 " == *" $count "* ]] || continue
        options=""
        # On a shared GPU only the hash is of interest.
        [ "$count" -le "$gpus" ] || options="--elements 2^20 --mebibytes 16 --runs 1"
        [ "$engines" != gloo ] || options+=" --backend gloo"
        # shellcheck disable=SC2086 # The options are separate words.
        ranks "$count" -m warpfold.bench_ranks --json "$folder/ranks-$count.json" $options || failed=1
    done
    ;;
unpack) ;;
*)
    echo "usage: ./run.sh [unpack | cust | python | ranks | sanitize [NAME...] | tables [NAME...]]" >&2
    exit 2
    ;;
esac
exit $failed
