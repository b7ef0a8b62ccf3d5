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


def half_pair(x, y):
    """A word of two FP16 numbers, `x` in its lower half, as the bits of a float32."""
    return _pair(_bits(np.float16(_single(x))), _bits(np.float16(_single(y))))


def lower_half(pair):
    """The first number of a `half_pair`, as a float32."""
    return np.float32(np.uint16(_bits(_single(pair)) & 0xFFFF).view(np.float16))


def upper_half(pair):
    """The second number of a `half_pair`, as a float32."""
    return np.float32(np.uint16(_bits(_single(pair)) >> 16).view(np.float16))


def bfloat_pair(x, y):
    """A word of two BF16 numbers, `x` in its lower half, as the bits of a float32."""
    return _pair(_bfloat(_bits(_single(x))), _bfloat(_bits(_single(y))))


def _bfloat(bits: int) -> int:
    """The bits of the BF16 number nearest to a float32."""
    if bits & 0x7FFFFFFF > 0x7F800000:  # NaN stays one
        return bits >> 16 | 64
    return bits + 0x7FFF + (bits >> 16 & 1) >> 16


def lower_bfloat(pair):
    """The first number of a `bfloat_pair`, as a float32."""
    return np.uint32(_bits(_single(pair)) << 16 & 0xFFFFFFFF).view(np.float32)


def upper_bfloat(pair):
    """The second number of a `bfloat_pair`, as a float32."""
    return np.uint32(_bits(_single(pair)) & 0xFFFF0000).view(np.float32)


def _bits(x) -> int:
    return int.from_bytes(x.tobytes(), "little")


def _pair(lower: int, upper: int):
    return np.uint32(upper << 16 | lower).view(np.float32)


def exponent(x) -> int:
    """The largest e with 2^e <= |x|; -127 of zero and of subnormal numbers, 128 of what is not finite."""
    return (_bits(_single(x)) >> 23 & 255) - 127


def power_of_two(e: int):
    """2^e as a float32, -126 <= e <= 127."""
    if not -126 <= e <= 127:
        raise SimulatorError(f"2^{e} as a normal float32")
    return np.float32(2.0**e)


def _single(x):
    if x.dtype != np.float32:
        raise TypeError(f"{x.dtype} where a float32 is needed")
    return x
