"""The calls that the demo and the benchmarks run: a case of one routine, on random data."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from typing import Any, NamedTuple

import numpy as np

from . import explain, level3
from .checks import SAMPLES, gemm_error, trmm_error, trsm_error
from .cublas import Cublas
from .tuning import oracle
from .tuning.cases import GemmCase, TriangularCase
from .types import Diag, Dtype, Side, Trans, Uplo

__all__ = ["ROUTINES", "Arrays", "Problem"]

ROUTINES = ("gemm", "trmm", "trsm")


class Arrays(NamedTuple):
    """A, B (None but in GEMM) and what is overwritten: C of a GEMM, B of TRMM and TRSM.

    All matrices are column-major; a batch of them is (batch, rows, columns).
    """

    a: Any
    b: Any
    out: Any

    def map(self, function: Callable[[Any], Any]) -> Arrays:
        """The same through `function`, for example a copy to the device."""
        return Arrays(*(None if x is None else function(x) for x in self))


@dataclass(frozen=True)
class Problem:
    """One call.

    Attributes
    ----------
    routine : str
        'gemm', 'trmm' or 'trsm'.
    case : GemmCase or TriangularCase
        Dtype, extents, flags, alpha and beta.
    """

    routine: str
    case: Any

    @classmethod
    def square(cls, routine: str, dtype: Dtype, variant: str, n: int, alpha=1.0, beta=0.0) -> Problem:
        """All matrices n by n; `variant` in the BLAS's letters.

        These are trans_a trans_b of GEMM ('NN', 'TN', ...), side uplo trans diag of the others ('LLNN', ...).

        Raises
        ------
        ValueError
            For any other variant.
        """
        if routine == "gemm":
            return cls.product(dtype, variant, (n, n, n), alpha, beta)
        side, uplo, trans, diag = _letters(routine, variant, "LR", "UL", "NTC", "NU")
        flags = (Side(side), Uplo(uplo), Trans(trans), Diag(diag))
        return cls(routine, TriangularCase(dtype, n, n, *flags, alpha))

    @classmethod
    def product(cls, dtype: Dtype, variant: str, shape: tuple[int, ...], alpha=1.0, beta=0.0) -> Problem:
        """A GEMM of m, n, k[, batch] = `shape`; raises as `square`."""
        m, n, k, *batch = shape
        trans_a, trans_b = _letters("gemm", variant, "NTC", "NTC")
        flags = Trans(trans_a), Trans(trans_b)
        return cls("gemm", GemmCase(dtype, m, n, k, *flags, alpha, beta, tuple(batch)))

    @property
    def dtype(self) -> Dtype:
        return self.case.dtype

    @property
    def variant(self) -> str:
        return "".join(flag.value for flag in self._flags)

    @property
    def flops(self) -> int:
        """2mnk of GEMM, m²n (n²m from the right) of the others; four times that if complex."""
        case = self.case
        if self.routine == "gemm":
            return self.dtype.flops_per_fma * case.m * case.n * case.k * prod(case.batch)
        return self.dtype.flops_per_fma // 2 * case.order * case.m * case.n

    @property
    def _flags(self) -> tuple:
        case = self.case
        if self.routine == "gemm":
            return case.trans_a, case.trans_b
        return case.side, case.uplo, case.trans, case.diag

    def data(self, seed: int = 2011) -> Arrays:
        """Random data in host memory. What a triangular routine must not read of A is NaN."""
        rng = np.random.default_rng(seed)
        if self.routine == "gemm":
            return Arrays(*(_columns(rng, shape, self.dtype) for shape in self.case.shapes))
        out = _columns(rng, (self.case.m, self.case.n), self.dtype)
        return Arrays(np.asfortranarray(oracle.triangle(rng, self.case, _normal)), None, out)

    def ours(self, x: Arrays, backend: str) -> None:
        """Run it on this library, in place."""
        case = self.case
        options: dict[str, Any] = {"alpha": case.alpha, "out": x.out, "backend": backend}
        if self.routine == "gemm":
            level3.gemm(x.a, x.b, beta=case.beta, trans_a=case.trans_a, trans_b=case.trans_b, **options)
            return
        routine = level3.trmm if self.routine == "trmm" else level3.trsm
        options |= {"side": case.side, "lower": case.uplo is Uplo.LOWER, "trans": case.trans}
        routine(x.a, x.out, unit_diag=case.diag is Diag.UNIT, **options)

    def cublas(self, library: Cublas, x: Arrays) -> None:
        """Run it on cuBLAS, in place."""
        if self.routine == "gemm":
            library.gemm(self.case.alpha, x.a, x.b, self.case.beta, x.out, *self._flags)
        else:
            getattr(library, self.routine)(self.case.alpha, x.a, x.out, *self._flags)

    def error(self, x: Arrays, result: np.ndarray) -> float:
        """Largest sampled error of `result` over its bound; `x` holds the data before the call."""
        case = self.case
        if self.routine == "gemm":
            a, b = oracle.apply(x.a, case.trans_a), oracle.apply(x.b, case.trans_b)
            return max(
                gemm_error(case.alpha, a[which], b[which], case.beta, x.out[which], result[which])
                for which in _sampled(case.batch)
            )
        check = trmm_error if self.routine == "trmm" else trsm_error
        return check(case.alpha, x.a, x.out, result, *self._flags)

    def explain(self) -> list[tuple[str, str, str]]:
        """Kernel, Config and its origin, of each kernel that the device would run."""
        case = self.case
        if self.routine != "gemm":
            return explain(self.routine, self.dtype.letter, case.m, case.n)
        return explain("gemm", self.dtype.letter, case.m, case.n, case.k, batch=prod(case.batch))


def _letters(routine: str, variant: str, *known: str) -> list[str]:
    """`variant` letter by letter, each one of those known at its place."""
    if not re.fullmatch("".join(f"[{letters}]" for letters in known), variant):
        raise ValueError(f"{routine}: variant {variant!r} is not one letter each of {', '.join(known)}")
    return list(variant)


def _columns(rng: np.random.Generator, shape: tuple[int, ...], dtype: Dtype) -> np.ndarray:
    """Column-major matrices of random numbers."""
    *batch, rows, cols = shape
    return _normal(rng, (*batch, cols, rows), dtype).swapaxes(-1, -2)


def _sampled(batch: tuple[int, ...]) -> list[tuple[int, ...]]:
    """The places of some of the matrices, the first and the last among them."""
    places = list(np.ndindex(*batch))
    return list(dict.fromkeys((*places[:: -(-len(places) // SAMPLES)], places[-1])))


def _normal(rng: np.random.Generator, shape: tuple[int, ...], dtype: Dtype) -> np.ndarray:
    reals = (*shape[:-1], shape[-1] * dtype.parts)
    return rng.standard_normal(reals, dtype=np.dtype(dtype.real).type).view(dtype.name)
