"""TRSM and TRMM on hard triangles (growth, wide ranges, denormal diagonals), and their error bounds."""

from __future__ import annotations

import numpy as np

import pyblasgpu
from pyblasgpu.testing.cases import TriangularCase
from pyblasgpu.testing.error_bounds import trmm_error, trsm_error
from pyblasgpu.testing.reference import read_part, triangle
from pyblasgpu.types import DTYPES, Diag, Side, Trans, Uplo

from .running import NAN, cupy, flags, reals


def unit_lower(rng, n, dtype):
    """Entries U(-4, 4): a diagonal block of order 64 has a condition of 1e17, in which small errors grow."""
    a = np.tril(rng.uniform(-4, 4, (n, n)), -1)
    if dtype.real == "float32":
        rows = np.arange(n) // 64
        a[rows[:, None] != rows] = 0  # growth from block to block would overflow
    np.fill_diagonal(a, NAN)
    return a


def graded(rng, n, dtype):
    """Rows scaled over a good part of the exponents."""
    reach = 12 if dtype.real == "float32" else 100
    scale = 10.0 ** np.linspace(-reach, reach, n)
    return (np.tril(rng.uniform(-1, 1, (n, n)), -1) / n + np.diag(rng.uniform(1, 2, n))) * scale[:, None]


def denormal(rng, n, dtype):
    """Denormal numbers on the diagonal, which have no reciprocal."""
    a = np.tril(rng.uniform(-1, 1, (n, n)), -1) / n + np.diag(rng.uniform(1, 2, n))
    a[3::32] = 0
    tiny = np.arange(3, n, 32)
    a[tiny, tiny] = np.finfo(dtype.real).tiny / 8
    return a


HARD = (unit_lower, graded, denormal)


def check_hard(kind, letter: str, n: int) -> None:
    """The backward error of a solve with a triangle of this kind."""
    dtype, rng = DTYPES[letter], np.random.default_rng(5)
    diag = Diag.UNIT if kind is unit_lower else Diag.NON_UNIT
    a = kind(rng, n, dtype) * (np.exp(0.3j) if dtype.is_complex else 1)
    a[np.triu_indices(n, 1)] = NAN
    a = np.asfortranarray(a.astype(dtype.name))
    wide = np.result_type(dtype.name, np.float64)
    b = read_part(a, Uplo.LOWER, diag).astype(wide) @ reals(dtype, n, 32)
    b = np.asfortranarray(b.astype(dtype.name))
    result = pyblasgpu.trsm(cupy.asarray(a), cupy.asarray(b), lower=True, unit_diag=diag).get()
    assert np.isfinite(result).all()
    assert trsm_error(1, a, b, result, Side.LEFT, Uplo.LOWER, Trans.NO, diag) < 1


def check_bounds(letter: str, side: Side, uplo: Uplo, trans: Trans) -> None:
    """A product and a solve of 1000 by 700 within their bounds."""
    dtype, (m, n) = DTYPES[letter], (1000, 700)
    case = TriangularCase(dtype, m, n, side, uplo, trans)
    rng = np.random.default_rng(6)
    a = np.asfortranarray(triangle(rng, case, lambda rng, shape, dtype: reals(dtype, *shape)))
    b, alpha = reals(dtype, m, n), 0.3
    left, right = cupy.asarray(a), cupy.asarray(b)
    kinds = (side, uplo, trans, Diag.NON_UNIT)
    product = pyblasgpu.trmm(left, right, alpha=alpha, **flags(case)).get()
    assert trmm_error(alpha, a, b, product, *kinds) < 1
    solution = pyblasgpu.trsm(left, right, alpha=alpha, **flags(case)).get()
    assert trsm_error(alpha, a, b, solution, *kinds) < 1
