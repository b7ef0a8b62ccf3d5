"""Options of where and how a call runs: devices, their memory, whether it blocks."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from functools import partial
from importlib import import_module
from operator import index
from typing import Any, NamedTuple

from ..arguments import enabled, shown
from ..errors import BackendUnavailable
from ..settings import Setting

__all__ = ["EngineOptions", "ambient_options", "engine_options", "use_devices"]


class EngineOptions(NamedTuple):
    """Options of where and how a call runs.

    Attributes
    ----------
    devices : tuple of int
        The devices, empty where the call names none.
    max_device_memory : int or None
    blocking : bool
    progress : callable, bool or None
    is_ambient : bool
        Whether `use_devices` sets them, not the call: a call that they do not fit runs as without.
    """

    devices: tuple[int, ...] = ()
    max_device_memory: int | None = None
    blocking: bool = True
    progress: Any = None
    is_ambient: bool = False


#: Options of calls that name none themselves.
_ambient: ContextVar[EngineOptions | None] = ContextVar("engine_options", default=None)


def ambient_options() -> EngineOptions | None:
    """Return the options that `use_devices` sets around a call."""
    return _ambient.get()


def use_devices(devices: Any = None, max_device_memory: int | None = None) -> Setting:
    """Run calls from now on on several devices, or through a part of a device's memory.

    It serves functions that have no such keywords, as those of `pyblasgpu.blas` and `pyblasgpu.linalg`: their
    products, TRMM, TRSM, and Cholesky and LU factors of matrices. Other calls run as without it. Keywords of
    a call take precedence. It holds in this thread or task alone.

    Parameters
    ----------
    devices : sequence of int or 'all', optional
        The devices, by number; device arrays are on one of them. By default those of the setting before.
        Where there is no device, 'all' leaves calls on the CPU.
    max_device_memory : int, optional
        Bytes that tiles of host arrays may take on each device. By default those of the setting before, or
        most of what is free. With neither argument, calls run as without any setting.

    Returns
    -------
    Setting
        A context manager that restores the setting before at the end of its block.

    Raises
    ------
    BackendUnavailable
        When a device is not there.
    TypeError, ValueError
        When a value is no device or no number of bytes.

    See Also
    --------
    gemm : Takes both as keywords.

    Examples
    --------
    >>> import numpy as np, pyblasgpu
    >>> with pyblasgpu.use_devices(max_device_memory=1 << 30):
    ...     pyblasgpu.blas.dgemm(1, np.eye(2), np.ones((2, 1))).tolist()
    [[1.0], [1.0]]
    """
    named = _devices("use_devices", None, devices)
    max_device_memory = _bytes("use_devices", max_device_memory)
    is_set = devices is not None or max_device_memory is not None
    return Setting("use_devices", partial(_set_ambient, named, max_device_memory, is_set))


def _set_ambient(devices: tuple[int, ...], max_device_memory: int | None, is_set: bool) -> Callable[[], None]:
    """Set what is given, the rest as it was, or unset all; return the function that restores it."""
    before = _ambient.get()
    options = (before or EngineOptions())._replace(is_ambient=True)
    if devices:
        options = options._replace(devices=devices)
    if max_device_memory is not None:
        options = options._replace(max_device_memory=max_device_memory)
    _ambient.set(options if is_set else None)
    return partial(_restore_ambient, before)


def _restore_ambient(before: EngineOptions | None) -> None:
    _ambient.set(before)


def engine_options(
    name: str, device: Any, devices: Any, max_device_memory: Any, blocking: Any, progress: Any
) -> EngineOptions | None:
    """The options of a call, checked; None where all are the defaults and none are set around it.

    Raises
    ------
    BackendUnavailable
        When a device is not there.
    TypeError, ValueError
        For what is no device, no number of bytes, no function.
    """
    is_silent = progress is None or progress is False
    if device is None and devices is None and max_device_memory is None and blocking is True and is_silent:
        around = _ambient.get()
        return around if progress is None else (around or EngineOptions())._replace(progress=progress)
    max_device_memory = _bytes(name, max_device_memory)
    if progress is not None and not callable(progress) and not isinstance(progress, bool):
        raise TypeError(f"{name}: progress={shown(progress)} is neither a function nor a bool")
    named, around = _devices(name, device, devices), _ambient.get() or EngineOptions()
    return EngineOptions(
        named or around.devices,
        around.max_device_memory if max_device_memory is None else max_device_memory,
        enabled(blocking, name, "blocking"),
        progress,
        is_ambient=around.is_ambient and not named,
    )


def _bytes(name: str, max_device_memory: Any) -> int | None:
    if max_device_memory is None:
        return None
    number = _integer(name, "max_device_memory", max_device_memory)
    if number <= 0:
        raise ValueError(f"{name}: max_device_memory={number} is no number of bytes, which are from 1 on")
    return number


def _integer(name: str, argument: str, value: Any) -> int:
    try:
        if not isinstance(value, bool):
            return index(value)
    except TypeError:
        pass
    raise TypeError(f"{name}: {argument}={shown(value)} is no integer")


def _devices(name: str, device: Any, devices: Any) -> tuple[int, ...]:
    """The ordinals that a call names."""
    if device is not None and devices is not None:
        raise ValueError(f"{name}: device={shown(device)} and devices={shown(devices)} are both given")
    if device is None and devices is None:
        return ()
    module = import_module("..gpu.device", __package__)
    if isinstance(devices, str):
        if devices != "all":
            raise ValueError(f"{name}: devices={devices!r} is neither 'all' nor a list of numbers")
        return tuple(each.ordinal for each in module.here())
    try:
        named = [device] if devices is None else list(devices)
    except TypeError:
        raise TypeError(f"{name}: devices={shown(devices)} is neither 'all' nor a list of numbers") from None
    ordinals = tuple(_integer(name, "devices" if device is None else "device", each) for each in named)
    if not ordinals or len(set(ordinals)) < len(ordinals):
        raise ValueError(f"{name}: devices={list(ordinals)} names none, or one twice")
    for ordinal in ordinals:
        try:
            if ordinal < 0:  # those of devices that were described, as by `explain`
                raise BackendUnavailable(f"there is no CUDA device {ordinal}")
            module.current(ordinal)
        except BackendUnavailable as missing:
            raise BackendUnavailable(f"{name}: {missing}") from None
    return ordinals
