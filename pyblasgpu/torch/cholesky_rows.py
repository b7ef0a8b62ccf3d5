"""Rows of Cholesky factors: factors, solutions and inverses from them, and the reverse mode of the factor."""

from __future__ import annotations

from math import prod
from typing import Any

import torch
from torch import Tensor

import pyblasgpu as pb

from ..operators import cholesky as rows
from ..types import Uplo
from .launched import Gradients, Places, launched, listed, of_gradients
from .memory import (
    adjoint,
    by_columns,
    by_rows,
    common_batch,
    integers,
    mirror,
    where_computed,
)
from .operators import Operator, register

__all__ = ["cholesky_backward", "cholesky_ex", "cholesky_inverse", "cholesky_solve"]


class CholeskyEx(rows.CholeskyEx, Operator):
    operands = ("a", "info", "factor")

    @staticmethod
    def launches(a, upper):
        return listed("cholesky", uplo=Uplo.UPPER if upper else Uplo.LOWER)

    @staticmethod
    def empty(a, upper):
        return by_columns(a, a.shape), a.new_empty(a.shape[:-2], dtype=torch.int32)

    @staticmethod
    def compute(outputs, a, upper):
        factor, info = outputs
        if a.numel():
            integers(pb.lapack.potrf(factor.copy_(a), not upper, 1, 1)[1], info)
        else:
            info.zero_()


class CholeskyBackward(rows.CholeskyBackward, Operator):
    @staticmethod
    def launches(factor, grad, upper):
        return listed(module="reverse_potrf", uplo=Uplo.UPPER if upper else Uplo.LOWER)

    @staticmethod
    def empty(factor, grad, upper):
        return by_columns(factor, (*common_batch("cholesky", factor, grad), *factor.shape[-2:]))

    @staticmethod
    def compute(out, factor, grad, upper):
        if not out.numel():
            return
        lower, work = (adjoint(factor), adjoint(grad)) if upper else (factor, grad)
        where, leaf = where_computed(out), rows.leaf_order(prod(out.shape[:-2]))
        if out.shape[-1] <= leaf:
            p = torch.tril(work.expand(out.shape), out=by_columns(out, out.shape))
            _whole(lower, p, 0.25, where)
            torch.add(p, adjoint(p), out=out)
        else:
            _reverse(lower, out.copy_(work), leaf, where)
            mirror(out).div_(2)


def _whole(l: Tensor, g: Tensor, alpha: float, where: dict[str, Any]) -> None:
    """Turn the gradient of L, the triangle `g`, into twice that of the whole matrix times `alpha`."""
    up = adjoint(l)
    mirror(pb.trmm(up, g, out=g, **where))
    pb.trsm(up, g, out=g, **where)
    pb.trsm(l, g, alpha=alpha, side="R", lower=True, out=g, **where)


def _reverse(l: Tensor, g: Tensor, leaf: int, where: dict[str, Any]) -> None:
    """Turn the gradient of L, in `g`, into twice that of the matrix; of both the lower triangle.

    The reverse mode of the blocked factorization (Murray, arXiv:1602.07527), by halves: two thirds of the
    products of a forward pass twice, in place.
    """
    n = l.shape[-1]
    if n <= leaf:
        _whole(l, g.tril_(), 1, where)
        return
    k = n // 2
    first, below, last = (
        (slice(None, k), slice(None, k)),
        (slice(k, None), slice(None, k)),
        (slice(k, None),) * 2,
    )
    (l1, l21, l2), (g1, g21, g2) = ([x[(..., *part)] for part in (first, below, last)] for x in (l, g))
    _reverse(l2, g2, leaf, where)
    pb.hemm(g2, l21, alpha=-1, beta=1, lower=True, out=g21, **where)
    pb.trsm(l1, g21, side="R", lower=True, out=g21, **where)
    pb.gemmtr(adjoint(g21), l21, alpha=-1, beta=1, lower=True, out=g1, **where)
    _reverse(l1, g1, leaf, where)


class _SolutionGradients(Gradients):
    places = Places(("factor", "x", "g", "upper"), (0, 1, 2), (3,), ())

    @staticmethod
    def launches(factor, x, g, upper):
        return of_gradients("of_definite_solution", Uplo.UPPER if upper else Uplo.LOWER)

    @staticmethod
    def empty(factor, x, g, upper):
        return by_rows(factor, factor.shape), by_columns(x, x.shape)


class CholeskySolve(rows.CholeskySolve, Operator):
    operands = ("factor", "b", "out")

    @staticmethod
    def at_once(s, g):
        if not s.needs["factor"] or s.factor.shape[:-2] != s.out.shape[:-2]:
            return None
        both = launched(_SolutionGradients, (s.factor, s.out, g, s.upper))
        return both and both[::-1]

    @staticmethod
    def launches(b, factor, upper):
        return listed("factored_solution", uplo=Uplo.UPPER if upper else Uplo.LOWER)

    @staticmethod
    def empty(b, factor, upper):
        return by_columns(b, (*common_batch("cholesky_solve", b, factor), *b.shape[-2:]))

    @staticmethod
    def compute(out, b, factor, upper):
        out.copy_(b)
        if out.numel():
            pb.lapack.potrs(factor, out, not upper, 1)


class CholeskyInverse(rows.CholeskyInverse, Operator):
    @staticmethod
    def launches(factor, upper):
        return listed("definite_inverse", uplo=Uplo.UPPER if upper else Uplo.LOWER)

    @staticmethod
    def empty(factor, upper):
        return by_columns(factor, factor.shape)

    @staticmethod
    def compute(out, factor, upper):
        out.copy_(adjoint(factor) if upper else factor)
        if out.numel():
            pb.lapack.potri(out, 1, 1)
            mirror(out)


cholesky_ex, cholesky_backward = register(CholeskyEx), register(CholeskyBackward)
cholesky_solve, cholesky_inverse = register(CholeskySolve), register(CholeskyInverse)
