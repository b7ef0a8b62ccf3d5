"""What of a matrix a kernel reads and writes: all of it, or a triangle.

A tile knows its place by its `shift`: its first row less its first column. Element (i, j) of the tile is on
the diagonal where i + shift = j.
"""

from __future__ import annotations

from ...errors import require
from ...gpu.backend import device_function

__all__ = ["PARTS", "check_part", "covered", "inside", "is_hermitian", "met", "turned"]

#: A triangle has its diagonal, but for 'strict', the lower one without. Of a 'hermitian' one (lower or upper)
#: the imaginary parts of the diagonal are taken to be zero, and become it.
PARTS = ("all", "lower", "upper", "strict", "hermitian", "hermitian_upper")

_TURNED = {
    "all": "all", "lower": "upper", "upper": "lower",
    "hermitian": "hermitian_upper", "hermitian_upper": "hermitian",
}  # fmt: skip


def check_part(part: str, allowed: tuple[str, ...] = PARTS) -> None:
    """Raise `ConfigError` for what is none of `allowed`."""
    require(part in allowed, "part", f"part in ({', '.join(allowed)})", part=repr(part))


def turned(part: str) -> str:
    """The same part of the transposed matrix."""
    return _TURNED[part]


def is_hermitian(part: str) -> bool:
    """Whether the diagonal is real."""
    return part.startswith("hermitian")


def inside(part: str):
    """``inside(i, j, shift)``: whether an element of a tile is of the part."""
    UPPER, FIRST = part.endswith("upper"), 1 if part == "strict" else 0

    @device_function
    def is_inside(i, j, shift):
        if part == "all":
            return True
        return i + shift <= j if UPPER else i + shift - j >= FIRST

    return is_inside


def met(part: str, BLK_M: int, BLK_N: int):
    """``met(shift)``: whether anything of a tile is of the part."""
    UPPER, FIRST = part.endswith("upper"), 1 if part == "strict" else 0

    @device_function
    def is_met(shift):
        if part == "all":
            return True
        return shift < BLK_N if UPPER else shift + BLK_M > FIRST

    return is_met


def covered(part: str, BLK_M: int, BLK_N: int):
    """``covered(shift)``: whether all of a whole tile is of the part, and nothing of it on the diagonal."""
    UPPER = part.endswith("upper")

    @device_function
    def is_covered(shift):
        if part == "all":
            return True
        return shift + BLK_M <= 0 if UPPER else shift >= BLK_N

    return is_covered
