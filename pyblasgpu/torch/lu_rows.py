"""Rows of LU factors: factors, solutions, inverses and determinants."""

from __future__ import annotations

import torch
from torch import Tensor

import pyblasgpu as pb

from .memory import by_columns, common_batch, integers, reduced
from .operators import Operator, register, total
from .product_rows import gemm, gemmtr, trmm, trsm

__all__ = ["det", "inv_ex", "interchanged", "lu_factor_ex", "lu_inverse", "lu_solve", "slogdet", "solve_ex"]


def _factored(a: Tensor, lu: Tensor, pivots: Tensor, info: Tensor | None = None) -> None:
    """Fill `lu`, the pivots, from 1, and info."""
    lu.copy_(a)
    if not lu.numel():
        pivots.fill_(0)
        if info is not None:
            info.zero_()
        return
    _, found, failed = pb.lapack.getrf(lu, 1)
    integers(found, pivots, add=1)
    if info is not None:
        integers(failed, info)


def _empty_factors(a: Tensor) -> tuple[Tensor, Tensor]:
    order = a.new_empty((*a.shape[:-2], min(a.shape[-2:])), dtype=torch.int32)
    return by_columns(a, a.shape), order


class Interchanged(Operator):
    """Rows interchanged as pivots say, from the first pivot to the last, or back."""

    schema = "interchanged(Tensor a, Tensor pivots, bool back)"
    saved = ("pivots",)

    @staticmethod
    def empty(a, pivots, back):
        return by_columns(a, (*torch.broadcast_shapes(a.shape[:-2], pivots.shape[:-1]), *a.shape[-2:]))

    @staticmethod
    def compute(out, a, pivots, back):
        out.copy_(a)
        if out.numel() and pivots.numel():
            pb.lapack.laswp(out, pivots - 1, inc=-1 if back else 1, overwrite_a=1)

    @staticmethod
    def backward(s, g):
        return interchanged(g, s.pivots, not s.back), None

    @staticmethod
    def jvp(s, da, _):
        return interchanged(da, s.pivots, s.back)


class LuFactorEx(Operator):
    """Factors of ``a = P L U``, pivots and info."""

    schema = "lu_factor_ex(Tensor a)"
    returns = ("lu", "pivots", "info")
    saved = ("lu", "pivots")
    constant = ("pivots", "info")

    @staticmethod
    def empty(a):
        return *_empty_factors(a), a.new_empty(a.shape[:-2], dtype=torch.int32)

    @staticmethod
    def compute(outputs, a):
        _factored(a, *outputs)

    @staticmethod
    def backward(s, g, *_):
        (m, n), lu = s.lu.shape[-2:], s.lu
        k = min(m, n)
        square, gl, gu = lu[..., :k, :k], g[..., :k].tril(-1), g[..., :k, :].triu()
        up = square.mH  # Lᴴ above a diagonal of ones, and Uᴴ
        inner_l = trmm(up, gl[..., :k, :], 1, True, False, True).tril(-1)
        inner_u = trmm(up, gu[..., :k], 1, False, True, False).triu()
        if n > m:  # A₂ = P L U₂
            rest = trsm(up, gu[..., k:], 1, True, False, True)
            inner_l = inner_l - gemmtr(gu[..., k:], lu[..., k:].mH, None, 1, 0, True).tril(-1)
        if m > n:  # A₂ = L₂ U
            rest = trsm(up, gl[..., k:, :], 1, False, True, False)
            inner_u = inner_u - gemmtr(lu[..., k:, :].mH, gl[..., k:, :], None, 1, 0, False)
        whole = trsm(up, inner_l + inner_u, 1, True, False, True)
        whole = trsm(up, whole, 1, False, True, False)
        if m != n:
            whole = torch.cat([whole, rest], dim=-1 if n > m else -2)
        return interchanged(whole, s.pivots, True)

    @staticmethod
    def jvp(s, da):
        (m, n), lu = s.lu.shape[-2:], s.lu
        k = min(m, n)
        square, moved = lu[..., :k, :k], interchanged(da, s.pivots, False)
        f = trsm(square, moved[..., :k, :k], 1, True, True, True)
        f = trsm(square, f, 1, False, False, False)
        dl, du = trmm(square, f.tril(-1), 1, True, True, True), trmm(square, f.triu(), 1, False, False, False)
        tangent = dl.tril(-1) + du.triu()
        if n > m:
            rest = trsm(square, moved[..., k:], 1, True, True, True)
            rest = rest - trmm(f.tril(-1), lu[..., k:], 1, True, True, False)
            tangent = torch.cat([tangent, rest], dim=-1)
        if m > n:
            right = moved[..., k:, :] - trmm(du, lu[..., k:, :], 1, False, False, False)
            tangent = torch.cat([tangent, trsm(square, right, 1, False, False, False)], dim=-2)
        return tangent, None, None


def _factor_gradient(lu: Tensor, pivots: Tensor, v: Tensor, w: Tensor) -> Tensor:
    """Return the gradient of L and U from ``-v wᴴ``, that of the matrix."""
    up = lu.mH
    v = interchanged(v, pivots, False)
    uw = trmm(lu, w, 1, True, False, False)
    lv = trmm(up, v, 1, True, False, True)
    return gemmtr(v, uw.mH, None, -1, 0, True).tril(-1) + gemmtr(lv, w.mH, None, -1, 0, False)


def _matrix_tangent(lu: Tensor, pivots: Tensor, dlu: Tensor, x: Tensor) -> Tensor:
    """Return ``P (dL U + L dU) x``."""
    first = trmm(dlu.tril(-1), trmm(lu, x, 1, True, False, False), 1, True, True, False)
    second = trmm(lu, trmm(dlu, x, 1, True, False, False), 1, True, True, True)
    return interchanged(first + second, pivots, True)


class LuSolve(Operator):
    """Solution x of ``op(a) x = b`` or ``x op(a) = b`` from the LU factors of a; op may be the adjoint."""

    schema = "lu_solve(Tensor lu, Tensor pivots, Tensor b, bool left, bool adjoint)"
    saved = ("lu", "pivots", "b", "out")

    @staticmethod
    def empty(lu, pivots, b, left, adjoint):
        shape = (*common_batch("lu_solve", lu, b), *b.shape[-2:])
        return by_columns(b, shape) if left else b.new_empty(shape)

    @staticmethod
    def compute(out, lu, pivots, b, left, adjoint):
        out.copy_(b)
        if out.numel():
            _solved(out, lu, pivots - 1, left, adjoint)

    @staticmethod
    def backward(s, g):
        gb = lu_solve(s.lu, s.pivots, g, s.left, not s.adjoint)
        glu = None
        if s.needs["lu"]:
            v, w = (gb, s.out) if s.left else (s.out.mH, gb.mH)
            v, w = (w, v) if s.adjoint else (v, w)
            glu = reduced(_factor_gradient(s.lu, s.pivots, v, w), s.lu)
        return glu, None, s.needs["b"] and reduced(gb, s.b)

    @staticmethod
    def jvp(s, dlu, _, db):
        right = db
        if dlu is not None:
            x = s.out if s.left else s.out.mH
            if s.left != s.adjoint:
                moved = _matrix_tangent(s.lu, s.pivots, dlu, x)
            else:
                moved = _adjoint_tangent(s.lu, s.pivots, dlu, x)
            right = total(db, -(moved if s.left else moved.mH))
        return lu_solve(s.lu, s.pivots, right, s.left, s.adjoint)


def _adjoint_tangent(lu: Tensor, pivots: Tensor, dlu: Tensor, x: Tensor) -> Tensor:
    """Return ``(P (dL U + L dU))ᴴ x``."""
    x, up, dup = interchanged(x, pivots, False), lu.mH, dlu.mH
    first = trmm(up, trmm(dup.triu(1), x, 1, True, False, False), 1, True, True, False)
    return first + trmm(dup, trmm(up, x, 1, True, False, True), 1, True, True, False)


def _solved(out: Tensor, lu: Tensor, piv: Tensor, left: bool, adjoint: bool) -> None:
    """Solve in place."""
    if left:
        pb.lapack.getrs(lu, piv, out, 2 if adjoint else 0, 1)
    elif adjoint:  # x aᴴ = b where conj(a) xᵀ = bᵀ
        pb.lapack.getrs(lu.conj_physical(), piv, out.mT, 0, 1)
    else:
        pb.lapack.getrs(lu, piv, out.mT, 1, 1)


class SolveEx(Operator):
    """Solution x of ``a x = b`` or ``x a = b``, the factors of a, pivots and info."""

    schema = "solve_ex(Tensor a, Tensor b, bool left)"
    returns = ("x", "lu", "pivots", "info")
    saved = ("a", "b", "x", "lu", "pivots")
    constant = ("lu", "pivots", "info")
    of_first = ("lu", "pivots", "info")

    @staticmethod
    def empty(a, b, left):
        shape = (*common_batch("solve", a, b), *b.shape[-2:])
        x = by_columns(b, shape) if left else b.new_empty(shape)
        return x, *_empty_factors(a), a.new_empty(a.shape[:-2], dtype=torch.int32)

    @staticmethod
    def compute(outputs, a, b, left):
        x, *factors = outputs
        _factored(a, *factors)
        x.copy_(b)
        if x.numel():
            _solved(x, factors[0], factors[1] - 1, left, False)

    @staticmethod
    def backward(s, g, *_):
        if torch.is_grad_enabled():  # derivatives that follow need the path from a
            gb = solve_ex(s.a.mH, g, s.left)[0]
        else:
            gb = lu_solve(s.lu, s.pivots, g, s.left, True)
        one, other = (gb, s.x.mH) if s.left else (s.x.mH, gb)
        return (
            s.needs["a"] and reduced(gemm(one, other, None, -1, 0, None), s.a),
            s.needs["b"] and reduced(gb, s.b),
        )

    @staticmethod
    def jvp(s, da, db):
        one, other = (da, s.x) if s.left else (s.x, da)
        right = total(db, da is not None and gemm(one, other, None, -1, 0, None))
        return solve_ex(s.a, right, s.left)[0], None, None, None


class LuInverse(Operator):
    """Inverse of a matrix from its LU factors."""

    schema = "lu_inverse(Tensor lu, Tensor pivots)"
    saved = ("lu", "pivots", "out")

    @staticmethod
    def empty(lu, pivots):
        return by_columns(lu, lu.shape)

    @staticmethod
    def compute(out, lu, pivots):
        out.copy_(lu)
        if out.numel():
            pb.lapack.getri(out, pivots - 1, None, 1)

    @staticmethod
    def backward(s, g):
        v = gemm(s.out.mH, g, None, 1, 0, None)
        return _factor_gradient(s.lu, s.pivots, v, s.out), None

    @staticmethod
    def jvp(s, dlu, _):
        return gemm(s.out, _matrix_tangent(s.lu, s.pivots, dlu, s.out), None, -1, 0, None)


class InvEx(Operator):
    """Inverse of a matrix, and info."""

    schema = "inv_ex(Tensor a)"
    returns = ("inverse", "info")
    saved = ("inverse",)
    constant = ("info",)

    @staticmethod
    def empty(a):
        return by_columns(a, a.shape), a.new_empty(a.shape[:-2], dtype=torch.int32)

    @staticmethod
    def compute(outputs, a):
        inverse, info = outputs
        info.zero_()
        if a.numel():
            _, piv, failed = pb.lapack.getrf(inverse.copy_(a), 1)
            integers(failed, info)
            pb.lapack.getri(inverse, piv, None, 1)

    @staticmethod
    def backward(s, g, _):
        return gemm(gemm(s.inverse.mH, g, None, -1, 0, None), s.inverse.mH, None, 1, 0, None)

    @staticmethod
    def jvp(s, da):
        return gemm(gemm(s.inverse, da, None, -1, 0, None), s.inverse, None, 1, 0, None), None


def _diagonal_and_sign(lu: Tensor, pivots: Tensor) -> tuple[Tensor, Tensor]:
    """Return the diagonal of U, and 1 or -1 as the interchanges are even or odd."""
    here = torch.arange(1, pivots.shape[-1] + 1, device=pivots.device, dtype=pivots.dtype)
    odd = (pivots != here).sum(-1) % 2
    return lu.diagonal(dim1=-2, dim2=-1), (1 - 2 * odd).to(lu.dtype)


def _adjoint_inverse(a: Tensor, lu: Tensor, pivots: Tensor) -> Tensor:
    """Return ``a⁻ᴴ`` from the factors, or from `a` itself where derivatives follow."""
    return inv_ex(a.mH)[0] if torch.is_grad_enabled() else lu_inverse(lu, pivots).mH


class Slogdet(Operator):
    """Sign and logarithm of the absolute value of a determinant, and the factors."""

    schema = "slogdet(Tensor a)"
    returns = ("sign", "logabsdet", "lu", "pivots")
    saved = ("a", "sign", "lu", "pivots")
    constant = ("lu", "pivots")

    @staticmethod
    def empty(a):
        log = a.new_empty(a.shape[:-2], dtype=a.dtype.to_real())
        return a.new_empty(a.shape[:-2]), log, *_empty_factors(a)

    @staticmethod
    def compute(outputs, a):
        sign, logabsdet, lu, pivots = outputs
        _factored(a, lu, pivots)
        diagonal, parity = _diagonal_and_sign(lu, pivots)
        sign.copy_(diagonal.sgn().prod(-1) * parity)
        logabsdet.copy_(diagonal.abs().log().sum(-1))

    @staticmethod
    def backward(s, gs, gl, *_):
        weight = gl
        if s.a.is_complex():
            weight = total(gl, gs is not None and (gs.conj() * s.sign).imag * -1j)
        if weight is None:
            return None
        return weight[..., None, None] * _adjoint_inverse(s.a, s.lu, s.pivots)

    @staticmethod
    def jvp(s, da):
        trace = solve_ex(s.a, da, True)[0].diagonal(dim1=-2, dim2=-1).sum(-1)
        sign = s.sign * trace.imag * 1j if s.a.is_complex() else torch.zeros_like(s.sign)
        return sign, trace.real, None, None


class Det(Operator):
    """Determinant, and the factors."""

    schema = "det(Tensor a)"
    returns = ("out", "lu", "pivots")
    saved = ("a", "out", "lu", "pivots")
    constant = ("lu", "pivots")

    @staticmethod
    def empty(a):
        return a.new_empty(a.shape[:-2]), *_empty_factors(a)

    @staticmethod
    def compute(outputs, a):
        out, lu, pivots = outputs
        _factored(a, lu, pivots)
        diagonal, parity = _diagonal_and_sign(lu, pivots)
        out.copy_(diagonal.prod(-1) * parity)

    @staticmethod
    def backward(s, g, *_):
        if torch.is_grad_enabled():
            return (g * s.out.conj())[..., None, None] * _adjoint_inverse(s.a, s.lu, s.pivots)
        # the adjugate of a singular matrix is near that of a regular one: zeros of U become the roundoff
        diagonal, parity = _diagonal_and_sign(s.lu, s.pivots)
        small = torch.where(diagonal == 0, torch.finfo(s.lu.dtype).eps, 0).to(s.lu.dtype)
        near = (diagonal + small).prod(-1) * parity
        return (g * near.conj())[..., None, None] * lu_inverse(s.lu + small.diag_embed(), s.pivots).mH

    @staticmethod
    def jvp(s, da):
        trace = solve_ex(s.a, da, True)[0].diagonal(dim1=-2, dim2=-1).sum(-1)
        return s.out * trace, None, None


interchanged, lu_factor_ex, lu_solve = register(Interchanged), register(LuFactorEx), register(LuSolve)
solve_ex, lu_inverse, inv_ex = register(SolveEx), register(LuInverse), register(InvEx)
slogdet, det = register(Slogdet), register(Det)
