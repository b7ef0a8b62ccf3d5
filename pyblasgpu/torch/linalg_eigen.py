"""Functions of `torch.linalg` by eigenvalues and singular values, with its signatures, tuples and errors.

The operators compute matrices on a device that are larger than this library's kernels have them by PyTorch's
own functions. What they do not serve (other dtypes and devices, ``out=``, drivers) is those functions' too.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from . import eigen_rows
from .served import REALS, TRIANGLES, check_info, check_singular, served

__all__ = ["eigh", "eigvalsh", "matrix_rank", "pinv", "svd", "svdvals"]


def _takes_gradients(A: Tensor) -> bool:
    """Whether values are wanted with vectors, of which their gradients are made."""
    return A.requires_grad and torch.is_grad_enabled()


def eigh(A: Tensor, UPLO: str = "L", *, out: Any = None) -> Any:
    """Eigenvalues and eigenvectors of Hermitian matrices, as `torch.linalg.eigh`.

    Parameters
    ----------
    A : torch.Tensor, shape (..., n, n)
        Orders to 16384 are computed on a device, larger ones there by PyTorch's own function.
    UPLO : {'L', 'U'}, default 'L'
        The triangle that is read.

    Returns
    -------
    eigenvalues : torch.Tensor, shape (..., n)
        Real, in ascending order.
    eigenvectors : torch.Tensor, shape (..., n, n)
        Orthonormal columns; column-major.

    Raises
    ------
    torch.linalg.LinAlgError
        When a matrix is not finite, or the iteration does not converge.
    RuntimeError
        In the backward of a loss that depends on phases of complex vectors.

    See Also
    --------
    eigvalsh : Eigenvalues alone.

    Notes
    -----
    Gradients through eigenvectors are finite where eigenvalues are distinct, those of the values always.

    Examples
    --------
    >>> import torch
    >>> from pyblasgpu.torch import eigh
    >>> eigh(torch.tensor([[2.0, 0.0], [0.0, 1.0]])).eigenvalues
    tensor([1., 2.])
    """
    if UPLO not in TRIANGLES or not served(A, out=out):
        return torch.linalg.eigh(A, UPLO, out=out)
    w, v, info = eigen_rows.eigh(A, TRIANGLES[UPLO])
    check_info(info, "linalg.eigh", A)
    return torch.return_types.linalg_eigh((w, v))


def eigvalsh(A: Tensor, UPLO: str = "L", *, out: Any = None) -> Tensor:
    """Eigenvalues of Hermitian matrices, as `torch.linalg.eigvalsh`.

    Parameters
    ----------
    A : torch.Tensor, shape (..., n, n)
        Matrices that `eigh` takes.
    UPLO : {'L', 'U'}, default 'L'
        The triangle that is read.

    Returns
    -------
    torch.Tensor, shape (..., n)
        Real, in ascending order.

    Raises
    ------
    torch.linalg.LinAlgError
        When a matrix is not finite, or the iteration does not converge.

    See Also
    --------
    eigh : Eigenvectors too.

    Examples
    --------
    >>> import torch
    >>> from pyblasgpu.torch import eigvalsh
    >>> eigvalsh(torch.tensor([[2.0, 0.0], [0.0, 1.0]]))
    tensor([1., 2.])
    """
    if UPLO not in TRIANGLES or not served(A, out=out):
        return torch.linalg.eigvalsh(A, UPLO, out=out)
    found = (eigen_rows.eigh if _takes_gradients(A) else eigen_rows.eigvalsh)(A, TRIANGLES[UPLO])
    check_info(found[-1], "linalg.eigh", A)
    values: Tensor = found[0]
    return values


def svd(A: Tensor, full_matrices: bool = True, *, driver: str | None = None, out: Any = None) -> Any:
    """Singular values and vectors, as `torch.linalg.svd`.

    Parameters
    ----------
    A : torch.Tensor, shape (..., m, n)
        Lesser extents to some hundred are computed on a device, larger ones there by PyTorch's own function.
    full_matrices : bool, default True
        Whether there are m left and n right vectors, else min(m, n) of each.
    driver : str, optional
        PyTorch's own function computes where it is passed.

    Returns
    -------
    U : torch.Tensor, shape (..., m, m) or (..., m, k)
        Left vectors in columns; column-major.
    S : torch.Tensor, shape (..., k)
        Singular values in descending order.
    Vh : torch.Tensor, shape (..., n, n) or (..., k, n)
        Conjugated right vectors in rows.

    Raises
    ------
    torch.linalg.LinAlgError
        When a matrix is not finite, or the iteration does not converge.
    RuntimeError
        In the backward of a loss that depends on phases of complex vectors.

    See Also
    --------
    svdvals : Singular values alone.

    Notes
    -----
    Gradients through vectors are finite where singular values are distinct, and not zero in rectangles; those
    of the values always. The vectors that `full_matrices` adds have none.

    Examples
    --------
    >>> import torch
    >>> from pyblasgpu.torch import svd
    >>> svd(torch.tensor([[1.0, 0.0], [0.0, 2.0]])).S
    tensor([2., 1.])
    """
    if driver is not None or not served(A, out=out, square=False):
        return torch.linalg.svd(A, full_matrices, driver=driver, out=out)
    u, sigma, vh, info = eigen_rows.svd(A, bool(full_matrices))
    check_singular(info, sigma, A)
    return torch.return_types.linalg_svd((u, sigma, vh))


def svdvals(A: Tensor, *, driver: str | None = None, out: Any = None) -> Tensor:
    """Singular values, as `torch.linalg.svdvals`.

    Parameters
    ----------
    A : torch.Tensor, shape (..., m, n)
        Matrices that `svd` takes.
    driver : str, optional
        PyTorch's own function computes where it is passed.

    Returns
    -------
    torch.Tensor, shape (..., min(m, n))
        In descending order.

    Raises
    ------
    torch.linalg.LinAlgError
        When a matrix is not finite, or the iteration does not converge.

    See Also
    --------
    svd : Singular vectors too.

    Examples
    --------
    >>> import torch
    >>> from pyblasgpu.torch import svdvals
    >>> svdvals(torch.tensor([[1.0, 0.0], [0.0, 2.0]]))
    tensor([2., 1.])
    """
    if driver is not None or not served(A, out=out, square=False):
        return torch.linalg.svdvals(A, driver=driver, out=out)
    if _takes_gradients(A):
        _, sigma, _, info = eigen_rows.svd(A, False)
    else:
        sigma, info = eigen_rows.svdvals(A)
    check_singular(info, sigma, A)
    return sigma


def _tolerances(A: Tensor, atol: Any, rtol: Any) -> tuple[Tensor, Tensor]:
    """Return the absolute and the relative bound: by default the roundoff times the larger extent."""
    real = REALS[A.dtype]
    least = torch.finfo(real).eps * max(A.shape[-2:])

    def as_tensor(bound: Any) -> Tensor:
        return bound.to(real) if isinstance(bound, Tensor) else A.new_full((), bound, dtype=real)

    absolute = as_tensor(0.0 if atol is None else atol)
    if rtol is not None:
        return absolute, as_tensor(rtol)
    return absolute, torch.where(absolute > 0, 0.0, as_tensor(least)) if atol is not None else as_tensor(
        least
    )


def pinv(
    A: Tensor,
    rcond: Any = None,
    hermitian: bool = False,
    *,
    atol: Any = None,
    rtol: Any = None,
    out: Any = None,
) -> Tensor:
    """Pseudoinverse, as `torch.linalg.pinv`.

    Parameters
    ----------
    A : torch.Tensor, shape (..., m, n)
        Matrices that `svd` takes, or `eigh` where they are `hermitian`.
    rcond : float or torch.Tensor, optional
        `rtol`, by another name.
    hermitian : bool, default False
        Whether the matrices are Hermitian; the lower triangles are read.
    atol, rtol : float or torch.Tensor, optional
        Singular values up to `atol`, or to `rtol` times the largest of them, count as zero. By default `rtol`
        is the roundoff times the larger extent where `atol` is not positive, else 0.

    Returns
    -------
    torch.Tensor, shape (..., n, m)

    Raises
    ------
    torch.linalg.LinAlgError
        When a matrix is not finite, or the iteration does not converge.

    See Also
    --------
    svd : The singular values.
    matrix_rank : How many of them count.

    Notes
    -----
    Gradients are those of constant rank, and are finite where singular values are equal or zero.

    Examples
    --------
    >>> import torch
    >>> from pyblasgpu.torch import pinv
    >>> pinv(torch.tensor([[2.0, 0.0], [0.0, 0.0]]))
    tensor([[0.5000, 0.0000],
            [0.0000, 0.0000]])
    """
    rtol = rcond if rtol is None else rtol
    if not served(A, out=out, square=hermitian):
        return torch.linalg.pinv(A, atol=atol, rtol=rtol, hermitian=hermitian, out=out)
    bounds = _tolerances(A, atol, rtol)
    inverse, info = eigen_rows.pinv(A, *bounds, bool(hermitian))
    if hermitian:
        check_info(info, "linalg.eigh", A)
    else:
        check_singular(info, inverse[..., :1].flatten(-2), A)
    result: Tensor = inverse
    return result


def matrix_rank(
    A: Tensor,
    tol: Any = None,
    hermitian: bool = False,
    *,
    atol: Any = None,
    rtol: Any = None,
    out: Any = None,
) -> Tensor:
    """Rank of matrices, the number of singular values that count, as `torch.linalg.matrix_rank`.

    Parameters
    ----------
    A : torch.Tensor, shape (..., m, n)
        Matrices that `svdvals` takes, or `eigvalsh` where they are `hermitian`.
    tol : float or torch.Tensor, optional
        The bound alone: `atol` with an `rtol` of 0.
    hermitian : bool, default False
        Whether the matrices are Hermitian; the lower triangles are read.
    atol, rtol : float or torch.Tensor, optional
        Bounds as of `pinv`.

    Returns
    -------
    torch.Tensor of int64, shape (...)

    Raises
    ------
    torch.linalg.LinAlgError
        When a matrix is not finite, or the iteration does not converge.

    See Also
    --------
    svdvals : The singular values.

    Examples
    --------
    >>> import torch
    >>> from pyblasgpu.torch import matrix_rank
    >>> matrix_rank(torch.ones(3, 3))
    tensor(1)
    """
    if tol is not None:
        atol, rtol = tol, 0.0
    if not served(A, out=out, square=hermitian) or not A.numel():
        return torch.linalg.matrix_rank(A, atol=atol, rtol=rtol, hermitian=hermitian, out=out)
    A = A.detach()
    sizes = eigvalsh(A).abs() if hermitian else svdvals(A)
    absolute, relative = _tolerances(A, atol, rtol)
    bound = torch.maximum(absolute, relative * sizes.amax(-1))
    return (sizes > bound[..., None]).sum(-1)
