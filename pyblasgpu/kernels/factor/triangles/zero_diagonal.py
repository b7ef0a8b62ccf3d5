"""``zero_diagonal``: the first zero on the diagonal of a matrix, a block a matrix.

A complex element is two reals to the same kernel.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ....gpu.backend import cuda, ptx
from ....gpu.build.compile import KernelSource
from ...common.kernel_config import BlockConfig
from ...common.parameters import parameters

__all__ = ["STEM", "ZeroDiagonal", "source"]

STEM = "zero_diagonal"
PARAMETERS = parameters(
    "int32 pointer: info",
    "pointer: a",
    "int32: n, reals",
    "int64: step, stride_info, stride_a",
)


@dataclass(frozen=True)
class ZeroDiagonal(BlockConfig):
    """Config of one `zero_diagonal` kernel, for reals; its attributes are those of `BlockConfig`."""

    DIM: int = 1024

    STEM: ClassVar[str] = STEM

    @property
    def shared_bytes(self) -> int:
        """Bytes of each thread's finding."""
        return 4 * self.DIM

    @property
    def registers(self) -> int:
        """Estimated 32-bit registers of a thread."""
        return 24


def source(config: ZeroDiagonal) -> KernelSource:
    """The kernel of `config`.

    Kernel parameters
    -----------------
    info: int32 pointer, info
    a: pointer, A
    n: int32, order
    reals: int32, reals of an element
    step: int64, stride along the diagonal (elements)
    stride_info: int64, batch stride of info (words)
    stride_a: int64, batch stride (elements)

    Grid: x one block, z the batch. An info becomes 0, or the number, from 1, of the first zero.
    """
    return KernelSource.of(config, PARAMETERS, lambda: _build(config))


def _build(config: ZeroDiagonal):
    real, THREADS, NONE = ptx.REALS[config.dtype_facts.real], config.threads, 2**31 - 1
    int32, int64, offset, read = ptx.types.int32, ptx.types.int64, ptx.offset, ptx.load_global(1, False)
    grid_dependency_wait, store_relaxed = ptx.grid_dependency_wait, ptx.store_relaxed

    def zero_diagonal(info, a, n, reals, step, stride_info, stride_a):
        # (1) the first zero that each thread meets
        t, batch = int32(cuda.threadIdx.x), int64(cuda.blockIdx.z)
        a, info = offset(a, batch * stride_a * reals), offset(info, batch * stride_info)
        firsts, value = cuda.shared.array(0, int32), cuda.local.array(2, real)
        first = int32(NONE)
        grid_dependency_wait()
        for i in range(t, n, THREADS):
            read(value, 0, a, int64(i) * step * reals, True)
            read(value, 1, a, int64(i) * step * reals + (reals - 1), True)
            if value[0] == real(0) and value[1] == real(0) and i < first:
                first = int32(i)

        # (2) the first of all
        firsts[t] = first
        is_any = cuda.syncthreads_or(int32(first < NONE)) != 0
        if t == 0:
            if is_any:
                for other in range(THREADS):
                    first = min(first, firsts[other])
            store_relaxed(info, 0, int32(0) if first == NONE else int32(first + 1))

    return zero_diagonal
