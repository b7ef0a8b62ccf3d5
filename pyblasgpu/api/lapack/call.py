"""Arguments and calls of the functions of `lapack`: arrays as SciPy's wrappers take them, and stacks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from ...arguments import Array, Flag, enabled
from ...frontend.arrays.any_array import can_be_output, common_library, library_of, may_share_memory
from ...frontend.arrays.layouts import is_column_major
from ...frontend.calls.factor_call import FactorCall
from ...frontend.calls.lazy_routines import routine_module
from ...frontend.calls.pivots import info_integers
from ...frontend.calls.tiled_routines import TiledRoutine
from ...routine import Routine
from ...routine_table import ROUTINES
from ...types import DTYPES, Dtype, Trans
from ..blas.arrays import checked_array, common_dtype_of, may_overwrite, two_dimensional
from ..blas.functions import Maker, finished
from ..docstrings import Shared
from ..keyword.level3 import common_batch_shape
from .docs import LAPACK

__all__ = [
    "AfterOverwriting",
    "as_stack",
    "check_beside",
    "check_rows",
    "check_system",
    "dressed",
    "factor_call",
    "from_source",
    "order_of",
    "run_by_row",
    "without_rows",
]

SMALL = 32  # rows and columns of small matrices


class AfterOverwriting:
    """A part of a call in which an argument is overwritten, or later: its exceptions have `overwritten` set.

    Where the same would be computed elsewhere from the arguments, this says that they are gone.

    Parameters
    ----------
    happened : bool
        Whether an argument is overwritten at all.
    """

    __slots__ = ("happened",)

    def __init__(self, happened: bool) -> None:
        self.happened = happened

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if error is not None and self.happened:
            error.overwritten = True  # type: ignore[attr-defined]


def as_stack(name: str, argument: str, array: Array, dtype: Dtype | None) -> Array:
    """`array` as a matrix or a stack of them; a vector is one column, a number one element."""
    array = checked_array(name, argument, array, dtype)
    return array if len(array.shape) > 2 else two_dimensional(name, argument, array)


def order_of(name: str, argument: str, array: Array) -> int:
    """The order of a square matrix, or of those of a stack."""
    shape = tuple(array.shape)
    if shape[-1] != shape[-2]:
        raise ValueError(f"{name}: {argument} has shape {shape}; a square matrix, or a stack, is needed")
    return int(shape[-1])


def check_rows(name: str, argument: str, order: int, b: Array) -> None:
    """Raise ValueError unless `b` has as many rows as the matrix is of order."""
    if b.shape[-2] != order:
        raise ValueError(f"{name}: {argument} is of order {order} and b has shape {tuple(b.shape)}")


def check_system(name: str, a: Array, b: Array, overwrite_a: Flag, overwrite_b: Flag) -> bool:
    """Whether the factors of `a` may be written over it, where the caller allows that.

    `b` is read after them, and must not share their memory. Raises first what the solution would raise then.
    """
    check_rows(name, "a", order_of(name, "a", a), b)
    return check_beside(name, a, b, overwrite_a, overwrite_b)


def check_beside(name: str, a: Array, b: Array, overwrite_a: Flag, overwrite_b: Flag) -> bool:
    """Do as `check_system` of matrices whose shapes fit."""
    library = common_library(name, ("a", "b"), (a, b))
    if not library.host and (here := library.device(a)) != (there := library.device(b)):
        raise ValueError(f"{name}: a is on device {here} and b on device {there}")
    common_batch_shape(name, a, b)
    enabled(overwrite_b, name, "overwrite_b")
    return enabled(overwrite_a, name, "overwrite_a") and not may_share_memory(a, b)


def factor_call(
    name: str,
    dtype: Dtype | None,
    inputs: dict[str, Array],
    argument: str,
    array: Array,
    overwrite: Flag,
) -> tuple[FactorCall, Any]:
    """Return the call of a routine that works on `array` in place and reads `inputs`, and the source of its
    output.

    The output is `array` if it may be overwritten, else new and column-major; but small matrices of a stack
    on a device keep the order of those of `array`, so that they are copied without a transpose. `as_stack`
    has checked all arrays.
    """
    wanted = dtype or common_dtype_of(name, (*inputs.values(), array))
    allowed = enabled(overwrite, name, f"overwrite_{argument}")
    stacked = {**inputs, argument: array}
    call = FactorCall(name, stacked, None, None, None, wanted)
    batch_shape: tuple[int, ...] = tuple(array.shape[:-2])
    for other in inputs.values():
        batch_shape = np.broadcast_shapes(batch_shape, common_batch_shape(name, other, array))
    out = array if allowed and _may_overwrite(array, batch_shape, wanted, inputs) else None
    rows, cols = array.shape[-2:]
    call.set_output(out, batch_shape, rows, cols, column_major=not _lies_as_it_is(call, batch_shape))
    in_place = call.check_overlap(in_place=len(inputs))
    return call, call.out if in_place else call.inputs[-1]


def _lies_as_it_is(call: FactorCall, batch_shape: tuple[int, ...]) -> bool:
    """Whether a new output is by rows, as the array that it is made from."""
    array = call.inputs[-1]
    is_small = max(array.shape[-2:]) <= SMALL and len(batch_shape) > 0
    return is_small and not call.library.host and not is_column_major(array)


def _may_overwrite(
    array: Array, batch_shape: tuple[int, ...], dtype: Dtype, inputs: dict[str, Array]
) -> bool:
    """Whether the result goes into `array`: of host arrays where SciPy's would, of device arrays wherever it
    can be written.
    """
    if tuple(array.shape[:-2]) != batch_shape:
        return False
    if library_of(array).host and len(array.shape) == 2:
        return may_overwrite(array, dtype, inputs.values())
    return can_be_output(array, dtype) and not any(may_share_memory(each, array) for each in inputs.values())


def run_by_row(
    call: FactorCall,
    stem: str,
    flags: Mapping[str, Any],
    source: Any,
    inputs: tuple[Any, ...] = (),
    *,
    info: Any = None,
    extents: tuple[int, ...] = (),
    names: tuple[str, ...] = (),
    **options: Any,
) -> tuple[Any, ...]:
    """Run a routine; return the caller's array and the integers.

    Parameters
    ----------
    call : FactorCall
        With its output set.
    stem : str
        The routine, of `routine_table`.
    flags : mapping
        Its flags and switches by the names of its row.
    source : array
        The start of the output.
    inputs : tuple of array
        Inputs that are read, of `Call.inputs`.
    info : int or array of int32, optional
        The output stays as it is where this is not 0.
    extents, names : tuple
        See `TiledRoutine`; of a routine that may run by tiles.
    **options
        See `FactorCall.run_factor`.
    """
    routine = ROUTINES[stem]
    cpu: Callable[..., None] = partial(routine.on_arrays(flags, call.dtype), ())
    launches = routine.on_operands(flags, call.dtype)
    if info is not None:
        options["input_integers"] = info_integers(call, info), *options.get("input_integers", ())
        cpu, launches = _solved_where(cpu), _unless_failed(routine, flags, call.dtype)
    ops = (flags.get(matrix.op, Trans.NO) for matrix in routine.inputs)
    if routine.tasks:
        tiles = partial(TiledRoutine.of, routine, extents, flags, call.dtype, names)
        options |= {"tiled": lambda: None if info else tiles(), "routine": stem}
    return call.run_factor(cpu, launches, tuple(zip(inputs, ops, strict=False)), source, **options)


def from_source(stem: str, **flags: Any) -> Callable[[tuple[Any, ...], Any], Any]:
    """Return the launch list of a routine whose new output does not begin as a copy, see `run_factor`."""
    return lambda scalars, operands: routine_module(f"lapack.{stem}").new_launch_list(*operands, **flags)


def _solved_where(cpu: Callable[..., None]) -> Callable[..., None]:
    """``run(info, *arrays)``: what ``cpu(*arrays)`` computes in the last array, where info is 0."""

    def run(info: np.ndarray[Any, Any], *arrays: np.ndarray[Any, Any]) -> None:
        out = arrays[-1]
        bad = np.broadcast_to(info[..., 0, 0] != 0, out.shape[:-2])
        before = out[bad].copy()
        cpu(*arrays)
        out[bad] = before

    return run


def _unless_failed(
    routine: Routine, flags: Mapping[str, Any], dtype: Dtype
) -> Callable[[tuple[Any, ...], Any], Any]:
    """Return the launch list of a solution for matrices whose info, the first operand, is 0."""
    given = routine.view_flags(flags, dtype)
    return lambda scalars, operands: getattr(routine_module("lapack.unless"), f"{routine.stem}_launch_list")(
        *operands, **given
    )


def dressed(
    function: Any, stem: str, name: str, dtype: Dtype | None, shared: Shared = LAPACK
) -> Callable[..., Any]:
    """Return `function` as users find it, with its docstring completed by `shared`."""
    # info and pivots have 32 bits
    return finished(function, stem, name, dtype, shared, "lapack", "int32")


def without_rows(makers: Mapping[str, Maker]) -> dict[str, Callable[..., Any]]:
    """Return functions of routines that have no row, by stem and by letter and stem."""
    named = {letter + stem: (stem, dtype) for stem in makers for letter, dtype in DTYPES.items()}
    every = {**{stem: (stem, None) for stem in makers}, **named}
    return {name: makers[stem](stem, name, dtype) for name, (stem, dtype) in every.items()}
