"""The elements of a tile that a thread has: 16 bytes at a time, or real by real.

Where elements are neighbours and aligned, thread t has `VEC` neighbours of each `DIM * VEC`. What remains of
the last tile, less than `VEC` elements, goes to the first threads, one each. Elsewhere thread t has one
element of each `DIM`, which any increment and alignment allow.
"""

from __future__ import annotations

from types import SimpleNamespace

from ...gpu.backend import device_function, ptx, unrolled
from .config import ACCESS, VectorConfig

__all__ = ["elements"]


def elements(config: VectorConfig, wide: bool) -> SimpleNamespace:
    """Return a thread's reads and writes of its elements of a tile, by 16 bytes if `wide`.

    Attributes
    ----------
    count : int
        Elements of a thread, those included that may be beyond the end.
    read : device function
        ``read(values, p, inc, pair, t, left)``: of the tile at `p`, whose `left` elements are `inc` apart;
        beyond them are zeros. With a `pair` of 1 two neighbours are one element of a kernel of reals, and
        `inc` is from the first of a pair to the first of the next.
    write : device function
        ``write(values, p, inc, pair, t, left)``: the same elements, written.
    index : device function
        ``index(e, t, left)``: which element of the tile number `e` of a thread is.
    """
    return _wide(config) if wide else _single(config)


def _single(config: VectorConfig) -> SimpleNamespace:
    DIM, COUNT, REALS = config.DIM, config.per_thread, config.dtype_facts.reals_per_element
    read_all, write_all = _accesses(REALS, REALS, 1, DIM, COUNT, 0)

    @device_function
    def read(values, p, inc, pair, t, left):
        read_all(0, values, p, inc, pair, t, left)

    @device_function
    def write(values, p, inc, pair, t, left):
        write_all(0, values, p, inc, pair, t, left)

    @device_function
    def index(e, t, left):
        return t + e * DIM

    return SimpleNamespace(count=COUNT, read=read, write=write, index=index)


def _wide(config: VectorConfig) -> SimpleNamespace:
    facts, DIM, VEC, COUNT = config.dtype_facts, config.DIM, config.VEC, config.per_thread
    REALS, WIDTH, MASK = facts.reals_per_element, ACCESS // facts.real_size, -VEC
    read_all, write_all = _accesses(REALS, WIDTH, WIDTH, DIM * VEC, config.UNROLL, 0)
    read_rest, write_rest = _accesses(REALS, REALS, 1, DIM, 1, COUNT * REALS)
    int32, int64 = ptx.types.int32, ptx.types.int64

    @device_function
    def read(values, p, inc, pair, t, left):
        in_vectors = int32(left & MASK)
        read_all(0, values, p, int64(1), int32(0), int32(t * VEC), in_vectors)
        if VEC > 1:
            read_rest(0, values, p, int64(1), int32(0), int32(in_vectors + t), left)

    @device_function
    def write(values, p, inc, pair, t, left):
        in_vectors = int32(left & MASK)
        write_all(0, values, p, int64(1), int32(0), int32(t * VEC), in_vectors)
        if VEC > 1:
            write_rest(0, values, p, int64(1), int32(0), int32(in_vectors + t), left)

    @device_function
    def index(e, t, left):
        if e < COUNT:
            return e // VEC * (DIM * VEC) + t * VEC + e % VEC
        return (left & MASK) + t

    return SimpleNamespace(count=COUNT + (1 if VEC > 1 else 0), read=read, write=write, index=index)


def _accesses(REALS: int, ACCESS: int, width: int, STEP: int, count: int, FIRST: int):
    """``read(0, values, p, inc, pair, i, left)``, and the same to write: `count` accesses of `ACCESS` reals.

    They move `width` reals at a time. The first is at element `i`, the next ones `STEP` elements on; in
    `values` they are from `FIRST` on.
    """
    load, store = ptx.load_global(width, False), ptx.store_global_vector(width)

    @device_function
    def element_offset(u, i, inc, pair):
        if REALS == 1:  # STEP is even
            return (i >> pair) * inc + (i & pair) + u * ((STEP >> pair) * inc)
        return (i + u * STEP) * inc * REALS

    @device_function
    def read_one(u, values, p, inc, pair, i, left):
        at = element_offset(u, i, inc, pair)
        for part in range(0, ACCESS, width):
            load(values, FIRST + u * ACCESS + part, p, at + part, i + u * STEP < left)

    @device_function
    def write_one(u, values, p, inc, pair, i, left):
        at = element_offset(u, i, inc, pair)
        for part in range(0, ACCESS, width):
            store(p, at + part, values, FIRST + u * ACCESS + part, i + u * STEP < left)

    return unrolled(count, read_one), unrolled(count, write_one)
