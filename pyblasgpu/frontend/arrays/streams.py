"""Streams as callers pass them: their handles, and checks that they are of the arrays' device."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, wraps
from importlib import import_module
from typing import Any, TypeVar, cast

from ...errors import BackendUnavailable

__all__ = ["contexts", "device_for", "is_captured", "on_device", "stream_of", "stream_pointer"]

_Method = TypeVar("_Method", bound=Callable[..., Any])


@cache
def contexts() -> Any:
    """The module `pyblasgpu.gpu.context`, imported at its first use: the CPU backend does without it."""
    return import_module("...gpu.context", __package__)


def on_device(method: _Method) -> _Method:
    """`method` of a call, with the context of the call's `device` current, and after it what was before."""

    @wraps(method)
    def run(call: Any, *arguments: Any, **options: Any) -> Any:
        if call.device is None:
            return method(call, *arguments, **options)
        with contexts().current_context(call.device):
            return method(call, *arguments, **options)

    return cast(_Method, run)


def stream_pointer(stream: Any) -> int | None:
    """The address of a CUDA stream given as an int or as any library's stream object; None stays None.

    Raises
    ------
    TypeError
        For what is no stream.
    """
    if stream is None or isinstance(stream, int):
        return stream
    if hasattr(stream, "__cuda_stream__"):
        return int(stream.__cuda_stream__()[1])
    for attribute in ("ptr", "cuda_stream", "handle"):
        if hasattr(stream, attribute):
            pointer = getattr(stream, attribute)
            # ctypes pointers carry None for 0
            return int(getattr(pointer, "value", pointer) or 0)
    if hasattr(stream, "__index__"):
        return int(stream)
    raise TypeError(f"stream must be an int or a stream object, not a {type(stream).__name__}")


def is_captured(stream: int) -> bool:
    """Whether what is enqueued on a stream becomes part of a graph: the host may not wait for it."""
    try:
        return bool(import_module("...gpu.launch", __package__).is_captured(stream))
    except BackendUnavailable:  # nor is there a graph without a driver
        return False


def stream_of(device: int, stream: Any, routine: str) -> int | None:
    """The address of the caller's `stream`, which is one of `device`; None stays None.

    Raises
    ------
    TypeError
        For what is no stream.
    ValueError
        For a stream of another device, and for a number that is no address.
    """
    pointer = stream_pointer(stream)
    if pointer is None:
        return None
    if not 0 <= pointer < 1 << 64:
        raise ValueError(f"{routine}: stream {pointer} is not the handle of a stream")
    owner = _device_of(stream, pointer)
    if owner is not None and owner != device:
        raise ValueError(
            f"{routine}: stream {pointer:#x} belongs to device {owner}, and the arrays are on device {device}"
        )
    return pointer


def device_for(stream: Any) -> int:
    """The device on which host arrays are computed: that of `stream`, else the one that is current."""
    pointer = stream_pointer(stream)
    owner = None if pointer is None else _device_of(stream, pointer)
    return contexts().current_device() if owner is None else owner


def _device_of(stream: Any, pointer: int) -> int | None:
    """Return the device of a stream; None for a default stream, unless its object knows."""
    if pointer > contexts().THREAD_STREAM:
        return contexts().stream_device(pointer)
    if type(stream) is not int:
        for attribute in ("device_index", "device_id"):  # PyTorch's, CuPy's; -1 where it is no one's
            device = getattr(stream, attribute, None)
            if isinstance(device, int) and device >= 0:
                return device
    return None
