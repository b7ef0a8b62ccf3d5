"""``restore``: matrices of a batch become again what they were, where info says that nothing was computed.

Blocks of matrices whose info is 0 do nothing. A complex element is moved as two reals by the same kernel.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ...gpu.backend import cuda, ptx
from ...gpu.build.compile import KernelSource
from ..common.kernel_config import BlockConfig
from ..common.parameters import parameters

__all__ = ["STEM", "Restore", "source"]

STEM = "restore"
PARAMETERS = parameters(
    "int32 pointer: info",
    "pointer: before, a",
    "int32: m, n, reals",
    "int64: from_rs, from_cs, to_rs, to_cs, stride_info, stride_from, stride_to",
)
BLOCKS = 128  # of a matrix, at most


@dataclass(frozen=True)
class Restore(BlockConfig):
    """Config of one `restore` kernel, for reals; its attributes are those of `BlockConfig`."""

    STEM: ClassVar[str] = STEM

    @property
    def registers(self) -> int:
        """Estimated 32-bit registers of a thread."""
        return 32

    def grid(self, rows: int, cols: int) -> int:
        """Blocks along x."""
        return min(-(-rows * cols // self.DIM), BLOCKS)


def source(config: Restore) -> KernelSource:
    """The kernel of `config`.

    Kernel parameters
    -----------------
    info: int32 pointer, info
    before, a: pointer, the original matrices, and the matrices
    m, n: int32, rows and columns
    reals: int32, reals of an element
    from_rs, from_cs, to_rs, to_cs: int64, row and column stride of the originals, of the matrices (elements)
    stride_info: int64, batch stride of info (words)
    stride_from, stride_to: int64, batch strides (elements)

    Grid: x ``config.grid(rows, columns)``, z the batch.
    """
    return KernelSource.of(config, PARAMETERS, lambda: _build(config))


def _build(config: Restore):
    DIM, int32, int64 = config.DIM, ptx.types.int32, ptx.types.int64
    offset, grid_dependency_wait, real = (
        ptx.offset,
        ptx.grid_dependency_wait,
        ptx.REALS[config.dtype_facts.real],
    )
    load, store = ptx.load_global(1, False), ptx.store_global

    def restore(
        info, before, a, m, n, reals, from_rs, from_cs, to_rs, to_cs, stride_info, stride_from, stride_to
    ):
        # (1) whether there is something to do
        t, batch = int32(cuda.threadIdx.x & 1023), int64(cuda.blockIdx.z)
        grid_dependency_wait()
        if info[batch * stride_info] == 0:
            return
        before, a = offset(before, batch * stride_from * reals), offset(a, batch * stride_to * reals)
        value = cuda.local.array(1, real)

        # (2) elements, by columns
        at, step = int64(cuda.blockIdx.x) * DIM + t, int64(cuda.gridDim.x) * DIM
        while at < int64(m) * n:
            i, j = at % m, at // m
            for part in range(reals):
                load(value, 0, before, (i * from_rs + j * from_cs) * reals + part, True)
                store(a, (i * to_rs + j * to_cs) * reals + part, value[0], True)
            at += step

    return restore
