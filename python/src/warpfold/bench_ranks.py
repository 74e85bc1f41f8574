"""Measures exact sums and all-reduces over the ranks of torch.distributed, beside the engine's own all-reduce.

Run it under torchrun, once for each number of ranks:

    torchrun --standalone --nproc-per-node 1 -m warpfold.bench_ranks --json ranks/ranks-1.json
    torchrun --standalone --nproc-per-node 2 -m warpfold.bench_ranks --json ranks/ranks-2.json

In a checkout of warpfold, `cargo xtask tables ranks ranks` then writes docs/benchmarks/ranks.md from the files.

Every rank takes the GPU of its number, or, with --device cpu, the host. The hash is that of the results of a fixed
array, whose shards the ranks have: it is the same for any number of ranks. Each time is the median of the runs, of each
of which the time of the slowest rank counts. All-reduces are timed one by one, and several in a row, as in a step of
training. NCCL's NVLink multicast is off unless NCCL_NVLS_ENABLE says otherwise.
"""

import argparse
import datetime
import hashlib
import json
import os
import pathlib
import statistics
import sys
import time

import numpy as np

import warpfold as wf
import warpfold.distributed as wfd

# The number of elements of the array whose results are hashed.
HASHED = (1 << 20) + 12345
# The number of all-reduces in a row.
IN_A_ROW = 8
CALLS = (("sum", wfd.sum, wf.sum), ("mean", wfd.mean, wf.mean), ("norm", wfd.norm, wf.vector_norm))


def _number(text):
    base, _, power = text.partition("^")
    if not (base.isdecimal() and (power or "1").isdecimal()):
        raise argparse.ArgumentTypeError(f"{text!r} is no number such as 1000 or 2^30")
    return int(base) ** int(power or "1")


def _arguments():
    description, _, epilog = __doc__.partition("\n\n")
    parser = argparse.ArgumentParser(
        prog="torchrun --standalone --nproc-per-node RANKS -m warpfold.bench_ranks",
        description=description,
        epilog=epilog,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--backend", help="of torch.distributed (default: cpu:gloo,cuda:nccl with GPUs, else gloo)")
    parser.add_argument("--device", choices=("cuda", "cpu"), help="where the arrays are (default: cuda, if there)")
    parser.add_argument("--elements", type=_number, default=1 << 30, help="float32 of each rank's sums (default: 2^30)")
    parser.add_argument("--mebibytes", default="16,64,256,1024", help="sizes of the all-reduces (default: %(default)s)")
    parser.add_argument("--runs", type=int, default=11, help="the number of runs of each case (default: %(default)s)")
    parser.add_argument("--json", type=pathlib.Path, help="also writes a report to this file")
    arguments = parser.parse_args()
    try:
        arguments.mebibytes = [int(size) for size in arguments.mebibytes.split(",")]
    except ValueError:
        parser.error("--mebibytes takes whole numbers with commas between them, such as 16,64")
    if arguments.runs < 1 or arguments.elements < 1 or min(arguments.mebibytes) < 1:
        parser.error("--runs, --elements and --mebibytes are at least 1")
    if not {"RANK", "LOCAL_RANK", "LOCAL_WORLD_SIZE"} <= os.environ.keys():
        parser.error("torch.distributed has no ranks here: start it with torchrun, as --help shows")
    return arguments


class _Ranks:
    """The group of all ranks."""

    def __init__(self, arguments):
        import torch
        import torch.distributed as dist

        self.torch, self.dist = torch, dist
        self.device = arguments.device or ("cuda" if torch.cuda.is_available() else "cpu")
        if self.device == "cuda":
            gpus = torch.cuda.device_count()
            if gpus == 0:
                raise SystemExit("--device cuda: PyTorch finds no GPU")
            torch.cuda.set_device(int(os.environ["LOCAL_RANK"]) % gpus)
            # Whether the ranks of a host have one each.
            self.has_own_gpu = int(os.environ["LOCAL_WORLD_SIZE"]) <= gpus
            self.gpus = gpus
        self.backend = arguments.backend or ("cpu:gloo,cuda:nccl" if self.device == "cuda" else "gloo")
        dist.init_process_group(self.backend)
        self.rank, self.ranks = dist.get_rank(), dist.get_world_size()

    def wait(self):
        if self.device == "cuda":
            self.torch.cuda.synchronize()

    def median(self, runs, call, prepare=lambda: None):
        """The median time of a call in microseconds, of the slowest rank of each run. The first run is not timed."""
        times = []
        for _ in range(runs + 1):
            prepare()
            self.wait()
            self.dist.barrier()
            self.wait()
            start = time.perf_counter()
            call()
            self.wait()
            times.append(time.perf_counter() - start)
        slowest = self.torch.tensor(times, dtype=self.torch.float64, device=self.device)
        self.dist.all_reduce(slowest, op=self.dist.ReduceOp.MAX)
        return statistics.median(slowest.tolist()[1:]) * 1e6


def _hash(ranks):
    """The hash of the sums, means and norms of one array of each type."""
    torch, digest = ranks.torch, hashlib.sha256()
    for dtype in (torch.float16, torch.bfloat16, torch.float32, torch.float64):
        source = np.random.default_rng(81)
        least = -12 if dtype is torch.float16 else -60
        whole = np.ldexp(source.uniform(-1, 1, HASHED), source.integers(least, 12, HASHED))
        # Uneven shards.
        first, end = (HASHED * rank**2 // ranks.ranks**2 for rank in (ranks.rank, ranks.rank + 1))
        shard = torch.from_numpy(whole[first:end]).to(dtype).to(ranks.device)
        for _, over_ranks, _ in CALLS:
            digest.update(over_ranks(shard).reshape(1).cpu().view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()


def _sums(ranks, arguments, note):
    torch, rows = ranks.torch, []
    generator = torch.Generator(ranks.device).manual_seed(ranks.rank)
    x = torch.randn(arguments.elements, generator=generator, device=ranks.device)
    for name, over_ranks, alone in CALLS:
        note(f"{name} of {arguments.elements} float32 a rank")
        row = {"case": name, "us": ranks.median(arguments.runs, lambda over_ranks=over_ranks: over_ranks(x))}
        row["alone_us"] = ranks.median(arguments.runs, lambda alone=alone: alone(x))
        rows.append(row)
    return rows


def _all_reduces(ranks, arguments, note):
    import warpfold.torch

    torch, rows = ranks.torch, []
    generator = torch.Generator(ranks.device).manual_seed(ranks.rank)
    for dtype in (torch.float32, torch.bfloat16):
        for size in arguments.mebibytes:
            name = str(dtype).removeprefix("torch.")
            note(f"all-reduce of {size} MiB of {name}")
            count = (size << 20) // dtype.itemsize
            x = torch.randn(count, generator=generator, device=ranks.device).to(dtype)
            y = torch.empty_like(x)

            # The sums of an earlier run would grow.
            def prepare(x=x, y=y):
                y.copy_(x)

            row = {"dtype": name, "mebibytes": size}
            for which, call in (("engine_us", ranks.dist.all_reduce), ("us", warpfold.torch.all_reduce)):

                def in_a_row(call=call, y=y):
                    for _ in range(IN_A_ROW):
                        call(y)

                row[which] = ranks.median(arguments.runs, lambda call=call, y=y: call(y), prepare)
                row[f"{which}_in_a_row"] = ranks.median(arguments.runs, in_a_row, prepare) / IN_A_ROW
            rows.append(row)
    return rows


def _report(ranks, arguments, note):
    torch = ranks.torch
    is_cuda = ranks.device == "cuda"
    versions = {"PyTorch": torch.__version__, "warpfold": wf.info()["version"]}
    if "nccl" in ranks.backend:
        versions["NCCL"] = ".".join(map(str, torch.cuda.nccl.version()))
    note("the hash")
    return {
        "ranks": ranks.ranks,
        "gpus": 0 if not is_cuda else ranks.ranks if ranks.has_own_gpu else ranks.gpus,
        "device": torch.cuda.get_device_name() if is_cuda else "the host",
        "backend": ranks.backend,
        "multicast": os.environ["NCCL_NVLS_ENABLE"] != "0",
        "versions": versions,
        "elements": arguments.elements,
        "runs": arguments.runs,
        "in_a_row": IN_A_ROW,
        "hash": _hash(ranks),
        "sums": _sums(ranks, arguments, note),
        "all_reduces": _all_reduces(ranks, arguments, note),
    }


def _print(report):
    of_ranks = "rank" if report["ranks"] == 1 else "ranks"
    print(f"{report['ranks']} {of_ranks} on {report['gpus']} GPUs ({report['device']}), {report['backend']}")
    if 0 < report["gpus"] < report["ranks"]:
        print("Several ranks share a GPU: the hash means something, the times do not.")
    print(f"hash {report['hash'][:16]}\n\n{report['elements']} float32 a rank, microseconds")
    print(f"{'':10}{'over ranks':>14}{'one rank alone':>18}")
    for row in report["sums"]:
        print(f"{row['case']:10}{row['us']:14.1f}{row['alone_us']:18.1f}")
    print("\nall-reduce, microseconds: one, and several in a row")
    print(f"{'':10}{'MiB':>6}" + f"{'engine':>12}{'exact':>10}{'x':>6}" * 2)
    for row in report["all_reduces"]:
        times = ""
        for suffix in ("", "_in_a_row"):
            engine, exact = row["engine_us" + suffix], row["us" + suffix]
            times += f"{engine:12.1f}{exact:10.1f}{engine / exact:6.2f}"
        print(f"{row['dtype']:10}{row['mebibytes']:6}{times}")


def main():
    arguments = _arguments()
    os.environ.setdefault("NCCL_NVLS_ENABLE", "0")
    start = time.time()
    ranks = _Ranks(arguments)

    def note(text):
        if ranks.rank == 0:
            print(text, file=sys.stderr, flush=True)

    report = _report(ranks, arguments, note)
    ranks.dist.destroy_process_group()
    if ranks.rank != 0:
        return
    _print(report)
    if arguments.json:
        command = ["torchrun --standalone --nproc-per-node", str(report["ranks"]), "-m warpfold.bench_ranks"]
        command += sys.argv[1:]
        run = {
            "name": f"ranks-{report['ranks']}",
            "date": datetime.date.today().isoformat(),
            "commit": os.environ.get("WARPFOLD_COMMIT", "unknown"),
            "driver": wf.info().get("driver"),
            "pytorch": report["versions"]["PyTorch"],
            "command": " ".join(command),
            "exit": 0,
            "seconds": round(time.time() - start),
            "report": report,
        }
        arguments.json.parent.mkdir(parents=True, exist_ok=True)
        arguments.json.write_text(json.dumps(run, indent=1) + "\n")


if __name__ == "__main__":
    main()
