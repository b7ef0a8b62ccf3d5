"""How a block of threads brings a stripe of A or B (`smem_tile`) into shared memory.

It comes by asynchronous copies, or through registers: by vectors where the source is aligned for them, else
by single elements.
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

SECTOR = 32  # bytes of memory that are brought at least
THREADS = 1024  # of a block at most
UNROLLED = 4  # copies of a thread that stand one after the other where the text shall be small


def loaders(stripe: SmemTile, stages: int, shared: bool) -> SimpleNamespace:
    """``vectors(shared, staged, source, lead, t, extent, depth)``, ``vectors_edge`` (masked), the same of
    `elements`, ``finish``, and ``is_aligned(source, lead)``.

    With one stage they load into registers and ``finish(shared, staged, t)`` stores them; with more
    they start asynchronous copies and there is nothing to finish. `extent` and `depth` are what is left of
    the matrix from the stripe's first element on; what lies beyond them becomes zero.

    `vectors` are for a source that is aligned for them, as all stripes of a matrix are, or none. Single
    elements do for any. `ONE_WAY`: both are the same.
    """
    asynchronous = stages > 1
    if not shared:
        return _one_way(device_function(_skip_start), device_function(_skip_finish))
    if stripe.packed and asynchronous:
        return _one_way(packed_copier(stripe), device_function(_skip_finish))
    if stripe.packed:
        copy = within_tile(stripe, _register_loader(stripe, stripe.vec, masked=False))
        return _one_way(copy, _shared_storer(stripe))
    vectors, elements = _both_ways(stripe, asynchronous, masked=False)
    vectors_edge, elements_edge = _both_ways(stripe, asynchronous, masked=True)
    ONE_WAY = vectors is elements
    return SimpleNamespace(
        vectors=vectors,
        vectors_edge=vectors_edge,
        elements=elements,
        elements_edge=elements_edge,
        finish=device_function(_skip_finish) if asynchronous else _shared_storer(stripe),
        is_aligned=device_function(_always) if ONE_WAY else _alignment(stripe, asynchronous),
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


def _both_ways(stripe: SmemTile, asynchronous: bool, masked: bool):
    """Copies by vectors, and by single elements.

    Asynchronous copies of doubles whose lines do not begin with sectors of memory are faster through the L1
    cache, which those of single elements pass. The masks of loads into registers are those of elements.
    Elements of 16 bytes are vectors, wherever they lie: both are the same.
    """
    single = replace(stripe, vec=1)
    if asynchronous:
        vectors = _cp_async_copier(stripe, masked)
        elements = vectors if single == stripe else _cp_async_copier(single, masked, True)
    elif masked:
        vectors = elements = _register_loader(stripe, 1, masked)
    else:
        vectors = _register_loader(stripe, stripe.vec, masked)
        elements = vectors if stripe.vec == 1 else _register_loader(stripe, 1, masked)
    if elements is vectors:
        return vectors, vectors
    int32, opaque = ptx.types.int32, ptx.opaque

    @device_function
    def start(shared, staged, source, lead, t, extent, depth):
        # addresses made beforehand would take registers all the time; what is not negative is divided by
        # a shift
        t = int32(opaque(int32(t)) & (THREADS - 1))
        elements(shared, staged, source, opaque(lead), t, extent, depth)

    return vectors, start


def _alignment(stripe: SmemTile, asynchronous: bool):
    """``is_aligned(source, lead)``: whether vectors may be copied from there, and from all stripes after it.

    Lines that begin with sectors of memory are asked for where that pays, and all stripes can.
    """
    size, along = stripe.dtype.itemsize, stripe.depth if stripe.k_major else stripe.blk
    wanted = SECTOR if asynchronous and stripe.dtype.real_size == 8 else stripe.load_bytes
    aligned_bytes = gcd(wanted, along * size)
    ELEMENTS, pointer_is = aligned_bytes // size, ptx.is_aligned(aligned_bytes // stripe.dtype.real_size)

    @device_function
    def is_aligned(source, lead):
        return pointer_is(source) & (lead & (ELEMENTS - 1) == 0)

    return is_aligned


def _always(source, lead):
    return True


def _skip_start(shared, staged, source, lead, t, extent, depth):
    pass


def _skip_finish(shared, staged, t):
    pass


def _cp_async_copier(stripe: SmemTile, masked: bool, small: bool = False):
    """Asynchronous copies; the masked one asks for fewer bytes, down to none, and zeros for the rest.

    Where they shall be `small`, many are a loop: unrolled, they take registers from what stands beside.
    """
    int32, int64, offset, opaque = ptx.types.int32, ptx.types.int64, ptx.offset, ptx.opaque
    copy = ptx.copy_async(stripe.load_bytes, stripe.cache_policy)
    DIM_X, DIM_Y, VEC, K_MAJOR = stripe.dim_x, stripe.dim_y, stripe.vec, stripe.k_major
    PARTS, SIZE, TRANSPOSES = stripe.dtype.reals_per_element, stripe.dtype.itemsize, stripe.transposes
    LEAD = stripe.lead * PARTS
    STEPS_X, STEPS_Y = stripe.major // (DIM_X * VEC), stripe.minor // DIM_Y
    IS_LOOP = small and STEPS_X * STEPS_Y > UNROLLED

    @device_function
    def start(shared, staged, source, lead, t, extent, depth):
        # what is left of the matrix from this thread's first element on: compared with constants, it costs
        # two registers, where each place would cost one
        major, minor = t % DIM_X * VEC, t // DIM_X
        majors, minors = (depth - major, extent - minor) if K_MAJOR else (extent - major, depth - minor)
        majors, minors = int32(majors), int32(minors)
        line = offset(source, (int64(minor) * lead + major) * PARTS)
        place = offset(shared, major * LEAD + minor * PARTS if TRANSPOSES else minor * LEAD + major * PARTS)
        for y in range(opaque(int32(STEPS_Y)) if IS_LOOP else STEPS_Y):
            for x in range(STEPS_X):
                along, across = x * DIM_X * VEC, y * DIM_Y
                step = along * LEAD + across * PARTS if TRANSPOSES else across * LEAD + along * PARTS
                valid = VEC
                if masked:
                    valid = min(max(majors - along, 0), VEC) if across < minors else 0
                copy(place, step, line, along * PARTS, int32(valid * SIZE))
            line = offset(line, DIM_Y * lead * PARTS)

    return start


def _register_loader(stripe: SmemTile, width: int, masked: bool):
    """Loads of `width` elements into registers, which are inside or outside as a whole."""
    int32, int64, offset = ptx.types.int32, ptx.types.int64, ptx.offset
    PARTS = stripe.dtype.reals_per_element
    read = ptx.load_global(width * PARTS, stripe.read_only)
    DIM_X, DIM_Y, VEC, K_MAJOR = stripe.dim_x, stripe.dim_y, stripe.vec, stripe.k_major
    STEPS_X, STEPS_Y = stripe.major // (DIM_X * VEC), stripe.minor // DIM_Y

    @device_function
    def start(shared, staged, source, lead, t, extent, depth):
        major, minor = t % DIM_X * VEC, t // DIM_X
        majors, minors = (depth - major, extent - minor) if K_MAJOR else (extent - major, depth - minor)
        majors, minors = int32(majors), int32(minors)
        line = offset(source, (int64(minor) * lead + major) * PARTS)
        for y in range(STEPS_Y):
            for x in range(STEPS_X):
                along, across = x * DIM_X * VEC, y * DIM_Y
                for first in range(along, along + VEC, width):
                    ok = (first < majors) & (across < minors) if masked else True
                    read(staged, ((y * STEPS_X + x) * VEC + first - along) * PARTS, line, first * PARTS, ok)
            line = offset(line, DIM_Y * lead * PARTS)

    return start


def _shared_storer(stripe: SmemTile):
    """Registers to shared memory, transposed or not."""
    PARTS = stripe.dtype.reals_per_element
    DIM_X, DIM_Y, VEC, TRANSPOSES = stripe.dim_x, stripe.dim_y, stripe.vec, stripe.transposes
    LEAD = stripe.lead * PARTS
    STEPS_X, STEPS_Y = stripe.major // (DIM_X * VEC), stripe.minor // DIM_Y
    PIECES, PIECE = (VEC, PARTS) if TRANSPOSES else (1, VEC * PARTS)
    write = ptx.store_shared(PIECE)

    @device_function
    def finish(shared, staged, t):
        for y in range(STEPS_Y):
            for x in range(STEPS_X):
                major, minor = (t % DIM_X + x * DIM_X) * VEC, t // DIM_X + y * DIM_Y
                place = major * LEAD + minor * PARTS if TRANSPOSES else minor * LEAD + major * PARTS
                for piece in range(PIECES):
                    write(shared, place + piece * LEAD, staged, ((y * STEPS_X + x) * PIECES + piece) * PIECE)

    return finish
