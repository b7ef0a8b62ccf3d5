"""QR factors and least squares of ATen: the calls that `patch_torch` serves, and what computes them."""

from __future__ import annotations

import torch
from torch import Tensor

from .. import lapack
from ..api.linalg.arrays import taken
from ..api.linalg.cholesky_qr import SHARE
from ..api.linalg.normal_equations import are_tried, refined_solution
from ..torch.memory import adjoint, by_columns, copied_by_columns
from ..torch.product_rows import Trsm
from ..torch.qr_rows import Qr
from ..torch.served import check_info, refusal, serves_system
from .call import Call, order_of, size_of, stacks_size

__all__ = ["geqrf", "householder_product", "lstsq", "ormqr", "qr"]


class _R:
    """R alone, and the Q without elements that PyTorch gives with it."""

    @staticmethod
    def empty(a):
        *batch, m, n = a.shape
        return a.new_empty(0), by_columns(a, (*batch, min(m, n), n))

    @staticmethod
    def compute(outputs, a):
        r = outputs[1]
        if r.numel():
            factors = lapack.geqrf(copied_by_columns(a), None, 1)[0]
            r.copy_(factors[..., : r.shape[-2], :].triu())


def qr(A, mode="reduced"):
    if mode not in ("reduced", "complete", "r"):
        return "mode"
    row, arguments = (_R, (A,)) if mode == "r" else (Qr, (A, mode == "complete"))
    return refusal(A, square=False) or Call(order_of(A), row, arguments, threshold=stacks_size(A, "qr"))


class _Geqrf:
    """R with the reflectors below it, and their factors."""

    @staticmethod
    def empty(a):
        return by_columns(a, a.shape), a.new_empty((*a.shape[:-2], min(a.shape[-2:])))

    @staticmethod
    def compute(outputs, a):
        factors, tau = outputs
        factors.copy_(a)
        if a.numel():
            tau.copy_(lapack.geqrf(factors, None, 1)[1])


def geqrf(a):
    return refusal(a, square=False) or Call(order_of(a), _Geqrf, (a,), threshold=stacks_size(a, "qr"))


class _HouseholderProduct:
    """The first columns of Q."""

    @staticmethod
    def empty(reflectors, tau):
        return by_columns(reflectors, reflectors.shape)

    @staticmethod
    def compute(out, reflectors, tau):
        out.copy_(reflectors)
        if out.numel():
            lapack.orgqr(out, tau.resolve_conj(), None, 1)


def _refusal_of_factors(reflectors: Tensor, tau: Tensor) -> str | None:
    """Why reflectors and their factors are not served."""
    why = refusal(reflectors, square=False)
    if why or tau.dtype != reflectors.dtype or tau.device != reflectors.device:
        return why or "dtype"
    fits = tau.ndim and tau.shape[:-1] == reflectors.shape[:-2] and tau.shape[-1] <= reflectors.shape[-1]
    return None if fits else "shape"


def householder_product(reflectors, tau):
    why = _refusal_of_factors(reflectors, tau)
    if not why and reflectors.shape[-1] > reflectors.shape[-2]:
        why = "shape"
    if why:
        return why
    size = size_of(*reflectors.shape, tau.shape[-1])
    return Call(size, _HouseholderProduct, (reflectors, tau), threshold=stacks_size(reflectors, "qr"))


class _Ormqr:
    """The product of Q, or of its conjugate transpose, and a matrix."""

    @staticmethod
    def empty(reflectors, tau, c, left, transpose):
        return by_columns(c, c.shape)

    @staticmethod
    def compute(out, reflectors, tau, c, left, transpose):
        out.copy_(c)
        if out.numel() and tau.numel():
            vectors = reflectors[..., : tau.shape[-1]].resolve_conj()
            lapack.ormqr(int(not left), 2 * transpose, vectors, tau.resolve_conj(), out, None, 1)


def ormqr(reflectors, tau, other, left=True, transpose=False):
    why = _refusal_of_factors(reflectors, tau) or refusal(other, square=False)
    if why:
        return why
    if other.dtype != tau.dtype or other.device != tau.device:
        return "dtype"
    order = other.shape[-2 if left else -1]
    if other.shape[:-2] != tau.shape[:-1] or reflectors.shape[-2] != order or tau.shape[-1] > order:
        return "shape"
    arguments = (reflectors, tau, other, left, transpose)
    return Call(size_of(*other.shape, tau.shape[-1]), _Ormqr, arguments, threshold=stacks_size(other, "qr"))


def _refined(a: Tensor, b: Tensor) -> tuple[Tensor, ...] | None:
    """Return solution and residuals of a tall device matrix by products; None where that is none."""
    if a.ndim > 2 or b.ndim > 2 or a.shape[0] < SHARE * a.shape[1] or not b.numel():
        return None
    arrays = taken("lstsq", {"a": a, "b": b})
    if not are_tried(arrays, a, b) or (found := refined_solution(arrays, *arrays.each)) is None:
        return None
    return tuple(map(arrays.returned, found))


class _Lstsq:
    """Least squares by QR factors of a matrix, or of its conjugate transpose, of full rank."""

    @staticmethod
    def empty(a, b, is_vector):
        batch, (m, n), k = torch.broadcast_shapes(a.shape[:-2], b.shape[:-2]), a.shape[-2:], b.shape[-1]
        real = a.dtype.to_real()
        residuals = a.new_empty((*batch, k) if m > n else 0, dtype=real)
        solution = a.new_empty((*batch, n)) if is_vector else by_columns(a, (*batch, n, k))
        return solution, residuals, a.new_empty(0, dtype=torch.int64), a.new_empty(0, dtype=real)

    @staticmethod
    def compute(outputs, a, b, is_vector):
        solution, residuals = outputs[:2]
        m, n = a.shape[-2:]
        batch = torch.broadcast_shapes(a.shape[:-2], b.shape[:-2])
        if (found := _refined(a, b)) is not None:
            solution.copy_(found[0][..., 0] if is_vector else found[0])
            residuals.copy_(found[1])
            return
        a = (a if m >= n else adjoint(a)).expand(*batch, max(m, n), min(m, n))
        factors, tau, _, _ = lapack.geqrf(copied_by_columns(a), None, 1)
        triangle = factors[..., : min(m, n), :]
        zeros = triangle.diagonal(dim1=-2, dim2=-1) == 0
        info = torch.where(zeros.any(-1), zeros.int().argmax(-1) + 1, 0).int()
        check_info(info, "torch.linalg.lstsq", a)
        y = by_columns(b, (*batch, max(m, n), b.shape[-1]))
        y[..., :m, :].copy_(b)
        if m >= n:
            lapack.ormqr("L", "C", factors, tau, y, None, 1)
            x = by_columns(b, (*batch, n, b.shape[-1]))
            Trsm.compute(x, triangle, y[..., :n, :], 1, True, False, False)
        else:
            x = y
            top = by_columns(b, (*batch, m, b.shape[-1]))
            Trsm.compute(top, adjoint(triangle), y[..., :m, :], 1, True, True, False)
            x[..., :m, :].copy_(top)
            x[..., m:, :].zero_()
            lapack.ormqr("L", "N", factors, tau, x, None, 1)
        if m > n:
            torch.sum(y[..., n:, :].abs().square(), -2, out=residuals)
        solution.copy_(x[..., 0] if is_vector else x)


def lstsq(A, b, rcond=None, *, driver=None):
    if driver != "gels" and (driver is not None or not A.is_cuda):
        return "driver"
    if not serves_system(A, b):
        return refusal(A, square=False) or "shape"
    is_vector = b.ndim == 1 or (b.ndim == A.ndim - 1 and b.shape == A.shape[:-1])
    right = b[..., None] if is_vector else b
    size = size_of(*A.shape, min(A.shape[-2:]))
    return Call(size, _Lstsq, (A, right, is_vector), threshold=stacks_size(A, "qr"))
