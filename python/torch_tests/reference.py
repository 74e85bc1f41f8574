"""Exact results by `fractions`, which share no code with the package, and tensors whose sums are hard."""

import math
from fractions import Fraction

import torch

FLOATS = [torch.float16, torch.bfloat16, torch.float32, torch.float64]


def rounded(number, dtype):
    """A fraction rounded once to a dtype, to nearest even, by integers. The result is a float, exactly."""
    if number == 0:
        return 0.0
    finfo = torch.finfo(dtype)
    digits = 1 - int(math.log2(finfo.eps))
    smallest = math.frexp(finfo.smallest_normal)[1] - digits
    magnitude = abs(number)
    exponent = magnitude.numerator.bit_length() - magnitude.denominator.bit_length()
    if Fraction(2) ** exponent > magnitude:
        exponent -= 1
    unit = max(exponent - digits + 1, smallest)
    # Python rounds a fraction to the nearest integer, ties to even.
    integer = round(magnitude / Fraction(2) ** unit)
    is_finite = integer.bit_length() + unit <= math.frexp(finfo.max)[1]
    value = math.ldexp(integer, unit) if is_finite else math.inf
    return -value if number < 0 else value


def root(number):
    """The square root of a fraction, with enough digits to round it as if it were exact."""
    scale = 1200
    scaled = number * 4**scale
    whole = math.isqrt(math.floor(scaled))
    # Half a unit more than the integer below, if the root is no integer: far below a digit that counts.
    return Fraction(2 * whole + (whole * whole != scaled), 2 ** (scale + 1))


def exact_sum(values):
    return sum(values, Fraction(0))


def exact_mean(values):
    return exact_sum(values) / len(values)


def exact_norm(values):
    return root(exact_sum([value * value for value in values]))


def exact_norm1(values):
    return exact_sum([abs(value) for value in values])


def of_values(function, values, dtype):
    """A function of floats, rounded once. NaN and infinities have the results of IEEE 754."""
    if function is exact_mean and not values:
        return math.nan
    if all(map(math.isfinite, values)):
        return rounded(function([Fraction(value) for value in values]), dtype)
    # Only their signs count.
    if function in (exact_norm, exact_norm1):
        values = [abs(value) for value in values]
    return sum(value for value in values if not math.isfinite(value))


def reference(function, x, dim=None, keepdim=False):
    """A reduction of a tensor of floats, in its dtype."""
    dims = sorted({d % max(x.dim(), 1) for d in dim}) if dim else range(x.dim())
    dims = [d for d in dims if d < x.dim()]
    kept = [d for d in range(x.dim()) if d not in dims]
    outer, inner = [x.shape[d] for d in kept], [x.shape[d] for d in dims]
    rows = x.detach().cpu().double().permute([*kept, *dims]).reshape(math.prod(outer), math.prod(inner)).tolist()
    shape = [1 if d in dims else x.shape[d] for d in range(x.dim())] if keepdim else outer
    return torch.tensor([of_values(function, row, x.dtype) for row in rows], dtype=x.dtype).reshape(shape)


def assert_same(actual, expected):
    """The same dtype, shape and bits; any NaN equals any other."""
    assert actual.dtype == expected.dtype
    assert actual.shape == expected.shape
    actual, expected = actual.detach().cpu(), expected.detach().cpu()
    if actual.is_complex():
        actual, expected = torch.view_as_real(actual), torch.view_as_real(expected)
    if actual.is_floating_point():
        both_nan = actual.isnan() & expected.isnan()
        bits = {2: torch.int16, 4: torch.int32, 8: torch.int64}[actual.element_size()]
        equal = (actual.contiguous().view(bits) == expected.contiguous().view(bits)) | both_nan
    else:
        equal = actual == expected
    assert equal.all(), f"{actual} is not {expected}"


def hard(*shape, dtype, device="cpu"):
    """A tensor whose large elements cancel, so that its plain sums lose the small ones."""
    count = math.prod(shape)
    exponents = 13 if dtype is torch.float16 else 40
    large = torch.randn(count // 3, dtype=torch.float64)
    large = torch.ldexp(large, torch.randint(0, exponents, large.shape)).to(dtype)
    small = torch.randn(count - 2 * len(large), dtype=torch.float64)
    small = torch.ldexp(small, torch.randint(-exponents, 0, small.shape)).to(dtype)
    mixed = torch.cat([large, -large, small])[torch.randperm(count)]
    return mixed.reshape(shape).to(device)
