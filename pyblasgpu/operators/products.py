"""Gradients and tangents of Level 3: products, rank-k updates and triangular systems."""

from __future__ import annotations

from typing import Any

from .row import Row, conj, total

__all__ = ["Gemm", "Gemmtr", "RankK", "Symm", "Trmm", "Trsm"]


class Gemm(Row):
    """``alpha a b + beta c``."""

    schema = "gemm(Tensor a, Tensor b, Tensor? c, Scalar alpha, Scalar beta, str? method)"
    saved = ("a", "b", "c")

    @staticmethod
    def backward(f, s, g):
        alpha = conj(s.alpha)
        return (
            s.needs["a"] and f.gemm(g, f.adjoint(s.b), None, alpha, 0, s.method),
            s.needs["b"] and f.gemm(f.adjoint(s.a), g, None, alpha, 0, s.method),
            s.needs["c"] and conj(s.beta) * g,
        )

    @staticmethod
    def jvp(f, s, da, db, dc):
        return total(
            da is not None and f.gemm(da, s.b, None, s.alpha, 0, s.method),
            db is not None and f.gemm(s.a, db, None, s.alpha, 0, s.method),
            dc is not None and s.beta * dc,
        )


class Gemmtr(Row):
    """One triangle of ``alpha a b + beta c``; the other one is zero."""

    schema = "gemmtr(Tensor a, Tensor b, Tensor? c, Scalar alpha, Scalar beta, bool lower)"
    saved = ("a", "b", "c")

    @staticmethod
    def backward(f, s, g):
        alpha, lower = conj(s.alpha), s.lower
        return (
            s.needs["a"] and f.trmm(g, f.adjoint(s.b), alpha, True, lower, False),
            s.needs["b"] and f.trmm(g, f.adjoint(s.a), alpha, False, lower, False),
            s.needs["c"] and conj(s.beta) * f.triangle(g, lower),
        )

    @staticmethod
    def jvp(f, s, da, db, dc):
        return total(
            da is not None and f.gemmtr(da, s.b, None, s.alpha, 0, s.lower),
            db is not None and f.gemmtr(s.a, db, None, s.alpha, 0, s.lower),
            dc is not None and s.beta * f.triangle(dc, s.lower),
        )


class RankK(Row):
    """One triangle of ``alpha a aᵀ + beta c``, or of ``alpha a aᴴ + beta c``; the other one is zero."""

    schema = "rank_k(Tensor a, Tensor? c, Scalar alpha, Scalar beta, bool lower, bool hermitian)"
    saved = ("a", "c")

    @staticmethod
    def backward(f, s, g):
        alpha, lower, hermitian = conj(s.alpha), s.lower, s.hermitian
        ga = None
        if s.needs["a"]:
            factor, other = (s.a, f.adjoint(g)) if hermitian else (s.a.conj(), g.mT)
            ga = f.trmm(g, factor, alpha, True, lower, False)
            ga = ga + f.trmm(other, factor, alpha, True, not lower, False)
        gc = s.needs["c"] and conj(s.beta) * f.with_real_diagonal(f.triangle(g, lower), hermitian)
        return ga, gc

    @staticmethod
    def jvp(f, s, da, dc):
        turned = f.adjoint if s.hermitian else lambda x: x.mT
        return total(
            da is not None and f.gemmtr(da, turned(s.a), None, s.alpha, 0, s.lower),
            da is not None and f.gemmtr(s.a, turned(da), None, s.alpha, 0, s.lower),
            dc is not None and s.beta * f.with_real_diagonal(f.triangle(dc, s.lower), s.hermitian),
        )


class Symm(Row):
    """``alpha a b + beta c`` or ``alpha b a + beta c`` with `a` symmetric or Hermitian, in one triangle."""

    schema = (
        "symm(Tensor a, Tensor b, Tensor? c, Scalar alpha, Scalar beta, "
        "bool left, bool lower, bool hermitian)"
    )
    saved = ("a", "b", "c")

    @staticmethod
    def backward(f, s, g):
        alpha, left, lower, hermitian = conj(s.alpha), s.left, s.lower, s.hermitian
        ga = None
        if s.needs["a"]:
            # of the cotangent w of the whole matrix: w, and what its other triangle adds to this one
            one, other = (g, f.adjoint(s.b)) if left else (f.adjoint(s.b), g)
            swapped = (f.adjoint(other), f.adjoint(one)) if hermitian else (other.mT, one.mT)
            ga = f.gemmtr(one, other, None, alpha, 0, lower)
            mirror = f.gemmtr(*swapped, None, conj(alpha) if hermitian else alpha, 0, lower)
            ga = f.with_real_diagonal(ga + f.triangle(mirror, lower, strict=True), hermitian)
        a = s.a if hermitian else s.a.conj()
        return (
            ga,
            s.needs["b"] and f.symm(a, g, None, alpha, 0, left, lower, hermitian),
            s.needs["c"] and conj(s.beta) * g,
        )

    @staticmethod
    def jvp(f, s, da, db, dc):
        flags = s.left, s.lower, s.hermitian
        return total(
            da is not None and f.symm(da, s.b, None, s.alpha, 0, *flags),
            db is not None and f.symm(s.a, db, None, s.alpha, 0, *flags),
            dc is not None and s.beta * dc,
        )


class Trmm(Row):
    """``alpha a b`` or ``alpha b a`` with a triangle `a`."""

    schema = "trmm(Tensor a, Tensor b, Scalar alpha, bool left, bool lower, bool unit)"
    saved = ("a", "b")

    @staticmethod
    def backward(f, s, g):
        alpha, left, lower, unit = conj(s.alpha), s.left, s.lower, s.unit
        one, other = (g, f.adjoint(s.b)) if left else (f.adjoint(s.b), g)
        return (
            s.needs["a"] and _within(f, f.gemmtr(one, other, None, alpha, 0, lower), lower, unit),
            s.needs["b"] and f.trmm(f.adjoint(s.a), g, alpha, left, not lower, unit),
        )

    @staticmethod
    def jvp(f, s, da, db):
        return total(
            da is not None and f.trmm(_within(f, da, s.lower, s.unit), s.b, s.alpha, s.left, s.lower, False),
            db is not None and f.trmm(s.a, db, s.alpha, s.left, s.lower, s.unit),
        )


def _within(f: Any, x: Any, lower: bool, unit: bool) -> Any:
    """Return what belongs to a triangle: no diagonal if that is one of ones."""
    return f.triangle(x, lower, strict=True) if unit else x


class Trsm(Row):
    """Solution x of ``a x = alpha b`` or ``x a = alpha b`` with a triangle `a`."""

    schema = "trsm(Tensor a, Tensor b, Scalar alpha, bool left, bool lower, bool unit)"
    saved = ("a", "b", "out")

    @staticmethod
    def backward(f, s, g):
        # u = a⁻ᴴ g, of which the gradients are -u xᴴ, within the triangle, and conj(alpha) u
        u = f.trsm(f.adjoint(s.a), g, 1, s.left, not s.lower, s.unit)
        one, other = (u, f.adjoint(s.out)) if s.left else (f.adjoint(s.out), u)
        return (
            s.needs["a"] and _within(f, f.gemmtr(one, other, None, -1, 0, s.lower), s.lower, s.unit),
            s.needs["b"] and (u if s.alpha == 1 else conj(s.alpha) * u),
        )

    @staticmethod
    def jvp(f, s, da, db):
        right = total(
            da is not None and f.trmm(_within(f, da, s.lower, s.unit), s.out, -1, s.left, s.lower, False),
            db is not None and s.alpha * db,
        )
        return f.trsm(s.a, right, 1, s.left, s.lower, s.unit)
