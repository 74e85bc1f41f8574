"""Reductions over the ranks of `torch.distributed` or of MPI, with the same bits for any number of ranks.

Each rank has a shard of an array. The results are those of the whole array, on every rank: sums, means and norms are
exact and rounded once, so neither the number of the ranks nor the sizes of the shards change a bit.

`group` is a process group of `torch.distributed` (None is the default group) or a communicator of mpi4py. All ranks of
it call the same function with the same arguments, except for the shard's extents along the reduced axes. If one of them
fails before it communicates, or if they disagree, all raise an exception. A rank that dies is the engine's business:
docs/python.md names the settings.

>>> from mpi4py import MPI                                                  # doctest: +SKIP
>>> wf.distributed.sum(shard, group=MPI.COMM_WORLD)                         # doctest: +SKIP
"""

import builtins
import contextlib
import math
import operator
import struct

import numpy as np

import warpfold as wf

__all__ = [
    "all",
    "all_reduce",
    "any",
    "argmax",
    "argmin",
    "count_finite",
    "count_nan",
    "count_nonzero",
    "max",
    "mean",
    "min",
    "norm",
    "sum",
]

# The version of what ranks exchange: of the words of sums, and of the headers here.
_VERSION = 1
_MAGIC = 0x77617270

_SMALL_INTEGERS = frozenset(["bool", "int8", "int16", "int32", "uint8", "uint16", "uint32"])
_FLOATS = frozenset(["float16", "bfloat16", "float32", "float64"])


# Engines


class _Mpi:
    """A communicator of mpi4py."""

    def __init__(self, communicator):
        from mpi4py import MPI

        self._mpi, self._communicator = MPI, communicator
        self.rank, self.size = communicator.Get_rank(), communicator.Get_size()

    def add(self, array):
        """Replaces integers of 64 bits by their sums over the ranks."""
        on_host, put_back = _on_host(array)
        self._communicator.Allreduce(self._mpi.IN_PLACE, on_host, op=self._mpi.SUM)
        put_back()

    def all_gather(self, array):
        """The arrays of all ranks, which have the same shape and dtype, as the rows of one."""
        on_host, _ = _on_host(array)
        all = np.empty((self.size, *on_host.shape), on_host.dtype)
        # As bytes, because MPI does not know all dtypes.
        self._communicator.Allgather(_bytes(on_host), _bytes(all))
        return _like(all, array)

    def all_gather_bytes(self, data):
        """Equally many bytes of each rank."""
        all = np.empty((self.size, len(data)), np.uint8)
        self._communicator.Allgather(np.frombuffer(data, np.uint8), all)
        return [row.tobytes() for row in all]


# The stream of each device on which bytes of the host are exchanged.
_STREAMS = {}


class _Torch:
    """A process group of PyTorch."""

    def __init__(self, group):
        import torch
        import torch.distributed as dist

        if not dist.is_available() or not dist.is_initialized():
            raise RuntimeError("torch.distributed is not initialized: call torch.distributed.init_process_group first")
        self._torch, self._dist, self._group = torch, dist, group
        self.rank, self.size = dist.get_rank(group), dist.get_world_size(group)
        if self.rank < 0:
            raise ValueError("this process is not a rank of the group")
        # "gloo", "nccl", or one for each kind of device: "cpu:gloo,cuda:nccl". PyTorch's own choice is "undefined".
        backend = str(dist.get_backend(group))
        if backend == "undefined":
            backend = "nccl" if torch.cuda.is_available() else "gloo"
        self._takes_host = "nccl" not in backend or "cpu:" in backend

    def _tensor(self, array):
        """The array as a tensor that the group takes: with the same memory, if possible."""
        tensor = array if isinstance(array, self._torch.Tensor) else self._torch.from_numpy(array)
        return tensor if tensor.is_cuda or self._takes_host else tensor.cuda()

    def add(self, array):
        tensor = self._tensor(array)
        self._dist.all_reduce(tensor, group=self._group)
        if not isinstance(array, self._torch.Tensor):
            array[...] = tensor.cpu().numpy()
        elif tensor.device != array.device:
            array.copy_(tensor)

    def all_gather(self, array):
        if not isinstance(array, self._torch.Tensor):
            array = np.ascontiguousarray(array)
            of_rank = self._tensor(array.reshape(-1).view(np.uint8))
        else:
            # As bytes, because not every backend takes every dtype.
            of_rank = self._tensor(array.contiguous().reshape(-1).view(self._torch.uint8))
        all = of_rank.new_empty((self.size, of_rank.numel()))
        if of_rank.numel() > 0:
            self._dist.all_gather_into_tensor(all.reshape(-1), of_rank, group=self._group)
        if isinstance(array, self._torch.Tensor):
            return all.to(array.device).view(array.dtype).reshape(self.size, *array.shape)
        return all.cpu().numpy().view(array.dtype).reshape(self.size, *array.shape)

    def all_gather_bytes(self, data):
        with self._aside():
            return [row.tobytes() for row in self.all_gather(np.frombuffer(data, np.uint8).copy())]

    def _aside(self):
        """Where bytes of the host are exchanged: with NCCL alone on a stream of its own, so that they do not wait for
        the work of the current one. They still do if that is a sum that fills the device."""
        if self._takes_host:
            return contextlib.nullcontext()
        device = self._torch.cuda.current_device()
        if device not in _STREAMS:
            _STREAMS[device] = self._torch.cuda.Stream(device)
        return self._torch.cuda.stream(_STREAMS[device])


def _engine(group):
    is_mpi = group is not None and hasattr(group, "Allreduce") and hasattr(group, "Allgather")
    return _Mpi(group) if is_mpi else _Torch(group)


def _bytes(array):
    return array.reshape(-1).view(np.uint8)


def _on_host(array):
    """The array as a NumPy array without gaps, and a function that copies that back."""
    if isinstance(array, np.ndarray):
        if array.flags.c_contiguous:
            return array, lambda: None
        copy = np.ascontiguousarray(array)
        return copy, lambda: np.copyto(array, copy)
    if hasattr(array, "cpu"):
        # A tensor; as bytes, because NumPy has no bfloat16.
        import torch

        on_host = array.detach().cpu().contiguous()
        copy = on_host.view(torch.int16).numpy() if array.dtype is torch.bfloat16 else on_host.numpy()
        return copy, lambda: array.copy_(on_host)
    if hasattr(array, "get") and hasattr(array, "set"):
        copy = array.get()
        return copy, lambda: array.set(copy)
    raise TypeError(f"MPI needs an array of NumPy, PyTorch or CuPy, not {type(array).__name__}")


def _like(on_host, array):
    """A NumPy array as one of the library and on the device of another array, with its dtype."""
    if isinstance(array, np.ndarray):
        return on_host
    if hasattr(array, "cpu"):
        import torch

        return torch.from_numpy(on_host).to(array.device).view(array.dtype)
    import cupy

    return cupy.asarray(on_host)


# What ranks agree on


def _agree(group, name, make):
    """Calls a function that describes this rank's part: a text, which all ranks must have in common, and what only this
    rank has. Returns the engine, what each rank has, and this rank's value.

    Every rank takes part, also one whose own part is an error: otherwise the others would wait for it. The function
    comes first, so that a device is at work meanwhile.
    """
    try:
        text, own, value = make()
        error = None
    except Exception as caught:
        text, own, value, error = f"an exception, {type(caught).__name__}: {caught}", 0, None, caught
    engine = _engine(group)
    encoded = f"{'!' if error else ' '}{text}".encode()[:256]
    header = struct.pack("<IIqq256s", _MAGIC, _VERSION, len(encoded), own, encoded)
    headers = [struct.unpack("<IIqq256s", data) for data in engine.all_gather_bytes(header)]
    if error is not None:
        raise error
    texts = []
    for rank, (magic, version, length, _, encoded) in enumerate(headers):
        if (magic, version) != (_MAGIC, _VERSION):
            raise RuntimeError(f"{name}: rank {rank} has another version of warpfold than rank {engine.rank}")
        texts.append(encoded[: builtins.min(length, 256)].decode(errors="replace"))
    for rank, text in enumerate(texts):
        if text.startswith("!"):
            raise RuntimeError(f"{name}: rank {rank} has failed before it communicated, with {text[1:]}")
    # The first rank that differs from most others.
    usual = builtins.max(texts, key=texts.count)
    for rank, text in enumerate(texts):
        if text != usual:
            other = texts.index(usual)
            raise ValueError(f"{name}: rank {rank} has {text[1:]}, and rank {other} has {usual[1:]}")
    return engine, [own for _, _, _, own, _ in headers], value


def _describe(states):
    kind = getattr(states, "kind", type(states).__name__)
    shape = getattr(states, "shape", ())
    if states.dtype is None:
        raise ValueError("a sum without elements needs their type: make it with dtype='float64', for example")
    return f"the {kind} of {states.dtype}, shape {shape}"


def all_reduce(states, group=None):
    """Merges the exact sums of all ranks, in place, and returns them: `ExactSums`, `ExactSum`, `ExactDot` or
    `ExactSumOfSquares`.

    The engine adds integers of 64 bits: 16 for a sum of float32, 72 of float64.

    ValueError on all ranks if one has sums of another kind, dtype or shape, or of another version. If the engine fails,
    sums in host memory are as before; sums on a GPU are unusable.
    """
    return _all_reduce(group, "all_reduce", lambda: states)


def _all_reduce(group, name, make):
    def described():
        states = make()
        return _describe(states), 0, states

    engine, _, states = _agree(group, name, described)
    states.all_reduce(engine.size, engine.add)
    return states


# Reductions


def _name_of(dtype):
    return str(dtype).removeprefix("torch.")


def _as_floats(x, name):
    """The elements as floats: small integers as float64, which has all of them."""
    dtype = _name_of(x.dtype)
    if dtype in _SMALL_INTEGERS:
        return x.astype("float64") if hasattr(x, "astype") else x.double()
    if dtype not in _FLOATS:
        raise TypeError(f"{name} of {dtype}: convert the elements to a dtype of floats first, such as float64")
    return x


def _as_result(result, x):
    """The values of sums as a result for this input: of a tensor in host memory, a tensor."""
    if not isinstance(result, np.ndarray | np.generic) or not hasattr(x, "cpu"):
        return result
    import torch

    array = np.array(result)
    if array.dtype.name == "bfloat16":
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(array)


def sum(x, /, *, axis=None, dtype=None, keepdims=False, group=None):
    """The sum over all ranks along axes, of which one is that of the shards; None is all.

    Floats give the exact sum, rounded once to their dtype, or to the wider `dtype`; integers and bool are summed in 64
    bits, and wrap.
    """
    if _name_of(x.dtype) in _FLOATS:
        states = _all_reduce(group, "sum", lambda: wf.exact_sums(x, axis=axis, keepdims=keepdims))
        return _as_result(states.values(dtype=dtype), x)
    if dtype is not None:
        raise TypeError("the sum of integers has 64 bits: convert it with astype")
    return _of_integers(group, "sum", lambda: wf.sum(x, axis=axis, keepdims=keepdims))


def mean(x, /, *, axis=None, keepdims=False, group=None):
    """The mean over all ranks along axes: the exact sum over the number of elements, rounded once to their dtype; of
    integers up to 32 bits to float64. NaN for no elements."""
    floats = _all_reduce(
        group, "mean", lambda: wf.exact_sums(_as_floats(x, "mean"), axis=axis, keepdims=keepdims)
    )
    return _as_result(floats.means(), x)


def norm(x, /, *, axis=None, keepdims=False, group=None):
    """The Euclidean norm over all ranks along axes: exact, rounded once to the dtype of the elements; of integers up to
    32 bits to float64."""
    squares = _all_reduce(
        group, "norm", lambda: wf.exact_sums_of_squares(_as_floats(x, "norm"), axis=axis, keepdims=keepdims)
    )
    return _as_result(squares.norms(), x)


def _array(result):
    """A result as an array, because a scalar of NumPy cannot be written to."""
    return np.array(result) if isinstance(result, np.generic) else result


def _with_sign(array):
    """The same memory as int64, whose additions give the same bits."""
    if not hasattr(array, "cpu"):
        return array.view(np.int64)
    import torch

    return array.view(torch.int64)


def _of_integers(group, name, make):
    """The sums over the ranks of an array of integers."""

    def described():
        array = _array(make())
        return f"{_name_of(array.dtype)}, shape {tuple(array.shape)}", 0, array

    engine, _, array = _agree(group, name, described)
    engine.add(array if _name_of(array.dtype) == "int64" else _with_sign(array))
    return array[()] if isinstance(array, np.ndarray) else array


def count_nonzero(x, /, *, axis=None, keepdims=False, group=None):
    """The number of elements other than 0, over all ranks along axes."""
    return _of_integers(group, "count_nonzero", lambda: wf.count_nonzero(x, axis=axis, keepdims=keepdims))


def count_nan(x, /, *, axis=None, keepdims=False, group=None):
    """The number of NaN, over all ranks along axes."""
    return _of_integers(group, "count_nan", lambda: wf.count_nan(x, axis=axis, keepdims=keepdims))


def count_finite(x, /, *, axis=None, keepdims=False, group=None):
    """The number of finite elements, over all ranks along axes."""
    return _of_integers(group, "count_finite", lambda: wf.count_finite(x, axis=axis, keepdims=keepdims))


def _axes_of(x, axis):
    rank = len(x.shape)
    if axis is None:
        return tuple(range(rank))
    axes = (axis,) if not isinstance(axis, tuple | list) else tuple(axis)
    return tuple(operator.index(a) + rank if operator.index(a) < 0 else operator.index(a) for a in axes)


def _extremes(group, name, function, x, axis, keepdims):
    """The results of a function on each rank's shard, as rows in the order of the ranks, of ranks with elements."""

    def described():
        count = math.prod(x.shape[a] for a in _axes_of(x, axis))
        # Of no elements there is no extreme: of one that is not there, for the shape.
        of = x if count > 0 else _zeros(x, axis)
        result = function(of, axis=axis, keepdims=keepdims)
        return f"{_name_of(result.dtype)}, shape {tuple(result.shape)}", count, result

    engine, counts, result = _agree(group, name, described)
    return counts, engine.all_gather(_array(result))


def _zeros(x, axis):
    """An array like this one that has one element along the reduced axes, which are empty."""
    extents = [1 if a in _axes_of(x, axis) else extent for a, extent in enumerate(x.shape)]
    if hasattr(x, "new_zeros"):
        return x.new_zeros(extents)
    if isinstance(x, np.ndarray):
        return np.zeros(extents, x.dtype)
    import cupy

    return cupy.zeros(extents, x.dtype)


def _scalar(result):
    return result[()] if isinstance(result, np.ndarray) else result


def _extreme(name, function, x, axis, keepdims, group):
    counts, rows = _extremes(group, name, function, x, axis, keepdims)
    rows = rows[[rank for rank, count in enumerate(counts) if count > 0]]
    if len(rows) == 0:
        raise ValueError(f"the {name} of no elements does not exist: all shards are empty")
    return _scalar(function(rows, axis=0))


def min(x, /, *, axis=None, keepdims=False, group=None):
    """The smallest element over all ranks along axes; NaN if there is one. ValueError if all shards are empty."""
    return _extreme("min", wf.min, x, axis, keepdims, group)


def max(x, /, *, axis=None, keepdims=False, group=None):
    """The largest element over all ranks along axes; NaN if there is one. ValueError if all shards are empty."""
    return _extreme("max", wf.max, x, axis, keepdims, group)


def any(x, /, *, axis=None, keepdims=False, group=None):
    """Whether any element is other than 0, over all ranks along axes; false for no elements."""
    _, rows = _extremes(group, "any", wf.any, x, axis, keepdims)
    return _scalar(wf.any(rows, axis=0))


def all(x, /, *, axis=None, keepdims=False, group=None):
    """Whether all elements are other than 0, over all ranks along axes; true for no elements."""
    counts, rows = _extremes(group, "all", wf.all, x, axis, keepdims)
    return _scalar(wf.all(rows[[rank for rank, count in enumerate(counts) if count > 0]], axis=0))


def _arg_extreme(name, find, reduce, x, axis, keepdims, offset, group):
    def described():
        rank = len(x.shape)
        if axis is None:
            extent, of_axis = math.prod(x.shape), None
        else:
            of_axis = operator.index(axis)
            extent = x.shape[of_axis]
        if offset is not None and operator.index(offset) < 0:
            raise ValueError(f"offset is {offset}: it is the index of the shard's first element in the whole array")
        outputs = math.prod(x.shape[a] for a in range(rank) if of_axis is not None and a != of_axis % rank)
        shard = x if extent > 0 or outputs == 0 else _zeros(x, axis)
        index, value = find(shard, axis=axis, keepdims=keepdims), reduce(shard, axis=axis, keepdims=keepdims)
        given = "with" if offset is not None else "without"
        text = f"{_name_of(value.dtype)}, shape {tuple(value.shape)}, {given} an offset"
        return text, extent, (index, value)

    engine, extents, (index, value) = _agree(group, name, described)
    if offset is None:
        offsets = [builtins.sum(extents[:rank]) for rank in range(engine.size)]
    else:
        offsets = [struct.unpack("<q", data)[0] for data in engine.all_gather_bytes(struct.pack("<q", offset))]
    if builtins.max(extents) == 0:
        raise ValueError(f"the {name} of no elements does not exist: all shards are empty")
    # The first of equal elements is that of the smallest index.
    order = sorted((rank for rank in range(engine.size) if extents[rank] > 0), key=offsets.__getitem__)
    values, indices = engine.all_gather(_array(value)), engine.all_gather(_array(index))
    values, indices = values[order], indices[order]
    for row, rank in enumerate(order):
        indices[row] += offsets[rank]
    first = find(values.reshape(len(order), -1), axis=0)
    flat = indices.reshape(len(order), -1)
    if hasattr(flat, "gather"):
        chosen = flat.gather(0, first.reshape(1, -1))
    elif isinstance(flat, np.ndarray):
        chosen = np.take_along_axis(flat, np.asarray(first).reshape(1, -1), 0)
    else:
        import cupy

        chosen = cupy.take_along_axis(flat, first.reshape(1, -1), 0)
    return _scalar(chosen.reshape(tuple(value.shape)))


def argmin(x, /, *, axis=None, keepdims=False, offset=None, group=None):
    """The index in the whole array of the smallest element along one axis, or of all elements in C order: the first of
    equal ones, or of the first NaN.

    `offset` is the index of the shard's first element along that axis. If no rank gives it, the shards are in the order
    of the ranks. Of all elements in C order they are parts along the first axis.
    """
    return _arg_extreme("argmin", wf.argmin, wf.min, x, axis, keepdims, offset, group)


def argmax(x, /, *, axis=None, keepdims=False, offset=None, group=None):
    """The index in the whole array of the largest element: see `argmin`."""
    return _arg_extreme("argmax", wf.argmax, wf.max, x, axis, keepdims, offset, group)
