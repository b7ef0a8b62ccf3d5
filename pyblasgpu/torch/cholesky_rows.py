"""Rows of Cholesky factors: factors, solutions and inverses from them, and the reverse mode of the factor."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

import pyblasgpu as pb

from .memory import (
    adjoint,
    by_columns,
    common_batch,
    copied_by_columns,
    hermitian_part,
    integers,
    mirrored,
    reduced,
    where_computed,
)
from .operators import Operator, register, total
from .product_rows import gemmtr, symm, trmm, trsm

__all__ = ["cholesky_backward", "cholesky_ex", "cholesky_inverse", "cholesky_solve"]

#: The order up to which the reverse mode is computed by whole products and solutions, not by halves.
LEAF = 256


def half_triangle(x: Tensor) -> Tensor:
    """Return the lower triangle with half of the diagonal, which is taken as real."""
    return x.tril(-1) + (x.diagonal(dim1=-2, dim2=-1).real.to(x.dtype) / 2).diag_embed()


class CholeskyEx(Operator):
    """Factor L of ``a = L Lᴴ`` or U of ``a = Uᴴ U``, and info."""

    schema = "cholesky_ex(Tensor a, bool upper)"
    returns = ("factor", "info")
    saved = ("factor",)
    constant = ("info",)

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

    @staticmethod
    def backward(s, g, _):
        return cholesky_backward(s.factor, g, s.upper)

    @staticmethod
    def jvp(s, da):
        if s.upper:
            return _lower_tangent(s.factor.mH, da).mH, None
        return _lower_tangent(s.factor, da), None


def _lower_tangent(l: Tensor, da: Tensor) -> Tensor:
    """Return ``L Φ(L⁻¹ da L⁻ᴴ)``, Φ the lower triangle with half of the diagonal."""
    inner = trsm(l.mH, trsm(l, da, 1, True, True, False), 1, False, False, False)
    return trmm(l, half_triangle(inner), 1, True, True, False).tril()


class CholeskyBackward(Operator):
    """Gradient of a matrix, Hermitian, from that of its Cholesky factor.

    The reverse mode of the blocked factorization (Murray, arXiv:1602.07527), by halves: two thirds of the
    products of a forward pass twice, in place.
    """

    schema = "cholesky_backward(Tensor factor, Tensor grad, bool upper)"
    saved = ("factor", "grad", "out")

    @staticmethod
    def empty(factor, grad, upper):
        return by_columns(factor, (*common_batch("cholesky", factor, grad), *factor.shape[-2:]))

    @staticmethod
    def compute(out, factor, grad, upper):
        lower, work = (adjoint(factor), adjoint(grad)) if upper else (factor, grad)
        if out.numel():
            _reverse(lower, out.copy_(work), where_computed(out))
            out.copy_(mirrored(out))
            out.div_(2)

    @staticmethod
    def backward(s, h):
        # out = herm(L⁻ᴴ Φ(Lᴴ G) L⁻¹), Φ the lower triangle with half of the diagonal
        l, g = (s.factor.mH, s.grad.mH) if s.upper else (s.factor, s.grad)
        out, h = s.out, hermitian_part(h)
        h = trsm(l.mH, h, 1, False, False, False)  # h L⁻ᴴ
        q = half_triangle(trsm(l, h, 1, True, True, False))
        gl = trmm(g.tril(), q.mH, 1, True, True, False).tril()
        gl = gl - 2 * symm(out, h, None, 1, 0, True, True, True).tril()
        gg = trmm(l, q, 1, True, True, False)
        gl, gg = (x.mH if s.upper else x for x in (gl, gg.tril()))
        return reduced(gl, s.factor), reduced(gg, s.grad)

    @staticmethod
    def jvp(s, dl, dg):
        l, g = (s.factor.mH, s.grad.mH) if s.upper else (s.factor, s.grad)
        dl, dg = (x.mH if s.upper and x is not None else x for x in (dl, dg))
        dp = total(
            dl is not None and trmm(dl.mH, g.tril(), 1, True, False, False),
            dg is not None and trmm(l.mH, dg.tril(), 1, True, False, False),
        )
        ds = _between(l, half_triangle(dp))
        if dl is not None:
            # herm(dLᴴ S + S dL) of S = L⁻ᴴ Φ L⁻¹, whose Hermitian part is out
            inner = half_triangle(trmm(l.mH, g.tril(), 1, True, False, False))
            whole = _between(l, inner)
            ds = ds - trsm(l.mH, trmm(dl.mH, whole, 1, True, False, False), 1, True, False, False)
            ds = ds - trsm(l, trmm(dl, whole, 1, False, True, False), 1, False, True, False)
        return hermitian_part(ds)


def _between(l: Tensor, x: Tensor) -> Tensor:
    """Return ``L⁻ᴴ x L⁻¹``."""
    return trsm(l, trsm(l.mH, x, 1, True, False, False), 1, False, True, False)


def _reverse(l: Tensor, g: Tensor, where: dict[str, Any]) -> None:
    """Turn the gradient of L, in `g`, into twice that of the matrix; of both the lower triangle."""
    n = l.shape[-1]
    if n <= max(LEAF, l.shape[-1] // 16):
        up = adjoint(l)
        p = half_triangle(pb.trmm(up, g.tril(), **where))
        p = copied_by_columns(p + adjoint(p))
        pb.trsm(up, p, out=p, **where)
        pb.trsm(l, p, side="R", lower=True, out=p, **where)
        g.copy_(p)
        return
    k = n // 2
    first, below, last = (
        (slice(None, k), slice(None, k)),
        (slice(k, None), slice(None, k)),
        (slice(k, None),) * 2,
    )
    (l1, l21, l2), (g1, g21, g2) = ([x[(..., *part)] for part in (first, below, last)] for x in (l, g))
    _reverse(l2, g2, where)
    pb.hemm(g2, l21, alpha=-1, beta=1, lower=True, out=g21, **where)
    pb.trsm(l1, g21, side="R", lower=True, out=g21, **where)
    pb.gemmtr(adjoint(g21), l21, alpha=-1, beta=1, lower=True, out=g1, **where)
    _reverse(l1, g1, where)


class CholeskySolve(Operator):
    """Solution x of ``a x = b`` from a Cholesky factor of a."""

    schema = "cholesky_solve(Tensor b, Tensor factor, bool upper)"
    saved = ("b", "factor", "out")

    @staticmethod
    def empty(b, factor, upper):
        return by_columns(b, (*common_batch("cholesky_solve", b, factor), *b.shape[-2:]))

    @staticmethod
    def compute(out, b, factor, upper):
        out.copy_(b)
        if out.numel():
            pb.lapack.potrs(factor, out, not upper, 1)

    @staticmethod
    def backward(s, g):
        y, x = cholesky_solve(g, s.factor, s.upper), s.out
        gl = None
        if s.needs["factor"]:
            # -tril((y xᴴ + x yᴴ) L)
            up = s.factor if s.upper else s.factor.mH
            lx, ly = (trmm(up, each, 1, True, False, False) for each in (x, y))
            gl = gemmtr(y, lx.mH, None, -1, 0, True) + gemmtr(x, ly.mH, None, -1, 0, True)
            gl = reduced(gl.mH if s.upper else gl, s.factor)
        return s.needs["b"] and reduced(y, s.b), gl

    @staticmethod
    def jvp(s, db, dl):
        right = db
        if dl is not None:
            right = total(db, -_moved(s.factor, dl, s.out, s.upper))
        return cholesky_solve(right, s.factor, s.upper)


def _moved(factor: Tensor, tangent: Tensor, x: Tensor, upper: bool) -> Tensor:
    """Return ``(dL Lᴴ + L dLᴴ) x``."""
    up, dup = (factor, tangent) if upper else (factor.mH, tangent.mH)
    first = trmm(dup.mH, trmm(up, x, 1, True, False, False), 1, True, True, False)
    return first + trmm(up.mH, trmm(dup, x, 1, True, False, False), 1, True, True, False)


class CholeskyInverse(Operator):
    """Inverse of a Hermitian positive definite matrix from its Cholesky factor."""

    schema = "cholesky_inverse(Tensor factor, bool upper)"
    saved = ("factor", "out")

    @staticmethod
    def empty(factor, upper):
        return by_columns(factor, factor.shape)

    @staticmethod
    def compute(out, factor, upper):
        out.copy_(adjoint(factor) if upper else factor)
        if out.numel():
            pb.lapack.potri(out, 1, 1)
            out.copy_(mirrored(out))

    @staticmethod
    def backward(s, g):
        # -tril(x (g + gᴴ) x L), where x L = L⁻ᴴ
        up = s.factor if s.upper else s.factor.mH
        product = symm(s.out, 2 * hermitian_part(g), None, -1, 0, True, True, True)
        gl = trsm(up, product, 1, False, False, False)
        return gl.tril().mH if s.upper else gl.tril()

    @staticmethod
    def jvp(s, dl):
        moved = _moved(s.factor, dl, s.out, s.upper)
        return symm(s.out, moved, None, -1, 0, True, True, True)


cholesky_ex, cholesky_backward = register(CholeskyEx), register(CholeskyBackward)
cholesky_solve, cholesky_inverse = register(CholeskySolve), register(CholeskyInverse)
