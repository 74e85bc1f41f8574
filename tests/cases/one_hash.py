"""Writes one_hash.txt: exact sums, means and norms, rounded once, which every way to sum must have bit for bit.

    python3 one_hash.py > one_hash.txt

Each line has the type of the elements, their number, the type of the results, and their bits. The elements are
`numbers`, here and in tests/support/src/one_hash.rs: of two large ones, most cancel.
"""

from fractions import Fraction
from math import isqrt
from pathlib import Path

import numpy as np

COUNTS = ((1 << 20) + 12345, (1 << 22) + 7)
# The bits of a number and of its fraction, the smallest exponent field of `numbers`, and how many of them there are.
TYPES = {
    "f16": (16, 10, 1, 19),
    "bf16": (16, 7, 87, 80),
    "f32": (32, 23, 87, 80),
    "f64": (64, 52, 723, 600),
}
# The types that results are rounded to.
RESULTS = {"f16": ("f16", "f32"), "bf16": ("bf16", "f32"), "f32": ("f32",), "f64": ("f64",)}


def mixed(numbers):
    """SplitMix64 of Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014."""
    z = numbers.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def numbers(name, count):
    """The bits of the elements."""
    width, fraction_bits, first, span = TYPES[name]
    index, half = np.arange(count, dtype=np.uint64), count // 2
    z, is_second = mixed(index), index >= half
    earlier = mixed(np.where(is_second, index - np.uint64(half), index))

    def place(z):
        return z >> np.uint64(52) & np.uint64(0x7FF)

    # The negative of an element of the first half, if that is large.
    is_negative_of = is_second & (place(earlier) % np.uint64(span) >= np.uint64(span // 2))
    z = np.where(is_negative_of, earlier, z)
    exponent = place(z) % np.uint64(span) + np.uint64(first)
    sign = z >> np.uint64(63) ^ is_negative_of.astype(np.uint64)
    bits = sign << np.uint64(width - 1) | exponent << np.uint64(fraction_bits)
    bits |= z & np.uint64((1 << fraction_bits) - 1)
    return bits.astype(f"uint{width}")


def exact(name, count, power):
    """The exact sum of the elements, or of their squares."""
    width, fraction_bits, first, span = TYPES[name]
    bits = numbers(name, count).astype(np.uint64)
    mantissa = (bits & np.uint64((1 << fraction_bits) - 1)).astype(np.int64) | 1 << fraction_bits
    exponent = (bits >> np.uint64(fraction_bits)).astype(np.int64) & (1 << (width - 1 - fraction_bits)) - 1
    signed = np.where(bits >> np.uint64(width - 1) == 1, -mantissa, mantissa)
    bias = (1 << (width - 2 - fraction_bits)) - 1
    total = Fraction(0)
    for field in range(first, first + span):
        whole = sum(x**power for x in signed[exponent == field].tolist())
        total += whole * Fraction(2) ** (power * (field - bias - fraction_bits))
    return total


def rounded(name, number):
    """The bits of a fraction, rounded once to nearest, ties to even; the result is normal."""
    width, fraction_bits, _, _ = TYPES[name]
    magnitude = abs(number)
    exponent = magnitude.numerator.bit_length() - magnitude.denominator.bit_length()
    exponent -= Fraction(2) ** exponent > magnitude
    # Python rounds a fraction to the nearest integer, ties to even.
    mantissa = round(magnitude / Fraction(2) ** (exponent - fraction_bits))
    bias = (1 << (width - 2 - fraction_bits)) - 1
    assert 0 < exponent + bias < 2 * bias
    # A mantissa that was rounded up to a power of two is carried into the exponent.
    bits = (exponent + bias - 1 << fraction_bits) + mantissa
    return bits | (number < 0) << (width - 1)


def root(number):
    """A fraction that is rounded as the root of one is: the root's first 256 bits, and one more if it has others."""
    scale = 256 - (number.numerator.bit_length() - number.denominator.bit_length()) // 2
    scaled = number * Fraction(4) ** scale
    whole = isqrt(scaled.numerator // scaled.denominator)
    is_exact = whole * whole == scaled
    return (Fraction(whole) + (Fraction(0) if is_exact else Fraction(1, 2))) / Fraction(2) ** scale


def expected():
    """The bits of the sum, the mean and the norm, by the types of the elements and results and the count."""
    results = {}
    for line in Path(__file__).with_name("one_hash.txt").read_text().splitlines():
        if not line.startswith("#"):
            name, count, result, *bits = line.split()
            results[name, int(count), result] = [int(of_one, 16) for of_one in bits]
    return results


def main():
    print("# Made by one_hash.py.")
    for name in TYPES:
        for count in COUNTS:
            whole, squares = exact(name, count, 1), exact(name, count, 2)
            for result in RESULTS[name]:
                values = (whole, whole / count, root(squares))
                bits = (f"{rounded(result, value):0{TYPES[result][0] // 4}x}" for value in values)
                print(name, count, result, *bits)


if __name__ == "__main__":
    main()
