"""Measures this package beside PyTorch, CuPy, NumPy and math.fsum, and prints a report as JSON.

    python measure.py > tables/python.json
    cargo xtask tables python tables          # writes docs/benchmarks/python.md

What is not installed is left out. With `WARPFOLD_BENCH`, the path of the program `bench`, the times of warpfold in Rust
are measured, too. Each time is the median of five runs.
"""

import array
import datetime
import functools
import importlib
import json
import math
import os
import platform
import statistics
import subprocess
import sys
import time

import numpy as np
import warpfold as wf

RUNS = 5
CALLS = 1000
# More than the L2 cache of any device, so that inputs come from memory.
ROTATED_BYTES = 256 << 20


def library(name):
    """A library, or None without it or without a GPU for it."""
    try:
        found = importlib.import_module(name)
    except ImportError:
        return None
    is_usable = {"torch": lambda: found.cuda.is_available(), "cupy": lambda: found.cuda.is_available()}
    return found if is_usable.get(name, lambda: True)() else None


TORCH, CUPY = library("torch"), library("cupy")


def note(text):
    print(text, file=sys.stderr, flush=True)


def median_seconds(run):
    """The median time of runs after one that is not timed."""
    run()
    times = []
    for _ in range(RUNS):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def call_us(call, wait):
    """The time that a call takes the host, in microseconds: the work is started, and waited for after all calls."""

    def run():
        for _ in range(CALLS):
            call()

    times = []
    for _ in range(RUNS + 1):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
        wait()
    return statistics.median(times[1:]) / CALLS * 1e6


def beside(case, peer_call, own_call, peer, own, unit, measure):
    """A row of a table: a case, and the measurements of another library's call and of ours."""
    note(f"{case}: {peer_call}")
    return {
        "case": case,
        "peer_call": peer_call,
        "call": own_call,
        f"peer_{unit}": measure(peer),
        unit: measure(own),
    }


def calls():
    """What a call on 2^10 numbers costs the host."""
    rows = []
    if TORCH:
        x, pair = TORCH.ones(1 << 10, device="cuda"), TORCH.ones(32, 32, device="cuda")
        out, side = TORCH.empty((), device="cuda"), TORCH.cuda.Stream()
        measure = functools.partial(call_us, wait=TORCH.cuda.synchronize)
        row = functools.partial(beside, unit="us", measure=measure)
        rows += [
            row("sum", "torch.sum(x)", "wf.sum(x)", lambda: TORCH.sum(x), lambda: wf.sum(x)),
            row("sum to `out`", "torch.sum(x, (0,), out=y)", "wf.sum(x, out=y)",
                lambda: TORCH.sum(x, (0,), out=out), lambda: wf.sum(x, out=out)),
            row("rows of 32", "torch.sum(x, 1)", "wf.sum(x, axis=1)",
                lambda: TORCH.sum(pair, 1), lambda: wf.sum(pair, axis=1)),
            row("columns of 32", "torch.sum(x, 0)", "wf.sum(x, axis=0)",
                lambda: TORCH.sum(pair, 0), lambda: wf.sum(pair, axis=0)),
            row("maximum", "torch.amax(x)", "wf.max(x)", lambda: TORCH.amax(x), lambda: wf.max(x)),
            row("sum, to the host", "torch.sum(x).item()", "wf.sum(x).item()",
                lambda: TORCH.sum(x).item(), lambda: wf.sum(x).item()),
        ]  # fmt: skip
        with TORCH.cuda.stream(side):
            rows.append(row("sum on a side stream", "torch.sum(x)", "wf.sum(x)",
                            lambda: TORCH.sum(x), lambda: wf.sum(x)))  # fmt: skip
    if CUPY:
        y = CUPY.ones(1 << 10, CUPY.float32)
        measure = functools.partial(call_us, wait=CUPY.cuda.runtime.deviceSynchronize)
        rows.append(beside("sum", "cupy.sum(x)", "wf.sum(x)", lambda: CUPY.sum(y), lambda: wf.sum(y), "us", measure))
    host = np.ones(1 << 10, np.float32)
    measure = functools.partial(call_us, wait=lambda: None)
    rows.append(beside("sum", "np.sum(x)", "wf.sum(x)", lambda: np.sum(host), lambda: wf.sum(host), "us", measure))
    return rows


def graph_us(call, inputs):
    """The time of a call on the device, in microseconds: a CUDA graph of calls on inputs in turn."""
    for x in inputs:
        call(x)
    TORCH.cuda.synchronize()
    graph, rounds = TORCH.cuda.CUDAGraph(), max(1, 64 // len(inputs))
    with TORCH.cuda.graph(graph):
        for _ in range(rounds):
            for x in inputs:
                call(x)
    start, end = (TORCH.cuda.Event(enable_timing=True) for _ in range(2))
    times = []
    for _ in range(RUNS + 1):
        start.record()
        graph.replay()
        end.record()
        end.synchronize()
        times.append(start.elapsed_time(end) * 1e3)
    return statistics.median(times[1:]) / (rounds * len(inputs))


def rust_us(mebibytes):
    """The time of a whole sum of f32 by warpfold in Rust, in microseconds; None without the program."""
    program = os.environ.get("WARPFOLD_BENCH")
    if not program:
        return None
    command = [program, "reduce", "--op", "sum", "--dtype", "f32", "--shape", str(mebibytes << 18), "--format", "json"]
    report = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    return report["sections"][0]["rows"][0]["back_to_back_us"]


def bandwidths():
    """How fast long inputs are read."""
    if not TORCH:
        return []
    rows = []
    for mebibytes in (16, 64, 256, 1024):
        count = max(2, -(-ROTATED_BYTES // (mebibytes << 20)))
        inputs = [TORCH.rand(mebibytes << 8, 1024, device="cuda") for _ in range(count)]
        measure = functools.partial(graph_us, inputs=inputs)
        cases = [
            ("sum", "torch.sum(x)", "wf.sum(x)", TORCH.sum, wf.sum),
            ("along axis 1", "torch.sum(x, 1)", "wf.sum(x, axis=1)",
             lambda x: TORCH.sum(x, 1), lambda x: wf.sum(x, axis=1)),
            ("along axis 0", "torch.sum(x, 0)", "wf.sum(x, axis=0)",
             lambda x: TORCH.sum(x, 0), lambda x: wf.sum(x, axis=0)),
            ("transpose", "x.T.contiguous()", "wf.matrix_transpose(x)",
             lambda x: x.T.contiguous(), wf.matrix_transpose),
        ]  # fmt: skip
        for name, *case in cases:
            row = beside(name, *case, "us", measure)
            moved = (mebibytes << 20) * (2 if name == "transpose" else 1)
            rust = rust_us(mebibytes) if name == "sum" else None
            rows.append(row | {"mebibytes": mebibytes, "bytes": moved, "rust_us": rust})
    return rows


def element_ns(run, elements):
    return median_seconds(run) / elements * 1e9


def host():
    """Sums of arrays in host memory, by one thread."""
    rows, before = [], wf.get_num_threads()
    wf.set_num_threads(1)
    count = 1 << 22
    source = np.random.default_rng(38)
    measure = functools.partial(element_ns, elements=count)
    for dtype in ("float32", "float64"):
        x = source.standard_normal(count).astype(dtype)
        matrix, tall = x.reshape(2048, 2048), x.reshape(-1, 4)
        row = functools.partial(beside, unit="ns", measure=measure)
        numbers = array.array("d", x)
        rows += [
            row(f"{dtype}", "np.sum(x)", "wf.sum(x)", lambda: np.sum(x), lambda: wf.sum(x)),
            row(f"{dtype}", "math.fsum(x)", "wf.sum(x)", lambda: math.fsum(numbers), lambda: wf.sum(x)),
            row(f"{dtype}, 2048 x 2048, axis 0", "np.sum(x, 0)", "wf.sum(x, axis=0)",
                lambda: np.sum(matrix, 0), lambda: wf.sum(matrix, axis=0)),
            row(f"{dtype}, 2048 x 2048, axis 1", "np.sum(x, 1)", "wf.sum(x, axis=1)",
                lambda: np.sum(matrix, 1), lambda: wf.sum(matrix, axis=1)),
            row(f"{dtype}, 2^20 x 4, axis 1", "np.sum(x, 1)", "wf.sum(x, axis=1)",
                lambda: np.sum(tall, 1), lambda: wf.sum(tall, axis=1)),
        ]  # fmt: skip
    wf.set_num_threads(before)
    return rows


def overrides():
    """The cost of `warpfold.torch.exact()`, eager and in a graph."""
    if not TORCH:
        return []
    import warpfold.torch

    cases = [
        ("sum of 2^10", (1 << 10,), lambda x: x.sum()),
        ("sums of 2^5 rows of 2^5", (32, 32), lambda x: x.sum(1)),
        ("mean of 2^10", (1 << 10,), lambda x: x.mean()),
        ("norm of 2^10", (1 << 10,), lambda x: TORCH.linalg.vector_norm(x)),
        ("sum of 2^24", (1 << 24,), lambda x: x.sum()),
        ("means of 2^14 rows of 2^12", (1 << 14, 1 << 12), lambda x: x.mean(-1)),
        ("norms of 2^14 rows of 2^12", (1 << 14, 1 << 12), lambda x: TORCH.linalg.vector_norm(x, dim=-1)),
    ]
    rows = []
    for name, shape, call in cases:
        x = TORCH.randn(shape, device="cuda")
        is_short = x.numel() <= 1 << 10
        eager = functools.partial(call_us, lambda: call(x), TORCH.cuda.synchronize)
        in_graph = functools.partial(graph_us, call, [x])
        ways = [("eager, on the host", eager)] if is_short else []
        for way, measure in [*ways, ("in a graph, on the device", in_graph)]:
            note(f"{name}: {way}")
            torch_us = measure()
            with warpfold.torch.exact():
                exact_us = measure()
            rows.append({"case": name, "way": way, "torch_us": torch_us, "exact_us": exact_us})
    return rows


def versions():
    found = {"Python": platform.python_version(), "NumPy": np.__version__}
    found |= {name: module.__version__ for name, module in [("PyTorch", TORCH), ("CuPy", CUPY)] if module}
    return found


def cpu():
    try:
        lines = open("/proc/cpuinfo").read().splitlines()
    except OSError:
        return platform.processor()
    return next((line.partition(": ")[2] for line in lines if line.startswith("model name")), platform.machine())


def commit():
    try:
        return open("commit").read().strip()
    except OSError:
        return "unknown"


def main():
    start = time.time()
    report = {
        "gpu": TORCH.cuda.get_device_name(0) if TORCH else None,
        "cpu": cpu(),
        "cores": os.cpu_count(),
        "versions": versions(),
        "calls": calls(),
        "bandwidths": bandwidths(),
        "host": host(),
        "overrides": overrides(),
    }
    run = {
        "name": "python",
        "date": datetime.date.today().isoformat(),
        "commit": commit(),
        "driver": wf.info().get("driver"),
        "pytorch": TORCH.__version__ if TORCH else None,
        "command": "python measure.py",
        "exit": 0,
        "seconds": round(time.time() - start),
        "report": report,
    }
    print(json.dumps(run, indent=1))


if __name__ == "__main__":
    main()
