"""``svd_results``: singular values and vectors of columns of B = A V and of V that are orthogonal.

Norms of columns of B are singular values. A warp has a column: it adds up what the column has of those that
follow, and counts the columns that are longer. That is where its singular value and vectors are written. If
it departs too far from orthogonality, or its norm overflows, info is not 0.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from ....errors import require
from ....gpu.backend import cuda, device_function, ptx
from ....gpu.build.compile import KernelSource
from ....types import Dtype
from ...common.kernel_config import WARP, BlockConfig
from ...common.parameters import parameters
from ..lane_sums import adder, over_lanes

__all__ = ["CONJ_U", "CONJ_V", "STEM", "SvdResults", "source"]

STEM = "svd_results"
PARAMETERS = parameters(
    "pointer: s, gram, b, v, sigma, u, right",
    "int32 pointer: info",
    "int32: m, n, options, ld, ld_b",
    "int64: sigma_step, u_rs, u_cs, v_rs, v_cs",
    "int64: stride_s, stride_gram, stride_b, stride_v, stride_sigma, stride_u, stride_right, stride_info",
)
#: Bits of `options`: what is written conjugated.
CONJ_U, CONJ_V = 1, 2
LIMIT = 5  # multiple of the root of n times the unit roundoff that a column may have of others
#: Power of two that is the least singular value: products of smaller ones are not accurate.
LEAST = {4: -50, 8: -450}


@dataclass(frozen=True)
class SvdResults(BlockConfig):
    """Config of one `svd_results` kernel.

    Attributes
    ----------
    dtype, DIM
        See `BlockConfig`.
    ORDER : int
        The most columns.
    """

    ORDER: int = 2048

    STEM: ClassVar[str] = STEM

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self.ORDER > 0, "columns", "ORDER > 0", ORDER=self.ORDER)

    @property
    def registers(self) -> int:
        """Estimated 32-bit registers of a thread."""
        return 48

    @property
    def shared_bytes(self) -> int:
        """The norms of all columns, and whether a warp has one that departs."""
        return (self.ORDER + WARP) * self.dtype_facts.real_size

    def grid(self, n: int) -> int:
        """Blocks along x: a warp has a column."""
        return -(-n // (self.DIM // WARP))


def source(config: SvdResults) -> KernelSource:
    """The kernel of `config`, for m >= n and n <= ORDER.

    Kernel parameters
    -----------------
    s, gram: pointer, BᴴB and VᴴV, n by n, of which the lower triangle is read
    b, v: pointer, B, m by n, and V, n by n, by columns
    sigma, u, right: pointer, singular values in descending order, reals, U and V in that order
    info: int32 pointer, n where a column is not orthogonal, or too short or long; else it stays as it is
    m, n, options: int32, rows and columns, and the bits `CONJ_U` and `CONJ_V`
    ld, ld_b: int32, leading dimension of `s`, `gram` and `v`, and of `b`
    sigma_step: int64, stride of singular values (reals)
    u_rs, u_cs, v_rs, v_cs: int64, row and column strides of U and of V (elements)
    stride_s, stride_gram, stride_b, stride_v: int64, batch strides (elements)
    stride_sigma, stride_u, stride_right, stride_info: int64, the same (reals, elements, words)

    Grid: x ``config.grid(n)``, z the batch.
    """
    return KernelSource.of(config, PARAMETERS, lambda: _build(config))


def _adder(facts: Dtype) -> Callable:
    """``add_up(acc, s, gram, norms, j, ld, n, lane)``: squares of what column `j` of B has of those that
    follow, of columns of norm one, the same of V, and how many columns of B are longer.
    """
    real, REALS, int32, divide = (
        ptx.REALS[facts.real],
        facts.reals_per_element,
        ptx.types.int32,
        ptx.divide,
    )
    total = over_lanes(adder())

    @device_function
    def add_up(acc, s, gram, norms, j, ld, n, lane):
        acc[0], acc[1], acc[2] = real(0), real(0), real(0)
        norm, i = norms[j], int32(lane)
        while i < n:
            at, other = int32((j * ld + i) * REALS), norms[i]
            if i == j:
                acc[1] += (gram[at] - real(1)) * (gram[at] - real(1))
            elif i > j:
                for part in range(REALS):
                    x, y = divide(divide(s[at + part], other), norm), gram[at + part]
                    acc[0], acc[1] = acc[0] + x * x, acc[1] + y * y
            if other > norm or (other == norm and i < j):
                acc[2] += real(1)
            i = int32(i + WARP)
        for k in range(3):
            acc[k] = total(acc[k], lane, int32(WARP))

    return add_up


def _writer(facts: Dtype) -> Callable:
    """``write(target, step, column, factor, is_conjugated, rows, lane)``: a column times a real factor."""
    REALS, COMPLEX, int32 = facts.reals_per_element, facts.is_complex, ptx.types.int32

    @device_function
    def write(target, step, column, factor, is_conjugated, rows, lane):
        i = int32(lane)
        while i < rows:
            to = i * step * REALS
            target[to] = column[i * REALS] * factor
            if COMPLEX:
                target[to + 1] = column[i * REALS + 1] * (-factor if is_conjugated else factor)
            i = int32(i + WARP)

    return write


def _build(config: SvdResults):
    facts, WARPS, DIM = config.dtype_facts, config.DIM // WARP, config.DIM
    real, REALS, UNIT, SMALL = (
        ptx.REALS[facts.real],
        facts.reals_per_element,
        facts.unit_roundoff,
        2.0 ** LEAST[facts.real_size],
    )
    int32, int64, root, divide = ptx.types.int32, ptx.types.int64, ptx.square_root, ptx.divide
    offset, shared_pointer, grid_dependency_wait = ptx.offset, ptx.shared_pointer, ptx.grid_dependency_wait
    add_up, write = _adder(facts), _writer(facts)

    def svd_results(
        s, gram, b, v, sigma, u, right, info, m, n, options, ld, ld_b, sigma_step, u_rs, u_cs, v_rs, v_cs,
        stride_s, stride_gram, stride_b, stride_v, stride_sigma, stride_u, stride_right, stride_info,
    ):  # fmt: skip
        t, batch = int32(cuda.threadIdx.x & 1023), int64(cuda.blockIdx.z)
        lane, j = int32(t & 31), int32(cuda.blockIdx.x * WARPS + (t >> 5))
        is_here, acc = j < n, cuda.local.array(3, real)
        j = j if is_here else int32(0)
        norms = shared_pointer(cuda.shared.array(0, real, alignment=16))
        s, gram = offset(s, batch * stride_s * REALS), offset(gram, batch * stride_gram * REALS)
        grid_dependency_wait()

        # (1) norms of all columns, -1 for what is no number, so that all have an order
        i = int32(t)
        while i < n:
            norm = root(s[i * (ld + 1) * REALS])
            norms[i] = norm if norm == norm else real(-1)
            i = int32(i + DIM)
        cuda.syncthreads()

        # (2) whether column j departs, and where it is written
        add_up(acc, s, gram, norms, j, ld, n, lane)
        norm, place, limit = norms[j], int64(acc[2]), real((LIMIT * UNIT) ** 2) * real(n)
        is_good = acc[0] <= limit and acc[1] <= limit and real(SMALL) <= norm < real(float("inf"))
        departs = offset(norms, n)
        if lane == 0:
            departs[t >> 5] = real(0) if is_good else real(1)
        cuda.syncthreads()

        # (3) info, the singular value and its vectors
        if t == 0:
            number = real(0)
            for warp in range(WARPS):
                number += departs[warp]
            if number > real(0):
                info[batch * stride_info] = n
        if lane == 0 and is_here:
            sigma[batch * stride_sigma + place * sigma_step] = norm
        b = offset(b, (batch * stride_b + int64(j) * ld_b) * REALS)
        v = offset(v, (batch * stride_v + int64(j) * ld) * REALS)
        u = offset(u, (batch * stride_u + place * u_cs) * REALS)
        right = offset(right, (batch * stride_right + place * v_cs) * REALS)
        write(u, u_rs, b, divide(real(1), norm), options & CONJ_U, m if is_here else int32(0), lane)
        write(right, v_rs, v, real(1), options & CONJ_V, n if is_here else int32(0), lane)

    return svd_results
