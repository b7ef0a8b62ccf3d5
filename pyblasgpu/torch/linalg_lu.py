"""Functions of `torch.linalg` by LU factors, with its signatures, tuples and errors.

What the operators do not serve is PyTorch's own function's, with its results and errors. That are other
dtypes and devices, shapes that do not fit, ``out=``, and LU without pivots.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from . import lu_rows
from .served import check_info, served

__all__ = [
    "det",
    "inv",
    "inv_ex",
    "logdet",
    "lu_factor",
    "lu_factor_ex",
    "lu_solve",
    "slogdet",
    "solve",
    "solve_ex",
]


def lu_factor_ex(A: Tensor, *, pivot: bool = True, check_errors: bool = False, out: Any = None) -> Any:
    """LU factors with partial pivoting, pivots and info, as `torch.linalg.lu_factor_ex`.

    Parameters
    ----------
    A : torch.Tensor, shape (..., m, n)
    pivot : bool, default True
        Without pivoting PyTorch's own function computes.
    check_errors : bool, default False
        Whether to wait for info, and to raise where it is not 0.

    Returns
    -------
    LU : torch.Tensor, shape (..., m, n)
        U, and below its diagonal L without its diagonal of ones; column-major.
    pivots : torch.Tensor of int32, shape (..., min(m, n))
        Row i and row ``pivots[i]``, from 1, are interchanged.
    info : torch.Tensor of int32, shape (...)
        0, or the number, from 1, of the first pivot that is zero.

    See Also
    --------
    lu_solve : Solution from the factors.

    Examples
    --------
    >>> import torch
    >>> from pyblasgpu.torch import lu_factor_ex
    >>> lu_factor_ex(torch.tensor([[1.0, 2.0], [2.0, 8.0]])).pivots
    tensor([2, 2], dtype=torch.int32)
    """
    if not pivot or not served(A, out=out, square=False):
        return torch.linalg.lu_factor_ex(A, pivot=pivot, check_errors=check_errors, out=out)
    found, pivots, info = lu_rows.lu_factor_ex(A)
    if check_errors:
        check_info(info, "torch.linalg.lu_factor_ex", A)
    return torch.return_types.linalg_lu_factor_ex((found, pivots, info))


def lu_factor(A: Tensor, *, pivot: bool = True, out: Any = None) -> Any:
    """LU factors with partial pivoting, as `torch.linalg.lu_factor`.

    Parameters
    ----------
    A : torch.Tensor, shape (..., m, n)
    pivot : bool, default True
        Without pivoting PyTorch's own function computes.

    Returns
    -------
    LU : torch.Tensor, shape (..., m, n)
    pivots : torch.Tensor of int32, shape (..., min(m, n))

    Raises
    ------
    RuntimeError
        When a matrix is singular.

    See Also
    --------
    lu_factor_ex : Factors and info, without waiting.

    Examples
    --------
    >>> import torch
    >>> from pyblasgpu.torch import lu_factor
    >>> lu_factor(torch.tensor([[1.0, 2.0], [2.0, 8.0]])).LU
    tensor([[ 2.0000,  8.0000],
            [ 0.5000, -2.0000]])
    """
    if not pivot or not served(A, out=out, square=False):
        return torch.linalg.lu_factor(A, pivot=pivot, out=out)
    found, pivots, info = lu_rows.lu_factor_ex(A)
    check_info(info, "torch.linalg.lu_factor", A)
    return torch.return_types.linalg_lu_factor((found, pivots))


def lu_solve(
    LU: Tensor,
    pivots: Tensor,
    B: Tensor,
    *,
    left: bool = True,
    adjoint: bool = False,
    out: Tensor | None = None,
) -> Tensor:
    """Solution X of ``op(A) X = B``, or ``X op(A) = B``, from the LU factors, as `torch.linalg.lu_solve`.

    Parameters
    ----------
    LU, pivots : torch.Tensor
        The results of `lu_factor`.
    B : torch.Tensor, shape (..., n, k), or (..., k, n) where `left` is False
    left : bool, default True
        The side of X where A is.
    adjoint : bool, default False
        Whether op is the conjugate transpose.

    Returns
    -------
    torch.Tensor

    See Also
    --------
    lu_factor : The factors.

    Examples
    --------
    >>> import torch
    >>> from pyblasgpu.torch import lu_factor, lu_solve
    >>> lu_solve(*lu_factor(torch.tensor([[1.0, 2.0], [2.0, 8.0]])), torch.tensor([[3.0], [10.0]]))
    tensor([[1.],
            [1.]])
    """
    is_served = served(LU, B, left, out) and pivots.dtype == torch.int32 and pivots.shape == LU.shape[:-1]
    if not is_served or pivots.device != LU.device:
        return torch.linalg.lu_solve(LU, pivots, B, left=left, adjoint=adjoint, out=out)
    return lu_rows.lu_solve(LU, pivots, B, left, adjoint)


def solve_ex(A: Tensor, B: Tensor, *, left: bool = True, check_errors: bool = False, out: Any = None) -> Any:
    """Solution X of ``A X = B``, or of ``X A = B``, and info, as `torch.linalg.solve_ex`.

    Parameters
    ----------
    A : torch.Tensor, shape (..., n, n)
    B : torch.Tensor, shape (..., n, k), (..., n), or (..., k, n) where `left` is False
    left : bool, default True
        The side of X where A is.
    check_errors : bool, default False
        Whether to wait for info, and to raise where it is not 0.

    Returns
    -------
    result : torch.Tensor, shape of `B` with the leading dimensions of both
    info : torch.Tensor of int32, shape (...)
        0, or the number, from 1, of the first pivot that is zero.

    See Also
    --------
    solve : The solution alone.

    Examples
    --------
    >>> import torch
    >>> from pyblasgpu.torch import solve_ex
    >>> solve_ex(torch.tensor([[1.0, 2.0], [2.0, 8.0]]), torch.tensor([3.0, 10.0])).result
    tensor([1., 1.])
    """
    solved = _solved(A, B, left, out)
    if solved is None:
        return torch.linalg.solve_ex(A, B, left=left, check_errors=check_errors, out=out)
    if check_errors:
        check_info(solved[1], "torch.linalg.solve_ex", A)
    return torch.return_types.linalg_solve_ex(solved)


def solve(A: Tensor, B: Tensor, *, left: bool = True, out: Tensor | None = None) -> Tensor:
    """Solution X of ``A X = B``, or of ``X A = B``, as `torch.linalg.solve`.

    Parameters
    ----------
    A : torch.Tensor, shape (..., n, n)
    B : torch.Tensor, shape (..., n, k), (..., n), or (..., k, n) where `left` is False
    left : bool, default True
        The side of X where A is.

    Returns
    -------
    torch.Tensor
        The solution, shaped as `B`, with the leading dimensions of both.

    Raises
    ------
    torch.linalg.LinAlgError
        When a matrix is singular.

    See Also
    --------
    solve_ex : Solution and info, without waiting.

    Examples
    --------
    >>> import torch
    >>> from pyblasgpu.torch import solve
    >>> solve(torch.tensor([[1.0, 2.0], [2.0, 8.0]]), torch.tensor([3.0, 10.0]))
    tensor([1., 1.])
    """
    solved = _solved(A, B, left, out)
    if solved is None:
        return torch.linalg.solve(A, B, left=left, out=out)
    check_info(solved[1], "torch.linalg.solve", A)
    return solved[0]


def _solved(A: Tensor, B: Tensor, left: bool, out: Any) -> tuple[Tensor, Tensor] | None:
    """Return solution and info, None where the operators do not serve; a `B` of vectors is as PyTorch's."""
    if not isinstance(A, Tensor) or not isinstance(B, Tensor):
        return None
    is_vector = B.ndim == 1 or (A.ndim - 1 == B.ndim and B.shape == A.shape[:-1])
    right = B.unsqueeze(-1) if is_vector else B
    if (is_vector and not left) or not served(A, right, left, out):
        return None
    x, _, _, info = lu_rows.solve_ex(A, right, left)
    return (x.squeeze(-1) if is_vector else x), info


def inv_ex(A: Tensor, *, check_errors: bool = False, out: Any = None) -> Any:
    """Inverse and info, as `torch.linalg.inv_ex`.

    Parameters
    ----------
    A : torch.Tensor, shape (..., n, n)
    check_errors : bool, default False
        Whether to wait for info, and to raise where it is not 0.

    Returns
    -------
    inverse : torch.Tensor, shape (..., n, n)
    info : torch.Tensor of int32, shape (...)
        0, or the number, from 1, of the first pivot that is zero.

    See Also
    --------
    inv : The inverse alone.

    Examples
    --------
    >>> import torch
    >>> from pyblasgpu.torch import inv_ex
    >>> inv_ex(torch.tensor([[1.0, 2.0], [2.0, 8.0]])).inverse
    tensor([[ 2.0000, -0.5000],
            [-0.5000,  0.2500]])
    """
    if not served(A, out=out):
        return torch.linalg.inv_ex(A, check_errors=check_errors, out=out)
    inverse, info = lu_rows.inv_ex(A)
    if check_errors:
        check_info(info, "linalg.inv_ex", A)
    return torch.return_types.linalg_inv_ex((inverse, info))


def inv(A: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Inverse of matrices, as `torch.linalg.inv`.

    Parameters
    ----------
    A : torch.Tensor, shape (..., n, n)

    Returns
    -------
    torch.Tensor, shape (..., n, n)

    Raises
    ------
    torch.linalg.LinAlgError
        When a matrix is singular.

    See Also
    --------
    inv_ex : Inverse and info, without waiting.

    Examples
    --------
    >>> import torch
    >>> from pyblasgpu.torch import inv
    >>> inv(torch.tensor([[1.0, 2.0], [2.0, 8.0]]))
    tensor([[ 2.0000, -0.5000],
            [-0.5000,  0.2500]])
    """
    if not served(A, out=out):
        return torch.linalg.inv(A, out=out)
    inverse, info = lu_rows.inv_ex(A)
    check_info(info, "linalg.inv", A)
    return inverse


def det(A: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Determinants, as `torch.linalg.det`.

    Parameters
    ----------
    A : torch.Tensor, shape (..., n, n)

    Returns
    -------
    torch.Tensor, shape (...)

    See Also
    --------
    slogdet : Determinants that are too large or too small for a number.

    Examples
    --------
    >>> import torch
    >>> from pyblasgpu.torch import det
    >>> det(torch.tensor([[1.0, 2.0], [2.0, 8.0]]))
    tensor(4.)
    """
    return lu_rows.det(A)[0] if served(A, out=out) else torch.linalg.det(A, out=out)


def slogdet(A: Tensor, *, out: Any = None) -> Any:
    """Sign and logarithm of the absolute value of determinants, as `torch.linalg.slogdet`.

    Parameters
    ----------
    A : torch.Tensor, shape (..., n, n)

    Returns
    -------
    sign : torch.Tensor, shape (...)
    logabsdet : torch.Tensor, shape (...)
        Real.

    See Also
    --------
    logdet : Logarithm of determinants.

    Examples
    --------
    >>> import torch
    >>> from pyblasgpu.torch import slogdet
    >>> slogdet(torch.eye(2)).logabsdet
    tensor(0.)
    """
    if not served(A, out=out):
        return torch.linalg.slogdet(A, out=out)
    return torch.return_types.linalg_slogdet(lu_rows.slogdet(A)[:2])


def logdet(A: Tensor) -> Tensor:
    """Logarithm of determinants, as `torch.logdet`: NaN where one is negative.

    Parameters
    ----------
    A : torch.Tensor, shape (..., n, n)

    Returns
    -------
    torch.Tensor, shape (...)

    See Also
    --------
    inv_quad_logdet : Logarithm for positive definite matrices, with a quadratic form.

    Examples
    --------
    >>> import torch
    >>> from pyblasgpu.torch import logdet
    >>> logdet(torch.eye(2))
    tensor(0.)
    """
    if not served(A):
        return torch.logdet(A)
    sign, logabsdet = lu_rows.slogdet(A)[:2]
    if A.is_complex():
        return sign.log() + logabsdet
    return torch.where(sign == -1, torch.nan, logabsdet)
