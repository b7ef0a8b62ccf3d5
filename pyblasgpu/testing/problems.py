"""The calls that the demo and the benchmarks run: a case of one routine, on random data."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from typing import Any, Literal, NamedTuple

import numpy as np

import pyblasgpu

from ..routine import FLAGS, Routine, extents
from ..routine_table import ROUTINES as TABLE
from ..types import THREE_M, Diag, Dtype, Side, Trans, Uplo
from . import reference, symmetric_cases
from .cases import GemmCase, TriangularCase
from .cublas import Cublas
from .error_bounds import SAMPLES, gemm_3m_error
from .symmetric_cases import SymmetricCase

__all__ = ["ROUTINES", "Arrays", "Problem", "SymmetricProblem", "fits"]

ROUTINES = ("gemm", "trmm", "trsm")


def _row(routine: str) -> Routine:
    return TABLE["gemm" if routine == "gemm3m" else routine]


def fits(routine: str, dtype: Dtype, variant: str) -> bool:
    """Whether `routine` has this variant in `dtype`; the Hermitian ones have none in real dtypes."""
    row = _row(routine)
    if dtype.letter not in row.letters or (routine == "gemm3m" and not dtype.is_complex):
        return False
    return len(variant) == len(row.flags) and all(
        letter in [value.value for value in row.values(flag, dtype)]
        for flag, letter in zip(row.flags, variant, strict=True)
    )


class Arrays(NamedTuple):
    """A, B (None where there is no second input) and what is overwritten: C, or B of TRMM and TRSM.

    All matrices are column-major; a batch of them is (batch, rows, columns).
    """

    a: Any
    b: Any
    out: Any

    def map(self, function: Callable[[Any], Any]) -> Arrays:
        """Apply `function` to each array, for example a copy to the device."""
        return Arrays(*(None if x is None else function(x) for x in self))


@dataclass(frozen=True)
class Problem:
    """One call.

    Attributes
    ----------
    routine : str
        'gemm', 'gemm3m' (the same by three products), 'trmm' or 'trsm'; for others see `SymmetricProblem`.
    case : GemmCase or TriangularCase
        Dtype, extents, flags, alpha and beta.
    """

    routine: str
    case: Any

    @classmethod
    def square(cls, routine: str, dtype: Dtype, variant: str, n: int, alpha=1.0, beta=0.0) -> Problem:
        """All matrices n by n; `variant` in the BLAS's letters.

        These are trans_a trans_b of GEMM ('NN', 'TN', ...), side uplo trans diag of TRMM and TRSM ('LLNN',
        ...), side uplo of SYMM and HEMM ('LL'), uplo trans of SYRK and its kin ('LN'), uplo trans_a trans_b
        of GEMMTR ('LNN').

        Raises
        ------
        ValueError
            For any other variant.
        """
        if routine in symmetric_cases.ROUTINES:
            return SymmetricProblem(routine, _symmetric_case(routine, dtype, variant, n, alpha, beta))
        if routine in ("gemm", "gemm3m"):
            return cls.product(dtype, variant, (n, n, n), alpha, beta, routine)
        return cls.triangle(routine, dtype, variant, n, n, alpha)

    @classmethod
    def triangle(
        cls, routine: str, dtype: Dtype, variant: str, n: int, others: int, alpha=1.0, batch=()
    ) -> Problem:
        """A TRMM or TRSM with a triangle of order `n` and `others` columns of B (rows, from the right), or a
        batch of them; raises as `square`.
        """
        side, uplo, trans, diag = _letters(routine, dtype, variant)
        flags = (Side(side), Uplo(uplo), Trans(trans), Diag(diag))
        rows, cols = (n, others) if flags[0] is Side.LEFT else (others, n)
        return cls(routine, TriangularCase(dtype, rows, cols, *flags, alpha, tuple(batch)))

    @classmethod
    def product(
        cls, dtype: Dtype, variant: str, shape: tuple[int, ...], alpha=1.0, beta=0.0, routine: str = "gemm"
    ) -> Problem:
        """A GEMM of m, n, k[, batch] = `shape`; raises as `square`."""
        m, n, k, *batch = shape
        trans_a, trans_b = _letters(routine, dtype, variant)
        flags = Trans(trans_a), Trans(trans_b)
        return cls(routine, GemmCase(dtype, m, n, k, *flags, alpha, beta, tuple(batch)))

    @property
    def dtype(self) -> Dtype:
        return self.case.dtype

    @property
    def is_product(self) -> bool:
        """Whether it is a GEMM, by whatever method."""
        return isinstance(self.case, GemmCase)

    @property
    def method(self) -> Literal["3m"] | None:
        """Method of a GEMM; None is the default."""
        return THREE_M if self.routine == "gemm3m" else None

    @property
    def variant(self) -> str:
        return "".join(flag.value for flag in self._flags)

    @property
    def is_vector(self) -> bool:
        """Whether TRSV does it, which knows no alpha, no right side and no batch."""
        case = self.case
        is_left = self.routine == "trsm" and case.side is Side.LEFT
        return is_left and case.n == 1 and case.alpha == 1 and not case.batch

    @property
    def flops(self) -> int:
        """2mnk of GEMM, m²n (n²m from the right) of TRMM; four times that if complex."""
        case = self.case
        named = extents(case.m, case.n, getattr(case, "k", 0), getattr(case, "side", Side.LEFT))
        return _row(self.routine).flops(self.dtype, named) * prod(case.batch)

    @property
    def _flags(self) -> tuple:
        case = self.case
        if self.is_product:
            return case.trans_a, case.trans_b
        return case.side, case.uplo, case.trans, case.diag

    def data(self, seed: int = 2011) -> Arrays:
        """Random data in host memory. What a triangular routine must not read of A is NaN."""
        rng = np.random.default_rng(seed)
        if self.is_product:
            return Arrays(*(_columns(rng, shape, self.dtype) for shape in self.case.shapes))
        case = self.case
        out = _columns(rng, (*case.batch, case.m, case.n), self.dtype)
        a = np.empty((*case.batch, case.order, case.order), self.dtype.name).swapaxes(-1, -2)
        for which in np.ndindex(*case.batch):
            a[which] = reference.triangle(rng, case, _normal)
        return Arrays(a, None, out)

    def ours(self, x: Arrays, backend: str) -> None:
        """Run it on this library, in place."""
        case = self.case
        if not self.is_product:
            self.ours_out_of_place(x, x.out, backend)
            return
        options: dict[str, Any] = {"alpha": case.alpha, "beta": case.beta, "out": x.out, "backend": backend}
        options |= {"trans_a": case.trans_a, "trans_b": case.trans_b, "method": self.method}
        pyblasgpu.gemm(x.a, x.b, **options)

    def ours_out_of_place(self, x: Arrays, out: Any, backend: str) -> None:
        """Run a TRMM or TRSM on this library, the result in `out`."""
        case, routine = self.case, getattr(pyblasgpu, self.routine)
        options: dict[str, Any] = {"alpha": case.alpha, "out": out, "backend": backend}
        options |= {"side": case.side, "lower": case.uplo is Uplo.LOWER, "trans": case.trans}
        routine(x.a, x.out, unit_diag=case.diag is Diag.UNIT, **options)

    def cublas_out_of_place(self, library: Cublas, x: Arrays, out: Any) -> None:
        """Run a TRMM on cuBLAS, the result in other memory."""
        side, uplo, trans, diag = self._flags
        library.trmm(self.case.alpha, x.a, x.out, side, uplo, trans, diag, out)

    def our_other_ways(
        self, elsewhere: Callable[[Arrays], Any], backend: str
    ) -> dict[str, Callable[[Arrays], None]]:
        """Other ways of this library to the result, see `other_ways`."""
        if self.routine in ("trmm", "trsm") and not self.case.batch:
            return {"out_of_place": lambda x: self.ours_out_of_place(x, elsewhere(x), backend)}
        return {}

    def other_ways(
        self, library: Cublas, elsewhere: Callable[[Arrays], Any]
    ) -> dict[str, Callable[[Arrays], None]]:
        """Other ways of cuBLAS to the result; ``elsewhere(x)`` is memory for the result of a TRMM."""
        case = self.case
        if self.routine == "trmm" and not case.batch:
            return {"out_of_place": lambda x: self.cublas_out_of_place(library, x, elsewhere(x))}
        if self.routine == "gemm3m":
            return {
                "four_products": lambda x: library.gemm(case.alpha, x.a, x.b, case.beta, x.out, *self._flags)
            }
        return {}

    def cublas(self, library: Cublas, x: Arrays) -> None:
        """Run it on cuBLAS, in place: a TRSM with one right-hand side by the TRSV that is made for it."""
        if self.is_vector:
            library.trsv(x.a, x.out, *self._flags[1:])
            return
        others = (x.b, self.case.beta) if self.is_product else ()
        getattr(library, self.routine)(self.case.alpha, x.a, *others, x.out, *self._flags)

    def error(self, x: Arrays, result: np.ndarray) -> float:
        """Largest sampled error of `result` over its bound; `x` holds the data before the call."""
        case = self.case
        if self.is_product:
            a, b = reference.apply(x.a, case.trans_a), reference.apply(x.b, case.trans_b)
            measure = gemm_3m_error if self.method else _row(self.routine).error
            return max(
                measure(case.alpha, a[which], b[which], case.beta, x.out[which], result[which])
                for which in _sampled(case.batch)
            )
        error = _row(self.routine).error
        return max(
            error(case.alpha, x.a[which], x.out[which], result[which], *self._flags)
            for which in _sampled(case.batch)
        )

    def explain(self) -> list[tuple[str, str, str]]:
        """Kernel, Config and its origin, of each kernel that the device would run."""
        case = self.case
        if not self.is_product:
            others = case.n if case.side is Side.LEFT else case.m
            return pyblasgpu.explain(
                self.routine, self.dtype.letter, case.order, others, batch=prod(case.batch)
            )
        extents = case.m, case.n, case.k
        return pyblasgpu.explain(
            "gemm", self.dtype.letter, *extents, batch=prod(case.batch), method=self.method
        )


class SymmetricProblem(Problem):
    """A call of SYMM, HEMM, SYRK, HERK, SYR2K, HER2K or GEMMTR; `case` is a `SymmetricCase`."""

    @property
    def _flags(self) -> tuple:
        return self.case.flags

    def data(self, seed: int = 2011) -> Arrays:
        """Random data in host memory. Triangles that must not be read are NaN."""
        inputs, c = symmetric_cases.data(np.random.default_rng(seed), self.case, _normal)
        if self.case.hermitian:  # cuBLAS takes these imaginary parts to be zero; ours does not read them
            stored = inputs[0] if self.routine == "hemm" else c
            np.fill_diagonal(stored.imag, 0)
        a, *b = map(np.asfortranarray, inputs)
        return Arrays(a, b[0] if b else None, np.asfortranarray(c))

    def ours(self, x: Arrays, backend: str) -> None:
        """Run it on this library, in place."""
        options = {"alpha": self.case.alpha, "beta": self.case.beta, "backend": backend, **self.case.options}
        getattr(pyblasgpu, self.routine)(*self._inputs(x), out=x.out, **options)

    def cublas(self, library: Cublas, x: Arrays) -> None:
        """Run it on cuBLAS, in place; GEMMTR, which it lacks, as GEMM."""
        case = self.case
        if self.routine == "gemmtr":
            library.gemm(case.alpha, x.a, x.b, case.beta, x.out, case.trans, case.trans_b)
        else:
            routine = getattr(library, self.routine)
            routine(case.alpha, *self._inputs(x), case.beta, x.out, *self._flags)

    def error(self, x: Arrays, result: np.ndarray) -> float:
        """Largest sampled error of `result` over its bound; `x` holds the data before the call."""
        case = self.case
        if self.routine in symmetric_cases.SYMMETRIC:
            flags = case.side, case.uplo, case.hermitian
            return case.row.error(case.alpha, x.a, x.b, case.beta, x.out, result, *flags)
        return case.row.error(self._products(x), case.beta, x.out, result, case.uplo, case.hermitian)

    def explain(self) -> list[tuple[str, str, str]]:
        """Kernel, Config and its origin, of each kernel that the device would run."""
        case = self.case
        is_symmetric = self.routine in symmetric_cases.SYMMETRIC
        extents = (case.m, case.n) if is_symmetric else (case.n, case.n, case.k)
        return pyblasgpu.explain(self.routine, self.dtype.letter, *extents)

    @staticmethod
    def _inputs(x: Arrays) -> tuple:
        return (x.a,) if x.b is None else (x.a, x.b)

    def _products(self, x: Arrays) -> list[tuple]:
        """(alpha, A, B) of the products that are added up."""
        case = self.case
        a = reference.apply(x.a, case.trans)
        if self.routine == "gemmtr":
            return [(case.alpha, a, reference.apply(x.b, case.trans_b))]
        turn = Trans.CONJ if case.hermitian else Trans.TRANS
        if x.b is None:
            return [(case.alpha, a, reference.apply(a, turn))]
        b, other = reference.apply(x.b, case.trans), np.conj(case.alpha) if case.hermitian else case.alpha
        return [(case.alpha, a, reference.apply(b, turn)), (other, b, reference.apply(a, turn))]


def _symmetric_case(routine: str, dtype: Dtype, variant: str, n: int, alpha, beta) -> SymmetricCase:
    first, second, *third = _letters(routine, dtype, variant)
    if routine in symmetric_cases.SYMMETRIC:
        flags: dict[str, Any] = {"side": Side(first), "uplo": Uplo(second), "m": n}
    else:
        flags = {"uplo": Uplo(first), "trans": Trans(second), "k": n}
    if third:
        flags["trans_b"] = Trans(third[0])
    return SymmetricCase(routine, dtype, n, alpha=alpha, beta=beta, **flags)


def _letters(routine: str, dtype: Dtype, variant: str) -> list[str]:
    """`variant` letter by letter, if the routine has it."""
    if not fits(routine, dtype, variant):
        known = ", ".join("".join(value.value for value in FLAGS[flag]) for flag in _row(routine).flags)
        raise ValueError(
            f"{routine}: variant {variant!r} is not one letter each of {known}, or none of {dtype.name}"
        )
    return list(variant)


def _columns(rng: np.random.Generator, shape: tuple[int, ...], dtype: Dtype) -> np.ndarray:
    """Column-major matrices of random numbers."""
    *batch, rows, cols = shape
    return _normal(rng, (*batch, cols, rows), dtype).swapaxes(-1, -2)


def _sampled(batch: tuple[int, ...]) -> list[tuple[int, ...]]:
    """The indices of some of the matrices, the first and the last among them."""
    indices = list(np.ndindex(*batch))
    return list(dict.fromkeys((*indices[:: -(-len(indices) // SAMPLES)], indices[-1])))


def _normal(rng: np.random.Generator, shape: tuple[int, ...], dtype: Dtype) -> np.ndarray:
    reals = (*shape[:-1], shape[-1] * dtype.reals_per_element)
    return rng.standard_normal(reals, dtype=np.dtype(dtype.real).type).view(dtype.name)
