"""Measures calls and bandwidths of PyTorch, CuPy and this package on a GPU. Prints a line of JSON for each.

`python python/gpu_tests/speed.py`, with the package on Python's path."""

import json
import statistics
import time

import cupy
import numpy as np
import torch
import warpfold as wf

CALLS, RUNS = 1000, 5


def seconds_a_call(call, synchronize, calls=CALLS):
    """The median over runs of the time of a call, which is started but not waited for."""
    for _ in range(calls // 10 + 1):
        call()
    synchronize()
    runs = []
    for _ in range(RUNS):
        start = time.perf_counter()
        for _ in range(calls):
            call()
        started = time.perf_counter()
        synchronize()
        runs.append(((started - start) / calls, (time.perf_counter() - start) / calls))
    return [statistics.median(column) for column in zip(*runs)]


def show(**line):
    print(json.dumps(line), flush=True)


def calls():
    x = torch.ones(1 << 10, device="cuda")
    y = cupy.ones(1 << 10, cupy.float32)
    matrix, out = torch.ones(32, 32, device="cuda"), torch.empty((), device="cuda")
    host = np.ones(4, np.float32)
    side = torch.cuda.Stream()
    nothing = lambda: None
    measured = [
        ("torch.sum", lambda: torch.sum(x), torch.cuda.synchronize),
        ("wf.sum of torch", lambda: wf.sum(x), torch.cuda.synchronize),
        ("torch.sum to out", lambda: torch.sum(x, (0,), out=out), torch.cuda.synchronize),
        ("wf.sum of torch to out", lambda: wf.sum(x, out=out), torch.cuda.synchronize),
        ("torch.sum along axis 0", lambda: torch.sum(matrix, 0), torch.cuda.synchronize),
        ("wf.sum of torch along axis 0", lambda: wf.sum(matrix, axis=0), torch.cuda.synchronize),
        ("torch.empty", lambda: torch.empty((), device="cuda"), torch.cuda.synchronize),
        ("torch.sum with item", lambda: torch.sum(x).item(), nothing),
        ("wf.sum of torch with item", lambda: wf.sum(x).item(), nothing),
        ("cupy.sum", lambda: cupy.sum(y), cupy.cuda.runtime.deviceSynchronize),
        ("wf.sum of cupy", lambda: wf.sum(y), cupy.cuda.runtime.deviceSynchronize),
        ("cupy.empty", lambda: cupy.empty((), cupy.float32), nothing),
        ("numpy.sum of 4", lambda: np.sum(host), nothing),
        ("wf.sum of 4 of numpy", lambda: wf.sum(host), nothing),
    ]
    for name, call, synchronize in measured:
        started, done = seconds_a_call(call, synchronize)
        show(call=name, us=round(1e6 * started, 2), us_done=round(1e6 * done, 2))
    with torch.cuda.stream(side):
        for name, call, synchronize in measured[:2]:
            started, done = seconds_a_call(call, synchronize)
            show(call=name + " on a side stream", us=round(1e6 * started, 2), us_done=round(1e6 * done, 2))


def bandwidths():
    for mebibytes in (16, 64, 256, 1024):
        count = mebibytes << 18
        x = torch.rand(count, device="cuda")
        y = cupy.asarray(x)
        matrix = x.view(-1, 4096)
        for name, call in [
            ("torch.sum", lambda: torch.sum(x)),
            ("wf.sum of torch", lambda: wf.sum(x)),
            ("cupy.sum", lambda: cupy.sum(y)),
            ("wf.sum of cupy", lambda: wf.sum(y)),
            ("torch.sum along axis 0", lambda: torch.sum(matrix, 0)),
            ("wf.sum of torch along axis 0", lambda: wf.sum(matrix, axis=0)),
            ("torch.sum along axis 1", lambda: torch.sum(matrix, 1)),
            ("wf.sum of torch along axis 1", lambda: wf.sum(matrix, axis=1)),
            ("torch transpose", lambda: matrix.T.contiguous()),
            ("wf.matrix_transpose of torch", lambda: wf.matrix_transpose(matrix)),
        ]:
            _, done = seconds_a_call(call, torch.cuda.synchronize, max(10, 4096 // mebibytes))
            read = 4 * count * (2 if "transpose" in name else 1)
            show(call=name, mebibytes=mebibytes, us=round(1e6 * done, 1), gb_s=round(read / done / 1e9, 1))


if __name__ == "__main__":
    show(torch=torch.__version__, cupy=cupy.__version__, numpy=np.__version__, info=wf.info())
    calls()
    bandwidths()
