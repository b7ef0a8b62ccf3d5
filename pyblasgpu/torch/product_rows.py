"""Rows of Level 3: products, rank-k updates and triangular systems.

A transposed operand is a view, with its conjugation: the kernels take any strides.
"""

from __future__ import annotations

from typing import Any

from torch import Tensor

import pyblasgpu as pb

from .memory import by_columns, by_rows, common_batch, reduced, triangle, where_computed
from .operators import Operator, register, total

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


def _with_added(name: str, shape: Any, like: Tensor, c: Any) -> Any:
    """Return the shape of a result to which `c` is added."""
    if c is None:
        return shape
    if c.dtype != like.dtype or c.device != like.device:
        raise RuntimeError(f"{name}: c is {c.dtype} on {c.device}, and a {like.dtype} on {like.device}")
    if c.ndim < 2 or tuple(c.shape[-2:]) != tuple(shape[-2:]):
        raise ValueError(f"{name}: c has shape {tuple(c.shape)}, and the product {tuple(shape)}")
    return (*common_batch(name, like.new_empty(0).expand(*shape[:-2], 0, 0), c), *shape[-2:])


def _conj(number: Any) -> Any:
    return number.conjugate() if isinstance(number, complex) else number


def _options(out: Tensor, c: Any, alpha: Any, beta: Any) -> dict[str, Any]:
    """Return what the library's products take: the output holds what `beta` scales."""
    if c is not None:
        out.copy_(c)
    return {"alpha": alpha, "beta": 0 if c is None else beta, "out": out, **where_computed(out)}


class Gemm(Operator):
    """``alpha a b + beta c``."""

    schema = "gemm(Tensor a, Tensor b, Tensor? c, Scalar alpha, Scalar beta, str? method)"
    saved = ("a", "b", "c")

    @staticmethod
    def empty(a, b, c, alpha, beta, method):
        return by_rows(a, _product_shape("gemm", a, b, c))

    @staticmethod
    def compute(out, a, b, c, alpha, beta, method):
        pb.gemm(a, b, method=method, **_options(out, c, alpha, beta))

    @staticmethod
    def backward(s, g):
        alpha = _conj(s.alpha)
        return (
            s.needs["a"] and reduced(gemm(g, s.b.mH, None, alpha, 0, s.method), s.a),
            s.needs["b"] and reduced(gemm(s.a.mH, g, None, alpha, 0, s.method), s.b),
            s.needs["c"] and reduced(_conj(s.beta) * g, s.c),
        )

    @staticmethod
    def jvp(s, da, db, dc):
        return total(
            da is not None and gemm(da, s.b, None, s.alpha, 0, s.method),
            db is not None and gemm(s.a, db, None, s.alpha, 0, s.method),
            dc is not None and s.beta * dc,
        )


class Gemmtr(Operator):
    """One triangle of ``alpha a b + beta c``; the other one is zero."""

    schema = "gemmtr(Tensor a, Tensor b, Tensor? c, Scalar alpha, Scalar beta, bool lower)"
    saved = ("a", "b", "c")

    @staticmethod
    def empty(a, b, c, alpha, beta, lower):
        shape = _product_shape("gemmtr", a, b, c)
        if shape[-1] != shape[-2]:
            raise ValueError(f"gemmtr: the product of {tuple(a.shape)} and {tuple(b.shape)} is not square")
        return by_rows(a, shape)

    @staticmethod
    def compute(out, a, b, c, alpha, beta, lower):
        options = _options(out, None if c is None else triangle(c, lower), alpha, beta)
        if c is None:
            out.zero_()
        pb.gemmtr(a, b, lower=lower, **options)

    @staticmethod
    def backward(s, g):
        alpha, lower = _conj(s.alpha), s.lower
        return (
            s.needs["a"] and reduced(trmm(g, s.b.mH, alpha, True, lower, False), s.a),
            s.needs["b"] and reduced(trmm(g, s.a.mH, alpha, False, lower, False), s.b),
            s.needs["c"] and reduced(_conj(s.beta) * triangle(g, lower), s.c),
        )

    @staticmethod
    def jvp(s, da, db, dc):
        return total(
            da is not None and gemmtr(da, s.b, None, s.alpha, 0, s.lower),
            db is not None and gemmtr(s.a, db, None, s.alpha, 0, s.lower),
            dc is not None and s.beta * triangle(dc, s.lower),
        )


class RankK(Operator):
    """One triangle of ``alpha a aᵀ + beta c``, or of ``alpha a aᴴ + beta c``; the other one is zero."""

    schema = "rank_k(Tensor a, Tensor? c, Scalar alpha, Scalar beta, bool lower, bool hermitian)"
    saved = ("a", "c")

    @staticmethod
    def empty(a, c, alpha, beta, lower, hermitian):
        name = "herk" if hermitian else "syrk"
        _check_matrices(name, a=a)
        return by_rows(a, _with_added(name, (*a.shape[:-1], a.shape[-2]), a, c))

    @staticmethod
    def compute(out, a, c, alpha, beta, lower, hermitian):
        options = _options(out, None if c is None else triangle(c, lower), alpha, beta)
        if c is None:
            out.zero_()
        a = a.expand(*out.shape[:-2], *a.shape[-2:])
        (pb.herk if hermitian else pb.syrk)(a, lower=lower, **options)

    @staticmethod
    def backward(s, g):
        alpha, lower, hermitian = _conj(s.alpha), s.lower, s.hermitian
        if s.needs["a"]:
            factor, other = (s.a, g.mH) if hermitian else (s.a.conj(), g.mT)
            ga = trmm(g, factor, alpha, True, lower, False) + trmm(
                other, factor, alpha, True, not lower, False
            )
        return (
            s.needs["a"] and reduced(ga, s.a),
            s.needs["c"] and reduced(_conj(s.beta) * _real_diagonal(triangle(g, lower), hermitian), s.c),
        )

    @staticmethod
    def jvp(s, da, dc):
        one, other = (s.a.mH, da is not None and da.mH) if s.hermitian else (s.a.mT, da is not None and da.mT)
        return total(
            da is not None and gemmtr(da, one, None, s.alpha, 0, s.lower),
            da is not None and gemmtr(s.a, other, None, s.alpha, 0, s.lower),
            dc is not None and s.beta * _real_diagonal(triangle(dc, s.lower), s.hermitian),
        )


def _real_diagonal(x: Tensor, hermitian: bool) -> Tensor:
    """Return matrices whose diagonal has lost its imaginary part where they are Hermitian."""
    if not (hermitian and x.is_complex()):
        return x
    imaginary = x.diagonal(dim1=-2, dim2=-1).imag * 1j
    return x - imaginary.to(x.dtype).diag_embed()


class Symm(Operator):
    """``alpha a b + beta c`` or ``alpha b a + beta c`` with `a` symmetric or Hermitian, in one triangle."""

    schema = (
        "symm(Tensor a, Tensor b, Tensor? c, Scalar alpha, Scalar beta, "
        "bool left, bool lower, bool hermitian)"
    )
    saved = ("a", "b", "c")

    @staticmethod
    def empty(a, b, c, alpha, beta, left, lower, hermitian):
        return by_rows(a, _side_shape("hemm" if hermitian else "symm", a, b, left, c))

    @staticmethod
    def compute(out, a, b, c, alpha, beta, left, lower, hermitian):
        function = pb.hemm if hermitian else pb.symm
        function(a, b, side="L" if left else "R", lower=lower, **_options(out, c, alpha, beta))

    @staticmethod
    def backward(s, g):
        alpha, left, lower, hermitian = _conj(s.alpha), s.left, s.lower, s.hermitian
        ga = None
        if s.needs["a"]:
            # of the cotangent w of the whole matrix: w, and what its other triangle adds to this one
            one, other = (g, s.b.mH) if left else (s.b.mH, g)
            swapped = (other.mH, one.mH) if hermitian else (other.mT, one.mT)
            ga = gemmtr(one, other, None, alpha, 0, lower)
            mirror = gemmtr(*swapped, None, _conj(alpha) if hermitian else alpha, 0, lower)
            ga = reduced(_real_diagonal(ga + triangle(mirror, lower, strict=True), hermitian), s.a)
        a = s.a if hermitian else s.a.conj()
        return (
            ga,
            s.needs["b"] and reduced(symm(a, g, None, alpha, 0, left, lower, hermitian), s.b),
            s.needs["c"] and reduced(_conj(s.beta) * g, s.c),
        )

    @staticmethod
    def jvp(s, da, db, dc):
        flags = s.left, s.lower, s.hermitian
        return total(
            da is not None and symm(da, s.b, None, s.alpha, 0, *flags),
            db is not None and symm(s.a, db, None, s.alpha, 0, *flags),
            dc is not None and s.beta * dc,
        )


class Trmm(Operator):
    """``alpha a b`` or ``alpha b a`` with a triangle `a`."""

    schema = "trmm(Tensor a, Tensor b, Scalar alpha, bool left, bool lower, bool unit)"
    saved = ("a", "b")

    @staticmethod
    def empty(a, b, alpha, left, lower, unit):
        return by_rows(a, _side_shape("trmm", a, b, left))

    @staticmethod
    def compute(out, a, b, alpha, left, lower, unit):
        flags = {"side": "L" if left else "R", "lower": lower, "unit_diag": unit}
        pb.trmm(a, b, alpha=alpha, out=out, **flags, **where_computed(out))

    @staticmethod
    def backward(s, g):
        alpha, left, lower, unit = _conj(s.alpha), s.left, s.lower, s.unit
        one, other = (g, s.b.mH) if left else (s.b.mH, g)
        return (
            s.needs["a"] and reduced(_within(gemmtr(one, other, None, alpha, 0, lower), lower, unit), s.a),
            s.needs["b"] and reduced(trmm(s.a.mH, g, alpha, left, not lower, unit), s.b),
        )

    @staticmethod
    def jvp(s, da, db):
        return total(
            da is not None and trmm(_within(da, s.lower, s.unit), s.b, s.alpha, s.left, s.lower, False),
            db is not None and trmm(s.a, db, s.alpha, s.left, s.lower, s.unit),
        )


def _within(x: Tensor, lower: bool, unit: bool) -> Tensor:
    """Return what belongs to a triangle: no diagonal if that is one of ones."""
    return triangle(x, lower, strict=True) if unit else x


class Trsm(Operator):
    """Solution x of ``a x = alpha b`` or ``x a = alpha b`` with a triangle `a`."""

    schema = "trsm(Tensor a, Tensor b, Scalar alpha, bool left, bool lower, bool unit)"
    saved = ("a", "b", "out")

    @staticmethod
    def empty(a, b, alpha, left, lower, unit):
        return by_columns(b, _side_shape("trsm", a, b, left))

    @staticmethod
    def compute(out, a, b, alpha, left, lower, unit):
        out.copy_(b)
        flags = {"side": "L" if left else "R", "lower": lower, "unit_diag": unit}
        pb.trsm(a, out, alpha=alpha, out=out, **flags, **where_computed(out))

    @staticmethod
    def backward(s, g):
        # u = a⁻ᴴ g, of which the gradients are -u xᴴ, within the triangle, and conj(alpha) u
        u = trsm(s.a.mH, g, 1, s.left, not s.lower, s.unit)
        one, other = (u, s.out.mH) if s.left else (s.out.mH, u)
        return (
            s.needs["a"] and reduced(_within(gemmtr(one, other, None, -1, 0, s.lower), s.lower, s.unit), s.a),
            s.needs["b"] and reduced(u if s.alpha == 1 else _conj(s.alpha) * u, s.b),
        )

    @staticmethod
    def jvp(s, da, db):
        right = total(
            da is not None and trmm(_within(da, s.lower, s.unit), s.out, -1, s.left, s.lower, False),
            db is not None and s.alpha * db,
        )
        return trsm(s.a, right, 1, s.left, s.lower, s.unit)


gemm, gemmtr, rank_k, symm = register(Gemm), register(Gemmtr), register(RankK), register(Symm)
trmm, trsm = register(Trmm), register(Trsm)
