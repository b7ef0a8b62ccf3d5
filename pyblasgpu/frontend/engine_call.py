"""Calls of Level 3 by tiles: through a part of a card's memory, on several cards, or beside their caller.

A call is whole unless it asks for what only tiles give, or does not fit into the card. Nothing is started
before all is checked.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module
from math import prod
from typing import Any

import numpy as np

from ..dispatch.math_mode import in_mode
from .call import Call
from .engine_options import EngineOptions, ambient_options
from .handle import Handle, Report, watched
from .layouts import Layout
from .small_host import prefers_processor
from .streams import contexts
from .tiled_routines import TiledRoutine, has_lines, inner_extent, untouched

__all__ = [
    "FACTORS_STREAMED_FROM",
    "STREAMED_FROM",
    "engine_module",
    "follow_stream",
    "matrix_of",
    "needed_triangle",
    "options_by_tiles",
    "prepare_device_output",
    "run_by_tiles",
    "run_call",
    "weights_of",
]

#: Bytes of a call's host matrices from which on they are streamed although they fit, of Level 3 and by
#: routine of factors; None, and those that are not here: never. `benchmarks/host_resident.py` decides.
STREAMED_FROM: int | None = 32 << 20
FACTORS_STREAMED_FROM = {"potrf": 128 << 20}
#: Of the memory for tiles, what the output of a product may take while it is computed as a whole.
HELD_OUTPUT = 1 / 4
#: Below this many bytes no card is asked how much memory is free.
LARGE = 1 << 30


def run_call(
    call: Call,
    options: EngineOptions | None,
    tiled: Callable[[], TiledRoutine],
    cpu: Callable[..., Any],
    prepare: Callable[..., Any],
    inputs: tuple[Any, ...],
    scalars: tuple[Any, ...],
    source: Any = None,
    key: Any = None,
    method: str | None = None,
    streams_small: bool = True,
) -> Any:
    """Run a call whose output is set: whole, or by tiles.

    Parameters
    ----------
    call : Call
    options : EngineOptions or None
    tiled : callable
        Gives the routine by tiles.
    cpu, prepare, inputs, scalars, source, key
        See `Call.run`.
    method : str, optional
        The mode in which it runs, see `in_mode`.
    streams_small : bool
        Whether host matrices that fit into the card may be streamed, too.

    Returns
    -------
    array or Handle
    """
    if method is not None:
        prepare = in_mode(method, prepare)
        run = in_mode(method, run_call)
        return run(call, options, tiled, cpu, prepare, inputs, scalars, source, key, None, streams_small)
    whole = partial(call.run, cpu, prepare, inputs, scalars, source, key)
    options = options or ambient_options()
    if options is None and (call.device is None or not call.library.host):
        return whole()
    arrays = [*(array for array, _ in inputs), call.out]
    if options is None and prefers_processor(call, arrays):
        call.backend, call.device = "cpu", None
        return whole()
    asked = options or EngineOptions()
    if not _goes_with(call, asked, arrays):
        asked = asked._replace(devices=())
    if call.device is not None and asked.devices and call.library.host:
        call.device = asked.devices[0]
    if scalars[0] != 0 and _is_tiled(call, asked, arrays, STREAMED_FROM if streams_small else None):
        work = partial(_run_tiled, call, asked, tiled(), inputs, scalars, source)
    else:
        work = partial(_run_whole, call, whole, asked.blocking)
    if asked.blocking:
        with watched(call.name, asked.progress) as report:
            return work(lambda: False, report)
    return Handle(call.name, work, asked.progress if callable(asked.progress) else None)


def _goes_with(call: Call, asked: EngineOptions, arrays: list[Any]) -> bool:
    """Whether what is asked for goes with the arrays of the call.

    Raises
    ------
    ValueError
        Where the call itself asks for what does not.
    """
    problem = _problem(call, list(asked.devices), arrays)
    if problem and not asked.is_ambient:
        raise ValueError(f"{call.name}: {problem}")
    return not problem


def _problem(call: Call, devices: list[int], arrays: list[Any]) -> str:
    """Why the devices do not go with the arrays; empty where they do."""
    if not devices:
        return ""
    if call.device is None:
        return f"devices {devices} are asked for, and the backend is {call.backend!r}"
    if not call.library.host and call.device not in devices:
        return f"the arrays are on device {call.device}, which is none of {devices}"
    if call.library.host and call.stream > contexts().THREAD_STREAM and call.device != devices[0]:
        return f"stream {call.stream:#x} belongs to device {call.device}, and the call runs on {devices}"
    if len(devices) == 1:
        return ""
    if len(call.out.shape) > 2:
        return f"stacks of matrices run on one device, and devices={devices}"
    for array in arrays:
        if isinstance(array, Layout) and (array.conj or 1 not in array.strides or min(array.strides) < 1):
            lazily = ", lazily conjugated" if array.conj else ""
            return (
                f"an array of shape {array.shape} has strides {array.strides}{lazily}; on several devices "
                "one of them is 1, and none below"
            )
    return ""


def _is_tiled(call: Call, asked: EngineOptions, arrays: list[Any], streamed_from: int | None) -> bool:
    """Whether a call on these arrays, the output among them, is made of tiles."""
    if call.device is None or call.backend == "sim":
        return False
    if any(len(array.shape) > 2 or 0 in array.shape for array in arrays):
        return False
    if len(asked.devices) > 1:
        return True
    if not call.library.host:
        return False
    nbytes = sum(array.size for array in arrays) * call.dtype.itemsize
    if asked.max_device_memory is not None:
        return nbytes > asked.max_device_memory
    if streamed_from is not None and nbytes >= streamed_from:
        return True
    return _must(nbytes, call.device)


def _must(nbytes: int, device: int) -> bool:
    """Whether host matrices of `nbytes` bytes do not fit into the memory of a card."""
    limit: int = engine_module("run").memory_limit([device], None) if nbytes > LARGE else nbytes
    return nbytes > limit


def options_by_tiles(call: Call, inputs: Sequence[Any]) -> EngineOptions | None:
    """The options with which a routine of LAPACK is made of tiles; None: it is whole."""
    asked, arrays = ambient_options() or EngineOptions(), [*inputs, call.out]
    if not call.library.host:
        serves = len(asked.devices) > 1 and not _problem(call, list(asked.devices), arrays)
        return asked if serves and _is_tiled(call, asked, arrays, None) else None
    if call.device is not None and asked.devices:
        call.device = asked.devices[0]
    streamed_from = FACTORS_STREAMED_FROM.get(call.name[-5:])  # without the letter of the dtype
    return asked if _is_tiled(call, asked, arrays, streamed_from) else None


def _run_whole(
    call: Call, whole: Callable[[], Any], blocking: bool, is_cancelled: Callable[[], bool], report: Report
) -> Any:
    """Run a call as one."""
    result = whole()
    if not blocking and not call.library.host:
        memory = import_module("..gpu.memory", __package__)
        with contexts().current_context(call.device):
            memory.synchronize(call.stream)
    return result


def _run_tiled(
    call: Call,
    asked: EngineOptions,
    tiled: TiledRoutine,
    inputs: tuple[Any, ...],
    scalars: tuple[Any, ...],
    source: Any,
    is_cancelled: Callable[[], bool],
    report: Report,
) -> Any:
    """Run a call by tiles."""
    arrays = [array for array, _ in inputs]
    run_by_tiles(call, asked, tiled, arrays, scalars, source, is_cancelled, report)
    return call.delivered()


def run_by_tiles(
    call: Call,
    asked: EngineOptions,
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
    devices = asked.devices or (call.device,)
    limit = engine.memory_limit(devices, asked.max_device_memory)
    output, itemsize = tiled.names[-1], call.dtype.itemsize
    lined = has_lines(tiled, [*inputs, call.out]) if call.library.host else ()
    orders = engine_module("tile_size").tile_orders(
        tiled.routine, tiled.extents, call.dtype.letter, limit, len(devices), lined, inner_extent(tiled)
    )
    holds_output = prod(call.out.shape) * itemsize < HELD_OUTPUT * limit * len(devices)
    plan_of = import_module(".tiled_plan", __package__).plan_of
    plan = plan_of(tiled, orders, scalars, call.dtype.letter, weights_of(devices), holds_output)
    grids = plan.tasks.grids
    with contexts().current_context(call.device):
        matrices = {
            name: matrix_of(call, name, grids[name], array, triangle=needed_triangle(tiled, name, scalars))
            for name, array in zip(tiled.names[:-1], inputs, strict=True)
        }
        held = source, tiled.is_new_output, needed_triangle(tiled, output, scalars)
        matrices[output] = matrix_of(call, output, grids[output], call.out, *held)
        follow_stream(call)
    stream = None if call.library.host else engine.CallerStream(call.device, call.stream)
    settled, prepare = [], None
    if tiled.is_new_output or (source is not None and source is not call.out):
        if call.library.host:
            settled = untouched(plan.tasks, output)
        else:
            rest = untouched(plan.tasks, output) if tiled.is_new_output and source is not None else []
            cleared = [matrices[output].home_block(tile) for tile in rest]
            prepare = partial(prepare_device_output, call, source, cleared)
    controls = engine.Controls(is_cancelled, report)
    info: int = engine.run_tasks(plan, matrices, devices, limit, stream, settled, controls, prepare=prepare)
    return info


def follow_stream(call: Call) -> None:
    """Wait for the caller's stream before threads read host matrices, which what is there may write."""
    if call.library.host and call.stream:
        import_module("..gpu.memory", __package__).synchronize(call.stream)


def engine_module(module: str) -> Any:
    """A module of the engine, imported at its first use: other calls do without."""
    return import_module(f"..engine.{module}", __package__)


def weights_of(devices: Sequence[int]) -> list[float]:
    """The shares of the cards: by their multiprocessors."""
    if len(devices) == 1:
        return [1.0]
    current = import_module("..gpu.device", __package__).current
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
    memory = import_module("..gpu.memory", __package__)
    with contexts().current_context(call.device):
        if source is None:
            low, high = call.out.span()
            memory.clear(low, high - low, call.stream)
        else:
            call.start_from(source)
        for block in cleared:
            import_module("..gpu.transfers", __package__).clear_block(block, call.stream)


def needed_triangle(tiled: TiledRoutine, name: str, scalars: tuple[Any, ...]) -> Any:
    """The `Triangle` of a matrix that a routine needs, where the other one stays; None where all is copied.

    Of Cholesky factors all is: more copies would cost the host more than the device has to gain.
    """
    is_updated = tiled.routine == "syrk" and name == "c" and not tiled.is_new_output
    if not is_updated and (name != "a" or tiled.routine not in ("symm", "trmm", "trsm", "potrs")):
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
