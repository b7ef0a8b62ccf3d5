"""T X = alpha B, or that of triangles on T's diagonal, as one product that solves by the way
(`kernels.gemm.trsm_fused`): where, and its record.

The recursion is a chain of launches: leaves, and between them products of few tiles. Here the tiles of a
strip wait for one another alone. Where B is large the recursion's products are faster, but for the last ones:
then it ends early, in triangles of which each is one launch.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple, cast

from ..database import RECURSION, rows_at_once
from ..dispatch import trsm_fused as dispatch_trsm_fused
from ..errors import BackendUnavailable
from ..gpu.device import current
from ..kernels.registry import FAMILIES
from ..kernels.trsv import kernel as trsv
from ..operands import Operand
from ..types import Diag, Side, Uplo
from .gemm import match_alignment
from .in_place import Job, Pair, pair, said
from .launch_list import Tape
from .recursion import Leaf, schedule

__all__ = ["job", "most_rows", "record"]


class Where(NamedTuple):
    """Rows of the triangle from which on it is ahead of the recursion, right-hand sides, elements of B."""

    rows: int
    fewest: int
    most: int
    elements: int


#: Where no file says which was faster. Measured at orders from 256 to 8192 with 32 to 8192 right-hand sides
#: on an H200 (docs/history/performance.md).
WHERE = {
    "s": Where(512, 1, 8192, 16 << 20), "d": Where(768, 1, 8192, 36 << 20),
    "c": Where(256, 1, 8192, 9 << 20), "z": Where(512, 1, 8192, 9 << 20),
}  # fmt: skip


def most_rows(tape: Tape, t: Operand, b: Operand) -> int:
    """Up to how many rows triangles are solved in one launch, all, or those in which the recursion ends.

    T is lower triangular and stands on the left. 0 where the kernel does not solve these operands, or not
    well: where `in_place.pair` has none, with so few right-hand sides that `trsv` has them, with more strips
    than there are flags. Else overrides and files decide (`in_place.said`), and where they say nothing
    `_is_likely`.
    """
    if _pair(t, b) is None or b.cols <= trsv.MOST_COLS:
        return 0
    try:
        method = said(tape, "trsm", t, b, current(tape.device))
        if method.config == RECURSION if method else not _is_likely(b):
            return 0
        rows = rows_at_once(method.config, b.rows) if method else b.rows
        for height in {step.last - step.first for step in schedule(b.rows, rows) if isinstance(step, Leaf)}:
            job(tape, t.block(0, 0, height, height), b.block(0, 0, height, b.cols))
    except BackendUnavailable:
        return 0
    tape.choices += [method] if method else []
    return rows


def _pair(t: Operand, b: Operand) -> Pair | None:
    """The operands as the kernel has them; T is lower triangular and stands on the left."""
    if b.row_stride < 0:  # an upper one, read backwards
        return pair(t.flip(rows=True, cols=True), b.flip(rows=True), Side.LEFT, Uplo.UPPER)
    return pair(t, b, Side.LEFT, Uplo.LOWER)


def _is_likely(b: Operand) -> bool:
    """Whether operands like these had better be served, where nothing says so."""
    where = WHERE[b.dtype.letter]
    is_of_size = b.rows >= where.rows and where.fewest <= b.cols <= where.most
    return is_of_size and b.rows * b.cols <= where.elements


def job(tape: Tape, t: Operand, b: Operand) -> Job:
    """One launch, of operands that lie as those of which `most_rows` was asked.

    Raises
    ------
    BackendUnavailable
        Where no kernel can run on the device, with as many flags as it has.
    """
    found = cast(Pair, _pair(t, b))
    choice = dispatch_trsm_fused.choose(
        tape.dtype, found.layout, found.extents, found.triangle, current(tape.device)
    )
    return Job(found, replace(choice, config=match_alignment(cast(Any, choice.config), *found.operands)))


def record(tape: Tape, diag: Diag, t: Operand, b: Operand, alpha) -> None:
    """Record the launch for a triangle of at most `most_rows`."""
    one = job(tape, t, b)
    (t, c, triangle), config, lead = one.pair, cast(Any, one.choice.config), one.pair.lead
    tape.choices.append(one.choice)
    kernel = FAMILIES[config.STEM].source(config, *one.pair.conjs, triangle=triangle, solved=diag)
    operands, grid = (t._replace(conj=False), c, tape.flags()), config.grid(c.rows, c.cols)
    tape.launch(kernel, grid, operands, lambda *_: (c.rows, c.cols, lead, c.col_stride), (alpha,))
