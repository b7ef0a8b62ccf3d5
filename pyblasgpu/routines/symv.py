"""y := alpha A x + beta y, A symmetric or Hermitian, of which one triangle is read, once.

Kernel `symv` leaves partial sums in the workspace, n numbers for each row of its tiles; `symv_sum` adds them.
"""

from __future__ import annotations

from typing import Any

from ..dispatch.choose import select
from ..gpu.device import current
from ..kernels.level2 import symv as kernel
from ..kernels.level2 import symv_sum
from ..operands import Operand
from ..types import Uplo
from .gemv import alignment, emit_beta
from .launch_list import ALPHA, BETA, LaunchList, cached_launch_list

__all__ = ["launch_list", "symv"]


def symv(
    alpha: Any, a: Operand, x: Operand, beta: Any, y: Operand, uplo: Uplo, hermitian: bool, stream: int
) -> None:
    """Enqueue y := alpha A x + beta y on `stream`; see `gemv.gemv`. `uplo` of A is read."""
    launches = launch_list(alpha, a, x, beta, y, uplo=uplo, hermitian=hermitian)
    if launches is not None:
        launches.run((a.pointer, x.pointer, y.pointer), alpha, beta, stream=stream)


def launch_list(
    alpha: Any, a: Operand, x: Operand, beta: Any, y: Operand, *, uplo: Uplo, hermitian: bool
) -> LaunchList | None:
    """What `symv` runs, for operands that lie like these and scalars that are zero, one like these.

    None where there is nothing to do.
    """
    if y.is_empty:
        return None
    if alpha == 0:
        return None if beta == 1 else cached_launch_list(emit_beta, (a, x, y), (beta == 0,))
    return cached_launch_list(_emit, (a, x, y), (beta == 0, uplo, hermitian))


def _emit(
    launches: LaunchList, a: Operand, x: Operand, y: Operand, overwrite: bool, uplo: Uplo, hermitian: bool
) -> None:
    if not a.by_rows:  # the transposed matrix is the same one, or its conjugate
        a, uplo = (a.T.conjugate() if hermitian else a.T), uplo.flipped
    device, n = current(launches.device), a.rows
    choice = select("symv", launches.dtype, "", (n, n, a.batch), device)
    config, launches_of_sum = (
        choice.config.with_alignment(alignment(a)),
        select("symv_sum", launches.dtype, "", (n,), device),
    )
    launches.choices += [choice, launches_of_sum]
    upper = uplo is Uplo.UPPER
    bits = kernel.CONJ_A * a.conj + kernel.HERMITIAN * hermitian + kernel.UPPER * upper
    tiles = config.tiles(n, a.batch, 8 * device.sm_count)
    slots = config.strips(n) + 1

    def integers(a: Operand, x: Operand, w: Operand) -> tuple[int, ...]:
        strides = a.row_stride, a.col_stride, x.row_stride, w.col_stride
        return n, tiles, bits, *strides, a.batch_stride, x.batch_stride, w.batch_stride

    def integers_of_sum(w: Operand, y: Operand) -> tuple[int, ...]:
        strides = w.col_stride, y.row_stride, w.batch_stride, y.batch_stride
        return n, config.BLK, tiles, slots, int(upper), *strides

    with launches.temporary():
        sums, factors = launches.scratch(n, slots, a.batch), (ALPHA, 0.0 if overwrite else BETA)
        launches.emit(kernel.source(config), config.grid(n, tiles), (a, x, sums), integers, ())
        add = launches_of_sum.config
        launches.emit(symv_sum.source(add), add.grid(n), (sums, y), integers_of_sum, factors)
