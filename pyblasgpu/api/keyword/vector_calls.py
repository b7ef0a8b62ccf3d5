"""Calls of Level 1 that write one result, checked and run: for `level1`, and for `blas`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ...arguments import Array, Number, Stream, enabled
from ...cpu.scipy import level1 as cpu_level1
from ...frontend.arrays.any_array import stored_dtype
from ...frontend.arrays.vectors import NUMBER, Vector
from ...frontend.calls.call import Call
from ...frontend.calls.lazy_routines import routine_module
from ...routine_table import ROUTINES
from ...types import Dtype, Trans
from .repeated import replay

__all__ = ["Parts", "extents", "map_vectors", "reduce_vectors"]

#: Which elements of the arguments are meant.
Parts = Mapping[str, "Vector | None"]


def map_vectors(
    which: str,
    arrays: dict[str, Array],
    alpha: Number,
    out: Array,
    stream: Stream,
    backend: str | None,
    key: Any = None,
    name: str = "",
    dtype: Dtype | None = None,
    parts: Parts | None = None,
) -> Array:
    """Check and run SCAL, COPY or AXPY (`which`); `name` is for messages, `parts` as for `Call`."""
    vectors = {**dict.fromkeys((*arrays, "out")), **(parts or {})}
    call = Call(name or which, arrays, out, stream, backend, dtype, vectors)
    factor = call.scalar("alpha", alpha)
    batch_shape, n = extents(call)
    call.set_output(out, batch_shape, n, 1)
    in_place = call.check_overlap(in_place=len(arrays) - 1)
    if which == "copy" and in_place:
        return call.result
    *others, last = [(array, Trans.NO) for array in call.inputs]

    def cpu(scalars: Any, *arrays: Any) -> None:
        _on_cpu(which, scalars[0], *arrays)

    def prepare(scalars: Any, operands: Any) -> Any:
        return routine_module("level1").launch_list(which, scalars[0], *operands)

    if not in_place:
        return call.run(cpu, prepare, (*others, last), (factor,), key=key if which == "copy" else None)
    return call.run(cpu, prepare, tuple(others), (factor,), call.out, key)


def _on_cpu(which: str, alpha: Any, *arrays: Any) -> None:
    """Run a map on NumPy arrays, the last of which may be an input too."""
    *inputs, v = arrays
    if which != "axpy":
        cpu_level1.scal(alpha, inputs[0] if inputs else v, v)
        return
    if len(inputs) == 2:
        v[...] = inputs[1]
    if alpha != 0:
        cpu_level1.axpy(alpha, inputs[0], v)


def extents(call: Call) -> tuple[tuple[int, ...], int]:
    """Leading dimensions of the result, and the length of the vectors.

    Raises
    ------
    ValueError
        When the vectors differ.
    """
    first, last = call.inputs[0], call.inputs[-1]
    if first.shape[-2] != last.shape[-2]:
        raise ValueError(
            f"{call.name}: {call.names[0]} has {first.shape[-2]} elements and {call.names[-1]} "
            f"{last.shape[-2]}"
        )
    try:
        return tuple(np.broadcast_shapes(first.shape[:-2], last.shape[:-2])), first.shape[-2]
    except ValueError:
        raise ValueError(
            f"{call.name}: the leading dimensions of {call.names[0]} and {call.names[-1]}, "
            f"{first.shape[:-2]} and {last.shape[:-2]}, do not broadcast"
        ) from None


def _repeated(
    key: tuple[Any, ...],
    arrays: tuple[Array, ...],
    out: Array,
    stream: Stream,
    backend: str | None,
    dtype: Dtype | None,
) -> Array:
    """Return the result of a call that is kept, in `out` or a new number; None where none is kept.

    `dtype` is that of a routine of one alone.
    """
    if dtype is not None and stored_dtype(getattr(arrays[0], "dtype", None)) is not dtype:
        return None
    return replay(key, arrays, out, 1, 0, stream, backend)


def reduce_vectors(
    which: str,
    arrays: dict[str, Array],
    conj: Any,
    out: Array,
    stream: Stream,
    backend: str | None,
    name: str = "",
    dtype: Dtype | None = None,
    parts: Parts | None = None,
) -> Any:
    """Check and run DOT, NRM2, ASUM or I?AMAX (`which`); see `map_vectors`."""
    key = (which, conj, type(conj))  # 1.0 is no flag, but equals one
    repeated_result = (
        _repeated(key, tuple(arrays.values()), out, stream, backend, dtype) if not parts else None
    )
    if repeated_result is not None:
        return repeated_result
    vectors = {**dict.fromkeys(arrays), **(parts or {}), "out": NUMBER}
    call = Call(name or which, arrays, out, stream, backend, dtype, vectors)
    conj = enabled(conj, call.name, "conj") and call.dtype.is_complex
    batch_shape, n = extents(call)
    call.out_dtype = ROUTINES[which].result_dtype(call.dtype)
    if which == "iamax" and n == 0 and not parts:
        raise ValueError(f"{call.name}: x has no elements, of which none is the largest")
    call.set_output(out, batch_shape, 1, 1)
    call.check_overlap()

    def cpu(_: Any, *arrays: Any) -> None:
        cpu_level1.reduce(which, conj, *arrays)

    def prepare(_: Any, operands: Any) -> Any:
        return routine_module("level1").reduce_launch_list(which, conj, *operands)

    inputs = tuple((array, Trans.NO) for array in call.inputs)
    result = call.run(cpu, prepare, inputs, (1,), key=key)
    return result[()] if isinstance(result, np.ndarray) and out is None else result
