"""Calls of Level 3 by tiles: through a part of a device's memory, on several devices, or on a thread.

A call is whole unless its options need tiles, or it does not fit into the device. All is checked before
anything starts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib import import_module
from math import prod
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from ...dispatch.overrides import in_mode
from ...routine import Routine
from ...types import Trans
from ..arrays.layouts import Layout
from ..arrays.streams import contexts
from ..engine_options import EngineOptions, ambient_options
from .call import Call
from .lazy_routines import policy_at
from .tiled_routines import TiledRoutine

if TYPE_CHECKING:
    from ..handle import Report

__all__ = ["obstacle", "options_by_tiles", "run_routine"]

#: Bytes of a call below which free memory is not looked up.
LARGE = 1 << 30


def run_routine(
    call: Call,
    routine: Routine,
    inputs: tuple[Any, ...],
    scalars: tuple[Any, ...],
    flags: Mapping[str, Any],
    source: Any = None,
    key: Any = None,
    *,
    extents: tuple[int, ...] = (),
    options: EngineOptions | None = None,
    method: str | None = None,
    streams_small: bool = True,
    launch_options: Mapping[str, Any] = MappingProxyType({}),
) -> Any:
    """Run a routine of Level 2 or 3 whose arguments are checked and whose output is set.

    Parameters
    ----------
    call : Call
    routine : Routine
    inputs : tuple of array
        Inputs that are read, of `Call.inputs`; their op is among the flags.
    scalars : tuple
        Its scalars, in order.
    flags : mapping
        Its flags and switches by the names of its row.
    source, key
        See `Call.run`.
    extents : tuple of int
        The extents among m, n and k that it has, where it may run by tiles.
    options : EngineOptions, optional
    method : str, optional
        The mode in which it runs, see `in_mode`.
    streams_small : bool, default True
        Whether host matrices that fit into the device may be streamed, too.
    launch_options : mapping
        Further arguments of its launch list.

    Returns
    -------
    array or Handle
    """
    ops = (flags.get(matrix.op, Trans.NO) for matrix in routine.matrices)
    whole = _Whole(
        routine.on_arrays(flags, call.dtype, call.backend),
        in_mode(method, routine.on_operands(flags, call.dtype, **launch_options)),
        tuple(zip(inputs, ops, strict=False)),
        scalars,
        source,
        key,
        routine.reads_source,
    )
    if not routine.tasks:
        return call.run(*whole)
    tiled = partial(TiledRoutine.of, routine, extents, flags, call.dtype)
    return in_mode(method, _run)(call, whole, tiled, options, streams_small)


class _Whole(NamedTuple):
    """The arguments of `Call.run`."""

    cpu: Callable[..., Any]
    prepare: Callable[..., Any]
    inputs: tuple[Any, ...]
    scalars: tuple[Any, ...]
    source: Any
    key: Any
    reads_source: bool


def _run(
    call: Call,
    whole: _Whole,
    tiled: Callable[[], TiledRoutine],
    options: EngineOptions | None,
    streams_small: bool,
) -> Any:
    """Run a call as one, or by the tiles that `tiled` returns; the array or a handle."""
    inputs, scalars, run_whole = whole.inputs, whole.scalars, partial(call.run, *whole)
    options = options or ambient_options()
    if options is None and (call.device is None or not call.library.host):
        return run_whole()
    arrays = [*(array for array, _ in inputs), call.out]
    if options is None and _prefers_processor(call, arrays):
        call.backend, call.device = "cpu", None
        return run_whole()
    effective = options or EngineOptions()
    if not _goes_with(call, effective, arrays):
        effective = effective._replace(devices=())
    if call.device is not None and effective.devices and call.library.host:
        call.device = effective.devices[0]
    streamed_from = policy_at(call.device).streamed_min_bytes if streams_small else None
    if scalars[0] != 0 and _is_tiled(call, effective, arrays, streamed_from):
        work = partial(_run_tiled, call, effective, tiled(), inputs, scalars, whole.source)
    else:
        work = partial(_run_whole, call, run_whole, effective.blocking)
    from ..handle import Handle, watched  # with threads, which most calls do without

    if effective.blocking:
        with watched(call.name, effective.progress) as report:
            return work(lambda: False, report)
    call.note_write()  # now, not when the thread runs it
    return Handle(call.name, work, effective.progress if callable(effective.progress) else None)


def _prefers_processor(call: Call, arrays: list[Any]) -> bool:
    """Whether SciPy's BLAS is to compute on host matrices so small that the processor is done before a device
    has them; a backend that the call or its context names counts.
    """
    if not call.is_auto or call.device is None or any(array.ndim > 2 for array in arrays):
        return False
    # m n k of a product, the same of others: a triangular or a symmetric matrix has an order twice
    *inputs, out = arrays
    work = prod(array.size for array in (inputs * 2)[:2]) * out.size
    return work < policy_at(call.device).host_min_order[call.dtype.letter] ** 6


def _goes_with(call: Call, options: EngineOptions, arrays: list[Any]) -> bool:
    """Whether the options go with the arrays of the call.

    Raises
    ------
    ValueError
        When options of the call itself do not.
    """
    problem = obstacle(call, list(options.devices), arrays)
    if problem and not options.is_ambient:
        raise ValueError(f"{call.name}: {problem}")
    return not problem


def obstacle(call: Call, devices: list[int], arrays: list[Any]) -> str:
    """Why the devices do not go with the arrays; empty where they do."""
    if not devices:
        return ""
    if call.device is None:
        return f"devices {devices} are named, and the backend is {call.backend!r}"
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


def _is_tiled(call: Call, options: EngineOptions, arrays: list[Any], streamed_from: float | None) -> bool:
    """Whether a call on these arrays, the output among them, is made of tiles.

    Host matrices that fit are streamed from `streamed_from` bytes on; None: never.
    """
    if call.device is None or call.backend == "sim":
        return False
    if any(len(array.shape) > 2 or 0 in array.shape for array in arrays):
        return False
    if len(options.devices) > 1:
        return True
    if not call.library.host:
        return False
    nbytes = sum(array.size for array in arrays) * call.dtype.itemsize
    if options.max_device_memory is not None:
        return nbytes > options.max_device_memory
    if streamed_from is not None and nbytes >= streamed_from:
        return True
    return _must(nbytes, call.device)


def _must(nbytes: int, device: int) -> bool:
    """Whether host matrices of `nbytes` bytes do not fit into the memory of a card."""
    if nbytes <= LARGE:
        return False
    from ...engine.run import memory_limit  # other calls do without the engine

    return nbytes > memory_limit([device], None)


def options_by_tiles(call: Call, inputs: Sequence[Any], routine: str = "") -> EngineOptions | None:
    """The options with which a routine of LAPACK is made of tiles; None: it is whole. A factorization of host
    matrices that fit is streamed by the policy's bytes of that `routine`.
    """
    options, arrays = ambient_options() or EngineOptions(), [*inputs, call.out]
    if not call.library.host:
        is_on_several_devices = len(options.devices) > 1 and not obstacle(call, list(options.devices), arrays)
        return options if is_on_several_devices and _is_tiled(call, options, arrays, None) else None
    if call.device is not None and options.devices:
        call.device = options.devices[0]
    streamed_from = policy_at(call.device).streamed_factor_min_bytes.get(routine)
    return options if _is_tiled(call, options, arrays, streamed_from) else None


def _run_whole(
    call: Call, run_whole: Callable[[], Any], blocking: bool, is_cancelled: Callable[[], bool], report: Report
) -> Any:
    """Run a call as one."""
    result = run_whole()
    if not blocking and not call.library.host:
        memory = import_module("...gpu.memory", __package__)
        with contexts().current_context(call.device):
            memory.synchronize(call.stream)
    return result


def _run_tiled(
    call: Call,
    options: EngineOptions,
    tiled: TiledRoutine,
    inputs: tuple[Any, ...],
    scalars: tuple[Any, ...],
    source: Any,
    is_cancelled: Callable[[], bool],
    report: Report,
) -> Any:
    """Run a call by tiles."""
    from .tiled_call import run_by_tiles

    arrays = [array for array, _ in inputs]
    run_by_tiles(call, options, tiled, arrays, scalars, source, is_cancelled, report)
    return call.delivered()
