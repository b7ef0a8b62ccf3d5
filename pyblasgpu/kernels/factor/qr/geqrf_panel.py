"""``geqrf_panel``: Q R of a panel that fits into shared memory, a block a matrix, of a batch too.

In step j each warp applies reflector j to columns right of it. The first warp has column j + 1, and makes the
next reflector of it at once. So a step has one barrier, and sums are over the lanes of one warp.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar, Self

from ....errors import require
from ....gpu.backend import cuda, device_function, ptx, unrolled
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
EXTRA = 2048  # bytes of shared memory next to the panel: tau, factors and scales of columns
AT_ONCE = 8  # reals of a column that a lane has under way


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


def _looper(facts, body: Callable) -> Callable:
    """``loop(acc, v, x, re, im, first, m, lane)``: ``body(k, acc, v, x, re, im, at)`` for the rows of a lane,
    from `first` on; several rows are under way at a time, and k numbers them.
    """
    REALS, int32 = facts.reals_per_element, ptx.types.int32
    COUNT = AT_ONCE // REALS
    LAST = (COUNT - 1) * WARP

    @device_function
    def one(k, acc, v, x, re, im, at):
        body(k, acc, v, x, re, im, int32(at + k * (WARP * REALS)))

    several = unrolled(COUNT, one)

    @device_function
    def loop(acc, v, x, re, im, first, m, lane):
        i = int32(first + lane)
        while i + LAST < m:
            several(0, acc, v, x, re, im, int32(i * REALS))
            i = int32(i + COUNT * WARP)
        while i < m:
            body(0, acc, v, x, re, im, int32(i * REALS))
            i = int32(i + WARP)

    return loop


def _adder(facts) -> Callable:
    """``add_up(out, acc, lane)``: sums over `acc` and the lanes of a warp, real parts and imaginary ones."""
    REALS, real, total = facts.reals_per_element, ptx.REALS[facts.real], warp_sum()

    @device_function
    def add(k, out, acc):
        for part in range(REALS):
            out[part] += acc[k * REALS + part]

    @device_function
    def over_warp(part, out, lane):
        out[part] = total(out[part], lane)

    add_all, over_warps = unrolled(AT_ONCE // REALS, add), unrolled(REALS, over_warp)

    @device_function
    def add_up(out, acc, lane):
        for part in range(REALS):
            out[part] = real(0)
        add_all(0, out, acc)
        over_warps(0, out, lane)

    return add_up


def _column_steps(facts) -> tuple[Callable, Callable]:
    """``dot(acc, v, x, re, im, first, m, lane)``: v^H x, and ``update(...)``: x -= (re, im) v, and its sum of
    squares; sums are added to `acc`.
    """
    REALS, COMPLEX = facts.reals_per_element, facts.is_complex

    @device_function
    def product(k, acc, v, x, re, im, at):
        if COMPLEX:
            acc[k * REALS] += v[at] * x[at] + v[at + 1] * x[at + 1]
            acc[k * REALS + 1] += v[at] * x[at + 1] - v[at + 1] * x[at]
        else:
            acc[k] += v[at] * x[at]

    @device_function
    def difference(k, acc, v, x, re, im, at):
        y = x[at] - v[at] * re
        if COMPLEX:
            y += v[at + 1] * im
            y_im = x[at + 1] - v[at] * im - v[at + 1] * re
            x[at + 1] = y_im
            acc[k * REALS + 1] += y_im * y_im
        x[at] = y
        acc[k * REALS] += y * y

    return _looper(facts, product), _looper(facts, difference)


def _reflector_maker(config: GeqrfPanel) -> Callable:
    """``generate(x, tau, factor, j, below, lane, h)``: the reflector of column x from row j on, by its warp,
    for a sum of squares `below`: beta, tau, and the factor of v. Elements below stay as they are.
    """
    facts = config.dtype_facts
    REALS, real = facts.reals_per_element, ptx.REALS[facts.real]
    make, sync_warp = reflector(facts), ptx.sync_warp

    @device_function
    def generate(x, tau, factor, j, below, lane, h):
        sync_warp()
        make(h, x[j * REALS], x[j * REALS + REALS - 1], below)
        sync_warp()
        if lane == 0:
            for part in range(REALS):
                x[j * REALS + part] = h[BETA] if part == 0 else real(0)
                tau[j * REALS + part] = h[TAU + part]
                factor[j * REALS + part] = h[FACTOR + part]

    return generate


def _multiplier(facts) -> Callable:
    """``multiply(w, x, t, f)``: from v^H x below the first row, in ``w[:2]``, what is taken off that row, and
    in ``w[2:]`` the multiple of v's column that is taken off below; zeros where tau is zero.
    """
    COMPLEX, real = facts.is_complex, ptx.REALS[facts.real]

    @device_function
    def multiply(w, x, t, f):
        if COMPLEX:
            if t[0] == real(0) and t[1] == real(0):
                w[0] = w[1] = w[2] = w[3] = real(0)
                return
            re = x[0] + f[0] * w[0] + f[1] * w[1]
            im = x[1] + f[0] * w[1] - f[1] * w[0]
            w[0], w[1] = t[0] * re + t[1] * im, t[0] * im - t[1] * re
            w[2], w[3] = f[0] * w[0] - f[1] * w[1], f[0] * w[1] + f[1] * w[0]
        else:
            w[0] = t[0] * (x[0] + f[0] * w[0]) if t[0] != real(0) else real(0)
            w[2] = f[0] * w[0]
            w[3] = real(0)

    return multiply


def _applier(config: GeqrfPanel) -> Callable:
    """``apply(x, v, tau, factor, j, m, lane, acc, w)``: x := H^H x by a warp, with reflector j of column v;
    ``w[0]`` becomes the sum of squares of x below row j + 1.
    """
    facts = config.dtype_facts
    REALS, COMPLEX, real, int32 = (
        facts.reals_per_element,
        facts.is_complex,
        ptx.REALS[facts.real],
        ptx.types.int32,
    )
    (dot, update), multiply, offset = _column_steps(facts), _multiplier(facts), ptx.offset
    add_up, zero, sync_warp = _adder(facts), ptx.fill(AT_ONCE), ptx.sync_warp

    @device_function
    def apply(x, v, tau, factor, j, m, lane, acc, w):
        top, after = int32(j * REALS), int32(j + 1)
        zero(acc, real(0))
        dot(acc, v, x, real(0), real(0), after, m, lane)
        add_up(w, acc, lane)
        multiply(w, offset(x, top), offset(tau, top), offset(factor, top))
        sync_warp()
        zero(acc, real(0))
        if lane == 0:
            for part in range(REALS):
                x[top + part] -= w[part]
            if after < m:
                update(acc, v, x, w[2], w[3], after, int32(after + 1), lane)
                zero(acc, real(0))
        update(acc, v, x, w[2], w[3], int32(j + 2), m, lane)
        add_up(w, acc, lane)
        if COMPLEX:
            w[0] += w[1]

    return apply


def _column_scaler(config: GeqrfPanel) -> Callable:
    """``scale(x, m, lane, both)``: a column scaled to about one, by a power of two; its reciprocal."""
    facts, int32 = config.dtype_facts, ptx.types.int32
    REALS, real = facts.reals_per_element, ptx.REALS[facts.real]
    size, largest, scales, sync_warp = size_of(facts), warp_max(), scaler(facts), ptx.sync_warp

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
        sync_warp()
        return both[1]

    return scale


def _mover(config: GeqrfPanel) -> tuple[Callable, Callable]:
    """``load(panel, ld, a, a_rs, a_cs, m, n, t)``: the panel from A; ``store(a, a_rs, a_cs, panel, ld, back,
    factor, m, n, t)``: back, R times the reciprocal scales `back`, columns below it times the factors of v.
    Neighbours in memory are of neighbouring threads.
    """
    facts, DIM = config.dtype_facts, config.DIM
    REALS, COMPLEX = facts.reals_per_element, facts.is_complex
    int32, int64, quotient = ptx.types.int32, ptx.types.int64, ptx.quotient

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
    def store(a, a_rs, a_cs, panel, ld, back, factor, m, n, t):
        by_columns, number = abs(a_rs) <= abs(a_cs), int32(t)
        while number < m * n:
            i, j = coordinates(number, m, n, by_columns)
            at, of = (int64(i) * a_rs + int64(j) * a_cs) * REALS, int32((j * ld + i) * REALS)
            x, x_im, f = panel[of], panel[of + REALS - 1], factor[j * REALS]
            if i <= j:
                x, x_im = x * back[j], x_im * back[j]
            elif COMPLEX:
                x, x_im = x * f - x_im * factor[j * 2 + 1], x * factor[j * 2 + 1] + x_im * f
            else:
                x = x * f
            a[at] = x
            if COMPLEX:
                a[at + 1] = x_im
            number = int32(number + DIM)

    return load, store


def _build(config: GeqrfPanel):
    facts, WARPS = config.dtype_facts, config.DIM // WARP
    REALS, real = facts.reals_per_element, ptx.REALS[facts.real]
    int32, int64, offset, shared_pointer = ptx.types.int32, ptx.types.int64, ptx.offset, ptx.shared_pointer
    grid_dependency_wait, generate, apply = (
        ptx.grid_dependency_wait,
        _reflector_maker(config),
        _applier(config),
    )
    scale, (load, store), (dot, _) = _column_scaler(config), _mover(config), _column_steps(facts)
    add_up, zero = _adder(facts), ptx.fill(AT_ONCE)
    FACTORS, BACK, PANEL = WIDTHS[0] * REALS, 2 * WIDTHS[0] * REALS, EXTRA // facts.real_size

    def geqrf_panel(tau, a, m, n, tau_step, a_rs, a_cs, stride_tau, stride_a):
        # (1) the matrix of this block, by columns
        t, batch = int32(cuda.threadIdx.x & 1023), int64(cuda.blockIdx.z)
        warp, lane, ld = int32(t >> 5), int32(t & 31), int32(m | 1)
        taus = shared_pointer(cuda.shared.array(0, real, alignment=16))
        factors, back, panel = offset(taus, FACTORS), offset(taus, BACK), offset(taus, PANEL)
        acc, w, h = cuda.local.array(AT_ONCE, real), cuda.local.array(4, real), cuda.local.array(5, real)
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
            zero(acc, real(0))
            dot(acc, panel, panel, real(0), real(0), int32(1), m, lane)
            add_up(w, acc, lane)
            generate(panel, taus, factors, int32(0), w[0], lane, h)

        # (3) a reflector after the other; the next one is made as soon as its column is there
        j = int32(0)
        while j < n:
            cuda.syncthreads()
            v, c = offset(panel, j * ld * REALS), int32(j + 1 + warp)
            while c < n:
                x = offset(panel, c * ld * REALS)
                apply(x, v, taus, factors, j, m, lane, acc, w)
                if c == j + 1:
                    generate(x, taus, factors, c, w[0], lane, h)
                c = int32(c + WARPS)
            j = int32(j + 1)

        # (4) the results
        store(a, a_rs, a_cs, panel, ld, back, factors, m, n, t)
        if t < n:
            for part in range(REALS):
                tau[t * tau_step * REALS + part] = taus[t * REALS + part]

    return geqrf_panel
