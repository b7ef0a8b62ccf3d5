"""Arrays as addresses and strides, of any number of dimensions: overlap, and batches of operands."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from math import prod
from typing import Any, NamedTuple

import numpy as np

from ...operands import Operand, span
from ...types import Dtype, Trans

__all__ = [
    "Layout",
    "MisalignedError",
    "UnevenStridesError",
    "are_clear",
    "batches",
    "broadcasts_to",
    "check_alignment",
    "element_strides",
    "is_column_major",
    "is_fortran_contiguous",
    "is_injective",
    "is_same",
    "reach",
    "shares_memory",
    "strides_by_rows",
]


class Layout(NamedTuple):
    """An array in device memory: leading dimensions count matrices, the last two are rows and columns.

    `strides` are in elements; `writable` says whether the array may be an output.
    """

    pointer: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: Dtype
    device: int
    conj: bool = False
    writable: bool = True
    owner: Any = None

    def op(self, trans: Trans) -> Layout:
        """The view that `trans` makes of each matrix."""
        if trans is Trans.NO:
            return self
        *batch_shape, rows, cols = self.shape
        *steps, row_stride, col_stride = self.strides
        conj = self.conj != (trans is Trans.CONJ and self.dtype.is_complex)
        return self._replace(
            shape=(*batch_shape, cols, rows), strides=(*steps, col_stride, row_stride), conj=conj
        )

    def operand(self) -> Operand:
        """The `Operand` of a single matrix."""
        pointer, (rows, cols), (row_stride, col_stride), dtype, device, conj, _, owner = self
        return Operand(pointer, rows, cols, row_stride, col_stride, dtype, conj, device=device, owner=owner)

    @property
    def __array_interface__(self) -> dict[str, Any]:
        # for NumPy's arithmetic on addresses (shares_memory); the memory behind them is never touched
        size = self.dtype.itemsize
        return {
            "version": 3,
            "shape": self.shape,
            "data": (self.pointer, True),
            "typestr": np.dtype(self.dtype.name).str,
            "strides": tuple(step * size for step in self.strides),
        }

    def span(self) -> tuple[int, int]:
        """First address and the one past the last byte of the array."""
        size = self.dtype.itemsize
        return span(self.pointer, self.shape, self.strides, size, size)


class MisalignedError(ValueError):
    """Elements are where no kernel reads them; the message goes on ``f"{routine}: {argument} "``."""


class UnevenStridesError(MisalignedError):
    """Strides are no multiples of an element: a copy has others."""


def element_strides(
    pointer: int, shape: Sequence[int], strides: Sequence[int], dtype: Dtype
) -> tuple[int, ...]:
    """Strides in elements of an array whose `strides` are in bytes.

    Raises
    ------
    UnevenStridesError
        When a stride that counts is no multiple of an element.
    MisalignedError
        See `check_alignment`.
    """
    size, bits = dtype.itemsize, pointer
    for step in strides:
        bits |= step
    if bits % size:
        check_alignment(pointer, shape, dtype)
        uneven = [step % size for step, extent in zip(strides, shape, strict=True) if extent > 1]
        if any(uneven) and 0 not in shape:
            raise UnevenStridesError(
                f"has strides {tuple(strides)} in bytes, no multiples of the {size} of a {dtype.name}"
            )
    return tuple([step // size for step in strides])


def check_alignment(pointer: int, shape: Sequence[int], dtype: Dtype) -> None:
    """Raise MisalignedError unless the array begins at a multiple of its real numbers, or has no elements."""
    if pointer % dtype.real_size and 0 not in shape:
        raise MisalignedError(f"is not aligned to its {dtype.real}")


def is_column_major(array: Layout | np.ndarray) -> bool:
    """Whether rows are closer together than columns; False for vectors, which are both."""
    row_step, col_step = array.strides[-2:]
    return 0 < abs(row_step) < abs(col_step) and min(array.shape[-2:]) > 1


def is_fortran_contiguous(array: Layout | np.ndarray) -> bool:
    """Whether the elements have no gaps, the first index running fastest."""
    if isinstance(array, np.ndarray):
        return array.flags.f_contiguous
    step = 1
    for extent, stride in zip(array.shape, array.strides, strict=True):
        if extent > 1 and stride != step:
            return False
        step *= extent
    return True


def is_injective(array: Layout | np.ndarray) -> bool:
    """Whether no two elements share an address, as far as the strides show.

    Sufficient, not necessary: every view that slicing and transposing make of an ordinary array passes.
    """
    if 0 in array.shape:
        return True  # NumPy gives arrays without elements any strides
    reach = array.itemsize - 1 if isinstance(array, np.ndarray) else 0
    for step, extent in sorted(zip(map(abs, array.strides), array.shape, strict=True)):
        if extent > 1:
            if step <= reach:
                return False
            reach += step * (extent - 1)
    return True


def is_same(x: Any, y: Any) -> bool:
    """Whether two layouts, or two NumPy arrays, are one array: same address, shape and strides."""
    if isinstance(x, Layout):
        return x[:5] == y[:5]
    return x is y or (x.shape, x.strides, x.ctypes.data) == (y.shape, y.strides, y.ctypes.data)


_WORK = 10_000  # steps of the exact search, as `numpy.shares_memory` counts them


def shares_memory(x: Layout | np.ndarray, y: Layout | np.ndarray) -> bool:
    """Whether an element of `x` shares memory with one of `y`; True also where the search grows too long."""
    if isinstance(x, Layout) and isinstance(y, Layout):
        (low, high), (other_low, other_high) = x.span(), y.span()
        if high <= other_low or other_high <= low or x.device != y.device:
            return False
    try:
        return np.shares_memory(x, y, max_work=_WORK)  # type: ignore[arg-type]
    except np.exceptions.TooHardError:
        return True


def reach(layout: Layout) -> tuple[int, int]:
    """First byte of the array and the one past the last, from its pointer on."""
    return layout._replace(pointer=0).span()


def are_clear(pointers: Sequence[int], reaches: Sequence[tuple[int, int]]) -> bool:
    """Whether no byte of the last array is between the first and the last of another."""
    start, stop = reaches[-1]
    start, stop = start + pointers[-1], stop + pointers[-1]
    for pointer, (low, high) in zip(pointers, reaches[:-1], strict=False):
        if pointer + low < stop and start < pointer + high:
            return False
    return True


def strides_by_rows(shape: Sequence[int]) -> tuple[int, ...]:
    """Strides in elements of a new row-major array of this shape."""
    return tuple([prod(shape[i + 1 :]) for i in range(len(shape))])


def broadcasts_to(shape: tuple[int, ...], target: tuple[int, ...]) -> bool:
    """Whether arrays of `shape` broadcast to `target` as it is."""
    try:
        return shape == target or np.broadcast_shapes(shape, target) == target
    except ValueError:
        return False


def batches(layouts: tuple[Layout, ...]) -> Iterator[tuple[Operand, ...]]:
    """The calls that compute a stack of matrices: for each, one `Operand` per layout.

    The leading dimensions of every layout broadcast to those of the last. One stride describes an operand's
    batch, so leading dimensions are joined where they can be; over those that remain, but the longest, it is
    looped.
    """
    batch_shape = layouts[-1].shape[:-2]
    if not batch_shape:
        yield tuple([layout.operand() for layout in layouts])
        return
    if 0 in batch_shape:
        return
    axes = sorted(_joined(batch_shape, [_broadcast_strides(layout, len(batch_shape)) for layout in layouts]))
    count, steps = axes.pop() if axes else (1, (0,) * len(layouts))
    for index in product(*(range(extent) for extent, _ in axes)):
        operands = []
        for which, (layout, step) in enumerate(zip(layouts, steps, strict=True)):
            start = sum(i * strides[which] for i, (_, strides) in zip(index, axes, strict=True))
            rows, cols = layout.shape[-2:]
            row_stride, col_stride = layout.strides[-2:]
            pointer = layout.pointer + start * layout.dtype.itemsize
            operand = Operand(
                pointer,
                rows,
                cols,
                row_stride,
                col_stride,
                layout.dtype,
                layout.conj,
                count,
                step,
                layout.device,
                layout.owner,
            )
            operands.append(operand)
        yield tuple(operands)


def _broadcast_strides(layout: Layout, dimensions: int) -> tuple[int, ...]:
    """Strides of the leading dimensions, 0 where the layout is broadcast."""
    leading = zip(layout.strides[:-2], layout.shape[:-2], strict=True)
    strides = tuple(step if extent > 1 else 0 for step, extent in leading)
    return (0,) * (dimensions - len(strides)) + strides


def _joined(
    batch_shape: tuple[int, ...], strides: list[tuple[int, ...]]
) -> list[tuple[int, tuple[int, ...]]]:
    """The leading dimensions as few (extent, strides of each layout), neighbours joined where all allow."""
    axes: list[tuple[int, tuple[int, ...]]] = []
    for extent, steps in zip(batch_shape, zip(*strides, strict=True), strict=True):
        if extent == 1:
            continue
        if axes and all(outer == inner * extent for outer, inner in zip(axes[-1][1], steps, strict=True)):
            axes[-1] = (axes[-1][0] * extent, steps)
        else:
            axes.append((extent, steps))
    return axes
