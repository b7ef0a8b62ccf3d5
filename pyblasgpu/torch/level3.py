"""Level 3 in keyword style, as functions that PyTorch differentiates, compiles and maps."""

from __future__ import annotations

from torch import Tensor

from ..arguments import Flag, Number
from ..types import Diag, Side, Trans, Uplo
from . import product_rows
from .tensors import TENSORS

__all__ = ["gemm", "gemmtr", "hemm", "herk", "symm", "syrk", "trmm", "trsm"]


def _op(x: Tensor, trans: Flag, name: str, argument: str) -> Tensor:
    """Return the operand as a view: itself, its transpose or its conjugate transpose."""
    if trans == "N":
        return x
    parsed = Trans.parse(trans, name, argument)
    return x if parsed is Trans.NO else x.mT if parsed is Trans.TRANS else x.mH


def _is_lower(lower: Flag, name: str) -> bool:
    return lower if lower is True or lower is False else Uplo.parse(lower, name, "lower") is Uplo.LOWER


def _is_left(side: Flag, name: str) -> bool:
    return side == "L" or Side.parse(side, name, "side") is Side.LEFT


def _added(name: str, c: Tensor | None, beta: Number) -> tuple[Tensor | None, Number]:
    """Return the matrix that is added, and its factor, a number; None where `beta` is 0."""
    is_tensor = isinstance(beta, Tensor)
    if not is_tensor and beta == 0:
        return None, 0
    if c is None:
        raise ValueError(f"{name}: beta={beta} needs c, the matrix that it scales")
    return (beta * c, 1) if is_tensor else (c, beta)


def gemm(
    a: Tensor,
    b: Tensor,
    c: Tensor | None = None,
    *,
    alpha: Number = 1,
    beta: Number = 0,
    trans_a: Flag = "N",
    trans_b: Flag = "N",
    method: str | None = None,
) -> Tensor:
    """General matrix product: ``alpha op(a) op(b) + beta c``.

    Parameters
    ----------
    a, b : torch.Tensor
        The factors, or stacks of them; leading dimensions broadcast.
    c : torch.Tensor, optional
        Matrix that is added; not read where `beta` is 0.
    alpha, beta : number or torch.Tensor, optional
        By default 1 and 0. Tensors of one element may have gradients.
    trans_a, trans_b : {'N', 'T', 'C'}, default 'N'
        The ops: the matrix itself, its transpose, its conjugate transpose.
    method : {'3m', 'tensor'}, optional
        See `pyblasgpu.gemm`.

    Returns
    -------
    torch.Tensor
        A new tensor, row-major.

    See Also
    --------
    pyblasgpu.gemm : Product in place, of arrays of any library.

    Examples
    --------
    >>> import torch
    >>> from pyblasgpu.torch import gemm
    >>> a = torch.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    >>> gemm(a, a, trans_b="T").sum().backward()
    >>> a.grad
    tensor([[ 8., 12.],
            [ 8., 12.]])
    """
    a = a if trans_a == "N" else _op(a, trans_a, "gemm", "trans_a")
    b = b if trans_b == "N" else _op(b, trans_b, "gemm", "trans_b")
    if isinstance(alpha, Tensor):  # whose gradient may be wanted
        b, alpha = alpha * b, 1
    c, beta = _added("gemm", c, beta)
    return product_rows.gemm(a, b, c, alpha, beta, method)


def gemmtr(
    a: Tensor,
    b: Tensor,
    c: Tensor | None = None,
    *,
    alpha: Number = 1,
    beta: Number = 0,
    lower: Flag = False,
    trans_a: Flag = "N",
    trans_b: Flag = "N",
) -> Tensor:
    """One triangle of ``alpha op(a) op(b) + beta c``; the other one is zero.

    Parameters
    ----------
    a, b, c, alpha, beta, trans_a, trans_b
        As those of `gemm`; one triangle of `c` is read.
    lower : bool or {'L', 'U'}, default False
        Which triangle.

    Returns
    -------
    torch.Tensor
        A new tensor, row-major.

    See Also
    --------
    gemm : The whole product.

    Examples
    --------
    >>> import torch
    >>> from pyblasgpu.torch import gemmtr
    >>> gemmtr(torch.tensor([[1.0], [2.0]]), torch.tensor([[3.0, 4.0]]), lower=True)
    tensor([[3., 0.],
            [6., 8.]])
    """
    a, b = _op(a, trans_a, "gemmtr", "trans_a"), _op(b, trans_b, "gemmtr", "trans_b")
    if isinstance(alpha, Tensor):
        b, alpha = alpha * b, 1
    c, beta = _added("gemmtr", c, beta)
    return product_rows.gemmtr(a, b, c, alpha, beta, _is_lower(lower, "gemmtr"))


def syrk(
    a: Tensor,
    c: Tensor | None = None,
    *,
    alpha: Number = 1,
    beta: Number = 0,
    lower: Flag = False,
    trans: Flag = "N",
) -> Tensor:
    """One triangle of ``alpha op(a) op(a)ᵀ + beta c``; the other one is zero.

    Parameters
    ----------
    a : torch.Tensor
        The factor, or a stack.
    c, alpha, beta, lower
        As those of `gemmtr`.
    trans : {'N', 'T'}, default 'N'
        The op.

    Returns
    -------
    torch.Tensor
        A new tensor, row-major.

    See Also
    --------
    herk : With the conjugate transpose.

    Examples
    --------
    >>> import torch
    >>> from pyblasgpu.torch import syrk
    >>> syrk(torch.tensor([[1.0], [2.0]]), lower=True)
    tensor([[1., 0.],
            [2., 4.]])
    """
    if a.is_complex() and Trans.parse(trans, "syrk", "trans") is Trans.CONJ:
        raise ValueError("syrk: trans=C of complex tensors is for herk")
    return _rank_k("syrk", a, c, alpha, beta, lower, trans)


def herk(
    a: Tensor,
    c: Tensor | None = None,
    *,
    alpha: Number = 1,
    beta: Number = 0,
    lower: Flag = False,
    trans: Flag = "N",
) -> Tensor:
    """One triangle of ``alpha op(a) op(a)ᴴ + beta c``, its diagonal real; the other one is zero.

    Parameters
    ----------
    a, c, lower
        As those of `syrk`.
    alpha, beta : number or torch.Tensor, optional
        Real; by default 1 and 0.
    trans : {'N', 'C'}, default 'N'
        The op.

    Returns
    -------
    torch.Tensor
        A new tensor, row-major.

    See Also
    --------
    syrk : With the transpose.

    Examples
    --------
    >>> import torch
    >>> from pyblasgpu.torch import herk
    >>> herk(torch.tensor([[1.0], [2.0j]]), lower=True)
    tensor([[1.+0.j, 0.+0.j],
            [0.+2.j, 4.+0.j]])
    """
    if a.is_complex() and Trans.parse(trans, "herk", "trans") is Trans.TRANS:
        raise ValueError("herk: trans=T of complex tensors is for syrk")
    return _rank_k("herk", a, c, alpha, beta, lower, trans)


def _rank_k(
    name: str, a: Tensor, c: Tensor | None, alpha: Number, beta: Number, lower: Flag, trans: Flag
) -> Tensor:
    a, is_lower, hermitian = _op(a, trans, name, "trans"), _is_lower(lower, name), name == "herk"
    c, beta = _added(name, c, beta)
    if not isinstance(alpha, Tensor):
        return product_rows.rank_k(a, c, alpha, beta, is_lower, hermitian)
    product = alpha * product_rows.rank_k(a, None, 1, 0, is_lower, hermitian)
    if c is None:
        return product
    return product + beta * TENSORS.with_real_diagonal(TENSORS.triangle(c, is_lower), hermitian)


def symm(
    a: Tensor,
    b: Tensor,
    c: Tensor | None = None,
    *,
    alpha: Number = 1,
    beta: Number = 0,
    side: Flag = "L",
    lower: Flag = False,
) -> Tensor:
    """Product with a symmetric matrix: ``alpha a b + beta c``, or ``alpha b a + beta c`` from the right.

    Parameters
    ----------
    a : torch.Tensor
        One triangle of symmetric matrices.
    b, c, alpha, beta
        As those of `gemm`.
    side : {'L', 'R'}, default 'L'
        The side of `b` where `a` is.
    lower : bool or {'L', 'U'}, default False
        Which triangle of `a` is read.

    Returns
    -------
    torch.Tensor
        A new tensor, row-major.

    See Also
    --------
    hemm : Product with a Hermitian matrix.

    Examples
    --------
    >>> import torch
    >>> from pyblasgpu.torch import symm
    >>> symm(torch.tensor([[1.0, 2.0], [0.0, 3.0]]), torch.eye(2))
    tensor([[1., 2.],
            [2., 3.]])
    """
    left, low = _is_left(side, "symm"), _is_lower(lower, "symm")
    if isinstance(alpha, Tensor):
        b, alpha = alpha * b, 1
    c, beta = _added("symm", c, beta)
    return product_rows.symm(a, b, c, alpha, beta, left, low, False)


def hemm(
    a: Tensor,
    b: Tensor,
    c: Tensor | None = None,
    *,
    alpha: Number = 1,
    beta: Number = 0,
    side: Flag = "L",
    lower: Flag = False,
) -> Tensor:
    """Product with a Hermitian matrix: ``alpha a b + beta c``, or ``alpha b a + beta c`` from the right.

    Parameters
    ----------
    a : torch.Tensor
        One triangle of Hermitian matrices; imaginary parts of the diagonal are not read.
    b, c, alpha, beta, side, lower
        As those of `symm`.

    Returns
    -------
    torch.Tensor
        A new tensor, row-major.

    See Also
    --------
    symm : Product with a symmetric matrix.

    Examples
    --------
    >>> import torch
    >>> from pyblasgpu.torch import hemm
    >>> hemm(torch.tensor([[1.0, 2.0j], [0.0, 3.0]]), torch.eye(2, dtype=torch.complex64))
    tensor([[1.+0.j, 0.+2.j],
            [0.-2.j, 3.+0.j]])
    """
    left, low = _is_left(side, "hemm"), _is_lower(lower, "hemm")
    if isinstance(alpha, Tensor):
        b, alpha = alpha * b, 1
    c, beta = _added("hemm", c, beta)
    return product_rows.symm(a, b, c, alpha, beta, left, low, True)


def trmm(
    a: Tensor,
    b: Tensor,
    *,
    alpha: Number = 1,
    side: Flag = "L",
    lower: Flag = False,
    trans: Flag = "N",
    unit_diag: Flag = False,
) -> Tensor:
    """Product with a triangle: ``alpha op(a) b``, or ``alpha b op(a)`` from the right.

    Parameters
    ----------
    a : torch.Tensor
        Triangles; the other one is not read.
    b : torch.Tensor
        The other factor.
    alpha : number or torch.Tensor, default 1
    side : {'L', 'R'}, default 'L'
        The side of `b` where `a` is.
    lower : bool or {'L', 'U'}, default False
        Which triangle of `a` is read.
    trans : {'N', 'T', 'C'}, default 'N'
        The op.
    unit_diag : bool, default False
        Whether the diagonal of `a` is taken as ones.

    Returns
    -------
    torch.Tensor
        A new tensor, row-major.

    See Also
    --------
    trsm : Solution of a triangular system.

    Examples
    --------
    >>> import torch
    >>> from pyblasgpu.torch import trmm
    >>> trmm(torch.tensor([[2.0, 0.0], [1.0, 2.0]]), torch.tensor([[4.0], [4.0]]), lower=True)
    tensor([[ 8.],
            [12.]])
    """
    return _triangular("trmm", a, b, alpha, side, lower, trans, unit_diag)


def trsm(
    a: Tensor,
    b: Tensor,
    *,
    alpha: Number = 1,
    side: Flag = "L",
    lower: Flag = False,
    trans: Flag = "N",
    unit_diag: Flag = False,
) -> Tensor:
    """Solution x of ``op(a) x = alpha b``, or of ``x op(a) = alpha b`` from the right.

    Parameters
    ----------
    a, b, alpha, side, lower, trans, unit_diag
        As those of `trmm`.

    Returns
    -------
    torch.Tensor
        A new tensor, column-major.

    See Also
    --------
    solve_triangular : PyTorch's signature.

    Examples
    --------
    >>> import torch
    >>> from pyblasgpu.torch import trsm
    >>> trsm(torch.tensor([[2.0, 0.0], [1.0, 2.0]]), torch.tensor([[8.0], [12.0]]), lower=True)
    tensor([[4.],
            [4.]])
    """
    return _triangular("trsm", a, b, alpha, side, lower, trans, unit_diag)


def _triangular(
    name: str, a: Tensor, b: Tensor, alpha: Number, side: Flag, lower: Flag, trans: Flag, unit_diag: Flag
) -> Tensor:
    is_lower = _is_lower(lower, name)
    if trans != "N":
        is_lower = is_lower == (Trans.parse(trans, name, "trans") is Trans.NO)
        a = _op(a, trans, name, "trans")
    unit = unit_diag is not False and Diag.parse(unit_diag, name, "unit_diag") is Diag.UNIT
    if isinstance(alpha, Tensor):
        b, alpha = alpha * b, 1
    return getattr(product_rows, name)(a, b, alpha, _is_left(side, name), is_lower, unit)
