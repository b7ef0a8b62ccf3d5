"""B := alpha T B, or alpha B T, in double precision: diagonal blocks by FMAs, and all else by
products of residues, of which B is packed once for half of all rows.

    [T11            ]      B4 := T44 B4, B4 += [T41 T42 T43] [B1; B2; B3]      with images of B1, B2 and B3
    [T21 T22        ]      B3 := T33 B3, B3 += [T31 T32] [B1; B2]              with the same ones
    [T31 T32 T33    ]      the same for [T11; T21 T22], down to a triangle that is left to FMAs
    [T41 T42 T43 T44]

A block reads what no block before it has written, so nothing is copied. The k of an upper T on the left, and
of a lower one on the right, run backwards: then the first k of an image are those that all blocks have.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from ...dispatch.tensor import MOST_WORKSPACE, Int8Product, TensorProblem, int8_product, workspace_room
from ...gpu.device import current
from ...kernels.gemm.int8.image import STAGE_K
from ...operands import Operand
from ...types import Diag, Region, Side, Uplo
from ..launch_list import ALPHA, LaunchList
from .gemm_int8 import ProductTarget, Residues, emit_block, emit_residues, emit_verdicts, new_residues
from .triangular import FusedOperands, fused_operands

__all__ = ["ResiduesTrmm", "emit", "plan"]

ROWS = 1024  # rows of a block: whole stages of digits too, of which a block's are the first
#: ``(launches, t, b, side, uplo, diag)``: emits T B or B T in place.
EmitInPlace = Callable[[LaunchList, Operand, Operand, Side, Uplo, Diag], None]


class ResiduesTrmm(NamedTuple):
    """A TRMM by residues: the operands, the Configs, the order of the triangle that is left to FMAs, and the
    right-hand sides that are multiplied at a time.
    """

    operands: FusedOperands
    how: Int8Product
    stop: int
    sides: int


def plan(launches: LaunchList, t: Operand, b: Operand, side: Side, uplo: Uplo) -> ResiduesTrmm | None:
    """Return the plan of the product; None where residues do not serve, or have no room."""
    operands, n = fused_operands(t, b, side, uplo), t.rows
    stop = max(int(launches.policy.tensor_stop_of_double), ROWS)
    if operands is None or n <= stop:
        return None
    device, (m, cols, k) = current(launches.device), operands.extents
    how = int8_product(TensorProblem(launches.dtype, operands.layout, (m, cols, k, 1), device))
    if not isinstance(how, Int8Product):
        return None
    images, all_k = how.choice.config.images, -(-n // STAGE_K) * STAGE_K
    room = workspace_room(device, 2 * MOST_WORKSPACE) - ROWS * all_k * (images + 1)
    most, rhs = room // (all_k * (images + 1) + ROWS * images), b.rows * b.cols // n
    if most < min(rhs, ROWS):
        return None
    parts = -(-rhs // most)
    return ResiduesTrmm(operands, how, stop, -(-rhs // (parts * ROWS)) * ROWS)


def emit(launches: LaunchList, planned: ResiduesTrmm, diag: Diag, emit_in_place: EmitInPlace) -> None:
    """Emit the launches; `emit_in_place` those of triangles that are left to FMAs."""
    (t, b, _, triangle), n = planned.operands, planned.operands.t.rows
    launches.choices.append(planned.how.choice)
    rhs = b.rows * b.cols // n

    def emit_triangle(at: int, count: int, first: int, order: int) -> None:
        place = (first, at, order, count) if triangle.on_left else (at, first, count, order)
        tile = t.block(first, first, order, order)
        emit_in_place(launches, tile, b.block(*place), triangle.side, triangle.uplo, diag)

    for at in range(0, rhs, planned.sides):
        count = min(planned.sides, rhs - at)
        place = (0, at, n, count) if triangle.on_left else (at, 0, count, n)
        some, order = planned.operands._replace(b=b.block(*place)), n
        while order > planned.stop:
            blocks = _blocks(order)
            with launches.temporary():
                _emit_half(launches, planned.how, some, order, blocks, partial(emit_triangle, at, count))
            order = blocks[0][0]
        emit_triangle(at, count, 0 if triangle.is_forward else n - order, order)


def _blocks(order: int) -> list[tuple[int, int]]:
    """First row and number of rows of each block of half of a triangle's rows, counted in the order of
    substitution.
    """
    first = -(-order // (2 * ROWS)) * ROWS
    return [(row, min(ROWS, order - row)) for row in range(first, order, ROWS)]


def _emit_half(
    launches: LaunchList,
    how: Int8Product,
    operands: FusedOperands,
    order: int,
    blocks: list[tuple[int, int]],
    emit_triangle: Callable[[int, int], None],
) -> None:
    """Emit the blocks of half of the rows of a triangle of this order, from the last one on;
    ``emit_triangle(first, rows)`` emits what is on the diagonal.
    """
    (t, b, _, triangle), n = operands, operands.t.rows
    left, forward = triangle.on_left, triangle.is_forward
    of_t, of_b = (t, b.T) if left else (t.T, b)
    deepest = blocks[-1][0]

    def begin(first: int, rows: int) -> int:
        """The first of some rows as they are stored."""
        return first if forward else n - first - rows

    def along(operand: Operand, row: int, rows: int, k: int) -> Operand:
        """Rows of an operand, of the first k in the order of substitution."""
        return operand.block(row, begin(0, k), rows, k)

    def packed(whole: Operand, k: int) -> Residues:
        """The residues of the first k, in images of as many stages as all have."""
        part = whole.block(0, begin(0, k) - begin(0, whole.cols), whole.rows, k)
        made = new_residues(launches, how, whole)
        made = made._replace(operand=part if forward else part.flip(cols=True))
        emit_residues(launches, how, verdicts, made)
        return made

    first, rows = blocks[0][0], order - blocks[0][0]
    samples = along(of_t, begin(first, rows), rows, first), along(of_b, 0, of_b.rows, first)
    verdicts = emit_verdicts(launches, how, *(samples if left else samples[::-1]))
    images = packed(along(of_b, 0, of_b.rows, deepest), deepest)
    for first, rows in reversed(blocks):
        at = begin(first, rows)
        emit_triangle(at, rows)
        with launches.temporary():
            natural = along(of_t, at, rows, first), along(of_b, 0, of_b.rows, first)
            of_block = packed(along(of_t, at, rows, deepest), first)
            made = of_block, images._replace(operand=images.operand.block(0, 0, of_b.rows, first))
            c = b.block(at, 0, rows, b.cols) if left else b.block(0, at, b.rows, rows)
            target = ProductTarget(ALPHA, 1.0, c, Region.ALL)
            (one, other), factors = (made, natural) if left else (made[::-1], natural[::-1])
            emit_block(launches, how, one, other, target, verdicts, factors)
