#!/usr/bin/env python3
"""Prints the reference table of tests/core/random.cpp.

Philox is computed from its definition with Python's whole numbers. The stored bit patterns follow
the formulas of core/philox.h with every +, *, /, sqrt and fma rounded once, in exact fractions; the
true values beside them are log, cos and sin with 60 digits (mpmath), for the accuracy test.
"""
import struct
from fractions import Fraction as F
from math import isqrt

import mpmath as mp

mp.mp.dps = 60
M32, M64 = 2**32 - 1, 2**64 - 1


def philox(counter, key):
    c, k = list(counter), list(key)
    for _ in range(10):
        p0, p1 = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [(p1 >> 32) ^ c[1] ^ k[0], p1 & M32, (p0 >> 32) ^ c[3] ^ k[1], p0 & M32]
        k = [(k[0] + 0x9E3779B9) & M32, (k[1] + 0xBB67AE85) & M32]
    return c


def block(seed, offset, stream):
    return philox([offset & M32, offset >> 32, stream & M32, stream >> 32], [seed & M32, seed >> 32])


class Float:
    """Arithmetic that rounds to nearest even with `bits` bits of fraction, normal range only."""

    def __init__(self, bits):
        self.bits = bits

    def round(self, x):
        x = F(x)
        if x == 0:
            return x
        e = abs(x).numerator.bit_length() - abs(x).denominator.bit_length()
        if abs(x) < F(2) ** e:
            e -= 1
        unit = F(2) ** (e - self.bits + 1)
        return round(x / unit) * unit  # Python rounds halves to even

    def fma(self, a, b, c):
        return self.round(F(a) * F(b) + F(c))

    def horner(self, x, coefficients):
        value = coefficients[0]
        for c in coefficients[1:]:
            value = self.fma(value, x, c)
        return value

    def sqrt(self, x):
        if x == 0:
            return F(0)
        shift = 400  # far more digits than needed; exact squares stay exact
        return self.round(F(isqrt(int(x * F(4) ** shift)), 2**shift))


def constants(*text):
    return [F(float.fromhex(t)) for t in text]


def split(u, least):
    """u = 2^e m with m in [least, 2 least)."""
    e, m = 0, F(u)
    while m < least:
        m, e = m * 2, e - 1
    return e, m


def log32(u):
    f32 = Float(24)
    e, m = split(u, F(struct.unpack("<f", struct.pack("<I", 0x3F3504F3))[0]))
    f = m - 1
    square = f32.round(f * f)
    p = f32.horner(f, constants("-0x1.38b57cp-4", "0x1.055b68p-3", "-0x1.0d8542p-3", "0x1.22da1ep-3",
                                "-0x1.547244p-3", "0x1.99a008p-3", "-0x1.000226p-2", "0x1.555554p-2"))
    low, high = constants("-0x1.05c610p-29", "0x1.62e430p-1")
    tail = f32.fma(e, low, f32.round(f32.round(square * f) * p))
    tail = f32.fma(F(-1, 2), square, tail)
    return f32.fma(e, high, f32.round(f + tail))


def log64(u):
    f64 = Float(53)
    e, m = split(u, F(struct.unpack("<d", struct.pack("<Q", 0x3FE6A09E667F3BCD))[0]))
    f = m - 1
    s = f64.round(f / f64.round(2 + f))
    z = f64.round(s * s)
    r = f64.horner(z, constants("0x1.2f056439aa25ep-3", "0x1.39a1baa3e552cp-3", "0x1.74663ee942c23p-3",
                                "0x1.c71c520958848p-3", "0x1.24924941f12b8p-2", "0x1.999999997fdb7p-2",
                                "0x1.5555555555592p-1"))
    low, high = constants("0x1.abc9e3b39803fp-56", "0x1.62e42fefa39efp-1")
    tail = f64.fma(e, low, -f64.round(s * f64.fma(-z, r, f)))
    return f64.fma(e, high, f64.round(f + tail))


SIN32 = constants("-0x1.2dd048p-1", "0x1.466032p+1", "-0x1.4abbc0p+2")
COS32 = constants("0x1.d9f7bcp-3", "-0x1.55c664p+0", "0x1.03c1dep+2", "-0x1.3bd3ccp+2")
PI32 = constants("0x1.921fb6p+1", "-0x1.777a5cp-24")
SIN64 = constants("-0x1.6c63cba5b1529p-16", "0x1.e8eef00a7834cp-12", "-0x1.e3074b7df5dc7p-8",
                  "0x1.50783485eeb5ap-4", "-0x1.32d2cce62ade5p-1", "0x1.466bc6775aadbp+1",
                  "-0x1.4abbce625be53p+2")
COS64 = constants("-0x1.b26fe85e07607p-14", "0x1.f9cc6acfcd734p-10", "-0x1.a6d1ecb7401e9p-6",
                  "0x1.e1f50683b42cbp-3", "-0x1.55d3c7e3c95bcp+0", "0x1.03c1f081b5ab0p+2",
                  "-0x1.3bd3cc9be45dep+2")
PI64 = constants("0x1.921fb54442d18p+1", "0x1.1a62633145c07p-53")


def normal_pair(a, b, width):
    """Bits as the header computes them, and the true values for the same u and angle."""
    f = Float(24 if width == 32 else 53)
    if width == 32:
        u = f.fma(f.round(a), F(1, 2**32), F(1, 2**33))
    else:
        u = f.fma(a >> 11, F(1, 2**53), F(1, 2**54))
    radius = f.sqrt(-2 * (log32(u) if width == 32 else log64(u)))
    quarter = ((b + 2 ** (width - 3)) >> (width - 2)) & 3
    rest = (b - (quarter << (width - 2))) & (2**width - 1)
    rest -= 2**width if rest >> (width - 1) else 0
    angle = F(f.round(rest), 2 ** (width - 1))
    z = f.round(angle * angle)
    sin_c, cos_c, pi = (SIN32, COS32, PI32) if width == 32 else (SIN64, COS64, PI64)
    sine = f.fma(angle, pi[0], f.round(angle * f.fma(z, f.horner(z, sin_c), pi[1])))
    cosine = f.fma(f.horner(z, cos_c), z, 1)
    x, y = [(cosine, sine), (-sine, cosine), (-cosine, -sine), (sine, -cosine)][quarter]
    true_radius = mp.sqrt(-2 * mp.log(mp.mpf(u.numerator) / u.denominator))
    true_angle = 2 * mp.pi * mp.mpf(b) / 2**width
    return ([f.round(radius * x), f.round(radius * y)],
            [true_radius * mp.cos(true_angle), true_radius * mp.sin(true_angle)])


def bits(x, width):
    code = ("<f", "<I") if width == 32 else ("<d", "<Q")
    return struct.unpack(code[1], struct.pack(code[0], float(x)))[0]


def wide(words, i):
    return words[2 * i] | words[2 * i + 1] << 32


def main():
    places = [(0, 0, 0), (0, 1, 0), (1, 0, 0), (42, 2**32 - 1, 0), (42, 2**32, 0),
              (2**63 + 12345, 7, 0), (42, 5, 1), (42, 5, 2**40 + 3), (20240607, 123456789, 99)]
    print("// Made by tests/core/random_reference.py.")
    for seed, offset, stream in places:
        w = block(seed, offset, stream)
        got32, true32 = [], []
        for i in (0, 2):
            got, true = normal_pair(w[i], w[i + 1], 32)
            got32 += got
            true32 += true
        got64, true64 = normal_pair(wide(w, 0), wide(w, 1), 64)
        print(f"{{{{{seed}u, {offset}u, {stream}u}},")
        print("{" + ", ".join(f"0x{x:08x}u" for x in w) + "},")
        print("{" + ", ".join(f"0x{bits(x, 32):08x}u" for x in got32) + "},")
        print("{" + ", ".join(mp.nstr(x, 17) for x in true32) + "},")
        print("{" + ", ".join(f"0x{bits(x, 64):016x}u" for x in got64) + "},")
        print("{" + ", ".join(mp.nstr(x, 20) for x in true64) + "}},")


if __name__ == "__main__":
    main()
