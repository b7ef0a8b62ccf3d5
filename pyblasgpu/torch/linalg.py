"""Functions of `torch.linalg` by the operators, with its signatures, named tuples and errors.

What the operators do not serve (other dtypes and devices, shapes that do not fit, ``out=``, LU without
pivots) is PyTorch's own function's, with its results and errors.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from . import cholesky_rows as factors
from . import gaussian_rows as gaussian
from . import lu_rows as lu
from . import product_rows as products

__all__ = [
    "cholesky", "cholesky_ex", "cholesky_inverse", "cholesky_solve", "det", "inv", "inv_ex",
    "inv_quad_logdet", "logdet", "lu_factor", "lu_factor_ex", "lu_solve", "slogdet", "solve", "solve_ex",
    "solve_triangular",
]  # fmt: skip

_DTYPES = (torch.float32, torch.float64, torch.complex64, torch.complex128)


def _served(
    a: Tensor, b: Tensor | None = None, left: bool = True, out: Any = None, square: bool = True
) -> bool:
    """Whether the operators take the matrices `a`, and `b` at this side of them."""
    if out is not None or not isinstance(a, Tensor) or a.ndim < 2:
        return False
    if a.dtype not in _DTYPES or a.device.type not in ("cpu", "cuda") or a.layout != torch.strided:
        return False
    if square and a.shape[-1] != a.shape[-2]:
        return False
    if b is None:
        return True
    if not isinstance(b, Tensor) or b.dtype != a.dtype or b.device != a.device or b.ndim < 2:
        return False
    pairs = zip(reversed(a.shape[:-2]), reversed(b.shape[:-2]), strict=False)
    return b.shape[-2 if left else -1] == a.shape[-1] and all(m == n or 1 in (m, n) for m, n in pairs)


def _check(info: Tensor, name: str, a: Tensor) -> None:
    """Raise `torch.linalg.LinAlgError` where info is not 0; waits, as PyTorch's own functions do."""
    torch._linalg_check_errors(info, name, is_matrix=a.ndim == 2)


def cholesky_ex(A: Tensor, *, upper: bool = False, check_errors: bool = False, out: Any = None) -> Any:
    """Cholesky factors and info, as `torch.linalg.cholesky_ex`.

    Its gradient is computed by the reverse mode of the blocked factorization (Murray, arXiv:1602.07527), and
    is Hermitian.

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
    if not _served(A, out=out):
        return torch.linalg.cholesky_ex(A, upper=upper, check_errors=check_errors, out=out)
    factor, info = factors.cholesky_ex(A, upper)
    if check_errors:
        _check(info, "linalg.cholesky_ex", A)
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
    if not _served(A, out=out):
        return torch.linalg.cholesky(A, upper=upper, out=out)
    factor, info = factors.cholesky_ex(A, upper)
    _check(info, "linalg.cholesky", A)
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
    if not _served(A, B, left, out):
        flags = {"upper": upper, "left": left, "unitriangular": unitriangular}
        return torch.linalg.solve_triangular(A, B, out=out, **flags)
    return products.trsm(A, B, 1, left, not upper, unitriangular)


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
    if not _served(L, B, out=out):
        return torch.cholesky_solve(B, L, upper, out=out)
    return factors.cholesky_solve(B, L, upper)


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
    if not _served(L, out=out):
        return torch.cholesky_inverse(L, upper, out=out)
    return factors.cholesky_inverse(L, upper)


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
    if not pivot or not _served(A, out=out, square=False):
        return torch.linalg.lu_factor_ex(A, pivot=pivot, check_errors=check_errors, out=out)
    found, pivots, info = lu.lu_factor_ex(A)
    if check_errors:
        _check(info, "torch.linalg.lu_factor_ex", A)
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
    if not pivot or not _served(A, out=out, square=False):
        return torch.linalg.lu_factor(A, pivot=pivot, out=out)
    found, pivots, info = lu.lu_factor_ex(A)
    _check(info, "torch.linalg.lu_factor", A)
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
    is_served = _served(LU, B, left, out) and pivots.dtype == torch.int32 and pivots.shape == LU.shape[:-1]
    if not is_served or pivots.device != LU.device:
        return torch.linalg.lu_solve(LU, pivots, B, left=left, adjoint=adjoint, out=out)
    return lu.lu_solve(LU, pivots, B, left, adjoint)


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
        _check(solved[1], "torch.linalg.solve_ex", A)
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
    _check(solved[1], "torch.linalg.solve", A)
    return solved[0]


def _solved(A: Tensor, B: Tensor, left: bool, out: Any) -> tuple[Tensor, Tensor] | None:
    """Return solution and info, None where the operators do not serve; a `B` of vectors is as PyTorch's."""
    if not isinstance(A, Tensor) or not isinstance(B, Tensor):
        return None
    is_vector = B.ndim == 1 or (A.ndim - 1 == B.ndim and B.shape == A.shape[:-1])
    right = B.unsqueeze(-1) if is_vector else B
    if (is_vector and not left) or not _served(A, right, left, out):
        return None
    x, _, _, info = lu.solve_ex(A, right, left)
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
    if not _served(A, out=out):
        return torch.linalg.inv_ex(A, check_errors=check_errors, out=out)
    inverse, info = lu.inv_ex(A)
    if check_errors:
        _check(info, "linalg.inv_ex", A)
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
    if not _served(A, out=out):
        return torch.linalg.inv(A, out=out)
    inverse, info = lu.inv_ex(A)
    _check(info, "linalg.inv", A)
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
    return lu.det(A)[0] if _served(A, out=out) else torch.linalg.det(A, out=out)


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
    if not _served(A, out=out):
        return torch.linalg.slogdet(A, out=out)
    return torch.return_types.linalg_slogdet(lu.slogdet(A)[:2])


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
    if not _served(A):
        return torch.logdet(A)
    sign, logabsdet = lu.slogdet(A)[:2]
    if A.is_complex():
        return sign.log() + logabsdet
    return torch.where(sign == -1, torch.nan, logabsdet)


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
    if not _served(K, right):
        what = (
            f"K of {K.dtype} {tuple(K.shape)} on {K.device} and y of {y.dtype} {tuple(y.shape)} on {y.device}"
        )
        raise RuntimeError(
            f"inv_quad_logdet: {what} are no square matrices and right-hand sides of float or complex"
        )
    quad, logarithm, _, _, info = gaussian.inv_quad_logdet(K, right)
    _check(info, "linalg.cholesky", K)
    return quad, logarithm
