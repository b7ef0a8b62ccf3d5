"""The CUDA driver, initialised once; its errors as exceptions; and why a forked process cannot use it."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from ..errors import BackendUnavailable, PyblasgpuError, lacking

__all__ = ["DeviceError", "after_fork", "check", "load"]

FORKED = (
    "CUDA was initialised before this process was forked, and a forked process cannot use it; start the "
    "process by the method 'spawn', as multiprocessing.get_context('spawn') does"
)


class DeviceError(PyblasgpuError, RuntimeError):
    """A CUDA driver call failed; the message names the call and the driver's reason."""


class DriverState:
    """State of the driver: the module once it is initialised, else the reason for its failure."""

    driver: Any = None
    reason = ""


def load() -> Any:
    """The module cuda.bindings.driver, initialised.

    Raises
    ------
    BackendUnavailable
        Where there is no driver, or this process cannot use it; with the reason.
    """
    return DriverState.driver or _start()


def _start() -> Any:
    if not DriverState.reason:
        DriverState.driver, DriverState.reason = _initialised()
    if DriverState.reason:
        raise BackendUnavailable(DriverState.reason)
    return DriverState.driver


def _initialised() -> tuple[Any, str]:
    try:
        from cuda.bindings import driver

        (status,) = driver.cuInit(0)
    except ModuleNotFoundError as missing:
        return None, f"the CUDA driver does not load: {lacking(missing, 'cu13', 'cu12')}"
    except (ImportError, RuntimeError, OSError) as missing:  # no driver library
        return None, f"the CUDA driver does not load: {missing}"
    if status == driver.CUresult.CUDA_ERROR_NOT_INITIALIZED:
        return None, FORKED  # what it says in a process forked from one in which another library began
    if status != driver.CUresult.CUDA_SUCCESS:
        return None, f"the CUDA driver does not start: {status.name}"
    return driver, ""


def check(result, call: str):
    """The values of a cuda.bindings `result`, or the error in it as an exception."""
    error, *values = result
    if error:
        driver, name = load(), error.name
        text = driver.cuGetErrorString(error)[1]
        reason = text.decode() if isinstance(text, bytes) else text
        if error == driver.CUresult.CUDA_ERROR_OUT_OF_MEMORY:
            raise MemoryError(f"{call}: {reason}")
        raise DeviceError(f"{call}: {name}: {reason}")
    return values[0] if len(values) == 1 else values


def after_fork(forget: Callable[[], object]) -> None:
    """Have a process that is forked from this one call ``forget()`` first, where the system forks at all."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=forget)


def _note_fork() -> None:
    if DriverState.driver is not None:
        DriverState.driver, DriverState.reason = None, FORKED


after_fork(_note_fork)
