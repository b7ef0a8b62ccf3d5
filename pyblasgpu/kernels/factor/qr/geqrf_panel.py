"""``geqrf_panel``: Q R of a panel that fits into shared memory, a block a matrix, of a batch too.

In step j each warp applies reflector j to columns right of it. The first warp has column j + 1, and makes the
next reflector of it at once. So a step has one barrier, and sums are over the lanes of one warp.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar, Self

from ....errors import require
from ....gpu.backend import cuda, device_function, ptx
from ....gpu.build.compile import KernelSource
from ...common.kernel_config import WARP, BlockConfig
from ...common.parameters import parameters
from .reflector import BETA, FACTOR, TAU, reflector, scaler, size_of, warp_max, warp_sum

__all__ = ["STEM", "GeqrfPanel", "source"]

STEM = "geqrf_panel"
PARAMETERS = parameters(
    "pointer: tau, a",
    "int32: m, n",
    "int64: tau_step, a_rs, a_cs, stride_tau, stride_a",
)
#: Kilobytes of the panel that `specialize` chooses from, and threads of a block.
SIZES = {8: 128, 56: 256, 216: 512}
WIDTHS = (32, 16, 8)  # columns of a panel
EXTRA = 1024  # bytes of shared memory beside the panel: tau, and scales of columns


@dataclass(frozen=True)
class GeqrfPanel(BlockConfig):
    """Config of one `geqrf_panel` kernel.

    Attributes
    ----------
    dtype, DIM
        See `BlockConfig`.
    KILOBYTES : int
        Shared memory of the panel.
    """

    DIM: int = 512
    KILOBYTES: int = 216

    STEM: ClassVar[str] = STEM

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self.KILOBYTES > 0, "panel", "KILOBYTES > 0", KILOBYTES=self.KILOBYTES)

    @property
    def elements(self) -> int:
        """The most elements of a panel."""
        return self.KILOBYTES * 1024 // self.dtype_facts.itemsize

    @property
    def shared_bytes(self) -> int:
        return self.KILOBYTES * 1024 + EXTRA

    @property
    def registers(self) -> int:
        """Estimated 32-bit registers of a thread."""
        return 64

    @property
    def variants(self) -> tuple[Self, ...]:
        sizes = [size for size in SIZES if size < self.KILOBYTES]
        return (*(replace(self, KILOBYTES=size, DIM=SIZES[size]) for size in sizes), self)

    def fitting(self, shared_per_block: int) -> Self:
        """The Config for a device whose blocks have `shared_per_block` bytes of shared memory."""
        return [each for each in self.variants if each.shared_bytes <= shared_per_block][-1]

    def width(self, rows: int) -> int:
        """Columns of a panel of `rows` rows: 0 where not even few columns fit."""
        return next((width for width in WIDTHS if width * (rows | 1) <= self.elements), 0)

    def specialize(self, rows: int, cols: int) -> Self:
        """The Config for panels of this size: with less shared memory where that is enough."""
        return next(each for each in self.variants if cols * (rows | 1) <= each.elements)


def source(config: GeqrfPanel) -> KernelSource:
    """The kernel of `config`, for m >= n and n <= 32.

    Kernel parameters
    -----------------
    tau, a: pointer, tau and A
    m, n: int32, rows and columns of a matrix
    tau_step: int64, stride of tau (elements)
    a_rs, a_cs: int64, row and column stride of A (elements)
    stride_tau, stride_a: int64, batch strides (elements)

    Grid: x one block, z the batch. R replaces the upper triangle of A, the reflectors the rest.
    """
    return KernelSource.of(config, PARAMETERS, lambda: _build(config))


def _column_dot(facts) -> Callable:
    """``dot(out, v, x, first, m, lane)``: v^H x of the rows from `first` on, in ``out[:parts]``."""
    REALS, COMPLEX, real = facts.reals_per_element, facts.is_complex, ptx.REALS[facts.real]
    int32, total = ptx.types.int32, warp_sum()

    @device_function
    def dot(out, v, x, first, m, lane):
        re, im = real(0), real(0)
        i = int32(first + lane)
        while i < m:
            at = int32(i * REALS)
            if COMPLEX:
                re += v[at] * x[at] + v[at + 1] * x[at + 1]
                im += v[at] * x[at + 1] - v[at + 1] * x[at]
            else:
                re += v[at] * x[at]
            i = int32(i + 32)
        out[0] = total(re, lane)
        if COMPLEX:
            out[1] = total(im, lane)

    return dot


def _reflector_maker(config: GeqrfPanel) -> Callable:
    """``generate(x, tau, j, m, lane, w, h)``: the reflector of column x from row j on, by its warp."""
    facts = config.dtype_facts
    REALS, COMPLEX, int32 = facts.reals_per_element, facts.is_complex, ptx.types.int32
    dot, make, sync_warp, real = _column_dot(facts), reflector(facts), ptx.sync_warp, ptx.REALS[facts.real]

    @device_function
    def generate(x, tau, j, m, lane, w, h):
        sync_warp()
        re, im = x[j * REALS], x[j * REALS + REALS - 1]
        dot(w, x, x, int32(j + 1), m, lane)
        make(h, re, im, w[0])
        sync_warp()
        f, f_i = h[FACTOR], h[FACTOR + 1]
        i = int32(j + 1 + lane)
        while i < m:
            at = int32(i * REALS)
            if COMPLEX:
                y = x[at] * f - x[at + 1] * f_i
                x[at + 1] = x[at] * f_i + x[at + 1] * f
                x[at] = y
            else:
                x[at] = x[at] * f
            i = int32(i + 32)
        if lane == 0:
            for part in range(REALS):
                x[j * REALS + part] = h[BETA] if part == 0 else real(0)
                tau[j * REALS + part] = h[TAU + part]

    return generate


def _applier(config: GeqrfPanel) -> Callable:
    """``apply(x, v, tau, j, m, lane, w)``: x := H^H x by a warp, with reflector j in v."""
    facts = config.dtype_facts
    REALS, COMPLEX, int32 = facts.reals_per_element, facts.is_complex, ptx.types.int32
    dot, sync_warp, real = _column_dot(facts), ptx.sync_warp, ptx.REALS[facts.real]

    @device_function
    def apply(x, v, tau, j, m, lane, w):
        top, t = int32(j * REALS), tau[j * REALS]
        if t == real(0) and tau[j * REALS + REALS - 1] == real(0):
            return
        x_re, x_im = x[top], x[top + REALS - 1]
        dot(w, v, x, int32(j + 1), m, lane)
        sync_warp()
        re = t * (x_re + w[0])
        im = re
        if COMPLEX:
            t_im, s_re, s_im = tau[j * REALS + 1], x_re + w[0], x_im + w[1]
            re, im = t * s_re + t_im * s_im, t * s_im - t_im * s_re
        if lane == 0:
            x[top] = x_re - re
            if COMPLEX:
                x[top + 1] = x_im - im
        i = int32(j + 1 + lane)
        while i < m:
            at = int32(i * REALS)
            if COMPLEX:
                x[at] -= v[at] * re - v[at + 1] * im
                x[at + 1] -= v[at] * im + v[at + 1] * re
            else:
                x[at] -= v[at] * re
            i = int32(i + 32)

    return apply


def _column_scaler(config: GeqrfPanel) -> Callable:
    """``scale(x, m, lane, both)``: a column scaled to about one, by a power of two; its reciprocal."""
    facts, int32 = config.dtype_facts, ptx.types.int32
    REALS, real = facts.reals_per_element, ptx.REALS[facts.real]
    size, largest, scales = size_of(facts), warp_max(), scaler(facts)

    @device_function
    def scale(x, m, lane, both):
        most, i = real(0), int32(lane)
        while i < m:
            most = max(most, size(x, int32(i * REALS)))
            i = int32(i + 32)
        scales(both, largest(most, lane))
        i = int32(lane)
        while i < m:
            for part in range(REALS):
                x[i * REALS + part] *= both[0]
            i = int32(i + 32)
        return both[1]

    return scale


def _mover(config: GeqrfPanel) -> tuple[Callable, Callable]:
    """``load(panel, ld, a, a_rs, a_cs, m, n, t)`` and ``store(a, a_rs, a_cs, panel, ld, back, m, n, t)``: the
    panel from A and back, R times the reciprocal scales `back`; neighbours in memory by neighbouring threads.
    """
    facts, DIM = config.dtype_facts, config.DIM
    REALS, int32, int64, quotient = facts.reals_per_element, ptx.types.int32, ptx.types.int64, ptx.quotient

    @device_function
    def coordinates(number, m, n, by_columns):
        slow = int32(quotient(number, m if by_columns else n))
        fast = int32(number - slow * (m if by_columns else n))
        return (fast, slow) if by_columns else (slow, fast)

    @device_function
    def load(panel, ld, a, a_rs, a_cs, m, n, t):
        by_columns, number = abs(a_rs) <= abs(a_cs), int32(t)
        while number < m * n:
            i, j = coordinates(number, m, n, by_columns)
            at, to = (int64(i) * a_rs + int64(j) * a_cs) * REALS, int32((j * ld + i) * REALS)
            for part in range(REALS):
                panel[to + part] = a[at + part]
            number = int32(number + DIM)

    @device_function
    def store(a, a_rs, a_cs, panel, ld, back, m, n, t):
        by_columns, number = abs(a_rs) <= abs(a_cs), int32(t)
        while number < m * n:
            i, j = coordinates(number, m, n, by_columns)
            at, of = (int64(i) * a_rs + int64(j) * a_cs) * REALS, int32((j * ld + i) * REALS)
            for part in range(REALS):
                x = panel[of + part]
                a[at + part] = x * back[j] if i <= j else x
            number = int32(number + DIM)

    return load, store


def _build(config: GeqrfPanel):
    facts, WARPS = config.dtype_facts, config.DIM // WARP
    REALS, real, int32, int64 = (
        facts.reals_per_element,
        ptx.REALS[facts.real],
        ptx.types.int32,
        ptx.types.int64,
    )
    offset, shared_pointer, grid_dependency_wait = ptx.offset, ptx.shared_pointer, ptx.grid_dependency_wait
    generate, apply, scale, (load, store) = (
        _reflector_maker(config),
        _applier(config),
        _column_scaler(config),
        _mover(config),
    )
    BACK, PANEL = WIDTHS[0] * REALS, EXTRA // facts.real_size

    def geqrf_panel(tau, a, m, n, tau_step, a_rs, a_cs, stride_tau, stride_a):
        # (1) the matrix of this block, by columns
        t, batch = int32(cuda.threadIdx.x & 1023), int64(cuda.blockIdx.z)
        warp, lane, ld = int32(t >> 5), int32(t & 31), int32(m | 1)
        taus = shared_pointer(cuda.shared.array(0, real, alignment=16))
        back, panel = offset(taus, BACK), offset(taus, PANEL)
        w, h = cuda.local.array(2, real), cuda.local.array(5, real)
        grid_dependency_wait()
        a, tau = offset(a, batch * stride_a * REALS), offset(tau, batch * stride_tau * REALS)
        load(panel, ld, a, a_rs, a_cs, m, n, t)
        cuda.syncthreads()

        # (2) columns of about one; the first reflector
        c = warp
        while c < n:
            reciprocal = scale(offset(panel, c * ld * REALS), m, lane, w)
            if lane == 0:
                back[c] = reciprocal
            c = int32(c + WARPS)
        if warp == 0:
            generate(panel, taus, int32(0), m, lane, w, h)

        # (3) a reflector after the other; the next one is made as soon as its column is there
        j = int32(0)
        while j < n:
            cuda.syncthreads()
            v, c = offset(panel, j * ld * REALS), int32(j + 1 + warp)
            while c < n:
                x = offset(panel, c * ld * REALS)
                apply(x, v, taus, j, m, lane, w)
                if c == j + 1:
                    generate(x, taus, c, m, lane, w, h)
                c = int32(c + WARPS)
            j = int32(j + 1)

        # (4) the results
        store(a, a_rs, a_cs, panel, ld, back, m, n, t)
        if t < n:
            for part in range(REALS):
                tau[t * tau_step * REALS + part] = taus[t * REALS + part]

    return geqrf_panel
