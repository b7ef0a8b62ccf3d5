"""Packing for `cpu_gemm`: panels of a register tile's height, k after k (the papers' column-block layout)."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from ...types import DTYPES
from .backend import cpu

__all__ = ["build"]

LANES = 4  # elements that are copied, or squares of which are transposed, at a time


@lru_cache
def build(letter: str) -> Any:
    """``pack(target, source, stride, stride_k, count, depth, extent, conj)``: panels of `extent` elements.

    `source` is the address of a `count`-by-`depth` part, with strides in elements along m or n, and k. A
    panel that is not whole is filled with zeros.
    """
    facts = DTYPES[letter]
    SIZE, number = facts.itemsize, cpu.REALS[facts.real]
    pack_columns, pack_rows, pack_elements = (
        _column_packer(letter),
        _row_packer(letter),
        _element_packer(letter),
    )

    @cpu.njit
    def pack(target, source, stride, stride_k, count, depth, extent, conj):
        sign = number(-1) if conj else number(1)
        for first in range(0, count, extent):
            here = source + first * stride * SIZE
            i_end, k_end = 0, 0
            if not conj and count - first >= extent:
                if stride == 1:
                    i_end, k_end = extent // LANES * LANES, depth
                    pack_columns(target, here, stride_k, i_end, depth, extent)
                elif stride_k == 1:
                    i_end, k_end = extent // LANES * LANES, depth // LANES * LANES
                    pack_rows(target, here, stride, i_end, k_end, extent)
            rows = min(extent, count - first)
            pack_elements(target, here, stride, stride_k, rows, depth, extent, i_end, k_end, sign)
            target += extent * depth * SIZE

    return pack


def _column_packer(letter: str) -> Any:
    """``pack(target, source, stride_k, i_end, depth, extent)``: what is contiguous along m or n."""
    facts = DTYPES[letter]
    SIZE, REALS = facts.itemsize, LANES * facts.reals_per_element
    copy = cpu.copy_reals(facts.real, REALS, REALS)

    @cpu.njit
    def pack_columns(target, source, stride_k, i_end, depth, extent):
        for kk in range(depth):
            for i in range(0, i_end, LANES):
                copy(target + (kk * extent + i) * SIZE, source + (kk * stride_k + i) * SIZE)

    return pack_columns


def _row_packer(letter: str) -> Any:
    """``pack(target, source, stride, i_end, k_end, extent)``: what is contiguous along k, by squares."""
    facts = DTYPES[letter]
    SIZE, REALS = facts.itemsize, facts.reals_per_element
    transpose = cpu.transpose(facts.real, REALS, LANES)

    @cpu.njit
    def pack_rows(target, source, stride, i_end, k_end, extent):
        for kk in range(0, k_end, LANES):
            for i in range(0, i_end, LANES):
                into, there = target + (kk * extent + i) * SIZE, source + (i * stride + kk) * SIZE
                transpose(into, extent * REALS, there, stride * REALS)

    return pack_rows


def _element_packer(letter: str) -> Any:
    """``pack(...)``: all but the first `i_end` elements of the first `k_end` k, one by one, and zeros."""
    facts = DTYPES[letter]
    REALS, number = facts.reals_per_element, cpu.REALS[facts.real]
    load, store = cpu.load(facts.real), cpu.store(facts.real)

    @cpu.njit
    def pack_elements(target, source, stride, stride_k, rows, depth, extent, i_end, k_end, sign):
        for kk in range(depth):
            for i in range(i_end if kk < k_end else 0, extent):
                into, at = (kk * extent + i) * REALS, (i * stride + kk * stride_k) * REALS
                if i >= rows:
                    store(target, into, number(0))
                    if REALS == 2:
                        store(target, into + 1, number(0))
                    continue
                store(target, into, load(source, at))
                if REALS == 2:
                    store(target, into + 1, sign * load(source, at + 1))

    return pack_elements
