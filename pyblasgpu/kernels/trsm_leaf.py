"""``trsm_leaf``: solves T X = alpha * B in place, T lower triangular, by substitution (see `triangle`).

No inverse of more than a scalar is formed. Division is a multiplication by the reciprocal that one
residual makes as good as a division; where the reciprocal is not safe (zero, tiny, huge, not finite), the
block is solved with true divisions instead.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ..gpu.backend import cuda, device_function, in_order, ptx
from ..gpu.compile import KernelSource
from .triangle import TrianglePanel, Variant, column_reader, column_writer, panel_source

STEM = "trsm_leaf"
#: A diagonal element within 2^-SAFE .. 2^SAFE has a normal reciprocal, and a square that neither over-
#: nor underflows (complex); by bytes of a real.
SAFE = {4: 60, 8: 500}


@dataclass(frozen=True)
class TrsmLeaf(TrianglePanel):
    """Config of one `trsm_leaf` kernel; the parameters are those of `TrianglePanel`."""

    STEM: ClassVar[str] = STEM


def source(config: TrsmLeaf, variant: Variant) -> KernelSource:
    """The kernel of `config`; parameters and grid as in `triangle.panel_source`."""
    return panel_source(STEM, config, variant, _steps)


def _steps(config: TrsmLeaf, variant: Variant):
    """Walk upwards; alpha B - acc as the combination, the substitution after it."""
    PARTS, BLK_N, COMPLEX = config.dtype_facts.parts, config.BLK_N, config.dtype_facts.is_complex
    substitute, substitute_carefully = _register_solver(config, variant), _careful_solver(config, variant)
    invert = _inverter(config, variant)

    @device_function
    def before(column, panel, diagonal, inverse, t, rows):
        pass

    @device_function
    def combine(panel, at, acc, x, alpha, alpha_i):
        re = panel[at]
        if COMPLEX:
            im = panel[at + 1]
            panel[at] = alpha * re - alpha_i * im - acc[x]
            panel[at + 1] = alpha * im + alpha_i * re - acc[x + 1]
        else:
            panel[at] = alpha * re - acc[x]

    @device_function
    def solve(column, panel, diagonal, inverse, t, rows):
        safe = cuda.syncthreads_and(invert(diagonal, inverse, t, rows))
        if t < BLK_N:
            if safe:
                substitute(column, panel, diagonal, inverse)
            else:
                substitute_carefully(panel, diagonal)
        cuda.syncthreads()

    return False, before, combine, solve


def _inverter(config: TrsmLeaf, variant: Variant):
    """``invert(diagonal, inverse, t, rows)``: reciprocals of the diagonal; whether thread t's is safe."""
    facts = config.dtype_facts
    real, PARTS, BLK_M, UNIT = ptx.REALS[facts.real], facts.parts, config.BLK_M, variant.unit
    COMPLEX, CONJ = facts.is_complex, -1 if variant.conj else 1
    TINY, HUGE = 2.0 ** -SAFE[facts.real_size], 2.0 ** SAFE[facts.real_size]
    divide, int32 = ptx.divide, ptx.types.int32

    @device_function
    def invert(diagonal, inverse, t, rows):
        safe = int32(1)
        if not UNIT:
            if t < min(rows, BLK_M):
                at = t * (BLK_M + 1) * PARTS
                re, size = diagonal[at], abs(diagonal[at])
                if COMPLEX:
                    im = real(CONJ) * diagonal[at + 1]
                    size = max(size, abs(im))
                    square = re * re + im * im
                    inverse[2 * t] = divide(re, square)
                    inverse[2 * t + 1] = divide(-im, square)
                else:
                    inverse[t] = divide(real(1), re)
                safe = int32((size >= real(TINY)) & (size <= real(HUGE)))
        return safe

    return invert


def _quotient(facts):
    """``quotient(b, t, r)`` = b / t from r = 1 / t: one residual makes it as good as a division."""
    fma = ptx.fma

    def real_quotient(b, t, r):
        x = b * r
        better = fma(fma(-x, t, b), r, x)
        return better if better == better else x  # an infinite x has no residual

    def complex_quotient(b_re, b_im, t_re, t_im, r_re, r_im):
        x_re, x_im = b_re * r_re - b_im * r_im, b_re * r_im + b_im * r_re
        e_re = fma(x_im, t_im, fma(-x_re, t_re, b_re))
        e_im = fma(-x_im, t_re, fma(-x_re, t_im, b_im))
        better_re = fma(-e_im, r_im, fma(e_re, r_re, x_re))
        better_im = fma(e_im, r_re, fma(e_re, r_im, x_im))
        finite = (better_re == better_re) & (better_im == better_im)
        return (better_re, better_im) if finite else (x_re, x_im)

    if facts.is_complex:
        return ptx.scalar_function(complex_quotient, results=2)
    return ptx.scalar_function(real_quotient)


def _register_solver(config: TrsmLeaf, variant: Variant):
    """``substitute(column, panel, diagonal, inverse)``: one column, in registers."""
    facts = config.dtype_facts
    PARTS, BLK_M, COMPLEX, UNIT = facts.parts, config.BLK_M, facts.is_complex, variant.unit
    real, CONJ, quotient = ptx.REALS[facts.real], -1 if variant.conj else 1, _quotient(facts)
    read, write = column_reader(config), column_writer(config)

    def column_step(j):
        spread = ptx.spread_column(BLK_M, j, PARTS, variant.conj, -1)

        @device_function
        def step(column, diagonal, inverse):
            if not UNIT:
                x, t = j * PARTS, j * (BLK_M + 1) * PARTS
                if COMPLEX:
                    t_im = real(CONJ) * diagonal[t + 1]
                    column[x], column[x + 1] = quotient(
                        column[x], column[x + 1], diagonal[t], t_im, inverse[x], inverse[x + 1]
                    )
                else:
                    column[x] = quotient(column[x], diagonal[t], inverse[x])
            spread(column, diagonal)

        return step

    substitute_steps = in_order([column_step(j) for j in range(BLK_M)])

    @device_function
    def substitute(column, panel, diagonal, inverse):
        read(column, panel)
        substitute_steps(column, diagonal, inverse)
        write(column, panel)

    return substitute


def _careful_solver(config: TrsmLeaf, variant: Variant):
    """``substitute(panel, diagonal)``: one column, in shared memory, with true divisions."""
    facts = config.dtype_facts
    PARTS, BLK_M, ROW = facts.parts, config.BLK_M, config.row_of_panel * facts.parts
    COMPLEX, UNIT = facts.is_complex, variant.unit
    real, CONJ, divide = ptx.REALS[facts.real], -1 if variant.conj else 1, ptx.divide

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
    def substitute(panel, diagonal):
        for j in range(BLK_M):
            x, at = j * ROW, j * (BLK_M + 1) * PARTS
            if not UNIT:
                if COMPLEX:
                    divide_complex(panel, x, diagonal[at], real(CONJ) * diagonal[at + 1])
                else:
                    panel[x] = divide(panel[x], diagonal[at])
            for i in range(j + 1, BLK_M):
                t, y = (j * BLK_M + i) * PARTS, i * ROW
                if COMPLEX:
                    t_re, t_im = diagonal[t], real(CONJ) * diagonal[t + 1]
                    panel[y] = panel[y] - t_re * panel[x] + t_im * panel[x + 1]
                    panel[y + 1] = panel[y + 1] - t_re * panel[x + 1] - t_im * panel[x]
                else:
                    panel[y] = panel[y] - diagonal[t] * panel[x]

    return substitute
