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
from ...common.substitution import inverter
from ...common.triangle_panel import block_copier
from ..lane_sums import adder, over_lanes
from ..triangles.leaf_config import TriangleInShared

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
#: A factor tau is at most 2, for a column with nothing below its diagonal; by bytes of a real.
MOST_TAU = {4: 2 - 2.0**-19, 8: 2 - 2.0**-48}


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
            self.DIM % self.ORDER == 0 and self.ORDER % (UNROLL * self.GROUPS) == 0,
            "groups",
            f"ORDER % ({UNROLL} DIM / ORDER) == 0",
            DIM=self.DIM,
            ORDER=self.ORDER,
        )

    @property
    def GROUPS(self) -> int:
        """Threads of a row."""
        return self.DIM // self.ORDER

    @property
    def row_reals(self) -> int:
        """Reals of a row."""
        return self.ORDER * self.dtype_facts.reals_per_element

    @property
    def shared_elements(self) -> int:
        """The square; two rows of R2, reciprocals of pivots, signs; sums of warps."""
        return self.ORDER * self.ld + 4 * self.ORDER + WARP

    @property
    def registers(self) -> int:
        """Estimated 32-bit registers of a thread."""
        return 64


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


def _updater(config: OrhrLeaf) -> Callable:
    """``update(s, now, factor, sign, i, row, group)``: `factor` times row i of W off a row of the square."""
    facts, LD, GROUPS, ORDER = config.dtype_facts, config.ld, config.GROUPS, config.ORDER
    REALS, COMPLEX, STEP = facts.reals_per_element, facts.is_complex, UNROLL * config.GROUPS
    BOTH, real, int32 = 2 * UNROLL * facts.reals_per_element, ptx.REALS[facts.real], ptx.types.int32

    @device_function
    def load(k, x, s, now, sign, i, row, c):
        at = c + k * GROUPS
        for part in range(REALS):
            x[k * REALS + part] = s[(row + at * LD) * REALS + part]
            pivot = s[(i + at * LD) * REALS + part]
            x[(UNROLL + k) * REALS + part] = pivot - sign * now[at * REALS + part]

    @device_function
    def store(k, x, s, factor, i, row, c):
        at, w = c + k * GROUPS, (UNROLL + k) * REALS
        if at > i:
            to = (row + at * LD) * REALS
            if COMPLEX:
                s[to] = x[k * 2] - (factor[0] * x[w] - factor[1] * x[w + 1])
                s[to + 1] = x[k * 2 + 1] - (factor[0] * x[w + 1] + factor[1] * x[w])
            else:
                s[to] = x[k] - factor[0] * x[w]

    loads, stores = unrolled(UNROLL, load), unrolled(UNROLL, store)

    @device_function
    def update(s, now, factor, sign, i, row, group):
        x = cuda.local.array(BOTH, real)
        c = int32(((i + 1) & -STEP) + group)
        while c < ORDER:
            loads(0, x, s, now, sign, i, row, c)
            stores(0, x, s, factor, i, row, c)
            c = int32(c + STEP)

    return update


def _writer(config: OrhrLeaf) -> Callable:
    """``write(a, r, s, signs, inverses, a_rs, a_cs, ld, n, row, group)``: R and vectors to `a`, W to `r`."""
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
    def store(k, x, a, r, s, sign, inverses, a_rs, a_cs, ld, n, row, c):
        at, is_below = c + k * GROUPS, c + k * GROUPS < row
        ok, from_, to = (row < n) & (at < n), (row + at * LD) * REALS, (row * a_rs + at * a_cs) * REALS
        re, im = s[from_], s[from_ + REALS - 1]
        f, f_im = inverses[at * REALS], inverses[at * REALS + REALS - 1]
        v = re * f - im * f_im if COMPLEX else re * f
        store_global(a, to, select(is_below, v, sign * x[k * REALS]), ok)
        store_global(r, (at * ld + row) * REALS, re, ok & (not is_below))
        if COMPLEX:
            v, u = re * f_im + im * f, sign * x[k * 2 + 1]
            store_global(a, to + 1, select(is_below, v, u), ok)
            store_global(r, (at * ld + row) * REALS + 1, im, ok & (not is_below))

    loads, stores = unrolled(UNROLL, load), unrolled(UNROLL, store)

    @device_function
    def write(a, r, s, signs, inverses, a_rs, a_cs, ld, n, row, group):
        x, sign = cuda.local.array(LOCAL, real), signs[row]
        c = int32(group)
        while c < ORDER:
            loads(0, x, r, ld, n, row, c)
            stores(0, x, a, r, s, sign, inverses, a_rs, a_cs, ld, n, row, c)
            c = int32(c + STEP)

    return write


def _row_reader(config: OrhrLeaf) -> Callable:
    """``read(x, second, ld, i, n, t)``: element t of row i of R2, from column i of its lower triangle."""
    REALS, COMPLEX = config.dtype_facts.reals_per_element, config.dtype_facts.is_complex
    real = ptx.REALS[config.dtype_facts.real]

    @device_function
    def read(x, second, ld, i, n, t):
        x[0] = x[1] = real(0)
        if i <= t < n:
            at = (i * ld + t) * REALS
            x[0] = second[at]
            if COMPLEX:
                x[1] = -second[at + 1]

    return read


def _factorizer(config: OrhrLeaf) -> Callable:
    """``factor(s, rows, signs, inverses, tau, tau_step, second, ld, n, row, group, t)``: W and, times pivots,
    L over the square, by columns of L and rows of W; whether no tau is too large. Row 0 of R2 is in `rows`.
    """
    facts, ORDER, LD, SPAN = config.dtype_facts, config.ORDER, config.ld, config.row_reals
    REALS, COMPLEX, real = facts.reals_per_element, facts.is_complex, ptx.REALS[facts.real]
    int32, offset, select, divide = ptx.types.int32, ptx.offset, ptx.select, ptx.divide
    LARGEST, update = MOST_TAU[facts.real_size], _updater(config)
    invert, read_row = inverter(facts), _row_reader(config)

    @device_function
    def finish_row(s, row_of_r, sign, i, t):
        """Row i of W, over what of Q1 was left there."""
        if 0 <= i <= t < ORDER:
            for part in range(REALS):
                s[(i + t * LD) * REALS + part] -= sign * row_of_r[t * REALS + part]

    @device_function
    def scale(factor, s, row, i, inverse):
        at = (row + i * LD) * REALS
        factor[0] = s[at] * inverse[0]
        if COMPLEX:
            factor[0] = s[at] * inverse[0] - s[at + 1] * inverse[1]
            factor[1] = s[at] * inverse[1] + s[at + 1] * inverse[0]

    @device_function
    def factor(s, rows, signs, inverses, tau, tau_step, second, ld, n, row, group, t):
        x, pivot = cuda.local.array(2, real), cuda.local.array(2, real)
        inverse, multiple = cuda.local.array(2, real), cuda.local.array(2, real)
        i, sign, is_good = int32(0), real(0), True
        while i < n and is_good:
            parity = int32(i & 1)
            now, other = offset(rows, parity * SPAN), offset(rows, (1 - parity) * SPAN)
            read_row(x, second, ld, int32(i + 1), n, t)  # before it is needed
            finish_row(s, other, sign, int32(i - 1), t)
            at = i * (LD + 1) * REALS
            re, diagonal = s[at], now[i * REALS]
            sign = select(re >= real(0), real(-1), real(1))
            pivot[0], pivot[1] = re - sign * diagonal, s[at + REALS - 1]
            invert(inverse, 0, pivot, 0)
            f = divide(-sign * pivot[0], diagonal)
            is_good = f <= real(LARGEST)
            if row > i:
                scale(multiple, s, row, i, inverse)
                update(s, now, multiple, sign, i, row, group)
            if t == 0:
                signs[i], tau[i * tau_step * REALS] = sign, f
                if COMPLEX:
                    tau[i * tau_step * REALS + 1] = divide(-sign * pivot[1], diagonal)
                for part in range(REALS):
                    inverses[i * REALS + part] = inverse[part]
            if t < ORDER:
                for part in range(REALS):
                    other[t * REALS + part] = x[part]
            cuda.syncthreads()
            i = int32(i + 1)
        finish_row(s, offset(rows, ((n - 1) & 1) * SPAN), sign, int32(n - 1), t)
        cuda.syncthreads()
        return is_good

    return factor


def _build(config: OrhrLeaf):
    facts, ORDER, LD, WARPS = config.dtype_facts, config.ORDER, config.ld, config.DIM // WARP
    REALS, real, SMALLEST = facts.reals_per_element, ptx.REALS[facts.real], SMALL[facts.real_size]
    int32, int64, offset, shared_pointer = ptx.types.int32, ptx.types.int64, ptx.offset, ptx.shared_pointer
    ROWS, SPAN, WORST = ORDER * LD * REALS, config.row_reals, float("inf")
    copy, commit, wait = block_copier(config, ORDER, ORDER, 1, LD), ptx.commit_async, ptx.wait_async(0)
    read_row, grid_dependency_wait, total = _row_reader(config), ptx.grid_dependency_wait, over_lanes(adder())
    measure, factor, write = _departure(config), _factorizer(config), _writer(config)
    load_acquire, store_relaxed = ptx.load_acquire, ptx.store_relaxed

    def orhr_leaf(
        tau, a, first, second, r, info, n, tau_step, a_rs, a_cs, ld,
        stride_tau, stride_a, stride_r, stride_info,
    ):  # fmt: skip
        # (1) the rows on top, the first row of R2
        t, batch = int32(cuda.threadIdx.x & 1023), int64(cuda.blockIdx.z)
        row, group = int32(t % ORDER), int32(t // ORDER)
        s = shared_pointer(cuda.shared.array(0, real, alignment=16))
        rows, inverses = offset(s, ROWS), offset(s, ROWS + 2 * SPAN)
        signs, parts = offset(s, ROWS + 3 * SPAN), offset(s, ROWS + 4 * SPAN)
        acc, x = cuda.local.array(1, real), cuda.local.array(2, real)
        grid_dependency_wait()
        info = offset(info, batch * stride_info)
        if load_acquire(info, 0) != 0:
            return
        tau, a = offset(tau, batch * stride_tau * REALS), offset(a, batch * stride_a * REALS)
        first, second = offset(first, batch * stride_r * REALS), offset(second, batch * stride_r * REALS)
        r = offset(r, batch * stride_r * REALS)
        copy(s, a, a_rs, a_cs, t, n, n, 0, 0)
        commit()
        read_row(x, second, ld, int32(0), n, t)
        if t < ORDER:
            for part in range(REALS):
                rows[t * REALS + part] = x[part]

        # (2) how far R2 is from the identity
        acc[0] = real(0)
        measure(acc, second, ld, n, row, group)
        if t < n and not first[t * (ld + 1) * REALS] >= real(SMALLEST):
            acc[0] = real(WORST)
        acc[0] = total(acc[0], int32(t & 31), int32(WARP))
        if t & 31 == 0:
            parts[t >> 5] = acc[0]
        wait()
        cuda.syncthreads()
        departure = real(0)
        for warp in range(WARPS):
            departure += parts[warp]

        # (3) LU, and the results
        is_good = departure < real(DEPARTURE)
        if is_good:
            is_good = factor(s, rows, signs, inverses, tau, tau_step, second, ld, n, row, group, t)
        if is_good:
            write(a, r, s, signs, inverses, a_rs, a_cs, ld, n, row, group)
        elif t == 0:
            store_relaxed(info, 0, int32(1))

    return orhr_leaf
