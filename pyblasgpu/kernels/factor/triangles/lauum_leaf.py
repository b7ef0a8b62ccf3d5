"""``lauum_leaf``: L^H L of small lower triangles L in place, its lower triangle, a block a matrix.

L is in shared memory, and so is the product; a thread has a tile of four by four of it at a time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ....gpu.backend import cuda, device_function, ptx
from ....gpu.build.compile import KernelSource
from ...common.parameters import parameters
from .leaf_config import TriangleInShared
from .triangle_copy import triangle_loader, triangle_writer

__all__ = ["STEM", "LauumLeaf", "source"]

STEM = "lauum_leaf"
PARAMETERS = parameters(
    "pointer: source, target",
    "int32: n",
    "int64: a_rs, a_cs, stride_a",
)
TILE = 4  # rows and columns


@dataclass(frozen=True)
class LauumLeaf(TriangleInShared):
    """Config of one `lauum_leaf` kernel; the parameters are those of `TriangleInShared`."""

    ORDER: int = 64
    DIM: int = 128

    STEM: ClassVar[str] = STEM
    ORDERS: ClassVar[tuple[int, ...]] = ()  # triangles that are smaller fill a part of it

    @property
    def shared_elements(self) -> int:
        """L and the product."""
        return 2 * self.ORDER * self.ld

    @property
    def registers(self) -> int:
        """Estimated 32-bit registers of a thread."""
        return (TILE * TILE + 2 * TILE) * self.dtype_facts.itemsize // 4 + 32


def source(config: LauumLeaf) -> KernelSource:
    """The kernel of `config`, for lower triangles of order n <= ORDER.

    Kernel parameters
    -----------------
    source, target: pointer, L and the product, which has L's layout and may replace it
    n: int32, order
    a_rs, a_cs: int64, row and column stride (elements)
    stride_a: int64, batch stride (elements)

    Grid: x one block, z the batch. The imaginary parts of the product's diagonal are zero.
    """
    return KernelSource.of(config, PARAMETERS, lambda: _build(config))


def _tile_product(config: LauumLeaf):
    """``multiply(acc, x, y, left, right, rows)``: the tile that columns of L make, of `rows` rows."""
    facts, REALS, LD = config.dtype_facts, config.dtype_facts.reals_per_element, config.ld
    load = ptx.load_shared(REALS, TILE, LD * REALS)
    rank1, zero = ptx.rank1_update(TILE, TILE, REALS, True, False), ptx.fill(TILE * TILE * REALS)
    real = ptx.REALS[facts.real]

    @device_function
    def multiply(acc, x, y, left, right, rows):
        zero(acc, real(0))
        for k in range(rows):
            load(x, 0, left, k * REALS)
            load(y, 0, right, k * REALS)
            rank1(acc, x, y)

    return multiply


def _build(config: LauumLeaf):
    facts, ORDER, LD, THREADS = config.dtype_facts, config.ORDER, config.ld, config.threads
    real, REALS = ptx.REALS[facts.real], facts.reals_per_element
    int64, offset, shared_pointer = ptx.types.int64, ptx.offset, ptx.shared_pointer
    grid_dependency_wait = ptx.grid_dependency_wait
    ACC, SPAN = TILE * TILE * REALS, TILE * REALS
    load, write = triangle_loader(config), triangle_writer(config, real_diagonal=True)
    multiply, store = _tile_product(config), ptx.store_shared(1)

    def lauum_leaf(source, target, n, a_rs, a_cs, stride_a):
        # (1) L of this block
        t, start = cuda.threadIdx.x, int64(cuda.blockIdx.z) * stride_a * REALS
        l = shared_pointer(cuda.shared.array(0, real, alignment=16))
        product = offset(l, ORDER * LD * REALS)
        acc, x, y = cuda.local.array(ACC, real), cuda.local.array(SPAN, real), cuda.local.array(SPAN, real)
        grid_dependency_wait()
        load(l, offset(source, start), a_rs, a_cs, t, n, 0)

        # (2) tiles of the product: rows of L above a tile's first one add nothing to it
        tiles = (n + (TILE - 1)) // TILE
        for number in range(t, tiles * (tiles + 1) // 2, THREADS):
            i, j = 0, number
            while j > i:
                i += 1
                j -= i
            row, col = i * TILE, j * TILE
            left, right = offset(l, row * (LD + 1) * REALS), offset(l, (row + col * LD) * REALS)
            multiply(acc, x, y, left, right, tiles * TILE - row)
            corner = offset(product, (row + col * LD) * REALS)
            for k in range(TILE):
                for lane in range(SPAN):
                    store(corner, k * LD * REALS + lane, acc, k * SPAN + lane)
        cuda.syncthreads()

        # (3) back to where L was
        write(offset(target, start), product, a_rs, a_cs, t, n, 0)

    return lauum_leaf
