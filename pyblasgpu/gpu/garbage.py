"""Python's collector of cycles, where it is in the way."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["uncollected"]


@contextmanager
def uncollected() -> Iterator[None]:
    """No garbage collection in a block, or in a function that this decorates.

    What makes many objects that live as long as it does spends much of its time on looking for others.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
