"""``svd_results``: singular values and vectors of columns of B = A V and of V that are orthogonal.

Norms of columns of B are singular values. A warp has a column: it adds up what the column has of those that
follow, and counts the columns that are longer. That is where its singular value and vectors are written. If
it departs too far from orthogonality, info is not 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ....errors import require
from ....gpu.backend import cuda, ptx
from ....gpu.build.compile import KernelSource
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
    info: int32 pointer, n where a column is not orthogonal; else it stays as it is
    m, n, options: int32, rows and columns, and the bits `CONJ_U` and `CONJ_V`
    ld, ld_b: int32, leading dimension of `s`, `gram` and `v`, and of `b`
    sigma_step: int64, stride of singular values (reals)
    u_rs, u_cs, v_rs, v_cs: int64, row and column strides of U and of V (elements)
    stride_s, stride_gram, stride_b, stride_v: int64, batch strides (elements)
    stride_sigma, stride_u, stride_right, stride_info: int64, the same (reals, elements, words)

    Grid: x ``config.grid(n)``, z the batch.
    """
    return KernelSource.of(config, PARAMETERS, lambda: _build(config))


def _build(config: SvdResults):
    facts, WARPS = config.dtype_facts, config.DIM // WARP
    real, REALS, COMPLEX = ptx.REALS[facts.real], facts.reals_per_element, facts.is_complex
    UNIT, SMALL = facts.unit_roundoff, 2.0 ** LEAST[facts.real_size]
    int32, int64, root, divide = ptx.types.int32, ptx.types.int64, ptx.square_root, ptx.divide
    offset, shared_pointer, grid_dependency_wait = ptx.offset, ptx.shared_pointer, ptx.grid_dependency_wait
    total, DIM = over_lanes(adder()), config.DIM

    def svd_results(
        s, gram, b, v, sigma, u, right, info, m, n, options, ld, ld_b, sigma_step, u_rs, u_cs, v_rs, v_cs,
        stride_s, stride_gram, stride_b, stride_v, stride_sigma, stride_u, stride_right, stride_info,
    ):  # fmt: skip
        t, batch = int32(cuda.threadIdx.x & 1023), int64(cuda.blockIdx.z)
        lane, j = int32(t & 31), int32(cuda.blockIdx.x * WARPS + (t >> 5))
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

        # (2) what column j has of others, and how many are longer
        is_here = j < n
        norm, most, departure, rank = norms[j if is_here else 0], real(0), real(0), real(0)
        i = int32(lane if is_here else n)
        while i < n:
            at, other = int32((j * ld + i) * REALS), norms[i]
            if i == j:
                departure += (gram[at] - real(1)) * (gram[at] - real(1))
            elif i > j:
                for part in range(REALS):
                    x, y = divide(divide(s[at + part], other), norm), gram[at + part]
                    most, departure = most + x * x, departure + y * y
            if other > norm or (other == norm and i < j):
                rank += real(1)
            i = int32(i + WARP)
        most, departure = total(most, lane, int32(WARP)), total(departure, lane, int32(WARP))
        place = int64(total(rank, lane, int32(WARP)))
        limit = real((LIMIT * UNIT) ** 2) * real(n)
        is_good = most <= limit and departure <= limit and norm >= real(SMALL)
        departs = offset(norms, n)
        if lane == 0:
            departs[t >> 5] = real(1) if is_here and not is_good else real(0)
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
        factor = divide(real(1), norm)
        b, v = (
            offset(b, (batch * stride_b + int64(j) * ld_b) * REALS),
            offset(v, (batch * stride_v + int64(j) * ld) * REALS),
        )
        u = offset(u, (batch * stride_u + place * u_cs) * REALS)
        right = offset(right, (batch * stride_right + place * v_cs) * REALS)
        i = int32(lane if is_here else m)
        while i < m:
            to = i * u_rs * REALS
            u[to] = b[i * REALS] * factor
            if COMPLEX:
                u[to + 1] = b[i * REALS + 1] * (-factor if options & CONJ_U else factor)
            i = int32(i + WARP)
        i = int32(lane if is_here else n)
        while i < n:
            to = i * v_rs * REALS
            right[to] = v[i * REALS]
            if COMPLEX:
                right[to + 1] = -v[i * REALS + 1] if options & CONJ_V else v[i * REALS + 1]
            i = int32(i + WARP)

    return svd_results
