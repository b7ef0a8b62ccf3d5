"""Rows of Gaussian log-likelihoods: the quadratic form of an inverse, and the logarithm of a determinant."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

import pyblasgpu as pb

from ..operators import gaussian as rows
from ..types import Uplo
from .early_info import early
from .launched import enqueue, listed
from .memory import adjoint, by_columns, common_batch, integers, mirror, where_computed
from .operators import Operator, register

__all__ = ["inv_quad_logdet", "inv_quad_logdet_backward"]


class InvQuadLogdet(rows.InvQuadLogdet, Operator):
    operands = ("k", "info", "factor")

    @staticmethod
    def launches(k, y):
        return listed("cholesky", uplo=Uplo.LOWER)

    @staticmethod
    def finish(outputs, k, y):
        quad, logdet, factor, white, info = outputs
        if early.is_wanted:
            early.begin(info)
        names = "factor", "y", "info", "quad", "logdet", "white"
        if not enqueue("definite_terms", names, factor, y, info, quad, logdet, white):
            _terms(outputs, y)

    @staticmethod
    def empty(k, y):
        batch, real = common_batch("inv_quad_logdet", k, y), k.dtype.to_real()
        quad, logdet = k.new_empty(batch, dtype=real), k.new_empty(k.shape[:-2], dtype=real)
        white = by_columns(y, (*batch, *y.shape[-2:]))
        return quad, logdet, by_columns(k, k.shape), white, k.new_empty(k.shape[:-2], dtype=torch.int32)

    @staticmethod
    def compute(outputs, k, y):
        factor, info = outputs[2], outputs[4]
        factor.copy_(k)
        if k.numel():
            integers(pb.lapack.potrf(factor, 1, 1, 1)[1], info)
        else:
            info.zero_()
        _terms(outputs, y)


class InvQuadLogdetBackward(rows.InvQuadLogdetBackward, Operator):
    operands = ("factor", "white", "gy", "gk")

    @staticmethod
    def launches(k, y, factor, white, gq, gd):
        return listed("half_gradients")

    @staticmethod
    def finish(outputs, k, y, factor, white, gq, gd):
        gk, gy = outputs
        gk.mul_(gd[..., None, None] if gd.ndim else gd)
        if not enqueue("downdated", ("gq", "gy", "gk"), gq, gy, gk):
            _update(gk, gy, gq)

    @staticmethod
    def empty(k, y, factor, white, gq, gd):
        batches = k.shape[:-2], y.shape[:-2], white.shape[:-2], gq.shape, gd.shape
        batch = torch.broadcast_shapes(*batches)
        return by_columns(k, (*batch, *k.shape[-2:])), by_columns(y, (*batch, *y.shape[-2:]))

    @staticmethod
    def compute(outputs, k, y, factor, white, gq, gd):
        gk, gy = outputs
        gk.copy_(factor)
        gy.copy_(white)
        if gk.numel():
            _substitute(factor, gy, "C")
            pb.lapack.potri(gk, 1, 1)
            gk.mul_(gd[..., None, None])
        _update(gk, gy, gq)


def _terms(outputs: tuple[Tensor, ...], y: Tensor) -> None:
    """Fill all but the factor and info."""
    quad, logdet, factor, white, _ = outputs
    white.copy_(y)
    _substitute(factor, white, "N")
    torch.sum((white * white.conj_physical()).real, (-2, -1), out=quad)
    torch.sum(factor.diagonal(dim1=-2, dim2=-1).real.log(), -1, out=logdet).mul_(2)


def _substitute(factor: Tensor, b: Tensor, trans: Any) -> None:
    """Solve with lower triangles in place."""
    if b.numel():
        factor = factor.expand(*b.shape[:-2], *factor.shape[-2:])
        pb.trsm(factor, b, lower=True, trans=trans, out=b, **where_computed(b))


def _update(gk: Tensor, x: Tensor, gq: Tensor) -> None:
    """Turn a lower triangle into the Hermitian matrices ``gk - gq x xᴴ``, and x into ``2 gq x``."""
    y = x * gq[..., None, None]
    if gk.numel():
        pb.gemmtr(y, adjoint(x), alpha=-1, beta=1, lower=True, out=gk, **where_computed(gk))
        mirror(gk)
    torch.mul(y, 2, out=x)


inv_quad_logdet, inv_quad_logdet_backward = register(InvQuadLogdet), register(InvQuadLogdetBackward)
