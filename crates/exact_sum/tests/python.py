"""Writes python.txt: exact sums and means of floats, computed with Python's fractions, each rounded once.

    python3 python.py > python.txt
"""
import random
import struct
from fractions import Fraction

random.seed(20261124)


def nearest(value, mantissa, least, greatest):
    """The nearest number m * 2^e with an m of `mantissa` bits, ties to even; the exponent is at least `least`."""
    if value == 0:
        return Fraction(0)
    exponent = least
    while abs(value) >= Fraction(2) ** (exponent + mantissa):
        exponent += 1
    scaled = value / Fraction(2) ** exponent
    whole = round(scaled)  # Ties to even, as in IEEE 754.
    result = whole * Fraction(2) ** exponent
    return None if abs(result) >= Fraction(2) ** greatest else result


def bits32(number):
    return struct.unpack("<I", struct.pack("<f", number))[0]


def bits64(number):
    return struct.unpack("<Q", struct.pack("<d", number))[0]


def as_bits(result, negative, of_f32):
    if result is None:
        infinity = float("-inf") if negative else float("inf")
        return bits32(infinity) if of_f32 else bits64(infinity)
    return bits32(float(result)) if of_f32 else bits64(float(result))


def numbers(kind, of_f32):
    count = random.randrange(1, 12)
    span = 40 if kind == 0 else (120 if of_f32 else 900)
    low, high = (-149, 127) if of_f32 else (-1074, 1023)
    for _ in range(count):
        exponent = random.randrange(-span, span) if kind < 2 else random.choice([low, low + 1, high - 1, high - 24])
        mantissa = random.getrandbits(24 if of_f32 else 53)
        value = Fraction(mantissa) * Fraction(2) ** (exponent - (23 if of_f32 else 52))
        value = nearest(value, 24 if of_f32 else 53, low, 128 if of_f32 else 1024) or Fraction(0)
        yield value if random.random() < 0.5 else -value


print("# Made by python.py.")
for case in range(600):
    name = ["f32", "f64", "mean"][case % 3]
    of_f32 = name == "f32"
    elements = list(numbers(case // 3 % 3, of_f32))
    exact = sum(elements, Fraction(0))
    exact = exact / len(elements) if name == "mean" else exact
    result = nearest(exact, 24 if of_f32 else 53, -149 if of_f32 else -1074, 128 if of_f32 else 1024)
    words = " ".join("%x" % (bits32(float(x)) if of_f32 else bits64(float(x))) for x in elements)
    print("%s: %s = %x" % (name, words, as_bits(result, exact < 0, of_f32)))
