"""Which calls are timed to find a value of the policy, and what their times say.

A strategy is a generator, as those of kernels are (`strategies`). It yields batches of calls, is sent the
seconds of those that succeeded, and returns the value; None where nothing could be compared. It touches no
device, file or clock.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from itertools import product
from math import fsum, inf, prod
from typing import Any, NamedTuple

from ..database.policy import MAX_VALUE, Trial

__all__ = ["MIN_GAIN", "PolicyCall", "decision", "is_better", "loss", "size_of"]

MIN_GAIN = 0.01  # of the time, below which the present value is kept

#: Value -> whether calls of a size take the one way.
_TAKES: dict[str, Callable[[float, float], bool]] = {
    "least": lambda size, value: size >= value,
    "most": lambda size, value: size <= value,
    "below": lambda size, value: size < value,
    "beyond": lambda size, value: size > value,
}
#: The values with which all calls take it, or none does.
_ALWAYS = {"least": 0, "beyond": 0, "most": MAX_VALUE, "below": MAX_VALUE}
_NEVER = {"least": MAX_VALUE, "beyond": MAX_VALUE, "most": 0, "below": 0}


class PolicyCall(NamedTuple):
    """A call that is timed while the policy has a value: a number, or of widths the columns in all orders."""

    dtype: str
    value: float
    extents: tuple[int, ...]


Seconds = Mapping[PolicyCall, float]
Decision = Generator[list[PolicyCall], Seconds, Any]
#: Times of each candidate on each problem, infinite where it failed.
_Table = Mapping[Any, Sequence[float]]


def decision(trial: Trial, dtypes: Iterable[str], present: Any) -> Decision:
    """Return the strategy of a trial.

    Parameters
    ----------
    trial : Trial
    dtypes : iterable of str
        Dtypes that the value is one for.
    present : number or dict
        The value that holds now, of widths by columns.
    """
    problems = list(product(dtypes, trial.points))
    if trial.by == "widths":
        return _widths(trial, problems, present)
    if trial.by in _TAKES:
        return _bound(trial, problems, present)
    values = [present * value for value in trial.values] if trial.by == "best" else trial.values
    return _one_of(list(dict.fromkeys([present, *values])), problems, present)


def size_of(trial: Trial, extents: tuple[int, ...]) -> float:
    """Return what of the extents the value of a trial bounds."""
    if trial.size in ("elements", "work"):
        return prod(extents[: 2 if trial.size == "elements" else 3])
    return extents[trial.size == "columns"]


def _bound(trial: Trial, problems: list[Any], present: float) -> Decision:
    """A bound: all calls are timed on both ways."""
    always, never = _ALWAYS[trial.by], _NEVER[trial.by]
    times = yield [PolicyCall(dtype, value, at) for value in (never, always) for dtype, at in problems]
    sizes = [size_of(trial, at) for _, at in problems]
    ways = {
        value: [times.get(PolicyCall(d, value, at), inf) for d, at in problems] for value in (never, always)
    }
    takes = _TAKES[trial.by]

    def with_bound(value: float) -> list[float]:
        return [ways[always if takes(size, value) else never][number] for number, size in enumerate(sizes)]

    # that all sizes are on one side of some bounds is seen of no size itself
    beyond = {"below": MAX_VALUE, "beyond": min(sizes) - 1}.get(trial.by, never)
    candidates = dict.fromkeys([present, never, *sorted(sizes), beyond])
    return _chosen({value: with_bound(value) for value in candidates}, present)


def _one_of(values: Sequence[float], problems: list[Any], present: float) -> Decision:
    """The best of several values."""
    times = yield [PolicyCall(dtype, value, at) for value in values for dtype, at in problems]
    return _chosen(_table(values, problems, times), present)


def _widths(trial: Trial, problems: list[Any], present: Mapping[str, float]) -> Decision:
    """Widths: the best one at each order, where they grow with it."""
    values = [int(value) for value in trial.values]
    orders = sorted({at for _, at in problems})
    times = yield [PolicyCall(dtype, value, at) for value in values for dtype, at in problems]
    problems = sorted(problems, key=lambda problem: problem[1])
    columns = _table(values, problems, times)
    each = len(problems) // len(orders)

    def of(choice: Sequence[int]) -> list[float]:
        return [columns[width][number] for number, width in enumerate(w for w in choice for _ in range(each))]

    now = [width_at(present, at[0]) for at in orders]
    table: dict[tuple[int, ...], list[float]] = {}
    if set(now) <= set(values):
        table[tuple(now)] = of(now)
    table |= {choice: of(choice) for choice in _growing(sorted(values), len(orders))}
    chosen = _chosen(table, tuple(now))
    if chosen is None or chosen == tuple(now):
        return None if chosen is None else dict(present)
    steps: dict[str, float] = {}
    for width, (order, *_) in zip(chosen, orders, strict=True):
        if width:
            steps.setdefault(str(width), order)
    return steps or {str(max(values)): MAX_VALUE}


def width_at(steps: Mapping[str, float], order: float) -> int:
    """Return the columns of a block in a matrix of this order."""
    return max((int(width) for width, least in steps.items() if order >= least), default=0)


def _growing(values: Sequence[int], count: int) -> Iterable[tuple[int, ...]]:
    """Yield the sequences of `count` values that never fall."""
    if count == 0:
        yield ()
        return
    for number, value in enumerate(values):
        for rest in _growing(values[number:], count - 1):
            yield value, *rest


def _table(values: Iterable[Any], problems: list[Any], times: Seconds) -> _Table:
    return {value: [times.get(PolicyCall(d, value, at), inf) for d, at in problems] for value in values}


def _chosen(table: _Table, present: Any) -> Any:
    """The candidate with the least loss; the present one unless another gains enough; None without times."""
    best = [min(column) for column in zip(*table.values(), strict=True)]
    there = [number for number, seconds in enumerate(best) if seconds < inf]
    if not there:
        return None

    def cost(value: Any) -> float:
        return loss([table[value][n] for n in there], [best[n] for n in there])

    chosen = min(table, key=cost)
    is_kept = present in table and not is_better(cost(chosen), cost(present))
    return present if is_kept else chosen


def loss(seconds: Sequence[float], best: Sequence[float]) -> float:
    """Return the mean of times relative to the best."""
    return fsum(own / least for own, least in zip(seconds, best, strict=True)) / len(best)


def is_better(new: float, present: float) -> bool:
    """Whether a loss is smaller by more than times vary."""
    return new < (1 - MIN_GAIN) * present
