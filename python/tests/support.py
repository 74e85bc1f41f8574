"""Arrays of any layout for the tests, and references that share no code with the package."""

import gc
import math
import resource
from fractions import Fraction

import ml_dtypes
import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
FLOATS = [np.dtype("float16"), BFLOAT16, np.dtype("float32"), np.dtype("float64")]
INTEGERS = [np.dtype(f"{kind}{size}") for kind in ("int", "uint") for size in (8, 16, 32, 64)]

BITS = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}


def round_fraction(number, dtype):
    """A fraction rounded once to a dtype, to nearest even, by integers."""
    if number == 0:
        return dtype.type(0)
    finfo = ml_dtypes.finfo(dtype)
    digits, smallest = finfo.nmant + 1, finfo.minexp - finfo.nmant
    magnitude = abs(number)
    exponent = magnitude.numerator.bit_length() - magnitude.denominator.bit_length()
    if Fraction(2) ** exponent > magnitude:
        exponent -= 1
    unit = max(exponent - digits + 1, smallest)
    # Python rounds a fraction to the nearest integer, ties to even.
    integer = round(magnitude / Fraction(2) ** unit)
    if integer.bit_length() + unit > finfo.maxexp:
        value = math.inf
    else:
        value = math.ldexp(integer, unit)
    return dtype.type(-value if number < 0 else value)


def sum_of(values, dtype, transform=lambda value: value):
    """The exact sum of floats, or of a function of each, rounded once."""
    values = [float(value) for value in np.ravel(values)]
    if any(math.isnan(value) for value in values):
        return dtype.type(math.nan)
    infinities = {transform(value) for value in values if math.isinf(value)}
    if infinities:
        return dtype.type(infinities.pop() if len(infinities) == 1 else math.nan)
    return round_fraction(sum((transform(Fraction(value)) for value in values), Fraction(0)), dtype)


def root_of(number, dtype):
    """The square root of a fraction, rounded once to a dtype."""
    scale = 1200
    scaled = number * 4**scale
    root = math.isqrt(math.floor(scaled))
    # Half a unit more than the integer below, if the root is no integer: far below a digit that counts.
    is_inexact = root * root != scaled
    return round_fraction(Fraction(2 * root + is_inexact, 2 ** (scale + 1)), dtype)


def norm_of(values, dtype):
    """The Euclidean norm of floats, rounded once to a dtype."""
    values = [float(value) for value in np.ravel(values)]
    if not all(math.isfinite(value) for value in values):
        return dtype.type(math.nan if any(math.isnan(value) for value in values) else math.inf)
    return root_of(sum((Fraction(value) ** 2 for value in values), Fraction(0)), dtype)


def same(a, b):
    """Whether two numbers or arrays have the same dtype, shape and bits; any NaN equals any other."""
    a, b = np.asarray(a), np.asarray(b)
    if a.dtype != b.dtype or a.shape != b.shape:
        return False
    bits = BITS[a.dtype.itemsize] if a.dtype in FLOATS else a.dtype
    equal = np.ascontiguousarray(a).view(bits) == np.ascontiguousarray(b).view(bits)
    return bool(np.all(equal | ((a != a) & (b != b))))


def elements(dtype):
    """Any elements, with many that cancel, that are special, or that are at a limit of the format."""
    if dtype.kind == "b":
        return st.booleans().map(dtype.type)
    if dtype in INTEGERS:
        info = np.iinfo(dtype)
        return st.one_of(
            st.integers(max(info.min, -3), 3), st.integers(int(info.min), int(info.max))
        ).map(dtype.type)
    bits = BITS[dtype.itemsize]
    any_bits = st.integers(0, 2 ** (8 * dtype.itemsize) - 1).map(lambda word: bits(word).view(dtype))
    finfo = ml_dtypes.finfo(dtype)
    largest, smallest = float(finfo.max), float(finfo.smallest_subnormal)
    limits = st.sampled_from([0.0, -0.0, 1.0, -1.0, largest, -largest, smallest, math.inf, math.nan])
    ordinary = st.floats(-8, 8, width=32).map(dtype.type)
    return st.one_of(ordinary, ordinary, any_bits, limits.map(dtype.type))


def base_arrays(dtype, shape):
    """Arrays of any elements in C order."""
    size = math.prod(shape)
    # Few different elements, repeated, are found faster than many.
    some = st.lists(elements(dtype), min_size=1, max_size=12)
    seeds = st.integers(0, 2**32 - 1)

    def array(some, seed):
        picked = np.random.default_rng(seed).integers(0, len(some), size)
        return np.array([some[index] for index in picked], dtype).reshape(shape)

    return st.builds(array, some, seeds)


def unaligned(array):
    """The same array at an odd address."""
    memory = np.zeros(array.nbytes + 1, np.uint8)
    moved = memory[1:].view(array.dtype).reshape(array.shape)
    moved[...] = array
    return moved


def read_only(array):
    view = array.view()
    view.flags.writeable = False
    return view


@st.composite
def arrays(draw, dtypes, min_dims=0, max_dims=4, max_side=6):
    """Arrays of any dtype, shape and layout: permuted axes, steps of either sign, broadcast, unaligned, read-only."""
    dtype = draw(st.sampled_from(dtypes))
    shape = draw(npst.array_shapes(min_dims=min_dims, max_dims=max_dims, min_side=0, max_side=max_side))
    array = draw(base_arrays(dtype, shape))
    if draw(st.booleans()):
        array = unaligned(array)
    if array.ndim:
        array = array.transpose(draw(st.permutations(range(array.ndim))))
        steps = draw(st.lists(st.sampled_from([1, 1, 2, -1, -3]), min_size=array.ndim, max_size=array.ndim))
        array = array[tuple(slice(None, None, step) for step in steps)]
        if draw(st.integers(0, 7)) == 0:
            array = np.broadcast_to(array, (2, *array.shape))
    return read_only(array) if draw(st.booleans()) else array


class OnlyDLPack:
    """An array that has DLPack alone, as tensors of PyTorch do."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **arguments):
        return self.array.__dlpack__(**arguments)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


class OldDLPack(OnlyDLPack):
    """An array of a producer that does not know versions."""

    def __dlpack__(self, stream=None):
        return self.array.__dlpack__()


def least_growth(work, known=lambda: 0):
    """The least growth of the process's memory in three rounds of some work, in KiB, beyond that of what is known. A
    leak grows in every round, and what an allocator keeps does not."""
    growths = []
    for _ in range(3):
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - known()
        work()
        gc.collect()
        growths.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - known() - before)
    return min(growths)
