"""A tape: the launches that a call comes down to, recorded once for a layout and replayed for any addresses.

While a tape is recorded, operands have *virtual* pointers, ``slot * 2**56 + distance``, so that blocks and
flips of them are reckoned as usual. Replaying puts the true addresses in, which makes a repeated call, and
a recursion of many launches, cheap.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import Any, NamedTuple

from ..gpu import launch, memory
from ..gpu.compile import KernelSource
from ..operands import Operand
from ..tuning import select
from ..types import Dtype

__all__ = ["ALPHA", "BETA", "Tape", "recorded"]

_SLOT = 1 << 56
_MIDDLE = 1 << 55  # distances may be negative
_WORKSPACE = 3  # the slot behind those of three operands
_ALIGN = 256
_MAX_GRID_Z = 65535
_MAX_TAPES = 4096

#: Scalars of the call; any other scalar on a tape is a number.
ALPHA, BETA = "alpha", "beta"


class _Step(NamedTuple):
    source: KernelSource
    grid: tuple[int, int, int]
    places: tuple[tuple[int, int], ...]  # slot, distance in bytes
    integers: tuple[int, ...]
    scalars: tuple


class _Numbers(NamedTuple):
    """The scalars of a run, and what they are to each step: its reals."""

    alpha: Any
    beta: Any
    reals: list[tuple[float, ...]]


class Tape:
    """Records launches for operands of one dtype on one device.

    Attributes
    ----------
    dtype : Dtype
    device : int
    workspace : int
        Bytes of device memory a replay needs.
    choices : list of Choice
        Which Configs were taken, and from where.
    """

    def __init__(self, dtype: Dtype, device: int):
        self.dtype, self.device, self.workspace = dtype, device, 0
        self.choices: list = []
        self._steps: list[_Step] = []
        self._replay: Callable | None = None
        self._numbers = _Numbers(None, None, [])
        self._alignment: dict[int, int] = {_WORKSPACE: 0}

    def place(self, operand: Operand, slot: int) -> Operand:
        """`operand` with the virtual pointer of `slot`, aligned as it is."""
        self._alignment[slot] = operand.pointer & 15
        return operand._replace(pointer=slot * _SLOT + _MIDDLE + self._alignment[slot])

    def scratch(self, rows: int, cols: int, batch: int) -> Operand:
        """A column-major operand in the workspace, its columns aligned to 16 bytes."""
        size = self.dtype.itemsize
        lead = max(-(-rows * size // 16) * 16 // size, 1)
        pointer = _WORKSPACE * _SLOT + _MIDDLE + self.workspace
        self.workspace += -(-lead * cols * batch * size // _ALIGN) * _ALIGN
        return Operand(pointer, rows, cols, 1, lead, self.dtype, False, batch, lead * cols, self.device)

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
            self._steps.append(_Step(source, (blocks, 1, count), places, integers(*part), scalars))

    def _where(self, pointer: int) -> tuple[int, int]:
        slot = pointer // _SLOT
        return slot, pointer - slot * _SLOT - _MIDDLE - self._alignment[slot]

    def run(self, bases: Sequence[int], alpha: complex, beta: complex = 0.0, *, stream: int) -> None:
        """Enqueue every launch on `stream`, with the operands of the slots at `bases`."""
        numbers = self._numbers
        if alpha is not numbers.alpha or beta is not numbers.beta:
            numbers = self._numbers = self._converted(alpha, beta)
        (self._replay or self._load())(bases, numbers.reals, stream)

    def _converted(self, alpha: complex, beta: complex) -> _Numbers:
        given = alpha, beta
        if self.dtype.real_size == 4 and not (abs(alpha) < _SINGLE_MAX and abs(beta) < _SINGLE_MAX):
            alpha, beta = _to_single(alpha), _to_single(beta)
        parts = {ALPHA: (alpha.real, alpha.imag), BETA: (beta.real, beta.imag)}
        made = {
            scalars: tuple(part for scalar in scalars for part in parts.get(scalar) or (scalar, 0.0))
            for scalars in {step.scalars for step in self._steps}
        }
        return _Numbers(*given, [made[step.scalars] for step in self._steps])

    def _load(self) -> Callable:
        """Load the kernels; what replays the steps, given bases, the reals of each step, and a stream."""
        launches = [launch.kernel(step.source, self.device).launch for step in self._steps]
        replay = self._replayer(launches)
        if self.workspace:
            replay = self._with_workspace(replay)
        self._replay = replay
        return replay

    def _replayer(self, launches: list[Callable]) -> Callable:
        if len(launches) == 1 and not any(distance for _, distance in self._steps[0].places):
            (only,), ((_, grid, places, integers, _),) = launches, self._steps
            pick = itemgetter(*(slot for slot, _ in places))  # a tuple: every kernel has two pointers or more
            return lambda bases, reals, stream: only(grid, stream, pick(bases), integers, reals[0])

        steps = [
            (enqueue, step.grid, step.places, step.integers)
            for enqueue, step in zip(launches, self._steps, strict=True)
        ]

        def replay(bases, reals, stream):
            for (enqueue, grid, places, integers), numbers in zip(steps, reals, strict=True):
                pointers = [bases[slot] + distance for slot, distance in places]
                enqueue(grid, stream, pointers, integers, numbers)

        return replay

    def _with_workspace(self, replay: Callable) -> Callable:
        def replay_with(bases, reals, stream):
            with memory.workspace(self.workspace, self.device, stream) as address:
                replay((*bases, *(0,) * (_WORKSPACE - len(bases)), address), reals, stream)

        return replay_with


_tapes: dict[tuple, Tape] = {}


def recorded(record: Callable[..., None], operands: tuple[Operand, ...], options: tuple) -> Tape:
    """The tape that ``record(tape, *operands, *options)`` makes, recorded once for equal layouts.

    A change of what the tuner's database or an override would choose makes a new tape.
    """
    target = operands[-1]
    key = (record, options, target.device, select.generation(), *(operand.layout for operand in operands))
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
