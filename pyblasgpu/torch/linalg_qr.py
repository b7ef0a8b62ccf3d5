"""Functions of `torch.linalg` by QR factors, with its signatures and tuples.

What the operator does not serve (R alone, ranks) is PyTorch's own function's.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from .product_rows import gemm, trsm
from .qr_rows import qr as qr_operator
from .served import REALS, check_info, served, serves_system

__all__ = ["lstsq", "qr"]


def qr(A: Tensor, mode: str = "reduced", *, out: Any = None) -> Any:
    """QR factors, as `torch.linalg.qr`.

    Parameters
    ----------
    A : torch.Tensor, shape (..., m, n)
    mode : {'reduced', 'complete', 'r'}, default 'reduced'
        Whether Q has min(m, n) columns, or m. With 'r' PyTorch's own function computes.

    Returns
    -------
    Q : torch.Tensor, shape (..., m, min(m, n)) or (..., m, m)
        Orthonormal columns; column-major.
    R : torch.Tensor, shape (..., min(m, n), n) or (..., m, n)
        Upper triangular, with a real diagonal of either sign.

    See Also
    --------
    lstsq : Least squares.

    Examples
    --------
    >>> import torch
    >>> from pyblasgpu.torch import qr
    >>> qr(torch.tensor([[0.0, 1.0], [2.0, 3.0]])).R
    tensor([[-2., -3.],
            [ 0., -1.]])
    """
    if mode not in ("reduced", "complete") or not served(A, out=out, square=False):
        return torch.linalg.qr(A, mode=mode, out=out)
    return torch.return_types.linalg_qr(qr_operator(A, mode == "complete"))


def lstsq(A: Tensor, B: Tensor, rcond: Any = None, *, driver: str | None = None) -> Any:
    """Least-squares solution of ``A X = B``, as `torch.linalg.lstsq`.

    Parameters
    ----------
    A : torch.Tensor, shape (..., m, n)
    B : torch.Tensor, shape (..., m, k) or (..., m)
    rcond : optional
        PyTorch's own function computes where it is passed.
    driver : {'gels', 'gelsy', 'gelsd', 'gelss'}, optional
        'gels', the default of tensors on a device, needs matrices of full rank. With others, 'gelsy' being
        the default of tensors in host memory, PyTorch's own function computes.

    Returns
    -------
    solution : torch.Tensor, shape (..., n, k) or (..., n)
        The one of the least residual, and of the least norm if m < n.
    residuals : torch.Tensor, shape (..., k) or (0,)
        Squared norms of the columns of ``B - A X``, if m > n.
    rank, singular_values : torch.Tensor, shape (0,)

    Raises
    ------
    RuntimeError
        When a matrix has no full rank.

    See Also
    --------
    qr : The factors.

    Examples
    --------
    >>> import torch
    >>> from pyblasgpu.torch import lstsq
    >>> lstsq(torch.tensor([[0.0], [2.0]]), torch.tensor([[1.0], [4.0]]), driver="gels").solution
    tensor([[2.]])
    """
    by_factors = driver == "gels" or (driver is None and isinstance(A, Tensor) and A.is_cuda)
    if not by_factors or rcond is not None or not serves_system(A, B):
        return torch.linalg.lstsq(A, B, rcond, driver=driver)
    is_vector = B.ndim == 1 or (B.ndim == A.ndim - 1 and B.shape == A.shape[:-1])
    right = B[..., None] if is_vector else B
    m, n = A.shape[-2:]
    q, r = qr_operator(A if m >= n else A.mH, False)
    zeros = r.detach().diagonal(dim1=-2, dim2=-1) == 0
    info = torch.where(zeros.any(-1), zeros.int().argmax(-1) + 1, 0).int()
    check_info(info, "torch.linalg.lstsq", A)
    residuals = A.new_empty(0, dtype=REALS[A.dtype])
    if m >= n:
        solution = trsm(r, gemm(q.mH, right, None, 1, 0, None), 1, True, False, False)
        if m > n:
            residuals = (right - gemm(A, solution, None, 1, 0, None)).abs().square().sum(-2)
    else:
        solution = gemm(q, trsm(r.mH, right, 1, True, True, False), None, 1, 0, None)
    solution = solution[..., 0] if is_vector else solution
    values = A.new_empty(0, dtype=REALS[A.dtype])
    rank = torch.empty(0, dtype=torch.int64, device=A.device)
    return torch.return_types.linalg_lstsq((solution, residuals, rank, values))
