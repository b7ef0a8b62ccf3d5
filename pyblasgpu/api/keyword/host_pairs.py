"""SWAP and ROT of NumPy vectors, by SciPy's functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np

from ...routine_table import ROUTINES
from .repeated import CONTIGUOUS, HostCall

__all__ = ["host_pair"]


def host_pair(
    which: str, x: Any, y: Any, numbers: tuple[Any, ...], out: Any, backend: str | None
) -> tuple[Any, Any] | None:
    """Exchange or rotate NumPy vectors by SciPy's function, in place or in new ones; None as of `replay`."""
    if which == "swap":
        numbers = ()
    elif which != "rot" or x.dtype.kind != "f":
        return None
    if out is None:
        options = {}
    elif type(out) is tuple and len(out) == 2 and out[0] is x and out[1] is y:
        options = {} if which == "swap" else {"overwrite_x": 1, "overwrite_y": 1}
    else:
        return None
    if type(y) is not np.ndarray or x.ndim != 1 or x.shape != y.shape:
        return None
    if not x.flags.num & y.flags.num & CONTIGUOUS:
        return None
    attempts = _attempts(which).get(x.dtype)
    if attempts is None or attempts[0] is None:
        return None
    done: tuple[Any, Any] | None = attempts[0].run((x, y, *numbers), options, backend)
    return done


@cache
def _attempts(which: str) -> Mapping[Any, Sequence[Any]]:
    """The calls of SWAP or ROT that SciPy's functions may serve, by dtype."""
    return HostCall(ROUTINES[which]).attempts
