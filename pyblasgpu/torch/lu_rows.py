"""Rows of LU factors: factors, solutions, inverses and determinants."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

import pyblasgpu as pb

from ..api.blas.arrays import common_dtype_of
from ..api.lapack import determinants
from ..operators import lu as rows
from .launched import Gradients, Places, launched, listed, of_gradients
from .memory import by_columns, common_batch, integers
from .operators import Operator, register
from .tensors import TENSORS

__all__ = ["det", "inv_ex", "interchanged", "lu_factor_ex", "lu_inverse", "lu_solve", "slogdet", "solve_ex"]


def _factored(a: Tensor, lu: Tensor, pivots: Tensor, info: Tensor | None = None) -> Any:
    """Fill `lu`, the pivots, from 1, and info; return the pivots, from 0, as the routine left them."""
    lu.copy_(a)
    if not lu.numel():
        pivots.fill_(0)
        if info is not None:
            info.zero_()
        return None
    _, found, failed = pb.lapack.getrf(lu, 1)
    integers(found, pivots, add=1)
    if info is not None:
        integers(failed, info)
    return found


def _empty_factors(a: Tensor) -> tuple[Tensor, Tensor]:
    order = a.new_empty((*a.shape[:-2], min(a.shape[-2:])), dtype=torch.int32)
    return by_columns(a, a.shape), order


def _from_zero(a: Tensor, pivots: Tensor, *others: Any) -> tuple[Any, ...]:
    """Return arguments with pivots as routines count them."""
    return a, pivots - 1, *others


class Interchanged(rows.Interchanged, Operator):
    given = staticmethod(_from_zero)

    @staticmethod
    def launches(a, pivots, back):
        return listed("interchanged", back=back)

    @staticmethod
    def empty(a, pivots, back):
        return by_columns(a, (*torch.broadcast_shapes(a.shape[:-2], pivots.shape[:-1]), *a.shape[-2:]))

    @staticmethod
    def compute(out, a, pivots, back):
        out.copy_(a)
        if out.numel() and pivots.numel():
            pb.lapack.laswp(out, pivots - 1, inc=-1 if back else 1, overwrite_a=1)


class LuFactorEx(rows.LuFactorEx, Operator):
    operands = ("a", "pivots", "info", "lu")

    @staticmethod
    def launches(a):
        return listed("lu")

    @staticmethod
    def finish(outputs, a):
        outputs[1].add_(1)

    @staticmethod
    def empty(a):
        return *_empty_factors(a), a.new_empty(a.shape[:-2], dtype=torch.int32)

    @staticmethod
    def compute(outputs, a):
        _factored(a, *outputs)


class LuSolve(rows.LuSolve, Operator):
    given = staticmethod(_from_zero)

    @staticmethod
    def launches(lu, pivots, b, left, adjoint):
        return listed("lu_solution", left=left, adjoint=adjoint)

    @staticmethod
    def empty(lu, pivots, b, left, adjoint):
        shape = (*common_batch("lu_solve", lu, b), *b.shape[-2:])
        return by_columns(b, shape) if left else b.new_empty(shape)

    @staticmethod
    def compute(out, lu, pivots, b, left, adjoint):
        out.copy_(b)
        if out.numel():
            _solved(out, lu, pivots - 1, left, adjoint)


def _solved(out: Tensor, lu: Tensor, piv: Any, left: bool, adjoint: bool) -> None:
    """Solve in place."""
    if left:
        pb.lapack.getrs(lu, piv, out, 2 if adjoint else 0, 1)
    elif adjoint:  # x aᴴ = b where conj(a) xᵀ = bᵀ
        pb.lapack.getrs(lu.conj_physical(), piv, out.mT, 0, 1)
    else:
        pb.lapack.getrs(lu, piv, out.mT, 1, 1)


class _SolutionGradients(Gradients):
    places = Places(("lu", "pivots", "x", "g"), (0, 1, 2, 3), (), ())
    given = staticmethod(_from_zero)

    @staticmethod
    def launches(lu, pivots, x, g):
        return of_gradients("of_solution")

    @staticmethod
    def empty(lu, pivots, x, g):
        return by_columns(lu, lu.shape), by_columns(x, x.shape)


class SolveEx(rows.SolveEx, Operator):
    operands = ("a", "b", "pivots", "info", "lu", "x")

    @staticmethod
    def at_once(s, g, *_):
        if not s.left or not s.needs["a"] or s.lu.shape[:-2] != s.x.shape[:-2]:
            return None
        return launched(_SolutionGradients, (s.lu, s.pivots, s.x, g))

    @staticmethod
    def launches(a, b, left):
        return listed("solution", left=left)

    @staticmethod
    def finish(outputs, a, b, left):
        outputs[2].add_(1)

    @staticmethod
    def empty(a, b, left):
        shape = (*common_batch("solve", a, b), *b.shape[-2:])
        x = by_columns(b, shape) if left else b.new_empty(shape)
        return x, *_empty_factors(a), a.new_empty(a.shape[:-2], dtype=torch.int32)

    @staticmethod
    def compute(outputs, a, b, left):
        x, *factors = outputs
        piv = _factored(a, *factors)
        x.copy_(b)
        if x.numel():
            _solved(x, factors[0], piv, left, False)


class LuInverse(rows.LuInverse, Operator):
    operands = ("pivots", "lu", "out")
    given = staticmethod(_from_zero)

    @staticmethod
    def launches(lu, pivots):
        return listed("lu_inverse")

    @staticmethod
    def empty(lu, pivots):
        return by_columns(lu, lu.shape)

    @staticmethod
    def compute(out, lu, pivots):
        out.copy_(lu)
        if out.numel():
            pb.lapack.getri(out, pivots - 1, None, 1)


class _InverseGradient(Gradients):
    places = Places(("inverse", "g"), (0, 1), (), ())
    returns = ("ga",)

    @staticmethod
    def launches(inverse, g):
        return of_gradients("of_inverse")

    @staticmethod
    def empty(inverse, g):
        return by_columns(inverse, inverse.shape)


class InvEx(rows.InvEx, Operator):
    operands = ("info", "a", "inverse")

    @staticmethod
    def at_once(s, g, _):
        return launched(_InverseGradient, (s.inverse, g))

    @staticmethod
    def launches(a):
        return listed("inverse_launch_list", "gesv")

    @staticmethod
    def empty(a):
        return by_columns(a, a.shape), a.new_empty(a.shape[:-2], dtype=torch.int32)

    @staticmethod
    def compute(outputs, a):
        inverse, info = outputs
        if not a.numel():
            info.zero_()
            return
        _, piv, failed = pb.lapack.getrf(inverse.copy_(a), 1)
        integers(failed, info)
        pb.lapack.getri(inverse, piv, None, 1)


def _diagonal_and_sign(lu: Tensor, pivots: Tensor) -> tuple[Tensor, Tensor]:
    """Return the diagonal of U, and 1 or -1 as the interchanges are even or odd."""
    here = torch.arange(1, pivots.shape[-1] + 1, device=pivots.device, dtype=pivots.dtype)
    odd = (pivots != here).sum(-1) % 2
    return lu.diagonal(dim1=-2, dim2=-1), (1 - 2 * odd).to(lu.dtype)


class Slogdet(rows.Slogdet, Operator):
    operands = ("a", "pivots", "sign", "logabsdet", "lu")

    @staticmethod
    def launches(a):
        return listed("signs")

    @staticmethod
    def finish(outputs, a):
        outputs[3].add_(1)

    @staticmethod
    def empty(a):
        log = a.new_empty(a.shape[:-2], dtype=a.dtype.to_real())
        return a.new_empty(a.shape[:-2]), log, *_empty_factors(a)

    @staticmethod
    def compute(outputs, a):
        sign, logabsdet, lu, pivots = outputs
        piv = _factored(a, lu, pivots)
        if piv is not None and lu.is_cuda:
            found = determinants.signs_and_logarithms("slogdet", lu, piv, common_dtype_of("slogdet", (lu,)))
            sign.copy_(found[0])
            logabsdet.copy_(found[1])
            return
        diagonal, parity = _diagonal_and_sign(lu, pivots)
        sign.copy_(diagonal.sgn().prod(-1) * parity)
        logabsdet.copy_(diagonal.abs().log().sum(-1))


class Det(rows.Det, Operator):
    operands = ("a", "pivots", "det", "lu")

    @staticmethod
    def launches(a):
        return listed("determinant")

    @staticmethod
    def written(a):
        wide = torch.complex128 if a.is_complex() else torch.float64
        return a.new_empty(a.shape[:-2], dtype=wide), *_empty_factors(a)

    @staticmethod
    def finish(outputs, a):
        det, lu, pivots = outputs
        return det.to(a.dtype), lu, pivots.add_(1)

    @staticmethod
    def empty(a):
        return a.new_empty(a.shape[:-2]), *_empty_factors(a)

    @staticmethod
    def compute(outputs, a):
        out, lu, pivots = outputs
        piv = _factored(a, lu, pivots)
        if piv is not None and lu.is_cuda:
            out.copy_(determinants.determinants("det", lu, piv, common_dtype_of("det", (lu,))))
            return
        diagonal, parity = _diagonal_and_sign(lu, pivots)
        out.copy_(diagonal.prod(-1) * parity)


interchanged, lu_factor_ex, lu_solve = register(Interchanged), register(LuFactorEx), register(LuSolve)
solve_ex, lu_inverse, inv_ex = register(SolveEx), register(LuInverse), register(InvEx)
slogdet, det = register(Slogdet), register(Det)


def solved(a: Tensor, lu: Tensor, pivots: Tensor, b: Tensor, left: bool, adjoint: bool) -> Tensor:
    """Return the solution from `a`, where derivatives may follow, or from its factors."""
    if not adjoint:
        return solve_ex(a, b, left)[0]
    if torch.is_grad_enabled():
        return solve_ex(a.mH, b, left)[0]
    return lu_solve(lu, pivots, b, left, True)


def adjoint_inverse(a: Tensor, lu: Tensor, pivots: Tensor) -> Tensor:
    """Return ``a⁻ᴴ`` from the factors, or from `a` itself where derivatives follow."""
    return inv_ex(a.mH)[0] if torch.is_grad_enabled() else lu_inverse(lu, pivots).mH


def determinant_gradient(a: Tensor, out: Tensor, lu: Tensor, pivots: Tensor, g: Tensor) -> Tensor:
    """Return the gradient of a determinant."""
    if torch.is_grad_enabled():
        return (g * out.conj())[..., None, None] * adjoint_inverse(a, lu, pivots)
    # the adjugate of a singular matrix is near that of a regular one: zeros of U become the roundoff
    near = lu.clone()
    diagonal, parity = _diagonal_and_sign(near, pivots)
    diagonal.masked_fill_(diagonal == 0, torch.finfo(lu.dtype).eps)
    weight = g * (diagonal.prod(-1) * parity).conj()
    return weight[..., None, None] * lu_inverse(near, pivots).mH


for _function in (solved, adjoint_inverse, determinant_gradient):
    setattr(TENSORS, _function.__name__, _function)
