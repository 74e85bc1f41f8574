"""The time of a call with and without exact sums: `python overhead.py`.

Each time is the median of 5 runs of 1,000 calls, in microseconds a call. A graph has 1,000 calls.
"""

import statistics
import time

import torch
import warpfold.torch

CALLS = 1000

CASES = {
    "sum of 2^10": lambda x: x.sum(),
    "sum of 2^5 rows": lambda x: x.view(32, 32).sum(1),
    "mean of 2^10": lambda x: x.mean(),
    "norm of 2^10": lambda x: torch.linalg.vector_norm(x),
    "torch.ops.warpfold.sum": lambda x: torch.ops.warpfold.sum(x),
}


def median(run, device):
    """The median time of runs, in microseconds a call. The first run is not timed."""
    times = []
    for _ in range(6):
        if device == "cuda":
            torch.cuda.synchronize()
        start = time.perf_counter()
        run()
        if device == "cuda":
            torch.cuda.synchronize()
        times.append((time.perf_counter() - start) / CALLS * 1e6)
    return statistics.median(times[1:])


def eager(case, x):
    def run():
        for _ in range(CALLS):
            case(x)

    return median(run, x.device.type)


def captured(case, x):
    case(x)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(CALLS):
            case(x)
    return median(graph.replay, "cuda")


def main():
    print(f"torch {torch.__version__}, {torch.get_num_threads()} threads")
    print(f"{'microseconds a call, float32':34}{'PyTorch':>10}{'exact':>10}")
    devices = ["cpu", "cuda"] if torch.cuda.is_available() else ["cpu"]
    for device in devices:
        x = torch.randn(2**10, device=device)
        ways = {device: eager} | ({"cuda, in a graph": captured} if device == "cuda" else {})
        for (way, timed), (name, case) in ((way, case) for way in ways.items() for case in CASES.items()):
            plain = timed(case, x)
            with warpfold.torch.exact():
                exact = timed(case, x)
            print(f"{way + ': ' + name:34}{plain:10.2f}{exact:10.2f}")


if __name__ == "__main__":
    main()
