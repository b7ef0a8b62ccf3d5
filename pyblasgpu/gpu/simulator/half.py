"""The intrinsics of `half` in Python."""

from __future__ import annotations

import numpy as np

from .memory import SimulatorError

__all__ = [
    "bfloat_pair",
    "exponent",
    "half_pair",
    "lower_bfloat",
    "lower_half",
    "power_of_two",
    "upper_bfloat",
    "upper_half",
]


#: A word as FP16 numbers, as a float32 and as an integer, and a float32: NumPy takes long to make scalars.
_HALVES = np.zeros(2, np.float16)
_WORD, _BITS, _WIDE = _HALVES.view(np.float32), _HALVES.view(np.uint32), np.zeros(1, np.float32)
_FLOAT32 = np.dtype(np.float32)


def half_pair(x, y):
    """A word of two FP16 numbers, `x` in its lower half, as the bits of a float32."""
    _check(x)
    _check(y)
    _HALVES[0], _HALVES[1] = x, y
    return _WORD[0]


def lower_half(pair):
    """The first number of a `half_pair`, as a float32."""
    _check(pair)
    _WORD[0] = pair
    _WIDE[0] = _HALVES[0]
    return _WIDE[0]


def upper_half(pair):
    """The second number of a `half_pair`, as a float32."""
    _check(pair)
    _WORD[0] = pair
    _WIDE[0] = _HALVES[1]
    return _WIDE[0]


def bfloat_pair(x, y):
    """A word of two BF16 numbers, `x` in its lower half, as the bits of a float32."""
    return _float(_bfloat(_bits(x)) | _bfloat(_bits(y)) << 16)


def _bfloat(bits: int) -> int:
    """The bits of the BF16 number nearest to a float32."""
    if bits & 0x7FFFFFFF > 0x7F800000:  # NaN stays one
        return bits >> 16 | 64
    return bits + 0x7FFF + (bits >> 16 & 1) >> 16


def lower_bfloat(pair):
    """The first number of a `bfloat_pair`, as a float32."""
    return _float(_bits(pair) << 16 & 0xFFFFFFFF)


def upper_bfloat(pair):
    """The second number of a `bfloat_pair`, as a float32."""
    return _float(_bits(pair) & 0xFFFF0000)


def _bits(x) -> int:
    _check(x)
    _WORD[0] = x
    return _BITS.item(0)


def _float(bits: int):
    _BITS[0] = bits
    return _WORD[0]


def exponent(x) -> int:
    """The largest e with 2^e <= |x|; -127 of zero and of subnormal numbers, 128 of what is not finite."""
    return (_bits(x) >> 23 & 255) - 127


def power_of_two(e: int):
    """2^e as a float32, -126 <= e <= 127."""
    if not -126 <= e <= 127:
        raise SimulatorError(f"2^{e} as a normal float32")
    return np.float32(2.0**e)


def _check(x) -> None:
    if x.dtype is not _FLOAT32 and x.dtype != _FLOAT32:
        raise TypeError(f"{x.dtype} where a float32 is needed")
