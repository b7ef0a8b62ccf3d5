"""``larft_leaf``: the triangle T of a block of reflectors, H1 H2 ... = I - V T V^H, a block a matrix.

V^H V is there. Column i of T is -tau_i T v, with T of the reflectors before and v their products with
reflector i (Schreiber and Van Loan, 1989; LAPACK's larft, forward and by columns).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from ....gpu.backend import cuda, device_function, ptx
from ....gpu.build.compile import KernelSource
from ....types import Dtype
from ...common.parameters import parameters
from ..triangles.leaf_config import TriangleInShared

__all__ = ["STEM", "LarftLeaf", "source", "triangle_entry"]

STEM = "larft_leaf"
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
        return 48


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


def triangle_entry(facts: Dtype) -> Callable:
    """``entry(w, t, products, ld, tau, r, i)``: ``w``, entry (r, i) of T for r <= i, of the columns of T
    before, column i of V^H V in `products`, and tau_i; zero for r > i.
    """
    REALS, COMPLEX, real = facts.reals_per_element, facts.is_complex, ptx.REALS[facts.real]

    @device_function
    def entry(w, t, products, ld, tau, r, i):
        re, im = real(0), real(0)
        for c in range(r, i):
            at, of = (c * ld + r) * REALS, (i * ld + c) * REALS
            if COMPLEX:
                re += t[at] * products[of] - t[at + 1] * products[of + 1]
                im += t[at] * products[of + 1] + t[at + 1] * products[of]
            else:
                re += t[at] * products[of]
        if r == i:
            re, im = real(-1), real(0)
        if COMPLEX:
            w[0], w[1] = tau[1] * im - tau[0] * re, -tau[0] * im - tau[1] * re
        else:
            w[0] = -tau[0] * re

    return entry


def _build(config: LarftLeaf):
    facts, LD = config.dtype_facts, config.ld
    REALS, real = facts.reals_per_element, ptx.REALS[facts.real]
    int32, int64, offset, shared_pointer = ptx.types.int32, ptx.types.int64, ptx.offset, ptx.shared_pointer
    grid_dependency_wait, entry = ptx.grid_dependency_wait, triangle_entry(facts)

    def larft_leaf(tau, t, n, tau_step, ldt, stride_tau, stride_t):
        # (1) V^H V by columns, a row a thread
        r, batch = int32(cuda.threadIdx.x & 1023), int64(cuda.blockIdx.z)
        s, w = shared_pointer(cuda.shared.array(0, real, alignment=16)), cuda.local.array(2, real)
        grid_dependency_wait()
        tau, t = offset(tau, batch * stride_tau * REALS), offset(t, batch * stride_t * REALS)
        if r < n:
            for c in range(n):
                for part in range(REALS):
                    s[(c * LD + r) * REALS + part] = t[(c * ldt + r) * REALS + part]

        # (2) a column of T after the other: row r of those before it times V^H v
        for i in range(n):
            entry(w, s, s, LD, offset(tau, i * tau_step * REALS), r, i)
            cuda.syncthreads()
            if r <= i:
                for part in range(REALS):
                    s[(i * LD + r) * REALS + part] = w[part]

        # (3) T, and zeros below its diagonal; a row is of the thread that made it
        if r < n:
            for c in range(n):
                for part in range(REALS):
                    t[(c * ldt + r) * REALS + part] = s[(c * LD + r) * REALS + part] if r <= c else real(0)

    return larft_leaf
