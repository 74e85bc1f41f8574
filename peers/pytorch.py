#!/usr/bin/env python3
"""Times PyTorch's reductions and transposes. Reads one JSON object per line, and writes one per line: the median time
in microseconds, or null, and the call.

In:  {"op": "sum", "dtype": "f32", "rows": 1024, "columns": 1024, "axis": "all" | "rows" | "columns"}
     {"op": "call", "call": "sum" | "sum-item" | ..., "n": 1024}: the mean wall time of a call on the host
     {"op": "transpose", "kind": "transpose" | "scaled" | "permute-102" | "permute-210", "size": 4, "batch": 1,
      "rows": 1024, "columns": 1024}
Out: {"us": 4.2, "call": "torch.sum"}
"""

import json
import statistics
import sys
import time

import torch

from timing import time_of

DTYPES = {
    "f32": torch.float32, "f64": torch.float64, "f16": torch.float16, "bf16": torch.bfloat16,
    "i8": torch.int8, "i16": torch.int16, "i32": torch.int32, "i64": torch.int64,
    "u8": torch.uint8, "u16": torch.uint16, "u32": torch.uint32, "u64": torch.uint64,
}
# More than the size of the L2 cache, so that no input is in the cache when it is read again.
ROTATION_BYTES = 128 << 20


def reduction(op, dim):
    """A function that reduces along an axis, or all elements if `dim` is None, and the name of PyTorch's."""
    over = {} if dim is None else {"dim": dim}
    calls = {
        "sum": torch.sum, "mean": torch.mean, "product": torch.prod, "min": torch.amin, "max": torch.amax,
        "argmin": torch.argmin, "argmax": torch.argmax, "norm": torch.linalg.vector_norm, "sum-of-squares": torch.dot,
    }
    call = calls[op]
    name = {"norm": "torch.linalg.vector_norm"}.get(op, f"torch.{call.__name__}")
    if op == "sum-of-squares":
        return lambda x: call(x, x), f"{name} of the input with itself"
    return lambda x: call(x, **over), name


def wall_time_of(case):
    """The mean wall time of a call in microseconds; the median of 15 samples."""
    n = case["n"]
    host = torch.ones(n)
    x, y = host.cuda(), torch.zeros((), device="cuda")
    busy = case["call"] == "sum-item-busy"
    call = {
        "sum": lambda: x.sum(),
        "sum-item": lambda: x.sum().item(),
        "sum-item-busy": lambda: x.sum().item(),
        "sum-out": lambda: torch.sum(x, 0, out=y),
        "zeros": lambda: torch.zeros(n, device="cuda"),
        "upload": lambda: host.cuda(),
        "item": lambda: y.item(),
    }[case["call"]]
    long = torch.zeros(1 << 27, device="cuda") if busy else None
    other, repeats = torch.cuda.Stream(), 100 if busy else 500

    def sample():
        torch.cuda.synchronize()
        if busy:
            with torch.cuda.stream(other):
                for _ in range(repeats):
                    long.sum()
        for _ in range(3):
            call()
        torch.cuda.current_stream().synchronize()
        start = time.perf_counter()
        for _ in range(repeats):
            call()
        elapsed = time.perf_counter() - start
        torch.cuda.synchronize()
        return elapsed / repeats * 1e6

    sample()
    return statistics.median(sample() for _ in range(15))


BITS = {1: torch.uint8, 2: torch.float16, 4: torch.float32, 8: torch.float64, 16: torch.complex128}


def transpose(case):
    kind = case["kind"]
    axes = {"permute-102": (1, 0, 2), "permute-210": (2, 1, 0)}.get(kind, (0, 2, 1))
    shape = (case["batch"], case["rows"], case["columns"])
    first = torch.ones(shape, device="cuda", dtype=BITS[case["size"]])
    result = torch.empty([shape[axis] for axis in axes], device="cuda", dtype=first.dtype)
    copies = min(64, -(-ROTATION_BYTES // max(first.numel() * first.element_size(), 1)))
    inputs = [first] + [first.clone() for _ in range(copies)]
    if kind == "scaled":
        return time_of(lambda x: torch.mul(x.permute(axes), -2, out=result), inputs), "torch.mul of a permuted view"
    return time_of(lambda x: result.copy_(x.permute(axes)), inputs), "Tensor.copy_ of a permuted view"


def run(case):
    """The time in microseconds, and the call."""
    if case["op"] == "call":
        return wall_time_of(case), case["call"]
    if case["op"] == "transpose":
        return transpose(case)
    dtype = DTYPES[case["dtype"]]
    rows, columns = case["rows"], case["columns"]
    shape = (rows * columns,) if case["axis"] == "all" else (rows, columns)
    dim = {"all": None, "rows": 1, "columns": 0}[case["axis"]]
    first = torch.randint(0, 17, shape, device="cuda", dtype=torch.int8).to(dtype)
    bytes_each = first.numel() * first.element_size()
    copies = min(256, -(-ROTATION_BYTES // max(bytes_each, 1)))
    inputs = [first] + [first.clone() for _ in range(copies)]
    if case["op"] == "dot":
        pairs = [(x, x.clone()) for x in inputs]
        return time_of(lambda pair: torch.dot(*pair), pairs), "torch.dot"
    call, name = reduction(case["op"], dim)
    return time_of(call, inputs), name


for line in sys.stdin:
    try:
        microseconds, call = run(json.loads(line))
    except Exception as error:  # PyTorch lacks some operators for some types.
        print(f"{line.strip()}: {error}".splitlines()[0], file=sys.stderr)
        microseconds, call = None, None
    torch.cuda.empty_cache()
    print(json.dumps({"us": microseconds, "call": call}), flush=True)
