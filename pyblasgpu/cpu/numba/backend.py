"""The door to Numba for the processor's kernels: `cpu` is `intrinsics`, imported when a kernel is built."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from ...errors import BackendUnavailable

__all__ = ["cpu", "require"]


class _Lazy:
    """The module of intrinsics, which imports Numba at its first use."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # what Python looks up on any object
            raise AttributeError(name)
        return getattr(require(), name)


def require() -> Any:
    """The intrinsics.

    Raises
    ------
    BackendUnavailable
        Where Numba cannot be imported.
    """
    try:
        return import_module(".intrinsics", __package__)
    except ImportError as problem:
        raise BackendUnavailable(f"kernels for the processor cannot be built here: {problem}") from problem


cpu: Any = _Lazy()
