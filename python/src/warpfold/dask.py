"""Exact sums, means and norms of Dask arrays.

A result is the exact one, rounded once: it has the same bits for any chunks, scheduler, number of workers and order in
which blocks are computed, and equals `warpfold.sum`, `warpfold.mean` or `warpfold.vector_norm` of the whole array. The
functions are lazy, and return Dask arrays. Blocks are NumPy arrays; chunks may have unknown sizes.

>>> import dask.array as da, warpfold.dask
>>> x = da.from_array([1e308, 1e308, -1e308, 1.0], chunks=2)
>>> float(warpfold.dask.sum(x))
1e+308
>>> float(x.sum())
inf

Each block gives one state for each output, a `warpfold.ExactSums`, and a tree of tasks merges these, `split_every` at a
time. Where each reduced axis is in one chunk, blocks are reduced without states.
"""

import functools
import operator

try:
    import dask.array as da
except ModuleNotFoundError as error:
    if error.name not in ("dask", "dask.array"):
        raise
    raise ImportError("warpfold.dask needs Dask: install the package dask[array]") from error

import numpy as np

from . import _warpfold as wf

__all__ = ["mean", "norm", "sum"]


def sum(a, axis=None, keepdims=False, split_every=None, dtype=None):
    """The sum of all elements of a Dask array, or along axes, as `warpfold.sum`.

    Floats: the exact sum, rounded once, to the type of the elements, or to a wider type `dtype`. Integers and bool: in
    64 bits, or in the integer type `dtype`, and wraps; with a type of floats, the exact sum of the elements as such
    floats. `split_every` is the number of blocks that one task merges, or a dict of that for each axis.

    >>> import dask.array as da, warpfold.dask
    >>> x = da.ones((4, 6), chunks=2, dtype="float32")
    >>> warpfold.dask.sum(x, axis=0).compute()
    array([4., 4., 4., 4., 4., 4.], dtype=float32)
    """
    _check(a, "sum", split_every)
    result = _result(a, wf.sum, dtype=dtype)
    if a.dtype.kind in "iub":
        if result.kind in "iu":
            # Additions of integers, which wrap, give the same bits in any order.
            axes = _axes(a, axis, "sum")
            return da.sum(a, axis=axes, dtype=result, keepdims=keepdims, split_every=split_every)
        a = a.astype(result)
    whole = functools.partial(wf.sum, dtype=result)
    return _reduce("sum", a, axis, keepdims, split_every, result, whole, _sums, _values)


def mean(a, axis=None, keepdims=False, split_every=None):
    """The mean of all elements of a Dask array, or along axes, as `warpfold.mean`: the exact mean, rounded once.

    It has the type of the elements, and of integers and bool float64. The mean of no elements is NaN.

    >>> import dask.array as da, warpfold.dask
    >>> float(warpfold.dask.mean(da.from_array([1e308, 1e308, 1e308], chunks=1)))
    1e+308
    """
    _check(a, "mean", split_every)
    result = _result(a, wf.mean)
    finish = _means_of_halves if a.dtype.kind in "iu" and a.dtype.itemsize == 8 else _means
    return _reduce("mean", a, axis, keepdims, split_every, result, wf.mean, _sums, finish)


def norm(a, axis=None, keepdims=False, split_every=None):
    """The Euclidean norm of all elements of a Dask array, or along axes, as `warpfold.vector_norm`.

    It is the root of the exact sum of squares, rounded once, in the type of the elements, and of integers in float64.
    Of int64 and uint64, the reduced axes must be in one chunk each.

    >>> import dask.array as da, warpfold.dask
    >>> float(warpfold.dask.norm(da.from_array([3.0, 4.0], chunks=1)))
    5.0
    """
    _check(a, "norm", split_every)
    result = _result(a, wf.vector_norm)
    axes = _axes(a, axis, "norm")
    # An array without elements may have several chunks, which Dask does not merge.
    if a.dtype.kind in "iu" and a.dtype.itemsize == 8 and a.size != 0 and not _is_in_one_chunk(a, axes):
        raise TypeError(
            f"norm of {a.dtype} needs the reduced axes in one chunk each: use "
            f"a.rechunk({dict.fromkeys(axes, -1)}), or a.astype('float64') if elements are below 2**53"
        )
    return _reduce("norm", a, axes, keepdims, split_every, result, wf.vector_norm, _sums_of_squares, _norms)


# Arguments


def _check(a, function, split_every):
    if not isinstance(a, da.Array):
        raise TypeError(
            f"warpfold.dask.{function} takes a Dask array, not `{type(a).__name__}`: use dask.array.from_array(x), or "
            "the function of warpfold for arrays in memory"
        )
    if not isinstance(a._meta, np.ndarray) or isinstance(a._meta, np.ma.MaskedArray):
        block = f"{type(a._meta).__module__}.{type(a._meta).__name__}"
        raise TypeError(
            f"warpfold.dask.{function} takes Dask arrays whose blocks are NumPy arrays, not `{block}`: convert them by "
            "a.map_blocks"
        )
    numbers = split_every.values() if isinstance(split_every, dict) else [split_every or 2]
    for number in numbers:
        # With 1, Dask would leave blocks that nothing merges.
        if operator.index(number) < 2:
            raise ValueError(f"split_every={split_every}: a task merges at least 2 blocks")


def _axes(a, axis, function):
    """The axes that an argument names, from 0 on."""
    if axis is None:
        return tuple(range(a.ndim))
    named = axis if isinstance(axis, (tuple, list)) else (axis,)
    axes = []
    for name in map(operator.index, named):
        if not -a.ndim <= name < a.ndim:
            raise ValueError(f"{function}: axis {name} of an array with {a.ndim} axes")
        if name % a.ndim in axes:
            raise ValueError(f"{function}: axis {name % a.ndim} is named twice, in axis={axis}")
        axes.append(name % a.ndim)
    return tuple(sorted(axes))


def _result(a, function, **arguments):
    """The dtype of the results of a function, which refuses elements that it does not take."""
    return function(np.zeros(1, a.dtype), **arguments).dtype


def _is_in_one_chunk(a, axes):
    return all(a.numblocks[axis] == 1 for axis in axes)


# Graphs


def _reduce(name, a, axis, keepdims, split_every, dtype, whole, states, finish):
    """The reduction of an array: `whole` of each block, or `finish` of the merged `states` of several blocks."""
    axes = _axes(a, axis, name)
    token = f"warpfold-{name}"
    if not _is_in_one_chunk(a, axes):
        return da.reduction(
            a,
            states,
            finish,
            axis=axes,
            keepdims=keepdims,
            dtype=dtype,
            split_every=split_every,
            combine=_merged,
            name=token,
            concatenate=False,
        )
    index = tuple(range(a.ndim))
    return da.blockwise(
        functools.partial(_of_block, whole, axes, bool(keepdims)),
        index if keepdims else tuple(i for i in index if i not in axes),
        a,
        index,
        adjust_chunks=dict.fromkeys(axes, 1) if keepdims else None,
        dtype=dtype,
        meta=_example(a, axes, keepdims, dtype),
        token=token,
    )


def _example(a, axes, keepdims, dtype):
    """A result without elements, from which Dask learns the type and the number of axes."""
    return np.empty((0,) * (a.ndim if keepdims else a.ndim - len(axes)), dtype)


# Tasks
#
# With `computing_meta`, Dask asks a function for an example of its results. It takes states for elements.


def _of_block(function, axes, keepdims, x):
    # Along each reduced axis, Dask gives a list of the only block.
    while isinstance(x, list):
        (x,) = x
    return function(np.asarray(x), axis=axes, keepdims=keepdims)


def _sums(x, axis, keepdims, computing_meta=False):
    """The exact sums of any elements: of 64-bit integers, of their high and low halves, as if these were elements."""
    if computing_meta:
        return x
    x = np.asarray(x)
    if x.dtype.kind not in "iub":
        return wf.exact_sums(x, axis=axis, keepdims=keepdims)
    if x.dtype.itemsize < 8:
        return wf.exact_sums(x.astype("float64"), axis=axis, keepdims=keepdims)
    high = (x >> x.dtype.type(32)).astype("float64") * 2.0**32
    low = (x & x.dtype.type(2**32 - 1)).astype("float64")
    sums = wf.exact_sums(high, axis=axis, keepdims=keepdims)
    sums.merge(wf.exact_sums(low, axis=axis, keepdims=keepdims))
    return sums


def _sums_of_squares(x, axis, keepdims, computing_meta=False):
    if computing_meta:
        return x
    x = np.asarray(x)
    x = x.astype("float64") if x.dtype.kind in "iu" else x
    return wf.exact_sums_of_squares(x, axis=axis, keepdims=keepdims)


def _merged(parts, axis=None, keepdims=True, computing_meta=False):
    """The merged sums of nested lists. The parts stay as they are, because Dask may use them again."""
    if computing_meta:
        return parts
    parts = list(_flat(parts))
    total = parts[0]
    for number, part in enumerate(parts[1:]):
        if number == 0:
            total = total + part
        else:
            total.merge(part)
    return total


def _flat(parts):
    if isinstance(parts, list):
        for part in parts:
            yield from _flat(part)
    else:
        yield parts


def _finished(finish, parts, axis, keepdims, dtype, computing_meta):
    if computing_meta:
        return _example(parts, axis, keepdims, dtype)
    results = finish(_merged(parts), dtype)
    return results if keepdims else np.squeeze(results, axis=axis)[()]


def _values(parts, axis, keepdims, dtype, computing_meta=False):
    return _finished(wf.ExactSums.values, parts, axis, keepdims, dtype, computing_meta)


def _means(parts, axis, keepdims, dtype, computing_meta=False):
    return _finished(wf.ExactSums.means, parts, axis, keepdims, dtype, computing_meta)


def _means_of_halves(parts, axis, keepdims, dtype, computing_meta=False):
    # There are two terms for each element. Doubling rounds nothing: a mean is far from the limits of float64.
    means = _finished(wf.ExactSums.means, parts, axis, keepdims, dtype, computing_meta)
    return means * 2


def _norms(parts, axis, keepdims, dtype, computing_meta=False):
    return _finished(wf.ExactSums.norms, parts, axis, keepdims, dtype, computing_meta)
