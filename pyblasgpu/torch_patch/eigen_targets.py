"""Eigenvalues and singular values of ATen: the calls that `patch_torch` serves, and what computes them."""

from __future__ import annotations

from torch import Tensor

from ..patches.sizes import FEWEST
from ..torch.eigen_rows import Eigh, Eigvalsh, Svd, Svdvals, have_kernels
from ..torch.served import TRIANGLES, check_info, check_singular, refusal
from .call import Call, order_of, stacks_size

__all__ = ["eigh", "svd"]


class _Eigh:
    """Eigenvalues, and eigenvectors or the tensor without elements that PyTorch gives in their place."""

    @staticmethod
    def empty(a, lower, vectors):
        return Eigh.empty(a, lower)[:2] if vectors else (Eigvalsh.empty(a, lower)[0], a.new_empty(0))

    @staticmethod
    def compute(outputs, a, lower, vectors):
        w, v = outputs
        info = Eigvalsh.empty(a, lower)[-1]
        if vectors:
            Eigh.compute((w, v, info), a, lower)
        else:
            Eigvalsh.compute((w, info), a, lower)
        check_info(info, "linalg.eigh", a)


def eigh(A, UPLO="L", compute_v=True):
    why = refusal(A) or (None if UPLO in TRIANGLES else "UPLO")
    if why or not have_kernels("syevd", A):
        return why or "order"
    arguments = (A, TRIANGLES[UPLO], compute_v)
    return Call(order_of(A), _Eigh, arguments, threshold=stacks_size(A, "eigh", FEWEST))


class _Svd:
    """Singular values and vectors, or tensors without elements in the place of these."""

    @staticmethod
    def empty(a, full, vectors):
        if vectors:
            return Svd.empty(a, full)[:3]
        return a.new_empty(0), Svdvals.empty(a)[0], a.new_empty(0)

    @staticmethod
    def compute(outputs, a, full, vectors):
        sigma: Tensor = outputs[1]
        info = Svdvals.empty(a)[-1]
        if vectors:
            Svd.compute((*outputs, info), a, full)
        else:
            Svdvals.compute((sigma, info), a)
        check_singular(info, sigma, a)


def svd(A, full_matrices=False, compute_uv=True, *, driver=None):
    why = "driver" if driver is not None else refusal(A, square=False)
    if why or not have_kernels("gesdd", A, compute_uv):
        return why or "order"
    arguments = (A, full_matrices, compute_uv)
    return Call(order_of(A), _Svd, arguments, threshold=stacks_size(A, "svd", FEWEST))
