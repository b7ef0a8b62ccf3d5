"""The Level 2 of `blas`: SciPy's signatures, for all dtypes.

A vector is every `incx`-th element of x from `offx` on; with a negative increment it runs backwards, and ends
there. Results are those of SciPy: as long as y, or x, was, with zeros between the elements of a new one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..arguments import Array, Flag, Number, enabled
from ..frontend.arrays import may_share_memory
from ..frontend.call import Call
from ..frontend.layouts import Layout
from ..frontend.vectors import Vector, column
from ..types import DTYPES, Diag, Dtype, Trans, Uplo
from . import blas_level2_docs as docs
from .blas_arrays import as_matrix
from .blas_functions import dressed
from .blas_vectors import VectorArgument, as_vector, clear_of, parts_of, target_of, whole
from .level2 import check_square, run_gemv, run_symv
from .trmv import run_triangular

__all__ = [
    "cgemv", "chemv", "ctrmv", "ctrsv", "dgemv", "dsymv", "dtrmv", "dtrsv", "sgemv", "ssymv", "strmv",
    "strsv", "zgemv", "zhemv", "ztrmv", "ztrsv",
]  # fmt: skip


def _make_gemv(dtype: Dtype) -> Callable[..., Any]:
    name = dtype.letter + "gemv"

    def gemv(
        alpha: Number,
        a: Array,
        x: Array,
        beta: Number = 0.0,
        y: Array = None,
        offx: int = 0,
        incx: int = 1,
        offy: int = 0,
        incy: int = 1,
        trans: Flag = 0,
        overwrite_y: Flag = 0,
    ) -> Array:
        op, matrix = Trans.parse(trans, name, "trans"), as_matrix(name, "a", a, dtype)
        m, n = matrix.shape if op is Trans.NO else matrix.shape[::-1]
        offsets = (offx, incx), (offy, incy)
        product = _Product(name, dtype, matrix, x, y, (m, n), offsets, overwrite_y)
        return product.run(
            alpha, beta, lambda call, factor, scale, a, x: run_gemv(call, factor, scale, a, x, op)
        )

    return dressed(gemv, name, dtype, docs.gemv(name, dtype))


def _make_symv(dtype: Dtype) -> Callable[..., Any]:
    name = dtype.letter + ("hemv" if dtype.is_complex else "symv")

    def symv(
        alpha: Number,
        a: Array,
        x: Array,
        beta: Number = 0.0,
        y: Array = None,
        offx: int = 0,
        incx: int = 1,
        offy: int = 0,
        incy: int = 1,
        lower: Flag = 0,
        overwrite_y: Flag = 0,
    ) -> Array:
        uplo, matrix = Uplo.parse(lower, name, "lower"), as_matrix(name, "a", a, dtype)
        n = check_square(name, matrix)
        product = _Product(name, dtype, matrix, x, y, (n, n), ((offx, incx), (offy, incy)), overwrite_y)
        hermitian = dtype.is_complex
        return product.run(
            alpha,
            beta,
            lambda call, factor, scale, a, x: run_symv(call, factor, scale, a, x, uplo, hermitian),
        )

    return dressed(symv, name, dtype, docs.symv(name, dtype))


class _Product:
    """A product of a matrix and a vector, its result in y or in a new vector.

    Parameters
    ----------
    name, dtype, matrix, x, y
        Of the call; the matrix has two dimensions.
    extents : (int, int)
        Elements of the result, and of the vector.
    places : tuple
        Offset and increment of x, and of y.
    overwrite : bool
        Whether `y` may hold the result.
    """

    def __init__(
        self,
        name: str,
        dtype: Dtype,
        matrix: Array,
        x: Array,
        y: Array,
        extents: tuple[int, int],
        offsets: tuple[tuple[Any, Any], tuple[Any, Any]],
        overwrite: Flag,
    ) -> None:
        (self.m, n), (at_x, at_y) = extents, offsets
        self.name, self.dtype, self.y, self.matrix = name, dtype, y, matrix
        self.overwrite = enabled(overwrite, name, "overwrite_y")
        self.x = as_vector(name, "x", x, dtype)
        self.of_x = parts_of(name, {"x": VectorArgument(self.x, *at_x)}, n)["x"]
        self.offset, self.increment = (whole(v, name, a) for v, a in zip(at_y, ("offy", "incy"), strict=True))

    def run(self, alpha: Number, beta: Number, multiply: Callable[..., Any]) -> Array:
        """``multiply(call, alpha, beta, a, x)`` runs it."""
        return self._new(alpha, beta, multiply) if self.y is None else self._added(alpha, beta, multiply)

    def _call(self, x: Array, out: Array, of_out: Vector | None) -> Call:
        vectors = {"x": self.of_x, "out": of_out}
        arrays = {"a": self.matrix, "x": x}
        return Call(self.name, arrays, out, None, None, self.dtype, vectors=vectors)

    def _new(self, alpha: Number, beta: Number, multiply: Callable[..., Any]) -> Array:
        """The result in a new vector, zeros where it has no elements."""
        if self.increment == 0 or self.offset < 0:
            wrong = f"offy={self.offset} is negative" if self.increment else "incy is 0"
            raise ValueError(f"{self.name}: {wrong}")
        call = self._call(self.x, None, None)
        factor, _ = call.scalar("alpha", alpha), call.scalar("beta", beta)
        length = 1 + self.offset + (self.m - 1) * abs(self.increment) if self.m else self.offset
        call.set_output(None, (), length, 1)
        if length != self.m:
            multiply(call, 0, 0, *call.inputs)
        call.out = column(_flat(call.out), Vector(self.m, self.offset, self.increment))
        return multiply(call, factor, 0, *call.inputs)

    def _added(self, alpha: Number, beta: Number, multiply: Callable[..., Any]) -> Array:
        """The result in y, or in a copy of it."""
        flat = as_vector(self.name, "y", self.y, self.dtype)
        of_y = parts_of(self.name, {"y": VectorArgument(flat, self.offset, self.increment)}, self.m)["y"]
        overwrite = self.overwrite and not may_share_memory(self.matrix, flat)
        checked = self._call(self.x, None, None)
        factor, scale = checked.scalar("alpha", alpha), checked.scalar("beta", beta)
        target = target_of(self.name, self.y, flat, self.dtype, overwrite)
        call = self._call(clear_of(self.name, self.x, target.vector, self.dtype), target.vector, of_y)
        call.set_output(target.vector, (), self.m, 1)
        multiply(call, factor, scale, *call.inputs)
        return target.array


def _flat(vector: Any) -> Any:
    """A column as an array of one dimension."""
    if isinstance(vector, Layout):
        return vector._replace(shape=vector.shape[:-1], strides=vector.strides[:-1])
    return vector[..., 0]


def _make_trmv(dtype: Dtype) -> Callable[..., Any]:
    name = dtype.letter + "trmv"

    def trmv(
        a: Array,
        x: Array,
        offx: int = 0,
        incx: int = 1,
        lower: Flag = 0,
        trans: Flag = 0,
        diag: Flag = 0,
        overwrite_x: Flag = 0,
    ) -> Array:
        return _triangular("trmv", dtype, a, x, (offx, incx), (lower, trans, diag), overwrite_x)

    return dressed(trmv, name, dtype, docs.triangular("trmv", name, dtype))


def _make_trsv(dtype: Dtype) -> Callable[..., Any]:
    name = dtype.letter + "trsv"

    def trsv(
        a: Array,
        x: Array,
        incx: int = 1,
        offx: int = 0,
        lower: Flag = 0,
        trans: Flag = 0,
        diag: Flag = 0,
        overwrite_x: Flag = 0,
    ) -> Array:
        return _triangular("trsv", dtype, a, x, (offx, incx), (lower, trans, diag), overwrite_x)

    return dressed(trsv, name, dtype, docs.triangular("trsv", name, dtype))


def _triangular(
    which: str,
    dtype: Dtype,
    a: Array,
    x: Array,
    at_x: tuple[Any, Any],
    flags: tuple[Flag, Flag, Flag],
    overwrite: Flag,
) -> Array:
    """TRMV or TRSV; in place, or in a copy of x, but for a whole x, of which there is none."""
    name = dtype.letter + which
    uplo, trans = Uplo.parse(flags[0], name, "lower"), Trans.parse(flags[1], name, "trans")
    diag, matrix = Diag.parse(flags[2], name, "diag"), as_matrix(name, "a", a, dtype)
    flat, may_overwrite = as_vector(name, "x", x, dtype), enabled(overwrite, name, "overwrite_x")
    n = check_square(name, matrix)
    part = parts_of(name, {"x": VectorArgument(flat, *at_x)}, n)["x"]
    if not may_overwrite and part == Vector(flat.shape[0]) and len(getattr(x, "shape", (1,))) == 1:
        call = Call(name, {"a": matrix, "x": flat}, None, None, None, dtype, vectors={"x": part, "out": None})
        call.set_output(None, (), n, 1)
        return run_triangular(call, which, call.inputs[0], call.inputs[1], uplo, trans, diag, False)
    target = target_of(name, x, flat, dtype, may_overwrite and not may_share_memory(matrix, flat))
    arrays, vectors = {"a": matrix, "x": target.vector}, {"x": part, "out": part}
    call = Call(name, arrays, target.vector, None, None, dtype, vectors=vectors)
    call.set_output(target.vector, (), n, 1)
    run_triangular(call, which, call.inputs[0], call.inputs[1], uplo, trans, diag, True)
    return target.array


_REAL, _COMPLEX = (DTYPES["s"], DTYPES["d"]), (DTYPES["c"], DTYPES["z"])
sgemv, dgemv, cgemv, zgemv = map(_make_gemv, DTYPES.values())
ssymv, dsymv = map(_make_symv, _REAL)
chemv, zhemv = map(_make_symv, _COMPLEX)
strmv, dtrmv, ctrmv, ztrmv = map(_make_trmv, DTYPES.values())
strsv, dtrsv, ctrsv, ztrsv = map(_make_trsv, DTYPES.values())
