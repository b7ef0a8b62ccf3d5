"""Addresses of matrices of unequal sizes: whether elements of one, or two matrices, coincide."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .matrices import Matrices

__all__ = ["Spans", "are_apart", "are_clear", "are_injective", "spans"]


def are_injective(matrices: Matrices) -> bool:
    """Whether no two elements of a matrix share an address, as far as strides show."""
    steps = np.abs(np.where(matrices.shapes > 1, matrices.strides, 1))
    reaches = steps * (matrices.shapes - 1)
    small = steps.argmin(axis=1)
    rows = np.arange(len(small))
    near, far, reach = steps[rows, small], steps[rows, 1 - small], reaches[rows, small]
    apart = (near > 0) & ((far > reach) | (matrices.shapes <= 1).any(axis=1))
    return bool((apart | (matrices.shapes == 0).any(axis=1)).all())


def are_clear(outputs: Matrices, others: Sequence[Matrices], itemsize: int) -> bool:
    """Whether the bytes between the first and the last of an output are in no other matrix; also of blocks of
    one array, whose spans meet and whose rows or columns do not.
    """
    first, *rest = [spans(matrices, itemsize) for matrices in (outputs, *others)]
    if all(are_apart(first, other) for other in rest or [first]):
        return True
    low, high = first
    whole = np.array([low.min()]), np.array([high.max()])
    return _are_blocks(outputs, itemsize) and all(are_apart(whole, other) for other in rest)


def _are_blocks(matrices: Matrices, itemsize: int) -> bool:
    """Whether matrices are blocks of one array, of which none meets another, in a grid or in strips."""
    some = matrices.take((matrices.shapes > 0).all(axis=1))
    along, rows = np.abs(some.strides).argmin(axis=1), np.arange(len(some.rows))
    pitch, width = some.strides[rows, 1 - along], some.shapes[rows, along]
    distance, parts = np.divmod(some.pointers - some.pointers.min(), itemsize)
    if (some.strides[rows, along] != 1).any() or parts.any() or (pitch != pitch[0]).any() or pitch[0] < 1:
        return False
    lines, starts = np.divmod(distance, pitch[0])
    order = np.lexsort((lines, starts))
    line, start = lines[order], starts[order]
    end, last = start + width[order], line + some.shapes[rows, 1 - along][order]
    if (end > pitch[0]).any():
        return False
    before = np.maximum.accumulate(end)[:-1]
    return bool(np.where(start[1:] == start[:-1], last[:-1] <= line[1:], before <= start[1:]).all())


Spans = tuple[np.ndarray, np.ndarray]


def are_apart(outputs: Spans, others: Spans) -> bool:
    """Whether spans, first and last bytes, of outputs meet neither each other nor others."""
    low, high = outputs
    if not len(low):
        return True
    order = np.argsort(low)
    low, high = low[order], high[order]
    if (high[:-1] > low[1:]).any():
        return False
    start, end = others
    before = np.searchsorted(low, end, "left") - 1  # the last output that begins before the end
    return outputs is others or not ((before >= 0) & (high[before] > start)).any()


def spans(matrices: Matrices, itemsize: int) -> Spans:
    """First byte of each matrix that has elements, and the one past the last."""
    some = matrices.take((matrices.shapes > 0).all(axis=1))
    ends = some.strides * (some.shapes - 1)
    low = some.pointers + np.minimum(ends, 0).sum(axis=1) * itemsize
    return low, some.pointers + (np.maximum(ends, 0).sum(axis=1) + 1) * itemsize
