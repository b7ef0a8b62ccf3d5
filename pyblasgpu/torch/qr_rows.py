"""The row of QR factors, and its formulas."""

from __future__ import annotations

import torch
from torch import Tensor

import pyblasgpu as pb

from .memory import by_columns, copied_by_columns
from .operators import Operator, register, total
from .product_rows import gemm, trsm

__all__ = ["qr"]


def _product(a: Tensor, b: Tensor) -> Tensor:
    return gemm(a, b, None, 1, 0, None)


def _right_divided(x: Tensor, r: Tensor, adjoint: bool) -> Tensor:
    """Return ``x R⁻ᴴ`` or ``x R⁻¹``, R upper triangular."""
    return trsm(r.mH if adjoint else r, x, 1, False, adjoint, False)


class Qr(Operator):
    """QR factors: Q with as many columns as R has rows, k or all m."""

    schema = "qr(Tensor a, bool complete)"
    returns = ("q", "r")
    saved = ("q", "r")

    @staticmethod
    def empty(a, complete):
        *batch, m, n = a.shape
        k = m if complete else min(m, n)
        return by_columns(a, (*batch, m, k)), by_columns(a, (*batch, k, n))

    @staticmethod
    def compute(outputs, a, complete):
        q, r = outputs
        k = min(a.shape[-2:])
        if not a.numel():
            r.zero_()
            q.copy_(torch.eye(*q.shape[-2:], dtype=q.dtype, device=q.device))
            return
        factors, tau, _, _ = pb.lapack.geqrf(copied_by_columns(a), None, 1)
        r.copy_(factors[..., : r.shape[-2], :].triu())
        q[..., k:].zero_()
        q[..., :k].copy_(factors[..., :k])
        pb.lapack.orgqr(q, tau, None, 1)

    @staticmethod
    def backward(s, gq, gr):
        m, k = s.q.shape[-2:]
        n = s.r.shape[-1]
        _check_square(s)
        if m < n:  # R = (R1, R2) with a1 = Q R1 and R2 = Qᴴ a2
            first, rest = s.r[..., :m], s.r[..., m:]
            second = None
            if gr is not None:
                one, two = gr[..., :m], gr[..., m:]
                gq, gr, second = total(gq, _product(s.q, _product(rest, two.mH))), one, _product(s.q, two)
            ga = _square_backward(s.q, first, gq, gr)
            return torch.cat((ga, torch.zeros_like(rest) if second is None else second), -1)
        return _square_backward(s.q, s.r[..., :k, :], gq, gr)

    @staticmethod
    def jvp(s, da):
        m = s.q.shape[-2]
        _check_square(s)
        square = min(m, s.r.shape[-1])
        r = s.r[..., :square, :square]
        divided = _right_divided(da[..., :square], r, False)
        c = _product(s.q.mH, divided)
        lower = c.tril(-1)
        turned = lower - lower.mH
        if c.is_complex():
            turned = turned + (1j * c.diagonal(dim1=-2, dim2=-1).imag).diag_embed()
        dq = divided - _product(s.q, c - turned)
        return dq, (_product(s.q.mH, da) - _product(turned, s.r)).triu()


def _check_square(s) -> None:
    """Raise PyTorch's error where Q has columns that R does not determine."""
    if s.q.shape[-1] > s.r.shape[-1]:
        raise RuntimeError(
            "The QR decomposition is not differentiable when mode='complete' and nrows > ncols"
        )


def _square_backward(q: Tensor, r: Tensor, gq: Tensor | None, gr: Tensor | None) -> Tensor:
    """Return the gradient of a matrix with at least as many rows as columns."""
    inner = total(gr is not None and _product(gr, r.mH), gq is not None and -_product(q.mH, gq))
    upper = inner.triu()
    both = upper + upper.mH
    both = both - upper.diagonal(dim1=-2, dim2=-1).real.to(both.dtype).diag_embed()
    return _right_divided(total(gq, _product(q, both)), r, True)


qr = register(Qr)
