"""The intrinsics of `residue` in Python."""

from __future__ import annotations

import numpy as np

from .memory import SimulatorError

__all__ = [
    "byte_as_fraction",
    "double_exponent",
    "double_power_of_two",
    "low_bytes",
    "low_word",
    "multiply_high",
]


def double_exponent(x) -> int:
    """The largest e with 2^e <= |x|; -1023 of zero and of subnormal numbers, 1024 of what is not finite."""
    return (_bits(x) >> 52 & 2047) - 1023


def double_power_of_two(e: int):
    """2^e as a float64, -1022 <= e <= 1023."""
    if not -1022 <= e <= 1023:
        raise SimulatorError(f"2^{e} as a normal float64")
    return np.float64(2.0**e)


def low_bytes(x, y, z, w) -> int:
    """A word of the lowest bytes of four float64 or int32, that of `x` in its lowest byte."""
    lowest = bytes(
        (_bits(value) if isinstance(value, np.float64) else int(value)) & 255 for value in (x, y, z, w)
    )
    return int.from_bytes(lowest, "little", signed=True)


def multiply_high(x, y) -> int:
    """The upper half of the product of two int32."""
    return int(x) * int(y) >> 32


def low_word(x) -> int:
    """The lower half of the bits of a float64."""
    low = _bits(x) & 0xFFFFFFFF
    return low - (low >> 31 << 32)


def byte_as_fraction(word: int, i: int):
    """``1 + b / 256`` as a float64, b byte `i` of a word, from 0 to 255."""
    return np.float64(1 + (int(word) >> 8 * i & 255) / 256)


def _bits(x) -> int:
    if x.dtype != np.float64:
        raise TypeError(f"{x.dtype} where a float64 is needed")
    _NUMBER[0] = x
    return _BITS.item(0)


_NUMBER = np.zeros(1)
_BITS = _NUMBER.view(np.uint64)  # NumPy takes long to make scalars
