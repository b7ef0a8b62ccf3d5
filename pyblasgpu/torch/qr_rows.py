"""The row of QR factors."""

from __future__ import annotations

import torch
from torch import Tensor

import pyblasgpu as pb

from ..api.linalg.arrays import taken
from ..api.linalg.cholesky_qr import SHARE, cholesky_qr, is_tall
from ..operators import qr as rows
from .memory import by_columns, copied_by_columns
from .operators import Operator, register

__all__ = ["qr"]


#: Elements of tall matrices, at least: of fewer the host takes longer than reflectors do.
LEAST_ELEMENTS = 1 << 24


def _has_tall_factors(q: Tensor, r: Tensor, a: Tensor) -> bool:
    """Compute Q and R of tall device matrices by Cholesky factors, unless reflectors are to make them."""
    if a.shape[-2] < SHARE * a.shape[-1] or a.numel() < LEAST_ELEMENTS:
        return False
    arrays = taken("qr", {"a": a})
    if not is_tall(arrays, a) or not arrays.may_wait:
        return False
    found = cholesky_qr(arrays, arrays.each[0], None if arrays.library.host else q)
    for out, each in zip((q, r), found or (), strict=False):
        if each is not out:
            out.copy_(arrays.returned(each))
    return found is not None


class Qr(rows.Qr, Operator):
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
        if not complete and _has_tall_factors(q, r, a):
            return
        factors, tau, _, _ = pb.lapack.geqrf(copied_by_columns(a), None, 1)
        r.copy_(factors[..., : r.shape[-2], :].triu())
        q[..., k:].zero_()
        q[..., :k].copy_(factors[..., :k])
        pb.lapack.orgqr(q, tau, None, 1)


qr = register(Qr)
