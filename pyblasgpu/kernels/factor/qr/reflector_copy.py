"""``reflector_copy``: the vectors of a block of reflectors, with the ones and zeros that A does not hold.

A holds what is below its diagonal. Without that, the result is columns of the identity.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ....gpu.backend import cuda, ptx
from ....gpu.build.compile import KernelSource
from ...common.kernel_config import BlockConfig
from ...common.parameters import parameters

__all__ = ["STEM", "ReflectorCopy", "source"]

STEM = "reflector_copy"
PARAMETERS = parameters(
    "pointer: a, v",
    "int32: m, n, first, copies",
    "int64: a_rs, a_cs, v_rs, v_cs, stride_a, stride_v",
)
COLUMNS = 8  # of a thread


@dataclass(frozen=True)
class ReflectorCopy(BlockConfig):
    """Config of one `reflector_copy` kernel; its attributes are those of `BlockConfig`."""

    STEM: ClassVar[str] = STEM

    @property
    def registers(self) -> int:
        """Estimated 32-bit registers of a thread."""
        return 40

    def grid(self, rows: int, cols: int) -> int:
        """Blocks of a matrix."""
        return -(-rows // self.DIM) * -(-cols // COLUMNS)


def source(config: ReflectorCopy) -> KernelSource:
    """The kernel of `config`.

    Kernel parameters
    -----------------
    a, v: pointer, A and the result
    m, n: int32, rows and reflectors
    first: int32, row of the one in the first column
    copies: int32, whether elements below are A's; else they are zero
    a_rs, a_cs, v_rs, v_cs: int64, row and column strides (elements)
    stride_a, stride_v: int64, batch strides (elements)

    Grid: x ``config.grid(rows, reflectors)``, z the batch.
    """
    return KernelSource.of(config, PARAMETERS, lambda: _build(config))


def _build(config: ReflectorCopy):
    facts, DIM = config.dtype_facts, config.DIM
    REALS, real = facts.reals_per_element, ptx.REALS[facts.real]
    int32, int64, offset, quotient = ptx.types.int32, ptx.types.int64, ptx.offset, ptx.quotient
    grid_dependency_wait = ptx.grid_dependency_wait

    def reflector_copy(a, v, m, n, first, copies, a_rs, a_cs, v_rs, v_cs, stride_a, stride_v):
        # (1) the row and the columns of this thread
        t, block, batch = int32(cuda.threadIdx.x & 1023), int32(cuda.blockIdx.x), int64(cuda.blockIdx.z)
        row_blocks = int32(quotient(int32(m + (DIM - 1)), int32(DIM)))
        group = int32(quotient(block, row_blocks))
        i, begin = int32((block - group * row_blocks) * DIM + t), int32(group * COLUMNS)
        grid_dependency_wait()
        a = offset(a, (batch * stride_a + i * a_rs) * REALS)
        v = offset(v, (batch * stride_v + i * v_rs) * REALS)

        # (2) elements below the diagonal, ones on it, zeros above
        if i < m:
            for j in range(begin, min(begin + COLUMNS, n)):
                for part in range(REALS):
                    x = real(0)
                    if i > first + j and copies != 0:
                        x = a[j * a_cs * REALS + part]
                    elif i == first + j and part == 0:
                        x = real(1)
                    v[j * v_cs * REALS + part] = x

    return reflector_copy
