"""``cpu_triangle``: a lower triangle solved or multiplied in place, the leaf of TRSM and TRMM on a processor.

Columns of B pass through a buffer, THR_M of a register tile at a time, side by side. A row of the buffer is a
column of GEMM's packed A. So what THR_N rows need of the rows above is computed by the same register tile as
in `cpu_gemm`; T is packed for that once. The triangles on the diagonal, THR_N rows high, are done row by row.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import lru_cache
from typing import Any

from .backend import cpu
from .config import CpuGemm

__all__ = ["ORDER", "STEM", "buffer_bytes", "kernel"]

STEM = "cpu_triangle"
#: The largest order of a leaf.
ORDER = 288


def buffer_bytes(config: CpuGemm, order: int) -> tuple[int, int]:
    """Bytes for packed T, and for the columns of B that pass together."""
    size, blocks = config.dtype_facts.itemsize, -(-order // config.THR_N)
    packed = config.THR_N**2 * blocks * (blocks - 1) // 2 * size
    return packed, blocks * config.THR_N * config.THR_M * size


@lru_cache(maxsize=64)
def kernel(config: CpuGemm, solves: bool) -> Any:
    """The compiled kernel for TRSM or TRMM; it runs without the interpreter's lock.

    Its parameters are the order and the columns of B; address, row and column stride in elements of T and B;
    whether T is conjugated, and whether its diagonal is 1; addresses of the two buffers.
    """
    return _compiled(replace(config, BLK_M=config.THR_M, BLK_N=config.THR_N, BLK_K=1), solves)


@lru_cache(maxsize=32)
def _compiled(config: CpuGemm, solves: bool) -> Any:
    intp, boolean = cpu.types.intp, cpu.types.boolean
    signature = cpu.types.void(*[intp] * 8, boolean, boolean, intp, intp)
    return cpu.njit(signature, nogil=True, error_model="numpy")(build(config, solves))


def build(config: CpuGemm, solves: bool) -> Any:
    """The kernel's function."""
    facts = config.dtype_facts
    REALS, SIZE, number, LANES, ROWS = (
        facts.reals_per_element,
        facts.itemsize,
        cpu.REALS[facts.real],
        config.THR_M,
        config.THR_N,
    )
    update = cpu.rank_k_update(facts.real, REALS, config.VEC, config.vectors, ROWS, config.UNROLL)
    pack, move = _packer(config), _mover(config)
    diagonal = (_solver if solves else _multiplier)(config)
    SIGN, SOLVES = -1 if solves else 1, solves

    def cpu_triangle(order, cols, t, rs_t, cs_t, b, rs_b, cs_b, conj, unit, packed, x):
        sign = number(-1) if conj else number(1)
        blocks = (order + ROWS - 1) // ROWS
        pack(packed, t, rs_t, cs_t, order, sign)
        one, zero, factor = number(1), number(0), number(SIGN)
        for j in range(0, cols, LANES):
            here, lanes = b + j * cs_b * SIZE, min(LANES, cols - j)
            move(x, here, rs_b, cs_b, order, lanes, True)
            for step in range(blocks):
                p = step if SOLVES else blocks - 1 - step
                i = p * ROWS
                above = packed + ROWS * ROWS * (p * (p - 1) // 2) * SIZE
                target, rows, corner = (
                    x + i * LANES * SIZE,
                    min(ROWS, order - i),
                    t + i * (rs_t + cs_t) * SIZE,
                )
                if not SOLVES:
                    diagonal(target, corner, rs_t * REALS, cs_t * REALS, rows, sign, unit)
                if p > 0:
                    update(x, above, i, target, LANES * REALS, factor, zero, one, zero)
                if SOLVES:
                    diagonal(target, corner, rs_t * REALS, cs_t * REALS, rows, sign, unit)
            move(x, here, rs_b, cs_b, order, lanes, False)

    return cpu_triangle


def _packer(config: CpuGemm) -> Any:
    """``pack(packed, t, rs, cs, order, sign)``: below the diagonal, THR_N rows after another, k after k."""
    facts = config.dtype_facts
    REALS, ROWS, number = facts.reals_per_element, config.THR_N, cpu.REALS[facts.real]
    load, store = cpu.load(facts.real), cpu.store(facts.real)

    @cpu.njit
    def pack(packed, t, rs, cs, order, sign):
        into = 0
        for i in range(ROWS, order, ROWS):
            for k in range(i):
                for r in range(i, i + ROWS):
                    at = (r * rs + k * cs) * REALS
                    store(packed, into, load(t, at) if r < order else number(0))
                    if REALS == 2:
                        store(packed, into + 1, sign * load(t, at + 1) if r < order else number(0))
                    into += REALS

    return pack


def _mover(config: CpuGemm) -> Any:
    """``move(x, b, rs, cs, order, lanes, loads)``: columns of B into the padded buffer, or back."""
    facts = config.dtype_facts
    REALS, LANES, ROWS, number = facts.reals_per_element, config.THR_M, config.THR_N, cpu.REALS[facts.real]
    load, store = cpu.load(facts.real), cpu.store(facts.real)

    @cpu.njit
    def move(x, b, rs, cs, order, lanes, loads):
        if not loads:
            for lane in range(lanes):
                for i in range(order):
                    at, source = (i * rs + lane * cs) * REALS, (i * LANES + lane) * REALS
                    for part in range(REALS):
                        store(b, at + part, load(x, source + part))
            return
        for lane in range(LANES):
            for i in range((order + ROWS - 1) // ROWS * ROWS):
                at, target = (i * rs + lane * cs) * REALS, (i * LANES + lane) * REALS
                inside = i < order and lane < lanes
                for part in range(REALS):
                    store(x, target + part, load(b, at + part) if inside else number(0))

    return move


def _solver(config: CpuGemm) -> Any:
    """``solve(x, t, rs, cs, rows, sign, unit)``: by substitution, with true divisions."""
    facts = config.dtype_facts
    COMPLEX, ROW, number = facts.is_complex, config.THR_M * facts.itemsize, cpu.REALS[facts.real]
    shape = config.VEC, config.vectors
    load, add = cpu.load(facts.real), cpu.add_row(facts.real, facts.reals_per_element, *shape)
    scale = cpu.scale_row(facts.real, facts.reals_per_element, *shape)
    divide, frexp, ldexp = cpu.divide_row(facts.real, *shape), math.frexp, math.ldexp
    LARGE = 30 if facts.real == "float32" else 250  # an exponent: a quarter of the range

    @cpu.njit(error_model="numpy")
    def divide_by(row, re, im):
        """Divide by Smith's method where both parts are not 0, scaled where it could overflow."""
        if im == number(0):
            divide(row, re)
            return
        exponent = frexp(max(abs(re), abs(im)))[1]
        if abs(exponent) > LARGE:
            for power in (
                number(ldexp(number(1), exponent // 2)),
                number(ldexp(number(1), exponent - exponent // 2)),
            ):
                re, im = re / power, im / power
                divide(row, power)
        if abs(re) >= abs(im):
            ratio = im / re
            scale(row, number(1), -ratio)
            divide(row, re + im * ratio)
        else:
            ratio = re / im
            scale(row, ratio, number(-1))
            divide(row, re * ratio + im)

    @cpu.njit(error_model="numpy")
    def solve(x, t, rs, cs, rows, sign, unit):
        for i in range(rows):
            for j in range(i):
                at = i * rs + j * cs
                add(x + i * ROW, x + j * ROW, -load(t, at), -sign * load(t, at + 1) if COMPLEX else number(0))
            if not unit:
                at = i * (rs + cs)
                divide_by(x + i * ROW, load(t, at), sign * load(t, at + 1) if COMPLEX else number(0))

    return solve


def _multiplier(config: CpuGemm) -> Any:
    """``multiply(x, t, rs, cs, rows, sign, unit)``: the last row first."""
    facts = config.dtype_facts
    COMPLEX, ROW, number = facts.is_complex, config.THR_M * facts.itemsize, cpu.REALS[facts.real]
    shape = facts.reals_per_element, config.VEC, config.vectors
    load, add, scale = (
        cpu.load(facts.real),
        cpu.add_row(facts.real, *shape),
        cpu.scale_row(facts.real, *shape),
    )

    @cpu.njit
    def multiply(x, t, rs, cs, rows, sign, unit):
        for up in range(rows):
            i = rows - 1 - up
            if not unit:
                at = i * (rs + cs)
                scale(x + i * ROW, load(t, at), sign * load(t, at + 1) if COMPLEX else number(0))
            for j in range(i):
                at = i * rs + j * cs
                add(x + i * ROW, x + j * ROW, load(t, at), sign * load(t, at + 1) if COMPLEX else number(0))

    return multiply
