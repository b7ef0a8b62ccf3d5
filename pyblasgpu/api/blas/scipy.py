"""SciPy's own functions for NumPy vectors that need no cast: our checks take many times as long."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np

from ...cpu.scipy.level3 import scipys_blas

__all__ = ["NOT_SCIPYS", "by_scipy"]

#: Result of `by_scipy` where SciPy does not serve the call.
NOT_SCIPYS = object()

_ON_CPU = (None, "", "auto", "cpu")
_INTEGER, _REAL, _COMPLEX = (int,), (int, float), (int, float, complex)


def by_scipy(function: Callable[..., Any], values: dict[str, Any], written: str, factor: str) -> Any:
    """Return the result of SciPy's function of this name for NumPy vectors of its dtype; else `NOT_SCIPYS`.

    Parameters
    ----------
    function : callable
        The function of this package.
    values : dict
        The arguments: x, maybe y, the factor and integers.
    written : str
        The arrays that may be written, a letter each.
    factor : str
        The argument that is a number, complex only of complex routines; '' for none.
    """
    dtype = vars(function)["dtype"]
    if os.environ.get("PYBLASGPU_BACKEND") not in _ON_CPU:
        return NOT_SCIPYS
    for argument, array in ((name, values[name]) for name in "xy" if name in values):
        if type(array) is not np.ndarray or array.dtype is not dtype or array.ndim != 1:
            return NOT_SCIPYS
        if argument in written and not array.flags.writeable:
            return NOT_SCIPYS
    is_pair = "y" in values
    if written and is_pair and np.may_share_memory(values["x"], values["y"]):
        return NOT_SCIPYS
    values = {argument: value for argument, value in values.items() if value is not None}
    for argument, value in values.items():
        kinds = _INTEGER if argument != factor else _COMPLEX if dtype.kind == "c" else _REAL
        if argument not in "xy" and type(value) not in kinds:
            return NOT_SCIPYS
    if not is_pair and values.get("incx", 1) < 0:
        return NOT_SCIPYS
    try:
        return scipys_blas(function.__name__)(**values)
    except Exception:  # what SciPy refuses our checks refuse too, in words that name the argument
        return NOT_SCIPYS
