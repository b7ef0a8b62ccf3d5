"""``geqrf_panel``: Q R of panels of columns in registers, by one block a matrix or several.

A warp has columns, and each lane rows of them (`register_columns`). Step j finds column j in shared memory.
Each warp multiplies it with its own columns. The warp that has column j makes the reflector of that, and all
apply it. The warp of column j + 1 then leaves that for the next step. So a step has one sum over lanes.

A panel also leaves V with its ones and zeros, and T of I - V T V^H. The products of column j with columns
before it are those that T needs. Several blocks of a panel exchange their sums once a step. They are a
cluster where the device has such large ones (`panel_exchange`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, Self

from ....errors import require
from ....gpu.backend import cuda, device_function, ptx, unrolled
from ....gpu.build.compile import WHOLE_ROWS, KernelSource
from ...common.kernel_config import WARP, BlockConfig
from ...common.parameters import parameters
from ..clusters import cluster_meeter, largest_cluster
from ..lane_sums import adder, larger, several_over_warp
from .larft_leaf import triangle_maker
from .meeting import WORDS, meeting
from .panel_exchange import cluster_exchanger, exchanger, gatherer, slot_elements
from .reflector import BETA, FACTOR, TAU, multiplier, projector, reflector
from .register_columns import (
    column_scaler,
    column_sizer,
    dotter,
    loader,
    storer,
    updater,
)

if TYPE_CHECKING:
    from ....gpu.device import Device

__all__ = ["PANEL", "SPREAD", "STEM", "GeqrfPanel", "source"]

STEM = "geqrf_panel"
PARAMETERS = parameters(
    "pointer: tau, a, v, t, state",
    "int32 pointer: flags",
    "int32: m, n, above",
    "int64: tau_step, a_rs, a_cs, v_cs, t_cs, stride_tau, stride_a, stride_v, stride_t, stride_state",
)
PANEL, SPREAD = range(2)  # of one block; of several
WIDTH = 32  # columns of a panel
HEAD = 8  # elements: two on the diagonal, and a reflector
#: Rows of a lane, by words of an element. Panels of one block are those of `geqrf_small`, but narrower ones.
LANE_ROWS = {1: 24, 2: 10, 4: 5}


@dataclass(frozen=True)
class GeqrfPanel(BlockConfig):
    """Config of one `geqrf_panel` kernel.

    Attributes
    ----------
    dtype, DIM
        See `BlockConfig`.
    ROWS : int
        Rows of a lane.
    COLS : int
        The most columns.
    KIND : int
        PANEL or SPREAD.
    HAS_CLUSTERS : bool
        Whether the blocks of a panel are a cluster, where they are not too many.
    """

    DIM: int = 512
    ROWS: int = 5
    COLS: int = WIDTH
    KIND: int = SPREAD
    HAS_CLUSTERS: bool = True

    STEM: ClassVar[str] = STEM

    def __post_init__(self) -> None:
        super().__post_init__()
        require(0 < self.COLS <= WIDTH, "panel", "0 < COLS <= 32", COLS=self.COLS)
        require(
            self.COLS % self.WARPS == 0, "columns", "COLS % (DIM / 32) == 0", COLS=self.COLS, DIM=self.DIM
        )

    @property
    def IS_CLUSTER(self) -> bool:
        """Whether the blocks of a panel are a cluster."""
        return self.HAS_CLUSTERS and self.KIND == SPREAD

    @property
    def WARPS(self) -> int:
        """Warps of a block."""
        return self.DIM // WARP

    @property
    def OWN(self) -> int:
        """Columns of a warp."""
        return self.COLS // self.WARPS

    @property
    def block_rows(self) -> int:
        """Rows of a block."""
        return WARP * self.ROWS

    @property
    def ld(self) -> int:
        """Elements from column to column of the triangle: some more than a column, against bank conflicts."""
        return self.COLS + 16 // self.dtype_facts.itemsize

    @property
    def registers(self) -> int:
        """Estimated 32-bit registers of a thread."""
        words = self.dtype_facts.itemsize // 4
        return (self.OWN + 1) * (self.ROWS + 1) * words + 40

    @property
    def shared_elements(self) -> int:
        """The shared memory that `_places` describes."""
        own = 2 * self.block_rows + HEAD + self.COLS * (3 + self.ld)
        return own + slot_elements(self) * self.IS_CLUSTER

    @property
    def variants(self) -> tuple[Self, ...]:
        """The panel of a cluster and that of several blocks; before them that of one block, if columns are
        narrower.
        """
        spread = replace(self, HAS_CLUSTERS=False)
        of_several = *[self] * self.HAS_CLUSTERS, spread
        if self.COLS < WIDTH:
            return replace(spread, KIND=PANEL), *of_several
        return tuple(replace(each, ROWS=LANE_ROWS[self.dtype_facts.itemsize // 4]) for each in of_several)

    def on(self, device: Device) -> Self:
        """The Config for a device. Clusters of complex panels have few rows, and no kernels of their own."""
        has_clusters = self.HAS_CLUSTERS and device.cc >= (9, 0) and not self.dtype_facts.is_complex
        return replace(self, HAS_CLUSTERS=has_clusters)

    def fitting(self, shared_per_block: int) -> Self:
        """The Config itself: all its variants fit into any device."""
        return self

    def panel(self, rows: int, device: Device) -> Self:
        """The Config for panels of `rows` rows on a device."""
        *others, last = self.on(device).variants
        blocks = {True: range(2, largest_cluster(device) + 1), False: range(2)}
        return next((each for each in others if each.grid(rows) in blocks[each.IS_CLUSTER]), last)

    def grid(self, rows: int) -> int:
        """Blocks of a panel of `rows` rows."""
        return -(-rows // self.block_rows)

    def state(self, blocks: int) -> int:
        """Elements that the blocks of a panel exchange: for each parity sums and a row, and sizes."""
        return (3 * blocks + 2) * self.COLS


def source(config: GeqrfPanel) -> KernelSource:
    """The kernel of `config`, for m >= n.

    Kernel parameters
    -----------------
    tau, a, v, t: pointer, tau, A, V and T
    state: pointer, of several blocks ``config.state(blocks)`` elements
    flags: int32 pointer, of several blocks that are no cluster, 0 before and after
    m, n: int32, rows and columns of a panel
    above: int32, rows of V above the panel, which become zero
    tau_step: int64, stride of tau (elements)
    a_rs, a_cs: int64, row and column stride of A (elements)
    v_cs, t_cs: int64, column strides of V and T, whose row strides are 1 (elements)
    stride_tau, stride_a, stride_v, stride_t, stride_state: int64, batch strides (elements)

    Grid: x one block, or ``config.grid(m)``, a cluster or all resident; z the batch. R replaces the upper
    triangle of A, the reflectors the rest.
    """
    is_resident = config.KIND == SPREAD and not config.IS_CLUSTER
    cluster = WHOLE_ROWS if config.IS_CLUSTER else 1
    return KernelSource.of(
        config, PARAMETERS, lambda: _build(config), cooperative=is_resident, cluster=cluster
    )


def _meeting(config: GeqrfPanel) -> tuple[Callable, Callable]:
    """``meet(flags, number, blocks, t)`` and ``part(flags, blocks, t)`` as of `meeting`; clusters need no
    flags.
    """
    if not config.IS_CLUSTER:
        return meeting()
    meet_in_cluster = cluster_meeter(True)

    @device_function
    def meet(flags, number, blocks, t):
        meet_in_cluster(blocks)

    @device_function
    def part(flags, blocks, t):
        pass

    return meet, part


def _publisher(config: GeqrfPanel) -> Callable:
    """``publish(x, c, column, tops, col, top, lane)``: column c of a warp for all: what is below its
    diagonal, and zeros above; its element on the diagonal to `tops`.
    """
    facts, ROWS = config.dtype_facts, config.ROWS
    REALS, real, select = facts.reals_per_element, ptx.REALS[facts.real], ptx.select

    @device_function
    def element(k, x, c, column, col, i, lane):
        for part in range(REALS):
            at = (c * ROWS + k) * REALS + part
            column[(k * WARP + lane) * REALS + part] = select(i + k * WARP > col, x[at], real(0))

    elements = unrolled(ROWS, element)

    @device_function
    def publish(x, c, column, tops, col, top, lane):
        elements(0, x, c, column, col, top + lane, lane)
        if top + lane == col:
            for part in range(REALS):
                tops[part] = x[c * ROWS * REALS + part]

    return publish


def _places(config: GeqrfPanel) -> tuple[int, ...]:
    """Return where shared memory has elements on the diagonal, the reflector, tau, factors of v, reciprocals
    of scales, and V^H V below T; columns come first.
    """
    REALS = config.dtype_facts.reals_per_element
    tops = 2 * config.block_rows * REALS
    taus = tops + HEAD * REALS
    size = config.COLS * REALS
    return tops, tops + 2 * REALS, taus, taus + size, taus + 2 * size, taus + 3 * size


def _slots(config: GeqrfPanel) -> int:
    """Return where shared memory has the slots of a cluster, at a multiple of 8 bytes."""
    end = _places(config)[-1] + config.COLS * config.ld * config.dtype_facts.reals_per_element
    return end + end % 2


def _product_leaver(config: GeqrfPanel) -> Callable:
    """``leave(s, y, col, j, lane)``: the product of column j of V with column `col`, from y, that of column j
    with what column `col` was.
    """
    facts, LD = config.dtype_facts, config.ld
    COMPLEX, (*_, FACTORS, _, TRIANGLE) = facts.is_complex, _places(config)

    @device_function
    def leave(s, y, col, j, lane):
        if lane == 0:
            at = col * LD + j
            if COMPLEX:
                f, f_im = s[FACTORS + col * 2], s[FACTORS + col * 2 + 1]
                s[TRIANGLE + at * 2] = f * y[0] - f_im * y[1]
                s[TRIANGLE + at * 2 + 1] = f * y[1] + f_im * y[0]
            else:
                s[TRIANGLE + at] = s[FACTORS + col] * y[0]

    return leave


def _triangle_maker(config: GeqrfPanel) -> Callable:
    """``make(t, t_cs, s, n, lane)``: T by one warp, a row a lane, zeros below its diagonal."""
    facts, LD, (_, _, TAUS, *_, TRIANGLE) = config.dtype_facts, config.ld, _places(config)
    REALS, real, int64, offset = facts.reals_per_element, ptx.REALS[facts.real], ptx.types.int64, ptx.offset
    make_rows = triangle_maker(facts)

    @device_function
    def make(t, t_cs, s, n, lane):
        rows = offset(s, TRIANGLE)
        if lane < n:
            make_rows(rows, LD, offset(s, TAUS), 1, n, lane)
            for i in range(n):
                for part in range(REALS):
                    x = rows[(i * LD + lane) * REALS + part] if lane <= i else real(0)
                    t[(int64(i) * t_cs + lane) * REALS + part] = x

    return make


def _reflector_maker(config: GeqrfPanel) -> Callable:
    """``make(s, h, y, sums, tops, j, warp, lane)``: ``h``, the reflector of column j, by the warp that has
    that; its tau and the factor of v go to `s`.
    """
    facts, OWN, WARPS = config.dtype_facts, config.OWN, config.WARPS
    REALS, select = facts.reals_per_element, ptx.select
    (_, REFLECTOR, TAUS, FACTORS, *_), make_one, quotient = _places(config), reflector(facts), ptx.quotient

    @device_function
    def find(c, square, sums, j, warp):
        square[0] = sums[c * REALS] if c == 0 else select(warp + c * WARPS == j, sums[c * REALS], square[0])

    finds = unrolled(OWN, find)

    @device_function
    def make(s, h, y, sums, tops, j, warp, lane):
        finds(0, y, sums, j, warp)
        if quotient(j, WARPS) * WARPS + warp == j:
            make_one(h, tops[0], tops[REALS - 1], y[0])
            if lane == 0:
                for k in range(5):
                    s[REFLECTOR + k] = h[k]
                for part in range(REALS):
                    s[TAUS + j * REALS + part] = h[TAU + part]
                    s[FACTORS + j * REALS + part] = h[FACTOR + part]
        cuda.syncthreads()
        for k in range(5):
            h[k] = s[REFLECTOR + k]

    return make


def _stepper(config: GeqrfPanel) -> Callable:
    """``steps(x, v, sums, y, w, h, s, left, flags, n, top, block, blocks, t)``: all steps. `s` is shared
    memory, `left` what blocks leave for one another.
    """
    facts, ROWS, OWN, WARPS = config.dtype_facts, config.ROWS, config.OWN, config.WARPS
    REALS, COMPLEX, real = facts.reals_per_element, facts.is_complex, ptx.REALS[facts.real]
    SPREADS, SPAN = config.KIND == SPREAD, config.COLS * REALS
    TOPS, *_ = _places(config)
    int32, offset, shuffle, select = ptx.types.int32, ptx.offset, ptx.shuffle, ptx.select
    make, project, multiply = _reflector_maker(config), projector(facts), multiplier(facts)
    dot, update, publish = dotter(config), updater(config), _publisher(config)
    add = several_over_warp(OWN * REALS, adder())
    leave_product, IS_CLUSTER = _product_leaver(config), config.IS_CLUSTER
    exchange = cluster_exchanger(config, _slots(config))[1] if IS_CLUSTER else exchanger(config)

    @device_function
    def read(k, v, column, lane):
        for part in range(REALS):
            v[k * REALS + part] = column[(k * WARP + lane) * REALS + part]

    reads = unrolled(ROWS, read)

    @device_function
    def column(c, x, v, sums, y, w, h, s, left, blocks, j, top, warp, lane):
        col, at = int32(warp + c * WARPS), c * ROWS * REALS
        if SPREADS:
            for part in range(REALS):
                w[part] = left[SPAN * blocks + col * REALS + part]
        else:
            for part in range(REALS):
                w[part] = shuffle(x[at + part], int32(j))
        project(y, w, 0, sums, c * REALS, h)
        is_head = top + lane == j
        if col > j:
            multiply(w, 2, y, h)
            w[0] = h[FACTOR] * w[2]
            if COMPLEX:
                w[0], w[1] = h[FACTOR] * w[2] - h[FACTOR + 1] * w[3], h[FACTOR] * w[3] + h[FACTOR + 1] * w[2]
            update(x, v, w, c, top + lane > j)
            for part in range(REALS):
                x[at + part] -= select(is_head, w[2 + part], real(0))
            if col == j + 1:
                parity = int32((j + 1) & 1)
                to = offset(s, parity * (ROWS * WARP * REALS))
                publish(x, c, to, offset(s, TOPS + parity * REALS), col, top, lane)
        elif col == j:
            for part in range(REALS):
                x[at + part] = select(is_head, h[BETA] if part == 0 else real(0), x[at + part])
        else:
            leave_product(s, y, col, j, lane)

    columns = unrolled(OWN, column)

    @device_function
    def steps(x, v, sums, y, w, h, s, left, flags, n, top, block, blocks, t):
        warp, lane, j = int32(t >> 5), int32(t & 31), int32(0)
        while j < n:
            # (a) column j, its products with the columns of this warp and with itself
            parity = int32(j & 1)
            cuda.syncthreads()
            reads(0, v, offset(s, parity * (ROWS * WARP * REALS)), lane)
            dot(sums, x, v, top + lane > j)
            add(sums, lane)

            # (b) the reflector, and what it takes off
            left_now = offset(left, parity * (SPAN * (blocks + 1)))
            tops = offset(s, TOPS + parity * REALS)
            if SPREADS:
                exchange(x, sums, left_now, s if IS_CLUSTER else flags, j, block, blocks, warp, lane, t)
                add(sums, lane)
                tops = offset(left_now, SPAN * blocks + j * REALS)
            make(s, h, y, sums, tops, j, warp, lane)
            columns(0, x, v, sums, y, w, h, s, left_now, blocks, j, top, warp, lane)
            j = int32(j + 1)

    return steps


def _build(config: GeqrfPanel):
    facts, ROWS, OWN, DIM = config.dtype_facts, config.ROWS, config.OWN, config.DIM
    REALS, real = facts.reals_per_element, ptx.REALS[facts.real]
    SPREADS = config.KIND == SPREAD
    TILE, COLUMN, SUMS, SPAN = OWN * ROWS * REALS, ROWS * REALS, OWN * REALS, config.COLS * REALS
    int32, int64, offset, shared_pointer = ptx.types.int32, ptx.types.int64, ptx.offset, ptx.shared_pointer
    load, store, sizes, scale = loader(config), storer(config), column_sizer(config), column_scaler(config)
    largest, publish, (meet, part) = several_over_warp(OWN, larger()), _publisher(config), _meeting(config)
    leave, gather = gatherer(config, 1, larger())
    SLOTS, IS_CLUSTER = _slots(config), config.IS_CLUSTER
    start, _ = cluster_exchanger(config, SLOTS)
    steps, make_triangle, quotient = _stepper(config), _triangle_maker(config), ptx.quotient
    grid_dependency_wait, (TOPS, _, TAUS, FACTORS, BACK, _) = ptx.grid_dependency_wait, _places(config)

    def geqrf_panel(
        tau, a, v, t, state, flags, m, n, above, tau_step, a_rs, a_cs, v_cs, t_cs,
        stride_tau, stride_a, stride_v, stride_t, stride_state,
    ):  # fmt: skip
        # (1) the rows of this block, and the columns of this warp
        thread, batch = int32(cuda.threadIdx.x & 1023), int64(cuda.blockIdx.z)
        block, blocks = int32(cuda.blockIdx.x), int32(cuda.gridDim.x)
        warp, lane, top = int32(thread >> 5), int32(thread & 31), int32(block * (ROWS * WARP))
        s = shared_pointer(cuda.shared.array(0, real, alignment=16))
        x, column = cuda.local.array(TILE, real), cuda.local.array(COLUMN, real)
        sums, h = cuda.local.array(SUMS, real), cuda.local.array(5, real)
        y, w = cuda.local.array(2, real), cuda.local.array(4, real)
        grid_dependency_wait()
        a = offset(a, (batch * stride_a + int64(top) * a_rs) * REALS)
        load(0, x, a, a_rs, a_cs, int32(m - top), n, warp, lane)

        # (2) columns of about one; the first of them for all
        sizes(0, sums, x)
        largest(sums, lane)
        if SPREADS:
            state, flags = offset(state, batch * stride_state * REALS), offset(flags, batch * WORDS)
            left = offset(state, 2 * SPAN * (blocks + 1))
            leave(0, left, sums, block, blocks, warp, lane)
            if IS_CLUSTER:
                start(s, thread)
            meet(flags, int32(1), blocks, thread)
            gather(0, sums, left, blocks, warp, lane)
            largest(sums, lane)
        scale(0, x, offset(s, BACK), sums, w, warp, lane)
        if warp == 0:
            publish(x, 0, s, offset(s, TOPS), int32(0), top, lane)

        # (3) a reflector after the other
        slots = offset(s, SLOTS) if IS_CLUSTER else state
        steps(x, column, sums, y, w, h, s, slots, flags, n, top, block, blocks, thread)

        # (4) the results
        back, factors = offset(s, BACK), offset(s, FACTORS)
        store(0, x, a, a_rs, a_cs, back, factors, top, int32(m - top), n, warp, lane, False)
        if block == 0 and thread < n:
            tau = offset(tau, (batch * stride_tau + int64(thread) * tau_step) * REALS)
            for k in range(REALS):
                tau[k] = s[TAUS + thread * REALS + k]
        cuda.syncthreads()
        v = offset(v, batch * stride_v * REALS)
        to = offset(v, top * REALS)
        store(0, x, to, int64(1), v_cs, back, factors, top, int32(m - top), n, warp, lane, True)
        if block == 0 and warp == 0:
            make_triangle(offset(t, batch * stride_t * REALS), t_cs, s, n, lane)
        i = thread
        while i < above * n and block == 0:
            col = int32(quotient(i, above))
            for k in range(REALS):
                v[(col * v_cs + (i - col * above - above)) * REALS + k] = real(0)
            i = int32(i + DIM)
        if SPREADS:
            part(flags, blocks, thread)

    return geqrf_panel
