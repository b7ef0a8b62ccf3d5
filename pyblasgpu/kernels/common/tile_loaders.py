"""Loads of a k-tile of A or B (`smem_tile`) into shared memory by a block of threads.

It is loaded by asynchronous copies, or through registers: by vectors where the source is aligned for them,
else by single elements.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import gcd
from types import SimpleNamespace

from ...gpu.backend import device_function, ptx
from .packed_tile import packed_copier, within_tile
from .smem_tile import SmemTile

__all__ = ["loaders"]

SECTOR = 32  # bytes of the smallest access to memory
THREADS = 1024  # of a block at most
UNROLLED = 4  # copies of a thread that are unrolled where the code shall be small


def loaders(smem_tile: SmemTile, stages: int, shared: bool) -> SimpleNamespace:
    """``vectors(shared, staged, source, ld, t, extent, depth)``, ``vectors_edge`` (masked), the same of
    `elements`, ``finish``, and ``is_aligned(source, ld)``.

    With one stage they load into registers and ``finish(shared, staged, t)`` stores them; with more they
    start asynchronous copies and there is nothing to finish. `extent` and `depth` are what is left of the
    matrix from the k-tile's first element on; what is beyond them becomes zero.

    `vectors` are for a source that is aligned for them, as all k-tiles of a matrix are, or none. Single
    elements do for any. `ONE_WAY`: both are the same.
    """
    asynchronous = stages > 1
    if not shared:
        return _one_way(device_function(_skip_start), device_function(_skip_finish))
    if smem_tile.packed and asynchronous:
        return _one_way(packed_copier(smem_tile), device_function(_skip_finish))
    if smem_tile.packed:
        copy = within_tile(smem_tile, _register_loader(smem_tile, smem_tile.vec, masked=False))
        return _one_way(copy, _shared_storer(smem_tile))
    vectors, elements = _both_ways(smem_tile, asynchronous, masked=False)
    vectors_edge, elements_edge = _both_ways(smem_tile, asynchronous, masked=True)
    ONE_WAY = vectors is elements
    return SimpleNamespace(
        vectors=vectors,
        vectors_edge=vectors_edge,
        elements=elements,
        elements_edge=elements_edge,
        finish=device_function(_skip_finish) if asynchronous else _shared_storer(smem_tile),
        is_aligned=device_function(_always) if ONE_WAY else _alignment(smem_tile, asynchronous),
        ONE_WAY=ONE_WAY,
    )


def _one_way(copy: Callable, finish: Callable) -> SimpleNamespace:
    """The `loaders` that know one kind of copies, which need no mask."""
    skip = device_function(_skip_start)
    return SimpleNamespace(
        vectors=copy,
        vectors_edge=skip,
        elements=copy,
        elements_edge=skip,
        finish=finish,
        is_aligned=device_function(_always),
        ONE_WAY=True,
    )


def _both_ways(smem_tile: SmemTile, asynchronous: bool, masked: bool):
    """Copies by vectors, and by single elements.

    Asynchronous copies of doubles whose lines do not begin with sectors of memory are faster through the L1
    cache, which those of single elements pass. The masks of loads into registers are those of elements.
    Elements of 16 bytes are vectors, at any address: both are the same.
    """
    single = replace(smem_tile, vec=1)
    if asynchronous:
        vectors = _cp_async_copier(smem_tile, masked)
        elements = vectors if single == smem_tile else _cp_async_copier(single, masked, True)
    elif masked:
        vectors = elements = _register_loader(smem_tile, 1, masked)
    else:
        vectors = _register_loader(smem_tile, smem_tile.vec, masked)
        elements = vectors if smem_tile.vec == 1 else _register_loader(smem_tile, 1, masked)
    if elements is vectors:
        return vectors, vectors
    int32, opaque = ptx.types.int32, ptx.opaque

    @device_function
    def start(shared, staged, source, ld, t, extent, depth):
        # addresses made beforehand would take registers all the time; what is not negative is divided by
        # a shift
        t = int32(opaque(int32(t)) & (THREADS - 1))
        elements(shared, staged, source, opaque(ld), t, extent, depth)

    return vectors, start


def _alignment(smem_tile: SmemTile, asynchronous: bool):
    """``is_aligned(source, ld)``: whether vectors may be copied from there, and from all k-tiles after it.

    Lines that begin with sectors of memory are required where that pays, and all k-tiles can.
    """
    size, row_length = smem_tile.dtype.itemsize, smem_tile.depth if smem_tile.k_major else smem_tile.blk
    wanted = SECTOR if asynchronous and smem_tile.dtype.real_size == 8 else smem_tile.load_bytes
    aligned_bytes = gcd(wanted, row_length * size)
    ELEMENTS, pointer_is = aligned_bytes // size, ptx.is_aligned(aligned_bytes // smem_tile.dtype.real_size)

    @device_function
    def is_aligned(source, ld):
        return pointer_is(source) & (ld & (ELEMENTS - 1) == 0)

    return is_aligned


def _always(source, ld):
    return True


def _skip_start(shared, staged, source, ld, t, extent, depth):
    pass


def _skip_finish(shared, staged, t):
    pass


def _cp_async_copier(smem_tile: SmemTile, masked: bool, small: bool = False):
    """Asynchronous copies; the masked one copies fewer bytes, down to none, and zeros for the rest.

    Where they shall be `small`, many are a loop: unrolled, they take registers from the code around them.
    """
    int32, int64, offset, opaque = ptx.types.int32, ptx.types.int64, ptx.offset, ptx.opaque
    copy = ptx.copy_async(smem_tile.load_bytes, smem_tile.cache_policy)
    DIM_X, DIM_Y, VEC, K_MAJOR = smem_tile.dim_x, smem_tile.dim_y, smem_tile.vec, smem_tile.k_major
    REALS, SIZE, TRANSPOSES = (
        smem_tile.dtype.reals_per_element,
        smem_tile.dtype.itemsize,
        smem_tile.transposes,
    )
    LD = smem_tile.ld * REALS
    STEPS_X, STEPS_Y = smem_tile.major // (DIM_X * VEC), smem_tile.minor // DIM_Y
    IS_LOOP = small and STEPS_X * STEPS_Y > UNROLLED

    @device_function
    def start(shared, staged, source, ld, t, extent, depth):
        # what is left of the matrix from this thread's first element on: compared with constants, it costs
        # two registers, where each address would cost one
        major, minor = t % DIM_X * VEC, t // DIM_X
        majors, minors = (depth - major, extent - minor) if K_MAJOR else (extent - major, depth - minor)
        majors, minors = int32(majors), int32(minors)
        line = offset(source, (int64(minor) * ld + major) * REALS)
        target = offset(shared, major * LD + minor * REALS if TRANSPOSES else minor * LD + major * REALS)
        for y in range(opaque(int32(STEPS_Y)) if IS_LOOP else STEPS_Y):
            for x in range(STEPS_X):
                major0, minor0 = x * DIM_X * VEC, y * DIM_Y
                step = major0 * LD + minor0 * REALS if TRANSPOSES else minor0 * LD + major0 * REALS
                valid = VEC
                if masked:
                    valid = min(max(majors - major0, 0), VEC) if minor0 < minors else 0
                copy(target, step, line, major0 * REALS, int32(valid * SIZE))
            line = offset(line, DIM_Y * ld * REALS)

    return start


def _register_loader(smem_tile: SmemTile, width: int, masked: bool):
    """Loads of `width` elements into registers, which are inside or outside as a whole."""
    int32, int64, offset = ptx.types.int32, ptx.types.int64, ptx.offset
    REALS = smem_tile.dtype.reals_per_element
    read = ptx.load_global(width * REALS, smem_tile.read_only)
    DIM_X, DIM_Y, VEC, K_MAJOR = smem_tile.dim_x, smem_tile.dim_y, smem_tile.vec, smem_tile.k_major
    STEPS_X, STEPS_Y = smem_tile.major // (DIM_X * VEC), smem_tile.minor // DIM_Y

    @device_function
    def start(shared, staged, source, ld, t, extent, depth):
        major, minor = t % DIM_X * VEC, t // DIM_X
        majors, minors = (depth - major, extent - minor) if K_MAJOR else (extent - major, depth - minor)
        majors, minors = int32(majors), int32(minors)
        line = offset(source, (int64(minor) * ld + major) * REALS)
        for y in range(STEPS_Y):
            for x in range(STEPS_X):
                major0, minor0 = x * DIM_X * VEC, y * DIM_Y
                for first in range(major0, major0 + VEC, width):
                    ok = (first < majors) & (minor0 < minors) if masked else True
                    read(staged, ((y * STEPS_X + x) * VEC + first - major0) * REALS, line, first * REALS, ok)
            line = offset(line, DIM_Y * ld * REALS)

    return start


def _shared_storer(smem_tile: SmemTile):
    """Registers to shared memory, transposed or not."""
    REALS = smem_tile.dtype.reals_per_element
    DIM_X, DIM_Y, VEC, TRANSPOSES = smem_tile.dim_x, smem_tile.dim_y, smem_tile.vec, smem_tile.transposes
    LD = smem_tile.ld * REALS
    STEPS_X, STEPS_Y = smem_tile.major // (DIM_X * VEC), smem_tile.minor // DIM_Y
    STORES, STORE_REALS = (VEC, REALS) if TRANSPOSES else (1, VEC * REALS)
    write = ptx.store_shared(STORE_REALS)

    @device_function
    def finish(shared, staged, t):
        for y in range(STEPS_Y):
            for x in range(STEPS_X):
                major, minor = (t % DIM_X + x * DIM_X) * VEC, t // DIM_X + y * DIM_Y
                target = major * LD + minor * REALS if TRANSPOSES else minor * LD + major * REALS
                for e in range(STORES):
                    write(shared, target + e * LD, staged, ((y * STEPS_X + x) * STORES + e) * STORE_REALS)

    return finish
