"""The requirements of the array API standard 2025.12 for the functions that this package has, one test each.

The text of each requirement is that of the standard, shortened.
"""

import inspect

import numpy as np
import pytest
import warpfold as wf

from support import same

FLOATS = ["float32", "float64"]
SIGNED = ["int8", "int16", "int32", "int64"]
UNSIGNED = ["uint8", "uint16", "uint32", "uint64"]
NUMERIC = [*FLOATS, *SIGNED, *UNSIGNED]
EVERY = [*NUMERIC, "bool"]

# Signatures: the standard's, whose arguments come in this order; this package adds `out`.
SIGNATURES = {
    "sum": "(x, /, *, axis=None, dtype=None, keepdims=False",
    "prod": "(x, /, *, axis=None, dtype=None, keepdims=False",
    "mean": "(x, /, *, axis=None, keepdims=False",
    "min": "(x, /, *, axis=None, keepdims=False",
    "max": "(x, /, *, axis=None, keepdims=False",
    "any": "(x, /, *, axis=None, keepdims=False",
    "all": "(x, /, *, axis=None, keepdims=False",
    "argmin": "(x, /, *, axis=None, keepdims=False",
    "argmax": "(x, /, *, axis=None, keepdims=False",
    "count_nonzero": "(x, /, *, axis=None, keepdims=False",
    "vecdot": "(x1, x2, /, *, axis=-1",
    "permute_dims": "(x, /, axes",
    "matrix_transpose": "(x, /",
}


@pytest.mark.parametrize("name", SIGNATURES)
def test_signatures_begin_with_those_of_the_standard(name):
    assert str(inspect.signature(getattr(wf, name))).startswith(SIGNATURES[name])


def test_the_norm_has_the_arguments_of_the_standard():
    parameters = inspect.signature(wf.vector_norm).parameters
    assert list(parameters)[:4] == ["x", "axis", "keepdims", "ord"]
    assert wf.vector_norm(np.array([3.0, 4.0]), ord=2) == 5.0


@pytest.mark.parametrize("name", ["sum", "prod"])
@pytest.mark.parametrize("dtype", EVERY)
def test_sums_and_products_have_the_default_type_of_the_kind(name, dtype):
    """If `dtype` is None: a signed integer type gives the default integer type (at least its range), an unsigned one
    the unsigned type with as many bits as the default, a floating-point type itself."""
    result = getattr(wf, name)(np.ones(3, dtype))
    assert result.dtype == (dtype if dtype in FLOATS else "uint64" if dtype in UNSIGNED else "int64")


@pytest.mark.parametrize("dtype", [*SIGNED, *UNSIGNED])
def test_dtype_is_the_type_of_the_sum(dtype):
    """`dtype`: data type of the returned array."""
    for to in [*SIGNED, *UNSIGNED]:
        assert wf.sum(np.ones((2, 3), dtype), dtype=to, axis=1).dtype == to
        assert same(wf.sum(np.ones(3, dtype), dtype=to), np.dtype(to).type(3))


EMPTY = {"sum": 0, "prod": 1, "any": False, "all": True, "count_nonzero": 0}


@pytest.mark.parametrize("name", EMPTY)
@pytest.mark.parametrize("dtype", EVERY)
def test_no_elements(name, dtype):
    """If `x` has no elements: a sum is 0, a product 1, `any` False, `all` True, a count 0."""
    for shape, kept in (((0,), ()), ((0, 2), (2,)), ((0, 0), (0,))):
        result = getattr(wf, name)(np.zeros(shape, dtype), axis=0)
        assert result.shape == kept and (np.asarray(result) == EMPTY[name]).all()


@pytest.mark.parametrize("dtype", FLOATS)
def test_the_mean_of_no_elements_is_nan(dtype):
    """If N is 0, the arithmetic mean is NaN."""
    assert np.isnan(wf.mean(np.zeros(0, dtype))) and wf.mean(np.zeros(0, dtype)).dtype == dtype


@pytest.mark.parametrize("name", ["sum", "prod", "mean", "min", "max", "vector_norm"])
@pytest.mark.parametrize("dtype", FLOATS)
def test_nan_propagates(name, dtype):
    """If any element is NaN, the result is NaN."""
    for x in ([np.nan, 1, 2], [1, 2, np.nan], [np.inf, np.nan, -np.inf]):
        assert np.isnan(getattr(wf, name)(np.array(x, dtype)))


@pytest.mark.parametrize("name", ["mean", "min", "max", "vector_norm"])
@pytest.mark.parametrize("dtype", FLOATS)
def test_the_result_has_the_type_of_the_elements(name, dtype):
    """The returned array must have the same data type as `x`."""
    assert getattr(wf, name)(np.ones((2, 3), dtype), axis=0).dtype == dtype


@pytest.mark.parametrize("name", ["min", "max"])
@pytest.mark.parametrize("dtype", NUMERIC)
def test_extremes_have_the_type_of_the_elements(name, dtype):
    assert getattr(wf, name)(np.ones((2, 3), dtype), axis=0).dtype == dtype


@pytest.mark.parametrize("name", ["any", "all"])
@pytest.mark.parametrize("dtype", EVERY)
def test_logical_results_are_bool(name, dtype):
    """The returned array must have a data type of bool."""
    assert getattr(wf, name)(np.ones((2, 3), dtype), axis=1).dtype == bool


def test_nan_and_infinities_are_true():
    """Positive infinity, negative infinity, and NaN must evaluate to True."""
    for value in (np.nan, np.inf, -np.inf):
        assert wf.any(np.array([value])) and wf.all(np.array([value]))
    assert not wf.any(np.array([0.0, -0.0]))


@pytest.mark.parametrize("name", ["argmin", "argmax", "count_nonzero"])
@pytest.mark.parametrize("dtype", EVERY)
def test_indices_and_counts_have_the_default_index_type(name, dtype):
    """The returned array must have the default array index data type."""
    assert getattr(wf, name)(np.ones((2, 3), dtype), axis=1).dtype == "int64"


def test_indices_are_of_the_first_occurrence():
    """If the value occurs more than once, only the index of the first occurrence is returned; without `axis`, the index
    into the flattened array."""
    x = np.array([[1, 3, 3], [3, 1, 1]])
    assert wf.argmax(x) == 1 and wf.argmin(x) == 0
    assert wf.argmax(x.T) == 1 and wf.argmin(x[::-1]) == 1
    assert wf.argmax(x, axis=1).tolist() == [1, 0]


REDUCTIONS = ["sum", "prod", "mean", "min", "max", "any", "all", "count_nonzero", "vector_norm"]


@pytest.mark.parametrize("name", REDUCTIONS)
def test_axes_and_kept_dimensions(name):
    """`axis`: int or tuple of ints, negative from the end, None for all. `keepdims`: the axes remain with size one.
    A result over all axes is a zero-dimensional array."""
    function = getattr(wf, name)
    x = np.ones((2, 3, 4))
    for axis, shape, kept in [
        (None, (), (1, 1, 1)),
        (0, (3, 4), (1, 3, 4)),
        (-1, (2, 3), (2, 3, 1)),
        ((0, 2), (3,), (1, 3, 1)),
        ((-1, -3), (3,), (1, 3, 1)),
        ((0, 1, 2), (), (1, 1, 1)),
        ((), (2, 3, 4), (2, 3, 4)),
    ]:
        assert function(x, axis=axis).shape == shape
        assert function(x, axis=axis, keepdims=True).shape == kept


@pytest.mark.parametrize("name", ["argmin", "argmax"])
def test_axes_of_indices(name):
    function = getattr(wf, name)
    x = np.ones((2, 3, 4))
    for axis, shape, kept in [(None, (), (1, 1, 1)), (1, (2, 4), (2, 1, 4)), (-1, (2, 3), (2, 3, 1))]:
        assert function(x, axis=axis).shape == shape
        assert function(x, axis=axis, keepdims=True).shape == kept


def test_arrays_without_axes():
    for name in [*REDUCTIONS, "argmin", "argmax"]:
        assert getattr(wf, name)(np.array(2.0)).shape == ()
    assert wf.sum(np.array(2.0), axis=()) == 2.0
    with pytest.raises(ValueError):
        wf.sum(np.array(2.0), axis=0)


def test_the_dot_product_broadcasts_the_other_axes():
    """Let N be the size of `axis` in both arrays; the remaining axes are broadcast."""
    assert wf.vecdot(np.ones((5, 1, 3)), np.ones((4, 3))).shape == (5, 4)
    assert wf.vecdot(np.ones((3, 5)), np.ones((3, 5)), axis=-2).shape == (5,)


@pytest.mark.parametrize("dtype", NUMERIC)
def test_the_dot_product_has_the_type_of_the_elements(dtype):
    assert wf.vecdot(np.ones((2, 3), dtype), np.ones(3, dtype)).dtype == dtype


def test_permutations():
    """`axes`: a permutation of (0, 1, ..., N-1). The result has the type of `x`; `matrix_transpose` takes stacks."""
    x = np.arange(24).reshape(2, 3, 4)
    assert same(wf.permute_dims(x, (2, 0, 1)), np.transpose(x, (2, 0, 1)))
    assert same(wf.matrix_transpose(x), np.swapaxes(x, -1, -2))
