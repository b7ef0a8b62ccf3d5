"""Packing for `cpu_gemm`: panels of a register tile's height, k after k (the papers' column-block layout)."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from ...cpu.backend import cpu
from ...types import DTYPES

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
            across, along = 0, 0
            if not conj and count - first >= extent:
                if stride == 1:
                    across, along = extent // LANES * LANES, depth
                    pack_columns(target, here, stride_k, across, depth, extent)
                elif stride_k == 1:
                    across, along = extent // LANES * LANES, depth // LANES * LANES
                    pack_rows(target, here, stride, across, along, extent)
            rows = min(extent, count - first)
            pack_elements(target, here, stride, stride_k, rows, depth, extent, across, along, sign)
            target += extent * depth * SIZE

    return pack


def _column_packer(letter: str) -> Any:
    """``pack(target, source, stride_k, across, depth, extent)``: what is contiguous along m or n."""
    facts = DTYPES[letter]
    SIZE, REALS = facts.itemsize, LANES * facts.reals_per_element
    copy = cpu.copy_reals(facts.real, REALS, REALS)

    @cpu.njit
    def pack_columns(target, source, stride_k, across, depth, extent):
        for kk in range(depth):
            for i in range(0, across, LANES):
                copy(target + (kk * extent + i) * SIZE, source + (kk * stride_k + i) * SIZE)

    return pack_columns


def _row_packer(letter: str) -> Any:
    """``pack(target, source, stride, across, along, extent)``: what is contiguous along k, by squares."""
    facts = DTYPES[letter]
    SIZE, PARTS = facts.itemsize, facts.reals_per_element
    transpose = cpu.transpose(facts.real, PARTS, LANES)

    @cpu.njit
    def pack_rows(target, source, stride, across, along, extent):
        for kk in range(0, along, LANES):
            for i in range(0, across, LANES):
                into, there = target + (kk * extent + i) * SIZE, source + (i * stride + kk) * SIZE
                transpose(into, extent * PARTS, there, stride * PARTS)

    return pack_rows


def _element_packer(letter: str) -> Any:
    """``pack(...)``: all but the first `across` elements of the first `along` k, one by one, and zeros."""
    facts = DTYPES[letter]
    PARTS, number = facts.reals_per_element, cpu.REALS[facts.real]
    load, store = cpu.load(facts.real), cpu.store(facts.real)

    @cpu.njit
    def pack_elements(target, source, stride, stride_k, rows, depth, extent, across, along, sign):
        for kk in range(depth):
            for i in range(across if kk < along else 0, extent):
                into, at = (kk * extent + i) * PARTS, (i * stride + kk * stride_k) * PARTS
                if i >= rows:
                    store(target, into, number(0))
                    if PARTS == 2:
                        store(target, into + 1, number(0))
                    continue
                store(target, into, load(source, at))
                if PARTS == 2:
                    store(target, into + 1, sign * load(source, at + 1))

    return pack_elements
