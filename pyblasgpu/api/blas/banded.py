"""Products, solutions and updates of `blas` with banded and packed matrices, on the CPU."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, NamedTuple

from ...arguments import Array, enabled
from ...cpu.scipy import banded as cpu
from ...frontend.arrays.any_array import may_share_memory, reshaped
from ...frontend.calls.call import Call
from ...types import Diag, Dtype, Trans, Uplo
from ..array_views import views_of
from ..keyword.level3 import real_number
from .arrays import as_matrix
from .products import Product, in_vector
from .vectors import VectorArgument, as_vector, parts_of, target_of, whole

__all__ = ["general_product", "symmetric_product", "triangle", "update"]


class _Half(NamedTuple):
    """A triangle of a matrix that is banded or packed.

    Attributes
    ----------
    matrix : dict of str to array
        The matrix by its argument, with two dimensions.
    order : int
    number : int
        The argument of SciPy's function before it. It is the order of a packed matrix, or the diagonals above
        or below the main one of a banded matrix.
    """

    matrix: dict[str, Array]
    order: int
    number: int

    def of(self, a: Any) -> Any:
        """The NumPy array `a` of the matrix as SciPy's function takes it."""
        return a[:, 0] if "ap" in self.matrix else a


def _half_of(name: str, dtype: Dtype, given: Any) -> _Half:
    """The matrix of a call, checked."""
    if hasattr(given, "ap"):
        order, ap = _packed(name, dtype, given)
        return _Half({"ap": reshaped(ap, (ap.shape[0], 1))}, order, order)
    k = _count(name, "k", given.k)
    band = _band(name, dtype, given.a, k + 1, f"k={k}")
    return _Half({"a": band}, band.shape[1], k)


def _packed(name: str, dtype: Dtype, given: Any) -> tuple[int, Array]:
    """The order of a packed matrix, and its array with one dimension."""
    order, ap = _count(name, "n", given.n), as_vector(name, "ap", given.ap, dtype)
    needed = order * (order + 1) // 2
    if ap.shape[0] < needed:
        raise ValueError(f"{name}: ap has {ap.shape[0]} elements; n={order} needs {needed}")
    return order, ap


def _band(name: str, dtype: Dtype, a: Array, rows: int, which: str) -> Array:
    """The diagonals of a banded matrix, `rows` of them at least."""
    band = as_matrix(name, "a", a, dtype)
    if band.shape[0] < rows:
        raise ValueError(f"{name}: a has shape {tuple(band.shape)}; {which} needs {rows} rows")
    return band


def _count(name: str, argument: str, value: Any) -> int:
    """An integer argument that is not negative."""
    count = whole(value, name, argument)
    if count < 0:
        raise ValueError(f"{name}: {argument}={count} is negative")
    return count


def general_product(name: str, dtype: Dtype, which: str, given: Any) -> Array:
    """GBMV."""
    m, n, kl, ku = (_count(name, each, getattr(given, each)) for each in ("m", "n", "kl", "ku"))
    op = Trans.parse(given.trans, name, "trans")
    band = _band(name, dtype, given.a, kl + ku + 1, f"kl={kl}, ku={ku}")
    if band.shape[1] != n:
        raise ValueError(f"{name}: a has shape {tuple(band.shape)}; n={n} needs {n} columns")
    extents = (m, n) if op is Trans.NO else (n, m)

    def multiply(call: Call, alpha: Any, beta: Any, a: Any, x: Any) -> Any:
        return _run(call, cpu.gbmv, alpha, a, x, beta, call.out, kl, ku, op)

    return _product(name, dtype, {"a": band}, extents, given).run(given.alpha, given.beta, multiply)


def symmetric_product(name: str, dtype: Dtype, which: str, given: Any) -> Array:
    """SBMV, HBMV, SPMV or HPMV."""
    uplo, half = Uplo.parse(given.lower, name, "lower"), _half_of(name, dtype, given)

    def multiply(call: Call, alpha: Any, beta: Any, a: Any, x: Any) -> Any:
        return _run(call, cpu.symmetric, which, alpha, half.of(a), x, beta, call.out, half.number, uplo)

    extents = half.order, half.order
    return _product(name, dtype, half.matrix, extents, given).run(given.alpha, given.beta, multiply)


def _product(
    name: str, dtype: Dtype, matrix: dict[str, Array], extents: tuple[int, int], given: Any
) -> Product:
    offsets = (given.offx, given.incx), (given.offy, given.incy)
    return Product(name, dtype, matrix, given.x, given.y, extents, offsets, given.overwrite_y)


def _run(call: Call, compute: Callable[..., None], *arguments: Any) -> Any:
    """Compute, and return the caller's array."""
    call.note_write()
    compute(*arguments)
    return call.delivered()


def triangle(name: str, dtype: Dtype, which: str, given: Any) -> Array:
    """TBMV, TBSV, TPMV or TPSV."""
    uplo, trans = Uplo.parse(given.lower, name, "lower"), Trans.parse(given.trans, name, "trans")
    diag, half = Diag.parse(given.diag, name, "diag"), _half_of(name, dtype, given)

    def run(call: Call, a: Any, x: Any, in_place: bool) -> Any:
        call.start_from(None if in_place else x)
        return _run(call, cpu.triangular, which, half.of(a), call.out, half.number, uplo, trans, diag)

    at_x = given.offx, given.incx
    return in_vector(name, dtype, half.matrix, half.order, given.x, at_x, given.overwrite_x, run)


def update(name: str, dtype: Dtype, which: str, given: Any) -> Array:
    """SPR, HPR, SPR2 or HPR2; in ap, or in a copy of it."""
    arrays = {each: getattr(given, each) for each in ("x", "y", "ap") if hasattr(given, each)}
    if (views := views_of(name, arrays)) is not None:
        viewed = {**vars(given), **dict(zip(arrays, views.arrays, strict=True))}
        return views.delivered(update(name, dtype, which, SimpleNamespace(**viewed)))
    uplo = Uplo.parse(given.lower, name, "lower")
    overwrite = enabled(given.overwrite_ap, name, "overwrite_ap")
    order, ap = _packed(name, dtype, given)
    vectors = {"x": VectorArgument(as_vector(name, "x", given.x, dtype), given.offx, given.incx)}
    if hasattr(given, "y"):
        vectors["y"] = VectorArgument(as_vector(name, "y", given.y, dtype), given.offy, given.incy)
    parts = parts_of(name, vectors, order)
    arrays = {argument: vector.array for argument, vector in vectors.items()}
    shares = any(may_share_memory(array, ap) for array in arrays.values())
    target = target_of(name, given.ap, ap, dtype, overwrite and not shares)
    call = Call(name, arrays, target.vector, None, None, dtype, vectors={**parts, "out": None})
    factor = (real_number if which == "hpr" else Call.scalar)(call, "alpha", given.alpha)
    call.set_output(target.vector, (), ap.shape[0], 1)
    call.note_write()
    cpu.packed_update(which, factor, *call.inputs, call.out, n=order, uplo=uplo)
    return target.array
