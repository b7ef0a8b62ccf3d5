"""A launch list: the launches of a call, listed once for a layout and replayed at any addresses.

While launches are emitted, operands have *virtual* addresses, ``slot * 2**56 + distance``. Blocks and flips
of them are computed as usual. A replay puts the true addresses in. So a repeated call is cheap, and a
recursion of many launches as well.

Launches have two *lanes*: the stream of the call, and a side stream for what is urgent. A launch may wait for
one of the other lane. Each lane has scratch and flags of its own. Any order that keeps the lanes and the
waits is right: where there is no second stream, all run on one, as listed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from operator import itemgetter
from typing import Any, NamedTuple

from ..database.policy import Policy
from ..dispatch import choose
from ..dispatch.tuned_files import policy_of, recorded
from ..gpu import context, events, kept_graphs, lanes, launch, workspace
from ..gpu.build.compile import KernelSource
from ..gpu.device import current
from ..kernels import compile_ahead
from ..operands import SECTOR, Operand
from ..types import Dtype, Region

__all__ = [
    "ALPHA",
    "BESIDE",
    "BETA",
    "CALL",
    "CONJ_ALPHA",
    "Launch",
    "LaunchList",
    "cached_launch_list",
]

_SLOT_STRIDE = 1 << 56
_SLOT_CENTER = 1 << 55  # distances may be negative
WORKSPACE_SLOT = 6  # that of the first lane, behind those of six operands; then that of the other lane
_ALIGN = 256
_MAX_GRID_Z = 65535

#: Lanes: the stream of the call, and the side stream.
CALL, BESIDE = 0, 1

#: Scalars of the call; any other scalar of a launch is a number.
ALPHA, BETA, CONJ_ALPHA = "alpha", "beta", "conj(alpha)"


class Launch(NamedTuple):
    """A kernel launch but for the true addresses and scalars."""

    source: KernelSource
    grid: tuple[int, int, int]
    addresses: tuple[tuple[int, int], ...]  # slot, distance in bytes
    integers: tuple[int, ...]
    scalars: tuple
    pdl: int  # whether it may start early, or `launch.EAGER`
    lane: int = CALL
    after: tuple[int, ...] = ()  # launches of the other lane, by number, that are over before it


#: Enqueues the launches of a list: ``enqueue(bases, stream)``, with the operands of the slots at `bases`.
Enqueue = Callable[[Sequence[int], int], None]


class _BoundList(NamedTuple):
    """The scalars of a run, and what enqueues the launches with them."""

    alpha: Any
    beta: Any
    enqueue: Enqueue


class LaunchList:
    """The launches of a call on operands of one dtype on one device.

    Attributes
    ----------
    dtype : Dtype
    device : int
    entries : list of Launch
    workspace_limit : int or None
        Bytes that the workspace should not exceed, if there is a limit.
    uses_flags : bool
        Whether it needs the flags of a workspace.
    lane : int
        Lane of launches that are emitted now.
    is_chain : bool
        Whether most launches leave most of the device idle, so that those of few blocks start early too.
    tiles_per_block : int or None
        Tiles after which persistent blocks of products emitted now give a multiprocessor back; None: never.
    has_graphs : bool
        Whether runs that repeat may be a graph.
    choices : list of KernelChoice or Algorithm
        Configs that were chosen, and their origins.
    decisive : dict of str to None
        Names of the policy's values that decided what was emitted.
    inputs : int or None
        How many operands, the first ones, are only read; None: all that are not the last one.
    source_pointer : int or None
        The number of the only launch's pointer to the matrix that is read; it may be another one, of which
        the output need not be a copy then.
    source_integers : callable or None
        Gives the only launch's integers for another matrix of any strides; None: it has the output's.
    source_region : Region
        The part of the output that the launches read as it was.
    """

    def __init__(self, dtype: Dtype, device: int, inputs: int | None = None):
        self.dtype, self.device, self.uses_flags, self.inputs = dtype, device, False, inputs
        self.workspace_limit: int | None = None
        self.lane, self.is_chain = CALL, False
        self.tiles_per_block: int | None = None
        self.has_graphs = True
        self.source_pointer: int | None = None
        self.source_integers: Callable[[Operand], tuple[int, ...]] | None = None
        self.source_region = Region.ALL
        self.choices: list = []
        self.decisive: dict[str, None] = {}
        self.entries: list[Launch] = []
        self._launches: list[Callable] | None = None
        self._last: _BoundList | None = None
        lane_count = workspace.LANES
        self._used = [0] * lane_count  # of the workspace, by scratch that is not free again
        self._most = [0] * lane_count
        self._last_emitted: list[int | None] = [None] * lane_count
        self._waits: list[tuple[int, ...]] = [()] * lane_count  # of the next launch
        self._alignment: dict[int, int] = {WORKSPACE_SLOT + lane: 0 for lane in range(lane_count)}

    def at_virtual_address(self, operand: Operand, slot: int) -> Operand:
        """`operand` with the virtual pointer of `slot`, aligned as it is."""
        self._alignment[slot] = operand.pointer % SECTOR
        return operand._replace(pointer=slot * _SLOT_STRIDE + _SLOT_CENTER + self._alignment[slot])

    def scratch(self, rows: int, cols: int, batch: int, unit: int = 16) -> Operand:
        """A column-major operand in the workspace; its columns begin at multiples of `unit` bytes, see also
        `temporary`.
        """
        size, lane = self.dtype.itemsize, self.lane
        ld = max(-(-rows * size // unit), 1) * unit // size
        pointer = (WORKSPACE_SLOT + lane) * _SLOT_STRIDE + _SLOT_CENTER + self._used[lane]
        self._used[lane] += -(-ld * cols * batch * size // _ALIGN) * _ALIGN
        self._most[lane] = max(self._most[lane], self._used[lane])
        return Operand(pointer, rows, cols, 1, ld, self.dtype, False, batch, ld * cols, self.device)

    @property
    def policy(self) -> Policy:
        """The numbers by which dispatch decides on its device."""
        return policy_of(current(self.device))

    @property
    def workspace_bytes(self) -> int:
        """Bytes of device memory a replay needs."""
        return sum(self._most)

    @property
    def workspace_left(self) -> int | None:
        """Bytes that are left of the limit."""
        return None if self.workspace_limit is None else max(self.workspace_limit - sum(self._used), 0)

    @property
    def uses_workspace(self) -> bool:
        """Whether a replay needs one, if only for its flags."""
        return self.workspace_bytes > 0 or self.uses_flags

    def flags(self) -> Operand:
        """The flags of the lane, one for each real of `dtype`."""
        self.uses_flags = True
        pointer = WORKSPACE_SLOT * _SLOT_STRIDE + _SLOT_CENTER - (1 + self.lane) * workspace.FLAGS
        count = workspace.FLAGS // self.dtype.itemsize
        return Operand(pointer, count, 1, 1, count, self.dtype, False, 1, count, self.device)

    @contextmanager
    def temporary(self) -> Iterator[None]:
        """Scratch that is taken in the block is free again after it, for what is emitted later.

        So a recursion needs the scratch of its largest step, not of all of them.
        """
        lane, used = self.lane, self._used[self.lane]
        yield
        self._used[lane] = used

    @contextmanager
    def on_side_stream(self) -> Iterator[None]:
        """Launches that are emitted in the block are of the side stream's lane.

        They wait for nothing but what `wait_for` names.
        """
        before, self.lane = self.lane, BESIDE
        yield
        self.lane = before

    @contextmanager
    def yielding(self, tiles_per_block: int) -> Iterator[None]:
        """Blocks of products that are emitted in the block end after some tiles, for the other lane."""
        before, self.tiles_per_block = self.tiles_per_block, tiles_per_block
        yield
        self.tiles_per_block = before

    def persistent_blocks(self, config: Any, tiles: int, share: int = 1) -> int:
        """Return the blocks of a product on tensor cores of `tiles` numbered tiles: as many as are resident,
        more where they yield. `share` of the tiles take as long as one by FMAs.
        """
        most = current(self.device).sm_count
        if self.tiles_per_block:
            most = max(most, -(-tiles // (share * self.tiles_per_block)) * int(config.cluster))
        return int(config.blocks(most, tiles))

    @contextmanager
    def chain(self) -> Iterator[None]:
        """Launches that are emitted in the block are a chain, see `is_chain`."""
        before, self.is_chain = self.is_chain, True
        yield
        self.is_chain = before

    @contextmanager
    def computing_in(self, dtype: Dtype) -> Iterator[None]:
        """Launches and scratch of the block are of another dtype of the same precision."""
        before, self.dtype = self.dtype, dtype
        yield
        self.dtype = before

    def mark(self) -> int | None:
        """The last launch of the lane at hand, for `wait_for` on the other one; None: there is none."""
        return self._last_emitted[self.lane]

    def wait_for(self, mark: int | None) -> None:
        """Let the next launch of this lane wait for a launch of the other one, and all before that."""
        if mark is not None:
            self._waits[self.lane] += (mark,)

    def emit(
        self, source: KernelSource, blocks: int, operands: tuple, integers: Callable, scalars: tuple
    ) -> None:
        """Emit a launch of `blocks` blocks a matrix over the batch of `operands`.

        ``integers(*operands)`` are the arguments between the pointers and the real and imaginary parts of
        `scalars`.
        """
        batch = max(operand.batch for operand in operands)
        for first in range(0, batch, _MAX_GRID_Z):
            count = min(batch - first, _MAX_GRID_Z)
            part = tuple(operand.matrices(first, count) for operand in operands)
            self._append(source, (blocks, 1, count), part, integers(*part), scalars)

    def emit_batch(
        self, source: KernelSource, blocks: int, operands: tuple, integers: Callable, scalars: tuple
    ) -> None:
        """Emit one launch of `blocks` blocks, which know the matrices of the batch by themselves."""
        self._append(source, (blocks, 1, 1), operands, integers(*operands), scalars)

    def _append(
        self, source: KernelSource, grid: tuple, operands: tuple, integers: tuple, scalars: tuple
    ) -> None:
        addresses = tuple(self.address_of(operand.pointer) for operand in operands)
        lane, pdl = self.lane, self._allows_pdl(source, addresses) and (launch.EAGER if self.is_chain else 1)
        after, self._waits[lane] = self._waits[lane], ()
        self.append(Launch(source, grid, addresses, integers, scalars, pdl, lane, after))

    def append(self, entry: Launch) -> None:
        """Append a launch, the last one of its lane."""
        self._last_emitted[entry.lane] = len(self.entries)
        self.entries.append(entry)

    def _allows_pdl(self, source: KernelSource, addresses: tuple[tuple[int, int], ...]) -> bool:
        """Whether a launch may be started before the one before it is over.

        What it reads before its wait must not be what that one writes. The first launch follows one of
        somebody else, and the others write scratch or what is no input, see `inputs`. A launch that follows
        one of the other lane waits for all of it.
        """
        is_first = self._last_emitted[self.lane] is None
        if self._waits[self.lane] or (is_first and self.lane == BESIDE):
            return False
        if not source.reads_before_wait:
            return True
        target = self.inputs
        if target is None:
            target = max(slot for slot in self._alignment if slot < WORKSPACE_SLOT)
        return not is_first and all(addresses[i][0] < target for i in source.reads_before_wait)

    def address_of(self, pointer: int) -> tuple[int, int]:
        """Slot and distance in bytes of a virtual address."""
        slot = pointer // _SLOT_STRIDE
        return slot, pointer - slot * _SLOT_STRIDE - _SLOT_CENTER - self._alignment[slot]

    def uses_of(self, slot: int) -> int:
        """How many launches are given the operand of a slot."""
        return sum(any(each == slot for each, _ in entry.addresses) for entry in self.entries)

    def run(self, bases: Sequence[int], alpha: complex, beta: complex = 0.0, *, stream: int) -> None:
        """Enqueue every launch on `stream`, with the operands of the slots at `bases`."""
        self.bound(alpha, beta)(bases, stream)

    def bound(self, alpha: complex, beta: complex = 0.0) -> Enqueue:
        """Return a function that enqueues every launch with these scalars; load kernels, cache the last one.

        A workspace is taken at each run.
        """
        last = self._last
        if last is not None and alpha is last.alpha and beta is last.beta:
            return last.enqueue
        enqueue = self._replayer(self._numbers(alpha, beta))
        if self.has_graphs:
            enqueue = kept_graphs.kept(enqueue, self.device, len(self.entries), self._has_lanes)
        if self.uses_workspace:
            enqueue = self._with_workspace(enqueue)
        enqueue = self._on_device(enqueue)
        self._last = _BoundList(alpha, beta, enqueue)
        return enqueue

    def bound_at(self, workspace: int, alpha: complex, beta: complex = 0.0) -> Enqueue:
        """Return a function as `bound` does, with the workspace at an address: a run allocates nothing."""
        enqueue, first_bytes = self._replayer(self._numbers(alpha, beta)), self._most[CALL]
        return self._on_device(
            lambda bases, stream: enqueue(_extended(bases, workspace, first_bytes), stream)
        )

    @property
    def _has_lanes(self) -> bool:
        """Whether some launches are of the side stream's lane."""
        return any(entry.lane for entry in self.entries)

    def _numbers(self, alpha: complex, beta: complex) -> list[tuple[float, ...]]:
        """Return each entry's scalars in a run, as reals."""
        if self.dtype.real_size == 4 and not (abs(alpha) < _SINGLE_MAX and abs(beta) < _SINGLE_MAX):
            alpha, beta = _to_single(alpha), _to_single(beta)
        reals_of = {
            ALPHA: (alpha.real, alpha.imag),
            BETA: (beta.real, beta.imag),
            CONJ_ALPHA: (alpha.real, -alpha.imag),
        }
        reals = {
            scalars: tuple(real for scalar in scalars for real in reals_of.get(scalar) or (scalar, 0.0))
            for scalars in {entry.scalars for entry in self.entries}
        }
        return [reals[entry.scalars] for entry in self.entries]

    def _replayer(self, reals: list[tuple[float, ...]]) -> Enqueue:
        """Return a function that replays the launches on the bases of all slots, the workspace included."""
        if self._launches is None:
            compile_ahead.ensure_compiled([entry.source for entry in self.entries], self.device)
            self._launches = [launch.kernel(entry.source, self.device).launch for entry in self.entries]
        bound = [
            (enqueue, entry.grid, *_picked(entry), entry.integers, numbers, entry.pdl)
            for enqueue, entry, numbers in zip(self._launches, self.entries, reals, strict=True)
        ]
        if len(bound) == 1 and (pick := bound[0][2]) is not None:
            ((only, grid, _, _, integers, numbers, pdl),) = bound
            return lambda bases, stream: only(grid, stream, pick(bases), integers, numbers, pdl)

        if self._has_lanes:
            return _on_two_lanes(bound, self.entries, self.device)

        def replay(bases, stream):
            for enqueue, grid, pick, addresses, integers, numbers, pdl in bound:
                pointers = pick(bases) if pick else [bases[slot] + distance for slot, distance in addresses]
                enqueue(grid, stream, pointers, integers, numbers, pdl)

        return replay

    def _on_device(self, enqueue: Enqueue) -> Enqueue:
        """Make the device's context current for all launches, and then restore the previous one."""
        device, make_current, restore = self.device, context.make_current, context.restore

        def replay_there(bases, stream):
            before = make_current(device)
            try:
                enqueue(bases, stream)
            finally:
                if before is not None:
                    restore(before)

        return replay_there

    def _with_workspace(self, enqueue: Enqueue) -> Enqueue:
        first_bytes = self._most[CALL]

        def replay_with(bases, stream):
            memory = workspace.take(self.workspace_bytes, self.device, stream, self.uses_flags)
            try:
                enqueue(_extended(bases, memory.address, first_bytes), stream)
            finally:
                workspace.give(memory)

        return replay_with


def _picked(entry: Launch) -> tuple[Callable[..., Any] | None, tuple[tuple[int, int], ...]]:
    """Return what takes the launch's pointers from the bases, None where some begin elsewhere, and where all
    begin.
    """
    if any(distance for _, distance in entry.addresses):
        return None, entry.addresses
    # a tuple: every kernel has two pointers or more
    return itemgetter(*(slot for slot, _ in entry.addresses)), entry.addresses


def _extended(bases: Sequence[int], workspace: int, first_bytes: int) -> tuple[int, ...]:
    """The bases of all slots; the first lane has `first_bytes` of the workspace."""
    return (*bases, *(0,) * (WORKSPACE_SLOT - len(bases)), workspace, workspace + first_bytes)


def _on_two_lanes(bound: Sequence[tuple], entries: Sequence[Launch], device: int) -> Enqueue:
    """Return a function that replays the launches on the call's stream and a side stream."""
    awaited = frozenset(number for entry in entries for number in entry.after)
    order = [(entry.lane, entry.after) for entry in entries]

    def replay(bases, stream):
        # held until the join: other threads may use many streams
        lane_stream = lanes.side_stream(device, stream)
        second = None if lane_stream is None else lane_stream.handle
        streams = stream, stream if second is None else second
        events_of: dict[int, events.Event] = {}
        try:
            if second is not None:
                events.record(stream).hold_back(second)
            for number, (enqueue, grid, pick, addresses, integers, numbers, pdl) in enumerate(bound):
                lane, after = order[number]
                pointers = pick(bases) if pick else [bases[slot] + distance for slot, distance in addresses]
                if second is not None:
                    for other in after:
                        events_of[other].hold_back(streams[lane])
                enqueue(grid, streams[lane], pointers, integers, numbers, pdl)
                if second is not None and number in awaited:
                    events_of[number] = events.record(streams[lane])
        finally:
            if second is not None:
                events.follow(stream, second)  # before others have the workspace

    return replay


cache: dict[tuple, LaunchList] = {}
MAX_CACHED = 4096


def cached_launch_list(
    emit: Callable[..., None], operands: tuple[Operand, ...], options: tuple, inputs: int | None = None
) -> LaunchList:
    """Return the launch list of ``emit(launches, *operands, *options)``, made once for equal layouts.

    A change of what the tuner's database or an override would choose makes a new list. Of `inputs` see
    `LaunchList`.
    """
    target = operands[-1]
    key = (emit, options, target.device, choose.generation(), *(operand.layout for operand in operands))
    launches = cache.get(key)
    if launches is None:
        if len(cache) >= MAX_CACHED:
            cache.clear()
        launches = LaunchList(target.dtype, target.device, inputs)
        virtual = (launches.at_virtual_address(operand, slot) for slot, operand in enumerate(operands))
        with recorded() as launches.decisive:
            emit(launches, *virtual, *options)
        cache[key] = launches
    return launches


_SINGLE_MAX = 3.4028235677973366e38  # halfway to the next power of two: what rounds to infinity


def _to_single(value: complex) -> complex:
    """`value` with parts that fit a float32; larger ones become infinite, as in a conversion."""
    if abs(value.real) < _SINGLE_MAX and abs(value.imag) < _SINGLE_MAX:
        return value
    re, im = (
        part if not abs(part) >= _SINGLE_MAX else part * float("inf") for part in (value.real, value.imag)
    )
    return complex(re, im) if isinstance(value, complex) else re
