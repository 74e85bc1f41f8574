"""Writes stored_version_1.txt: sums as bytes and as words, made by the text of src/bytes.rs and src/words.rs alone.

    python3 stored.py > stored_version_1.txt
"""
import random
import zlib
from fractions import Fraction

random.seed(20261130)

# The code of a type, its bits, those of its exponent and its fraction, and the unit of its sums: 2^-unit.
TYPES = {
    "f16": (1, 16, 5, 10, 149),
    "bf16": (2, 16, 8, 7, 149),
    "f32": (3, 32, 8, 23, 149),
    "f64": (4, 64, 11, 52, 1074),
}
# The limbs in the bytes and in the words of a sum, and of a sum of products.
LIMBS = {149: (11, 12, 19, 20), 1074: (68, 68, 133, 134)}


def decode(name, bits):
    """A finite number as a fraction, or the string "nan", "inf" or "-inf"."""
    _, width, exponent_bits, fraction_bits, _ = TYPES[name]
    fraction = bits & ((1 << fraction_bits) - 1)
    exponent = bits >> fraction_bits & ((1 << exponent_bits) - 1)
    sign = -1 if bits >> (width - 1) else 1
    if exponent == (1 << exponent_bits) - 1:
        return "nan" if fraction else "inf" if sign > 0 else "-inf"
    bias = (1 << (exponent_bits - 1)) - 1
    if exponent > 0:
        fraction += 1 << fraction_bits
    return sign * fraction * Fraction(2) ** (max(exponent, 1) - bias - fraction_bits)


def product(x, y):
    if isinstance(x, Fraction) and isinstance(y, Fraction):
        return x * y
    if "nan" in (x, y) or 0 in (x, y):
        return "nan"
    is_negative = [value == "-inf" or value != "inf" and value < 0 for value in (x, y)]
    return "-inf" if is_negative[0] != is_negative[1] else "inf"


def line(kind, name, elements):
    code, width, _, _, unit = TYPES[name]
    of_bytes, of_words, of_bytes_of_products, of_words_of_products = LIMBS[unit]
    terms = [decode(name, bits) for bits in elements]
    if kind == "products":
        # Each element with the next one, the last with the first.
        terms = [product(x, y) for x, y in zip(terms, terms[1:] + terms[:1])]
        of_bytes, of_words = of_bytes_of_products, of_words_of_products
        code, unit = code + 16, 2 * unit
    others = [sum(term == special for term in terms) for special in ("nan", "inf", "-inf")]
    whole = 0
    if not any(others):
        whole = sum(terms, Fraction(0)) * Fraction(2) ** unit
        assert whole.denominator == 1
        whole = whole.numerator
    # Infinities of both signs are NaN.
    specials = 1 if others[0] or others[1] and others[2] else 2 if others[1] else 4 if others[2] else 0
    data = b"xsum" + bytes([1, code, specials, 0]) + len(terms).to_bytes(8, "little")
    data += whole.to_bytes(4 * of_bytes, "little", signed=True)
    data += zlib.crc32(data).to_bytes(4, "little")
    words = [whole >> (32 * k) & 0xFFFFFFFF for k in range(of_words - 1)] + [whole >> (32 * (of_words - 1))]
    words += others + [len(terms)]
    shown = " ".join("%0*x" % (width // 4, bits) for bits in elements)
    print(f"{kind} {name}: {shown}: {data.hex()}: {' '.join(map(str, words))}")


print("# Made by stored.py.")
for name, (_, width, exponent_bits, fraction_bits, _) in TYPES.items():
    infinity = ((1 << exponent_bits) - 1) << fraction_bits
    negative = 1 << (width - 1)
    least, most = 1, infinity - 1
    one = ((1 << (exponent_bits - 1)) - 1) << fraction_bits
    anything = [random.getrandbits(width) for _ in range(40)]
    finite = [bits for bits in anything if isinstance(decode(name, bits), Fraction)]
    for kind in ("sum", "products"):
        for elements in [
            [],
            [0],
            [negative],
            [one],
            [one | negative],
            [least],
            [most, most, most],
            [most | negative, most],
            [most, least, most | negative],
            [infinity],
            [one, infinity | negative],
            [infinity, infinity | negative, infinity],
            [infinity + 1, infinity],
            finite,
            anything,
        ]:
            line(kind, name, elements)
