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
    return np.array([_single(x), _single(y)]).astype(np.float16).view(np.float32)[0]


def lower_half(pair):
    """The first number of a `half_pair`, as a float32."""
    return np.float32(np.asarray(pair, np.float32).reshape(1).view(np.float16)[0])


def upper_half(pair):
    """The second number of a `half_pair`, as a float32."""
    return np.float32(np.asarray(pair, np.float32).reshape(1).view(np.float16)[1])


def bfloat_pair(x, y):
    """A word of two BF16 numbers, `x` in its lower half, as the bits of a float32."""
    bits = np.array([_single(x), _single(y)]).view(np.uint32).astype(np.uint64)
    rounded = bits + 0x7FFF + (bits >> 16 & 1)
    upper = np.where(bits << 1 & 0xFFFFFFFF > 0xFF000000, bits >> 16 | 64, rounded >> 16)  # NaN stays one
    return upper.astype(np.uint16).view(np.float32)[0]


def lower_bfloat(pair):
    """The first number of a `bfloat_pair`, as a float32."""
    return (_bits(pair) << 16).astype(np.uint32).view(np.float32)[0]


def upper_bfloat(pair):
    """The second number of a `bfloat_pair`, as a float32."""
    return (_bits(pair) & 0xFFFF0000).astype(np.uint32).view(np.float32)[0]


def _bits(pair) -> np.ndarray:
    return np.asarray(pair, np.float32).reshape(1).view(np.uint32).astype(np.uint64)


def exponent(x) -> int:
    """The largest e with 2^e <= |x|; -127 of zero and of subnormal numbers, 128 of what is not finite."""
    bits = int(np.asarray(_single(x)).reshape(1).view(np.uint32)[0])
    return (bits >> 23 & 255) - 127


def power_of_two(e: int):
    """2^e as a float32, -126 <= e <= 127."""
    if not -126 <= e <= 127:
        raise SimulatorError(f"2^{e} as a normal float32")
    return np.float32(2.0**e)


def _single(x):
    if x.dtype != np.float32:
        raise TypeError(f"{x.dtype} where a float32 is needed")
    return x
