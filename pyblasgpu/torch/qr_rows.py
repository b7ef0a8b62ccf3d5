"""The row of QR factors."""

from __future__ import annotations

import torch

import pyblasgpu as pb

from ..operators import qr as rows
from .memory import by_columns, copied_by_columns
from .operators import Operator, register

__all__ = ["qr"]


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
        factors, tau, _, _ = pb.lapack.geqrf(copied_by_columns(a), None, 1)
        r.copy_(factors[..., : r.shape[-2], :].triu())
        q[..., k:].zero_()
        q[..., :k].copy_(factors[..., :k])
        pb.lapack.orgqr(q, tau, None, 1)


qr = register(Qr)
