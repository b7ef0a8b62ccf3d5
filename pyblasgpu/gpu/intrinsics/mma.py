"""The instructions ``mma.sync`` in double precision: their shapes, and how much of A each multiplies."""

from __future__ import annotations

__all__ = ["SHAPES", "elements_per_mma", "joins_parts"]

#: M and K of an instruction, whose N is 8 -> the compute capability it needs.
SHAPES = {(8, 4): (8, 0), (16, 4): (9, 0), (16, 8): (9, 0), (16, 16): (9, 0)}


def joins_parts(shape: tuple[int, int], reals_per_element: int) -> bool:
    """Whether an instruction multiplies real and imaginary parts at once.

    They are then two rows of C, and two of k: [Re A, -Im A; Im A, Re A] [Re B; Im B]. For that a lane must
    hold two rows of A and two k.
    """
    return reals_per_element == 2 and shape[0] >= 16 and shape[1] >= 8


def elements_per_mma(
    shape: tuple[int, int], reals_per_element: int, three_m: bool = False
) -> tuple[int, int]:
    """Rows and k of A that an instruction multiplies; with `three_m` of one part, or of the sum of both."""
    return (shape[0] // 2, shape[1] // 2) if joins_parts(shape, reals_per_element) and not three_m else shape
