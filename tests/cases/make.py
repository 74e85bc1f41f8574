"""Writes `cases.txt`: reductions of arrays of any layout along any axes, with the results that they must have.

    pip install numpy
    python3 tests/cases/make.py

The file is the same in every run. `--check` compares it with the stored one instead. The tests `cases` of `cpu` and
`gpu` read it (`tests/support/src/cases.rs`), and run `gpu.reduce(operator, view, axes)` for every line.

Nothing here is shared with the library: sums, means, sums of squares, norms and dot products are computed with
`fractions.Fraction` and rounded once by `rounded` and `rounded_root`; the other results are NumPy's. `ordered` repeats
the order of products and pairwise sums, which the library promises, one operation after the other.

A line of the file:

    Sum f32 near/17/3x4/-4,1/8 0,-1k = 1x1 40490fdb
    operator, type, input, for Dot a second input, axes, =, extents of the output, bits of each output

- An input is `kind/seed/extents`, and for other layouts than C order from position 0 also `/strides/offset`. `-` stands
  for no extents, no strides or no axes. Element `i` of the memory is a function of kind, type, seed and `i`:
  `float_bits` and `integer_bits`.
- Axes are numbers, or `all`. `k` after them keeps them with an extent of 1.
- Bits are hexadecimal, with a colon between the two of MinMax. `3f800000*4` are four equal outputs.
- `! Empty` in place of a result is the error that the call returns, by the name of its variant.

Where the library's documentation and NumPy differ, the file follows the documentation:

- The sum of an empty array or of only -0.0 is +0.0, and a float's sum is never rounded before the end.
- Of zeros of both signs the minimum is -0.0 and the maximum +0.0. NumPy takes the first, or any.
- A NaN result has one pattern of bits, whatever the bits of the elements.
- If there are no outputs, minima, maxima and their indices of no elements are an empty array. NumPy raises an error.
- An index counts along one axis or along all. NumPy, too, has no index along two axes of three.
- A sum of f16 or bf16 is an f32. NumPy's sum of float16 is a float16, and it has no bf16: here bf16 is widened to
  float32, which has all its numbers.
"""
import collections
import fractions
import math
import pathlib
import sys

import numpy as np

Fraction = fractions.Fraction
WORD = (1 << 64) - 1
PATH = pathlib.Path(__file__).with_name("cases.txt")

# How many cases each operator has of each type.
CASES_OF_PAIR = 30
CASES_OF_DOT = 22

# Of a float: the bits of its exponent, and those of its mantissa that are stored.
FLOATS = {"f32": (8, 23), "f64": (11, 52), "f16": (5, 10), "bf16": (8, 7)}
INTEGERS = {f"{sign}{bits}": (bits, sign == "i") for sign in "iu" for bits in (8, 16, 32, 64)}
TYPES = [*FLOATS, *INTEGERS]


# --- Elements: SplitMix64, whose `i`-th word gives element `i` ---------------------------------------------------


def word(seed, i):
    """Word `i` of SplitMix64."""
    bits = (seed + (i + 1) * 0x9E3779B97F4A7C15) & WORD
    bits = ((bits ^ (bits >> 30)) * 0xBF58476D1CE4E5B9) & WORD
    bits = ((bits ^ (bits >> 27)) * 0x94D049BB133111EB) & WORD
    return bits ^ (bits >> 31)


FLOAT_KINDS = [
    "near",  # 1/16 to 16, of both signs
    "positive",  # the same without a sign
    "unit",  # 1/2 to 2
    "wide",  # all finite exponents
    "rising",  # an exponent that rises with the position
    "subnormal",  # below twice the smallest normal number
    "tiny",  # 0 to 3 times the smallest subnormal number: means and norms are rounded to it, or to a zero with a sign
    "huge",  # the two largest exponents: sums overflow
    "cancel",  # groups of four: x, near, -x, near
    "halves",  # 1, 2, halves of a unit in the last place of it, and far smaller ones, which decide a tie
    "ties",  # 0, 1, 1.5 and 2, of both signs
    "zeros",  # 0.0 and -0.0
    "nan",  # a sixteenth are NaN with any bits
    "infinity",  # a sixteenth are infinities of one sign
    "infinities",  # a sixteenth are infinities of both signs
    "rare",  # of 128 elements one is NaN, and one infinite
    "special",  # NaN, infinities, zeros, subnormal numbers and others
]


def float_bits(kind, name, seed, i):
    """The bits of element `i`."""
    exponent_bits, mantissa_bits = FLOATS[name]
    bias, top = (1 << (exponent_bits - 1)) - 1, (1 << exponent_bits) - 1
    random = word(seed, i)
    # 1 bit, 11 bits and the mantissa: they do not overlap.
    sign, pick, mantissa = random >> 63, (random >> 52) & 0x7FF, random & ((1 << mantissa_bits) - 1)

    def of(sign, field, mantissa):
        return sign << (exponent_bits + mantissa_bits) | field << mantissa_bits | mantissa

    def power(exponent):
        """The bits of a power of two."""
        if exponent + bias >= 1:
            return (exponent + bias) << mantissa_bits
        return 1 << (mantissa_bits + exponent + bias - 1)

    near = of(sign, bias - 4 + (pick * 8 >> 11), mantissa)
    if kind == "near":
        return near
    if kind == "positive":
        return of(0, bias - 4 + (pick * 8 >> 11), mantissa)
    if kind == "unit":
        return of(sign, bias - 1 + (pick * 2 >> 11), mantissa)
    if kind == "wide":
        return of(sign, pick * top >> 11, mantissa)
    if kind == "rising":
        return of(sign, 1 + i % (top - 1), mantissa)
    if kind == "subnormal":
        return of(sign, pick * 2 >> 11, mantissa)
    if kind == "tiny":
        return of(sign, 0, pick >> 9)
    if kind == "huge":
        return of(sign, top - 2 + (pick * 2 >> 11), mantissa)
    if kind == "cancel":
        if i % 2 == 1:
            return near
        first = word(seed, i - i % 4)
        lowest = bias + mantissa_bits
        field = lowest + (((first >> 52) & 0x7FF) * (top - 1 - lowest) >> 11)
        return of((first >> 63) ^ (i % 4 // 2), field, first & ((1 << mantissa_bits) - 1))
    if kind == "halves":
        # Half a unit in the last place of 1.0 as a sum, and as an element.
        of_sum, of_element = (-53 if name == "f64" else -24), -mantissa_bits - 1
        choices = [power(0), power(0), power(of_sum), power(of_sum), power(of_element), power(1 - bias), power(1)]
        choices.append(power(0) | 1)
        return of(sign, 0, 0) | choices[pick >> 8]
    if kind == "ties":
        return of(sign, *[(0, 0), (bias, 0), (bias, 1 << (mantissa_bits - 1)), (bias + 1, 0)][pick >> 9])
    if kind == "zeros":
        return of(sign, 0, 0)
    if kind == "nan":
        return of(sign, top, mantissa | 1) if pick & 15 == 0 else near
    if kind == "infinity":
        return of(seed & 1, top, 0) if pick & 15 == 0 else near
    if kind == "infinities":
        return of(sign, top, 0) if pick & 15 == 0 else near
    if kind == "rare":
        return {0: of(sign, top, mantissa | 1), 1: of(sign, top, 0)}.get(pick & 127, near)
    if kind == "special":
        special = [of(sign, top, mantissa | 1), of(sign, top, 0), of(sign, 0, 0), of(sign, 0, mantissa)]
        return special[pick & 7] if pick & 7 < 4 else near
    raise ValueError(kind)


INTEGER_KINDS = [
    "small",  # 0 to 99, or -50 to 49
    "bits",  # any bits
    "limits",  # the smallest and the largest numbers, with and without a sign, and those beside them
    "top",  # the largest numbers: sums exceed 64 bits
    "ties",  # 0 to 3
    "sparse",  # a sixteenth are 1, and all others 0
    "zeros",  # 0
    "odd",  # odd numbers: none is 0
]


def integer_bits(kind, name, seed, i):
    """The bits of element `i`."""
    bits, is_signed = INTEGERS[name]
    random, mask, half = word(seed, i), (1 << bits) - 1, 1 << (bits - 1)
    if kind == "small":
        return ((random >> 32) % 100 - (50 if is_signed else 0)) & mask
    if kind == "bits":
        return random & mask
    if kind == "limits":
        return [0, 1, mask, mask - 1, half, half - 1, half + 1, half >> 1][random >> 61]
    if kind == "top":
        return (half - 1 if is_signed else mask) - (random >> 62)
    if kind == "ties":
        return random >> 62
    if kind == "sparse":
        return int(random >> 60 == 0)
    if kind == "zeros":
        return 0
    if kind == "odd":
        return (random | 1) & mask
    raise ValueError(kind)


def element_bits(kind, name, seed, i):
    return (float_bits if name in FLOATS else integer_bits)(kind, name, seed, i)


# --- Numbers and their bits --------------------------------------------------------------------------------------


def size(name):
    """Bytes of an element."""
    return (1 + sum(FLOATS[name]) if name in FLOATS else INTEGERS[name][0]) // 8


def nan_bits(name):
    exponent_bits, mantissa_bits = FLOATS[name]
    return ((1 << (exponent_bits + 1)) - 1) << (mantissa_bits - 1)


def infinity_bits(name, is_negative):
    exponent_bits, mantissa_bits = FLOATS[name]
    return int(is_negative) << (exponent_bits + mantissa_bits) | ((1 << exponent_bits) - 1) << mantissa_bits


def rounded(number, name):
    """The bits of a fraction, rounded to nearest, ties to even."""
    exponent_bits, mantissa_bits = FLOATS[name]
    if number == 0:
        return 0
    magnitude = abs(number)
    # 2^exponent <= magnitude < 2^(exponent + 1).
    exponent = magnitude.numerator.bit_length() - magnitude.denominator.bit_length()
    if magnitude < Fraction(2) ** exponent:
        exponent -= 1
    # The distance between two floats there is 2^unit, and the smallest such distance of the format 2^lowest.
    lowest = 2 - (1 << (exponent_bits - 1)) - mantissa_bits
    unit = max(exponent - mantissa_bits, lowest)
    scaled = magnitude / Fraction(2) ** unit
    count, rest = divmod(scaled.numerator, scaled.denominator)
    if 2 * rest > scaled.denominator or (2 * rest == scaled.denominator and count % 2 == 1):
        count += 1
    # The leading bit of a normal number adds 1 to the exponent's field; if `count` has become 2^(mantissa_bits + 1), 2.
    bits = ((unit - lowest) << mantissa_bits) + count
    return min(bits, infinity_bits(name, False)) | int(number < 0) << (exponent_bits + mantissa_bits)


def rounded_root(number, name):
    """The bits of a fraction's square root, rounded to nearest, ties to even."""
    if number == 0:
        return 0
    # The root of `number / 4^shift` has at least 64 bits.
    shift = (number.numerator.bit_length() - number.denominator.bit_length()) // 2 - 66
    scaled = number / Fraction(4) ** shift
    root = math.isqrt(scaled.numerator // scaled.denominator)
    # Any number between `root` and `root + 1` is rounded as the one in the middle.
    is_exact = root * root == scaled
    return rounded(Fraction(2 * root + (not is_exact), 2) * Fraction(2) ** shift, name)


def value(bits, name):
    """A number as a fraction or an integer; NaN and infinities as Python's."""
    if name in INTEGERS:
        width, is_signed = INTEGERS[name]
        return bits - (1 << width) if is_signed and bits >> (width - 1) else bits
    exponent_bits, mantissa_bits = FLOATS[name]
    bias, top = (1 << (exponent_bits - 1)) - 1, (1 << exponent_bits) - 1
    sign, field = bits >> (exponent_bits + mantissa_bits), (bits >> mantissa_bits) & top
    mantissa = bits & ((1 << mantissa_bits) - 1)
    if field == top:
        return math.nan if mantissa else (-math.inf if sign else math.inf)
    magnitude = mantissa if field == 0 else mantissa | 1 << mantissa_bits
    return Fraction(-magnitude if sign else magnitude) * Fraction(2) ** (max(field, 1) - bias - mantissa_bits)


def to_numpy(bits, name):
    """An array of bits as an array of numbers. NumPy has no bf16; float32 has all its numbers."""
    if name == "bf16":
        return (bits.astype(np.uint32) << 16).view(np.float32)
    return bits.view({"f16": "f2", "f32": "f4", "f64": "f8"}.get(name, f"{name[0]}{size(name)}"))


def from_numpy(numbers, name):
    """The bits of an array of numbers of a type, with one NaN."""
    numbers = np.ascontiguousarray(numbers)
    if name == "bf16":
        bits = numbers.astype(np.float32).view(np.uint32)
        is_nan = np.isnan(numbers)
        assert not np.any(bits[~is_nan] & 0xFFFF), "no bf16"
        bits = bits >> 16
    else:
        bits = numbers.view(f"u{size(name)}")
    bits = [int(x) for x in bits.ravel()]
    if name in FLOATS:
        bits = [nan_bits(name) if nan else x for x, nan in zip(bits, np.isnan(numbers).ravel())]
    return bits


# --- Exact operators ---------------------------------------------------------------------------------------------


def output_type(operator, name):
    """The type of a number of the output."""
    if operator.startswith("InElementType<") or operator in ELEMENTS:
        return name
    if operator in ("Any", "All"):
        return "u8"
    if operator in INDICES or operator.startswith("Count"):
        return "u64"
    if operator == "SumInF64" or (operator in ("Mean", "Norm") and name in INTEGERS):
        return "f64"
    if name in FLOATS:
        return "f64" if name == "f64" else "f32"
    return "i64" if INTEGERS[name][1] else "u64"


ELEMENTS = ("WrappingSum", "Min", "Max", "MinMax")
EXACT = ("Sum", "SumInF64", "Mean", "SumOfSquares", "Norm", "Dot")
ORDERED = ("Product", "PairwiseSum", "PairwiseMean")
INDICES = ("ArgMin", "ArgMax")
WITHOUT_EMPTY_RESULT = ("Min", "Max", "MinMax", *INDICES)


def exact(operator, name, terms, output):
    """The bits of an exact result from what is summed: elements, squares or products."""
    if name in INTEGERS:
        total = sum(terms)
        if operator == "Mean":
            return rounded(Fraction(total, len(terms)), output) if terms else nan_bits(output)
        if operator == "Norm":
            return rounded_root(Fraction(total), output)
        return total & WORD
    special = [x for x in terms if isinstance(x, float)]
    if any(map(math.isnan, special)) or {math.inf, -math.inf} <= set(special):
        return nan_bits(output)
    if special:
        return infinity_bits(output, special[0] < 0)
    total = sum(terms, Fraction(0))
    if operator == "Mean":
        return rounded(total / len(terms), output) if terms else nan_bits(output)
    return rounded_root(total, output) if operator == "Norm" else rounded(total, output)


def product_of(a, b):
    """An exact product. That of 0 and an infinity is NaN, and that of NaN and anything is NaN."""
    if isinstance(a, float) or isinstance(b, float):
        signs = [math.nan if math.isnan(x) else (x > 0) - (x < 0) for x in (a, b)]
        sign = signs[0] * signs[1]
        return math.nan if math.isnan(sign) or sign == 0 else math.copysign(math.inf, sign)
    return a * b


# --- The order of products and pairwise sums ---------------------------------------------------------------------
#
# The order is that of `tests/support/src/order.rs`, and the numbers are those of `kernels/src/reduce/tuning.rs`.

VECTOR_BYTES = 16
VECTORS_PER_LANE = 4
MAX_SHORT_ROW_VECTORS = 128
VECTORS_IN_FLIGHT = 4
MAX_THREADS = 512
MULTIPROCESSORS = 132
LEAVES = 16
ROUNDS = 4


def power_of_two(number):
    """The smallest power of two that is not smaller."""
    return 1 << max(number - 1, 0).bit_length()


class Ordered:
    """Combines floats as the kernels promise to."""

    def __init__(self, combine, neutral, element_size):
        self.combine, self.neutral = combine, neutral
        self.of_vector = VECTOR_BYTES // element_size
        self.in_flight = 8 if element_size == 2 else 4

    def chain(self, states):
        """One after the other."""
        result = self.neutral
        for state in states:
            result = self.combine(result, state)
        return result

    def neighbours(self, states):
        """A balanced tree: neighbours first."""
        while len(states) > 1:
            states = [self.combine(states[i], states[i + 1]) for i in range(0, len(states), 2)]
        return states[0]

    def halves(self, states):
        """A balanced tree: of two halves, the elements at the same place in both first."""
        states = states + [self.neutral] * (power_of_two(len(states)) - len(states))
        while len(states) > 1:
            half = len(states) // 2
            states = [self.combine(states[i], states[i + half]) for i in range(half)]
        return states[0]

    def row(self, elements):
        """Neighbours in memory, or several axes that are not neighbours."""
        vectors = -(-len(elements) // self.of_vector)
        if vectors <= MAX_SHORT_ROW_VECTORS:
            return self.short_row(elements, vectors)
        threads = max(32, power_of_two(-(-vectors // (2 * VECTORS_IN_FLIGHT))))
        tile = threads * VECTORS_IN_FLIGHT * self.of_vector
        # Longer rows are shared by several blocks: `long_pairwise_sums` in `tests/support/src/by_length.rs` has them.
        assert threads <= MAX_THREADS and len(elements) <= 2 * tile, "too long for this file"
        states = [self.thread(elements, thread, threads, tile) for thread in range(threads)]
        return self.halves([self.halves(states[first : first + 32]) for first in range(0, threads, 32)])

    def short_row(self, elements, vectors):
        """A row that a few lanes of a warp share, each with every `lanes`-th vector."""
        lanes = min(32, power_of_two(-(-vectors // VECTORS_PER_LANE)))
        whole = len(elements) // self.of_vector
        states = []
        for lane in range(lanes):
            state = self.neutral
            if whole > 0:
                of_lane = [self.neutral] * VECTORS_PER_LANE
                for k, vector in enumerate(range(lane, whole, lanes)):
                    of_lane[k] = self.vector(elements, vector * self.of_vector)
                state = self.neighbours(of_lane)
            for single in elements[whole * self.of_vector + lane :: lanes]:
                state = self.combine(state, single)
            states.append(state)
        return self.halves(states)

    def vector(self, elements, first):
        return self.neighbours(elements[first : first + self.of_vector])

    def thread(self, elements, thread, threads, tile):
        """A thread of a block: whole tiles, then whole vectors, then a single element."""
        stride = threads * self.of_vector
        after_tiles, after_vectors = len(elements) // tile * tile, len(elements) // self.of_vector * self.of_vector
        states = [
            self.neighbours([self.vector(elements, at + k * stride) for k in range(VECTORS_IN_FLIGHT)])
            for at in range(thread * self.of_vector, after_tiles, tile)
        ]
        rest = range(after_tiles + thread * self.of_vector, after_vectors, stride)
        states += [self.vector(elements, at) for at in rest]
        return self.chain(states + elements[after_vectors + thread : after_vectors + thread + 1])

    def column(self, elements):
        """Elements of which other outputs' elements lie between."""
        count, least = len(elements), LEAVES * ROUNDS * self.in_flight
        leaves, passes, of_split = LEAVES, ROUNDS, count
        if count < 2 * least:
            rounds = count // (ROUNDS * self.in_flight)
            leaves, passes = min(LEAVES, 1 << max(rounds.bit_length() - 1, 0)), 1
        else:
            # Four times the root of the largest power of two that is not larger, itself rounded up.
            of_split = max(least, 4 << (count.bit_length() // 2))
        splits = [elements[first : first + of_split] for first in range(0, count, max(of_split, 1))] or [[]]
        states = [self.split(split, leaves, passes) for split in splits]
        if len(states) == 1:
            return states[0]
        threads = 4 if len(states) <= 32 else 16
        return self.halves([self.chain(states[thread::threads]) for thread in range(threads)])

    def split(self, elements, leaves, passes):
        states = []
        for leaf in range(leaves):
            chains = [self.rounds(elements[leaf + k * leaves :: leaves * passes]) for k in range(passes)]
            state = chains[0]
            for other in chains[1:]:
                state = self.combine(state, other)
            states.append(state)
        return self.halves(states)

    def rounds(self, elements):
        """Several elements at once while as many are left, then four, and then one."""
        state = self.neutral
        for at_once in (self.in_flight, 4, 1):
            while len(elements) >= at_once:
                state = self.combine(state, self.neighbours(elements[:at_once]))
                elements = elements[at_once:]
        return state


def ordered(operator, name, bits, is_row, output):
    """The bits of a product, or of a pairwise sum or mean, from the elements' bits in C order."""
    number = np.float64 if output == "f64" else np.float32
    elements = [number(x) for x in to_numpy(np.array(bits, f"u{size(name)}"), name)]
    is_product = operator == "Product"
    combine = (lambda a, b: a * b) if is_product else (lambda a, b: a + b)
    order = Ordered(combine, number(1 if is_product else 0), size(name))
    with np.errstate(all="ignore"):
        result = order.row(elements) if is_row else order.column(elements)
        if not is_product:
            # Makes +0.0 of -0.0.
            result = result + number(0)
        if operator == "PairwiseMean":
            result = number(np.float64(result) / np.float64(len(elements)))
    return from_numpy(np.array(result, number), output)[0]


def is_row(extents, axes):
    """Whether the elements of an output are a row, or else a column: the docs of `host/src/reduce/mod.rs`."""
    counting = [axis in axes for axis, extent in enumerate(extents) if extent != 1]
    groups = sum(reduced and (i == 0 or not counting[i - 1]) for i, reduced in enumerate(counting))
    return groups != 1 or counting[-1]


# --- Arrays, and their reductions --------------------------------------------------------------------------------

Input = collections.namedtuple("Input", "kind seed extents strides offset")
Axes = collections.namedtuple("Axes", "names keep_dims")


class Failure(Exception):
    """The error that a call must return."""


def c_strides(extents):
    strides, next_stride = [], 1
    for extent in reversed(extents):
        strides.insert(0, next_stride)
        next_stride *= max(extent, 1)
    return strides


def array_of(source, name):
    """The array of bits. NumPy refuses a layout that leaves the memory."""
    if 0 in source.extents:
        return np.zeros(source.extents, f"u{size(name)}")
    reaches = [(extent - 1) * stride for extent, stride in zip(source.extents, source.strides)]
    count = source.offset + sum(reach for reach in reaches if reach > 0) + 1
    memory = np.array([element_bits(source.kind, name, source.seed, i) for i in range(count)], f"u{size(name)}")
    strides = [stride * size(name) for stride in source.strides]
    return np.ndarray(source.extents, memory.dtype, memory, source.offset * size(name), strides)


def groups_of(array, axes):
    """For each output in C order, the elements in C order."""
    kept = [axis for axis in range(array.ndim) if axis not in axes]
    outputs = math.prod(array.shape[axis] for axis in kept)
    elements = math.prod(array.shape[axis] for axis in axes)
    return array.transpose(kept + sorted(axes)).reshape(outputs, elements)


def numpys(operator, name, bits, axes, keep_dims):
    """NumPy's result: the bits of each output's numbers."""
    numbers, along = to_numpy(bits, name), {"axis": tuple(sorted(axes)), "keepdims": keep_dims}
    if operator in INDICES:
        index = np.argmin if operator == "ArgMin" else np.argmax
        axis = None if len(axes) == bits.ndim else axes[0]
        return [[int(x)] for x in index(numbers, axis=axis, keepdims=keep_dims).ravel()]
    if operator == "MinMax":
        both = [numpys(of, name, bits, axes, keep_dims) for of in ("Min", "Max")]
        return [[*a, *b] for a, b in zip(*both)]
    if operator in ("Min", "Max"):
        result = (np.min if operator == "Min" else np.max)(numbers, **along)
        if name in FLOATS:
            of_sign = (numbers == 0) & (np.signbit(numbers) == (operator == "Min"))
            zero = np.where(np.any(of_sign, **along) == (operator == "Min"), -0.0, 0.0)
            result = np.where(result == 0, zero.astype(numbers.dtype), result)
        return [[x] for x in from_numpy(result, name)]
    if operator in ("Any", "All"):
        result = (np.any if operator == "Any" else np.all)(numbers != 0, **along)
    elif operator == "CountNonzero":
        result = np.count_nonzero(numbers != 0, **along)
    elif operator in ("CountNan", "CountFinite"):
        result = np.sum((np.isnan if operator == "CountNan" else np.isfinite)(numbers), **along)
    elif operator == "WrappingSum":
        result = np.sum(numbers, dtype=numbers.dtype, **along)
    elif operator in ("Sum", "Product"):
        wide = np.int64 if INTEGERS[name][1] else np.uint64
        result = (np.sum if operator == "Sum" else np.prod)(numbers, dtype=wide, **along)
    else:
        raise ValueError(operator)
    mask = (1 << (8 * size(output_type(operator, name)))) - 1
    return [[int(x) & mask] for x in np.asarray(result).ravel()]


def axes_of(names, rank):
    """The indices of the named axes."""
    if names is None:
        return list(range(rank))
    if len(names) > 32:
        raise Failure("TooManyAxes")
    axes = []
    for name in names:
        if not -rank <= name < rank:
            raise Failure("Axis")
        if name % rank in axes:
            raise Failure("RepeatedAxis")
        axes.append(name % rank)
    return axes


def expected(operator, name, sources, axes):
    """The extents of the output, and the bits of each output's numbers."""
    arrays = np.broadcast_arrays(*[array_of(source, name) for source in sources])
    array, output = arrays[0], output_type(operator, name)
    reduced = axes_of(axes.names, array.ndim)
    # NumPy's own extents of a result.
    extents = np.any(np.ones(array.shape, bool), axis=tuple(reduced), keepdims=axes.keep_dims).shape
    if operator in INDICES and len(reduced) not in (1, array.ndim):
        raise Failure("IndexOverAxes")
    groups = [groups_of(array, reduced) for array in arrays]
    outputs, elements = groups[0].shape
    if operator in WITHOUT_EMPTY_RESULT and elements == 0:
        if outputs > 0:
            raise Failure("Empty")
        return extents, []
    inner = operator.removeprefix("InElementType<").removesuffix(">")
    if inner in EXACT:
        results = []
        for group in zip(*groups):
            terms = [[value(int(x), name) for x in of_input] for of_input in group]
            if inner == "Dot":
                terms = [product_of(a, b) for a, b in zip(*terms)]
            elif inner in ("SumOfSquares", "Norm"):
                terms = [product_of(a, a) for a in terms[0]]
            else:
                terms = terms[0]
            results.append([exact("Sum" if inner == "SumInF64" else inner, name, terms, output)])
        if operator == "Sum" and name in INTEGERS:
            assert results == numpys(operator, name, array, reduced, axes.keep_dims)
        return extents, results
    if name in FLOATS and operator in ORDERED:
        row = is_row(array.shape, reduced)
        return extents, [[ordered(operator, name, [int(x) for x in group], row, output)] for group in groups[0]]
    return extents, numpys(operator, name, array, reduced, axes.keep_dims)


# --- Random arrays and axes --------------------------------------------------------------------------------------


class Random:
    """SplitMix64 as a source of choices: Python's own could change."""

    def __init__(self, seed):
        self.seed, self.next = seed, 0

    def below(self, bound):
        self.next += 1
        return (word(self.seed, self.next - 1) * bound) >> 64

    def between(self, first, last):
        return first + self.below(last - first + 1)

    def of(self, choices):
        return choices[self.below(len(choices))]

    def one_in(self, count):
        return self.below(count) == 0

    def shuffled(self, items):
        items = list(items)
        for i in reversed(range(1, len(items))):
            j = self.below(i + 1)
            items[i], items[j] = items[j], items[i]
        return items


def random_extents(random, most):
    """Extents of at most this many elements."""
    rank = random.of([0, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2, 3, 3, 3, 3, 3, 4, 4, 4, 5, 5, 6])
    extents, left = [], most
    for _ in range(rank):
        extent = random.of([1, random.between(1, most), 16 * random.between(1, 8)] + [random.between(2, 9)] * 5)
        extents.append(min(extent, left))
        left //= extents[-1]
    return random.shuffled(extents)


SPECIAL_KINDS = ["nan", "infinities", "rare", "special"]
LAYOUTS = ["c", "fortran", "reversed", "sliced", "permuted", "broadcast", "offset", "windows", "mixed"]


def random_layout(random, extents, layout):
    """Strides and an offset."""
    rank, is_mixed = len(extents), layout == "mixed"
    order = list(reversed(range(rank)))
    if layout == "fortran":
        order = list(range(rank))
    elif layout == "permuted" or is_mixed:
        order = random.shuffled(order)
    strides, offset, stride = [0] * rank, 0, 1
    if layout in ("offset", "sliced") or is_mixed:
        offset = random.below(20)
    if layout == "windows":
        # Elements of which neighbouring rows have some in common.
        return [random.between(1, 3) for _ in range(rank)], random.below(3)
    for axis in order:
        if (layout == "broadcast" and random.one_in(2)) or (is_mixed and random.one_in(6)):
            continue
        # The array is a part of a larger one, whose axis has `of_axis` elements.
        step, of_axis = 1, extents[axis]
        if (layout == "sliced" or (is_mixed and random.one_in(3))) and stride < 4000:
            step = random.between(1, 3)
            of_axis = step * of_axis + random.below(3)
        strides[axis] = stride * step
        if (layout == "reversed" and (rank == 1 or random.below(3) > 0)) or (is_mixed and random.one_in(2)):
            offset += max(extents[axis] - 1, 0) * strides[axis]
            strides[axis] = -strides[axis]
        stride *= max(of_axis, 1)
    return strides, offset


def random_axes(random, rank, takes_one_or_all):
    keep_dims = random.one_in(4)
    way = random.below(8)
    if way == 0:
        return Axes(None, keep_dims)
    if way == 1:
        names = list(range(rank))
    elif rank > 0 and (way in (2, 3) or takes_one_or_all):
        names = [random.below(rank)]
    elif takes_one_or_all:
        names = []
    else:
        names = [axis for axis in range(rank) if random.one_in(2)]
    names = [axis - rank if random.one_in(3) else axis for axis in random.shuffled(names)]
    return Axes(tuple(names), keep_dims)


def outputs_of(extents, axes):
    reduced = axes_of(axes.names, len(extents))
    return math.prod(extent for axis, extent in enumerate(extents) if axis not in reduced)


def random_input(random, number, operator, name, seed):
    """An array and its axes: short ones mostly, some of up to 3,000 elements, and some without elements."""
    # The last cases of floats have many special numbers.
    is_special = number >= CASES_OF_PAIR - len(SPECIAL_KINDS)
    most = 3000 if number % 13 == 0 else 40 if number % 3 == 0 and not is_special else 400
    least = {0: 500, 3: 0, 7: 0}.get(number % 13, 40 if is_special else 6)
    while True:
        extents = random_extents(random, most)
        if math.prod(extents) < least:
            continue
        if number % 13 == 7 and extents:
            extents[random.below(len(extents))] = 0
        axes = random_axes(random, len(extents), operator in INDICES)
        if outputs_of(extents, axes) <= (8 if number % 4 else 24):
            break
    layout = LAYOUTS[(number + seed) % len(LAYOUTS)]
    strides, offset = random_layout(random, extents, layout)
    kinds = FLOAT_KINDS if name in FLOATS else INTEGER_KINDS
    kind = kinds[(2 * number + seed) % len(kinds)]
    if is_special and name in FLOATS:
        kind = SPECIAL_KINDS[CASES_OF_PAIR - 1 - number]
    return Input(kind, seed, tuple(extents), tuple(strides), offset), axes


def random_pair(random, number, name, seed):
    """Two arrays that are broadcast against each other, and axes of the result."""
    while True:
        extents = random_extents(random, 40 if number % 3 else 1500)
        if number % 11 == 7 and extents:
            extents[random.below(len(extents))] = 0
        axes = random_axes(random, len(extents), False)
        if outputs_of(extents, axes) <= 16:
            break
    inputs = []
    for i in range(2):
        own = [1 if number % 4 > 1 and random.one_in(3) else extent for extent in extents]
        if number % 4 == i + 1:
            # Axes of one element before the first may be left out.
            own = own[random.below(len(own) + 1) :]
        strides, offset = random_layout(random, own, LAYOUTS[(number + seed + 2 * i) % len(LAYOUTS)])
        kinds = FLOAT_KINDS if name in FLOATS else INTEGER_KINDS
        kind = kinds[(2 * number + seed + i * (number % 5)) % len(kinds)]
        inputs.append(Input(kind, seed + i * 500_000, tuple(own), tuple(strides), offset))
    if np.broadcast_shapes(inputs[0].extents, inputs[1].extents) != tuple(extents):
        return random_pair(random, number, name, seed)
    return tuple(inputs), axes


# --- The file ----------------------------------------------------------------------------------------------------

OPERATORS = {
    "Sum": TYPES,
    "SumInF64": ["f32"],
    "InElementType<Sum>": ["f16", "bf16"],
    "WrappingSum": list(INTEGERS),
    "Product": TYPES,
    "PairwiseSum": list(FLOATS),
    "PairwiseMean": list(FLOATS),
    "Mean": TYPES,
    "InElementType<Mean>": ["f16", "bf16"],
    "SumOfSquares": TYPES,
    "InElementType<SumOfSquares>": ["f16", "bf16"],
    "Norm": TYPES,
    "InElementType<Norm>": ["f16", "bf16"],
    "Min": TYPES,
    "Max": TYPES,
    "MinMax": TYPES,
    "ArgMin": TYPES,
    "ArgMax": TYPES,
    "Any": TYPES,
    "All": TYPES,
    "CountNonzero": TYPES,
    "CountNan": list(FLOATS),
    "CountFinite": list(FLOATS),
}


def listed(numbers):
    return ",".join(map(str, numbers)) or "-"


def input_text(source):
    text = f"{source.kind}/{source.seed}/{listed(source.extents)}"
    if list(source.strides) == c_strides(source.extents) and source.offset == 0:
        return text
    return f"{text}/{listed(source.strides)}/{source.offset}"


def bits_text(results):
    """The bits of each output; equal neighbours once, with their number."""
    texts = []
    for numbers in results:
        text = ":".join(f"{bits:x}" for bits in numbers)
        if texts and texts[-1][0] == text:
            texts[-1][1] += 1
        else:
            texts.append([text, 1])
    return [text if count == 1 else f"{text}*{count}" for text, count in texts]


def line(operator, name, inputs, axes):
    names = "all" if axes.names is None else listed(axes.names)
    fields = [operator, name, *map(input_text, inputs), names + ("k" if axes.keep_dims else "")]
    try:
        extents, results = expected(operator, name, inputs, axes)
        fields += ["=", "x".join(map(str, extents)) or "-", *bits_text(results)]
    except Failure as failure:
        fields += ["!", str(failure)]
    return " ".join(fields)


def error_lines():
    """Calls that return an error."""

    def of(operator, name, extents, *names, keep_dims=False):
        source = Input("ties", len(names), extents, tuple(c_strides(extents)), 0)
        return line(operator, name, (source,), Axes(names, keep_dims))

    for operator, name in [("Sum", "f32"), ("Sum", "i8"), ("Max", "u16"), ("ArgMin", "f64"), ("Product", "bf16")]:
        for names in [(3,), (-4,), (0, 3), (99,), (-1, 2), (0, 0), (1, -2), (0, 1, 0)]:
            yield of(operator, name, (2, 3, 4), *names, keep_dims=len(names) > 1)
        yield of(operator, name, (), 0)
        yield of(operator, name, (), -1)
        yield of(operator, name, (5, 6), *[0] * 33)
    for operator in WITHOUT_EMPTY_RESULT:
        for name in ("f32", "bf16", "i64", "u8"):
            yield of(operator, name, (3, 0), 1)
            yield of(operator, name, (0,), 0, keep_dims=True)
            yield of(operator, name, (2, 0, 0), 0, 1, 2)
            # No outputs: not an error.
            yield of(operator, name, (3, 0), 0)
            yield of(operator, name, (0, 0, 4), 1)
    for operator in INDICES:
        for name in ("f32", "f16", "u32"):
            for names in [(0, 1), (-1, 0), (1, 2), ()]:
                yield of(operator, name, (2, 3, 4), *names)
            yield of(operator, name, (1, 1, 4), 0, 1)


# Around the vectors of a lane, the lanes of a warp, the leaves of a column, and the tiles and splits of several blocks.
LENGTHS_OF_ROWS = [31, 33, 127, 255, 511, 513, 1025, 2049, 4100, 6001]
LENGTHS_OF_COLUMNS = [15, 63, 127, 255, 257, 511, 513, 1025, 2050, 3000]


def long_lines():
    """Rows and columns whose order has many levels, and exact results of many elements of a wide range or near 0."""
    seed = 600_000
    for operator in ORDERED:
        for name in FLOATS:
            kind = "unit" if operator == "Product" else "near"
            for i, length in enumerate(LENGTHS_OF_ROWS):
                seed += 1
                row = Input(kind, seed, (length,), (1 + i % 2,), i % 3)
                yield line(operator, name, (row,), Axes(None, False))
            for i, length in enumerate(LENGTHS_OF_COLUMNS):
                seed += 1
                columns = Input(kind, seed, (length, 2), (2 + i % 3, 1), i % 3)
                yield line(operator, name, (columns,), Axes((0,), False))
    for operator in ("Sum", "SumOfSquares"):
        for name in FLOATS:
            for kind in ("wide", "rising", "cancel", "halves"):
                seed += 1
                row = Input(kind, seed, (6000 + seed % 7,), (1,), seed % 3)
                yield line(operator, name, (row,), Axes(None, False))
                columns = Input(kind, seed, (1501, 3), (3, 1), seed % 3)
                yield line(operator, name, (columns,), Axes((0,), False))
    # Means below half the smallest subnormal number: zeros with a sign.
    for operator in ("Mean", "InElementType<Mean>", "Norm"):
        for name in OPERATORS[operator]:
            if name in FLOATS:
                seed += 1
                for extents, axis in [((9, 201), 1), ((150, 9), 0)]:
                    tiny = Input("tiny", seed, extents, tuple(c_strides(extents)), 0)
                    yield line(operator, name, (tiny,), Axes((axis,), False))


def lines():
    seed = 0
    for operator, names in OPERATORS.items():
        for name in names:
            for number in range(CASES_OF_PAIR):
                seed += 1
                source, axes = random_input(Random(seed + 1_000_000), number, operator, name, seed)
                yield line(operator, name, (source,), axes)
    yield from long_lines()
    yield from error_lines()
    for name in TYPES:
        for number in range(CASES_OF_DOT):
            seed += 1
            yield line("Dot", name, *random_pair(Random(seed + 1_000_000), number, name, seed))


def main():
    all_lines = list(lines())
    text = "".join(f"{line}\n" for line in all_lines)
    if sys.argv[1:] == ["--check"]:
        if PATH.read_text() != text:
            sys.exit(f"{PATH} is not what this program writes")
        print(f"{PATH} is up to date")
    elif sys.argv[1:]:
        sys.exit(__doc__)
    else:
        PATH.write_text(text)
        print(f"{len(all_lines)} cases, {len(text)} bytes: {PATH}")


if __name__ == "__main__":
    main()
