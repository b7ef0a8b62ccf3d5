"""``orhr_leaf``: Householder vectors of orthonormal columns, the square on top, a block a matrix.

Q1 R2 has orthonormal Q1 R2^-1 = Q. With signs S, LU without pivots of the rows on top, Q - S = L U, gives the
vectors, L, and the factors tau = -diag(U) S (LAPACK's orhr_col; Ballard, Demmel, Grigori, Jacquelin, Nguyen
and Solomonik, 2014). The sign of a row is minus that of its pivot. Here Q R2 - S R2 = L W is factored, so
that R2 is not inverted; vectors below are rows of Q1 W^-1.

info becomes 1 where Q is not orthonormal enough, where columns are so small that their squares lose digits,
or where a column has nothing below its diagonal, of which LAPACK's reflector is the identity.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from ....errors import require
from ....gpu.backend import cuda, device_function, ptx, unrolled
from ....gpu.build.compile import KernelSource
from ...common.kernel_config import WARP
from ...common.parameters import parameters
from ...common.triangle_panel import block_copier
from ..lane_sums import adder, over_lanes
from ..triangles.leaf_config import TriangleInShared
from .signed_lu import PIVOTS, factorizer, row_reader

__all__ = ["STEM", "OrhrLeaf", "source"]

STEM = "orhr_leaf"
PARAMETERS = parameters(
    "pointer: tau, a, first, second, r",
    "int32 pointer: info",
    "int32: n",
    "int64: tau_step, a_rs, a_cs, ld, stride_tau, stride_a, stride_r, stride_info",
)
UNROLL = 4  # columns of a thread at a time
DEPARTURE = 1 / 16  # of R2 from the identity: the largest sum of squares
#: Columns with a smaller norm have squares that lose digits; by bytes of a real.
SMALL = {4: 2.0**-50, 8: 2.0**-480}
#: A factor tau is at most 2, for a column with nothing below its diagonal. Q has lost digits of what is below
#: that of nearer ones. By bytes of a real.
MOST_TAU = {4: 2 - 2.0**-16, 8: 2 - 2.0**-44}


@dataclass(frozen=True)
class OrhrLeaf(TriangleInShared):
    """Config of one `orhr_leaf` kernel; the parameters are those of `TriangleInShared`."""

    ORDER: int = 128
    DIM: int = 512

    STEM: ClassVar[str] = STEM
    ORDERS: ClassVar[tuple[int, ...]] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        require(
            self.DIM % self.ORDER == 0
            and PIVOTS % self.GROUPS == 0
            and self.ORDER % (UNROLL * self.GROUPS) == 0,
            "groups",
            f"DIM / ORDER divides {PIVOTS}, and ORDER % ({UNROLL} DIM / ORDER) == 0",
            DIM=self.DIM,
            ORDER=self.ORDER,
        )

    @property
    def shared_elements(self) -> int:
        """The square; rows of R2, signs; sums of warps."""
        return self.ORDER * (self.ld + PIVOTS + 1) + WARP

    @property
    def registers(self) -> int:
        """Estimated 32-bit registers of a thread."""
        return 48 + 14 * PIVOTS * self.dtype_facts.itemsize // 4


def source(config: OrhrLeaf) -> KernelSource:
    """The kernel of `config`, for n <= ORDER columns.

    Kernel parameters
    -----------------
    tau: pointer, tau
    a: pointer, the first n rows of Q1, which R and the vectors below its diagonal replace
    first, second: pointer, lower triangles, R1^H and R2^H, with zeros above
    r: pointer, R2 R1, which W replaces
    info: int32 pointer, info of R1 and R2: where it is not 0, nothing is done
    n: int32, columns
    tau_step: int64, stride of tau (elements)
    a_rs, a_cs: int64, row and column stride of A (elements)
    ld: int64, column stride of the triangles (elements)
    stride_tau, stride_a, stride_r: int64, batch strides, the last of all triangles (elements)
    stride_info: int64, batch stride of info (words)

    Grid: x one block, z the batch.
    """
    return KernelSource.of(config, PARAMETERS, lambda: _build(config))


def _departure(config: OrhrLeaf) -> Callable:
    """``measure(acc, second, ld, n, row, group)``: the sum of squares of R2 - I over elements of a thread."""
    REALS, real = config.dtype_facts.reals_per_element, ptx.REALS[config.dtype_facts.real]
    GROUPS, ORDER, LOCAL, STEP = config.GROUPS, config.ORDER, UNROLL * REALS, UNROLL * config.GROUPS
    select, read = ptx.select, ptx.load_global(1, False)

    @device_function
    def load(k, x, second, ld, n, row, group):
        c = group + k * GROUPS
        for part in range(REALS):
            read(x, k * REALS + part, second, (c * ld + row) * REALS + part, (c <= row) & (row < n))

    @device_function
    def add(k, acc, x, n, row, group):
        c = group + k * GROUPS
        y = x[k * REALS] - select((c == row) & (row < n), real(1), real(0))
        acc[0] += y * y
        if REALS == 2:
            acc[0] += x[k * REALS + 1] * x[k * REALS + 1]

    loads, adds = unrolled(UNROLL, load), unrolled(UNROLL, add)

    @device_function
    def measure(acc, second, ld, n, row, group):
        x = cuda.local.array(LOCAL, real)
        for first in range(0, ORDER, STEP):
            loads(0, x, second, ld, n, row, group + first)
            adds(0, acc, x, n, row, group + first)

    return measure


def _writer(config: OrhrLeaf) -> Callable:
    """``write(a, r, s, signs, a_rs, a_cs, ld, n, row, group)``: R and vectors to `a`, W to `r`."""
    facts, LD, GROUPS, ORDER = config.dtype_facts, config.ld, config.GROUPS, config.ORDER
    REALS, COMPLEX, STEP = facts.reals_per_element, facts.is_complex, UNROLL * config.GROUPS
    LOCAL, real, int32 = UNROLL * facts.reals_per_element, ptx.REALS[facts.real], ptx.types.int32
    read, store_global, select = ptx.load_global(1, False), ptx.store_global, ptx.select

    @device_function
    def load(k, x, r, ld, n, row, c):
        at = c + k * GROUPS
        for part in range(REALS):
            read(x, k * REALS + part, r, (at * ld + row) * REALS + part, (row <= at) & (at < n))

    @device_function
    def store(k, x, a, r, s, sign, a_rs, a_cs, ld, n, row, c):
        at, is_below = c + k * GROUPS, c + k * GROUPS < row
        ok, from_, to = (row < n) & (at < n), (row + at * LD) * REALS, (row * a_rs + at * a_cs) * REALS
        re, im = s[from_], s[from_ + REALS - 1]
        store_global(a, to, select(is_below, re, sign * x[k * REALS]), ok)
        store_global(r, (at * ld + row) * REALS, re, ok & (not is_below))
        if COMPLEX:
            store_global(a, to + 1, select(is_below, im, sign * x[k * 2 + 1]), ok)
            store_global(r, (at * ld + row) * REALS + 1, im, ok & (not is_below))

    loads, stores = unrolled(UNROLL, load), unrolled(UNROLL, store)

    @device_function
    def write(a, r, s, signs, a_rs, a_cs, ld, n, row, group):
        x, sign = cuda.local.array(LOCAL, real), signs[row]
        c = int32(group)
        while c < ORDER:
            loads(0, x, r, ld, n, row, c)
            stores(0, x, a, r, s, sign, a_rs, a_cs, ld, n, row, c)
            c = int32(c + STEP)

    return write


def _summer(config: OrhrLeaf) -> Callable:
    """``add(x, parts, t)``: the sum of a number of all threads, in all of them."""
    WARPS, real, int32 = config.DIM // WARP, ptx.REALS[config.dtype_facts.real], ptx.types.int32
    total = over_lanes(adder())

    @device_function
    def add(x, parts, t):
        x = total(x, int32(t & 31), int32(WARP))
        if t & 31 == 0:
            parts[t >> 5] = x
        cuda.syncthreads()
        x = real(0)
        for warp in range(WARPS):
            x += parts[warp]
        cuda.syncthreads()
        return x

    return add


def _scalar_maker(config: OrhrLeaf) -> Callable:
    """``make(tau, tau_step, s, signs, second, ld, n, t)``: tau of a thread's column; 1 where it is too large,
    or no number, else 0.
    """
    facts, LD, LARGEST = config.dtype_facts, config.ld, MOST_TAU[config.dtype_facts.real_size]
    REALS, real, divide = facts.reals_per_element, ptx.REALS[facts.real], ptx.divide

    @device_function
    def make(tau, tau_step, s, signs, second, ld, n, t):
        bad = real(0)
        if t < n:
            diagonal, factor = second[t * (ld + 1) * REALS], real(0)
            for k in range(REALS):
                part = REALS - 1 - k
                factor = divide(-signs[t] * s[t * (LD + 1) * REALS + part], diagonal)
                tau[t * tau_step * REALS + part] = factor
            if not factor <= real(LARGEST):
                bad = real(1)
        return bad

    return make


def _build(config: OrhrLeaf):
    facts, ORDER, LD = config.dtype_facts, config.ORDER, config.ld
    REALS, real, SMALLEST = facts.reals_per_element, ptx.REALS[facts.real], SMALL[facts.real_size]
    int32, int64, offset, shared_pointer = ptx.types.int32, ptx.types.int64, ptx.offset, ptx.shared_pointer
    ROWS, SPAN, BLOCK, WORST = ORDER * LD * REALS, ORDER * REALS, PIVOTS * REALS, float("inf")
    copy, commit, wait = block_copier(config, ORDER, ORDER, 1, LD), ptx.commit_async, ptx.wait_async(0)
    (read_rows, keep_rows), add, grid_dependency_wait = (
        row_reader(config),
        _summer(config),
        ptx.grid_dependency_wait,
    )
    measure, factor, write = _departure(config), factorizer(config), _writer(config)
    make, load_acquire, store_relaxed = _scalar_maker(config), ptx.load_acquire, ptx.store_relaxed

    def orhr_leaf(
        tau, a, first, second, r, info, n, tau_step, a_rs, a_cs, ld,
        stride_tau, stride_a, stride_r, stride_info,
    ):  # fmt: skip
        # (1) the rows on top, and the first rows of R2
        t, batch = int32(cuda.threadIdx.x & 1023), int64(cuda.blockIdx.z)
        row, group = int32(t % ORDER), int32(t // ORDER)
        s = shared_pointer(cuda.shared.array(0, real, alignment=16))
        rows, signs = offset(s, ROWS), offset(s, ROWS + PIVOTS * SPAN)
        parts, acc, x = offset(signs, ORDER), cuda.local.array(1, real), cuda.local.array(BLOCK, real)
        grid_dependency_wait()
        info = offset(info, batch * stride_info)
        if load_acquire(info, 0) != 0:
            return
        tau, a = offset(tau, batch * stride_tau * REALS), offset(a, batch * stride_a * REALS)
        first, second = offset(first, batch * stride_r * REALS), offset(second, batch * stride_r * REALS)
        r = offset(r, batch * stride_r * REALS)
        copy(s, a, a_rs, a_cs, t, n, n, 0, 0)
        commit()
        read_rows(0, x, second, ld, int32(0), n, t)
        if t < ORDER:
            keep_rows(0, rows, x, int32(0), n, t)

        # (2) how far R2 is from the identity
        acc[0] = real(0)
        measure(acc, second, ld, n, row, group)
        if t < n and not first[t * (ld + 1) * REALS] >= real(SMALLEST):
            acc[0] = real(WORST)
        wait()
        is_good = add(acc[0], parts, t) < real(DEPARTURE)

        # (3) LU, tau, and the results
        if is_good:
            factor(s, rows, signs, second, ld, n, row, group, t)
            is_good = add(make(tau, tau_step, s, signs, second, ld, n, t), parts, t) == real(0)
        if is_good:
            write(a, r, s, signs, a_rs, a_cs, ld, n, row, group)
        elif t == 0:
            store_relaxed(info, 0, int32(1))

    return orhr_leaf
