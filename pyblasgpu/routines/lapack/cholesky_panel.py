"""Q R of columns with many more rows, by Cholesky factors of Gram matrices, as LAPACK's geqrf leaves them.

R1 of A^H A = R1^H R1 gives Q1 = A R1^-1. A second round with Q1 makes Q = Q1 R2^-1 orthonormal to roundoff
(Yamamoto, Nakatsukasa, Yanagisawa and Fukaya, 2015). `orhr_leaf` makes Householder vectors of Q. So columns
cost products and triangular solutions, and no barrier each.

Of tall matrices Q1 is in the workspace. Then the vectors are a product with W^-1, by which A is overwritten.
W is well conditioned; R1 need not be, and a product with its inverse has residuals that substitution has not.

Where a Cholesky factor fails, or Q1 is too far from orthonormal, info is not 0. Then `geqp3` or `geqrf_tall`
factors those matrices from a copy, by reflectors. It is launched for all, and reads info: the host does not
wait.
"""

from __future__ import annotations

from ...dispatch.leaf import runs
from ...gpu.device import current
from ...kernels.factor.cholesky import potrf_leaf
from ...kernels.factor.qr import orhr_leaf
from ...operands import Operand
from ...types import Diag, Region, Side, Uplo
from ..copies import emit_copy, emit_copy_to_workspace, is_readable
from ..launch_list import LaunchList
from ..level3 import trsm
from ..level3.gemm import emit_gemm
from ..level3.triangular import split
from . import geqp3, tall_panel, trtri
from .factor_steps import emit_potrf_leaf, emit_restore, leaf_config, with_alpha
from .laswp import words

__all__ = ["applies", "emit", "leaves_idle"]

SHARE = 2  # rows for each column, at least: the condition of fewer random rows is large
FEW = 16  # columns that reflectors take less time for
#: Multiprocessors that each matrix has at least, so that those that fail do not take much longer.
BLOCKS = 4
TALL = 1 << 14  # rows of columns of which each is too much for one block
NARROW = 64  # columns of tall matrices that substitution takes at a time; products go between them


def applies(launches: LaunchList, a: Operand) -> bool:
    """Whether the columns of A are factored so: there are enough rows, and the kernels can have them."""
    device, n = current(launches.device), a.cols
    if (
        n < FEW
        or not leaves_idle(launches, a)
        or a.rows < max(SHARE * n, launches.policy.cholesky_panel_min_rows)
        or not is_readable(a)
    ):
        return False
    stems = potrf_leaf.STEM, orhr_leaf.STEM
    return all(runs(stem, device) and n <= leaf_config(launches, stem, n).ORDER for stem in stems)


def leaves_idle(launches: LaunchList, a: Operand) -> bool:
    """Whether there are too few matrices for kernels of one block each to fill the device."""
    return a.batch * BLOCKS <= current(launches.device).sm_count


def emit(launches: LaunchList, tau: Operand, a: Operand) -> None:
    """Emit the factors of the columns of A.

    Parameters
    ----------
    launches : LaunchList
    tau : Operand
        n by 1; becomes the factors of the reflectors.
    a : Operand
        m by n; R replaces its upper triangle, the vectors what is below.
    """
    n, is_tall = a.cols, a.rows > TALL
    with launches.temporary():
        copy = launches.scratch(a.rows, n, a.batch) if is_tall else emit_copy_to_workspace(launches, a)
        info, q = launches.scratch(1, 1, a.batch), copy if is_tall else a
        first, second, r = (launches.scratch(n, n, a.batch) for _ in range(3))
        _emit_round(launches, info, first, a, 0)
        _emit_solution(launches, first.T.conjugate(), a, q)
        _emit_round(launches, info, second, q, n)
        emit_gemm(launches, 1.0, second.T.conjugate(), first.T.conjugate(), 0.0, r)
        _emit_vectors(launches, info, tau, q, (first, second, r))
        if is_tall:
            _emit_product(launches, info, q, r, a)
            tall_panel.emit_where_failed(launches, info, tau, a, copy)
        else:
            below = a.block(n, 0, a.rows - n, n)
            _emit_solution(launches, r, below, below)
            geqp3.emit_where_failed(launches, info, tau, a, copy)


def _emit_round(launches: LaunchList, info: Operand, factor: Operand, a: Operand, before: int) -> None:
    """Emit the lower Cholesky factor of A^H A; of a second round an info that is not 0 stays.

    The k of a batch is not split, but shared by the blocks of a kernel that computes all of A^H A.
    """
    region = Region.of(Uplo.LOWER, hermitian=a.dtype.is_complex) if a.batch == 1 else Region.ALL
    emit_gemm(launches, 1.0, a.T.conjugate(), a, 0.0, factor, region)
    config = leaf_config(launches, potrf_leaf.STEM, a.cols).specialize(a.cols)
    emit_potrf_leaf(launches, config, info, factor, before, clean=True, is_near=before > 0)


def _emit_solution(launches: LaunchList, r: Operand, a: Operand, q: Operand) -> None:
    """Emit Q := A R^-1, of tall matrices by products and substitution with few columns; Q may be A."""
    (m, n), is_copied = (a.rows, a.cols), q is not a
    if m > TALL and n > NARROW:
        middle = split(-(-n // NARROW)) * NARROW
        sources = _halves(a, middle)
        left, right = _halves(q, middle) if is_copied else sources
        _emit_solution(launches, r.block(0, 0, middle, middle), sources[0], left)
        if is_copied:
            emit_copy(launches, 1.0, sources[1], right)
        emit_gemm(launches, -1.0, left, r.block(0, middle, middle, n - middle), 1.0, right)
        _emit_solution(launches, r.block(middle, middle, n - middle, n - middle), right, right)
        return
    with_alpha(launches, 1.0, lambda: _emit_substitution(launches, r, a, q, is_copied))


def _emit_substitution(launches: LaunchList, r: Operand, a: Operand, q: Operand, is_copied: bool) -> None:
    how = Side.RIGHT, Uplo.UPPER, Diag.NON_UNIT
    if is_copied and trsm.emit_apart(launches, r, a, q, *how):
        return
    if is_copied:
        emit_copy(launches, 1.0, a, q)
    trsm.emit(launches, r, q, *how)


def _halves(a: Operand, middle: int) -> tuple[Operand, Operand]:
    """The columns before `middle`, and the others."""
    return a.block(0, 0, a.rows, middle), a.block(0, middle, a.rows, a.cols - middle)


def _emit_product(launches: LaunchList, info: Operand, q: Operand, w: Operand, a: Operand) -> None:
    """Emit the vectors, rows of Q1 W^-1 below those on top, over A; W becomes its inverse.

    Where info is not 0, Q1 becomes A before.
    """
    (m, n), own_info = (a.rows, a.cols), launches.scratch(1, 1, a.batch)
    trtri.emit_inverse(launches, own_info, w, Uplo.UPPER, Diag.NON_UNIT)
    emit_restore(launches, info, a, q)
    emit_gemm(launches, 1.0, q.block(n, 0, m - n, n), w, 0.0, a.block(n, 0, m - n, n))
    emit_copy(launches, 1.0, q.block(0, 0, n, n), a.block(0, 0, n, n))


def _emit_vectors(
    launches: LaunchList, info: Operand, tau: Operand, a: Operand, triangles: tuple[Operand, ...]
) -> None:
    """Emit R, tau and the vectors in the square on top, and W over `triangles[-1]`."""

    def integers(tau: Operand, a: Operand, first: Operand, _second: Operand, _r: Operand, info: Operand):
        steps = tau.row_stride, a.row_stride, a.col_stride, first.col_stride
        return a.cols, *steps, tau.batch_stride, a.batch_stride, first.batch_stride, words(info)[1]

    config = leaf_config(launches, orhr_leaf.STEM, a.cols)
    square = a.block(0, 0, a.cols, a.cols)
    launches.emit(orhr_leaf.source(config), 1, (tau, square, *triangles, info), integers, ())
