"""Eigenvalues of symmetric and Hermitian matrices of a batch, and their vectors.

Small matrices are solved by Jacobi's method, larger ones by divide and conquer.
"""

from __future__ import annotations

from ...gpu.device import Device, current
from ...operands import Operand
from ...types import Dtype, Uplo
from ..launch_list import LaunchList, cached_launch_list
from . import eigh_divided, eigh_jacobi
from .eigh_jacobi import Vectors

__all__ = ["emit", "launch_list", "max_order"]


def max_order(dtype: Dtype, device: Device) -> int:
    """Return the largest order of matrices of a dtype for which `launch_list` has kernels on a device."""
    return max(eigh_jacobi.max_order(dtype, device, 1), eigh_divided.max_order(dtype, device))


def launch_list(
    w: Operand, info: Operand, v: Operand, a: Operand, *, uplo: Uplo, vectors: Vectors
) -> LaunchList | None:
    """Return the launch list for operands of these layouts, run with alpha 1; None for no work.

    Parameters
    ----------
    w : Operand
        n by 1; becomes the eigenvalues in ascending order. They are reals: where its dtype is complex, they
        are the real parts of its elements, and imaginary parts stay as they are.
    info : Operand
        One element a matrix, of which the first four bytes become an int32. It is 0, or n where A is not
        finite, w and V are NaN then, or where the sweeps of Jacobi's method did not suffice.
    v : Operand
        n by n; its columns become orthonormal eigenvectors. Without `vectors` it is not touched. It may be
        `a` itself, and else must not overlap it.
    a : Operand
        n by n with n <= `max_order`; one triangle is read, imaginary parts of the diagonal are not. It is not
        written.
    uplo : Uplo
        The triangle that is read.
    vectors : bool or pair of int
        Whether eigenvectors are wanted; a pair is the first one that is, and the one after the last. Others
        may be computed then, and V holds anything in their place.
    """
    return None if a.is_empty else cached_launch_list(emit, (w, info, v, a), (uplo, vectors))


def emit(
    launches: LaunchList, w: Operand, info: Operand, v: Operand, a: Operand, uplo: Uplo, vectors: Vectors
) -> None:
    """Emit the whole call."""
    lower = a if uplo is Uplo.LOWER else a.T.conjugate()
    most = eigh_jacobi.max_order(launches.dtype, current(launches.device), a.batch)
    method = eigh_jacobi if a.rows <= most else eigh_divided
    method.emit(launches, w, info, v, lower, vectors)
