"""``larft_leaf``: the triangle T of a block of reflectors, H1 H2 ... = I - V T V^H, a block a matrix.

V^H V is there. Column i of T is -tau_i T v, with T of the reflectors before and v their products with
reflector i (Schreiber and Van Loan, 1989; LAPACK's larft, forward and by columns). Rows of T do not depend on
one another, so a thread has a row of a small triangle on the diagonal, and none waits for another.

Two neighbouring triangles, T1 and T2, are joined by products: between them is -T1 V1^H V2 T2. So there are as
many steps with barriers as the order can be halved, and small triangles are few columns.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from ....errors import require
from ....gpu.backend import cuda, device_function, in_order, ptx, unrolled
from ....gpu.build.compile import KernelSource
from ....types import Dtype
from ...common.parameters import parameters
from ..triangles.leaf_config import TriangleInShared

__all__ = ["STEM", "LarftLeaf", "source", "triangle_maker"]

STEM = "larft_leaf"
BYTES = 32  # of a row of V^H V that a thread reads at a time
LOADS = 8  # columns of V^H V that a thread has under way
TILE = 4  # rows and columns of a tile of a thread
AHEAD = 4  # columns of T that a thread reads at a time
PARAMETERS = parameters(
    "pointer: tau, t",
    "int32: n",
    "int64: tau_step, ldt, stride_tau, stride_t",
)


@dataclass(frozen=True)
class LarftLeaf(TriangleInShared):
    """Config of one `larft_leaf` kernel; the parameters are those of `TriangleInShared`."""

    ORDER: int = 128
    DIM: int = 256

    STEM: ClassVar[str] = STEM
    ORDERS: ClassVar[tuple[int, ...]] = (32, 128)

    def __post_init__(self) -> None:
        super().__post_init__()
        require(
            self.DIM * 4 * TILE**2 >= self.ORDER**2,
            "threads",
            f"DIM >= ORDER^2 / {4 * TILE**2}",
            DIM=self.DIM,
            ORDER=self.ORDER,
        )

    @property
    def LEAF(self) -> int:
        """Rows of a small triangle."""
        return self.ORDER // (4 if self.ORDER % 32 == 0 else 2 if self.ORDER % 16 == 0 else 1)

    @property
    def widths(self) -> tuple[int, ...]:
        """Rows of the triangles that are joined, step by step."""
        return tuple(w for w in (self.ORDER // 4, self.ORDER // 2) if w >= self.LEAF)

    @property
    def registers(self) -> int:
        """Estimated 32-bit registers of a thread."""
        return 16 * self.dtype_facts.itemsize // 4 + 80


def source(config: LarftLeaf) -> KernelSource:
    """The kernel of `config`, for n <= ORDER reflectors.

    Kernel parameters
    -----------------
    tau, t: pointer, tau, and V^H V, which T replaces
    n: int32, reflectors
    tau_step: int64, stride of tau (elements)
    ldt: int64, column stride of T (elements)
    stride_tau, stride_t: int64, batch strides (elements)

    Grid: x one block, z the batch. Zeros are written below the diagonal of T.
    """
    return KernelSource.of(config, PARAMETERS, lambda: _build(config))


def triangle_maker(facts: Dtype, ahead: int = 1) -> Callable:
    """``make(s, ld, tau, tau_step, n, r)``: row r of T by a thread, to the upper triangle of `s`, by columns.

    Below the diagonal is V^H V, which stays. Some columns are made at a time: rows of T before them are read
    once for all of these, `ahead` columns of T at a time, or as many as are made.
    """
    REALS, COMPLEX, real = facts.reals_per_element, facts.is_complex, ptx.REALS[facts.real]
    COLUMNS, LOCAL, VECTOR = BYTES // facts.itemsize, BYTES // facts.real_size, 16 // facts.real_size
    select, load, zero = ptx.select, ptx.load_shared(VECTOR, BYTES // 16, VECTOR), ptx.fill(LOCAL)
    AHEAD = min(ahead, COLUMNS)
    ALL, OF_T = AHEAD * LOCAL, AHEAD * 2

    @device_function
    def add(acc, q, t, u, re, im):
        if COMPLEX:
            acc[q * 2] += t[u] * re + t[u + 1] * im
            acc[q * 2 + 1] += t[u + 1] * re - t[u] * im
        else:
            acc[q] += t[u] * re

    @device_function
    def fetch(k, t, g, s, ld, c, first, r):
        for part in range(REALS):
            t[k * 2 + part] = select(r <= c + k, s[((c + k) * ld + r) * REALS + part], real(0))
        load(g, k * LOCAL, s, ((c + k) * ld + first) * REALS)

    def before_adder(k: int) -> Callable:
        @device_function
        def add_before(q, acc, t, g):
            at = k * LOCAL + q * REALS
            add(acc, q, t, k * 2, g[at], g[at + REALS - 1])

        return unrolled(COLUMNS, add_before)

    fetches, add_all = unrolled(AHEAD, fetch), in_order([before_adder(k) for k in range(AHEAD)])

    @device_function
    def add_after(q, acc, t, s, at):
        add(acc, q, t, 0, s[at + q * REALS], s[at + q * REALS + REALS - 1])

    def column_maker(q: int) -> Callable:
        add_rest = unrolled(COLUMNS - 1 - q, add_after)

        @device_function
        def column(acc, t, s, ld, tau, tau_step, first, n, r):
            i = first + q
            if i < n:
                at, f, f_im = i * ld, tau[i * tau_step * REALS], tau[i * tau_step * REALS + REALS - 1]
                re, im = f * acc[q * REALS], f_im
                if COMPLEX:
                    re, im = re - f_im * acc[q * 2 + 1], f * acc[q * 2 + 1] + f_im * acc[q * 2]
                    t[1] = select(r < i, -im, select(r == i, f_im, real(0)))
                t[0] = select(r < i, -re, select(r == i, f, real(0)))
                if r <= i:
                    for part in range(REALS):
                        s[(at + r) * REALS + part] = t[part]
                add_rest(q + 1, acc, t, s, (at + first) * REALS)

        return column

    make_columns = in_order([column_maker(q) for q in range(COLUMNS)])

    @device_function
    def make(s, ld, tau, tau_step, n, r):
        acc, g, t = cuda.local.array(LOCAL, real), cuda.local.array(ALL, real), cuda.local.array(OF_T, real)
        for first in range(0, n, COLUMNS):
            zero(acc, real(0))
            for c in range(r & ~31, first, AHEAD):
                fetches(0, t, g, s, ld, c, first, r)
                add_all(0, acc, t, g)
            make_columns(acc, t, s, ld, tau, tau_step, first, n, r)

    return make


def _copier(config: LarftLeaf) -> tuple[Callable, Callable]:
    """``load(s, t, ldt, n, r, group)``: V^H V to shared memory, zeros beyond it; ``write(t, s, ldt, n, r,
    group)``: T from there, zeros below its diagonal. A thread has a row, and columns by turns.
    """
    REALS, LD, ORDER = config.dtype_facts.reals_per_element, config.ld, config.ORDER
    GROUPS, LOCAL = config.GROUPS, LOADS * config.dtype_facts.reals_per_element
    real, read, select = ptx.REALS[config.dtype_facts.real], ptx.load_global(1, False), ptx.select
    STEP, store = LOADS * GROUPS, ptx.store_global

    @device_function
    def fetch(k, x, t, ldt, c, n, r):
        at = c + k * GROUPS
        for part in range(REALS):
            read(x, k * REALS + part, t, (at * ldt + r) * REALS + part, (at < n) & (r < n))

    @device_function
    def keep(k, x, s, c, r):
        if c + k * GROUPS < ORDER:
            for part in range(REALS):
                s[((c + k * GROUPS) * LD + r) * REALS + part] = x[k * REALS + part]

    fetches, keeps = unrolled(LOADS, fetch), unrolled(LOADS, keep)

    @device_function
    def load(s, t, ldt, n, r, group):
        x = cuda.local.array(LOCAL, real)
        for first in range(0, ORDER, STEP):
            fetches(0, x, t, ldt, first + group, n, r)
            keeps(0, x, s, first + group, r)

    @device_function
    def write(t, s, ldt, n, r, group):
        for first in range(0, n, GROUPS):
            c = first + group
            for part in range(REALS):
                x = select(r <= c, s[(c * LD + r) * REALS + part], real(0))
                store(t, (c * ldt + r) * REALS + part, x, (c < n) & (r < n))

    return load, write


def _multiplier(config: LarftLeaf, conjugates: bool, along_rows: bool) -> Callable:
    """``multiply(acc, y, z)``: tiles of four by four, `acc`, plus products of vectors of `y`, conjugated or
    not, with columns of `z`. Vectors of `y` are along the rows of the tile, or along those of `z`.
    """
    facts, V = config.dtype_facts, config.vector
    REALS, COMPLEX = facts.reals_per_element, facts.is_complex
    W = V * REALS

    def term_of(u: int, e: int) -> Callable:
        p, q = e % TILE, e // TILE
        left, right, at = (u * TILE + p if along_rows else p * V + u) * REALS, q * W + u * REALS, e * REALS

        @device_function
        def add(acc, y, z):
            if COMPLEX:
                im = -y[left + 1] if conjugates else y[left + 1]
                acc[at] += y[left] * z[right] - im * z[right + 1]
                acc[at + 1] += y[left] * z[right + 1] + im * z[right]
            else:
                acc[at] += y[left] * z[right]

        return add

    return in_order([term_of(u, e) for u in range(V) for e in range(TILE * TILE)])


def _joiner(config: LarftLeaf, w: int) -> Callable:
    """``join(s, n, t)``: triangles of `w` rows joined to those of twice as many."""
    facts, LD, V, TILES = config.dtype_facts, config.ld, config.vector, w // TILE
    REALS, real, select = facts.reals_per_element, ptx.REALS[facts.real], ptx.select
    W, ACC, STEP, int32 = V * REALS, TILE * TILE * REALS, LD * REALS, ptx.types.int32
    FACTORS = TILE * W
    one, four = ptx.load_shared(W), ptx.load_shared(W, TILE, STEP)
    across, zero = ptx.load_shared(W, TILE // V, W), ptx.fill(ACC)
    by_products, by_triangle = _multiplier(config, True, False), _multiplier(config, False, True)

    @device_function
    def columns(q, z, s, at):
        one(z, q * W, s, at + q * TILES * STEP)

    @device_function
    def rows(u, y, s, at):
        across(y, u * TILE * REALS, s, at + u * STEP)

    @device_function
    def mask_products(k, y, z, l, tk):
        """Clear what is below the diagonal of T2, which is V^H V."""
        q, u = k // V, k % V
        for part in range(REALS):
            at = (q * V + u) * REALS + part
            z[at] = select(l + u <= tk + q * TILES, z[at], real(0))

    @device_function
    def mask_triangle(k, y, l, ti):
        u, p = k // TILE, k % TILE
        for part in range(REALS):
            y[k * REALS + part] = select(l + u >= ti + p, y[k * REALS + part], real(0))

    all_columns, all_rows = unrolled(TILE, columns), unrolled(V, rows)
    mask_z, mask_y = unrolled(TILE * V, mask_products), unrolled(TILE * V, mask_triangle)

    @device_function
    def leave(e, acc, s, at, sign):
        p, q = e % TILE, e // TILE
        for part in range(REALS):
            s[at + q * TILES * STEP + p * REALS + part] = sign * acc[e * REALS + part]

    leaves = unrolled(TILE * TILE, leave)

    @device_function
    def join(s, n, t):
        acc = cuda.local.array(ACC, real)
        y, z = cuda.local.array(FACTORS, real), cuda.local.array(FACTORS, real)
        first, tile = int32(t // (TILES * TILES) * (2 * w)), int32(t % (TILES * TILES))
        ti, tk = int32(tile // TILES * TILE), int32(tile % TILES)
        middle = first + w
        is_there, to = middle < n, ((middle + tk) * LD + first + ti) * REALS

        # (1) V1^H V2 T2
        cuda.syncthreads()
        zero(acc, real(0))
        if is_there:
            for l in range(0, w, V):
                four(y, 0, s, ((first + ti) * LD + middle + l) * REALS)
                all_columns(0, z, s, ((middle + tk) * LD + middle + l) * REALS)
                mask_z(0, y, z, l, tk)
                by_products(acc, y, z)
            leaves(0, acc, s, to, real(1))
        cuda.syncthreads()

        # (2) T1 times that, which it replaces
        zero(acc, real(0))
        if is_there:
            for l in range(0, w, V):
                all_rows(0, y, s, ((first + l) * LD + first + ti) * REALS)
                all_columns(0, z, s, ((middle + tk) * LD + first + l) * REALS)
                mask_y(0, y, l, ti)
                by_triangle(acc, y, z)
        cuda.syncthreads()
        if is_there:
            leaves(0, acc, s, to, real(-1))

    return join


def _build(config: LarftLeaf):
    facts, LD, ORDER, LEAF = config.dtype_facts, config.ld, config.ORDER, config.LEAF
    REALS, real = facts.reals_per_element, ptx.REALS[facts.real]
    int32, int64, offset, shared_pointer = ptx.types.int32, ptx.types.int64, ptx.offset, ptx.shared_pointer
    grid_dependency_wait, make, (load, write) = (
        ptx.grid_dependency_wait,
        triangle_maker(facts, AHEAD),
        _copier(config),
    )
    join_all = in_order([_joiner(config, w) for w in config.widths])

    def larft_leaf(tau, t, n, tau_step, ldt, stride_tau, stride_t):
        # (1) V^H V by columns
        thread, batch = int32(cuda.threadIdx.x & 1023), int64(cuda.blockIdx.z)
        r, group = int32(thread % ORDER), int32(thread // ORDER)
        s = shared_pointer(cuda.shared.array(0, real, alignment=16))
        grid_dependency_wait()
        tau, t = offset(tau, batch * stride_tau * REALS), offset(t, batch * stride_t * REALS)
        load(s, t, ldt, n, r, group)

        # (2) small triangles, a row a thread
        cuda.syncthreads()
        if thread < min(n, ORDER):
            first, row = int32(thread // LEAF * LEAF), int32(thread % LEAF)
            corner, factors = offset(s, first * (LD + 1) * REALS), offset(tau, first * tau_step * REALS)
            make(corner, LD, factors, tau_step, min(n - first, LEAF), row)

        # (3) larger ones, and T
        join_all(s, n, thread)
        cuda.syncthreads()
        write(t, s, ldt, n, r, group)

    return larft_leaf
