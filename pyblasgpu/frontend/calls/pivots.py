"""Integers that a caller passes, as pivots: of NumPy, or of the library of the other arrays."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np

from ...arguments import array_of_numbers
from ..arrays.any_array import dtype_name, host_array, library_of, numpy_dtype
from ..arrays.layouts import Layout, broadcasts_to
from ..arrays.libraries import Library
from ..arrays.streams import contexts
from .factor_call import FactorCall
from .factor_replay import integers_layout

__all__ = ["info_integers", "checked_pivots"]


def checked_pivots(call: FactorCall, piv: Any, rows: int, argument: str = "piv") -> Any:
    """Return `piv`, of shape (..., count), as `FactorCall.run_factor` takes it, for matrices of `rows` rows.

    `argument` is its name: "ipiv" counts rows from 1, with a sign. Pivots in host memory are checked, and
    copied to the arrays' device if they are on one. Those on a device are believed.

    Raises
    ------
    TypeError
        When they are no integers, or on a device neither int32 nor int64.
    ValueError
        When they are no rows, on another device, or a stack that does not fit.
    """
    pivots: Layout | np.ndarray
    if isinstance(piv, (list, tuple, int)) or library_of(piv, call.name, argument).host:
        array = _checked(call.name, _host_pivots(call.name, piv, argument), rows, argument)
        pivots = array if call.library.host else call.integers_on_device(array)
    else:
        pivots = _on_this_device(call, _layout(call, piv, argument), argument)
        _follow(call, library_of(piv))
    if not broadcasts_to(tuple(pivots.shape[:-2]), tuple(call.out.shape[:-2])):
        shape, others = tuple(pivots.shape[:-1]), tuple(call.out.shape)
        raise ValueError(
            f"{call.name}: {argument} has shape {shape}, and a stack of shape {others} is computed"
        )
    return pivots


def info_integers(call: FactorCall, info: Any) -> Any:
    """The info that a factorisation returned, shape (..., 1, 1), as `FactorCall.run_factor` takes it."""
    if call.library.host:
        return np.asarray(info, np.int32)[..., None, None]
    layout = _layout(call, info, "info")
    return layout._replace(shape=(*layout.shape, 1), strides=(*layout.strides, 1))


def _host_pivots(name: str, piv: Any, argument: str) -> np.ndarray:
    if isinstance(piv, (list, tuple, int)):
        piv = array_of_numbers(piv, name, argument)
    return np.atleast_1d(host_array(piv, name, argument))


def _checked(name: str, array: np.ndarray, rows: int, argument: str) -> np.ndarray:
    """Pivots of shape (..., count, 1), int32, all of them rows."""
    if array.dtype.kind not in "iub" and array.size:
        raise TypeError(f"{name}: {argument} has dtype {array.dtype}; integers are needed")
    numbers, first = (abs(array), 1) if argument == "ipiv" else (array, 0)
    if array.size and not (numbers.min() >= first and numbers.max() < rows + first):
        lowest, highest, last = array.min(), array.max(), rows - 1 + first
        raise ValueError(f"{name}: {argument} holds {lowest} ... {highest}; rows are {first} ... {last}")
    return array.astype(np.int32)[..., None]


def _layout(call: FactorCall, piv: Any, argument: str) -> Layout:
    """The layout of an array of integers on a device."""
    library = library_of(piv, call.name, argument)
    layout = None if call.library.host else integers_layout(library, piv, call.stream)
    if layout is None:
        stored = numpy_dtype(dtype_name(piv))
        where = "on a device" if call.library.host else f"of dtype {stored}"
        raise TypeError(f"{call.name}: {argument} is {where}; int32 or int64 where the arrays are is needed")
    return layout


def _on_this_device(call: FactorCall, layout: Layout, argument: str) -> Layout:
    if layout.device != call.out.device:
        here, there = call.out.device, layout.device
        raise ValueError(f"{call.name}: {argument} is on device {there}, and the arrays on device {here}")
    return layout


def _follow(call: FactorCall, library: Library) -> None:
    """Let the call's stream wait for what another library computes on its current one."""
    device = call.out.device
    if library is call.library or library.orders_streams:
        return
    if (stream := library.current_stream(device)) == call.stream:
        return
    with contexts().current_context(device):
        import_module("...gpu.events", __package__).record(stream).hold_back(call.stream)
