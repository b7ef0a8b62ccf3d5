"""Calls of Level 1 that write two vectors: SWAP, ROT and ROTM, checked and run."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from ...arguments import Array, Number, Stream, shown
from ...cpu.scipy import level1 as cpu_level1
from ...errors import OverlapError
from ...frontend.arrays.any_array import (
    common_dtype,
    common_library,
    dtype_name,
    may_share_memory,
    number,
    output_view,
    quick_library,
    stored_dtype,
)
from ...frontend.arrays.layouts import broadcasts_to, is_same
from ...frontend.arrays.streams import contexts
from ...frontend.calls.call import Call
from ...frontend.calls.call_cache import count, replay
from ...frontend.calls.lazy_routines import enqueue, routine_module
from ...frontend.calls.staging import run_staged_in_place
from ...types import DTYPES, Dtype, Trans
from ..array_views import views_of
from .host_pairs import host_pair
from .vector_calls import Parts, map_vectors

__all__ = ["pair_vectors"]


def pair_vectors(
    which: str,
    x: Array,
    y: Array,
    numbers: tuple[Number, ...],
    out: Any,
    stream: Stream,
    backend: str | None,
    name: str = "",
    dtype: Dtype | None = None,
    parts: Parts | None = None,
) -> tuple[Array, Array]:
    """Check and run SWAP, ROT or ROTM (`which`); see `vector_calls.map_vectors`.

    `numbers` are c and s of ROT, param of ROTM. `out` are the vectors that are written; those that are not
    the inputs become copies of them first.
    """
    name = name or which
    if type(x) is np.ndarray and stream is None and dtype is None and not parts:
        if (done := host_pair(which, x, y, numbers, out, backend)) is not None:
            return done
    elif _is_repeated(which, name, x, y, numbers, out, stream, backend, parts):
        return x, y
    common_library(name, ("x", "y"), (x, y))
    dtype = dtype or common_dtype(name, [dtype_name(x), dtype_name(y)], ("x", "y"))
    scalars, param = _scalars(which, name, numbers, dtype)
    if out is None:
        out = None, None
    elif not isinstance(out, (tuple, list)) or len(out) != 2:
        raise TypeError(f"{name}: out={shown(out)} is no pair of arrays")
    if out[0] is out[1] is None and (views := views_of(name, {"x": x, "y": y}, stream)) is not None:
        x, y = views.arrays
        rotated: tuple[Array, Array] = views.delivered(
            pair_vectors(which, x, y, numbers, None, stream, backend, name, dtype, parts)
        )
        return rotated
    if not (out[0] is x and out[1] is y) and not out[0] is out[1] is None:
        _check_outputs(name, x, y, out, dtype)
    targets = [
        array
        if target is array
        else map_vectors("copy", {each: array}, 1, target, stream, backend, None, name, dtype)
        for each, array, target in zip("xy", (x, y), out, strict=True)
    ]
    if scalars is not None:
        _run(which, name, targets, scalars, param, dtype, stream, backend, parts or {})
    return targets[0], targets[1]


def _check_outputs(name: str, x: Array, y: Array, out: Any, dtype: Dtype) -> None:
    """Raise for outputs that cannot be written, or share memory with another array, before one is written."""
    shapes = [np.shape(each if target is None else target) for each, target in zip((x, y), out, strict=True)]
    if shapes[0] != shapes[1]:
        raise ValueError(f"{name}: x has shape {shapes[0]} and y {shapes[1]}, which must be equal")
    for index, (own, other) in enumerate(((x, y), (y, x))):
        target, label = out[index], "xy"[index]
        if target is None or target is own:
            continue
        _check_writable(name, f"out[{index}]", target, dtype)
        if not broadcasts_to(np.shape(own), shapes[index]):
            raise ValueError(f"{name}: out has shape {shapes[index]}; {np.shape(own)} is needed")
        if may_share_memory(target, other):
            raise OverlapError(f"{name}: out[{index}] shares memory with {'yx'[index]}")
        view = output_view(own, dtype)
        if may_share_memory(target, own) and (view is None or not is_same(view, output_view(target, dtype))):
            raise OverlapError(f"{name}: out[{index}] shares memory with {label}")
    if out[0] is not None and out[1] is not None and may_share_memory(*out):
        raise OverlapError(f"{name}: out[0] shares memory with out[1]")


def _check_writable(name: str, argument: str, array: Array, dtype: Dtype) -> None:
    if output_view(array, dtype) is None:
        raise TypeError(
            f"{name}: {argument} has dtype {dtype_name(array)} or cannot be written; "
            f"a writable array of {dtype.name} is needed"
        )


def _is_repeated(
    which: str,
    name: str,
    x: Array,
    y: Array,
    numbers: tuple[Number, ...],
    out: Any,
    stream: Stream,
    backend: str | None,
    parts: Parts | None,
) -> bool:
    """Whether it is a call in place that is known, and was run."""
    if parts or not isinstance(out, tuple) or len(out) != 2 or out[0] is not x or out[1] is not y:
        return False
    library = quick_library(x)
    if library is None or library.host or count() == 0:
        return False
    dtype = stored_dtype(dtype_name(x))
    if dtype is None:
        return False
    scalars = _scalars(which, name, numbers, dtype)[0]
    if scalars is None:
        return False
    if replay((which,), (x,), y, *scalars, stream, backend, checks_numbers=False) is None:
        return False
    if library.counts_writes:
        library.written(x)  # y is the output of the call
    return True


def _scalars(
    which: str, name: str, numbers: tuple[Number, ...], dtype: Dtype
) -> tuple[tuple[complex, complex] | None, Any]:
    """The rows of the rotation as complex numbers, None where it changes nothing; and `param` of ROTM."""
    real = DTYPES["d" if dtype.real_size == 8 else "s"]
    if which == "swap":
        return (1, 0), None
    if which == "rot":
        c, s = (number(value, real, name, argument) for argument, value in zip("cs", numbers, strict=True))
        return (complex(c, s), complex(-s, c)), (c, s)
    if dtype.is_complex:
        raise TypeError(f"{name}: x and y are {dtype.name}, and the routine is for real vectors")
    param = np.asarray(numbers[0], real.name)
    if param.shape != (5,):
        raise ValueError(f"{name}: param has shape {param.shape}; the flag and four numbers are needed")
    flag, h11, h21, h12, h22 = map(float, param)
    if flag == -2:
        return None, param
    if flag == 0:
        h11 = h22 = 1.0
    elif flag > 0:
        h12, h21 = 1.0, -1.0
    return (complex(h11, h12), complex(h21, h22)), param


def _run(
    which: str,
    name: str,
    targets: list[Array],
    scalars: tuple[complex, complex],
    param: Any,
    dtype: Dtype,
    stream: Stream,
    backend: str | None,
    parts: Parts,
) -> None:
    """Run in place."""
    x, y = targets
    for argument, array in zip("xy", targets, strict=True):
        _check_writable(name, argument, array, dtype)
    if may_share_memory(x, y):
        raise OverlapError(f"{name}: x shares memory with y")
    call = Call(name, {"x": x}, y, stream, backend, dtype, {"x": parts.get("x"), "out": parts.get("y")})
    n = call.inputs[0].shape[-2]
    call.set_output(y, call.inputs[0].shape[:-2], n, 1)
    if call.out.shape != call.inputs[0].shape:
        raise ValueError(f"{name}: x has shape {tuple(x.shape)} and y {tuple(y.shape)}, which must be equal")

    def cpu(_: Any, one: np.ndarray, other: np.ndarray) -> None:
        if which == "swap":
            cpu_level1.swap(one, other)
        elif which == "rot":
            cpu_level1.rot(param[0], param[1], one, other)
        else:
            cpu_level1.rotm(param, one, other)

    def prepare(_: Any, operands: Any) -> Any:
        kernel = "swap" if which == "swap" else "rot"
        return routine_module("level1").launch_list(kernel, 1, *operands)

    for array in targets:
        call.library.written(array)
    if call.library.host and call.device is not None:
        with contexts().current_context(call.device):
            arrays = call.inputs[0], call.out
            run_staged_in_place(partial(enqueue, prepare), arrays, scalars, dtype, call.device, call.stream)
    else:
        call.run(cpu, prepare, ((call.inputs[0], Trans.NO),), scalars, call.out, (which,))
