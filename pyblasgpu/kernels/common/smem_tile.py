"""How a block of threads brings one stripe of A or B, BLK_K deep, into shared memory.

In shared memory a stripe is [k][m] (or [k][n]), rows of ``lead`` elements, so that the innermost loop does
not know how the operand lies in global memory: a stripe that is contiguous along k is transposed on the way.
Or, with `keeps_k_major`, such a stripe stays [m][k], for who reads single elements, or some along k.

A stripe of a packed operand (`packed_tile`) lies in global memory as it shall in shared memory, or row by
row, with its padding and zeros where the matrix has ended: nothing is masked.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import SimpleNamespace

from ...errors import require
from ...gpu.backend import device_function, ptx
from ...types import Dtype
from ..copy.packing import CBL
from .packed_tile import RUN, packed_copier, packed_iterator, within_tile

__all__ = ["RUN", "SmemTile", "l2_prefetcher", "loaders", "tile_iterator"]

SECTOR = 32  # bytes of memory that are brought at least
LINE = 128  # bytes of memory that L2 is asked for at once


@dataclass(frozen=True)
class SmemTile:
    """The shape of a stripe and of the threads that load it.

    Attributes
    ----------
    dtype : Dtype
    blk, depth : int
        Extent along m or n, and along k.
    dim_x, dim_y : int
        Threads along the dimension that is contiguous in memory, and along the other.
    vec : int
        Elements of one load.
    pad : int
        Elements added to a row in shared memory.
    k_major : bool
        Whether memory is contiguous along k.
    keeps_k_major : bool
        Whether a stripe that is contiguous along k stays so.
    packed : bool
        Whether the operand is packed, in tiles and stripes like these, rows of `lead` elements.
    packing : int
        How it is packed then: ROW, CBL or RBL of `packing`.
    through_l1 : bool
        Whether asynchronous copies of 16 bytes pass through the L1 cache.
    read_only : bool
        Whether loads through registers take the read-only path.
    """

    dtype: Dtype
    blk: int
    depth: int
    dim_x: int
    dim_y: int
    vec: int
    pad: int
    k_major: bool
    keeps_k_major: bool = False
    packed: bool = False
    through_l1: bool = False
    read_only: bool = False
    packing: int = CBL

    @property
    def is_kept(self) -> bool:
        """Whether it is contiguous along k, and stays so."""
        return self.k_major and self.keeps_k_major

    @property
    def transposes(self) -> bool:
        """Whether the contiguous dimension changes on the way."""
        return self.k_major and not self.keeps_k_major

    @property
    def cache_policy(self) -> str:
        """PTX's cache policy of asynchronous copies."""
        return "ca" if self.through_l1 else "cg"

    @property
    def load_bytes(self) -> int:
        """Bytes of one load."""
        return self.vec * self.dtype.itemsize

    @property
    def major(self) -> int:
        """Extent along the contiguous dimension."""
        return self.depth if self.k_major else self.blk

    @property
    def minor(self) -> int:
        return self.blk if self.k_major else self.depth

    @property
    def rows(self) -> int:
        """Rows in shared memory."""
        return self.blk if self.is_kept else self.depth

    @property
    def lead(self) -> int:
        """Elements from one row to the next in shared memory."""
        return self.blk * self.depth // self.rows + self.pad

    @property
    def step(self) -> int:
        """Elements from one row of A, one column of B, to the next in shared memory."""
        return self.lead if self.is_kept else 1

    @property
    def step_k(self) -> int:
        """Elements from one k to the next in shared memory."""
        return 1 if self.is_kept else self.lead

    @property
    def reals(self) -> int:
        """Reals it takes in shared memory, a multiple of 16 bytes."""
        quantum = 16 // self.dtype.real_size
        return -(-self.lead * self.rows * self.dtype.reals_per_element // quantum) * quantum

    def staged(self, threads: int) -> int:
        """Reals of the stripe that one thread holds while it is staged through registers."""
        return max(self.blk * self.depth * self.dtype.reals_per_element // threads, 1)

    def check(self, name: str, threads: int, asynchronous: bool) -> None:
        """Raise `ConfigError` where `threads` threads cannot load the stripe of operand `name`."""
        x, y, vec = f"DIM_X{name}", f"DIM_Y{name}", f"VEC_{name}"
        require(
            self.dim_x * self.dim_y == threads,
            "load_grid",
            f"{x} * {y} == DIM_X * DIM_Y",
            **{x: self.dim_x, y: self.dim_y, "threads": threads},
        )
        if self.packed and asynchronous:
            return
        require(
            self.major % (self.dim_x * self.vec) == 0 and self.minor % self.dim_y == 0,
            "load_grid_tiles_stripe",
            f"major % ({x} * {vec}) == 0 and minor % {y} == 0",
            **{"major": self.major, "minor": self.minor, x: self.dim_x, y: self.dim_y, vec: self.vec},
        )
        require(
            self.load_bytes in (4, 8, 16),
            "load_bytes",
            f"{vec} * itemsize in (4, 8, 16)",
            **{vec: self.vec, "itemsize": self.dtype.itemsize},
        )
        require(
            self.transposes or self.lead % self.vec == 0,
            "row_aligned",
            f"(row + PAD_{name}) % {vec} == 0",
            **{"row": self.lead - self.pad, "PAD": self.pad, vec: self.vec},
        )
        require(
            not (asynchronous and self.transposes) or self.vec == 1,
            "async_transposes_by_element",
            f"stages == 1 or {vec} == 1 where the stripe is transposed",
            **{vec: self.vec},
        )

    def check_packed(self, name: str) -> None:
        """Raise `ConfigError` where rows of operand `name` are not packed in whole runs."""
        for what, extent in ((f"BLK of {name}", self.blk), (f"PAD_{name}", self.pad)):
            require(
                extent * self.dtype.itemsize % RUN == 0,
                "packed_runs",
                f"{what} * itemsize % {RUN} == 0",
                **{what: extent, "itemsize": self.dtype.itemsize},
            )


def tile_iterator(stripe: SmemTile) -> SimpleNamespace:
    """``begin(first, along, lead)``: elements from a matrix's beginning to the stripe of its tile that begins
    at `first` along m or n and at `along` along k; ``step(lead)``: elements from a stripe to the next.

    `lead` is int64: the matrix's leading stride, of a packed one `Packing.stride`.
    """
    if stripe.packed:
        return packed_iterator(stripe)
    int64, DEPTH, K_MAJOR = ptx.types.int64, stripe.depth, stripe.k_major

    @device_function
    def begin(first, along, lead):
        return first * lead + along if K_MAJOR else first + along * lead

    @device_function
    def step(lead):
        return int64(DEPTH) if K_MAJOR else DEPTH * lead

    return SimpleNamespace(begin=begin, step=step)


def l2_prefetcher(stripe: SmemTile, threads: int):
    """``ask(source, lead, t, extent, depth)``: L2 for a stripe that will be loaded before long."""
    K_MAJOR, PARTS, ELEMENTS = stripe.k_major, stripe.dtype.reals_per_element, LINE // stripe.dtype.itemsize
    ACROSS, quotient, prefetch = -(-stripe.major // ELEMENTS), ptx.quotient, ptx.prefetch
    LINES, int32, int64 = ACROSS * stripe.minor, ptx.types.int32, ptx.types.int64

    @device_function
    def ask(source, lead, t, extent, depth):
        majors, minors = (depth, extent) if K_MAJOR else (extent, depth)
        line = int32(t)
        while line < LINES:
            minor = quotient(line, ACROSS)
            major = int32((line - minor * ACROSS) * ELEMENTS)
            is_there = (major < majors) & (minor < minors)
            prefetch(source, (int64(minor) * lead + major) * PARTS, is_there)
            line = int32(line + threads)

    return ask


def loaders(stripe: SmemTile, stages: int, shared: bool) -> SimpleNamespace:
    """``start(shared, staged, source, lead, t, extent, depth)``, ``start_edge`` (masked), ``finish``.

    With one stage `start` loads into registers and ``finish(shared, staged, t)`` stores them; with more
    it starts asynchronous copies and there is nothing to finish. `extent` and `depth` are what is left of
    the matrix from the stripe's first element on; what lies beyond them becomes zero.
    """
    skip_start, skip_finish = device_function(_skip_start), device_function(_skip_finish)
    asynchronous = stages > 1
    if not shared:
        return SimpleNamespace(start=skip_start, start_edge=skip_start, finish=skip_finish)
    if stripe.packed:
        of_thread = within_tile(stripe, _register_loader(stripe, stripe.vec, masked=False))
        return SimpleNamespace(
            start=packed_copier(stripe) if asynchronous else of_thread,
            start_edge=skip_start,
            finish=skip_finish if asynchronous else _shared_storer(stripe),
        )
    return SimpleNamespace(
        start=_by_alignment(stripe, asynchronous, masked=False),
        start_edge=_by_alignment(stripe, asynchronous, masked=True),
        finish=skip_finish if asynchronous else _shared_storer(stripe),
    )


def _by_alignment(stripe: SmemTile, asynchronous: bool, masked: bool):
    """``start(...)`` by vectors where the source is aligned for them, else by single elements.

    Asynchronous copies of doubles whose lines do not begin with sectors of memory are faster through the L1
    cache, which those of single elements pass. The masks of loads into registers are those of elements.
    """
    size = stripe.dtype.itemsize
    single = replace(stripe, vec=1, through_l1=stripe.through_l1 or (asynchronous and size == RUN))
    if asynchronous:
        vectors, elements = (_cp_async_copier(each, masked) for each in (stripe, single))
    else:
        vectors, elements = (_register_loader(stripe, width, masked) for width in (stripe.vec, 1))
        if masked:
            return elements
    if single == stripe:
        return vectors
    aligned_bytes = SECTOR if asynchronous and stripe.dtype.real_size == 8 else stripe.load_bytes
    ELEMENTS, is_aligned = aligned_bytes // size, ptx.is_aligned(aligned_bytes // stripe.dtype.real_size)
    int32, opaque = ptx.types.int32, ptx.opaque

    @device_function
    def start(shared, staged, source, lead, t, extent, depth):
        if is_aligned(source) and lead & (ELEMENTS - 1) == 0:
            vectors(shared, staged, source, lead, t, extent, depth)
        else:
            # addresses made beforehand would take registers all the time
            elements(shared, staged, source, opaque(lead), opaque(int32(t)), extent, depth)

    return start


def _skip_start(shared, staged, source, lead, t, extent, depth):
    pass


def _skip_finish(shared, staged, t):
    pass


def _cp_async_copier(stripe: SmemTile, masked: bool):
    """Asynchronous copies; the masked one asks for fewer bytes, down to none, and zeros for the rest."""
    int32, int64, offset = ptx.types.int32, ptx.types.int64, ptx.offset
    copy = ptx.copy_async(stripe.load_bytes, stripe.cache_policy)
    DIM_X, DIM_Y, VEC, K_MAJOR = stripe.dim_x, stripe.dim_y, stripe.vec, stripe.k_major
    PARTS = stripe.dtype.reals_per_element
    LEAD, SIZE = stripe.lead * stripe.dtype.reals_per_element, stripe.dtype.itemsize
    TRANSPOSES = stripe.transposes
    STEPS_X, STEPS_Y = stripe.major // (DIM_X * VEC), stripe.minor // DIM_Y

    @device_function
    def start(shared, staged, source, lead, t, extent, depth):
        # what is left of the matrix from this thread's first element on: compared with constants, it costs
        # two registers, where each place would cost one
        major, minor = t % DIM_X * VEC, t // DIM_X
        majors, minors = (depth - major, extent - minor) if K_MAJOR else (extent - major, depth - minor)
        majors, minors = int32(majors), int32(minors)
        line = offset(source, (int64(minor) * lead + major) * PARTS)
        place = major * LEAD + minor * PARTS if TRANSPOSES else minor * LEAD + major * PARTS
        for y in range(STEPS_Y):
            for x in range(STEPS_X):
                along, across = x * DIM_X * VEC, y * DIM_Y
                step = along * LEAD + across * PARTS if TRANSPOSES else across * LEAD + along * PARTS
                valid = VEC
                if masked:
                    valid = min(max(majors - along, 0), VEC) if across < minors else 0
                copy(shared, place + step, line, along * PARTS, int32(valid * SIZE))
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
