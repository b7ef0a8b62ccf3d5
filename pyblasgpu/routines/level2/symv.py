"""y := alpha A x + beta y, A symmetric or Hermitian, of which one triangle is read.

Small matrices take one launch of `symv_small`. Else kernel `symv` reads the triangle once and leaves partial
sums in the workspace, n numbers for each row of its tiles; `symv_sum` adds them.
"""

from __future__ import annotations

from typing import Any

from ...database.policy import Policy
from ...dispatch import overrides
from ...dispatch.choose import select
from ...gpu.device import Device, current
from ...kernels.common.options import CONJUGATE, HERMITIAN, UPPER, VECTORS
from ...kernels.level2 import symv as kernel
from ...kernels.level2 import symv_small, symv_sum
from ...kernels.level2.config import LOAD
from ...operands import Operand
from ...types import Uplo
from ..copies import launch_list_of_product
from ..launch_list import ALPHA, BETA, LaunchList
from .gemv import alignment

__all__ = ["launch_list"]


def launch_list(
    alpha: Any, a: Operand, x: Operand, beta: Any, y: Operand, *, uplo: Uplo, hermitian: bool
) -> LaunchList | None:
    """Return the launch list; see `gemv.launch_list`. `uplo` of A is read."""
    return launch_list_of_product(_emit, alpha, (a, x, y), a.cols, beta, uplo, hermitian)


def _emit(
    launches: LaunchList, a: Operand, x: Operand, y: Operand, overwrite: bool, uplo: Uplo, hermitian: bool
) -> None:
    if not a.by_rows:  # the transposed matrix is the same one, or its conjugate
        a, uplo = (a.T.conjugate() if hermitian else a.T), uplo.flipped
    device, n = current(launches.device), a.rows
    bits = CONJUGATE * a.conj + HERMITIAN * hermitian + UPPER * (uplo is Uplo.UPPER)
    factors = ALPHA, 0.0 if overwrite else BETA
    stem = "symv_small" if _is_small(a, launches.policy) else "symv"
    choice = select(stem, launches.dtype, "", (n, n, a.batch), device)
    launches.choices.append(choice)
    if isinstance(choice.config, symv_small.SymvSmall):
        _emit_small(launches, choice.config, a, x, y, bits, factors)
    else:
        _emit_two(launches, choice.config.with_alignment(alignment(a)), a, x, y, bits, factors, device)


def _is_small(a: Operand, policy: Policy) -> bool:
    """Whether one launch that reads most of A twice is faster than two that read it once."""
    stems = [stem for stem, _ in overrides.active() if stem in ("symv", "symv_small")]
    if stems:
        return stems[0] == "symv_small"
    return a.rows * a.cols * a.dtype.itemsize <= policy.symv_small_max_bytes[a.dtype.letter]


def _emit_small(
    launches: LaunchList,
    config: symv_small.SymvSmall,
    a: Operand,
    x: Operand,
    y: Operand,
    bits: int,
    factors: tuple[Any, Any],
) -> None:
    bits |= VECTORS * (alignment(a) == LOAD)

    def integers(a: Operand, x: Operand, y: Operand) -> tuple[int, ...]:
        strides = a.row_stride, a.col_stride, x.row_stride, y.row_stride
        return a.rows, bits, *strides, a.batch_stride, x.batch_stride, y.batch_stride

    launches.emit(symv_small.source(config), config.grid(a.rows), (a, x, y), integers, factors)


def _emit_two(
    launches: LaunchList,
    config: kernel.Symv,
    a: Operand,
    x: Operand,
    y: Operand,
    bits: int,
    factors: tuple[Any, Any],
    device: Device,
) -> None:
    n, choice = a.rows, select("symv_sum", launches.dtype, "", (a.rows,), device)
    launches.choices.append(choice)
    upper, add = int(bits & UPPER != 0), choice.config
    tiles, slots = config.tiles(n, a.batch, 8 * device.sm_count), config.strips(n) + 1

    def integers(a: Operand, x: Operand, w: Operand) -> tuple[int, ...]:
        strides = a.row_stride, a.col_stride, x.row_stride, w.col_stride
        return n, tiles, bits, *strides, a.batch_stride, x.batch_stride, w.batch_stride

    def integers_of_sum(w: Operand, y: Operand) -> tuple[int, ...]:
        strides = w.col_stride, y.row_stride, w.batch_stride, y.batch_stride
        return n, config.BLK, tiles, slots, upper, *strides

    with launches.temporary():
        sums = launches.scratch(n, slots, a.batch)
        launches.emit(kernel.source(config), config.grid(n, tiles), (a, x, sums), integers, ())
        launches.emit(symv_sum.source(add), add.grid(n), (sums, y), integers_of_sum, factors)
