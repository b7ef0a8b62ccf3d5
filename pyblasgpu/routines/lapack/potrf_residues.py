"""The Cholesky factor of one large matrix in double precision by residues that are kept: from the left.

Each block of columns is packed once it is factored. A later one takes one product with all columns before:

    [L11            ]      [A33]     [A33]   [L31 L32]
    [L21 L22        ]      [A43]  -= [A43] - [L41 L42] [L31 L32]^H, then factor [A33; A43]
    [L31 L32 A33    ]
    [L41 L42 A43 A44]

What makes integers of a row is known beforehand from the diagonal of A, so no tile is left to FMAs
(`kernels.gemm.int8.pivot_scales`). With lookahead a block takes the one before it by FMAs, beside the product
with all others for the block after it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

from ...dispatch.choose import select
from ...dispatch.overrides import get_override, method_of
from ...dispatch.tensor import Int8Product, kept_residues
from ...gpu.device import current
from ...kernels.gemm.int8.image import STAGE_K
from ...kernels.gemm.int8.pivot_scales import STEM
from ...kernels.registry import family_of
from ...operands import Operand
from ...types import TENSOR, Region
from ..copies import emit_scale
from ..launch_list import CALL, LaunchList
from ..level3.gemm import contiguous
from ..level3.gemm_int8 import (
    ProductMemory,
    ProductTarget,
    Residues,
    emit_combined,
    emit_images,
    emit_packed,
    emit_real_diagonal,
    new_memory,
    new_residues,
)
from .lookahead import emit_lookahead
from .potrf_panels import emit_update

__all__ = ["KeptFactor", "emit_columns", "plan"]

LAUNCHES = 7  # of a product that leaves multiprocessors to the other lane in between


class KeptFactor(NamedTuple):
    """How a factor is made of residues: the Configs, and the columns of a block."""

    how: Int8Product
    columns: int


def plan(launches: LaunchList, a: Operand) -> KeptFactor | None:
    """Return how the factor is made; None where residues do not serve it, or have no room."""
    policy, n = launches.policy, a.rows
    least = policy.tensor_potrf_min_order.get(a.dtype.letter)
    if least is None or n < least or method_of(None) != TENSOR or a.batch > 1 or launches.lane != CALL:
        return None
    columns = get_override("lookahead") or int(policy.tensor_potrf_columns)
    if columns % STAGE_K or n <= 2 * columns or not (contiguous(a) or contiguous(a.T)):
        return None
    how = kept_residues(a.dtype, n, columns, current(launches.device))
    return None if how is None else KeptFactor(how, columns)


def emit_columns(
    launches: LaunchList, a: Operand, kept: KeptFactor, factor: Callable[[int, int], None], tiles: int
) -> None:
    """Emit the factor of a lower triangle; ``factor(first, columns)`` emits that of a block of columns, which
    has taken all before it, with the rows below.
    """
    n, (how, columns) = a.rows, kept
    launches.choices.append(how.choice)
    bounds = [*range(0, n, columns), n, n]
    blocks = len(bounds) - 2
    with launches.temporary():
        left, right, memory = _emit_scales(launches, how, a, columns, bounds[blocks - 1])

        def keep(j: int) -> None:
            """Emit what packs block j, of the rows that later blocks need."""
            first, middle = bounds[j], bounds[j + 1]
            block = a.block(middle, first, n - middle, middle - first)
            _emit_pivot_scales(launches, how, block, left.rows_from(middle - columns, n - middle), block.cols)
            both = ((left, block), (right, block.conjugate()))
            for image, source in both if a.dtype.is_complex else both[:1]:
                rows = image.rows_from(middle - columns, n - middle)
                emit_packed(launches, how, rows._replace(operand=source), first // STAGE_K)

        def multiply(j: int, k: int) -> None:
            """Emit what the first k columns do to block j."""
            first, count = bounds[j], bounds[j + 1] - bounds[j]
            below, across = (x.rows_from(first - columns, n - first) for x in (left, right))
            below = below._replace(operand=a.block(first, 0, n - first, k))
            across = across._replace(operand=a.block(first, 0, count, k))
            c = a.block(first, first, n - first, count)
            if contiguous(c):
                factors, target = (below, across), ProductTarget(-1.0, 1.0, c, Region.LOWER)
            else:  # a row-major C is a column-major one of the transposed product
                factors, target = (across, below), ProductTarget(-1.0, 1.0, c.T, Region.UPPER)
            _emit_product(launches, how, *factors, target, memory)

        if get_override("lookahead") == 0:
            for j in range(blocks):
                if j:
                    keep(j - 1)
                    multiply(j, bounds[j])
                factor(bounds[j], bounds[j + 1] - bounds[j])
            return

        def update(j: int, first: int, end: int) -> None:
            if first == j + 1:
                emit_update(launches, a, (bounds[j], bounds[j + 1]), (bounds[first], bounds[end]))
            elif first < blocks:
                keep(j)
                multiply(first, bounds[j + 1])

        emit_lookahead(
            launches,
            blocks,
            lambda j: factor(bounds[j], bounds[j + 1] - bounds[j]),
            update,
            lambda j: None,
            tiles,
        )


def _emit_scales(
    launches: LaunchList, how: Int8Product, a: Operand, columns: int, k: int
) -> tuple[Residues, Residues, ProductMemory]:
    """Emit the scales of all rows but the first block's; return memory for their residues, of k columns, as
    left and as right factors, and for a product, with no tile flagged.

    Real factors are the same; complex ones on the right are conjugated.
    """
    n, config = a.rows - columns, how.choice.config
    left = new_residues(launches, how, a.block(columns, 0, n, k))
    right = left
    if a.dtype.is_complex:
        right = new_residues(launches, how, left.operand.conjugate())._replace(facts=left.facts)
        emit_real_diagonal(launches, a)
    memory = new_memory(launches, how, config.tiles(n, columns, Region.LOWER))
    emit_scale(launches, 0.0, memory.flags, zero=True)
    diagonal = a.block(columns, columns, n, 1)._replace(row_stride=a.row_stride + a.col_stride)
    _emit_pivot_scales(launches, how, diagonal, left, 0)
    return left, right, memory


def _emit_pivot_scales(
    launches: LaunchList, how: Int8Product, a: Operand, rows: Residues, columns: int
) -> None:
    """Emit the facts of rows, from the diagonal A without `columns`; or what these columns of L do."""
    config = select(STEM, a.dtype, "", (a.rows, a.cols), current(launches.device)).config
    config = replace(config, moduli=how.scales.moduli)
    integers = a.rows, columns, rows.image.rows, a.row_stride, a.col_stride
    launches.emit(
        family_of(STEM).source(config), config.grid(a.rows), (a, rows.facts), lambda *_: integers, ()
    )


def _emit_product(
    launches: LaunchList,
    how: Int8Product,
    left: Residues,
    right: Residues,
    target: ProductTarget,
    memory: ProductMemory,
) -> None:
    """Emit the product of rows that are kept, by some launches where the other lane needs multiprocessors."""
    count = how.choice.config.images
    step = count if launches.tiles_per_block is None else -(-count // LAUNCHES)
    for first in range(0, count, step):
        emit_images(launches, how, left, right, memory, target.region, (first, min(step, count - first)))
    emit_combined(launches, how, left, right, memory, target)
