"""Inputs whose results are known exactly, memory that reveals accesses, and the exact results.

Small integers are exact in every dtype and every order of summation, so their results are compared with
``==``. What a routine may not read is NaN; what it may not write is behind fences. The error bounds of
rounded results are in `pyblasgpu.testing.error_bounds`.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..cpu.scipy.level3 import triangle_mask
from ..kernels.copy.packing import Packing
from ..types import Diag, Dtype, Trans, Uplo
from .cases import GemmCase, TriangularCase

__all__ = [
    "apply",
    "exact_gemm",
    "exact_triangular",
    "fenced",
    "integers",
    "packed",
    "read_part",
    "reals",
    "triangle",
]


def integers(rng: np.random.Generator, shape, dtype: Dtype, limit: int = 3) -> np.ndarray:
    """Integers of magnitude at most `limit`, for complex dtypes in both parts."""
    values = rng.integers(-limit, limit + 1, shape).astype(dtype.name)
    if dtype.is_complex:
        values += 1j * rng.integers(-limit, limit + 1, shape)
    return values


def reals(rng: np.random.Generator, shape, dtype: Dtype) -> np.ndarray:
    """Uniform in (-1, 1), for complex dtypes in both parts."""
    values = rng.uniform(-1, 1, shape).astype(dtype.name)
    if dtype.is_complex:
        values += 1j * rng.uniform(-1, 1, shape).astype(dtype.real)
    return values


def triangle(
    rng: np.random.Generator,
    case: TriangularCase,
    fill: Callable = integers,
    batch_shape: tuple[int, ...] = (),
) -> np.ndarray:
    """A triangle of the case's order, NaN where it must not be read.

    With `integers`, its diagonal is ±1, ±1j, so that solving with it is exact too; with `reals` its entries
    are scaled down, so that it is well-conditioned.
    """
    n, dtype = case.order, case.dtype
    exact = fill is integers
    a = (
        fill(rng, (*batch_shape, n, n), dtype, 1)
        if exact
        else fill(rng, (*batch_shape, n, n), dtype) / max(n, 1)
    )
    a = a.astype(dtype.name, copy=False)
    units = np.array([1, -1, 1j, -1j] if dtype.is_complex else [1, -1])
    diagonal = np.arange(n)
    size = 1 if exact else rng.uniform(1, 2, (*batch_shape, n))
    a[..., diagonal, diagonal] = size * rng.choice(units, (*batch_shape, n))
    if case.diag is Diag.UNIT:
        a[..., diagonal, diagonal] = np.nan
    a[..., ~triangle_mask(n, case.uplo is Uplo.LOWER)] = np.nan
    return a


def read_part(a: np.ndarray, uplo: Uplo, diag: Diag) -> np.ndarray:
    """The matrix that the triangle `a` represents: zeros in the other triangle, ones on a unit diagonal."""
    n = a.shape[-1]
    full = np.where(triangle_mask(n, uplo is Uplo.LOWER), a, 0).astype(a.dtype, copy=False)
    if diag is Diag.UNIT:
        full[..., np.arange(n), np.arange(n)] = 1
    return full


def apply(a: np.ndarray, trans: Trans) -> np.ndarray:
    """op(a)."""
    if trans is Trans.NO:
        return a
    swapped = a.swapaxes(-1, -2)
    return swapped.conj() if trans is Trans.CONJ else swapped


def exact_gemm(case: GemmCase, a, b, c=None) -> np.ndarray:
    """``alpha op(a) op(b) + beta c`` for integer entries, every bit right; unread is what a zero hides."""
    wide = np.complex128 if case.dtype.is_complex else np.float64
    result = np.zeros((*np.broadcast_shapes(a.shape[:-2], b.shape[:-2]), case.m, case.n), wide)
    if case.alpha != 0 and case.k:
        left, right = apply(a, case.trans_a).astype(wide), apply(b, case.trans_b).astype(wide)
        result += case.alpha * (left @ right)
    if case.beta != 0:
        result = result + case.beta * c.astype(wide)
    return result.astype(case.dtype.name)


def exact_triangular(case: TriangularCase, a, x, alpha=None) -> np.ndarray:
    """``alpha op(a) x`` or ``alpha x op(a)`` for integer entries, every bit right.

    The product that TRMM computes; and with ``alpha=1`` the right-hand side of which `x` is the solution.
    """
    wide = np.complex128 if case.dtype.is_complex else np.float64
    alpha = case.alpha if alpha is None else alpha
    op = apply(read_part(a, case.uplo, case.diag), case.trans).astype(wide)
    product = op @ x.astype(wide) if case.side.value == "L" else x.astype(wide) @ op
    return (alpha * product).astype(case.dtype.name)


def packed(packing: Packing, values: np.ndarray) -> np.ndarray:
    """`values`, of shape (extent, k), as packed, zeros between them: shape (elements,)."""
    extent, k = values.shape
    elements = np.zeros(packing.size(extent, k), values.dtype)
    i, kk = np.ogrid[:extent, :k]
    elements[packing.offset(i, kk, extent, k)] = values
    return elements


def fenced(values: np.ndarray, order: str = "C", gap: int = 3, margin: int = 16):
    """A copy of `values` amid memory that must not change.

    Parameters
    ----------
    values : ndarray, shape (..., m, n)
    order : {'C', 'F'}
        Which of the last two dimensions has stride 1.
    gap : int
        Elements between two rows ('C') or columns ('F').
    margin : int
        Elements before and after.

    Returns
    -------
    view : ndarray
        The copy.
    unharmed : callable
        ``unharmed()`` says whether all memory around the copy is as it was, bit for bit.
    """
    swapped = values.swapaxes(-1, -2) if order == "F" else values
    *batch_shape, outer, inner = swapped.shape
    size = int(np.prod([*batch_shape, outer, inner + gap], dtype=int))
    memory = np.full(size + 2 * margin, np.nan, values.dtype)
    view = memory[margin : margin + size].reshape(*batch_shape, outer, inner + gap)[..., :inner]
    view[...] = swapped
    before, inside = memory.tobytes(), np.zeros(memory.shape, bool)
    inside[margin : margin + size].reshape(*batch_shape, outer, inner + gap)[..., :inner] = True

    def unharmed() -> bool:
        now, then = memory.copy(), np.frombuffer(before, memory.dtype).copy()
        now[inside] = then[inside] = 0
        return now.tobytes() == then.tobytes()

    return (view.swapaxes(-1, -2) if order == "F" else view), unharmed
