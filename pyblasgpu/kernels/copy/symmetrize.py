"""``symmetrize``: C := W + W^T + beta * C in one triangle, or W + W^H + beta * C: the end of a SYR2K, HER2K.

With W = alpha A op(B) that is all of the routine but for one ordinary product: the other one is its mirror
image, of a Hermitian C with conj(alpha). W is dense, column-major, its columns at multiples of 16 bytes. A
block has a square tile of C, the same tile of W, and by way of shared memory the one across the diagonal, so
that both are read in the order of memory. C is written real by real, at any strides; it should be
column-major, as W is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ...errors import require
from ...gpu.backend import cuda, device_function, ptx, unrolled
from ...gpu.build.compile import KernelSource
from ...types import Region
from ..common.kernel_config import KernelConfig, require_warps
from ..common.options import HERMITIAN
from ..common.parameters import parameters
from ..common.region import contains
from ..common.tile_schedule import tile_count
from ..common.tile_scheduler import tile_origins

__all__ = ["STEM", "Symmetrize", "source"]

STEM = "symmetrize"
PARAMETERS = parameters(
    "pointer: w, c",
    "int32: n, options",
    "int64: ldw, c_rs, c_cs, stride_w, stride_c",
    "real: beta, beta_i",
)


@dataclass(frozen=True)
class Symmetrize(KernelConfig):
    """Config of one `symmetrize` kernel.

    Attributes
    ----------
    BLK : int
        Rows and columns of the tile of a block.
    DIM : int
        Threads of a block.
    """

    BLK: int = 32
    DIM: int = 256

    STEM: ClassVar[str] = STEM
    RESIDENT: ClassVar[int] = 1024  # so that some write while others read

    def __post_init__(self):
        require_warps(DIM=self.DIM)
        require(
            self.BLK > 0 and self.DIM % self.BLK == 0 and self.BLK % self.LINES == 0,
            "threads_tile",
            "BLK > 0 and DIM % BLK == 0 and BLK % (DIM // BLK) == 0",
            BLK=self.BLK,
            DIM=self.DIM,
        )

    @property
    def LINES(self) -> int:
        """Columns of the tile that the threads have at a time."""
        return self.DIM // self.BLK

    @property
    def threads(self) -> int:
        return self.DIM

    @property
    def shared_bytes(self) -> int:
        """The tile across the diagonal, its columns padded by one element against bank conflicts."""
        return self.BLK * (self.BLK + 1) * self.dtype_facts.itemsize

    def grid(self, n: int, region: Region) -> int:
        """Blocks along x for a triangle of order `n`: the tiles that it meets."""
        return tile_count(self.BLK, self.BLK, n, n, region)


def source(config: Symmetrize) -> KernelSource:
    """The kernel of `config`.

    Kernel parameters
    -----------------
    w, c: pointer, W and C
    n: int32, order
    options: int32, C's triangle; a Hermitian one for W + W^H, with a real diagonal and beta
    ldw, c_rs, c_cs: int64, leading dimension of W, row and column stride of C (elements)
    stride_w, stride_c: int64, batch strides (elements)
    beta, beta_i: real, parts of beta; with 0 C is not read

    Grid: x ``config.grid(n, region)``, z the batch.
    """
    return KernelSource.of(config, PARAMETERS, lambda: _build(config))


def _mirror(config: Symmetrize):
    """``mirror(tile, w, ldw, lane, line, rows, cols)``: asynchronously, the tile across the diagonal from one
    of C of which `rows` and `cols` are left; ``tile[i * LD + j]`` is what C[i, j] needs of it.
    """
    facts = config.dtype_facts
    REALS, SIZE, BLK, LINES = facts.reals_per_element, facts.itemsize, config.BLK, config.LINES
    LD, int32, copy = BLK + 1, ptx.types.int32, ptx.copy_async(SIZE)

    @device_function
    def mirror(tile, w, ldw, lane, line, rows, cols):
        for first in range(0, BLK, LINES):
            i, j = line + first, lane
            ok = (i < rows) & (j < cols)
            copy(tile, (i * LD + j) * REALS, w, (i * ldw + j) * REALS, int32(SIZE if ok else 0))

    return mirror


def _fetcher(config: Symmetrize, wanted):
    """``fetch(0, own, old, w, c, ...)``: what a thread has of a tile of W, and of C where it `reads_c`."""
    REALS, LINES = config.dtype_facts.reals_per_element, config.LINES
    read, read_real = ptx.load_global(REALS, False), ptx.load_global(1, False)

    @device_function
    def fetch(x, own, old, w, c, ldw, c_rs, c_cs, lane, line, rows, cols, shift, options, reads_c):
        i, j = lane, line + x * LINES
        ok, at = wanted(i, j, rows, cols, shift, options), (i * c_rs + j * c_cs) * REALS
        read(own, x * REALS, w, (j * ldw + i) * REALS, ok)
        for part in range(REALS):
            read_real(old, x * REALS + part, c, at + part, ok & reads_c)

    return unrolled(config.BLK // LINES, fetch)


def _writer(config: Symmetrize, wanted):
    """``write(0, c, tile, other, own, old, ...)``: C := own + what is across the diagonal + beta old."""
    facts = config.dtype_facts
    real, REALS, COMPLEX = ptx.REALS[facts.real], facts.reals_per_element, facts.is_complex
    LINES, LD, load, store = (
        config.LINES,
        config.BLK + 1,
        ptx.load_shared(facts.reals_per_element),
        ptx.store_global,
    )

    @device_function
    def write(x, c, tile, other, own, old, c_rs, c_cs, lane, line, rows, cols, shift, options, beta, beta_i):
        i, j = lane, line + x * LINES
        ok, at = wanted(i, j, rows, cols, shift, options), (i * c_rs + j * c_cs) * REALS
        load(other, 0, tile, (i * LD + j) * REALS)
        re = own[x * REALS] + other[0]
        if not COMPLEX:
            store(c, at, re + beta * old[x], ok)
        elif options & HERMITIAN:  # beta is real: there is no 0 that could make NaN of an infinite C
            im = own[2 * x + 1] - other[1] + beta * old[2 * x + 1]
            store(c, at, re + beta * old[2 * x], ok)
            store(c, at + 1, real(0) if i + shift == j else im, ok)
        else:
            im = own[2 * x + 1] + other[1]
            store(c, at, re + (beta * old[2 * x] - beta_i * old[2 * x + 1]), ok)
            store(c, at + 1, im + (beta * old[2 * x + 1] + beta_i * old[2 * x]), ok)

    return unrolled(config.BLK // LINES, write)


def _build(config: Symmetrize):
    facts = config.dtype_facts
    real, REALS, BLK = ptx.REALS[facts.real], facts.reals_per_element, config.BLK
    int64, offset, shared_pointer = ptx.types.int64, ptx.offset, ptx.shared_pointer
    grid_dependency_wait = ptx.grid_dependency_wait
    MINE = BLK // config.LINES * REALS
    tile_origin, in_region, mirror = tile_origins(BLK, BLK, True), contains(True), _mirror(config)
    commit, wait = ptx.commit_async, ptx.wait_async(0)

    @device_function
    def wanted(i, j, rows, cols, shift, options):
        return (i < rows) & (j < cols) & in_region(i, j, shift, options)

    fetch, write = _fetcher(config, wanted), _writer(config, wanted)

    def symmetrize(w, c, n, options, ldw, c_rs, c_cs, stride_w, stride_c, beta, beta_i):
        # (1) the tile of this block
        lane, line = cuda.threadIdx.x % BLK, cuda.threadIdx.x // BLK
        tiles = (n + BLK - 1) // BLK
        row0, col0 = tile_origin(cuda.blockIdx.x, tiles, tiles, options)
        batch, rows, cols, shift = int64(cuda.blockIdx.z), n - row0, n - col0, row0 - col0
        here = offset(w, (batch * stride_w + col0 * ldw + row0) * REALS)
        across = offset(w, (batch * stride_w + row0 * ldw + col0) * REALS)
        c = offset(c, (batch * stride_c + row0 * c_rs + col0 * c_cs) * REALS)
        tile = shared_pointer(cuda.shared.array(0, real, alignment=16))
        own, old = cuda.local.array(MINE, real), cuda.local.array(MINE, real)
        other = cuda.local.array(REALS, real)
        reads_c = (beta != real(0)) | (beta_i != real(0))

        # (2) all that is added up is under way before the first of it is needed
        grid_dependency_wait()
        mirror(tile, across, ldw, lane, line, rows, cols)
        commit()
        fetch(0, own, old, here, c, ldw, c_rs, c_cs, lane, line, rows, cols, shift, options, reads_c)
        wait()
        cuda.syncthreads()

        # (3) C := W + W' + beta C
        write(0, c, tile, other, own, old, c_rs, c_cs, lane, line, rows, cols, shift, options, beta, beta_i)

    return symmetrize
