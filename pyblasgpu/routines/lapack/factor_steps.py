"""Steps that the factorizations share: the leaf of Cholesky, copies, a number for alpha, failures."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...dispatch.choose import select
from ...gpu.device import current
from ...kernels.factor import restore
from ...kernels.factor.cholesky import potrf_leaf
from ...kernels.registry import FIXED
from ...operands import Operand
from ...types import DTYPES, Diag, Dtype, Region
from ..copies import emit_copy, emit_copy_to_workspace, emit_kept, is_readable
from ..launch_list import ALPHA, BETA, LaunchList
from .laswp import words

__all__ = [
    "emit_potrf_leaf",
    "emit_readable",
    "emit_restore",
    "emit_unless_failed",
    "leaf_config",
    "real_dtype",
    "with_alpha",
]


def leaf_config(launches: LaunchList, stem: str, n: int) -> Any:
    """The Config of a leaf, with which the device can run."""
    device = current(launches.device)
    config = select(stem, launches.dtype, "", (n,), device).config
    return config.fitting(device.shared_per_block)


def real_dtype(dtype: Dtype) -> Dtype:
    """The dtype of an element's parts, for kernels that move or look at reals."""
    return DTYPES["s" if dtype.real_size == 4 else "d"]


def emit_readable(
    launches: LaunchList, a: Operand, emit: Callable[[Operand], None], diag: Diag = Diag.NON_UNIT
) -> None:
    """Emit what ``emit(a)`` does to the lower triangle of A, by way of a copy where kernels cannot read A; a
    unit diagonal is not written.
    """
    if is_readable(a):
        emit(a)
        return
    readable = emit_copy_to_workspace(launches, a)
    emit(readable)
    if diag is Diag.NON_UNIT:
        emit_copy(launches, 1.0, readable, a, Region.LOWER)
    elif a.rows > 1:
        emit_copy(launches, 1.0, readable, a, Region.STRICT_LOWER)


def with_alpha(
    launches: LaunchList, alpha: float, emit: Callable[[], None], beta: float | None = None
) -> None:
    """Emit what ``emit()`` does with a number for the alpha of the call, and for its beta, if there is one;
    its scratch is free after it.
    """
    first, numbers = len(launches.entries), {ALPHA: alpha} if beta is None else {ALPHA: alpha, BETA: beta}
    with launches.temporary():
        emit()
    launches.entries[first:] = [
        entry._replace(scalars=tuple(numbers.get(each, each) for each in entry.scalars))
        for entry in launches.entries[first:]
    ]


def emit_potrf_leaf(
    launches: LaunchList,
    config: Any,
    info: Operand,
    a: Operand,
    before: int,
    clean: bool = False,
    is_near: bool = False,
) -> Callable[[Operand], tuple[int, ...]]:
    """Emit the factor of a lower triangle by one launch; `before` rows of the whole matrix precede it. If
    `clean`, the other triangle becomes zero. `is_near`: the matrix is probably near the identity. Return what
    gives its integers where another matrix is read.
    """

    # without operands, whose owners a kept list would hold
    how = potrf_leaf.CLEAN * clean + potrf_leaf.NEAR * is_near
    order, of_a, last = (a.rows, before, how), (a.row_stride, a.col_stride), a.batch_stride
    of_info = words(info)[1]

    def integers(source: Operand) -> tuple[int, ...]:
        return *order, source.row_stride, source.col_stride, *of_a, of_info, source.batch_stride, last

    launches.emit(potrf_leaf.source(config), 1, (info, a, a), lambda *_: integers(a), ())
    return integers


def emit_unless_failed(launches: LaunchList, info: Operand, out: Operand, emit: Callable[[], None]) -> None:
    """Emit what ``emit()`` does in `out`; where it leaves an info that is not 0, `out` stays as it is.

    Nothing is read by the host: `out` is kept in the workspace meanwhile.
    """
    with launches.temporary():
        before = emit_kept(launches, out)
        emit()
        emit_restore(launches, info, before, out)


def emit_restore(launches: LaunchList, info: Operand, before: Operand, out: Operand) -> None:
    """Emit out := before, for matrices whose info (an int32 in the bytes of an element) is not 0."""
    config = FIXED[restore.STEM].fixed_config(real_dtype(out.dtype).letter)

    def integers(info: Operand, before: Operand, out: Operand) -> tuple[int, ...]:
        strides = before.row_stride, before.col_stride, out.row_stride, out.col_stride
        batch = words(info)[1], before.batch_stride, out.batch_stride
        return out.rows, out.cols, out.dtype.reals_per_element, *strides, *batch

    grid = config.grid(out.rows, out.cols)
    launches.emit(restore.source(config), grid, (info, before, out), integers, ())
