"""Triangles T on the left of B: normal form, the recursion of TRMM and TRSM, operands of fused kernels.

A call is normalised once. The right side is the left side of the transposed problem. Rows of B run forwards
in memory (`TriangularSystem.oriented`). The recursion (Charara, Ltaief and Keyes, KBLAS) is written once:

    [T11    ] [B1]      TRSM: solve B1, B2 -= T21 B1, solve B2
    [T21 T22] [B2]      TRMM: the same in reverse: multiply B2, B2 += T21 B1, multiply B1

Blocks of an upper triangle are counted from its last row. Only leaf kernels need a lower one: they read an
upper triangle backwards. alpha is applied where a block of B is touched first, as the leaf's alpha or GEMM's
beta; 1/alpha is never formed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

from ...dispatch.choose import select
from ...dispatch.leaf import stop_size
from ...gpu.device import current
from ...kernels.common.options import options_of
from ...kernels.registry import family_of
from ...operands import Operand
from ...types import Diag, Side, Triangle, Uplo
from ..copies import emit_copy, emit_copy_to_workspace, emit_scale, is_readable, most_workspace
from ..launch_list import ALPHA, LaunchList, cached_launch_list
from .gemm import alignments, contiguous, emit_gemm

__all__ = [
    "FusedOperands",
    "Leaf",
    "Recurrence",
    "TriangularSystem",
    "Update",
    "emit_in_place",
    "emit_into",
    "emit_steps",
    "fused_operands",
    "triangular_launch_list",
    "leaf_emitter",
    "leaf_integers",
    "leaf_orders",
    "lower_leaf",
    "on_left",
    "schedule",
    "split",
    "tuned_leaf",
]


class Leaf(NamedTuple):
    """Work on the diagonal block of rows ``first`` to ``last``."""

    first: int
    last: int


class Update(NamedTuple):
    """GEMM of rows ``middle`` to ``last`` of T with rows ``first`` to ``middle`` of B."""

    first: int
    middle: int
    last: int


def split(n: int) -> int:
    """Rows of the first part: half of a power of two, else the largest power of two below `n`."""
    return 1 << ((n - 1).bit_length() - 1)


def schedule(n: int, stop: int, first: int = 0) -> Iterator[Leaf | Update]:
    """Yield TRSM's steps on a triangle of `n` rows, in order; TRMM takes them in reverse.

    Triangles of at most `stop` rows are leaves.
    """
    if n <= stop:
        yield Leaf(first, first + n)
        return
    half = split(n)
    yield from schedule(half, stop, first)
    yield Update(first, first + half, first + n)
    yield from schedule(n - half, stop, first + half)


def leaf_orders(n: int, stop: int) -> set[int]:
    """The orders of the triangles in which the recursion ends."""
    return {step.last - step.first for step in schedule(n, stop) if isinstance(step, Leaf)}


class TriangularSystem(NamedTuple):
    """A triangle T on the left of B, with rows that are counted in the order of substitution.

    Attributes
    ----------
    t, b : Operand
    uplo : Uplo
        Row 0 is the first one of a lower triangle, the last one of an upper one.
    apart : Operand, optional
        B where the result is another matrix; that is `b` then.
    """

    t: Operand
    b: Operand
    uplo: Uplo
    apart: Operand | None = None

    @property
    def flipped(self) -> TriangularSystem:
        """The system read backwards."""
        t, b = self.t.flip(rows=True, cols=True), self.b.flip(rows=True)
        apart = self.apart and self.apart.flip(rows=True)
        return TriangularSystem(t, b, self.uplo.flipped, apart)

    @property
    def source(self) -> Operand:
        """B itself."""
        return self.b if self.apart is None else self.apart

    @property
    def lower(self) -> TriangularSystem:
        """The system with T lower triangular."""
        return self if self.uplo is Uplo.LOWER else self.flipped

    @property
    def forwards(self) -> TriangularSystem:
        """The system with rows of B that run forwards in memory."""
        return self if self.b.row_stride >= 0 else self.flipped

    @property
    def oriented(self) -> TriangularSystem:
        """`forwards` where columns of T run as rows of B do, else `lower`: GEMM reads only one backwards."""
        alike = (self.t.col_stride < 0) == (self.b.row_stride < 0)
        return self.forwards if alike else self.lower

    def rows(self, first: int, last: int) -> Operand:
        """Rows of `b`."""
        return self._rows_of(self.b, first, last)

    def block(self, first: int, last: int) -> TriangularSystem:
        """The diagonal block of these rows."""
        begin, rows = self._begin(first, last), last - first
        apart = self.apart and self._rows_of(self.apart, first, last)
        t = self.t.block(begin, begin, rows, rows)
        return TriangularSystem(t, self.rows(first, last), self.uplo, apart)

    def off_diagonal(self, first: int, middle: int, last: int) -> Operand:
        """Rows `middle` to `last` of T, columns `first` to `middle`."""
        row, col = self._begin(middle, last), self._begin(first, middle)
        return self.t.block(row, col, last - middle, middle - first)

    def _rows_of(self, matrix: Operand, first: int, last: int) -> Operand:
        return matrix.block(self._begin(first, last), 0, last - first, matrix.cols)

    def _begin(self, first: int, last: int) -> int:
        return first if self.uplo is Uplo.LOWER else self.b.rows - last


def on_left(t: Operand, b: Operand, side: Side, uplo: Uplo, out: Operand | None = None) -> TriangularSystem:
    """The system of these operands, views of T and B; where the result is `out`, B is apart."""
    if side is Side.RIGHT:
        t, b, uplo, out = t.T, b.T, uplo.flipped, out and out.T
    return TriangularSystem(t, b, uplo) if out is None else TriangularSystem(t, out, uplo, b)


class Recurrence(NamedTuple):
    """The differences of TRSM and TRMM.

    Attributes
    ----------
    routine : str
        Name under which the leaf is tuned.
    in_reverse : bool
        Whether the schedule is walked from its end.
    leaf_alpha : callable
        alpha of the leaf whose first row is the argument.
    update : callable
        ``(factor, beta)`` of the update whose first row is the argument: B2 := factor T21 B1 + beta B2.
    """

    routine: str
    in_reverse: bool
    leaf_alpha: Callable
    update: Callable


def triangular_launch_list(
    emit: Callable[..., None],
    emit_apart: Callable[..., bool],
    alpha: Any,
    t: Operand,
    b: Operand,
    out: Operand | None,
    *flags: Any,
) -> LaunchList | None:
    """Return the launch list of ``emit(launches, t, b, *flags)``, of zeros where alpha is zero, or of a call
    into `out`.

    It serves operands of these layouts, and any alpha that is zero exactly if this one is. None where there
    is nothing to do.

    Parameters
    ----------
    emit : callable
        Emits TRMM or TRSM in place.
    emit_apart : callable
        ``emit_apart(launches, t, b, out, *flags)`` emits it into `out`, or returns False.
    alpha : number
        alpha = 0 reads neither T nor B; it is in place.
    t : Operand
        The triangle, n x n, op() applied as a view; only its `uplo` part is read, without its diagonal
        where `diag` is unit.
    b : Operand
        n x r (side left) or r x n, of the same dtype, batch and device; apart from `t`.
    out : Operand or None
        The result, of the shape of `b` and apart from both; None for one in place of `b`.
    flags : Side, Uplo, Diag
        The triangle is meant after op().
    """
    if b.is_empty:
        return None
    if out is not None:
        return cached_launch_list(emit_into, (t, b, out), (emit, emit_apart, *flags))
    if alpha == 0:
        return cached_launch_list(_emit_zero, (t, b), ())
    return cached_launch_list(emit, (t, b), flags)


def emit_into(
    launches: LaunchList,
    t: Operand,
    b: Operand,
    out: Operand,
    emit: Callable[..., None],
    emit_apart: Callable[..., bool],
    *flags: Any,
) -> None:
    """Emit the call into `out`: a copy of B first, its conjugation done, where the call is one in place."""
    if b.conj or not emit_apart(launches, t, b, out, *flags):
        emit_copy(launches, 1.0, b, out)
        emit(launches, t, out, *flags)


def _emit_zero(launches: LaunchList, t: Operand, b: Operand) -> None:
    emit_scale(launches, ALPHA, b, zero=True)


def emit_in_place(
    launches: LaunchList,
    t: Operand,
    b: Operand,
    side: Side,
    uplo: Uplo,
    emit: Callable[[TriangularSystem], None],
) -> None:
    """Emit what ``emit(system)`` does for these operands, B overwritten.

    Operands that the kernels cannot read in place are copied, and B is copied back. Besides that the
    workspace is limited (`most_workspace`), for copies, partial tiles and packed operands.
    """
    system = normalized = on_left(t, b, side, uplo)
    if not (is_readable(t) and is_readable(b)):
        normalized = system.lower
        system = normalized._replace(
            t=_readable_copy(launches, normalized.t), b=_readable_copy(launches, normalized.b)
        )
    launches.workspace_limit = launches.workspace_bytes + most_workspace(b)
    emit(system.oriented)
    if system.b is not normalized.b:
        emit_copy(launches, 1.0, system.b, normalized.b)


def emit_steps(
    launches: LaunchList,
    system: TriangularSystem,
    recurrence: Recurrence,
    stop: int,
    leaf: Callable[[TriangularSystem, Any], None],
) -> None:
    """Emit the schedule; ``leaf(block, alpha)`` emits what is done to a triangle of up to `stop` rows."""
    steps = list(schedule(system.b.rows, stop))
    for step in reversed(steps) if recurrence.in_reverse else steps:
        if isinstance(step, Leaf):
            leaf(system.block(step.first, step.last), recurrence.leaf_alpha(step.first))
        else:
            t21 = system.off_diagonal(*step)
            b1, b2 = system.rows(step.first, step.middle), system.rows(step.middle, step.last)
            factor, beta = recurrence.update(step.first)
            emit_gemm(launches, factor, t21, b1, beta, b2)


def tuned_leaf(launches: LaunchList, b: Operand, recurrence: Recurrence) -> tuple[Any, int]:
    """The Config of the leaves for a B like this one, and the order at which the recursion ends in them."""
    device = current(launches.device)
    stop = stop_size(recurrence.routine, launches.dtype.letter, device)
    extents = min(stop, b.rows), b.cols, b.batch
    leaf = select(recurrence.routine, launches.dtype, "", extents, device)
    launches.choices.append(leaf)
    return leaf.config, min(stop, leaf.config.ORDER)


def leaf_emitter(
    launches: LaunchList, t: Operand, b: Operand, diag: Diag, config: Any
) -> Callable[..., None]:
    """``emit(t, b, alpha, c)``: one launch of the leaf `config`, for lower triangles in the layouts of T and
    B; C is B by default.

    Later ones have the same strides and batch, and are of no larger order than the leaf's.
    """
    kernel = family_of(config.STEM).source(config, conj=t.conj, t_by_rows=t.by_rows)
    integers = partial(leaf_integers, options_of(conj=t.conj, unit=diag is Diag.UNIT))

    def emit(t: Operand, b: Operand, alpha, c: Operand | None = None) -> None:
        launches.emit(kernel, config.grid(b.cols), (t, b, b if c is None else c), integers, (alpha,))

    return emit


def lower_leaf(emit: Callable[[Operand, Operand, Any], None]) -> Callable[[TriangularSystem, Any], None]:
    """The leaf of `emit_steps` that calls ``emit(t, b, alpha)`` with T lower triangular."""

    def leaf(block: TriangularSystem, alpha) -> None:
        emit(block.lower.t, block.lower.b, alpha)

    return leaf


def _readable_copy(launches: LaunchList, operand: Operand) -> Operand:
    """`operand`, or a copy that kernels can read."""
    return operand if is_readable(operand) else emit_copy_to_workspace(launches, operand)


def leaf_integers(options: int, t: Operand, b: Operand, c: Operand) -> tuple[int, ...]:
    """Integers of a leaf for T, B and C: extents of B, options, and strides."""
    strides = (step for each in (t, b, c) for step in (each.row_stride, each.col_stride))
    return b.rows, b.cols, options, *strides, t.batch_stride, b.batch_stride, c.batch_stride


class FusedOperands(NamedTuple):
    """A triangle T, B and C, these by columns, such that the result C is of T B or of B T.

    Attributes
    ----------
    t, b, c : Operand
        C is B in place.
    triangle : Triangle
    """

    t: Operand
    b: Operand
    c: Operand
    triangle: Triangle

    @property
    def of_a(self) -> bool:
        """Whether T is the kernel's A."""
        return self.triangle.on_left

    @property
    def factors(self) -> tuple[Operand, Operand]:
        """A and B of the kernel."""
        return (self.t, self.b) if self.of_a else (self.b, self.t)

    @property
    def layout(self) -> str:
        """Layout of A and B, as a GEMM Config has it."""
        a, b = self.factors
        return "nt"[not contiguous(a)] + "nt"[not contiguous(b)]

    @property
    def extents(self) -> tuple[int, int, int]:
        """m, n, k of the product."""
        a, b = self.factors
        return a.rows, b.cols, self.t.rows

    @property
    def aligned(self) -> tuple[int, int]:
        """Bytes at multiples of which the columns of A, B begin, by `alignments`."""
        return alignments(self.layout, *self.factors)

    @property
    def ldt(self) -> int:
        """Elements from one column of T, or row, to the next."""
        return self.t.col_stride if contiguous(self.t) else self.t.row_stride


def fused_operands(
    t: Operand, b: Operand, side: Side, uplo: Uplo, out: Operand | None = None, *, stacked: bool = False
) -> FusedOperands | None:
    """The operands as a kernel has them, for a result in place of B, or in `out`.

    None where B has no unit stride, or `out` not the one of B, and where there is nothing. Only `stacked`
    operands may be batches, whose T may have any strides.
    """
    c = b if out is None else out
    if not contiguous(b) and contiguous(b.T):
        t, b, c, side, uplo = t.T, b.T, c.T, side.flipped, uplo.flipped
    if b.is_empty or not (contiguous(b) and contiguous(c)):
        return None
    if not stacked and (b.batch != 1 or not (contiguous(t) or contiguous(t.T))):
        return None
    return FusedOperands(t, b, b if out is None else c, Triangle.of(uplo, side))
