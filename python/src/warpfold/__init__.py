"""Exact sums and other reductions of arrays, in host memory and on a GPU.

A sum, mean, norm or dot product of floats is the exact one, rounded once: it does not depend on the order of the
elements, the layout, or the number of threads. Functions have the names, the arguments and the meaning of the array API
standard. Arrays are those of NumPy, PyTorch, CuPy, JAX and Numba, or have DLPack, `__cuda_array_interface__` or the
buffer protocol; they may have any shape and layout, and are read where they lie. Results of arrays in host memory are
NumPy arrays or scalars, or PyTorch's tensors. Those of arrays on a GPU are arrays of the same library, or `Array`,
which the library takes over; the work runs on the library's stream.

>>> import numpy as np, warpfold as wf
>>> float(wf.sum(np.array([1e308, 1e308, -1e308])))
1e+308
"""

from ._warpfold import (
    Array,
    ExactDot,
    ExactSum,
    ExactSumOfSquares,
    ExactSums,
    all,
    any,
    argmax,
    argmin,
    count_finite,
    count_nan,
    count_nonzero,
    exact_sums,
    exact_sums_of_squares,
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
    "ExactSums",
    "all",
    "any",
    "argmax",
    "argmin",
    "count_finite",
    "count_nan",
    "count_nonzero",
    "exact_sums",
    "exact_sums_of_squares",
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
