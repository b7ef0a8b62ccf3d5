"""Rows of Gaussian log-likelihoods: the quadratic form of an inverse, and the logarithm of a determinant."""

from __future__ import annotations

import torch
from torch import Tensor

import pyblasgpu as pb

from .cholesky_rows import cholesky_ex, cholesky_inverse, cholesky_solve
from .memory import (
    adjoint,
    by_columns,
    common_batch,
    hermitian_part,
    integers,
    mirrored,
    reduced,
    where_computed,
)
from .operators import Operator, register, total
from .product_rows import gemm, symm

__all__ = ["inv_quad_logdet", "inv_quad_logdet_backward"]


class InvQuadLogdet(Operator):
    """``tr(yᴴ k⁻¹ y)`` and ``log det k``, the factor of k, ``k⁻¹ y`` and info."""

    schema = "inv_quad_logdet(Tensor k, Tensor y)"
    returns = ("quad", "logdet", "factor", "x", "info")
    saved = ("k", "y", "factor", "x")
    constant = ("factor", "x", "info")
    of_first = ("logdet", "factor", "info")

    @staticmethod
    def empty(k, y):
        batch, real = common_batch("inv_quad_logdet", k, y), k.dtype.to_real()
        quad, logdet = k.new_empty(batch, dtype=real), k.new_empty(k.shape[:-2], dtype=real)
        x = by_columns(y, (*batch, *y.shape[-2:]))
        return quad, logdet, by_columns(k, k.shape), x, k.new_empty(k.shape[:-2], dtype=torch.int32)

    @staticmethod
    def compute(outputs, k, y):
        quad, logdet, factor, x, info = outputs
        factor.copy_(k)
        x.copy_(y)
        info.zero_()
        if k.numel():
            integers(pb.lapack.potrf(factor, 1, 0, 1)[1], info)
        if k.numel() and x.numel():
            pb.lapack.potrs(factor, x, 1, 1)
        quad.copy_((y.conj_physical() * x).real.sum((-2, -1)))
        logdet.copy_(factor.diagonal(dim1=-2, dim2=-1).real.log().sum(-1) * 2)

    @staticmethod
    def backward(s, gq, gd, *_):
        gq = s.x.new_zeros(s.x.shape[:-2], dtype=s.x.dtype.to_real()) if gq is None else gq
        gd = gq.new_zeros(s.k.shape[:-2]) if gd is None else gd
        if gd.shape != gq.shape:  # a matrix that several y share has one logarithm
            gd = gd * (gd.numel() / max(gq.numel(), 1))
        gk, gy = inv_quad_logdet_backward(s.k, s.y, s.factor, s.x, gq, gd)
        return reduced(gk, s.k), reduced(gy, s.y)

    @staticmethod
    def jvp(s, dk, dy):
        real = s.x.dtype.to_real()
        quad, logdet = s.x.new_zeros(s.x.shape[:-2], dtype=real), s.k.new_zeros(s.k.shape[:-2], dtype=real)
        factor, x = _factor_and_solution(s.k, s.y)
        if dk is not None:
            quad = quad - (x.conj() * symm(dk, x, None, 1, 0, True, True, True)).real.sum((-2, -1))
            whole = cholesky_inverse(factor, False)
            logdet = (whole.conj() * mirrored(dk)).real.sum((-2, -1))
        if dy is not None:
            quad = quad + 2 * (x.conj() * dy).real.sum((-2, -1))
        return quad, logdet, None, None, None


def _factor_and_solution(k: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """Return the factor of k and ``k⁻¹ y``, with their derivatives."""
    factor = cholesky_ex(k, False)[0]
    return factor, cholesky_solve(y, factor, False)


class InvQuadLogdetBackward(Operator):
    """Gradients of k, Hermitian, and y: ``gd k⁻¹ - gq x xᴴ`` by POTRI and a rank-k update, and ``2 gq x``."""

    schema = "inv_quad_logdet_backward(Tensor k, Tensor y, Tensor factor, Tensor x, Tensor gq, Tensor gd)"
    returns = ("gk", "gy")
    saved = ("k", "y", "gq", "gd")

    @staticmethod
    def empty(k, y, factor, x, gq, gd):
        batches = k.shape[:-2], y.shape[:-2], x.shape[:-2], gq.shape, gd.shape
        batch = torch.broadcast_shapes(*batches)
        return by_columns(k, (*batch, *k.shape[-2:])), by_columns(y, (*batch, *y.shape[-2:]))

    @staticmethod
    def compute(outputs, k, y, factor, x, gq, gd):
        gk, gy = outputs
        gk.copy_(factor)
        gy.copy_(x * gq[..., None, None])
        if gk.numel():
            pb.lapack.potri(gk, 1, 1)
            gk.mul_(gd[..., None, None])
            pb.gemmtr(gy, adjoint(x), alpha=-1, beta=1, lower=True, out=gk, **where_computed(gk))
            gk.copy_(mirrored(gk))
        gy.mul_(2)

    @staticmethod
    def backward(s, hk, hy):
        factor, x = _factor_and_solution(s.k, s.y)
        gq, gd = s.gq[..., None, None], s.gd[..., None, None]
        gk = ggq = ggd = None
        if hk is not None:
            h = hermitian_part(hk)
            hx = symm(h, x, None, 1, 0, True, True, True)
            whole = cholesky_inverse(factor, False)
            ggd = (whole.conj() * h).real.sum((-2, -1))
            gk = -gd * gemm(whole, gemm(h, whole, None, 1, 0, None), None, 1, 0, None)
        moved = total(hk is not None and -hx, hy)
        ggq = (x.conj() * total(hk is not None and -hx, hy is not None and 2 * hy)).real.sum((-2, -1))
        gy = cholesky_solve(2 * gq * moved, factor, False)
        gk = total(gk, -hermitian_part(gemm(gy, x.mH, None, 1, 0, None)))
        sums = zip((gk, gy, ggq, ggd), (s.k, s.y, s.gq, s.gd), strict=True)
        gk, gy, ggq, ggd = [grad if grad is None else reduced(grad, like) for grad, like in sums]
        return gk, gy, None, None, ggq, ggd

    @staticmethod
    def jvp(s, dk, dy, _, __, dgq, dgd):
        factor, x = _factor_and_solution(s.k, s.y)
        gq, gd = s.gq[..., None, None], s.gd[..., None, None]
        whole = cholesky_inverse(factor, False)
        right = total(dy, dk is not None and symm(dk, x, None, -1, 0, True, True, True))
        dx = None if right is None else cholesky_solve(right, factor, False)
        dgk = total(
            dgd is not None and dgd[..., None, None] * whole,
            dgq is not None and -gemm(dgq[..., None, None] * x, x.mH, None, 1, 0, None),
            dx is not None and -2 * hermitian_part(gemm(gq * dx, x.mH, None, 1, 0, None)),
            dk is not None
            and -gd * gemm(whole, gemm(mirrored(dk), whole, None, 1, 0, None), None, 1, 0, None),
        )
        dgy = total(dgq is not None and 2 * dgq[..., None, None] * x, dx is not None and 2 * gq * dx)
        return dgk, dgy


inv_quad_logdet, inv_quad_logdet_backward = register(InvQuadLogdet), register(InvQuadLogdetBackward)
