"""The Cholesky factor of a Hermitian positive definite A in place: L L^H = A, or U^H U = A.

A is normalised once: the upper triangle of A is the lower one of its transpose, and so are the factors. One
matrix, or few, may go by panels (`potrf_panels`). A large one goes by blocks of columns: the next block is
factored while the columns right of it are updated (`lookahead`). On tensor cores a block of double precision
takes all before it at once (`potrf_residues`). The recursion splits off as many rows as a power of two, at
most `PANEL`. Of a stack there are at most as many as one launch of TRSM solves by. It ends in leaves of one
launch:

    [A11    ]      factor A11 = L11 L11^H
    [A21 A22]      A21 := A21 L11^-H (TRSM), A22 -= A21 A21^H (a triangle by GEMM), factor A22

The first leaf sets info; the others leave it, and their blocks, where an earlier pivot was not positive.
"""

from __future__ import annotations

from functools import partial

from ...dispatch.algorithms import lookahead_width, tiles_per_block
from ...dispatch.choose import select
from ...dispatch.overrides import get_override, method_of
from ...gpu.device import current
from ...kernels.factor.cholesky import potrf_leaf, potrf_small
from ...kernels.factor.cholesky.potrf_leaf import PotrfLeaf
from ...operands import Operand
from ...types import TENSOR, Diag, Region, Side, Uplo
from ..copies import emit_copy, emit_zeros_beyond, is_readable
from ..launch_list import CALL, LaunchList, cached_launch_list
from ..level3 import trsm
from ..level3.gemm import emit_gemm
from ..level3.triangular import split
from . import potrf_panels
from .factor_steps import emit_potrf_leaf, emit_readable, leaf_config, with_alpha
from .laswp import words
from .lookahead import emit_lookahead

__all__ = ["PANEL", "PANELS", "RECURSION", "emit", "emit_lower", "launch_list"]

PANELS, RECURSION = "panels", "recursion"
MOST_COPIED = 2 << 30  # bytes of a matrix that is factored by columns in the workspace
#: The algorithm of one matrix and of few; a larger batch goes by the recursion.
ALGORITHM = PANELS
#: Rows of the largest block that the recursion splits off.
PANEL = 1 << 30


def launch_list(info: Operand, a: Operand, *, uplo: Uplo, clean: bool = False) -> LaunchList | None:
    """Return the launch list for operands of these layouts, run with alpha 1; None for no work.

    Parameters
    ----------
    info : Operand
        One element a matrix of the batch; its first four bytes become an int32: 0, or the number (from 1) of
        the first pivot that is not positive.
    a : Operand
        n by n, of which the `uplo` triangle is read and becomes the factor; the imaginary parts of the
        diagonal are not read, and become zero.
    uplo : Uplo
    clean : bool
        Whether the other triangle becomes zero; else it is neither read nor written.
    """
    return None if a.is_empty else cached_launch_list(emit, (info, a), (uplo, clean))


def emit(launches: LaunchList, info: Operand, a: Operand, uplo: Uplo, clean: bool) -> None:
    """Emit the whole call. A leaf writes the zeros of a matrix that it can read in place, and may read
    another one, unless what is beyond the triangle stays.
    """
    launches.source_pointer = 1 if clean else None
    lower, config = a if uplo is Uplo.LOWER else a.T, leaf_config(launches, potrf_leaf.STEM, a.rows)
    if a.rows <= potrf_small.ORDER and a.batch > _blocks_at_once(launches, config.specialize(a.rows)):
        _emit_small(launches, info, lower, clean)
        return
    if clean and a.rows <= config.ORDER and is_readable(a):
        integers = emit_potrf_leaf(launches, config.specialize(a.rows), info, lower, 0, clean)
        launches.source_integers = integers if uplo is Uplo.LOWER else lambda source: integers(source.T)
        return
    if clean:
        launches.source_region = Region.of(uplo)
    place = _place_by_columns(launches, lower, clean)
    if place is not None:
        emit_copy(launches, 1.0, lower, place, Region.LOWER)
        emit_lower(launches, info, place)
        emit_copy(launches, 1.0, place, lower, Region.LOWER)
    if clean:
        emit_zeros_beyond(launches, a, uplo)
    if place is None:
        emit_readable(launches, lower, lambda readable: emit_lower(launches, info, readable))


def _place_by_columns(launches: LaunchList, lower: Operand, clean: bool) -> Operand | None:
    """Return where a large row-major triangle is factored by columns, for which products are faster: in the
    other triangle, which becomes zero, or in the workspace; None: where it is.
    """
    if lower.by_rows or lower.batch > 1 or not is_readable(lower):
        return None
    if lower.rows < launches.policy.potrf_by_columns_min_order[lower.dtype.letter]:
        return None
    if clean:
        return lower.T
    room = MOST_COPIED if launches.workspace_left is None else min(MOST_COPIED, launches.workspace_left)
    n = lower.rows
    return launches.scratch(n, n, 1) if n * n * lower.dtype.itemsize <= room else None


def _blocks_at_once(launches: LaunchList, config: PotrfLeaf) -> int:
    """Matrices that leaves factor at a time."""
    device = current(launches.device)
    return device.sm_count * device.occupancy(config.threads, config.registers, config.shared_bytes)


def _emit_small(launches: LaunchList, info: Operand, a: Operand, clean: bool) -> None:
    """Emit the factors of many small lower triangles, several a warp."""
    device = current(launches.device)
    config = select(potrf_small.STEM, launches.dtype, "", (a.rows,), device).config

    def integers(info: Operand, _: Operand, a: Operand) -> tuple[int, ...]:
        strides = a.row_stride, a.col_stride, words(info)[1], a.batch_stride
        return a.rows, int(clean), config.lanes(a.rows), a.batch, *strides

    blocks = config.grid(a.rows, a.batch)
    launches.emit_batch(potrf_small.source(config), blocks, (info, a, a), integers, ())


def emit_lower(launches: LaunchList, info: Operand, a: Operand, before: int = 0) -> None:
    """Emit the factor of a lower triangle, which `before` rows of the whole matrix precede."""
    n = a.rows
    config = leaf_config(launches, potrf_leaf.STEM, n)
    if n <= config.ORDER:
        emit_potrf_leaf(launches, config.specialize(n), info, a, before)
        return
    by_panels = (get_override("potrf_algorithm") or ALGORITHM) == PANELS
    is_one = by_panels and a.batch == 1
    if is_one and a.dtype.real_size == 8 and method_of(None) == TENSOR:
        from . import potrf_residues  # with kernels that others do without

        kept = potrf_residues.plan(launches, a)
        if kept is not None:
            factor = partial(_emit_block, launches, info, a, before)
            with launches.chain():
                potrf_residues.emit_columns(launches, a, kept, factor)
            return
    looks_ahead = is_one and launches.lane == CALL
    block = lookahead_width("potrf", a.dtype, n, launches.policy, a.batch) if looks_ahead else 0
    if 0 < block < n:
        with launches.chain():
            _emit_blocks(launches, info, a, before, block)
        return
    if by_panels and potrf_panels.applies(launches, n, a.batch):
        with launches.chain():
            potrf_panels.emit_columns(launches, info, a, before)
        return
    most = get_override("potrf") or (PANEL if a.batch == 1 else _most_of_stack(launches, a, config.ORDER))
    first = min(max(split(n), config.ORDER), max(most, config.ORDER))
    rest = n - first
    a11, a21 = a.block(0, 0, first, first), a.block(first, 0, rest, first)
    a22 = a.block(first, first, rest, rest)
    emit_lower(launches, info, a11, before)
    _emit_rows_below(launches, a11, a21)
    region = Region.of(Uplo.LOWER, hermitian=a.dtype.is_complex)
    emit_gemm(launches, -1.0, a21, a21.T.conjugate(), 1.0, a22, region)
    emit_lower(launches, info, a22, before + first)


def _most_of_stack(launches: LaunchList, a: Operand, order: int) -> int:
    """Rows of the largest block of a stack, from `order` on: as many as a TRSM of one launch solves by."""
    while 2 * order < a.rows:
        triangle, below = (
            a.block(0, 0, 2 * order, 2 * order),
            a.block(2 * order, 0, a.rows - 2 * order, 2 * order),
        )
        trial = LaunchList(launches.dtype, launches.device)
        operands = (trial.at_virtual_address(each, slot) for slot, each in enumerate((triangle, below)))
        _emit_rows_below(trial, *operands)
        if len(trial.entries) > 1:
            break
        order *= 2
    return order


def _emit_rows_below(launches: LaunchList, a11: Operand, a21: Operand) -> None:
    """Emit A21 := A21 L11^-H."""
    right = a11.T.conjugate()
    with_alpha(launches, 1.0, lambda: trsm.emit(launches, right, a21, Side.RIGHT, Uplo.UPPER, Diag.NON_UNIT))


def _emit_block(
    launches: LaunchList, info: Operand, a: Operand, before: int, first: int, columns: int
) -> None:
    """Emit the factor of a block of columns from the row `first` on, with all rows below."""
    rows = a.rows - first
    if potrf_panels.applies(launches, rows):
        potrf_panels.emit_columns(launches, info, a.block(first, first, rows, columns), before + first)
        return
    a11 = a.block(first, first, columns, columns)
    emit_lower(launches, info, a11, before + first)
    if rows > columns:
        below = a.block(first + columns, first, rows - columns, columns)
        _emit_rows_below(launches, a11, below)


def _emit_blocks(launches: LaunchList, info: Operand, a: Operand, before: int, block: int) -> None:
    """Emit the factor with lookahead, by blocks of `block` columns."""
    n = a.rows
    bounds = [*range(0, n, block), n, n]

    def factor(j: int) -> None:
        _emit_block(launches, info, a, before, bounds[j], bounds[j + 1] - bounds[j])

    def update(j: int, first: int, end: int) -> None:
        potrf_panels.emit_update(launches, a, (bounds[j], bounds[j + 1]), (bounds[first], bounds[end]))

    tiles = tiles_per_block(launches.policy)
    emit_lookahead(launches, len(bounds) - 2, factor, update, lambda j: None, tiles)
