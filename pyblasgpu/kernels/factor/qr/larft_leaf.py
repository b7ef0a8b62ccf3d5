"""``larft_leaf``: the triangle T of a block of reflectors, H1 H2 ... = I - V T V^H, a block a matrix.

V^H V is there. Column i of T is -tau_i T v, with T of the reflectors before and v their products with
reflector i (Schreiber and Van Loan, 1989; LAPACK's larft, forward and by columns). Rows of T do not depend on
one another, so a thread has a row, and none waits for another.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from ....gpu.backend import cuda, device_function, in_order, ptx, unrolled
from ....gpu.build.compile import KernelSource
from ....types import Dtype
from ...common.parameters import parameters
from ..triangles.leaf_config import TriangleInShared

__all__ = ["STEM", "LarftLeaf", "source", "triangle_maker"]

STEM = "larft_leaf"
BYTES = 32  # of a row of V^H V that a thread reads at a time
LOADS = 8  # columns of V^H V that a thread has under way
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
    DIM: int = 128

    STEM: ClassVar[str] = STEM
    ORDERS: ClassVar[tuple[int, ...]] = (32, 128)

    @property
    def registers(self) -> int:
        """Estimated 32-bit registers of a thread."""
        return 64


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


def _loader(config: LarftLeaf) -> Callable:
    """``load(s, t, ldt, n, r)``: row r of V^H V to shared memory by a thread, some columns at a time."""
    REALS, LD, LOCAL = (
        config.dtype_facts.reals_per_element,
        config.ld,
        LOADS * config.dtype_facts.reals_per_element,
    )
    real, read = ptx.REALS[config.dtype_facts.real], ptx.load_global(1, False)

    @device_function
    def fetch(k, x, t, ldt, c, n, r):
        for part in range(REALS):
            read(x, k * REALS + part, t, ((c + k) * ldt + r) * REALS + part, c + k < n)

    @device_function
    def keep(k, x, s, c, r):
        for part in range(REALS):
            s[((c + k) * LD + r) * REALS + part] = x[k * REALS + part]

    fetches, keeps = unrolled(LOADS, fetch), unrolled(LOADS, keep)

    @device_function
    def load(s, t, ldt, n, r):
        x = cuda.local.array(LOCAL, real)
        for c in range(0, n, LOADS):
            fetches(0, x, t, ldt, c, n, r)
            keeps(0, x, s, c, r)

    return load


def _build(config: LarftLeaf):
    facts, LD = config.dtype_facts, config.ld
    REALS, real = facts.reals_per_element, ptx.REALS[facts.real]
    int32, int64, offset, shared_pointer = ptx.types.int32, ptx.types.int64, ptx.offset, ptx.shared_pointer
    grid_dependency_wait, load, make = ptx.grid_dependency_wait, _loader(config), triangle_maker(facts, AHEAD)

    def larft_leaf(tau, t, n, tau_step, ldt, stride_tau, stride_t):
        # (1) V^H V by columns, a row a thread
        r, batch = int32(cuda.threadIdx.x & 1023), int64(cuda.blockIdx.z)
        s = shared_pointer(cuda.shared.array(0, real, alignment=16))
        grid_dependency_wait()
        tau, t = offset(tau, batch * stride_tau * REALS), offset(t, batch * stride_t * REALS)
        if r < n:
            load(s, t, ldt, n, r)

        # (2) a row of T
        cuda.syncthreads()
        if r < n:
            make(s, LD, tau, tau_step, n, r)

        # (3) T, and zeros below its diagonal; a row is of the thread that made it
        if r < n:
            for c in range(n):
                for part in range(REALS):
                    t[(c * ldt + r) * REALS + part] = s[(c * LD + r) * REALS + part] if r <= c else real(0)

    return larft_leaf
