"""The operators of ATen that `patch_torch` replaces, and the row of the table that computes a call.

A function of an operator has its arguments, without outputs. It returns the `Call` that computes it, or the
reason for which PyTorch's own kernel does.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor

from ..torch.cholesky_rows import CholeskyEx, CholeskyInverse, CholeskySolve
from ..torch.lu_rows import InvEx, LuFactorEx, LuSolve
from ..torch.memory import by_columns, common_batch
from ..torch.product_rows import Gemm, Trsm
from ..torch.served import refusal
from . import eigen_targets, qr_targets
from .call import Call, order_of, size_of, size_of_solution

__all__ = ["FUNCTIONS", "GRADIENTS", "KINDS", "PRODUCTS", "Target"]


class Target(NamedTuple):
    """An operator of ATen with its overloads.

    Attributes
    ----------
    routine : str
        The function of PyTorch by whose name its calls are counted.
    kind : str
        Whose size decides: an entry of the policy's ``replaced_min_size``.
    call : callable
        See the module.
    """

    routine: str
    kind: str
    call: Callable[..., Call | str]


def cholesky_ex(A, *, upper=False, check_errors=False):
    checked = "linalg.cholesky_ex" if check_errors else None
    return refusal(A) or Call(order_of(A), CholeskyEx, (A, upper), checked)


def cholesky_inverse(factor, upper=False):
    return refusal(factor) or Call(order_of(factor), CholeskyInverse, (factor, upper))


def cholesky_solve(b, factor, upper=False):
    return refusal(factor, b) or Call(size_of_solution(factor, b), CholeskySolve, (b, factor, upper))


def solve_triangular(A, B, *, upper, left=True, unitriangular=False):
    why = refusal(A, B, left)
    flags = (1, left, not upper, unitriangular)
    return why or Call(size_of_solution(A, B), Trsm, (A, B, *flags))


class _TriangularSolve:
    """Solution of `torch.triangular_solve`, and a copy of the matrices."""

    @staticmethod
    def empty(b, a, upper, transpose, unit):
        batch = common_batch("triangular_solve", a, b)
        return by_columns(b, (*batch, *b.shape[-2:])), by_columns(a, (*batch, *a.shape[-2:]))

    @staticmethod
    def compute(outputs, b, a, upper, transpose, unit):
        x, copied = outputs
        copied.copy_(a)
        matrix, lower = (a.mT, upper) if transpose else (a, not upper)
        Trsm.compute(x, matrix, b, 1, True, lower, unit)


def triangular_solve(b, A, upper=True, transpose=False, unitriangular=False):
    why = refusal(A, b)
    arguments = (b, A, upper, transpose, unitriangular)
    return why or Call(size_of_solution(A, b), _TriangularSolve, arguments)


def lu_factor_ex(A, *, pivot=True, check_errors=False):
    if not pivot:
        return "no pivots"
    checked = "torch.linalg.lu_factor_ex" if check_errors else None
    return refusal(A, square=False) or Call(order_of(A), LuFactorEx, (A,), checked)


def lu_solve(LU, pivots, B, *, left=True, adjoint=False):
    why = refusal(LU, B, left)
    if not why and (pivots.dtype != torch.int32 or pivots.shape != LU.shape[:-1]):
        why = "shape"
    return why or Call(size_of_solution(LU, B), LuSolve, (LU, pivots, B, left, adjoint))


def inv_ex(A, *, check_errors=False):
    return refusal(A) or Call(order_of(A), InvEx, (A,), "linalg.inv_ex" if check_errors else None)


def _product(a: Tensor, b: Tensor, c: Any, alpha: Any, beta: Any, ndim: int) -> Call | str:
    if a.ndim != ndim or b.ndim != ndim or a.shape[:-2] != b.shape[:-2]:
        return "shape"
    why = refusal(a, b, square=False)
    shape = (*a.shape[:-1], b.shape[-1])
    if not why and c is not None:
        pairs = zip(reversed(c.shape), reversed(shape), strict=False)
        if c.ndim > ndim or not all(m in (1, n) for m, n in pairs):
            why = "shape"
        elif c.dtype != a.dtype or c.device != a.device:
            why = "dtype"
    if why:
        return why
    added = None if c is None else c.expand(shape)
    return Call(size_of(*a.shape, b.shape[-1]), Gemm, (a, b, added, alpha, beta, None))


def mm(a, b):
    return _product(a, b, None, 1, 0, 2)


def bmm(a, b):
    return _product(a, b, None, 1, 0, 3)


def addmm(c, a, b, *, beta=1, alpha=1):
    return _product(a, b, c, alpha, beta, 2)


def baddbmm(c, a, b, *, beta=1, alpha=1):
    return _product(a, b, c, alpha, beta, 3)


_ADDMM, _BADDBMM = Target("addmm", "product", addmm), Target("baddbmm", "product", baddbmm)
#: The operators whose kernels are replaced, without "aten::".
FUNCTIONS: dict[str, Target] = {
    "linalg_cholesky_ex": Target("cholesky", "cholesky", cholesky_ex),
    "cholesky_inverse": Target("cholesky_inverse", "inverse", cholesky_inverse),
    "_cholesky_solve_helper": Target("cholesky_solve", "triangle", cholesky_solve),
    "linalg_solve_triangular": Target("solve_triangular", "triangle", solve_triangular),
    "triangular_solve": Target("triangular_solve", "triangle", triangular_solve),
    "linalg_lu_factor_ex": Target("lu_factor", "lu", lu_factor_ex),
    "linalg_lu_solve": Target("lu_solve", "triangle", lu_solve),
    "linalg_inv_ex": Target("inv", "inverse", inv_ex),
    "linalg_qr": Target("qr", "qr", qr_targets.qr),
    "geqrf": Target("geqrf", "qr", qr_targets.geqrf),
    "linalg_householder_product": Target("householder_product", "qr", qr_targets.householder_product),
    "ormqr": Target("ormqr", "qr", qr_targets.ormqr),
    "linalg_lstsq": Target("lstsq", "qr", qr_targets.lstsq),
    "_linalg_eigh": Target("eigh", "eigh", eigen_targets.eigh),
    "_linalg_svd": Target("svd", "svd", eigen_targets.svd),
}
#: Operators that are replaced where products are to run on tensor cores.
PRODUCTS: dict[str, Target] = {
    "mm": Target("mm", "product", mm),
    "bmm": Target("bmm", "product", bmm),
    "addmm": _ADDMM,
    "addmm_": _ADDMM,
    "baddbmm": _BADDBMM,
    "baddbmm_": _BADDBMM,
}
#: Whose size decides, by the name of the size: entries of the policy's ``replaced_min_size``.
KINDS = {target.routine: target.kind for target in [*FUNCTIONS.values(), *PRODUCTS.values()]}
KINDS |= {f"{kind}_stack": f"{kind}_stack" for kind in ("qr", "eigh", "svd")}
#: Operators whose gradients are the table's: they take less work than PyTorch's formulas.
GRADIENTS: dict[str, Target] = {
    "linalg_cholesky_ex": FUNCTIONS["linalg_cholesky_ex"],
    "cholesky_inverse": FUNCTIONS["cholesky_inverse"],
    "cholesky_solve": FUNCTIONS["_cholesky_solve_helper"],
    "linalg_solve_triangular": FUNCTIONS["linalg_solve_triangular"],
}
