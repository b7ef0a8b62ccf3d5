"""C := alpha T B, or C := alpha B T, where C may be B.

All is one launch, of stacks too, with a kernel of their own for small triangles, or one product on tensor
cores. Or a recursion in place ends in triangles of which each is one launch, or in leaves.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from types import ModuleType

from ...database import RECURSION, max_fused_order
from ...dispatch.algorithms import TRMM_FUSED, TRMM_SMALL, TRMM_TENSOR, trmm_algorithm, trmm_recursion
from ...dispatch.overrides import Algorithm
from ...gpu.device import current
from ...operands import Operand
from ...types import Diag, Side, Uplo
from ..copies import is_readable, most_workspace
from ..launch_list import ALPHA, LaunchList
from . import trmm_by_levels, trmm_fused, trmm_tensor
from .triangular import (
    Recurrence,
    TriangularSystem,
    emit_in_place,
    emit_steps,
    leaf_emitter,
    leaf_orders,
    lower_leaf,
    on_left,
    triangular_launch_list,
    tuned_leaf,
)

__all__ = ["emit", "launch_list"]


def launch_list(
    alpha, t: Operand, b: Operand, out: Operand | None = None, *, side: Side, uplo: Uplo, diag: Diag
) -> LaunchList | None:
    """Return the launch list; see `triangular.triangular_launch_list`."""
    return triangular_launch_list(emit, emit_apart, alpha, t, b, out, side, uplo, diag)


def _leaf_alpha(first: int):
    return ALPHA


def _update(first: int):
    return ALPHA, 1.0


_RECURRENCE = Recurrence("trmm", True, _leaf_alpha, _update)


def emit(launches: LaunchList, t: Operand, b: Operand, side: Side, uplo: Uplo, diag: Diag) -> None:
    """Emit the whole call, in place of B."""
    left = _emit_at_once(launches, t, b, None, side, uplo, diag)
    if left:
        emit_in_place(launches, t, b, side, uplo, partial(_emit_recursion, launches, diag, left))


def emit_apart(
    launches: LaunchList, t: Operand, b: Operand, out: Operand, side: Side, uplo: Uplo, diag: Diag
) -> bool:
    """Emit the whole call into `out`; False, nothing emitted, where the product is one in place."""
    algorithm = _emit_at_once(launches, t, b, out, side, uplo, diag)
    if algorithm is None:
        return True
    if algorithm.name != RECURSION or not all(map(is_readable, (t, b, out))):
        return False
    system = on_left(t, b, side, uplo, out).lower
    t, source = system.t, system.source
    launches.workspace_limit = launches.workspace_bytes + most_workspace(b)
    launches.choices.append(algorithm)
    config, stop = tuned_leaf(launches, source, _RECURRENCE)
    leaf = leaf_emitter(launches, t, source, diag, config)
    trmm_by_levels.emit_apart(launches, t, source, system.b, ALPHA, leaf, stop)
    return True


def _emit_at_once(
    launches: LaunchList, t: Operand, b: Operand, out: Operand | None, side: Side, uplo: Uplo, diag: Diag
) -> Algorithm | None:
    """Emit one launch, or one product on tensor cores; the algorithm to take where there is neither."""
    rhs, device = b.rows * b.cols // t.rows, current(launches.device)
    algorithm = trmm_algorithm(launches.dtype, t.rows, rhs, b.batch, device, out is not None)
    if algorithm.name == TRMM_TENSOR:
        if _emit_on_tensor_cores(launches, algorithm, t, b, out, side, uplo, diag):
            return None
        algorithm = replace(algorithm, name=trmm_recursion(launches.dtype, device))
    if algorithm.name not in (TRMM_FUSED, TRMM_SMALL):
        return algorithm
    for name in dict.fromkeys((algorithm.name, TRMM_FUSED)):
        at_once = _module(name, b)
        planned = at_once.plan(launches, t, b, side, uplo, out)
        if planned is not None:
            launches.choices.append(replace(algorithm, name=name))
            at_once.emit(launches, planned, diag)
            return None
    return replace(algorithm, name=TRMM_FUSED)


def _emit_on_tensor_cores(
    launches: LaunchList,
    algorithm: Algorithm,
    t: Operand,
    b: Operand,
    out: Operand | None,
    side: Side,
    uplo: Uplo,
    diag: Diag,
) -> bool:
    """Emit products on tensor cores; False, and nothing emitted, where they do not serve."""
    if launches.dtype.real_size == 8:
        from . import trmm_residues  # with kernels that others do without

        by_residues = trmm_residues.plan(launches, t, b, side, uplo) if out is None else None
        if by_residues:
            launches.choices.append(algorithm)
            trmm_residues.emit(launches, by_residues, diag, emit)
        return by_residues is not None
    product = trmm_tensor.plan(launches, t, b, side, uplo, out)
    if product:
        launches.choices.append(algorithm)
        trmm_tensor.emit(launches, product, diag)
    return product is not None


def _module(name: str, b: Operand) -> ModuleType:
    """The product in one launch; those of stacks are loaded when there are any."""
    if name == TRMM_SMALL:
        from . import trmm_small

        return trmm_small
    if b.batch == 1:
        return trmm_fused
    from . import trmm_stack

    return trmm_stack


def _emit_recursion(launches: LaunchList, diag: Diag, algorithm: Algorithm, system: TriangularSystem) -> None:
    stop = max_fused_order(algorithm.name, system.b.rows, TRMM_FUSED)
    if stop and all(_plan(launches, system.block(0, rows)) for rows in leaf_orders(system.b.rows, stop)):
        launches.choices.append(algorithm)
        emit_steps(launches, system, _RECURRENCE, stop, partial(_emit_fused, launches, diag))
        return
    launches.choices.append(replace(algorithm, name=RECURSION))
    t, b, *_ = system.lower
    config, stop = tuned_leaf(launches, b, _RECURRENCE)
    leaf = leaf_emitter(launches, t, b, diag, config)
    # the blocks of a batch of triangles would be a batch of batches
    by_levels = trmm_by_levels.level_emitter(launches, b, leaf, stop) if b.batch == 1 else None
    if by_levels:
        stop = max(stop, trmm_by_levels.LARGEST)
    emit_steps(launches, system, _RECURRENCE, stop, lower_leaf(by_levels or leaf))


def _plan(launches: LaunchList, block: TriangularSystem) -> trmm_fused.FusedTrmm | None:
    """Return the plan of a diagonal block as one launch, if it can be."""
    t, b, uplo, _ = block.forwards
    return trmm_fused.plan(launches, t, b, Side.LEFT, uplo)


def _emit_fused(launches: LaunchList, diag: Diag, block: TriangularSystem, alpha) -> None:
    """A diagonal block as one launch, which takes the call's alpha as all leaves do."""
    fused = _plan(launches, block)
    assert fused is not None  # a block has the layout of another of its order
    trmm_fused.emit(launches, fused, diag)
