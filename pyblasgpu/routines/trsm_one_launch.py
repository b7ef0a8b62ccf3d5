"""T X = alpha B, or X T = alpha B, as one product that solves by the way (`kernels.gemm_solve`): where, and
its record.

The recursion is a chain of launches: leaves, and between them products of few tiles. Here the tiles of a
strip wait for one another alone. Where B is large, so are the recursion's products, and it is the faster way.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple, cast

from ..database import RECURSION
from ..errors import BackendUnavailable
from ..gpu import workspace
from ..gpu.device import current
from ..kernels import gemm_in_place, gemm_solve, trsv
from ..operands import Operand
from ..tuning import solving
from ..types import Diag, Side, Uplo
from .gemm import SOURCES, fitted
from .in_place import Job, pair, said
from .tape import ALPHA, Tape

__all__ = ["plan", "record"]


class Where(NamedTuple):
    """Rows of the triangle from which on it is ahead of the recursion, right-hand sides, elements of B."""

    rows: int
    fewest: int
    most: int
    elements: int


#: Where no file says which was faster. Measured at orders from 256 to 8192 with 32 to 8192 right-hand sides
#: on an H200 (docs/performance.md).
WHERE = {
    "s": Where(512, 1, 8192, 16 << 20), "d": Where(768, 1, 8192, 36 << 20),
    "c": Where(256, 1, 8192, 9 << 20), "z": Where(512, 1, 8192, 9 << 20),
}  # fmt: skip


def plan(tape: Tape, t: Operand, b: Operand, side: Side, uplo: Uplo) -> Job | None:
    """How the kernel solves these operands; None where it does not, or not well.

    It does not where `in_place.pair` has none, nor with so few right-hand sides that `trsv` has them, nor
    with more strips than there are flags. Else overrides and files decide (`in_place.said`), and where they
    say nothing `_is_likely`.
    """
    found = pair(t, b, side, uplo)
    if found is None or b.rows * b.cols <= trsv.MOST_COLS * t.rows:
        return None
    try:
        device = current(tape.device)
        method = said(tape, "trsm", t, b, device)
        if method.config == RECURSION if method else not _is_likely(t, b):
            return None
        choice = solving.choose(tape.dtype, found.layout, found.extents, found.triangle, device)
    except BackendUnavailable:
        return None
    config: Any = fitted(cast(Any, choice.config), *found.operands)
    _, strips = gemm_in_place.tile_counts(config, found.triangle, b.rows, b.cols)
    has_flags = strips * gemm_solve.APART <= workspace.FLAGS
    return Job(found, replace(choice, config=config), method) if has_flags else None


def _is_likely(t: Operand, b: Operand) -> bool:
    """Whether operands like these had better be served, where nothing says so."""
    others, where = b.rows * b.cols // t.rows, WHERE[t.dtype.letter]
    is_of_size = t.rows >= where.rows and where.fewest <= others <= where.most
    return is_of_size and b.rows * b.cols <= where.elements


def record(tape: Tape, job: Job, diag: Diag) -> None:
    """Record the launch."""
    (t, c, triangle), config, lead = job.pair, cast(Any, job.choice.config), job.pair.lead
    job.note(tape)
    solved = "unit" if diag is Diag.UNIT else "nonunit"
    kernel = SOURCES[config.STEM](config, *job.pair.conjs, triangle=triangle, solved=solved)
    operands, grid = (t._replace(conj=False), c, tape.flags()), config.grid(c.rows, c.cols)
    tape.launch(kernel, grid, operands, lambda *_: (c.rows, c.cols, lead, c.col_stride), (ALPHA,))
