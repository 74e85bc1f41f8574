#!/usr/bin/env python3
"""Compares the results of the libraries in build/ with PyTorch's, and prints each call's time. Needs a GPU.

usage: check.py [--cutensor LIBRARY] [--only cub|cublas|cutensor]... [--large]
"""

import argparse
import ctypes
import math
import pathlib
import sys

import torch

from timing import time_of

BUILD = pathlib.Path(__file__).resolve().parent / "build"
DTYPES = {
    "f32": torch.float32, "f64": torch.float64, "f16": torch.float16, "bf16": torch.bfloat16, "i8": torch.int8,
    "i16": torch.int16, "i32": torch.int32, "i64": torch.int64, "u8": torch.uint8,
}
OPERATORS = ["sum", "min", "max", "argmin", "argmax", "product", "sum-of-squares", "mean", "norm"]
ROTATION_BYTES = 128 << 20
failures = 0


def pointer(tensor):
    return ctypes.c_void_p(tensor.data_ptr())


def stream():
    return ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)


def copies(first):
    bytes_each = first.numel() * first.element_size()
    return [first] + [first.clone() for _ in range(min(256, -(-ROTATION_BYTES // max(bytes_each, 1))))]


def report(what, is_right, microseconds, moved=None):
    global failures
    failures += not is_right
    rate = f"{moved / microseconds / 1e3:9.0f} GB/s" if moved else ""
    print(f"{what:60} {'right' if is_right else 'WRONG'} {microseconds:10.2f} us {rate}", flush=True)


def numbers(shape, dtype, op):
    """Whole numbers whose sums and products are exact."""
    if op == "product":
        ones = torch.ones(shape, device="cuda", dtype=dtype)
        ones.view(-1)[:: max(1, ones.numel() // 7)] = 2
        return ones
    # Places of minima and maxima are unique, so that each library finds the same one.
    low, high = (0, 17) if op in ("sum", "mean", "sum-of-squares", "norm") else (-100, 100)
    low = max(low, 0) if dtype == torch.uint8 else low
    whole = torch.randint(low, high, shape, device="cuda", dtype=torch.int16).to(dtype)
    if op.startswith("arg"):
        rows = whole.view(-1, shape[-1])
        place = torch.arange(rows.shape[0], device="cuda") * 7919 % shape[-1]
        rows[torch.arange(rows.shape[0], device="cuda"), place] = 120 if op == "argmax" else (0 if low == 0 else -120)
        if op == "argmin" and low == 0:
            rows += 0
    return whole


def expected(op, x, dim):
    wide = x.double() if x.dtype.is_floating_point else x.long()
    over = {} if dim is None else {"dim": dim}
    if op == "sum":
        return wide.sum(**over)
    if op == "mean":
        return wide.mean(**over)
    if op == "product":
        return wide.prod(**over)
    if op in ("sum-of-squares", "norm"):
        squares = (wide * wide).sum(**over)
        return squares.sqrt() if op == "norm" else squares
    if op in ("min", "max"):
        return (torch.amin if op == "min" else torch.amax)(wide, **({"dim": (0, 1)} if dim is None else over))
    return (torch.argmin if op == "argmin" else torch.argmax)(wide, **over)


def is_near(found, wanted, tolerance=1e-5):
    found, wanted = found.double().flatten(), wanted.double().flatten()
    return bool(((found - wanted).abs() <= tolerance * wanted.abs() + 1e-30).all())


def cub_case(library, op, name, rows, columns):
    function = getattr(library, f"warpfold_cub_{name}")
    dtype = DTYPES[name]
    is_float = dtype.is_floating_point
    total = (torch.float64 if name == "f64" else torch.float32) if is_float else torch.int64
    first = numbers((rows, columns), dtype, op)
    inputs = copies(first)
    out = torch.zeros(16 * rows, device="cuda", dtype=torch.uint8)
    index = torch.zeros(rows, device="cuda", dtype=torch.int64)
    size = ctypes.c_size_t()

    def call(x, scratch):
        return function(OPERATORS.index(op), pointer(x), pointer(out), pointer(index), ctypes.c_int64(rows),
                        ctypes.c_int64(columns), None, scratch, ctypes.byref(size), stream())

    status = call(first, None)
    if status == -1:
        return
    scratch = torch.zeros(max(size.value, 1), device="cuda", dtype=torch.uint8)
    status = status or call(first, pointer(scratch))
    assert status == 0, f"{op} {name}: CUDA error {status}"
    wanted = expected(op, first, None if rows == 1 else 1)
    if op.startswith("arg"):
        if rows == 1:
            found = index
        else:
            pair = max(8, 2 * first.element_size())
            found = out[: pair * rows].view(rows, pair)[:, :4].contiguous().view(torch.int32)
    elif op in ("min", "max"):
        found = out[: first.element_size() * rows].view(dtype)
    else:
        found = out[: torch.finfo(total).bits // 8 * rows if is_float else 8 * rows].view(total)
    times = time_of(lambda x: call(x, pointer(scratch)), inputs)
    is_right = is_near(found, wanted)
    report(f"CUB {op} {name} {rows} x {columns}", is_right, times, first.numel() * first.element_size())


def cublas_sums(library, name, rows, columns, of_columns):
    first = numbers((rows, columns), DTYPES[name], "sum")
    inputs = copies(first)
    ones = torch.ones(rows if of_columns else columns, device="cuda", dtype=first.dtype)
    out = torch.zeros(columns if of_columns else rows, device="cuda", dtype=first.dtype)

    def call(x):
        status = library.warpfold_cublas_sums(0 if name == "f32" else 1, int(of_columns), pointer(x), pointer(ones),
                                              pointer(out), ctypes.c_int64(rows), ctypes.c_int64(columns), stream())
        assert status == 0, status

    call(first)
    is_right = is_near(out, expected("sum", first, 0 if of_columns else 1))
    what = "columns" if of_columns else "rows"
    report(f"cuBLAS gemv {name} {rows} x {columns} {what}", is_right, time_of(call, inputs),
           first.numel() * first.element_size())


class Plan:
    """A plan of cuTENSOR; false if cuTENSOR has none."""

    def __init__(self, library, make):
        self.library, self.plan = library, ctypes.c_void_p()
        status = make(ctypes.byref(self.plan))
        if status not in (0, -1):
            print(f"cuTENSOR: status {status}")

    def __bool__(self):
        return bool(self.plan)

    def __del__(self):
        if self.plan:
            self.library.warpfold_cutensor_free(self.plan)


def cutensor_permutation(library, size, extents, axes):
    bits = {1: torch.int8, 2: torch.float16, 4: torch.float32, 8: torch.float64, 16: torch.complex128}[size]
    first = torch.randint(-100, 100, extents, device="cuda", dtype=torch.int8).to(bits)
    inputs = copies(first)
    out = torch.empty([extents[axis] for axis in axes], device="cuda", dtype=bits)
    rank = len(extents)
    plan = Plan(library, lambda made: library.warpfold_cutensor_permutation(
        size, ctypes.c_double(1), (ctypes.c_int64 * rank)(*extents), (ctypes.c_int * rank)(*axes), rank, made))
    shown = "x".join(map(str, extents)) + " by " + "".join(map(str, axes))
    if not plan:
        print(f"cuTENSOR has no permutation of {size} bytes, {shown}")
        return

    def call(x):
        status = library.warpfold_cutensor_permute(plan.plan, pointer(x), pointer(out), stream())
        assert status == 0, status

    call(first)
    is_right = torch.equal(out, first.permute(axes))
    report(f"cuTENSOR {size} bytes {shown}", is_right, time_of(call, inputs), 2 * first.numel() * size)


def cutensor_reduction(library, op, name, extents, reduced):
    numbering, types = ["sum", "min", "max", "product"], ["f32", "f64", "f16", "bf16"]
    first = numbers(extents, DTYPES[name], "sum" if op == "mean" else op)
    inputs = copies(first)
    kept = [axis for axis in range(len(extents)) if axis not in reduced]
    results = math.prod(extents[axis] for axis in kept)
    out = torch.zeros(results, device="cuda", dtype=first.dtype)
    bytes_needed = ctypes.c_uint64()
    factor = results / first.numel() if op == "mean" else 1
    plan = Plan(library, lambda made: library.warpfold_cutensor_reduction(
        numbering.index("sum" if op == "mean" else op), types.index(name), ctypes.c_double(factor),
        (ctypes.c_int64 * len(extents))(*extents), len(extents), (ctypes.c_int * max(len(kept), 1))(*kept), len(kept),
        made, ctypes.byref(bytes_needed)))
    shown = "x".join(map(str, extents)) + " over " + ",".join(map(str, reduced))
    if not plan:
        print(f"cuTENSOR has no {op} of {name}, {shown}")
        return
    workspace = torch.zeros(max(bytes_needed.value, 1), device="cuda", dtype=torch.uint8)

    def call(x):
        status = library.warpfold_cutensor_reduce(plan.plan, pointer(x), pointer(out), pointer(workspace), stream())
        assert status == 0, status

    call(first)
    wanted = expected(op, first, reduced) if op != "product" else expected(op, first.flatten(), None)
    # Results are rounded to the element type.
    is_right = is_near(out, wanted.to(first.dtype), 1e-5 if name in ("f32", "f64") else 1e-2)
    report(f"cuTENSOR {op} {name} {shown}", is_right, time_of(call, inputs), first.numel() * first.element_size())


MATRICES = [(1024, 1024), (4096, 4096), (16384, 16384), (1 << 20, 256), (256, 1 << 20), (1 << 24, 16), (16, 1 << 24),
            (1000003, 127)]
PERMUTATIONS = [
    (4, (8192, 8192), (1, 0)), (2, (8192, 8192), (1, 0)), (8, (8192, 8192), (1, 0)), (16, (4096, 4096), (1, 0)),
    (1, (4096, 4096), (1, 0)), (4, (8191, 8193), (1, 0)), (2, (8191, 8193), (1, 0)), (4, (1000003, 127), (1, 0)),
    (4, (1 << 24, 16), (1, 0)), (4, (3, 1000033), (1, 0)), (4, (64, 1024, 2048), (0, 2, 1)),
    (4, (256, 512, 384), (1, 0, 2)), (4, (256, 512, 384), (2, 1, 0)), (4, (8192, 512, 3), (1, 0, 2)),
    (4, (8192, 512, 3), (2, 1, 0)), (2, (256, 512, 384), (2, 1, 0)), (8, (256, 512, 384), (2, 1, 0)),
    (4, (64, 96, 80, 72), (3, 2, 1, 0)),
]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--cutensor", type=pathlib.Path, default=BUILD / "libwarpfold_cutensor.so")
    parser.add_argument("--only", action="append", choices=["cub", "cublas", "cutensor"])
    parser.add_argument("--large", action="store_true", help="also the shapes of the tables, with their times")
    arguments = parser.parse_args()
    wants = lambda name: not arguments.only or name in arguments.only
    if wants("cub"):
        library = ctypes.CDLL(BUILD / "libwarpfold_cub.so")
        print("CUB", library.warpfold_cub_version(), "rows by size:",
              bool(library.warpfold_cub_by_segment_size(ctypes.c_int64(256))))
        for name in DTYPES:
            if not hasattr(library, f"warpfold_cub_{name}"):
                continue
            for op in OPERATORS:
                for rows, columns in [(1, 100003), (1000, 77), (3, 40000)]:
                    cub_case(library, op, name, rows, columns)
        if arguments.large:
            for rows, columns in MATRICES:
                cub_case(library, "sum", "f32", rows, columns)
            for rows, columns in [(1024, 1024), (4096, 4096), (1 << 20, 256), (1 << 24, 16)]:
                for op, name in [("sum", "f64"), ("norm", "f32"), ("argmax", "f32")]:
                    cub_case(library, op, name, rows, columns)
            for columns in [1 << 10, 1 << 20, 1 << 24, 1 << 28]:
                for op in ["sum", "mean", "norm", "sum-of-squares", "product", "argmax"]:
                    cub_case(library, op, "f32", 1, columns)
    if wants("cublas"):
        library = ctypes.CDLL(BUILD / "libwarpfold_cublas.so")
        for of_columns in [False, True]:
            cublas_sums(library, "f32", 1000, 77, of_columns)
            cublas_sums(library, "f64", 33, 2000, of_columns)
            for rows, columns in MATRICES if arguments.large else []:
                cublas_sums(library, "f32", rows, columns, of_columns)
            for rows, columns in [(1024, 1024), (4096, 4096), (1 << 20, 256), (1 << 24, 16)] if arguments.large else []:
                cublas_sums(library, "f64", rows, columns, of_columns)
    if wants("cutensor"):
        library = ctypes.CDLL(arguments.cutensor)
        print("cuTENSOR", library.warpfold_cutensor_version())
        for size in [1, 2, 4, 8, 16]:
            cutensor_permutation(library, size, (33, 70), (1, 0))
            cutensor_permutation(library, size, (5, 33, 70), (2, 0, 1))
        for name in ["f32", "f64", "f16", "bf16"]:
            for op in ["sum", "min", "max", "product", "mean"]:
                for reduced in [(1,), (0,), (0, 1)] if op != "product" else [(0, 1)]:
                    cutensor_reduction(library, op, name, (33, 70), reduced)
        if arguments.large:
            for size, extents, axes in PERMUTATIONS:
                cutensor_permutation(library, size, extents, axes)
            for rows, columns in MATRICES:
                cutensor_reduction(library, "sum", "f32", (rows, columns), (1,))
                cutensor_reduction(library, "sum", "f32", (rows, columns), (0,))
            for extents, reduced in [((256, 512, 384), (0, 2)), ((256, 512, 384), (1,)), ((256, 512, 384), (0, 1))]:
                cutensor_reduction(library, "sum", "f32", extents, reduced)
            for columns in [1 << 10, 1 << 20, 1 << 28]:
                cutensor_reduction(library, "sum", "f32", (1, columns), (0, 1))
    if failures:
        sys.exit(f"{failures} wrong results")


main()
