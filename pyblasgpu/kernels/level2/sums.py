"""Sums of a vector over threads and blocks: always in the same order."""

from __future__ import annotations

from typing import Any

from ...gpu.backend import cuda, device_function, ptx, unrolled
from ...types import Dtype

__all__ = ["slot_adder", "tree_adder", "writer"]

UNROLL = 8  # partial sums under way at a time


def tree_adder(facts: Dtype, lines: int, count: int, threads: int) -> Any:
    """``add(sums, t)``: ``sums[i] += sums[i + LD] + ...`` of `lines` lines of `count` elements each.

    Lines are ``count | 1`` elements apart; `lines` is a power of two. It begins and ends with a barrier.
    """
    SIZE, LD = count * facts.reals_per_element, (count | 1) * facts.reals_per_element
    LINES, THREADS, int32 = lines, threads, ptx.types.int32

    @device_function
    def add(sums, t):
        cuda.syncthreads()
        half = int32(LINES // 2)
        while half > 0:
            for e in range(t, half * SIZE, THREADS):
                at = e // SIZE * LD + e % SIZE
                sums[at] += sums[at + half * LD]
            cuda.syncthreads()
            half = int32(half // 2)

    return add


def slot_adder(facts: Dtype) -> Any:
    """``add(total, prefetched, w, ldw, begin, end)``: ``total += w[begin * ldw] + ... + w[(end - 1) * ldw]``.

    `total` is one element, `prefetched` holds ``UNROLL`` of them; `w` is read real by real.
    """
    REALS, load, int32 = facts.reals_per_element, ptx.load_global(1, False), ptx.types.int32
    offset = ptx.offset

    @device_function
    def fetch(u, prefetched, w, ldw, left):
        for part in range(REALS):
            load(prefetched, u * REALS + part, w, u * ldw * REALS + part, u < left)

    @device_function
    def add_one(u, total, prefetched):
        for part in range(REALS):
            total[part] += prefetched[u * REALS + part]

    fetch_all, add_all = unrolled(UNROLL, fetch), unrolled(UNROLL, add_one)

    @device_function
    def add(total, prefetched, w, ldw, begin, end):
        w, left = offset(w, begin * ldw * REALS), int32(end - begin)
        while left > 0:
            fetch_all(0, prefetched, w, ldw, left)
            add_all(0, total, prefetched)
            w, left = offset(w, UNROLL * ldw * REALS), int32(left - UNROLL)

    return add


def writer(facts: Dtype) -> Any:
    """``write(y, old, re, im, reads, alpha, alpha_i, beta, beta_i)``: y[0] := alpha (re, im) + beta y[0].

    `old` holds an element; y is read where it `reads`.
    """
    REALS, COMPLEX, load, store = (
        facts.reals_per_element,
        facts.is_complex,
        ptx.load_global(1, False),
        ptx.store_global,
    )

    @device_function
    def write(y, old, re, im, reads, alpha, alpha_i, beta, beta_i):
        for part in range(REALS):
            load(old, part, y, part, reads)
        if COMPLEX:
            store(y, 0, alpha * re - alpha_i * im + (beta * old[0] - beta_i * old[1]), True)
            store(y, 1, alpha * im + alpha_i * re + (beta * old[1] + beta_i * old[0]), True)
        else:
            store(y, 0, alpha * re + beta * old[0], True)

    return write
