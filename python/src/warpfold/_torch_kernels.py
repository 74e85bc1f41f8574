"""Kernels of PyTorch's operators: exact reductions of tensors, with PyTorch's arguments, dtypes and errors."""

# mypy: disable-error-code="import-not-found"

import math
import warnings

import torch

import warpfold as wf

_INTEGERS = frozenset(getattr(torch, f"{sign}int{bits}") for sign in ("", "u") for bits in (8, 16, 32, 64))
_WHOLE = _INTEGERS | {torch.bool}
FLOATS = frozenset([torch.float16, torch.bfloat16, torch.float32, torch.float64])
_COMPLEX = frozenset([torch.complex32, torch.complex64, torch.complex128])


def axes_of(rank, dim):
    """The axes that a list of dimensions names, from 0. None and the empty list name all."""
    if not dim:
        return tuple(range(rank))
    # A tensor without dimensions has the dimensions 0 and -1 in PyTorch.
    extents = rank or 1
    axes = tuple([d + extents if d < 0 else d for d in dim])
    for axis, named in zip(axes, dim, strict=True):
        if not 0 <= axis < extents:
            raise IndexError(
                f"Dimension out of range (expected to be in range of [{-extents}, {extents - 1}], but got {named})"
            )
        if len(axes) > 1 and axes.count(axis) > 1:
            raise RuntimeError(f"dim {axis} appears multiple times in the list of dims")
    return axes if rank else ()


def _axes(x, dim):
    """The argument `axis` for a list of dimensions."""
    return axes_of(x.dim(), dim) if dim else None


def _reduce(function, x, axes, keepdim=False, dtype=None):
    """A function of warpfold over a tensor of real elements, as a tensor on its device."""
    # Kernels run below autograd: the package refuses tensors that require gradients.
    if x.requires_grad:
        x = x.detach()
    if dtype is None:
        return function(x, axis=axes, keepdims=keepdim)
    return function(x, axis=axes, keepdims=keepdim, dtype=str(dtype).removeprefix("torch."))


def _by_parts(function, x, dim, keepdim):
    """A function over the real and the imaginary parts of complex elements, each for itself."""
    return torch.view_as_complex(_reduce(function, torch.view_as_real(x), axes_of(x.dim(), dim), keepdim))


def _euclidean(x, dim, keepdim=False):
    """The Euclidean norm of floats or of complex elements."""
    if x.dtype in FLOATS:
        return _reduce(wf.vector_norm, x, _axes(x, dim), keepdim)
    norm = _reduce(wf.vector_norm, torch.view_as_real(x), (*axes_of(x.dim(), dim), x.dim()), keepdim)
    return norm.squeeze(-1) if keepdim else norm


def _magnitudes(x):
    """The magnitudes of floats or of complex elements, rounded correctly, as `x.abs()` is not on every device."""
    return x.abs() if x.dtype in FLOATS else _reduce(wf.vector_norm, torch.view_as_real(x), (-1,))


def _check(dtype, name):
    if dtype not in FLOATS and dtype not in _COMPLEX:
        raise TypeError(f"an exact {name} has no elements of {dtype}: convert them, for example by x.float()")


def sum(x, dim=None, keepdim=False, *, dtype=None):
    of = x.dtype
    to = dtype or (torch.int64 if of in _WHOLE else of)
    if to is not of and not (to in _INTEGERS and of in _WHOLE):
        # PyTorch converts the elements first.
        x = x.to(to)
    if to in FLOATS:
        return _reduce(wf.sum, x, _axes(x, dim), keepdim)
    if to in _INTEGERS:
        return _reduce(wf.sum, x, _axes(x, dim), keepdim, to)
    if to is torch.bool:
        return _reduce(wf.any, x, _axes(x, dim), keepdim)
    _check(to, "sum")
    return _by_parts(wf.sum, x, dim, keepdim)


def mean(x, dim=None, keepdim=False, *, dtype=None):
    of = x.dtype
    to = dtype or of
    if to in _WHOLE:
        which = "Optional" if dtype else "Input"
        raise RuntimeError(f"mean(): {which} dtype must be either a floating point or complex dtype. Got: {to}")
    if to is not of:
        x = x.to(to)
    if to in FLOATS:
        return _reduce(wf.mean, x, _axes(x, dim), keepdim)
    _check(to, "mean")
    return _by_parts(wf.mean, x, dim, keepdim)


def norm(x, ord=2, dim=None, keepdim=False, *, dtype=None):
    of = x.dtype
    if dtype is not None or of in _WHOLE:
        # For PyTorch's errors.
        meta = torch.empty_like(x, device="meta")
        torch.ops.aten.linalg_vector_norm(meta, ord, dim, keepdim, dtype=dtype)
    if dtype is not None and dtype is not of:
        x = x.to(dtype)
    _check(x.dtype, "norm")
    if ord == 2:
        return _euclidean(x, dim, keepdim)
    axes = axes_of(x.dim(), dim)
    if ord == 0:
        return _reduce(wf.count_nonzero, x != 0, axes, keepdim).to(x.dtype.to_real())
    if ord == 1:
        return _reduce(wf.sum, _magnitudes(x), axes, keepdim)
    # The gradients compare `x.abs()` with the norm.
    if ord == math.inf:
        return x.abs().amax(axes, keepdim)
    if ord == -math.inf:
        return x.abs().amin(axes, keepdim)
    raise NotImplementedError(
        f"exact norms have the orders 0, 1, 2, inf and -inf, not {ord}: use (x.abs() ** {ord}).sum() ** (1 / {ord})"
    )


def _into(out, result):
    """Writes a result to the argument `out`, as PyTorch does."""
    if out.device != result.device:
        raise RuntimeError(
            f"Expected all tensors to be on the same device, but found {result.device} and out on {out.device}"
        )
    if out.dtype != result.dtype:
        raise RuntimeError(f"Expected out tensor to have dtype {result.dtype}, but got {out.dtype} instead")
    if out.shape != result.shape:
        if out.numel():
            warnings.warn(f"out of shape {tuple(out.shape)} was resized to {tuple(result.shape)}", stacklevel=3)
        out.resize_(result.shape)
    return out.copy_(result)


def sum_out(x, dim=None, keepdim=False, *, dtype=None, out):
    return _into(out, sum(x, dim, keepdim, dtype=dtype or out.dtype))


def mean_out(x, dim=None, keepdim=False, *, dtype=None, out):
    return _into(out, mean(x, dim, keepdim, dtype=dtype or out.dtype))


def norm_out(x, ord=2, dim=None, keepdim=False, *, dtype=None, out):
    return _into(out, norm(x, ord, dim, keepdim, dtype=dtype))


def norms(xs, ord=2, dtype=None):
    return [norm(x, ord, dtype=dtype) for x in xs]
