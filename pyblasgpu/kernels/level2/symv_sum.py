"""``symv_sum``: y := alpha times the sums that `symv` has left in slots, + beta y."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ...errors import require
from ...gpu.backend import cuda, ptx
from ...gpu.build.compile import KernelSource
from ..common.kernel_config import KernelConfig, require_warps
from ..common.parameters import parameters
from .sums import UNROLL, slot_adder, tree_adder, writer

__all__ = ["SymvSum", "source"]

PARAMETERS = parameters(
    "pointer: w, y",
    "int32: n, BLK, tiles, slots, upper",
    "int64: ldw, incy, stride_w, stride_y",
    "real: alpha, alpha_i, beta, beta_i",
)


@dataclass(frozen=True)
class SymvSum(KernelConfig):
    """Config of one `symv_sum` kernel.

    Attributes
    ----------
    DIM_O, DIM_R : int
        Threads along y, and along the slots.
    """

    DIM_O: int = 32
    DIM_R: int = 8

    STEM: ClassVar[str] = "symv_sum"

    def __post_init__(self):
        require_warps(DIM_O=self.DIM_O, DIM_R=self.DIM_R)
        require(self.DIM_R & (self.DIM_R - 1) == 0, "tree", "DIM_R is a power of two", DIM_R=self.DIM_R)

    @property
    def threads(self) -> int:
        return self.DIM_O * self.DIM_R

    @property
    def shared_bytes(self) -> int:
        """A sum of each thread."""
        return self.DIM_R * (self.DIM_O | 1) * self.dtype_facts.itemsize

    def grid(self, n: int) -> int:
        """Blocks for `n` elements of y."""
        return -(-n // self.DIM_O)


def source(config: SymvSum) -> KernelSource:
    """The kernel of `config`.

    Kernel parameters
    -----------------
    w, y: pointer, the slots and y
    n: int32, order
    BLK: int32, rows and columns of a tile of `symv`
    tiles: int32, tiles of its blocks
    slots: int32, their number
    upper: int32, whether the upper triangle was read
    ldw, incy: int64, from slot to slot, stride of y (elements)
    stride_w, stride_y: int64, batch strides (elements)
    alpha, alpha_i, beta, beta_i: real, parts of alpha and beta; with beta = 0 y is not read

    Grid: x ``config.grid(n)``, z the batch.
    """
    return KernelSource.of(config, PARAMETERS, lambda: _build(config))


def _build(config: SymvSum):
    facts, DIM_O, DIM_R = config.dtype_facts, config.DIM_O, config.DIM_R
    REALS, COMPLEX, real = facts.reals_per_element, facts.is_complex, ptx.REALS[facts.real]
    LD, HELD = (DIM_O | 1) * REALS, UNROLL * REALS
    int32, int64, offset, shared_pointer = ptx.types.int32, ptx.types.int64, ptx.offset, ptx.shared_pointer
    grid_dependency_wait, quotient, zero = ptx.grid_dependency_wait, ptx.quotient, ptx.fill(REALS)
    add_slots, add_threads, write = (
        slot_adder(facts),
        tree_adder(facts, DIM_R, DIM_O, config.threads),
        writer(facts),
    )

    def symv_sum(
        w, y, n, BLK, tiles, slots, upper, ldw, incy, stride_w, stride_y, alpha, alpha_i, beta, beta_i
    ):
        # (1) the element of this thread, and the slots that hold something of it
        t = int32(cuda.threadIdx.x & 1023)
        to, tr = t % DIM_O, t // DIM_O
        o, batch = int32(cuda.blockIdx.x * DIM_O + to), int64(cuda.blockIdx.z)
        total, prefetched = cuda.local.array(REALS, real), cuda.local.array(HELD, real)
        sums = shared_pointer(cuda.shared.array(0, real, alignment=16))
        tile = quotient(o, BLK)
        q = int32(slots - 2 - tile) if upper else tile
        of_rows = int32(quotient(q, tiles) + 1) if o < n else int32(0)
        count = int32(of_rows + slots - 1 - q) if o < n else int32(0)
        share = int32((count + DIM_R - 1) // DIM_R)
        begin, end = int32(tr * share), min(int32((tr + 1) * share), count)
        zero(total, real(0))

        # (2) their sum: those of rows, then, behind a gap, those of columns
        grid_dependency_wait()
        w = offset(w, (batch * stride_w + o) * REALS)
        gap = int32(q + 1 - of_rows)
        add_slots(total, prefetched, w, ldw, begin, min(end, of_rows))
        add_slots(total, prefetched, w, ldw, int32(max(begin, of_rows) + gap), int32(end + gap))
        for part in range(REALS):
            sums[tr * LD + to * REALS + part] = total[part]
        add_threads(sums, t)
        if tr == 0 and o < n:
            im = sums[to * REALS + 1] if COMPLEX else sums[to]
            here, reads = (
                offset(y, (batch * stride_y + o * int64(incy)) * REALS),
                (beta != real(0)) | (beta_i != real(0)),
            )
            write(here, total, sums[to * REALS], im, reads, alpha, alpha_i, beta, beta_i)

    return symv_sum
