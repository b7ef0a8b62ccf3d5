"""Calls by tiles: their arrays as the engine takes them, and its run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module
from math import prod
from typing import Any

import numpy as np

from ..arrays.layouts import Layout
from ..arrays.streams import contexts
from ..engine_options import EngineOptions
from ..handle import Report
from .call import Call
from .lazy_routines import policy_at
from .tiled_plan import can_hold_output, plan_of, untouched
from .tiled_routines import TiledRoutine, has_lines, inner_extent

__all__ = [
    "engine_module",
    "follow_stream",
    "matrix_of",
    "needed_triangle",
    "prepare_device_output",
    "run_by_tiles",
    "weights_of",
]


def run_by_tiles(
    call: Call,
    options: EngineOptions,
    tiled: TiledRoutine,
    inputs: Sequence[Any],
    scalars: tuple[Any, ...],
    source: Any,
    is_cancelled: Callable[[], bool] = lambda: False,
    report: Report = lambda done, total: None,
) -> int:
    """Run a routine by tiles on the arrays of a call; the info of a Cholesky factor, else 0."""
    engine = engine_module("run")
    assert call.device is not None
    devices = options.devices or (call.device,)
    limit = engine.memory_limit(devices, options.max_device_memory)
    output, itemsize = tiled.names[-1], call.dtype.itemsize
    contiguous_extents = has_lines(tiled, [*inputs, call.out]) if call.library.host else ()
    narrow_up_to = policy_at(call.device).narrow_tiles_max_order.get(call.dtype.letter, 0)
    orders = engine_module("tile_size").tile_orders(
        tiled.routine,
        tiled.extents,
        call.dtype.letter,
        limit,
        len(devices),
        contiguous_extents,
        inner_extent(tiled),
        narrow_up_to,
    )
    holds_output = can_hold_output(prod(call.out.shape) * itemsize, limit, len(devices))
    plan = plan_of(tiled, orders, scalars, call.dtype.letter, weights_of(devices), holds_output)
    grids = plan.tasks.grids
    with contexts().current_context(call.device):
        matrices = {
            name: matrix_of(call, name, grids[name], array, triangle=needed_triangle(tiled, name, scalars))
            for name, array in zip(tiled.names[:-1], inputs, strict=True)
        }
        output_options = source, tiled.is_new_output, needed_triangle(tiled, output, scalars)
        matrices[output] = matrix_of(call, output, grids[output], call.out, *output_options)
        follow_stream(call)
    stream = None if call.library.host else engine.CallerStream(call.device, call.stream)
    unwritten, prepare = [], None
    if tiled.is_new_output or (source is not None and source is not call.out):
        if call.library.host:
            unwritten = untouched(plan.tasks, output)
        else:
            untouched_tiles = (
                untouched(plan.tasks, output) if tiled.is_new_output and source is not None else []
            )
            cleared = [matrices[output].home_block(tile) for tile in untouched_tiles]
            prepare = partial(prepare_device_output, call, source, cleared)
    call.note_write()
    controls = engine.Controls(is_cancelled, report)
    info: int = engine.run_tasks(plan, matrices, devices, limit, stream, unwritten, controls, prepare=prepare)
    return info


def follow_stream(call: Call) -> None:
    """Wait for the caller's stream before threads read host matrices, which what is there may write."""
    if call.library.host and call.stream:
        import_module("...gpu.memory", __package__).synchronize(call.stream)


def engine_module(module: str) -> Any:
    """A module of the engine, imported at its first use: other calls do without."""
    return import_module(f"...engine.{module}", __package__)


def weights_of(devices: Sequence[int]) -> list[float]:
    """The shares of the cards: by their multiprocessors."""
    if len(devices) == 1:
        return [1.0]
    current = import_module("...gpu.device", __package__).current
    return [float(current(device).sm_count) for device in devices]


def prepare_device_output(call: Call, source: Any, cleared: Sequence[Any] = ()) -> None:
    """Enqueue what the output holds at first, on the caller's stream: `source`, or zeros.

    Parameters
    ----------
    call : Call
    source : Layout or None
    cleared : sequence of Block
        Parts of the output that are zeros, too.
    """
    memory = import_module("...gpu.memory", __package__)
    with contexts().current_context(call.device):
        if source is None:
            low, high = call.out.span()
            memory.clear(low, high - low, call.stream)
        else:
            call.start_from(source)
        for block in cleared:
            import_module("...gpu.transfers", __package__).clear_block(block, call.stream)


def needed_triangle(tiled: TiledRoutine, name: str, scalars: tuple[Any, ...]) -> Any:
    """The `Triangle` of a matrix that a routine needs, where the other one stays; None where all is copied.

    All of a Cholesky factor is copied: more copies would cost the host more than the device gains.
    """
    matrix, row = tiled.operands[tiled.names.index(name)], tiled.row
    is_updated = row.is_update and matrix is row.output and not tiled.is_new_output
    if not is_updated and (matrix is row.output or not matrix.is_half):
        return None
    is_read = not is_updated or scalars[1] != 0
    return engine_module("matrices").Triangle(tiled.flags["uplo"], is_read)


def matrix_of(
    call: Call,
    name: str,
    grid: Any,
    array: Any,
    source: Any = None,
    rest_is_zero: bool = False,
    triangle: Any = None,
) -> Any:
    """An array of the call as the engine takes it; see `HostMatrix`."""
    matrices = engine_module("matrices")
    if isinstance(array, np.ndarray):
        triangle = triangle if source is None or source is array else None
        return matrices.HostMatrix(name, grid, call.dtype, array, source, rest_is_zero, triangle)
    assert isinstance(array, Layout)
    return matrices.DeviceMatrix(name, grid, array.operand())
