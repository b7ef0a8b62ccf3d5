"""C := alpha A B + beta C, or alpha B A + beta C, with A symmetric (SYMM) or Hermitian (HEMM).

Of A one triangle is read. Every case is turned into A on the left, its lower triangle stored. Then the
diagonal blocks are completed in scratch, and multiplied; what is below them is read in place, twice:

    [A11            ]      C := alpha diag(A11, A22, A33, A44) B + beta C
    [A21 A22        ]      C2 += alpha A21 B1, C1 += alpha A21^T B2 (of HEMM A21^H), and so for A43
    [A31 A32 A33    ]      the same with [A31 A32; A41 A42]
    [A41 A42 A43 A44]

so there are no more multiplications than in GEMM. The completed blocks take at most `MOST_COPIED` bytes
at a time; a matrix that fits is one block, and so is one for tensor cores, whose factors are copied in any
case. Partial tiles and split-K slices have to fit into what blocks
leave of the workspace (`most_workspace`).
"""

from __future__ import annotations

from collections.abc import Iterator
from math import isqrt

from ...dispatch.algorithms import completes_all
from ...dispatch.overrides import get_override
from ...gpu.device import current
from ...operands import Operand
from ...types import Side, Uplo
from .. import copies
from ..copies import emit_mirrored, launch_list_of_product
from ..launch_list import ALPHA, BETA, LaunchList
from .gemm import emit_gemm
from .trmm_by_levels import diagonal, off_diagonal_blocks, strided_batch

__all__ = ["emit", "launch_list"]


def launch_list(
    alpha, a: Operand, b: Operand, beta, c: Operand, *, side: Side, uplo: Uplo, hermitian: bool = False
) -> LaunchList | None:
    """Return the launch list for operands of these layouts, and for scalars that are 0 or 1 where these are.

    None where there is nothing to do.

    Parameters
    ----------
    alpha, beta : number
        alpha = 0 reads neither A nor B, beta = 0 does not read C.
    a : Operand
        Square; only its `uplo` triangle is read, without the imaginary parts of a Hermitian diagonal.
    b, c : Operand
        m by n, of the same dtype, batch and device; C apart from A and B.
    side : Side
        The side of A.
    uplo : Uplo
    hermitian : bool
    """
    return launch_list_of_product(emit, alpha, (a, b, c), a.cols, beta, side, uplo, hermitian)


def emit(
    launches: LaunchList,
    a: Operand,
    b: Operand,
    c: Operand,
    overwrite: bool,
    side: Side,
    uplo: Uplo,
    hermitian: bool,
) -> None:
    """Emit the whole call; `overwrite` says that beta is zero."""
    launches.workspace_limit = copies.most_workspace(c)
    if side is Side.RIGHT:
        # C' = A' B', and A' is A or, if Hermitian, conj(A)
        a, b, c = (a.conjugate() if hermitian else a), b.T, c.T
    if uplo is Uplo.UPPER:
        a = _mirrored(a, hermitian)
    stop = _stop(launches, b, c)
    for first, rows, count in diagonal(c.rows, stop, c.batch):
        a11 = strided_batch(a.block(first, first, rows, rows), stop, stop, count)
        b1, c1 = (strided_batch(x.block(first, 0, rows, c.cols), stop, 0, count) for x in (b, c))
        _emit_diagonal(launches, a11, b1, 0.0 if overwrite else BETA, c1, hermitian)
    for height, first, rows, count in off_diagonal_blocks(c.rows, stop, c.batch):
        period, above = 2 * height, first - height
        a21 = strided_batch(a.block(first, above, rows, height), period, period, count)
        b1, c1 = (strided_batch(x.block(above, 0, height, c.cols), period, 0, count) for x in (b, c))
        b2, c2 = (strided_batch(x.block(first, 0, rows, c.cols), period, 0, count) for x in (b, c))
        emit_gemm(launches, ALPHA, a21, b1, 1.0, c2)
        emit_gemm(launches, ALPHA, _mirrored(a21, hermitian), b2, 1.0, c1)


def _emit_diagonal(launches: LaunchList, a: Operand, b: Operand, beta, c: Operand, hermitian: bool) -> None:
    """C := alpha A B + beta C for a batch of diagonal blocks, completed in scratch."""
    shared = a.batch_stride == 0
    for first, count in batch_portions(c.batch, a.rows * a.cols * launches.dtype.itemsize):
        b1, c1 = b.matrices(first, count), c.matrices(first, count)
        with launches.temporary():
            stored = a.matrices(0, 1) if shared else a.matrices(first, count)
            completed = launches.scratch(a.rows, a.cols, stored.batch)
            emit_mirrored(launches, stored, completed, hermitian)
            if shared:
                completed = completed._replace(batch=count, batch_stride=0)
            emit_gemm(launches, ALPHA, completed, b1, beta, c1)


def _mirrored(a: Operand, hermitian: bool) -> Operand:
    """Return A's view from the other side of the diagonal."""
    return a.T.conjugate() if hermitian else a.T


def batch_portions(batch: int, nbytes: int) -> Iterator[tuple[int, int]]:
    """(first, how many) of a batch, in equal portions of at most `MOST_COPIED` bytes, `nbytes` a matrix."""
    portions = -(-batch // max(copies.MOST_COPIED // nbytes, 1))
    for i in range(portions):
        first = batch * i // portions
        yield first, batch * (i + 1) // portions - first


def _stop(launches: LaunchList, b: Operand, c: Operand) -> int:
    """The order of the diagonal blocks. It is an override's, else that of A for tensor cores, else the
    largest power of two of which a block may be copied.
    """
    requested: int | None = get_override("symm")
    problem = launches.dtype, c.rows, c.cols, c.batch
    # tensor cores take no B with neither contiguous columns nor rows
    is_served = 1 in (b.row_stride, b.col_stride)
    if requested is None and is_served and completes_all(*problem, current(launches.device)):
        return c.rows
    most = isqrt(copies.MOST_COPIED // launches.dtype.itemsize)
    return requested or 1 << (most.bit_length() - 1)
