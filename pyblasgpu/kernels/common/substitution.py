"""Forward substitution in one diagonal tile of T, a thread a column, shared by the leaves of TRSM.

The tile is `n` rows high and is column-major in shared memory; the columns to be solved are in a *panel*,
`row` reals from one row of it to the next. No inverse of more than a scalar is formed. Division is a
multiplication by the reciprocal that one residual makes as good as a division; where the reciprocal is not
safe (zero, tiny, huge, not finite), `exact_division_solver` divides instead.
"""

from __future__ import annotations

from collections.abc import Callable

from ...gpu.backend import device_function, in_order, ptx
from ...types import Dtype
from .coalesced_index import coalesced_index

__all__ = [
    "column_reader",
    "column_writer",
    "diagonal_inverter",
    "divider",
    "exact_division_solver",
    "inverter",
    "panel_writer",
    "quotient",
    "steps",
    "subtracter",
]

#: A diagonal element within 2^-SAFE .. 2^SAFE has a normal reciprocal, and a square that neither over-
#: nor underflows (complex); by bytes of a real.
SAFE = {4: 60, 8: 500}


def inverter(facts: Dtype):
    """``invert(inverse, x, diagonal, at)``: inverse[x] = 1 / diagonal[at]; whether it is safe."""
    real, COMPLEX = ptx.REALS[facts.real], facts.is_complex
    TINY, HUGE = 2.0 ** -SAFE[facts.real_size], 2.0 ** SAFE[facts.real_size]
    divide, int32 = ptx.divide, ptx.types.int32

    @device_function
    def invert(inverse, x, diagonal, at):
        re, size = diagonal[at], abs(diagonal[at])
        if COMPLEX:
            im = diagonal[at + 1]
            size = max(size, abs(im))
            square = re * re + im * im
            inverse[x] = divide(re, square)
            inverse[x + 1] = divide(-im, square)
        else:
            inverse[x] = divide(real(1), re)
        return int32((size >= real(TINY)) & (size <= real(HUGE)))

    return invert


def diagonal_inverter(facts: Dtype, n: int, step: int):
    """``invert(diagonal, inverse, t, rows, unit)``: thread t inverts its element, if any; whether it is safe.
    Of a `unit` diagonal both become one.

    Elements of the diagonal, of which there are `n` at most, are `step` elements apart.
    """
    real, REALS, invert_one, int32 = (
        ptx.REALS[facts.real],
        facts.reals_per_element,
        inverter(facts),
        ptx.types.int32,
    )

    @device_function
    def invert(diagonal, inverse, t, rows, unit):
        safe = int32(1)
        if t < min(rows, n):
            x, at = t * REALS, t * step * REALS
            if unit:
                inverse[x] = diagonal[at] = real(1)
                if REALS == 2:
                    inverse[x + 1] = diagonal[at + 1] = real(0)
            else:
                safe = invert_one(inverse, x, diagonal, at)
        return safe

    return invert


def quotient(facts: Dtype, part: Callable, guarded: bool = True):
    """``quotient(b, t, r)`` = b / t from r = 1 / t: one residual makes it as good as a division.

    `part` is `ptx.called` or `ptx.inlined`. An infinite quotient has no residual: only where `guarded` it is
    infinite, elsewhere NaN.
    """
    fma = ptx.fma

    def real_quotient(b, t, r):
        x = b * r
        better = fma(fma(-x, t, b), r, x)
        return (better if better == better else x) if guarded else better

    def complex_quotient(b_re, b_im, t_re, t_im, r_re, r_im):
        x_re, x_im = b_re * r_re - b_im * r_im, b_re * r_im + b_im * r_re
        e_re = fma(x_im, t_im, fma(-x_re, t_re, b_re))
        e_im = fma(-x_im, t_re, fma(-x_re, t_im, b_im))
        better_re = fma(-e_im, r_im, fma(e_re, r_re, x_re))
        better_im = fma(e_im, r_re, fma(e_re, r_im, x_im))
        finite = (better_re == better_re) & (better_im == better_im)
        return (better_re, better_im) if finite or not guarded else (x_re, x_im)

    return part(complex_quotient if facts.is_complex else real_quotient)


def steps(facts: Dtype, n: int, divides: bool, width: int = 1, ld: int | None = None):
    """``substitute(column, diagonal, inverse)``: one column, in registers.

    Without `divides` the diagonal counts as ones. `width` reals are loaded at once. The columns of the tile
    begin `ld` elements apart, by default `n`.
    """
    ld = ld or n
    REALS, COMPLEX = facts.reals_per_element, facts.is_complex
    divided = quotient(facts, ptx.called)

    def column_step(j):
        spread = ptx.axpy_column(n, j, REALS, False, -1, width, ld)

        @device_function
        def step(column, diagonal, inverse):
            if divides:
                x, t = j * REALS, j * (ld + 1) * REALS
                if COMPLEX:
                    column[x], column[x + 1] = divided(
                        column[x], column[x + 1], diagonal[t], diagonal[t + 1], inverse[x], inverse[x + 1]
                    )
                else:
                    column[x] = divided(column[x], diagonal[t], inverse[x])
            spread(column, diagonal)

        return step

    return in_order([column_step(j) for j in range(n)])


def subtracter(facts: Dtype):
    """``take_off(y, i, t, k, x, j)``: y[i] -= t[k] x[j], in registers."""
    COMPLEX = facts.is_complex

    @device_function
    def take_off(y, i, t, k, x, j):
        if COMPLEX:
            re = y[i] - t[k] * x[j] + t[k + 1] * x[j + 1]
            y[i + 1] = y[i + 1] - t[k] * x[j + 1] - t[k + 1] * x[j]
            y[i] = re
        else:
            y[i] = y[i] - t[k] * x[j]

    return take_off


def divider(facts: Dtype):
    """``divide(panel, at, t_re, t_im)``: the element at `at` by a true division; a real t is `t_re`."""
    divide = ptx.divide

    @device_function
    def divide_complex(panel, at, t_re, t_im):
        # Smith's algorithm: scaled by the larger part of the divisor
        b_re, b_im = panel[at], panel[at + 1]
        if abs(t_re) >= abs(t_im):
            ratio = divide(t_im, t_re)
            scale = t_re + t_im * ratio
            panel[at] = divide(b_re + b_im * ratio, scale)
            panel[at + 1] = divide(b_im - b_re * ratio, scale)
        else:
            ratio = divide(t_re, t_im)
            scale = t_re * ratio + t_im
            panel[at] = divide(b_re * ratio + b_im, scale)
            panel[at + 1] = divide(b_im * ratio - b_re, scale)

    @device_function
    def divide_real(panel, at, t_re, t_im):
        panel[at] = divide(panel[at], t_re)

    return divide_complex if facts.is_complex else divide_real


def exact_division_solver(facts: Dtype, row: int, conj: bool = False):
    """``substitute(panel, matrix, row_step, col_step, n, unit)``: one column, in shared memory, with
    divisions if the diagonal is not `unit`.

    Element (i, j) of the tile is ``matrix[(i*row_step + j*col_step) * reals]``.
    """
    REALS, COMPLEX = facts.reals_per_element, facts.is_complex
    real, CONJ, divide = ptx.REALS[facts.real], -1 if conj else 1, divider(facts)
    int32, opaque = ptx.types.int32, ptx.opaque

    @device_function
    def substitute(panel, matrix, row_step, col_step, n, unit):
        for j in range(n):
            x, at = j * row, j * (row_step + col_step) * REALS
            if opaque(int32(unit)) == 0:  # one loop, not one for each
                divide(panel, x, matrix[at], real(CONJ) * matrix[at + REALS - 1])
            for i in range(j + 1, n):
                t, y = (j * col_step + i * row_step) * REALS, i * row
                if COMPLEX:
                    t_re, t_im = matrix[t], real(CONJ) * matrix[t + 1]
                    panel[y] = panel[y] - t_re * panel[x] + t_im * panel[x + 1]
                    panel[y + 1] = panel[y + 1] - t_re * panel[x + 1] - t_im * panel[x]
                else:
                    panel[y] = panel[y] - matrix[t] * panel[x]

    return substitute


def column_reader(reals: int, n: int, row: int):
    """``read(column, panel)``: a column of the panel into registers."""

    @device_function
    def read(column, panel):
        for i in range(n):
            for part in range(reals):
                column[i * reals + part] = panel[i * row + part]

    return read


def column_writer(reals: int, n: int, row: int):
    """``write(column, panel)``: registers back into a column of the panel."""

    @device_function
    def write(column, panel):
        for i in range(n):
            for part in range(reals):
                panel[i * row + part] = column[i * reals + part]

    return write


def panel_writer(
    reals: int,
    n: int,
    columns: int,
    row: int,
    threads: int,
    col: int | None = None,
    by_rows: bool | None = None,
):
    """``write(b, panel, row_stride, col_stride, t, rows, cols, sign)``: the panel back to B by `threads`
    threads, neighbours to neighbours in memory, imaginary parts times `sign`. Its columns are `col` reals
    apart, by default `reals`. Rows of B are neighbours, or columns; by default the strides decide.
    """
    col = col or reals
    int32, opaque, store = ptx.types.int32, ptx.opaque, ptx.store_global

    def writer(by_rows: bool):
        over = coalesced_index(n, columns, threads, by_rows)
        COUNT, coords, has, following, at_first = (
            over.count,
            over.coords,
            over.has,
            over.following,
            over.first,
        )

        @device_function
        def write(b, panel, row_stride, col_stride, t, rows, cols, sign):
            t = opaque(int32(t))  # the same ways as on reading would take registers all the time
            at = at_first(t, row_stride, col_stride)
            for k in range(COUNT):
                i, j = coords(t, k)
                if has(t, k):
                    ok, x = (i < rows) & (j < cols), i * row + j * col
                    store(b, at * reals, panel[x], ok)
                    if reals == 2:
                        store(b, at * reals + 1, sign * panel[x + 1], ok)
                at = following(at, t, k, row_stride, col_stride)

        return write

    if by_rows is not None:
        return writer(by_rows)
    along_rows, along_cols = writer(True), writer(False)

    @device_function
    def write(b, panel, row_stride, col_stride, t, rows, cols, sign):
        if abs(row_stride) <= abs(col_stride):
            along_rows(b, panel, row_stride, col_stride, t, rows, cols, sign)
        else:
            along_cols(b, panel, row_stride, col_stride, t, rows, cols, sign)

    return write
