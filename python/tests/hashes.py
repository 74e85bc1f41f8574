"""The results of tests/cases/one_hash.txt, which Python's fractions have made, and the elements that have them."""

import pathlib
import sys

import ml_dtypes
import numpy as np

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "tests" / "cases"))

import one_hash

DTYPES = {
    "f16": np.dtype("float16"),
    "bf16": np.dtype(ml_dtypes.bfloat16),
    "f32": np.dtype("float32"),
    "f64": np.dtype("float64"),
}
COUNT = one_hash.COUNTS[0]
EXPECTED = one_hash.expected()


def numbers(name, count=COUNT):
    return one_hash.numbers(name, count).view(DTYPES[name])


def bits(result):
    """The bits of a result of NumPy."""
    result = np.asarray(result)
    return int(result.view(f"uint{8 * result.dtype.itemsize}"))


def check(name, results, count=COUNT):
    """Compares the sum, the mean and the norm with those of the file, in the type of the elements."""
    assert [bits(result) for result in results] == EXPECTED[name, count, name], name


def check_states(name, sums, squares, count=COUNT):
    """The same for an `ExactSum` and an `ExactSumOfSquares`."""
    dtype = DTYPES[name]
    results = sums.value(dtype), sums.mean(dtype), squares.norm(dtype)
    check(name, [dtype.type(result) for result in results], count)
