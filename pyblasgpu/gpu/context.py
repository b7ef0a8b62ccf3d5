"""The context that is current on a thread: made the device's for the time of a call, then as it was.

Which device is current is the caller's affair, and other libraries allocate there. So whatever needs a
device's context makes it current for itself and restores what it found, none at all included.
"""

from __future__ import annotations

import os
from typing import Any

from ..errors import BackendUnavailable
from . import backend
from .driver import DeviceError, DriverState, after_fork, check, load

__all__ = [
    "AMBIGUOUS_STREAMS",
    "LEGACY_STREAM",
    "THREAD_STREAM",
    "current_context",
    "current_device",
    "make_current",
    "pointer_device",
    "restore",
    "stream_device",
]

# Handles of default streams of the current context, as 0 does; created streams have their own.
LEGACY_STREAM, THREAD_STREAM = 1, 2
#: Handles that are another stream on each thread; 0 is one where cuda.bindings is configured so.
AMBIGUOUS_STREAMS = {THREAD_STREAM}
if int(os.environ.get("CUDA_PYTHON_CUDA_PER_THREAD_DEFAULT_STREAM", 0)):
    AMBIGUOUS_STREAMS.add(0)

_SIMULATED = backend.SIMULATED  # then there are none
#: Contexts that other libraries use too, by device.
primary_contexts: dict[int, Any] = {}
#: The driver's function, once a context is retained.
get_current_context: Any = None

after_fork(primary_contexts.clear)


def make_current(device: int) -> Any:
    """Make the context of `device` current on this thread.

    Returns
    -------
    object or None
        What `restore` takes to undo it; None where it was current already.
    """
    if _SIMULATED:
        return None
    context = primary_contexts.get(device) or retain_primary_context(device)
    before = get_current_context()[1]
    if before == context:
        return None
    check(load().cuCtxSetCurrent(context), "cuCtxSetCurrent")
    return before


def restore(before: Any) -> None:
    """Make current again what `make_current` has found."""
    load().cuCtxSetCurrent(before)  # an error is that of an earlier call, which reports it


class current_context:
    """Context manager: the context of `device` is current on this thread in the block.

    After it that is current which was before. A class, because the engine enters many.
    """

    __slots__ = ("_before", "_device")

    def __init__(self, device: int):
        self._device = device

    def __enter__(self) -> None:
        self._before = make_current(self._device)

    def __exit__(self, *_: object) -> None:
        if self._before is not None:
            restore(self._before)


def retain_primary_context(device: int) -> Any:
    """The primary context of `device`, kept."""
    global get_current_context
    driver = load()
    get_current_context = driver.cuCtxGetCurrent
    context = check(driver.cuDevicePrimaryCtxRetain(device), "cuDevicePrimaryCtxRetain")
    return primary_contexts.setdefault(device, context)


def current_device() -> int:
    """Ordinal of the device that is current on this thread; 0 where none is, or where there is no driver."""
    if _SIMULATED or (DriverState.driver is None and DriverState.reason):
        return 0
    try:
        error, context = load().cuCtxGetCurrent()
    except BackendUnavailable:
        return 0
    return _device_of(context) if not error and int(context) else 0


def stream_device(stream: int) -> int | None:
    """Ordinal of the device to which a stream belongs.

    None for the default streams, which are those of whatever device is current, and where the driver does not
    report it. The handle must be that of a stream.
    """
    if stream <= THREAD_STREAM or _SIMULATED:
        return None
    error, context = load().cuStreamGetCtx(stream)
    return None if error else _device_of(context)


def pointer_device(pointer: int) -> int | None:
    """Ordinal of the device that memory is on; None where the driver does not know the address."""
    if _SIMULATED:
        return 0
    # its ordinal reads 0 on every device with cuda-bindings below 13.5 (NVIDIA/cuda-python, issue 2928)
    driver = load()
    attribute = driver.CUpointer_attribute.CU_POINTER_ATTRIBUTE_CONTEXT
    error, context = driver.cuPointerGetAttribute(attribute, pointer)
    if error == driver.CUresult.CUDA_ERROR_INVALID_CONTEXT:  # none is current, any will do
        with current_context(0):
            error, context = driver.cuPointerGetAttribute(attribute, pointer)
    if error:
        return None
    return _device_of(context) if int(context) else _device_of_pooled(pointer)


def _device_of_pooled(pointer: int) -> int:
    """Ordinal of the device of memory from a pool, which belongs to no context."""
    from cuda.bindings import runtime

    with current_context(0):  # lest the runtime makes one current
        error, attributes = runtime.cudaPointerGetAttributes(pointer)
    if error:
        raise DeviceError(f"cudaPointerGetAttributes: {error.name}")
    return int(attributes.device)


def _device_of(context: Any) -> int:
    for device, primary in list(primary_contexts.items()):
        if primary == context:
            return device
    driver = load()
    check(driver.cuCtxPushCurrent(context), "cuCtxPushCurrent")
    try:
        return int(check(driver.cuCtxGetDevice(), "cuCtxGetDevice"))
    finally:
        driver.cuCtxPopCurrent()
