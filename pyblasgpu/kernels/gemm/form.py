"""Regions that a GEMM Config has kernels for, and the conjugations that make a kernel of their own."""

from __future__ import annotations

from enum import Enum

from ...types import Region

__all__ = ["Form", "relative_conjugation"]


class Form(Enum):
    """Region that a kernel computes: all of C, a triangle of it, or either, by its `options`."""

    ALL = "all"
    TRIANGLE = "triangle"
    EITHER = "either"

    @property
    def triangular(self) -> bool | None:
        """Whether it is a triangle; None: the options say."""
        return None if self is Form.EITHER else self is Form.TRIANGLE

    @classmethod
    def of(cls, region: Region) -> Form:
        """Return the form of kernels that compute `region`."""
        return cls.ALL if region is Region.ALL else cls.TRIANGLE


def relative_conjugation(conj_a: bool, conj_b: bool) -> tuple[bool, bool]:
    """Whether the kernel is that of A conj(B), and whether its sums are conjugated.

    conj(A) conj(B) = conj(A B), and conj(A) B = conj(A conj(B)): two kernels serve all four. Products by
    `mma` hold Im A with both signs, so that conj(B) costs them nothing; conj(A) costs registers.
    """
    return conj_a != conj_b, conj_a
