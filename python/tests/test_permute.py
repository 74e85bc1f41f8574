"""permute_dims and matrix_transpose."""

import numpy as np
import pytest
import warpfold as wf
from hypothesis import given
from hypothesis import strategies as st

from support import FLOATS, INTEGERS, arrays

ALL = [*FLOATS, *INTEGERS, np.dtype(bool), np.dtype("complex64"), np.dtype("complex128")]


@given(arrays([d for d in ALL if d.kind != "c"], max_dims=5), st.data())
def test_permutations_of_any_layout(x, data):
    axes = data.draw(st.permutations(range(x.ndim)))
    signed = tuple(axis - data.draw(st.sampled_from([0, x.ndim])) for axis in axes)
    y = wf.permute_dims(x, signed)
    assert type(y) is np.ndarray and y.flags.c_contiguous and y.dtype == x.dtype
    assert y.tobytes() == np.transpose(x, axes).tobytes() and y.shape == np.transpose(x, axes).shape


@pytest.mark.parametrize("dtype", ALL, ids=str)
def test_every_dtype_and_shapes_larger_than_a_tile(dtype):
    x = np.arange(3 * 100 * 70).astype(dtype).reshape(3, 100, 70)
    for axes in ((0, 2, 1), (2, 1, 0), (1, 2, 0), (2, 0, 1), (1, 0, 2)):
        assert wf.permute_dims(x, axes).tobytes() == np.transpose(x, axes).tobytes()
    assert wf.matrix_transpose(x).tobytes() == np.swapaxes(x, 1, 2).tobytes()


@pytest.mark.parametrize("axes", [(0,), (0, 1, 2), (0, 0), (0, 2), (-1, 1), (2**62, 0), (0, -(2**62)), (0, 2**70)])
def test_axes_that_are_no_permutation_are_refused(axes):
    with pytest.raises(ValueError, match="no permutation|no axis"):
        wf.permute_dims(np.zeros((2, 3)), axes)


def test_a_vector_has_no_matrices():
    with pytest.raises(ValueError, match="no matrices"):
        wf.matrix_transpose(np.zeros(3))
    with pytest.raises(TypeError):
        wf.permute_dims(np.zeros((2, 2)), "ab")
    with pytest.raises(TypeError, match="objects"):
        wf.permute_dims(np.array([[None]]), (1, 0))
