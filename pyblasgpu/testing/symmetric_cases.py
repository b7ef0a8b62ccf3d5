"""Cases of SYMM, HEMM, SYRK, HERK, SYR2K, HER2K and GEMMTR, their inputs, and results that are exact.

As in `cases` and `oracle`: flags are crossed in full at one awkward shape, alpha and beta at another, sizes
are at the edges of tiles; what must not be read is NaN.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from ..cpu.scipy.level3 import triangle_mask
from ..routine import Routine, extents
from ..routine_table import ROUTINES as ROUTINE_ROWS
from ..routine_table import routines
from ..types import DTYPES, Dtype, Side, Trans, Uplo
from .cases import ALPHAS, BETAS, EDGES, scalars
from .reference import apply, integers

__all__ = [
    "RANK_K",
    "ROUTINES",
    "SYMMETRIC",
    "SymmetricCase",
    "SymmetricData",
    "algorithms",
    "data",
    "exact",
    "symmetric_cases",
]

#: The routines that compute a triangle, those that read a symmetric matrix, and both.
RANK_K = tuple(each.stem for each in routines("level3") if each.is_update)
SYMMETRIC = ("symm", ROUTINE_ROWS["symm"].counterpart)
ROUTINES = (*SYMMETRIC, *RANK_K)


def algorithms(routine: str) -> tuple[str | None, ...]:
    """Return a routine's values of ``override("syr2k_algorithm", ...)``; None where there is but one."""
    return ("two_products", "symmetrize") if ROUTINE_ROWS[routine].is_rank_2 else (None,)


@dataclass(frozen=True)
class SymmetricCase:
    """A routine of one dtype and size.

    Of `SYMMETRIC` C is `m` by `n`, A is at `side` and `uplo` of it is stored. Of `RANK_K` C is n by n, its
    triangle `uplo` is computed, `k` is the inner extent; GEMMTR has a second op, `trans_b`.
    """

    routine: str
    dtype: Dtype
    n: int
    m: int = 0
    k: int = 0
    uplo: Uplo = Uplo.LOWER
    side: Side = Side.LEFT
    trans: Trans = Trans.NO
    trans_b: Trans = Trans.NO
    alpha: complex = 1
    beta: complex = 0
    batch: tuple[int, ...] = ()

    @property
    def row(self) -> Routine:
        return ROUTINE_ROWS[self.routine]

    def __str__(self):
        flags = "".join(flag.value for flag in self.flags)
        extents = "x".join(map(str, self.extents))
        return f"{self.dtype.letter}{self.routine}-{flags}-{extents}-{self.alpha}-{self.beta}"

    @property
    def flags(self) -> tuple:
        """Flags of the routine, in the BLAS's order."""
        return tuple(getattr(self, flag) for flag in self.row.flags)

    @property
    def trans_a(self) -> Trans:
        return self.trans

    @property
    def extents(self) -> tuple[int, int]:
        """m and n, or n and k."""
        return (self.m, self.n) if self.routine in SYMMETRIC else (self.n, self.k)

    @property
    def hermitian(self) -> bool:
        return self.row.conjugates(self.dtype)

    @property
    def order(self) -> int:
        """Order of the matrix of which one triangle counts."""
        return self.n if self.routine in RANK_K or self.side is Side.RIGHT else self.m

    @property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        """Shapes of the inputs and of C as they are stored."""
        named = extents(self.m, self.n, self.k, self.side)
        shapes = []
        for matrix in self.row.matrices:
            transposed = matrix.op and getattr(self, matrix.op) is not Trans.NO
            shapes.append((*self.batch, *matrix.shape(named)[:: -1 if transposed else 1]))
        return tuple(shapes)

    @property
    def options(self) -> dict[str, Any]:
        """Flags as the keyword style names them."""
        return {"lower" if name == "uplo" else name: getattr(self, name) for name in self.row.flags}


class SymmetricData(NamedTuple):
    """The inputs, and C before the call."""

    inputs: tuple[np.ndarray, ...]
    c: np.ndarray


def data(rng: np.random.Generator, case: SymmetricCase, fill: Callable = integers) -> SymmetricData:
    """Inputs that are NaN where the routine must not read."""
    *inputs, c = (fill(rng, shape, case.dtype) for shape in case.shapes)
    if case.routine in SYMMETRIC:
        _spoil(inputs[0], case)
    else:
        _spoil(c, case)
    if case.alpha == 0:
        for x in inputs:
            x[...] = np.nan
    if case.beta == 0:
        c[...] = np.nan
    return SymmetricData(tuple(inputs), c)


def _spoil(x: np.ndarray, case: SymmetricCase) -> None:
    """NaN in the other triangle, and in the imaginary parts of a Hermitian diagonal."""
    x[..., ~_kept(case)] = np.nan
    if case.hermitian:
        diagonal = np.arange(case.order)
        x.imag[..., diagonal, diagonal] = np.nan


def _kept(case: SymmetricCase) -> np.ndarray:
    return triangle_mask(case.order, case.uplo is Uplo.LOWER)


def _whole(x: np.ndarray, case: SymmetricCase) -> np.ndarray:
    """The symmetric or Hermitian matrix that the triangle in `x` represents."""
    n = case.order
    diagonal = np.arange(n)
    triangle = np.where(_kept(case), x, 0)
    if case.hermitian:
        triangle[..., diagonal, diagonal] = triangle[..., diagonal, diagonal].real
    mirrored = triangle.swapaxes(-1, -2).copy()
    mirrored[..., diagonal, diagonal] = 0
    return triangle + (mirrored.conj() if case.hermitian else mirrored)


def exact(case: SymmetricCase, data: SymmetricData) -> np.ndarray:
    """C after the call for integer entries, every bit right; what is not written is as in ``data.c``."""
    wide: Any = np.complex128 if case.dtype.is_complex else np.float64
    before, total = data.c.astype(wide), np.zeros(data.c.shape, wide)
    inputs = [x.astype(wide) for x in data.inputs]
    if case.alpha != 0:
        total = total + case.alpha * _product(case, inputs)
        if case.row.is_rank_2:
            other = np.conj(case.alpha) if case.hermitian else case.alpha
            total = total + other * _product(case, inputs[::-1])
    if case.routine in SYMMETRIC:
        if case.beta != 0:
            total = total + case.beta * before
        return total.astype(case.dtype.name)
    if case.beta == 1 and (case.alpha == 0 or case.k == 0):
        return data.c  # not even the diagonal's imaginary parts are touched
    diagonal = np.arange(case.n)
    if case.beta != 0:
        start = before.copy()
        if case.hermitian:
            start[..., diagonal, diagonal] = start[..., diagonal, diagonal].real
        total = total + case.beta * start
    if case.hermitian:
        total[..., diagonal, diagonal] = total[..., diagonal, diagonal].real
    return np.where(_kept(case), total, before).astype(case.dtype.name)


def _product(case: SymmetricCase, inputs: list[np.ndarray]) -> np.ndarray:
    """A B of SYMM and GEMMTR, A A' of SYRK, A B' of SYR2K, with the conjugations of HEMM and so on."""
    if case.routine in SYMMETRIC:
        matrix = _whole(inputs[0], case)
        return matrix @ inputs[1] if case.side is Side.LEFT else inputs[1] @ matrix
    left = apply(inputs[0], case.trans)
    if case.routine == "gemmtr":
        return left @ apply(inputs[1], case.trans_b)
    right = apply(inputs[-1], case.trans)
    return left @ apply(right, Trans.CONJ if case.hermitian else Trans.TRANS)


def _factors(routine: str, dtype: Dtype) -> tuple[tuple, tuple]:
    """alpha and beta; where the routine takes real ones alone, those."""
    alphas, betas = (
        scalars(values, DTYPES["d"] if name in ROUTINE_ROWS[routine].real else dtype)
        for name, values in (("alpha", ALPHAS), ("beta", BETAS))
    )
    return alphas, betas


def symmetric_cases(
    routine: str, sizes: tuple[int, ...] = EDGES, shape: tuple[int, int] = (65, 33)
) -> Iterator[SymmetricCase]:
    """Every dtype with: every size as a square and as each extent of `shape`; all flags; all alpha, beta.

    `shape` is m and n, or n and k.
    """
    for dtype in DTYPES.values():
        if routine in SYMMETRIC:
            yield from _symm_cases(routine, dtype, sizes, shape)
        else:
            yield from _rank_k_cases(routine, dtype, sizes, shape)


def _symm_cases(routine: str, dtype: Dtype, sizes, shape) -> Iterator[SymmetricCase]:
    m, n = shape
    for size in sizes:
        yield SymmetricCase(routine, dtype, size, size)
        yield SymmetricCase(routine, dtype, n, size, uplo=Uplo.UPPER, alpha=2, beta=-1)
        yield SymmetricCase(routine, dtype, size, m, side=Side.RIGHT)
    for side, uplo, beta in product(Side, Uplo, (0, 2)):
        yield SymmetricCase(routine, dtype, n, m, uplo=uplo, side=side, alpha=-1, beta=beta)
    for alpha, beta in product(*_factors(routine, dtype)):
        yield SymmetricCase(routine, dtype, n, m, alpha=alpha, beta=beta)


def _rank_k_cases(routine: str, dtype: Dtype, sizes, shape) -> Iterator[SymmetricCase]:
    n, k = shape
    for size in sizes:
        yield SymmetricCase(routine, dtype, size, k=size)
        yield SymmetricCase(routine, dtype, size, k=k, uplo=Uplo.UPPER, alpha=2, beta=-1)
        yield SymmetricCase(routine, dtype, n, k=size, beta=2)
    row = ROUTINE_ROWS[routine]
    ops, others = row.values(row.ops[0], dtype), Trans if routine == "gemmtr" else (Trans.NO,)
    for uplo, trans, trans_b, beta in product(Uplo, ops, others, (0, 2)):
        yield SymmetricCase(
            routine, dtype, n, k=k, uplo=uplo, trans=trans, trans_b=trans_b, alpha=-1, beta=beta
        )
    for alpha, beta in product(*_factors(routine, dtype)):
        yield SymmetricCase(routine, dtype, n, k=k, alpha=alpha, beta=beta)
