"""Exact sums and other reductions of NumPy arrays.

>>> import numpy as np, warpfold as wf
>>> wf.ExactSum(np.array([1e308, 1e308, -1e308])).value()
1e+308
"""

from ._warpfold import (
    ExactDot,
    ExactSum,
    ExactSumOfSquares,
    get_num_threads,
    info,
    matrix_transpose,
    permute_dims,
    set_num_threads,
)

__all__ = [
    "ExactDot",
    "ExactSum",
    "ExactSumOfSquares",
    "get_num_threads",
    "info",
    "matrix_transpose",
    "permute_dims",
    "set_num_threads",
]
