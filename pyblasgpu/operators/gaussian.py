"""Gradients and tangents of Gaussian likelihoods: a quadratic form of an inverse, and a log-determinant."""

from __future__ import annotations

from math import prod
from typing import Any

from .row import Row, total

__all__ = ["InvQuadLogdet", "InvQuadLogdetBackward"]


class InvQuadLogdet(Row):
    """``tr(yᴴ k⁻¹ y)`` and ``log det k``, the factor L of k, ``L⁻¹ y`` and info."""

    schema = "inv_quad_logdet(Tensor k, Tensor y)"
    returns = ("quad", "logdet", "factor", "white", "info")
    saved = ("k", "y", "factor", "white")
    constant = ("factor", "white", "info")
    of_first = ("logdet", "factor", "info")

    @staticmethod
    def backward(f, s, gq, gd, *_):
        gq = f.zeros(s.white.shape[:-2], s.k) if gq is None else gq
        gd = f.zeros(s.k.shape[:-2], s.k) if gd is None else gd
        if gd.shape != gq.shape:  # a matrix that several y share has one logarithm
            gd = gd * (prod(gd.shape) / max(prod(gq.shape), 1))
        return f.inv_quad_logdet_backward(s.k, s.y, s.factor, s.white, gq, gd)

    @staticmethod
    def jvp(f, s, dk, dy):
        quad, logdet = f.zeros(s.white.shape[:-2], s.k), f.zeros(s.k.shape[:-2], s.k)
        factor, x = _factor_and_solution(f, s.k, s.y)
        if dk is not None:
            quad = quad - (x.conj() * f.symm(dk, x, None, 1, 0, True, True, True)).real.sum((-2, -1))
            whole = f.cholesky_inverse(factor, False)
            logdet = (whole.conj() * f.mirrored(dk)).real.sum((-2, -1))
        if dy is not None:
            quad = quad + 2 * (x.conj() * dy).real.sum((-2, -1))
        return quad, logdet, None, None, None


def _factor_and_solution(f: Any, k: Any, y: Any) -> tuple[Any, Any]:
    """Return the factor of k and ``k⁻¹ y``, with their derivatives."""
    factor = f.cholesky_ex(k, False)[0]
    return factor, f.cholesky_solve(y, factor, False)


class InvQuadLogdetBackward(Row):
    """Gradients of k, Hermitian, and y, where x is ``k⁻¹ y``. They are ``gd k⁻¹ - gq x xᴴ`` by POTRI and a
    rank-k update, and ``2 gq x``.
    """

    schema = "inv_quad_logdet_backward(Tensor k, Tensor y, Tensor factor, Tensor white, Tensor gq, Tensor gd)"
    returns = ("gk", "gy")
    saved = ("k", "y", "gq", "gd")

    @staticmethod
    def backward(f, s, hk, hy):
        factor, x = _factor_and_solution(f, s.k, s.y)
        gq, gd = s.gq[..., None, None], s.gd[..., None, None]
        gk = ggd = None
        if hk is not None:
            h = f.hermitian_part(hk)
            hx = f.symm(h, x, None, 1, 0, True, True, True)
            whole = f.cholesky_inverse(factor, False)
            ggd = (whole.conj() * h).real.sum((-2, -1))
            gk = -gd * f.gemm(whole, f.gemm(h, whole, None, 1, 0, None), None, 1, 0, None)
        moved = total(hk is not None and -hx, hy)
        ggq = (x.conj() * total(hk is not None and -hx, hy is not None and 2 * hy)).real.sum((-2, -1))
        gy = f.cholesky_solve(2 * gq * moved, factor, False)
        gk = total(gk, -f.hermitian_part(f.gemm(gy, f.adjoint(x), None, 1, 0, None)))
        return gk, gy, None, None, ggq, ggd

    @staticmethod
    def jvp(f, s, dk, dy, _, __, dgq, dgd):
        factor, x = _factor_and_solution(f, s.k, s.y)
        gq, gd = s.gq[..., None, None], s.gd[..., None, None]
        whole, up = f.cholesky_inverse(factor, False), f.adjoint(x)
        right = total(dy, dk is not None and f.symm(dk, x, None, -1, 0, True, True, True))
        dx = None if right is None else f.cholesky_solve(right, factor, False)
        dgk = total(
            dgd is not None and dgd[..., None, None] * whole,
            dgq is not None and -f.gemm(dgq[..., None, None] * x, up, None, 1, 0, None),
            dx is not None and -2 * f.hermitian_part(f.gemm(gq * dx, up, None, 1, 0, None)),
            dk is not None
            and -gd * f.gemm(whole, f.gemm(f.mirrored(dk), whole, None, 1, 0, None), None, 1, 0, None),
        )
        dgy = total(dgq is not None and 2 * dgq[..., None, None] * x, dx is not None and 2 * gq * dx)
        return dgk, dgy
