"""The intrinsics of `register_tile` and `warp_mma` in Python: arithmetic on register tiles."""

from __future__ import annotations

import numpy as np

from ..intrinsics.mma import elements_per_mma
from .block import current_thread
from .memory import Pointer

__all__ = ["axpy_column", "eliminate_row", "fill", "rank1_update", "shifted_update", "warp_mma"]

_COMPLEX: dict[str, np.dtype] = {"f": np.dtype("complex64"), "d": np.dtype("complex128")}


def _elements(
    pointer: Pointer, first: int, count: int, reals_per_element: int, conj: bool = False
) -> np.ndarray:
    """`count` elements of `reals_per_element` reals, in place unless conjugated."""
    if reals_per_element == 1:
        return pointer.read(first, count)
    reals = pointer.read(first * reals_per_element, count * reals_per_element)
    values = reals.view(_COMPLEX[pointer.dtype.char])
    return values.conj() if conj else values


def rank1_update(
    m: int,
    n: int,
    reals_per_element: int,
    conj_a: bool = False,
    conj_b: bool = False,
    by_rows: bool = False,
    at_a: tuple[int, int] = (0, 1),
    at_b: tuple[int, int] = (0, 1),
):
    """``update(acc, a, b)``: acc[:, j] += a * b[j] over an m-by-n column-major register tile."""

    (first_a, step_a), (first_b, step_b) = at_a, at_b
    span_a, span_b = (m - 1) * step_a + 1, (n - 1) * step_b + 1

    def update(acc, a, b):
        tile = _elements(acc, 0, m * n, reals_per_element).reshape(n, m)
        column = _elements(b, first_b, span_b, reals_per_element, conj_b)
        row = _elements(a, first_a, span_a, reals_per_element, conj_a)
        if step_b > 1:
            column = column[::step_b]
        if step_a > 1:
            row = row[::step_a]
        tile += column.reshape(n, 1) * row

    return update


def shifted_update(
    m: int,
    n: int,
    depth: int,
    reals_per_element: int,
    conj_a: bool,
    sources: tuple[int, ...],
    targets: tuple[int, ...],
    first: int = 0,
):
    """``update(acc, a, b)``: acc[targets] = acc[sources] + A B, of m rows and n columns."""

    def update(acc, a, b):
        left = _elements(a, 0, m * depth, reals_per_element, conj_a).reshape(m, depth)
        right = _elements(b, first * n, depth * n, reals_per_element).reshape(depth, n)
        before = np.concatenate([_elements(acc.offset(index), 0, 1, reals_per_element) for index in sources])
        for index, total in zip(targets, before + (left @ right).ravel(), strict=True):
            _elements(acc.offset(index), 0, 1, reals_per_element)[:] = total

    return update


def warp_mma(
    m: int,
    n: int,
    shape: tuple[int, int],
    reals_per_element: int,
    conj_a: bool = False,
    conj_b: bool = False,
    depth: int = 1,
    first: int = 0,
    three_m: bool = False,
):
    """``update(acc, a, b)``: acc += A B by a warp; `ptx.warp_mma` says what a lane holds."""
    rows, depth_per_mma = elements_per_mma(shape, reals_per_element, three_m)
    groups, steps = m * rows // 8, depth * depth_per_mma // 4

    def together(lanes):
        def matrix(which, outer, inner, conj):
            """Return an operand's elements in the lanes: [outer index][inner index][g][t]."""
            held = [_elements(lane[which], 0, outer * inner, reals_per_element, conj) for lane in lanes]
            return np.array(held).reshape(8, 4, outer, inner).transpose(2, 3, 0, 1)

        # a[step, group](g, t) is A[8 group + g, 4 step + t]; b[step, j](g, t) is B[4 step + t, 8j + g]
        a = matrix(1, steps, groups, conj_a).transpose(1, 2, 0, 3).reshape(groups * 8, steps * 4)
        b = matrix(2, steps, n, conj_b).transpose(0, 3, 1, 2).reshape(steps * 4, n * 8)
        if three_m:  # three reals an element
            sums, each = [a.real @ b.real, a.imag @ b.imag, (a.real + a.imag) @ (b.real + b.imag)], 1
        else:
            sums, each = [a @ b], reals_per_element
        # acc[2j + odd, group](g, t) is C[8 group + g, 8j + 2t + odd]
        c = np.stack(sums, axis=-1).reshape(groups, 8, n, 4, 2, -1).transpose(1, 3, 2, 4, 0, 5)
        for lane, part in zip(lanes, c.reshape(32, -1), strict=True):
            total = _elements(lane[0].offset(first), 0, part.size, each)
            total += part

    def update(acc, a, b):
        current_thread().meet((acc, a, b), together)

    return update


def axpy_column(
    n: int, j: int, reals_per_element: int, conj: bool, sign: int, width: int = 1, ld: int | None = None
):
    """``spread(column, pointer)``: column[i] += sign * T[i, j] * column[j] for all i > j."""
    rows_below, ld = (j + 1, n - j - 1), ld or n

    def spread(column, pointer):
        pointer.span(0, n * ld * reals_per_element, width)
        x = _elements(column, j, 1, reals_per_element)[0]
        t = _elements(pointer, j * ld + rows_below[0], rows_below[1], reals_per_element, conj)
        target = _elements(column, *rows_below, reals_per_element)
        target += sign * (t * x)

    return spread


def eliminate_row(n: int, reals_per_element: int, width: int):
    """``eliminate(row, factor, pointer)``: row[k] = row[k+1] - factor * pivot[k] for k < n."""

    def eliminate(row, factor, pointer):
        pointer.span(0, n * reals_per_element, width)
        pivot, f = _elements(pointer, 0, n, reals_per_element), _elements(factor, 0, 1, reals_per_element)[0]
        following = _elements(row, 1, n, reals_per_element)
        _elements(row, 0, n, reals_per_element)[:] = following - f * pivot

    return eliminate


def fill(count: int):
    """``set(local, value)``: the first `count` elements of a local array."""

    def set_all(local, value):
        local.write(0, value, count)

    return set_all
