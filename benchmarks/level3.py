"""Routines of Level 3 and factors that overwrite a matrix on the device."""

from __future__ import annotations

from typing import Any, NamedTuple

import cupy

import pyblasgpu
from benchmarks.arrays import normal
from pyblasgpu import lapack

__all__ = ["Problem"]


class Problem(NamedTuple):
    """A routine of one size: its input, what is overwritten as it is before a call, and where that is."""

    routine: str  # without a letter
    a: cupy.ndarray
    start: cupy.ndarray
    c: cupy.ndarray

    @classmethod
    def of(cls, routine: str, letter: str, n: int, columns: int) -> Any:
        """Normal numbers; triangles and definite matrices are well conditioned."""
        a, b = normal(letter, n, n, 1), normal(letter, n, columns, 2)
        if routine in ("trmm", "trsm", "potrf", "posv"):
            a *= a.dtype.type(n**-0.5)
            if routine in ("potrf", "posv"):
                a += a.T.conj().copy()
            a.T.ravel()[:: n + 1] += 2 if routine in ("trmm", "trsm") else 4
        start = a if routine in ("potrf", "getrf") else b
        return cls(routine, a, start, cupy.empty_like(start))

    def restore(self) -> None:
        """Bring what a call overwrites anew."""
        self.c[...] = self.start

    def ours(self) -> Any:
        """Our call."""
        a, b, c = self.a, self.start, self.c
        match self.routine:
            case "gemm":
                return pyblasgpu.gemm(a, b, out=c)
            case "syrk":
                return pyblasgpu.syrk(a, out=c, lower=True)
            case "symm":
                return pyblasgpu.symm(a, b, out=c, lower=True)
            case "potrf":
                return lapack.potrf(c, lower=1, clean=0, overwrite_a=1)
            case "getrf":
                return lapack.getrf(c, overwrite_a=1)
        return getattr(pyblasgpu, self.routine)(a, c, out=c, lower=True)
