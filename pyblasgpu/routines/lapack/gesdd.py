"""A = U S Vᴴ: matrices of a batch, each in the shared memory of a block."""

from __future__ import annotations

from bisect import bisect

from ...gpu.device import current
from ...operands import Operand
from ...types import Dtype
from ..launch_list import LaunchList, cached_launch_list
from . import svd_batched

__all__ = ["emit", "launch_list", "max_extent", "new_launch_list", "refusal", "serves"]

_LIMIT = 4096  # beyond which no kernel has a lesser extent


def serves(rows: int, cols: int, dtype: Dtype, device: int, *, vectors: bool) -> bool:
    """Whether there is a kernel for matrices of this shape and dtype on a device."""
    return svd_batched.serves(rows, cols, dtype, current(device), vectors=vectors)


def max_extent(dtype: Dtype, device: int, *, vectors: bool) -> int:
    """Return the largest lesser extent of matrices of a dtype for which there is a kernel on a device."""
    return bisect(range(1, _LIMIT), False, key=lambda n: not serves(n, n, dtype, device, vectors=vectors))


def refusal(name: str, what: str, dtype: Dtype, device: int, vectors: bool) -> str:
    """The text of an error: `what` names an argument of a shape for which there is no kernel."""
    largest = max_extent(dtype, device, vectors=vectors)
    with_vectors = " with vectors" if vectors else ""
    return (
        f"{name}: {what}; singular values of {dtype.name}{with_vectors} are computed on a device where the "
        f"lesser extent is at most {largest}, those of larger matrices by linalg.svd"
    )


def launch_list(
    info: Operand, s: Operand, u: Operand, vh: Operand, a: Operand, *, vectors: bool
) -> LaunchList | None:
    """Return the launch list for operands of these layouts, run with alpha 1; None for no work.

    Parameters
    ----------
    info, s : Operand
        See `svd_batched.launch_list`.
    u, vh : Operand
        U and the adjoint of V, or their elements in one column: those of U by columns, of the other by rows.
    a : Operand
        m by n; it is not written.
    vectors : bool
        Whether singular vectors are wanted.

    Raises
    ------
    NotImplementedError
        When there are no kernels for the shape.
    """
    m, n = a.rows, a.cols
    if a.is_empty:
        return None
    if not serves(m, n, a.dtype, a.device, vectors=vectors):
        what = f"a is {m} by {n}"
        raise NotImplementedError(refusal("gesdd", what, a.dtype, a.device, vectors))
    return cached_launch_list(emit, (info, s, u, vh, a), (vectors,))


def new_launch_list(
    info: Operand, s: Operand, u: Operand, vh: Operand, a: Operand, out: Operand, *, vectors: bool
) -> LaunchList | None:
    """Return the same list with a new output, which stays as it is."""
    return None if a.is_empty else cached_launch_list(_emit_new, (info, s, u, vh, a, out), (vectors,))


def _emit_new(
    launches: LaunchList,
    info: Operand,
    s: Operand,
    u: Operand,
    vh: Operand,
    a: Operand,
    out: Operand,
    vectors: bool,
) -> None:
    emit(launches, info, s, u, vh, a, vectors)


def emit(
    launches: LaunchList, info: Operand, s: Operand, u: Operand, vh: Operand, a: Operand, vectors: bool
) -> None:
    """Emit the whole call."""
    m, n = a.rows, a.cols
    if vectors:
        u, vh = _by_columns(u, m), _by_columns(vh.T if vh.cols == n else vh, n).T
    svd_batched.emit(launches, s, info, u, vh, a, vectors)


def _by_columns(x: Operand, rows: int) -> Operand:
    """A matrix of these rows, whose elements may be one column, one of its columns after the other."""
    if x.rows == rows:
        return x
    return x._replace(rows=rows, cols=x.rows // rows, col_stride=rows * x.row_stride)
