"""Rows of eigenvalues, singular values, their vectors, and pseudoinverses."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

import pyblasgpu as pb

from ..frontend.calls.lazy_routines import largest_order
from ..operators import eigen as rows
from .memory import adjoint, by_columns, by_rows, integers, where_computed
from .operators import Operator, register
from .served import LETTERS

__all__ = ["eigh", "eigvalsh", "have_kernels", "pinv", "svd", "svdvals"]


def have_kernels(stem: str, a: Tensor, vectors: bool = True) -> bool:
    """Whether `syevd` or `gesdd` computes matrices of this shape; the processor computes all."""
    if not a.is_cuda:
        return True
    return min(a.shape[-2:]) <= largest_order(stem, LETTERS[a.dtype], a.device.index, vectors)


def _reals(a: Tensor) -> Tensor:
    return a.new_empty((*a.shape[:-2], min(a.shape[-2:])), dtype=a.dtype.to_real())


def _info(a: Tensor) -> Tensor:
    return a.new_empty(a.shape[:-2], dtype=torch.int32)


class Eigh(rows.Eigh, Operator):
    @staticmethod
    def empty(a, lower):
        return _reals(a), by_columns(a, a.shape), _info(a)

    @staticmethod
    def compute(outputs, a, lower):
        w, v, info = outputs
        if not a.numel():
            info.zero_()
            return
        if have_kernels("syevd", a):
            values, vectors, failed = pb.lapack.syevd(v.copy_(a), 1, lower, overwrite_a=1)
            integers(failed, info)
        else:
            values, vectors = torch.linalg.eigh(a, "L" if lower else "U")
            info.zero_()
        w.copy_(values)
        if vectors.data_ptr() != v.data_ptr():
            v.copy_(vectors)


class Eigvalsh(rows.Eigvalsh, Operator):
    @staticmethod
    def empty(a, lower):
        return _reals(a), _info(a)

    @staticmethod
    def compute(outputs, a, lower):
        w, info = outputs
        if not a.numel():
            info.zero_()
            return
        if have_kernels("syevd", a):
            values, _, failed = pb.lapack.syevd(a, 0, lower)
            integers(failed, info)
        else:
            values = torch.linalg.eigvalsh(a, "L" if lower else "U")
            info.zero_()
        w.copy_(values)


class Svd(rows.Svd, Operator):
    @staticmethod
    def empty(a, full):
        *batch, m, n = a.shape
        k = min(m, n)
        new = by_rows if a.is_cuda else by_columns  # as PyTorch's
        columns, rows_ = (m, n) if full else (k, k)
        return by_columns(a, (*batch, m, columns)), _reals(a), new(a, (*batch, rows_, n)), _info(a)

    @staticmethod
    def compute(outputs, a, full):
        *results, info = outputs
        found: Any
        if not a.numel():
            found = [torch.eye(*x.shape[-2:], dtype=x.dtype, device=x.device) for x in results[::2]]
            found.insert(1, results[1])
            info.zero_()
        elif have_kernels("gesdd", a):
            *found, failed = pb.lapack.gesdd(a, 1, full)
            integers(failed, info)
        else:
            found = torch.linalg.svd(a, full)
            info.zero_()
        for result, each in zip(results, found, strict=True):
            result.copy_(each)


class Svdvals(rows.Svdvals, Operator):
    @staticmethod
    def empty(a):
        return _reals(a), _info(a)

    @staticmethod
    def compute(outputs, a):
        sigma, info = outputs
        if not a.numel():
            info.zero_()
            return
        if have_kernels("gesdd", a, vectors=False):
            _, values, _, failed = pb.lapack.gesdd(a, 0)
            integers(failed, info)
        else:
            values = torch.linalg.svdvals(a)
            info.zero_()
        sigma.copy_(values)


class Pinv(rows.Pinv, Operator):
    @staticmethod
    def empty(a, atol, rtol, hermitian):
        batch = torch.broadcast_shapes(a.shape[:-2], atol.shape, rtol.shape)
        return by_rows(a, (*batch, a.shape[-1], a.shape[-2])), _info(a)

    @staticmethod
    def compute(outputs, a, atol, rtol, hermitian):
        out, info = outputs
        if not out.numel():
            info.zero_()
            return
        if hermitian:
            values, u, _ = found = Eigh.empty(a, True)
            Eigh.compute(found, a, True)
            right, sizes = u, values.abs()
        else:
            u, values, vh, _ = found = Svd.empty(a, False)
            Svd.compute(found, a, False)
            right, sizes = adjoint(vh), values
        info.copy_(found[-1])
        bound = torch.maximum(atol, rtol * sizes.amax(-1))
        inverse = torch.where(sizes > bound[..., None], values.reciprocal(), 0)
        pb.gemm(right * inverse[..., None, :], adjoint(u), out=out, **where_computed(out))


eigh, eigvalsh, pinv = register(Eigh), register(Eigvalsh), register(Pinv)
svd, svdvals = register(Svd), register(Svdvals)
