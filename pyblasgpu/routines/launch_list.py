"""A tape: the launches that a call comes down to, recorded once for a layout and replayed for any addresses.

While a tape is recorded, operands have *virtual* pointers, ``slot * 2**56 + distance``, so that blocks and
flips of them are reckoned as usual. Replaying puts the true addresses in, which makes a repeated call, and
a recursion of many launches, cheap.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from operator import itemgetter
from typing import Any, NamedTuple

from ..dispatch import choose, compile_ahead
from ..gpu import context, launch, workspace
from ..gpu.compile import KernelSource
from ..operands import SECTOR, Operand
from ..types import Dtype

__all__ = ["ALPHA", "BETA", "CONJ_ALPHA", "Tape", "recorded"]

_SLOT = 1 << 56
_MIDDLE = 1 << 55  # distances may be negative
_WORKSPACE = 3  # the slot behind those of three operands
_ALIGN = 256
_MAX_GRID_Z = 65535
_MAX_TAPES = 4096

#: Scalars of the call; any other scalar on a tape is a number.
ALPHA, BETA, CONJ_ALPHA = "alpha", "beta", "conj(alpha)"


class _Step(NamedTuple):
    source: KernelSource
    grid: tuple[int, int, int]
    places: tuple[tuple[int, int], ...]  # slot, distance in bytes
    integers: tuple[int, ...]
    scalars: tuple
    pdl: bool


#: Enqueues the launches of a tape: ``enqueue(bases, stream)``, with the operands of the slots at `bases`.
Enqueue = Callable[[Sequence[int], int], None]


class _Bound(NamedTuple):
    """The scalars of a run, and what enqueues the launches with them."""

    alpha: Any
    beta: Any
    enqueue: Enqueue


class Tape:
    """Records launches for operands of one dtype on one device.

    Attributes
    ----------
    dtype : Dtype
    device : int
    workspace : int
        Bytes of device memory a replay needs.
    limit : int or None
        Bytes that the workspace should not exceed, if there is a limit.
    uses_flags : bool
        Whether it needs the flags of a workspace.
    choices : list of KernelChoice or Algorithm
        Which Configs were taken, and from where.
    """

    def __init__(self, dtype: Dtype, device: int):
        self.dtype, self.device, self.workspace, self.uses_flags = dtype, device, 0, False
        self.limit: int | None = None
        self.choices: list = []
        self._steps: list[_Step] = []
        self._launches: list[Callable] | None = None
        self._last: _Bound | None = None
        self._used = 0  # of the workspace, by scratch that is not free again
        self._alignment: dict[int, int] = {_WORKSPACE: 0}

    def place(self, operand: Operand, slot: int) -> Operand:
        """`operand` with the virtual pointer of `slot`, aligned as it is."""
        self._alignment[slot] = operand.pointer % SECTOR
        return operand._replace(pointer=slot * _SLOT + _MIDDLE + self._alignment[slot])

    def scratch(self, rows: int, cols: int, batch: int, unit: int = 16) -> Operand:
        """A column-major operand in the workspace; its columns begin at multiples of `unit` bytes, see also
        `temporary`.
        """
        size = self.dtype.itemsize
        lead = max(-(-rows * size // unit), 1) * unit // size
        pointer = _WORKSPACE * _SLOT + _MIDDLE + self._used
        self._used += -(-lead * cols * batch * size // _ALIGN) * _ALIGN
        self.workspace = max(self.workspace, self._used)
        return Operand(pointer, rows, cols, 1, lead, self.dtype, False, batch, lead * cols, self.device)

    @property
    def room(self) -> int | None:
        """Bytes that are left of the limit."""
        return None if self.limit is None else max(self.limit - self._used, 0)

    @property
    def uses_workspace(self) -> bool:
        """Whether a replay needs one, if only for its flags."""
        return self.workspace > 0 or self.uses_flags

    def flags(self) -> Operand:
        """The flags of the workspace, one for each real of `dtype`."""
        self.uses_flags = True
        pointer = _WORKSPACE * _SLOT + _MIDDLE - workspace.FLAGS
        count = workspace.FLAGS // self.dtype.itemsize
        return Operand(pointer, count, 1, 1, count, self.dtype, False, 1, count, self.device)

    @contextmanager
    def temporary(self) -> Iterator[None]:
        """Scratch that is taken in the block is free again after it, for what is recorded later.

        So a recursion needs the scratch of its largest step, not of all of them.
        """
        used = self._used
        yield
        self._used = used

    def launch(
        self, source: KernelSource, blocks: int, operands: tuple, integers: Callable, scalars: tuple
    ) -> None:
        """Record a launch of `blocks` blocks a matrix over the batch of `operands`.

        ``integers(*operands)`` are the arguments between the pointers and the real and imaginary parts of
        `scalars`.
        """
        batch = max(operand.batch for operand in operands)
        for first in range(0, batch, _MAX_GRID_Z):
            count = min(batch - first, _MAX_GRID_Z)
            part = tuple(operand.matrices(first, count) for operand in operands)
            places = tuple(self._where(operand.pointer) for operand in part)
            pdl = self._allows_pdl(source, places)
            self._steps.append(_Step(source, (blocks, 1, count), places, integers(*part), scalars, pdl))

    def _allows_pdl(self, source: KernelSource, places: tuple[tuple[int, int], ...]) -> bool:
        """Whether a launch may be started before the one before it is over.

        What it reads before its wait must not be what that one writes: the first launch follows one of
        somebody else, and the others write the target, which is the last operand, or scratch.
        """
        if not source.reads_before_wait:
            return True
        target = max(slot for slot in self._alignment if slot != _WORKSPACE)
        return bool(self._steps) and all(places[i][0] < target for i in source.reads_before_wait)

    def _where(self, pointer: int) -> tuple[int, int]:
        slot = pointer // _SLOT
        return slot, pointer - slot * _SLOT - _MIDDLE - self._alignment[slot]

    def run(self, bases: Sequence[int], alpha: complex, beta: complex = 0.0, *, stream: int) -> None:
        """Enqueue every launch on `stream`, with the operands of the slots at `bases`."""
        self.bound(alpha, beta)(bases, stream)

    def bound(self, alpha: complex, beta: complex = 0.0) -> Enqueue:
        """What enqueues every launch with these scalars; the kernels are loaded now, the last one is kept.

        A workspace is taken at each run.
        """
        last = self._last
        if last is not None and alpha is last.alpha and beta is last.beta:
            return last.enqueue
        enqueue = self._replayer(self._numbers(alpha, beta))
        if self.uses_workspace:
            enqueue = self._with_workspace(enqueue)
        enqueue = self._on_device(enqueue)
        self._last = _Bound(alpha, beta, enqueue)
        return enqueue

    def bound_at(self, workspace: int, alpha: complex, beta: complex = 0.0) -> Enqueue:
        """As `bound`, with a workspace at an address (behind its flags), so that a run allocates nothing."""
        enqueue = self._replayer(self._numbers(alpha, beta))
        return self._on_device(lambda bases, stream: enqueue(_extended(bases, workspace), stream))

    def _numbers(self, alpha: complex, beta: complex) -> list[tuple[float, ...]]:
        """What the scalars of a run are to each step: its reals."""
        if self.dtype.real_size == 4 and not (abs(alpha) < _SINGLE_MAX and abs(beta) < _SINGLE_MAX):
            alpha, beta = _to_single(alpha), _to_single(beta)
        parts = {
            ALPHA: (alpha.real, alpha.imag), BETA: (beta.real, beta.imag),
            CONJ_ALPHA: (alpha.real, -alpha.imag),
        }  # fmt: skip
        made = {
            scalars: tuple(part for scalar in scalars for part in parts.get(scalar) or (scalar, 0.0))
            for scalars in {step.scalars for step in self._steps}
        }
        return [made[step.scalars] for step in self._steps]

    def _replayer(self, reals: list[tuple[float, ...]]) -> Enqueue:
        """What replays the steps; bases are those of all slots in use, the workspace included."""
        if self._launches is None:
            compile_ahead.compile_ahead([step.source for step in self._steps], self.device)
            self._launches = [launch.kernel(step.source, self.device).launch for step in self._steps]
        if len(self._steps) == 1 and not any(distance for _, distance in self._steps[0].places):
            (only,), (step,), (numbers,) = self._launches, self._steps, reals
            grid, places, integers, pdl = step.grid, step.places, step.integers, step.pdl
            pick = itemgetter(*(slot for slot, _ in places))  # a tuple: every kernel has two pointers or more
            return lambda bases, stream: only(grid, stream, pick(bases), integers, numbers, pdl)

        steps = [
            (enqueue, step.grid, step.places, step.integers, numbers, step.pdl)
            for enqueue, step, numbers in zip(self._launches, self._steps, reals, strict=True)
        ]

        def replay(bases, stream):
            for enqueue, grid, places, integers, numbers, pdl in steps:
                pointers = [bases[slot] + distance for slot, distance in places]
                enqueue(grid, stream, pointers, integers, numbers, pdl)

        return replay

    def _on_device(self, enqueue: Enqueue) -> Enqueue:
        """The same with the device's context current for all launches, and after them what was before."""
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
        def replay_with(bases, stream):
            room = workspace.take(self.workspace, self.device, stream, self.uses_flags)
            try:
                enqueue(_extended(bases, room.address), stream)
            finally:
                workspace.give(room)

        return replay_with


def _extended(bases: Sequence[int], workspace: int) -> tuple[int, ...]:
    """The bases of all slots."""
    return (*bases, *(0,) * (_WORKSPACE - len(bases)), workspace)


_tapes: dict[tuple, Tape] = {}


def recorded(record: Callable[..., None], operands: tuple[Operand, ...], options: tuple) -> Tape:
    """The tape that ``record(tape, *operands, *options)`` makes, recorded once for equal layouts.

    A change of what the tuner's database or an override would choose makes a new tape.
    """
    target = operands[-1]
    key = (record, options, target.device, choose.generation(), *(operand.layout for operand in operands))
    tape = _tapes.get(key)
    if tape is None:
        if len(_tapes) >= _MAX_TAPES:
            _tapes.clear()
        tape = Tape(target.dtype, target.device)
        record(tape, *(tape.place(operand, slot) for slot, operand in enumerate(operands)), *options)
        _tapes[key] = tape
    return tape


_SINGLE_MAX = 3.4028235677973366e38  # halfway to the next power of two: what rounds to infinity


def _to_single(value: complex) -> complex:
    """`value` with parts that fit a float32; larger ones become infinite, as in a conversion."""
    if abs(value.real) < _SINGLE_MAX and abs(value.imag) < _SINGLE_MAX:
        return value
    re, im = (
        part if not abs(part) >= _SINGLE_MAX else part * float("inf") for part in (value.real, value.imag)
    )
    return complex(re, im) if isinstance(value, complex) else re
