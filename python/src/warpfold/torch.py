"""Exact sums, means and norms in PyTorch.

`enable()` replaces PyTorch's kernels of `sum`, `mean` and `linalg.vector_norm` on the CPU and on CUDA, for the whole
process; `exact()` does so for a block. The result is the exact one, rounded once, to the result's dtype: it does not
depend on the batch, the layout, the order of the dimensions, or the device. Autograd stays PyTorch's. docs/python.md
says what is not reached, and what holds for `torch.compile`.

>>> import torch, warpfold.torch
>>> x = torch.tensor([1e20, 1.0, -1e20, 3.0]).repeat(50)
>>> with warpfold.torch.exact():
...     print(x.sum())
tensor(200.)

`torch.ops.warpfold.sum`, `mean` and `norm` are exact at all times. Their arguments are those of `torch.sum`,
`torch.mean` and `torch.linalg.vector_norm`.

>>> torch.ops.warpfold.sum(x.reshape(100, 2), 0)
tensor([  0., 200.])
"""

import contextlib
import functools
import math
import threading
import warnings

try:
    import torch
except ModuleNotFoundError as error:
    if error.name != "torch":
        raise
    raise ImportError("warpfold.torch needs PyTorch: install the package torch") from error

from torch.autograd import forward_ad

import warpfold as wf

from . import _torch_compile
from . import _torch_kernels as kernels

__all__ = ["all_reduce", "disable", "enable", "exact", "is_enabled"]


# Overrides of PyTorch's operators

# The overloads that reach the CPU and CUDA keys; the others are composed of these. On the CPU `_foreach_norm` is.
_OVERRIDES = [
    ("sum.dim_IntList", kernels.sum, ("CPU", "CUDA")),
    ("sum.IntList_out", kernels.sum_out, ("CPU", "CUDA")),
    ("mean.dim", kernels.mean, ("CPU", "CUDA")),
    ("mean.out", kernels.mean_out, ("CPU", "CUDA")),
    ("linalg_vector_norm", kernels.norm, ("CPU", "CUDA")),
    ("linalg_vector_norm.out", kernels.norm_out, ("CPU", "CUDA")),
    ("_foreach_norm.Scalar", kernels.norms, ("CUDA",)),
]


def _override():
    """Registers the overrides: they hold until the library is destroyed."""
    library = torch.library.Library("aten", "IMPL")
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*[Oo]verrid")
        for name, function, keys in _OVERRIDES:
            for key in keys:
                library.impl(name, function, key)
    return library


# The operators `torch.ops.warpfold`


def _spread(grad, x, axes, keepdim):
    """A gradient of a reduction's results, for each element of the input."""
    if not keepdim:
        for axis in sorted(axes):
            grad = grad.unsqueeze(axis)
    return grad.expand(x.shape)


def _as_gradient(grad, x):
    """A gradient in the dtype of the input."""
    return (grad.real if grad.is_complex() and not x.is_complex() else grad).to(x.dtype)


def _save_input(ctx, inputs, keyword_only_inputs, output):
    x, dim, ctx.keepdim = inputs
    ctx.axes = kernels.axes_of(x.dim(), dim)
    ctx.save_for_backward(x)


def _sum_backward(ctx, grad):
    (x,) = ctx.saved_tensors
    return _as_gradient(_spread(grad, x, ctx.axes, ctx.keepdim), x), None, None


def _mean_backward(ctx, grad):
    (x,) = ctx.saved_tensors
    count = math.prod(x.shape[axis] for axis in ctx.axes)
    return _as_gradient(_spread(grad, x, ctx.axes, ctx.keepdim) / count, x), None, None


def _save_norm(ctx, inputs, keyword_only_inputs, output):
    x, ctx.ord, dim, ctx.keepdim = inputs
    ctx.axes = kernels.axes_of(x.dim(), dim)
    ctx.save_for_backward(x, output)


def _norm_backward(ctx, grad):
    x, norm = ctx.saved_tensors
    grad, norm = (_spread(of, x, ctx.axes, ctx.keepdim) for of in (grad, norm))
    if ctx.ord == 0:
        grad = torch.zeros_like(x)
    elif ctx.ord == 1:
        grad = x.sgn() * grad
    elif ctx.ord == 2:
        grad = x * (grad / norm).masked_fill(norm == 0, 0)
    else:
        # The largest or smallest elements share the gradient.
        equal = x.abs() == norm
        grad = x.sgn() * equal * (grad / equal.sum(ctx.axes, keepdim=True))
    return _as_gradient(grad, x), None, None, None


def _sum_fake(x, dim=None, keepdim=False, *, dtype=None):
    return torch.ops.aten.sum.dim_IntList(x, dim, keepdim, dtype=dtype)


def _mean_fake(x, dim=None, keepdim=False, *, dtype=None):
    return torch.ops.aten.mean.dim(x, dim, keepdim, dtype=dtype)


_ARGUMENTS = "int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None"
_OPERATORS = [
    ("sum", "", kernels.sum, _sum_fake, _save_input, _sum_backward),
    ("mean", "", kernels.mean, _mean_fake, _save_input, _mean_backward),
    ("norm", "Scalar ord=2, ", kernels.norm, torch.ops.aten.linalg_vector_norm.default, _save_norm, _norm_backward),
]


def _in_reverse_mode(function):
    """A kernel that raises an error in forward mode, in which PyTorch would take its tangents for zeros."""

    @functools.wraps(function)
    def kernel(*args, **kwargs):
        if forward_ad._current_level >= 0:
            raise NotImplementedError(
                "torch.ops.warpfold has no forward mode: use torch.sum, mean or linalg.vector_norm in a block of "
                "warpfold.torch.exact()"
            )
        return function(*args, **kwargs)

    return kernel


def _define():
    """Defines the operators: without `custom_op`, which would take 19 us more a call."""
    library = torch.library.Library("warpfold", "DEF")
    # The kernels take inputs of any layout.
    tags = (torch.Tag.pt2_compliant_tag, torch.Tag.flexible_layout)
    for name, first, function, fake, save, backward in _OPERATORS:
        library.define(f"{name}(Tensor self, {first}{_ARGUMENTS}) -> Tensor", tags=tags)
        for key in ("CPU", "CUDA"):
            library.impl(name, _in_reverse_mode(function), key)
        torch.library.register_fake(f"warpfold::{name}", fake, lib=library)
        torch.library.register_autograd(f"warpfold::{name}", backward, setup_context=save, lib=library)
    return library


_LIBRARY = _define()

# The state


class _State:
    """Whether the operators are overridden: by `enable`, or in blocks of `exact`."""

    def __init__(self):
        self.lock = threading.Lock()
        self.is_enabled = False
        self.blocks = 0
        self.library = None
        self.compiler = None

    def change(self, *, is_enabled=None, blocks=0):
        with self.lock:
            if is_enabled is not None:
                self.is_enabled = is_enabled
            self.blocks += blocks
            wanted = self.is_enabled or self.blocks > 0
            if wanted and self.library is None:
                self.compiler = _torch_compile.Installed()
                self.library = _override()
            elif not wanted and self.library is not None:
                self.library._destroy()
                self.compiler.remove()
                self.library = self.compiler = None


_STATE = _State()


def enable():
    """Makes sums, means and norms exact from now on, in all threads.

    No other thread may run operators of PyTorch during the call.

    >>> import torch, warpfold.torch
    >>> warpfold.torch.enable()
    >>> torch.tensor([1e20, 1.0, -1e20]).sum()
    tensor(1.)
    >>> warpfold.torch.disable()
    """
    _STATE.change(is_enabled=True)


def disable():
    """Ends what `enable` began: the operators are PyTorch's own again, outside blocks of `exact`.

    >>> import torch, warpfold.torch
    >>> warpfold.torch.disable()
    >>> warpfold.torch.is_enabled()
    False
    """
    _STATE.change(is_enabled=False)


def is_enabled():
    """Whether sums, means and norms are exact now.

    >>> import torch, warpfold.torch
    >>> with warpfold.torch.exact():
    ...     warpfold.torch.is_enabled()
    True
    """
    return _STATE.library is not None


class exact(contextlib.ContextDecorator):
    """Makes sums, means and norms exact in a block or a function, in all threads.

    It holds for the whole process, because backward passes run in other threads. Blocks may be nested, and overlap in
    several threads: the last one to end restores PyTorch's operators. Put the backward pass in the block, too.

    >>> import torch, warpfold.torch
    >>> x = torch.tensor([1e20, 1.0, -1e20], requires_grad=True)
    >>> with warpfold.torch.exact():
    ...     y = x.sum()
    ...     y.backward()
    >>> y
    tensor(1., grad_fn=<SumBackward0>)
    """

    def __enter__(self):
        _STATE.change(blocks=1)

    def __exit__(self, *error):
        _STATE.change(blocks=-1)


# Several ranks


def all_reduce(x, group=None):
    """Replaces a tensor of floats by its exact sums over the ranks of a process group, rounded once, and returns it.

    The result does not depend on the algorithm, the channels, the size of the message or the order of the ranks. For
    another number of ranks it is the same only if what the ranks have was not rounded before:
    `warpfold.distributed.sum` sums the elements themselves.

    Each rank sends and receives as much as in a ring: 2 (R - 1) / R times the tensor for R ranks. It needs memory for
    another such tensor, and for two if the tensor has gaps or R does not divide its number of elements. As with
    `torch.distributed.all_reduce`, the tensors of all ranks have the same dtype and number of elements, which
    TORCH_DISTRIBUTED_DEBUG=DETAIL checks. Integers are summed by `torch.distributed.all_reduce` itself.

    >>> import torch, warpfold.torch
    >>> gradient = warpfold.torch.all_reduce(gradient)          # doctest: +SKIP
    """
    import torch.distributed as dist

    if not isinstance(x, torch.Tensor):
        raise TypeError(f"all_reduce takes a tensor, not {type(x).__name__}")
    if x.layout is not torch.strided:
        raise TypeError(f"all_reduce takes dense tensors, not {x.layout}: convert it by x.to_dense()")
    with torch.no_grad():
        if not (x.is_floating_point() or x.is_complex()):
            dist.all_reduce(x, group=group)
            return x
        parts = torch.view_as_real(x.resolve_conj()) if x.is_complex() else x
        if parts.dtype not in kernels.FLOATS:
            raise TypeError(f"exact sums have no elements of {x.dtype}: convert them, for example by x.float()")
        ranks, count = dist.get_world_size(group), parts.numel()
        if ranks < 1:
            # This process is not in the group: as torch.distributed does, a warning and nothing else.
            dist.all_reduce(x, group=group)
            return x
        # A slice for each rank, of which the last one may be shorter.
        each = -(-count // ranks)
        in_place = ranks * each == count and parts.is_contiguous() and not (x.is_conj() or x.is_neg())
        if in_place:
            # An axis of one element may have any stride.
            slices = parts.as_strided((count,), (1,))
        else:
            slices = parts.new_zeros(ranks * each)
            slices[:count] = parts.reshape(-1)
        rows = torch.empty_like(slices)
        # As bytes, because not every backend takes every dtype.
        as_bytes = functools.partial(torch.Tensor.view, dtype=torch.uint8)
        dist.all_to_all_single(as_bytes(rows), as_bytes(slices), group=group)
        sums = wf.sum(rows.view(ranks, each), axis=0)
        dist.all_gather_into_tensor(as_bytes(slices), as_bytes(sums), group=group)
        if in_place:
            return x
        parts = slices[:count].view(parts.shape)
        return x.copy_(torch.view_as_complex(parts) if x.is_complex() else parts)
