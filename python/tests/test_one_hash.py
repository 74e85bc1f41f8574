"""One hash by every way: see tests/cases/one_hash.py. For ranks, see on_ranks/program.py."""

import dask
import dask.array as da
import numpy as np
import pytest
import warpfold as wf
import warpfold.dask

from hashes import COUNT, DTYPES, EXPECTED, bits, check, check_states, numbers
from one_hash import COUNTS


@pytest.mark.parametrize("name", DTYPES)
def test_calls(name):
    for count in COUNTS:
        x = numbers(name, count)
        check(name, (wf.sum(x), wf.mean(x), wf.vector_norm(x)), count)
        for result in ("f16", "bf16", "f32", "f64"):
            if (name, count, result) in EXPECTED:
                assert bits(wf.sum(x, dtype=DTYPES[result])) == EXPECTED[name, count, result][0]
        check_states(name, wf.ExactSum(x), wf.ExactSumOfSquares(x), count)
        states = wf.exact_sums(x), wf.exact_sums_of_squares(x)
        check(name, (states[0].values(), states[0].means(), states[1].norms()), count)


@pytest.mark.parametrize("name", DTYPES)
def test_chunks(name):
    x = numbers(name)
    for chunk in (1, 1000, 1 << 20, 1 << 24):
        if chunk == 1 and name != "f32":
            continue
        sums, squares = wf.ExactSum(dtype=x.dtype), wf.ExactSumOfSquares(dtype=x.dtype)
        for start in range(0, COUNT, chunk):
            sums.add(x[start : start + chunk])
            squares.add(x[start : start + chunk])
        check_states(name, sums, squares)


@pytest.mark.parametrize("name", DTYPES)
def test_chunks_of_dask(name):
    x = numbers(name)
    with dask.config.set(scheduler="threads"):
        for blocks in (1, 2, 3, 70, 700):
            a = da.from_array(x, chunks=-(-COUNT // blocks))
            assert a.numblocks == (blocks,)
            results = (f(a) for f in (warpfold.dask.sum, warpfold.dask.mean, warpfold.dask.norm))
            check(name, dask.compute(*results))


def test_plain_sums_have_other_bits():
    """The elements are such that a sum that is not exact is wrong."""
    for name, result in (("f16", "f32"), ("bf16", "f32"), ("f32", "f32"), ("f64", "f64")):
        x = numbers(name).astype(DTYPES[result])
        for of_order in (x, x[::-1]):
            assert bits(np.sum(of_order)) != EXPECTED[name, COUNT, result][0]
