"""Calls of factorizations, which work on an array in place and return integers with it (info, pivots)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np

from ...types import INT32
from ..arrays.any_array import quick_library
from ..arrays.layouts import Layout, strides_by_rows
from ..arrays.libraries import integers_of_library
from ..arrays.streams import contexts
from ..engine_options import EngineOptions
from ..handle import watched
from .call import Call, on_device
from .engine_call import options_by_tiles
from .factor_replay import (
    ONE,
    Factors,
    Step,
    keep_factor,
    plan_numbers,
    steps,
)
from .lazy_routines import enqueue
from .staging import run_staged
from .tiled_call import run_by_tiles
from .tiled_routines import TiledRoutine

__all__ = ["FactorCall", "plain_integers"]


class FactorCall(Call):
    """One call of a routine of LAPACK's: its arrays described and checked, then run."""

    __slots__ = ()

    @on_device
    def run_factor(
        self,
        cpu: Callable[..., Any],
        prepare: Callable[..., Any],
        inputs: tuple[Any, ...],
        source: Any,
        counts: tuple[int, ...] = (ONE,),
        input_integers: tuple[Any, ...] = (),
        tiled: Callable[[], TiledRoutine | None] | None = None,
        key: tuple[Any, ...] | None = None,
        without_columns: bool = False,
        routine: str = "",
        by_columns: bool = False,
        from_source: Callable[..., Any] | None = None,
    ) -> tuple[Any, ...]:
        """Run the routine; return the caller's array and the integers.

        Parameters
        ----------
        cpu : callable
            ``cpu(*integers, *arrays, out)`` computes with NumPy arrays; integers are int32 arrays of shape
            (..., count, 1), which it fills, and then `input_integers`.
        prepare : callable
            ``prepare((1,), operands)`` gives the launch list for `Operand` views: the integers, int32, one a
            matrix or a column of them; the inputs, transpositions applied; the output.
        inputs : tuple of (array, Trans)
            Inputs that are read, of `Call.inputs`.
        source : array
            The start of the output; the output itself if it is updated in place.
        counts : tuple of int
            How many integers a matrix has of each kind, or `ONE`; `Factors` for numbers of the dtype.
        input_integers : tuple of array
            Integers that are read, of shape (..., count, 1), as `pivots.checked_pivots` has them; they go
            between the integers that are computed and the inputs.
        tiled : callable, optional
            Gives the routine by tiles, which run where a host matrix does not fit into the card, and on
            several cards; None where nothing is to be computed.
        key : tuple, optional
            Under which `replay_factor` may find the call.
        without_columns : bool, default False
            Whether the routine finds integers of an output without columns too.
        routine : str, optional
            A factorization, whose host matrices are streamed where the policy says so.
        by_columns : bool, default False
            Whether a device computes the output of host arrays by columns, whatever its own order.
        from_source : callable, optional
            `prepare` where a new output of device arrays does not begin as a copy. The operand before the
            output is the source, which it reads.

        Returns
        -------
        tuple
            The output, then integers, see `left`.
        """
        arrays = [array for array, _ in inputs]
        options = None if tiled is None else options_by_tiles(self, arrays, routine)
        if tiled is not None and options is not None:
            info = self._run_by_tiles(options, tiled(), arrays, source)
            return self.delivered(), *self.integers_of([info] * len(counts), counts)
        if 0 in (self.out.shape[:-1] if without_columns else self.out.shape):
            batch_shape = self.out.shape[:-2]
            shapes = [(*batch_shape, abs(count), 1) for count in counts]
            zeros = [
                plain_integers(np.zeros(shape, self._dtype_of(count)), count)
                for shape, count in zip(shapes, counts, strict=True)
            ]
            return self.delivered(), *self.integers_of(zeros, counts)
        if self.library.host:
            self.note_write()
            results = self._run_host(cpu, prepare, inputs, source, counts, input_integers, by_columns)
            plain = [plain_integers(array, count) for array, count in zip(results, counts, strict=True)]
            numbers = self.left(plain)
        else:
            reads = from_source is not None and source is not self.out
            prepare = from_source if from_source is not None and reads else prepare
            numbers = self.run_on_arrays(prepare, inputs, source, counts, input_integers, key, reads)
        return self.delivered(), *numbers

    def _run_by_tiles(
        self, options: EngineOptions, tiled: TiledRoutine | None, arrays: list[Any], source: Any
    ) -> int:
        """Run a routine by tiles, or none; its info."""
        if tiled is not None:
            with watched(self.name, options.progress) as report:
                return run_by_tiles(self, options, tiled, arrays, (), source, report=report)
        self.start_from(source)
        return 0

    def integers_of(self, values: list[Any], counts: tuple[int, ...]) -> list[Any]:
        """Numbers that are known, as arrays of the caller's library; see `left`."""
        if self.library.host:
            return self.left(values)
        device, stream = self.out.device, self.stream
        plan = plan_numbers(self.out.shape[:-2], counts, self.dtype)
        arrays = plan.new(self.library, device, stream)
        memory = import_module("...gpu.memory", __package__)
        with contexts().current_context(device):
            for layout, numbers in zip(
                plan.layouts(self.library, arrays, device, stream), values, strict=True
            ):
                elements = np.ascontiguousarray(numbers, layout.dtype.name)
                if elements.size:
                    memory.to_device(layout.pointer, elements, stream)
        return self.left(arrays)

    def left(self, numbers: list[Any]) -> list[Any]:
        """Return numbers that a routine left as arrays of the caller's library; NumPy's info is an int."""
        library = self.library
        if library.host:
            return [integers_of_library(library, each, self.arrays[0]) for each in numbers]
        library.hold(numbers, self.stream)
        return [library.deliver(each, self.arrays[0], self.stream) for each in numbers]

    def _dtype_of(self, count: int) -> str:
        """The dtype of numbers that the routine leaves in host memory."""
        if not isinstance(count, Factors):
            return "int32"
        return (count.dtype or self.dtype).name

    def run_on_arrays(
        self,
        prepare: Callable[..., Any],
        inputs: tuple[Any, ...],
        source: Layout,
        counts: tuple[int, ...],
        input_integers: tuple[Any, ...],
        key: tuple[Any, ...] | None,
        reads_source: bool = False,
    ) -> list[Any]:
        """Enqueue the routine on device arrays; the integers that it leaves.

        `reads_source`: see `Call.run`; the output is new then.
        """
        self.note_write()
        out, stream = self.out, self.stream
        plan = plan_numbers(out.shape[:-2], counts, self.dtype)
        numbers = plan.new(self.library, out.device, stream)
        layouts = plan.layouts(self.library, numbers, out.device, stream)
        operands = (*layouts, *input_integers, *(layout.op(trans) for layout, trans in inputs), out)
        kept = None
        if key is not None and 0 not in out.shape:
            call = key, self.arrays, input_integers, operands, source, prepare, plan
            kept = keep_factor(*call, reads_source=reads_source)
        recorded, step = steps.get(), None
        whole = operands if source is out else (*operands[:-1], source, out)
        if kept is None:
            self._enqueue(prepare, (1,), (), operands, source, None, reads_source)
        else:
            addresses = [layout.pointer for layout in whole]
            kept.call.run_checked(addresses, 1, 0, stream)
            step = Step(kept, addresses, (whole, self.result))
        if recorded is not None:
            recorded.append(step)
        self._hold([layout.owner for layout in input_integers if layout.owner is not None])
        return self.left(numbers)

    def _hold(self, integers: list[Any]) -> None:
        """Keep integers alive that are read: another library would use their memory again too soon."""
        hold, library = self.library.hold, self.library
        if any(quick_library(getattr(each, "exporting_obj", each)) is not library for each in integers):
            hold = import_module("..arrays.keep_alive", __package__).hold
        hold(integers, self.stream)

    @on_device
    def integers_on_device(self, array: np.ndarray) -> Layout:
        """A copy of int32 integers on the device of the call."""
        dense, library = np.ascontiguousarray(array, np.int32), self.library
        memory = library.empty(dense.shape, INT32, self.out.device, self.stream)
        layout = library.layout(memory, INT32, self.stream)
        if dense.size:
            import_module("...gpu.memory", __package__).to_device(layout.pointer, dense, self.stream)
        return layout._replace(shape=dense.shape, strides=strides_by_rows(dense.shape))

    def _run_host(
        self,
        cpu: Callable[..., Any],
        prepare: Callable[..., Any],
        inputs: tuple[Any, ...],
        source: Any,
        counts: tuple[int, ...],
        input_integers: tuple[np.ndarray, ...],
        by_columns: bool,
    ) -> list[np.ndarray]:
        """Compute host arrays, here or on a device; the integers as arrays of shape (..., count, 1)."""
        out = self.out
        integers = [np.zeros((*out.shape[:-2], abs(count), 1), self._dtype_of(count)) for count in counts]
        if self.device is None:
            self.start_from(source)
            cpu(*integers, *input_integers, *[array for array, _ in inputs], out)
            return integers
        cuda = partial(enqueue, prepare)
        run_staged(
            cuda,
            inputs,
            (1,),
            out,
            source,
            (self.dtype, self.dtype),
            self.device,
            self.stream,
            integers=tuple(integers),
            input_integers=input_integers,
            by_columns=by_columns,
        )
        return integers


def plain_integers(array: np.ndarray, count: int) -> Any:
    """Integers of shape (..., count, 1) as callers get them."""
    if count != ONE:
        return np.ascontiguousarray(array[..., 0])
    return int(array[0, 0]) if array.ndim == 2 else np.ascontiguousarray(array[..., 0, 0])
