"""The backend of host arrays, and why it is that one."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from contextlib import AbstractContextManager
from contextvars import ContextVar
from functools import cache
from importlib import import_module
from typing import Any, NamedTuple

from ..arguments import shown
from ..errors import BackendUnavailable
from ..gpu.driver import after_fork
from .arrays.streams import contexts

__all__ = [
    "BACKENDS",
    "ON_PROCESSOR",
    "BackendStatus",
    "backend_status",
    "is_auto",
    "named_backend",
    "preferred",
    "preferred_backend",
    "status_in",
    "why_no_device",
]

BACKENDS = ("auto", "cuda", "cpu", "sim", "numba")
#: Backends that compute in host memory.
ON_PROCESSOR = ("cpu", "numba")

#: The backend where neither the call nor the environment names one.
preferred: ContextVar[str | None] = ContextVar("preferred_backend", default=None)

#: The mapping within `os.environ`, whose own look-up takes longer than a small call.
_environment: Mapping[Any, Any] = getattr(os.environ, "_data", os.environ)
_VARIABLE = getattr(os.environ, "encodekey", str)("PYBLASGPU_BACKEND")

_log = logging.getLogger("pyblasgpu")


class BackendStatus(NamedTuple):
    """The backend that serves host arrays, and why it is that one.

    Parameters
    ----------
    backend : str
        'cuda', 'cpu', 'sim' or 'numba'.
    reason : str
        The reason in words.

    See Also
    --------
    backend_status : Returns it.

    Examples
    --------
    >>> import pyblasgpu
    >>> pyblasgpu.backend_status("cpu").backend
    'cpu'
    """

    backend: str
    reason: str


def backend_status(backend: str | None = None) -> BackendStatus:
    """Return the backend on which a call with host arrays runs.

    Parameters
    ----------
    backend : {'auto', 'cuda', 'cpu', 'sim', 'numba'}, optional
        The backend that the call names. By default the environment variable ``PYBLASGPU_BACKEND``, and
        without it 'auto'. That is the GPU where there is one: that of the calling thread's current context,
        without a context device 0; else SciPy's BLAS. 'sim' runs the kernels in Numba's simulator, slowly, in
        a process started with ``NUMBA_ENABLE_CUDASIM=1``. 'numba' runs GEMM, TRMM and TRSM on the CPU by
        kernels that Numba compiles, and the rest on SciPy's BLAS.

    Returns
    -------
    BackendStatus
        The backend ('cuda', 'cpu', 'sim' or 'numba') and the reason in words.

    Raises
    ------
    BackendUnavailable
        When 'cuda', 'sim' or 'numba' is named and cannot run here.
    ValueError
        When the name is none of the five.

    See Also
    --------
    show_config : Versions, devices and files too.

    Examples
    --------
    >>> import pyblasgpu
    >>> pyblasgpu.backend_status("cpu")
    BackendStatus(backend='cpu', reason='named by the call')
    """
    return status_in(backend, "backend_status")


def status_in(backend: str | None, routine: str) -> BackendStatus:
    """The status in a call of `routine`, which errors of the name begin with."""
    name, origin = backend, "named by the call"
    if name is None:
        name, origin = preferred.get(), "named around the call"
    if name is None:
        name, origin = named_backend() or "auto", "set by PYBLASGPU_BACKEND"
    if not isinstance(name, str) or name not in BACKENDS:
        known = ", ".join(BACKENDS)
        raise ValueError(f"{routine}: backend={shown(name)} ({origin}) is none of {known}")
    if name == "cpu":
        return BackendStatus("cpu", origin)
    if name == "numba":
        import_module("..cpu.numba.backend", __package__).require()
        return BackendStatus("numba", origin)
    if name == "sim":
        kernels = import_module("..gpu.backend", __package__)
        kernels.require()
        if not kernels.SIMULATED:
            raise BackendUnavailable("backend 'sim' needs a Python started with NUMBA_ENABLE_CUDASIM=1")
        return BackendStatus("sim", origin)
    missing = why_no_device(contexts().current_device())
    if name == "cuda" and missing:
        raise BackendUnavailable(f"backend 'cuda' ({origin}) cannot run here: {missing}")
    return BackendStatus("cpu", missing) if missing else BackendStatus("cuda", "a device is there")


def is_auto(backend: str | None) -> bool:
    """Whether neither the call nor its context names a backend."""
    return (backend or named_backend() or "auto") == "auto"


def named_backend() -> str | None:
    """Return the backend that is named around the call or by ``PYBLASGPU_BACKEND``, if any."""
    name = preferred.get() or _environment.get(_VARIABLE)
    return name if name is None or type(name) is str else os.fsdecode(name)


def preferred_backend(name: str) -> AbstractContextManager[None]:
    """Let calls in this context that name no backend run on this one."""
    return _Preferred(name)


class _Preferred(AbstractContextManager[None]):
    """The context of `preferred_backend`; one that a generator makes takes as long as a small call."""

    __slots__ = "_name", "_token"

    def __init__(self, name: str) -> None:
        self._name = name

    def __enter__(self) -> None:
        self._token = preferred.set(self._name)

    def __exit__(self, *_: object) -> None:
        preferred.reset(self._token)


@cache
def why_no_device(ordinal: int) -> str:
    """Why no kernel can run on this device; empty when one can. Logged once, as the cache sees to."""
    try:
        device = import_module("..gpu.device", __package__).current(ordinal)
        kernels = import_module("..gpu.backend", __package__)
        if not import_module("..gpu.build.compile", __package__).kernels_at_hand(device.cc):
            kernels.require()  # it imports Numba
        reason = "this process runs Numba's simulator" if kernels.SIMULATED else ""
    except (BackendUnavailable, ImportError) as missing:
        reason = str(missing)
    if reason:
        _log.info("NumPy arrays are computed by SciPy's BLAS on the CPU: %s", reason)
    return reason


after_fork(why_no_device.cache_clear)
