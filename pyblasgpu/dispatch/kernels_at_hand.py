"""Have the kernels of a call compiled before one after the other is loaded."""

from __future__ import annotations

from collections.abc import Sequence

from ..gpu import backend, device
from ..gpu.compile import KernelSource, kept

__all__ = ["ensure_compiled"]


def ensure_compiled(sources: Sequence[KernelSource], ordinal: int) -> None:
    """Compile what of `sources` is kept nowhere for the device `ordinal`, on several cores."""
    if backend.SIMULATED:
        return
    cc = device.current(ordinal).cc
    if any(kept(source, cc) is None for source in sources):
        from .compile_ahead import compile_missing

        compile_missing(sources, cc)
