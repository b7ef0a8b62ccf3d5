"""A V = V W in place, A symmetric or Hermitian, of the matrices of a batch."""

from __future__ import annotations

from ...gpu.device import current
from ...operands import Operand
from ...types import Dtype, Uplo
from ..launch_list import LaunchList, cached_launch_list
from . import eigh_batched
from .eigh_jacobi import Vectors

__all__ = ["emit", "launch_list", "max_order", "new_launch_list", "refusal"]


def max_order(dtype: Dtype, device: int) -> int:
    """Return the largest order of matrices of a dtype for which there is a kernel on a device."""
    return eigh_batched.max_order(dtype, current(device))


def refusal(name: str, what: str, dtype: Dtype, largest: int) -> str:
    """The text of an error: `what` names an argument that is larger than kernels have it."""
    return (
        f"{name}: {what}; eigenvalues of {dtype.name} are computed on a device to order {largest}, those of "
        "larger matrices by linalg.eigh"
    )


def launch_list(info: Operand, w: Operand, a: Operand, *, uplo: Uplo, vectors: Vectors) -> LaunchList | None:
    """Return the launch list for operands of these layouts, run with alpha 1; None for no work.

    Parameters
    ----------
    info : Operand
        See `eigh_batched.launch_list`.
    w : Operand
        n by 1, of reals; becomes the eigenvalues in ascending order.
    a : Operand
        n by n with n <= `max_order`; one triangle is read. With `vectors` its columns become orthonormal
        eigenvectors, else it is not written.
    uplo : Uplo
        The triangle that is read.
    vectors : bool or pair of int
        See `eigh_batched.launch_list`.

    Raises
    ------
    NotImplementedError
        When the order is larger than kernels have it.
    """
    if a.rows > (largest := max_order(a.dtype, a.device)):
        raise NotImplementedError(refusal("syevd", f"a is of order {a.rows}", a.dtype, largest))
    return None if a.is_empty else cached_launch_list(emit, (info, w, a), (uplo, vectors))


def new_launch_list(
    info: Operand, w: Operand, a: Operand, v: Operand, *, uplo: Uplo, vectors: Vectors
) -> LaunchList | None:
    """Return the same list for eigenvectors that are new: V, of the shape of A, which is not written."""
    return None if v.is_empty else cached_launch_list(_emit_new, (info, w, a, v), (uplo, vectors))


def _emit_new(
    launches: LaunchList, info: Operand, w: Operand, a: Operand, v: Operand, uplo: Uplo, vectors: Vectors
) -> None:
    eigh_batched.emit(launches, w, info, v, a, uplo, vectors)


def emit(launches: LaunchList, info: Operand, w: Operand, a: Operand, uplo: Uplo, vectors: Vectors) -> None:
    """Emit the whole call."""
    eigh_batched.emit(launches, w, info, a, a, uplo, vectors)
