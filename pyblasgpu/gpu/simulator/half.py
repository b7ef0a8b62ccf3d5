"""The intrinsics of `half` in Python."""

from __future__ import annotations

import numpy as np

from .memory import SimulatorError

__all__ = ["exponent", "half_pair", "lower_half", "power_of_two", "upper_half"]


def half_pair(x, y):
    """A word of two FP16 numbers, `x` in its lower half, as the bits of a float32."""
    return np.array([_single(x), _single(y)]).astype(np.float16).view(np.float32)[0]


def lower_half(pair):
    """The first number of a `half_pair`, as a float32."""
    return np.float32(np.asarray(pair, np.float32).reshape(1).view(np.float16)[0])


def upper_half(pair):
    """The second number of a `half_pair`, as a float32."""
    return np.float32(np.asarray(pair, np.float32).reshape(1).view(np.float16)[1])


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
