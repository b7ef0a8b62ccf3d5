"""The handler that XLA calls: one for all routines, written in Python.

It enqueues, and returns: it waits for nothing, holds no lock, and leaves no memory of its own. What it needs
of a call is prepared once, and kept by the text that describes the call. On a device it may be given the
workspace, as one more result; it allocates nothing then, and XLA may capture the calls in a graph.
"""

from __future__ import annotations

import atexit
import ctypes
import time
from collections.abc import Callable
from functools import cache
from importlib import import_module
from math import prod
from typing import Any, NamedTuple

import jax
import numpy as np

from ..frontend.arrays.layouts import Layout, batches, strides_by_rows
from ..frontend.arrays.streams import contexts
from ..frontend.calls.call_cache import CachedCall
from ..frontend.calls.lazy_routines import copy_launches, enqueue
from ..gpu import workspace
from ..operands import SECTOR
from ..types import INT32
from .description import Description, left_numbers
from .interface import (
    CAPTURED,
    HANDLER,
    answer_metadata,
    attribute,
    create_error,
    is_execution,
    length,
    pointers,
    stream,
)

__all__ = ["CAPTURED_TARGET", "TARGET", "on_device", "on_processor", "prepare", "run_on_device"]

#: The name of the handler in compiled programs; its number changes with the text of a `Description`.
TARGET = "pyblasgpu.2"
#: Its name where calls have their workspace, and may be captured.
CAPTURED_TARGET = f"{TARGET}.captured"

_CODES = (
    (KeyboardInterrupt, 1),  # CANCELLED
    (NotImplementedError, 12),  # UNIMPLEMENTED
    (MemoryError, 8),  # RESOURCE_EXHAUSTED
    ((ValueError, TypeError), 3),  # INVALID_ARGUMENT
    (BaseException, 13),  # INTERNAL
)


def _handler(run: Callable[[Any, bytes, list[int], list[int]], None], traits: int = 0) -> Any:
    """Return XLA's handler: ``run(frame, text, arguments, results)``, its errors those of the program."""

    def call(frame_pointer: Any) -> int | None:
        frame, text = frame_pointer.contents, b""
        try:
            if frame.extension_start and answer_metadata(frame, traits):
                return None
            if is_execution(frame):
                text = attribute(frame)
                _recent[0] = time.monotonic()
                run(frame, text, pointers(frame.arguments), pointers(frame.results))
            return None
        except BaseException as error:  # ctypes would print it and return NULL, which means success
            return create_error(frame, _message(text, error), _code(error))

    return HANDLER(call)


def _code(error: BaseException) -> int:
    return next(number for kinds, number in _CODES if isinstance(error, kinds))


def _message(text: bytes, error: BaseException) -> str:
    try:
        return f"pyblasgpu: {Description.of(text).stem if text else ''}: {type(error).__name__}: {error}"
    except Exception:  # of an exception without a text
        return f"pyblasgpu: {type(error).__name__}"


# ---------------------------------------------------------------------------------------- host memory


@cache
def on_processor(text: bytes) -> Callable[[list[int], list[int]], None]:
    """Return what computes the call by the CPU backend."""
    call = Description.of(text)
    dtype = np.dtype(call.dtype.name)
    cpu = call.routine.on_arrays(call.keywords, call.dtype)
    batch_shape = call.out[:-2]

    def run(arguments: list[int], results: list[int]) -> None:
        reading = [(shape, np.dtype(np.int32)) for shape in call.integers]
        reading += [(shape, dtype) for shape in (*call.inputs, *[call.out] * call.is_updated)]
        read = [_array(pointer, *what) for pointer, what in zip(arguments, reading, strict=True)]
        out = _array(results[0], call.out, dtype)
        if call.is_updated and arguments[-1] != results[0]:
            np.copyto(out, read[-1])
        left = left_numbers(call.stem, dtype, call.counts)
        shapes = [((*batch_shape, count, 1), kind) for count, kind in left]
        numbers = [_array(place, *what) for place, what in zip(results[1:], shapes, strict=True)]
        inputs = read[: len(read) - call.is_updated]
        cpu(call.scalars, *numbers, *inputs, out)

    return run


def _array(pointer: int, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """Return memory as an array."""
    memory = (ctypes.c_ubyte * (prod(shape) * dtype.itemsize)).from_address(pointer)
    return np.ndarray(shape, dtype, memoryview(memory))


# -------------------------------------------------------------------------------------- device memory


class Prepared(NamedTuple):
    """A call on a device.

    Attributes
    ----------
    run : callable
        ``run(arguments, results, stream)`` enqueues it.
    operands : int
        How many results are its own; the workspace may follow.
    workspace : int
        Bytes of workspace, with flags; 0 where it needs none.
    uses_flags : bool
    """

    run: Callable[[list[int], list[int], int], None]
    operands: int
    workspace: int
    uses_flags: bool


@cache
def on_device(text: bytes, device: int) -> Prepared:
    """Return the call on a device; kernels for aligned memory, as XLA's is, are compiled."""
    call = Description.of(text)
    layouts = _layouts(call, device)
    dtype, calls = call.dtype, list(batches(layouts))
    prepare = call.routine.on_operands(call.keywords, dtype, **call.options)
    alpha, beta = (*call.scalars, 1, 0)[:2] if call.scalars else (1, 0)
    scalars = call.scalars or (1,)
    at_once = len(calls) == 1
    if at_once:
        generation = import_module("..dispatch.choose", __package__).generation
        kept = CachedCall(layouts, calls[0], prepare, generation)
        kept.prepare([layout.pointer for layout in layouts], alpha, beta)
        lists = [*kept.variants.values()]
    else:
        lists = [prepare(scalars, operands) for operands in calls]

    def run(arguments: list[int], results: list[int], stream: int) -> None:
        read = arguments[: len(arguments) - call.is_updated]
        out, *numbers = results
        if call.is_updated and arguments[-1] != out:
            _copy(call, device, arguments[-1], out, stream)
        places = [*numbers, *read, out]
        if at_once:
            if not kept.run(places, alpha, beta, stream, checks_numbers=False):
                raise ValueError("the result shares memory with an operand, or memory is misaligned")
            return
        placed = [layout._replace(pointer=place) for layout, place in zip(layouts, places, strict=True)]
        for operands in batches(tuple(placed)):
            enqueue(prepare, scalars, operands, stream)

    used = [each for each in lists if each is not None and each.uses_workspace]
    nbytes = max((each.workspace_bytes for each in used), default=0)
    room = nbytes + workspace.ALL_FLAGS + workspace.ALIGN if used else 0
    return Prepared(run, 1 + len(call.counts), room, any(each.uses_flags for each in used))


def _layouts(call: Description, device: int) -> tuple[Layout, ...]:
    """Return the layouts of a routine's operands, each at a place of its own."""
    dtype, batch_shape = call.dtype, call.out[:-2]
    left = left_numbers(call.stem, dtype.name, call.counts)
    shapes = [((*batch_shape, count, 1), INT32 if kind == np.int32 else dtype) for count, kind in left]
    shapes += [(shape, INT32) for shape in call.integers]
    shapes += [(shape, dtype) for shape in (*call.inputs, call.out)]
    layouts, start = [], 0
    for shape, kind in shapes:
        start += SECTOR * 8
        layouts.append(Layout(start, shape, strides_by_rows(shape), kind, device))
        start += -(-prod(shape) * kind.itemsize // SECTOR) * SECTOR
    first = len(call.counts) + len(call.integers)
    for i, op in enumerate(call.ops):
        layouts[first + i] = layouts[first + i].op(op)
    return tuple(layouts)


def _copy(call: Description, device: int, source: int, target: int, stream: int) -> None:
    """Enqueue a copy of what the output holds at first, where XLA has not let it have the same memory."""
    like = Layout(source, call.out, strides_by_rows(call.out), call.dtype, device)
    for operands in batches((like, like._replace(pointer=target))):
        enqueue(copy_launches, (1,), operands, stream)


def prepare(text: str, device: int | None) -> int:
    """Prepare for calls: on a device their kernels are compiled ahead, and not in a thread of XLA's. Return
    the bytes of workspace that one needs there.
    """
    _recent[0] = time.monotonic()
    if device is None:
        return 0
    with contexts().current_context(device):
        return on_device(text.encode(), device).workspace


# ----------------------------------------------------------------------------------------- registration


def _run_on_processor(frame: Any, text: bytes, arguments: list[int], results: list[int]) -> None:
    on_processor(text)(arguments, results)


def run_on_device(frame: Any, text: bytes, arguments: list[int], results: list[int]) -> None:
    """Enqueue a call, in the workspace that follows its own results if there is one."""
    where, device = stream(frame)
    with contexts().current_context(device):
        call = on_device(text, device)
        count = call.operands
        if len(results) == count:
            call.run(arguments, results, where)
            return
        room = results[count], length(frame.results, count)
        with workspace.lent(*room, device, where, call.uses_flags):
            call.run(arguments, results[:count], where)


# A program that is pending at the end of the process needs the interpreter's lock, which JAX holds there.
# On the processor this lets none be pending; it holds from the first use of JAX's devices on.
jax.config.update("jax_cpu_enable_async_dispatch", False)

#: When a call began last, or was compiled; 0 where none was.
_recent = [0.0]
#: XLA forgets no handler, so none may be collected.
_HANDLERS = (
    (TARGET, "cpu", _handler(_run_on_processor)),
    (TARGET, "CUDA", _handler(run_on_device)),
    (CAPTURED_TARGET, "CUDA", _handler(run_on_device, CAPTURED)),
)

for _name, _platform, _callback in _HANDLERS:
    jax.ffi.register_ffi_target(_name, jax.ffi.pycapsule(_callback), platform=_platform)


@atexit.register  # later than JAX's own, therefore called before it
def _wait_for_calls() -> None:
    """Wait for programs: JAX waits for its threads with the interpreter's lock, which a call needs."""
    if not _recent[0]:
        return
    for array in jax.live_arrays():
        try:
            array.block_until_ready()
        except Exception:  # of a program that has failed
            continue
    # of programs whose results nobody keeps only the calls can be seen
    while time.monotonic() - _recent[0] < 0.2:
        time.sleep(0.01)
