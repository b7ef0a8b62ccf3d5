"""Sum of the slices of k that a block's groups of threads have multiplied, through shared memory.

A small tile of C leaves each warp a small part of it, which reads more of shared memory for each FMA, or
leaves few warps. With slices of k (warp-level partitions along k in CUTLASS) each group of threads multiplies
its part of every k-tile, and has sums of the whole tile. The first group adds up all of these, in order.
"""

from __future__ import annotations

from typing import Any

from ...gpu.backend import cuda, device_function, ptx, unrolled
from .config import GemmConfig
from .product import Product

__all__ = ["sum_completer"]

VECTOR = 16  # bytes of a store or load of shared memory


def sum_completer(config: GemmConfig, product: Product) -> Any:
    """``complete(acc, shared, t)``: the sums of all slices of k to the threads of the first, then elements of
    sums; `shared` is where k-tiles are no longer read once all threads are here.

    A persistent block has shared memory for slices alone, before which it has met since the last ones.
    """
    SLICES, IS_SHARED, COMBINED = config.SLICES_K, not config.persistent, product.combine is not None
    add, combine = _slice_adder(config), product.combine

    @device_function
    def complete(acc, shared, t):
        if SLICES > 1:
            if IS_SHARED:
                cuda.syncthreads()
            add(acc, shared, t)
        if COMBINED:
            combine(0, acc)

    return complete


def _slice_adder(config: GemmConfig) -> Any:
    """``add(acc, shared, t)``: the sums of all slices of k to those of the first; `shared` is free for
    ``config.slice_reals``.

    All threads meet within, and the first slice's read `shared` after that.
    """
    real, SLICES, GROUP, SUMS = (
        ptx.REALS[config.dtype_facts.real],
        config.SLICES_K,
        config.slice_threads,
        config.sums,
    )
    WIDTH = next(x for x in (VECTOR // config.dtype_facts.real_size, 2, 1) if SUMS % x == 0)
    SLICE, NEXT, offset = SUMS * GROUP, GROUP * WIDTH, ptx.offset
    store, load = ptx.store_shared(WIDTH), ptx.load_shared(WIDTH)

    @device_function
    def put(v, acc, mine):
        store(mine, v * NEXT, acc, v * WIDTH)

    @device_function
    def add_one(i, v, acc, got):
        acc[v * WIDTH + i] += got[i]

    add_vector = unrolled(WIDTH, add_one)

    @device_function
    def take(v, acc, got, mine):
        load(got, 0, mine, v * NEXT)
        add_vector(0, v, acc, got)

    put_all, take_all = unrolled(SUMS // WIDTH, put), unrolled(SUMS // WIDTH, take)

    @device_function
    def add(acc, shared, t):
        if t >= GROUP:
            put_all(0, acc, offset(shared, (t // GROUP - 1) * SLICE + t % GROUP * WIDTH))
        cuda.syncthreads()
        if t < GROUP:
            got = cuda.local.array(WIDTH, real)
            for other in range(SLICES - 1):
                take_all(0, acc, got, offset(shared, other * SLICE + t * WIDTH))

    return add
