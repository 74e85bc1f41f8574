"""Exact sums and other reductions of NumPy arrays, on the host.

A sum, mean, norm or dot product of floats is the exact one, rounded once: it does not depend on the order of the
elements, the layout, or the number of threads. Functions have the names, the arguments and the meaning of the array API
standard. Arrays are NumPy's, or have DLPack (PyTorch's tensors on the CPU) or the buffer protocol; they may have any
shape and layout, and are read where they lie. Results are NumPy arrays, or scalars.

>>> import numpy as np, warpfold as wf
>>> float(wf.sum(np.array([1e308, 1e308, -1e308])))
1e+308
"""

from ._warpfold import (
    Array,
    ExactDot,
    ExactSum,
    ExactSumOfSquares,
    all,
    any,
    argmax,
    argmin,
    count_finite,
    count_nan,
    count_nonzero,
    get_num_threads,
    info,
    matrix_transpose,
    max,
    mean,
    min,
    min_max,
    permute_dims,
    prod,
    segment_sum,
    set_num_threads,
    sum,
    sum_of_squares,
    vecdot,
    vector_norm,
)

__all__ = [
    "Array",
    "ExactDot",
    "ExactSum",
    "ExactSumOfSquares",
    "all",
    "any",
    "argmax",
    "argmin",
    "count_finite",
    "count_nan",
    "count_nonzero",
    "get_num_threads",
    "info",
    "matrix_transpose",
    "max",
    "mean",
    "min",
    "min_max",
    "permute_dims",
    "prod",
    "segment_sum",
    "set_num_threads",
    "sum",
    "sum_of_squares",
    "vecdot",
    "vector_norm",
]
