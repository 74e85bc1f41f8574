"""Prints the hashes of `bench exact`, computed with Python's integers, which never round: the inputs, the exact
results, each rounded once, and the CRC-32 of their bits.

    python3 hashes.py
"""
import math
import struct
import zlib

WORD = (1 << 64) - 1
FORMATS = {"f32": (8, 23), "f64": (11, 52), "f16": (5, 10), "bf16": (8, 7)}
NAN = {"f32": 0x7FC00000, "f64": 0x7FF8000000000000}
KINDS = ["ordinary", "wide", "subnormal", "cancelling"]
# Rows, columns, and whether columns are summed.
LAYOUTS = [(1, n, False) for n in (0, 1, 33, 1000, 20011)] + [(37, 20, False), (5, 700, False), (150, 9, True)]


class Random:
    """SplitMix64."""

    def __init__(self, seed):
        self.state = seed

    def bits(self):
        self.state = (self.state + 0x9E3779B97F4A7C15) & WORD
        bits = self.state
        bits = ((bits ^ (bits >> 30)) * 0xBF58476D1CE4E5B9) & WORD
        bits = ((bits ^ (bits >> 27)) * 0x94D049BB133111EB) & WORD
        return bits ^ (bits >> 31)

    def below(self, bound):
        return (self.bits() * bound) >> 64


def number(kind, random, exponent, mantissa):
    bias = (1 << (exponent - 1)) - 1
    if kind == "ordinary":
        field = bias - 4 + random.below(8)
    elif kind == "subnormal":
        field = 0
    else:
        field = bias - bias * 3 // 8 + random.below(bias * 3 // 4)
    bits = random.bits()
    return (bits >> 63) << (exponent + mantissa) | field << mantissa | bits & ((1 << mantissa) - 1)


def vectors(kind, length, random, exponent, mantissa):
    x, y = [], []
    for i in range(length):
        mirror = length - 1 - i
        cancels = kind == "cancelling" and min(i, mirror) % 8 != 0
        x.append(number(kind if cancels or kind != "cancelling" else "ordinary", random, exponent, mantissa))
        y.append(number("ordinary" if kind == "cancelling" else kind, random, exponent, mantissa))
        if cancels and mirror < i:
            x[i] = x[mirror] ^ 1 << (exponent + mantissa)
            y[i] = y[mirror]
    return x, y


def integer(bits, exponent, mantissa):
    """The number as an integer, in units of the smallest positive number of the format."""
    field, fraction = bits >> mantissa & ((1 << exponent) - 1), bits & ((1 << mantissa) - 1)
    magnitude = fraction if field == 0 else (fraction | 1 << mantissa) << (field - 1)
    return -magnitude if bits >> (exponent + mantissa) else magnitude


def nearest(numerator, denominator, unit, exponent, mantissa):
    """The bits of the number nearest to numerator / denominator * 2^unit, ties to even."""
    if numerator == 0:
        return 0
    bias = (1 << (exponent - 1)) - 1
    least = 1 - bias - mantissa
    last_place = max(abs(numerator).bit_length() - denominator.bit_length() - mantissa - 2 + unit, least)
    while True:
        shift = last_place - unit
        divisor = denominator << max(shift, 0)
        kept, rest = divmod(abs(numerator) << max(-shift, 0), divisor)
        kept += 2 * rest > divisor or 2 * rest == divisor and kept % 2
        if kept <= 1 << (mantissa + 1):
            break
        last_place += 1
    # The leading bit and a carry each add 1 to the exponent field.
    bits = min((last_place - least << mantissa) + kept, (2 * bias + 1) << mantissa)
    return bits | (numerator < 0) << (exponent + mantissa)


def root(square, unit, exponent, mantissa):
    """The bits of the number nearest to the square root of square * 2^unit, for an even unit."""
    places = 300
    scaled = square << (2 * places)
    found = math.isqrt(scaled)
    # The last bit is sticky: the root is inexact.
    return nearest(2 * found + (found * found != scaled), 1, unit // 2 - places - 1, exponent, mantissa)


def results(x, y, columns, by_column, name):
    """Sums, means, sums of squares and norms; for f32 also sums in f64; for rows also dot products."""
    of, to = FORMATS[name], "f64" if name == "f64" else "f32"
    unit = 2 - (1 << (of[0] - 1)) - of[1]
    rows = len(x) // columns if columns else 1

    def groups(all):
        if by_column:
            return [all[column::columns] for column in range(columns)]
        return [all[row * columns : (row + 1) * columns] for row in range(rows)]

    x, y = ([[integer(bits, *of) for bits in group] for group in groups(all)] for all in (x, y))
    sums, squares = [sum(group) for group in x], [sum(x * x for x in group) for group in x]
    yield from (nearest(total, 1, unit, *FORMATS[to]) for total in sums)
    yield from (nearest(sum(group), len(group), unit, *FORMATS[to]) if group else NAN[to] for group in x)
    yield from (nearest(total, 1, 2 * unit, *FORMATS[to]) for total in squares)
    yield from (root(total, 2 * unit, *FORMATS[to]) for total in squares)
    if name == "f32":
        yield from (nearest(total, 1, unit, *FORMATS["f64"]) for total in sums)
    if not by_column:
        dots = (sum(x * y for x, y in zip(*pair)) for pair in zip(x, y))
        yield from (nearest(total, 1, 2 * unit, *FORMATS[to]) for total in dots)


for name in FORMATS:
    random, checksum, count = Random(1), 0, 0
    for kind in KINDS:
        for rows, columns, by_column in LAYOUTS:
            x, y = vectors(kind, rows * columns, random, *FORMATS[name])
            for bits in results(x, y, columns, by_column, name):
                checksum, count = zlib.crc32(struct.pack("<Q", bits), checksum), count + 1
    print(f"{name}: {count} results, {checksum:#010x}")
