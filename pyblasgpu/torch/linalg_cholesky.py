"""Functions of `torch.linalg` by Cholesky factors and triangles, with its signatures, tuples and errors.

What the operators do not serve is PyTorch's own function's, with its results and errors. That are other
dtypes and devices, shapes that do not fit, ``out=``, and LU without pivots.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from . import cholesky_rows, gaussian_rows, product_rows
from .early_info import with_info
from .served import check_info, served

__all__ = [
    "cholesky",
    "cholesky_ex",
    "cholesky_inverse",
    "cholesky_solve",
    "inv_quad_logdet",
    "solve_triangular",
]


def cholesky_ex(A: Tensor, *, upper: bool = False, check_errors: bool = False, out: Any = None) -> Any:
    """Cholesky factors and info, as `torch.linalg.cholesky_ex`.

    Its gradient is Hermitian. Large matrices take the reverse mode of the blocked factorization (Murray,
    arXiv:1602.07527), smaller ones whole products and solutions.

    Parameters
    ----------
    A : torch.Tensor, shape (..., n, n)
        Hermitian positive definite matrices, of which the lower triangle is read, or the upper one.
    upper : bool, default False
        Whether the factor is upper triangular.
    check_errors : bool, default False
        Whether to wait for info, and to raise where it is not 0.

    Returns
    -------
    L : torch.Tensor, shape (..., n, n)
        The factor, column-major.
    info : torch.Tensor of int32, shape (...)
        0, or the number, from 1, of the first pivot that is not positive.

    Raises
    ------
    torch.linalg.LinAlgError
        With ``check_errors=True``, when a matrix is not positive definite.

    See Also
    --------
    cholesky : The factor alone.

    Examples
    --------
    >>> import torch
    >>> from pyblasgpu.torch import cholesky_ex
    >>> cholesky_ex(torch.tensor([[4.0, 2.0], [2.0, 5.0]])).L
    tensor([[2., 0.],
            [1., 2.]])
    """
    if not served(A, out=out):
        return torch.linalg.cholesky_ex(A, upper=upper, check_errors=check_errors, out=out)
    factor, info = cholesky_rows.cholesky_ex(A, upper)
    if check_errors:
        check_info(info, "linalg.cholesky_ex", A)
    return torch.return_types.linalg_cholesky_ex((factor, info))


def cholesky(A: Tensor, *, upper: bool = False, out: Tensor | None = None) -> Tensor:
    """Cholesky factors of Hermitian positive definite matrices, as `torch.linalg.cholesky`.

    Parameters
    ----------
    A : torch.Tensor, shape (..., n, n)
    upper : bool, default False
        Whether the factor is upper triangular.

    Returns
    -------
    torch.Tensor, shape (..., n, n)

    Raises
    ------
    torch.linalg.LinAlgError
        When a matrix is not positive definite.

    See Also
    --------
    cholesky_ex : Factor and info, without waiting.

    Examples
    --------
    >>> import torch
    >>> from pyblasgpu.torch import cholesky
    >>> a = torch.tensor([[4.0, 2.0], [2.0, 5.0]], requires_grad=True)
    >>> cholesky(a).diagonal().log().sum().backward()
    >>> a.grad  # half of the inverse
    tensor([[ 0.1562, -0.0625],
            [-0.0625,  0.1250]])
    """
    if not served(A, out=out):
        return torch.linalg.cholesky(A, upper=upper, out=out)
    factor, info = cholesky_rows.cholesky_ex(A, upper)
    check_info(info, "linalg.cholesky", A)
    return factor


def solve_triangular(
    A: Tensor,
    B: Tensor,
    *,
    upper: bool,
    left: bool = True,
    unitriangular: bool = False,
    out: Tensor | None = None,
) -> Tensor:
    """Solution X of ``A X = B``, or of ``X A = B``, with triangles A, as `torch.linalg.solve_triangular`.

    Parameters
    ----------
    A : torch.Tensor, shape (..., n, n)
        Triangles; the other one is not read.
    B : torch.Tensor, shape (..., n, k), or (..., k, n) where `left` is False
    upper : bool
        Which triangle.
    left : bool, default True
        The side of X where A is.
    unitriangular : bool, default False
        Whether the diagonal of A is taken as ones.

    Returns
    -------
    torch.Tensor
        The solution, column-major.

    See Also
    --------
    trsm : The BLAS's signature.

    Examples
    --------
    >>> import torch
    >>> from pyblasgpu.torch import solve_triangular
    >>> solve_triangular(torch.tensor([[2.0, 0.0], [1.0, 2.0]]), torch.tensor([[4.0], [4.0]]), upper=False)
    tensor([[2.],
            [1.]])
    """
    if not served(A, B, left, out):
        flags = {"upper": upper, "left": left, "unitriangular": unitriangular}
        return torch.linalg.solve_triangular(A, B, out=out, **flags)
    return product_rows.trsm(A, B, 1, left, not upper, unitriangular)


def cholesky_solve(B: Tensor, L: Tensor, upper: bool = False, *, out: Tensor | None = None) -> Tensor:
    """Solution X of ``A X = B`` from the Cholesky factor of A, as `torch.cholesky_solve`.

    Parameters
    ----------
    B : torch.Tensor, shape (..., n, k)
    L : torch.Tensor, shape (..., n, n)
    upper : bool, default False
        Whether `L` is upper triangular.

    Returns
    -------
    torch.Tensor, shape (..., n, k)

    See Also
    --------
    cholesky : The factor.

    Examples
    --------
    >>> import torch
    >>> from pyblasgpu.torch import cholesky_solve
    >>> cholesky_solve(torch.tensor([[8.0], [14.0]]), torch.tensor([[2.0, 0.0], [1.0, 2.0]]))
    tensor([[0.7500],
            [2.5000]])
    """
    if not served(L, B, out=out):
        return torch.cholesky_solve(B, L, upper, out=out)
    return cholesky_rows.cholesky_solve(B, L, upper)


def cholesky_inverse(L: Tensor, upper: bool = False, *, out: Tensor | None = None) -> Tensor:
    """Inverse of A from its Cholesky factor, as `torch.cholesky_inverse`.

    Parameters
    ----------
    L : torch.Tensor, shape (..., n, n)
    upper : bool, default False
        Whether `L` is upper triangular.

    Returns
    -------
    torch.Tensor, shape (..., n, n)

    See Also
    --------
    inv : Inverse from the matrix itself.

    Examples
    --------
    >>> import torch
    >>> from pyblasgpu.torch import cholesky_inverse
    >>> cholesky_inverse(torch.tensor([[0.5, 0.0], [0.5, 0.5]]))
    tensor([[ 8., -4.],
            [-4.,  4.]])
    """
    if not served(L, out=out):
        return torch.cholesky_inverse(L, upper, out=out)
    return cholesky_rows.cholesky_inverse(L, upper)


def inv_quad_logdet(K: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """``tr(yᴴ K⁻¹ y)`` and ``log det K`` of Hermitian positive definite matrices.

    The logarithm of a Gaussian density is made of both. Its gradient is one inverse from the Cholesky factor
    and a rank-k update, in place of the reverse mode of the factorization.

    Parameters
    ----------
    K : torch.Tensor, shape (..., n, n)
        The lower triangle is read.
    y : torch.Tensor, shape (..., n, k), or (n,)
        Right-hand sides, over which the quadratic form is summed.

    Returns
    -------
    quad, logdet : torch.Tensor, shape (...)
        Real.

    Raises
    ------
    torch.linalg.LinAlgError
        When a matrix is not positive definite; the call waits to know it.
    RuntimeError
        When shapes, dtypes or devices do not fit, or the dtype is not served.

    See Also
    --------
    cholesky : The factor.

    Examples
    --------
    >>> import torch
    >>> from pyblasgpu.torch import inv_quad_logdet
    >>> K = torch.tensor([[4.0, 2.0], [2.0, 5.0]], requires_grad=True)
    >>> quad, logdet = inv_quad_logdet(K, torch.tensor([8.0, 14.0]))
    >>> quad
    tensor(41., grad_fn=<InvQuadLogdetBackward>)
    >>> logdet.backward()
    >>> K.grad
    tensor([[ 0.3125, -0.1250],
            [-0.1250,  0.2500]])
    """
    right = y.unsqueeze(-1) if y.ndim == 1 else y
    if not served(K, right):
        what = (
            f"K of {K.dtype} {tuple(K.shape)} on {K.device} and y of {y.dtype} {tuple(y.shape)} on {y.device}"
        )
        raise RuntimeError(
            f"inv_quad_logdet: {what} are no square matrices and right-hand sides of float or complex"
        )
    if torch.compiler.is_dynamo_compiling():
        results, early = gaussian_rows.inv_quad_logdet(K, right), None
    else:
        results, early = with_info(gaussian_rows.inv_quad_logdet, K, right)
    quad, logarithm, _, _, info = results
    check_info(info if early is None else early, "linalg.cholesky", K)
    return quad, logarithm
