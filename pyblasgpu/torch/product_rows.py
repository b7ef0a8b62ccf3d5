"""Rows of Level 3: products, rank-k updates and triangular systems.

A transposed operand is a view, with its conjugation: the kernels take any strides.
"""

from __future__ import annotations

from typing import Any

from torch import Tensor

import pyblasgpu as pb

from ..operators import products as rows
from ..types import DTYPES, Diag, Side, Uplo, product_method
from .launched import Gradients, Places, launched, of_gradients, of_level3
from .memory import by_columns, by_rows, common_batch, where_computed
from .operators import Operator, register
from .served import LETTERS
from .tensors import COMPUTED

__all__ = ["gemm", "gemmtr", "rank_k", "symm", "trmm", "trsm"]


def _product_shape(name: str, a: Tensor, b: Tensor, c: Any) -> Any:
    """Return the shape of a product; ValueError where extents do not fit."""
    _check_matrices(name, a=a, b=b)
    batch = common_batch(name, a, b)
    if a.shape[-1] != b.shape[-2]:
        raise ValueError(f"{name}: a has shape {tuple(a.shape)} and b {tuple(b.shape)}")
    return _with_added(name, (*batch, a.shape[-2], b.shape[-1]), a, c)


def _side_shape(name: str, a: Tensor, b: Tensor, left: bool, c: Any = None) -> Any:
    """Return the shape of the product of a square `a` and `b`."""
    _check_matrices(name, a=a, b=b)
    order = b.shape[-2 if left else -1]
    if a.shape[-1] != a.shape[-2] or a.shape[-1] != order:
        side = "left" if left else "right"
        raise ValueError(f"{name}: a has shape {tuple(a.shape)} and is on the {side} of b, {tuple(b.shape)}")
    return _with_added(name, (*common_batch(name, a, b), *b.shape[-2:]), a, c)


def _check_matrices(name: str, **operands: Tensor) -> None:
    for argument, x in operands.items():
        if x.ndim < 2:
            raise ValueError(
                f"{name}: {argument} has shape {tuple(x.shape)}; a matrix, or a stack, is needed"
            )
        if x.dtype not in LETTERS:
            raise TypeError(
                f"{name}: {argument} is {x.dtype}; float32, float64, complex64 and complex128 are served"
            )


def _with_added(name: str, shape: Any, like: Tensor, c: Any) -> Any:
    """Return the shape of a result to which `c` is added."""
    if c is None:
        return shape
    if c.dtype != like.dtype or c.device != like.device:
        raise RuntimeError(f"{name}: c is {c.dtype} on {c.device}, and a {like.dtype} on {like.device}")
    if c.ndim < 2 or tuple(c.shape[-2:]) != tuple(shape[-2:]):
        raise ValueError(f"{name}: c has shape {tuple(c.shape)}, and the product {tuple(shape)}")
    return (*common_batch(name, like.new_empty(0).expand(*shape[:-2], 0, 0), c), *shape[-2:])


def _options(out: Tensor, c: Any, alpha: Any, beta: Any) -> dict[str, Any]:
    """Return what the library's products take: the output holds what `beta` scales."""
    if c is not None:
        out.copy_(c)
    return {"alpha": alpha, "beta": 0 if c is None else beta, "out": out, **where_computed(out)}


def _uplo(lower: bool) -> Uplo:
    return Uplo.LOWER if lower else Uplo.UPPER


def _side(left: bool) -> Side:
    return Side.LEFT if left else Side.RIGHT


def _diag(unit: bool) -> Diag:
    return Diag.UNIT if unit else Diag.NON_UNIT


class _ProductGradients(Gradients):
    places = Places(("a", "b", "g", "alpha", "method"), (0, 1, 2), (4,), (3,))

    @staticmethod
    def launches(a, b, g, alpha, method):
        return of_gradients("of_product", product_method(method, DTYPES[LETTERS[a.dtype]], "gemm"))

    @staticmethod
    def empty(a, b, g, alpha, method):
        return by_rows(a, a.shape), by_rows(b, b.shape)


class Gemm(rows.Gemm, Operator):
    @staticmethod
    def at_once(s, g):
        if not s.needs["a"] or not s.needs["b"] or s.a.shape[:-2] != s.b.shape[:-2]:
            return None
        both = launched(_ProductGradients, (s.a, s.b, g, s.alpha, s.method))
        return both and (*both, s.needs["c"] and s.beta * g)

    @staticmethod
    def launches(a, b, c, alpha, beta, method):
        method = product_method(method, DTYPES[LETTERS[a.dtype]], "gemm")
        return of_level3("gemm", 2, c, method=method)

    @staticmethod
    def empty(a, b, c, alpha, beta, method):
        return by_rows(a, _product_shape("gemm", a, b, c))

    @staticmethod
    def compute(out, a, b, c, alpha, beta, method):
        pb.gemm(a, b, method=method, **_options(out, c, alpha, beta))


class Gemmtr(rows.Gemmtr, Operator):
    @staticmethod
    def launches(a, b, c, alpha, beta, lower):
        return of_level3("gemmtr", 2, c, uplo=_uplo(lower), is_new_output=True)

    @staticmethod
    def empty(a, b, c, alpha, beta, lower):
        shape = _product_shape("gemmtr", a, b, c)
        if shape[-1] != shape[-2]:
            raise ValueError(f"gemmtr: the product of {tuple(a.shape)} and {tuple(b.shape)} is not square")
        return by_rows(a, shape)

    @staticmethod
    def compute(out, a, b, c, alpha, beta, lower):
        options = _options(out, None if c is None else COMPUTED.triangle(c, lower), alpha, beta)
        if c is None:
            out.zero_()
        pb.gemmtr(a, b, lower=lower, **options)


class RankK(rows.RankK, Operator):
    @staticmethod
    def launches(a, c, alpha, beta, lower, hermitian):
        flags = {"uplo": _uplo(lower), "hermitian": hermitian and a.is_complex()}
        return of_level3("syrk", 1, c, is_new_output=True, **flags)

    @staticmethod
    def empty(a, c, alpha, beta, lower, hermitian):
        name = "herk" if hermitian else "syrk"
        _check_matrices(name, a=a)
        return by_rows(a, _with_added(name, (*a.shape[:-1], a.shape[-2]), a, c))

    @staticmethod
    def compute(out, a, c, alpha, beta, lower, hermitian):
        options = _options(out, None if c is None else COMPUTED.triangle(c, lower), alpha, beta)
        if c is None:
            out.zero_()
        a = a.expand(*out.shape[:-2], *a.shape[-2:])
        (pb.herk if hermitian else pb.syrk)(a, lower=lower, **options)


class _SideGradients(Gradients):
    """Gradients of a product with a matrix `a` of which one triangle counts."""

    places = Places(("a", "b", "g", "alpha", "left", "lower"), (0, 1, 2), (4, 5), (3,))

    @staticmethod
    def empty(a, b, g, alpha, left, lower):
        return by_rows(a, a.shape), by_rows(b, b.shape)


class _SymmetricGradients(_SideGradients):
    @staticmethod
    def launches(a, b, g, alpha, left, lower):
        return of_gradients("of_symmetric_product", _side(left), _uplo(lower))


class _TriangularProductGradients(_SideGradients):
    @staticmethod
    def launches(a, b, g, alpha, left, lower):
        return of_gradients("of_triangular_product", _side(left), _uplo(lower))


class Symm(rows.Symm, Operator):
    @staticmethod
    def at_once(s, g):
        if not (s.needs["a"] and s.needs["b"]) or s.a.shape[:-2] != s.b.shape[:-2]:
            return None
        if s.hermitian and s.a.is_complex():
            return None
        both = launched(_SymmetricGradients, (s.a, s.b, g, s.alpha, s.left, s.lower))
        return both and (*both, s.needs["c"] and s.beta * g)

    @staticmethod
    def launches(a, b, c, alpha, beta, left, lower, hermitian):
        hermitian = hermitian and a.is_complex()
        return of_level3("symm", 2, c, side=_side(left), uplo=_uplo(lower), hermitian=hermitian)

    @staticmethod
    def empty(a, b, c, alpha, beta, left, lower, hermitian):
        return by_rows(a, _side_shape("hemm" if hermitian else "symm", a, b, left, c))

    @staticmethod
    def compute(out, a, b, c, alpha, beta, left, lower, hermitian):
        function = pb.hemm if hermitian else pb.symm
        function(a, b, side="L" if left else "R", lower=lower, **_options(out, c, alpha, beta))


class Trmm(rows.Trmm, Operator):
    @staticmethod
    def at_once(s, g):
        if not (s.needs["a"] and s.needs["b"]) or s.unit or s.a.shape[:-2] != s.b.shape[:-2]:
            return None
        return launched(_TriangularProductGradients, (s.a, s.b, g, s.alpha, s.left, s.lower))

    @staticmethod
    def launches(a, b, alpha, left, lower, unit):
        return of_level3("trmm", 2, side=_side(left), uplo=_uplo(lower), diag=_diag(unit))

    @staticmethod
    def empty(a, b, alpha, left, lower, unit):
        return by_rows(a, _side_shape("trmm", a, b, left))

    @staticmethod
    def compute(out, a, b, alpha, left, lower, unit):
        flags = {"side": "L" if left else "R", "lower": lower, "unit_diag": unit}
        pb.trmm(a, b, alpha=alpha, out=out, **flags, **where_computed(out))


class _TriangularGradients(Gradients):
    places = Places(("a", "x", "g", "left", "lower"), (0, 1, 2), (3, 4), ())

    @staticmethod
    def launches(a, x, g, left, lower):
        return of_gradients("of_triangular_solution", _side(left), _uplo(lower))

    @staticmethod
    def empty(a, x, g, left, lower):
        return by_rows(a, a.shape), by_columns(x, x.shape)


class Trsm(rows.Trsm, Operator):
    @staticmethod
    def at_once(s, g):
        if not s.needs["a"] or s.unit or s.alpha != 1 or s.a.shape[:-2] != s.out.shape[:-2]:
            return None
        return launched(_TriangularGradients, (s.a, s.out, g, s.left, s.lower))

    @staticmethod
    def launches(a, b, alpha, left, lower, unit):
        return of_level3("trsm", 2, side=_side(left), uplo=_uplo(lower), diag=_diag(unit))

    @staticmethod
    def empty(a, b, alpha, left, lower, unit):
        return by_columns(b, _side_shape("trsm", a, b, left))

    @staticmethod
    def compute(out, a, b, alpha, left, lower, unit):
        flags = {"side": "L" if left else "R", "lower": lower, "unit_diag": unit}
        pb.trsm(a, b, alpha=alpha, out=out, **flags, **where_computed(out))


gemm, gemmtr, rank_k, symm = register(Gemm), register(Gemmtr), register(RankK), register(Symm)
trmm, trsm = register(Trmm), register(Trsm)
