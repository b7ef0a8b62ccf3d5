"""Rows of Gaussian log-likelihoods: the quadratic form of an inverse, and the logarithm of a determinant."""

from __future__ import annotations

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
        return listed("cholesky", uplo=Uplo.LOWER, clean=False)

    @staticmethod
    def finish(outputs, k, y):
        quad, logdet, factor, x, info = outputs
        if early.is_wanted:
            early.begin(info)
        names = "factor", "y", "info", "quad", "logdet", "x"
        if not enqueue("definite_terms", names, factor, y, info, quad, logdet, x):
            _terms(outputs, y)
        elif y.is_complex() or y.shape[-1] != 1:
            _quadratic(outputs, y)

    @staticmethod
    def empty(k, y):
        batch, real = common_batch("inv_quad_logdet", k, y), k.dtype.to_real()
        quad, logdet = k.new_empty(batch, dtype=real), k.new_empty(k.shape[:-2], dtype=real)
        x = by_columns(y, (*batch, *y.shape[-2:]))
        return quad, logdet, by_columns(k, k.shape), x, k.new_empty(k.shape[:-2], dtype=torch.int32)

    @staticmethod
    def compute(outputs, k, y):
        factor, info = outputs[2], outputs[4]
        factor.copy_(k)
        if k.numel():
            integers(pb.lapack.potrf(factor, 1, 0, 1)[1], info)
        else:
            info.zero_()
        _terms(outputs, y)


class InvQuadLogdetBackward(rows.InvQuadLogdetBackward, Operator):
    operands = ("factor", "gk")

    @staticmethod
    def launches(k, y, factor, x, gq, gd):
        return listed("definite_inverse", uplo=Uplo.LOWER, whole=False)

    @staticmethod
    def finish(outputs, k, y, factor, x, gq, gd):
        gk, gy = outputs
        gk.mul_(gd[..., None, None] if gd.ndim else gd)
        if not enqueue("downdated", ("x", "gq", "gy", "gk"), x, gq, gy, gk):
            _update(gk, gy, x, gq)

    @staticmethod
    def empty(k, y, factor, x, gq, gd):
        batches = k.shape[:-2], y.shape[:-2], x.shape[:-2], gq.shape, gd.shape
        batch = torch.broadcast_shapes(*batches)
        return by_columns(k, (*batch, *k.shape[-2:])), by_columns(y, (*batch, *y.shape[-2:]))

    @staticmethod
    def compute(outputs, k, y, factor, x, gq, gd):
        gk, gy = outputs
        gk.copy_(factor)
        if gk.numel():
            pb.lapack.potri(gk, 1, 1)
            gk.mul_(gd[..., None, None])
        _update(gk, gy, x, gq)


def _terms(outputs: tuple[Tensor, ...], y: Tensor) -> None:
    """Fill all but the factor and info."""
    _, logdet, factor, x, _ = outputs
    x.copy_(y)
    if x.numel():
        pb.lapack.potrs(factor, x, 1, 1)
    _quadratic(outputs, y)
    torch.sum(factor.diagonal(dim1=-2, dim2=-1).real.log(), -1, out=logdet).mul_(2)


def _quadratic(outputs: tuple[Tensor, ...], y: Tensor) -> None:
    """Fill the quadratic form from the solutions."""
    quad, x = outputs[0], outputs[3]
    product = y.conj_physical() * x if x.is_complex() else y * x
    torch.sum(product.real, (-2, -1), out=quad)


def _update(gk: Tensor, gy: Tensor, x: Tensor, gq: Tensor) -> None:
    """Fill ``gy = 2 gq x``, and turn a lower triangle into the Hermitian matrices ``gk - gq x xᴴ``."""
    gy.copy_(x * gq[..., None, None])
    if gk.numel():
        pb.gemmtr(gy, adjoint(x), alpha=-1, beta=1, lower=True, out=gk, **where_computed(gk))
        mirror(gk)
    gy.mul_(2)


inv_quad_logdet, inv_quad_logdet_backward = register(InvQuadLogdet), register(InvQuadLogdetBackward)
