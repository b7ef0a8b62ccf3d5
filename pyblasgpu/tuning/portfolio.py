"""Selection of the Configs that are kept of all that were timed: few, that serve all size classes well.

A size class seldom needs the Config that was fastest there. The next Config that is kept is the one that
gains most (`dispatch.portfolio`), over all dtypes and layouts of an architecture at once. It ends when there
are as many as kernels can be built ahead for. The best one for updates of low rank is kept in addition. So
are those that gain most for calls that were timed between the classes, with operands as callers have them
(`Call`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from math import log, prod
from operator import itemgetter
from typing import Any, NamedTuple

from ..database import FAMILIES, FUSED_TRSM, TUNED
from ..dispatch.portfolio import GreedyOrder, class_weight
from .results import Record, candidate_of, sound

__all__ = ["BUDGETS", "Cell", "chosen", "greedy", "kernel_of", "reduced"]

#: Configs, distinguished by their kernels, that are kept of a dtype and layout, on average: of products,
#: fused TRSMs, leaves of TRSM and TRMM, products of a matrix and a vector, and updates by vectors.
BUDGETS = {"gemm": 8.4375, "trsm_fused": 4.95, "leaf": 3.0, "gemv": 2.0, "ger": 1.0}
#: Weights of layouts. A and B column-major are most common, and those of NumPy's order are, too.
WEIGHTS = {"nn": 2.0}

#: A size class, and how much of its best every dtype and layout keeps: factorizations
#: spend their time in such updates.
UPDATES, LEAST_OF_UPDATES = "low_rank", 0.95

#: Configs of products that are kept in addition for calls, of all dtypes and layouts together, and what a
#: call counts for relative to a class. Batches and triangles of C are fewer among the calls than squares.
FOR_CALLS, CALL_WEIGHT, FEWER_WEIGHT = 29, 2.0, 4.0
#: Configs that are kept besides for the tail: calls for which none that is kept is so near the best that was
#: timed, the ones with the most to gain first; of calls for which that many were timed.
FOR_TAIL, LEAST_OF_CALLS, CONFIGS_OF_CALL = 30, 0.95, 4
TRIANGULAR = ("syrk", "herk", "syr2k", "her2k")

Rates = Mapping[Any, Mapping[Any, float]]
#: A call for which several Configs were timed: its `dtype`, and `rates`, [stem, layout, parameters, rate] of
#: each. In what unit a rate is does not matter.
Call = Mapping[str, Any]
CALL = "call"
#: Parameters that say which thread copies which elements to where.
COPYING = ("DIM_XA", "DIM_YA", "DIM_XB", "DIM_YB", "PAD_A", "PAD_B")


class Cell(NamedTuple):
    """Scope of shared Configs: a routine ('gemm', 'trsm_fused', 'trsm', 'trmm'), dtype, layout."""

    routine: str
    dtype: str
    layout: str


def greedy(cells: Mapping[Any, Rates], budget: int, weight: Callable = lambda cell: 1.0) -> dict:
    """The candidates that are kept of each cell, in the order in which they were chosen.

    Parameters
    ----------
    cells : mapping
        Cell -> candidate -> class -> rate.
    budget : int
        Candidates of all cells together; each cell has at least one.
    weight : callable, optional
        ``weight(cell)``: what the mean logarithm of a cell's rates counts for.

    Returns
    -------
    dict of list
    """
    orders = {cell: GreedyOrder(rates, _weight(cell)) for cell, rates in cells.items() if rates}
    kept = {cell: [next(order)] for cell, order in orders.items()}
    gains = {cell: weight(cell) * order.gain for cell, order in orders.items()}
    for _ in range(budget - len(kept)):
        best = max(gains, key=gains.__getitem__, default=None)
        if best is None or gains[best] <= 0:
            break
        kept[best].append(next(orders[best]))
        gains[best] = weight(best) * orders[best].gain
    return kept


def _weight(cell: Cell) -> Callable[[tuple[Any, Any]], float]:
    """Return the weight of a cell's classes, (device, size class), and calls, (`CALL`, number, weight)."""
    stem = next((stem for stem in FAMILIES if FAMILIES[stem].routine == cell.routine), None)

    def weight(at: tuple[Any, Any]) -> float:
        if at[0] == CALL:
            return float(at[-1])
        return class_weight(stem, at[1]) if stem else 1.0

    return weight


def chosen(records: Iterable[Record], calls: Iterable[Call] = ()) -> set[tuple]:
    """The candidates that an architecture keeps, as `kernel_of` names them, by all that was timed on its
    devices, in classes and for `calls`.
    """
    cells = _rates(sound(records))
    kept: set[tuple] = set()
    for kind, budget in BUDGETS.items():
        of_kind = {cell: rates for cell, rates in cells.items() if _kind(cell) == kind}
        orders = greedy(of_kind, round(budget * len(of_kind)), lambda cell: WEIGHTS.get(cell.layout, 1.0))
        kept.update(candidate for order in orders.values() for candidate in order)
        kept.update(
            candidate for cell, order in orders.items() for candidate in _for_updates(cells[cell], order)
        )
        if kind == "gemm":
            calls = list(calls)
            kept.update(_for_calls(of_kind, kept, calls))
            many = (call for call in calls if len(call["rates"]) >= CONFIGS_OF_CALL)
            kept.update(_for_tail(of_kind, kept, many))
    return kept


def _for_calls(cells: Mapping[Cell, Rates], kept: Collection[tuple], calls: Iterable[Call]) -> Iterator[Any]:
    """The `FOR_CALLS` candidates that gain most over those `kept`, where `calls` count as classes do."""
    orders = {}
    for cell, rates in _with_calls(cells, calls).items():
        orders[cell] = GreedyOrder(rates, _weight(cell))
        for candidate in rates.keys() & set(kept):
            orders[cell].take(candidate)
    for _ in range(FOR_CALLS if orders else 0):
        best = max(orders, key=lambda cell: WEIGHTS.get(cell.layout, 1.0) * orders[cell].gain)
        if orders[best].gain <= 0:
            return
        yield next(orders[best])


def _for_tail(cells: Mapping[Cell, Rates], kept: Collection[tuple], calls: Iterable[Call]) -> Iterator[Any]:
    """The `FOR_TAIL` candidates that gain most over those `kept` at calls for which none of these is near the
    best.
    """
    rates = {
        candidate: {at: rate for at, rate in of_candidate.items() if at[0] == CALL}
        for of_cell in _with_calls(cells, calls).values()
        for candidate, of_candidate in of_cell.items()
    }
    best: dict[Any, float] = defaultdict(float)
    reached: dict[Any, float] = defaultdict(float)
    for candidate, of_candidate in rates.items():
        for at, rate in of_candidate.items():
            best[at] = max(best[at], rate)
            reached[at] = max(reached[at], rate * (candidate in kept))

    def gain(candidate: tuple) -> float:
        ratios = (rate / reached[at] for at, rate in rates[candidate].items() if reached[at] < near[at])
        return sum(log(ratio) for ratio in ratios if ratio > 1)

    for _ in range(FOR_TAIL if rates else 0):
        near = {at: LEAST_OF_CALLS * rate for at, rate in best.items()}
        candidate = max(rates, key=gain)
        if gain(candidate) <= 0:
            return
        for at, rate in rates[candidate].items():
            reached[at] = max(reached[at], rate)
        yield candidate


def _with_calls(cells: Mapping[Cell, Rates], calls: Iterable[Call]) -> dict[Cell, Rates]:
    """The rates of those cells that `calls` have; where neither a candidate nor one with the same tile was
    timed for a call of its layout, it counts as the slowest that was.
    """
    with_calls: dict[Cell, Any] = {}
    for number, call in enumerate(calls):
        timed: dict[str, dict[tuple, float]] = defaultdict(dict)
        for stem, layout, parameters, rate in sorted(call["rates"], key=itemgetter(-1)):
            candidate = kernel_of(stem, call["dtype"], layout, parameters)
            timed[layout] |= {_tile(candidate): rate, candidate: rate}
        is_fewer = "batch" in call or call["routine"] in TRIANGULAR
        at_call = CALL, number, FEWER_WEIGHT if is_fewer else CALL_WEIGHT
        slowest = min(rate for rates in timed.values() for rate in rates.values())
        for layout, of_layout in timed.items():
            cell = Cell("gemm", call["dtype"], layout)
            if cell in cells:
                rates = with_calls.setdefault(cell, _by_tiles(cells[cell]))
                for candidate, at in rates.items():
                    like = of_layout.get(_tile(candidate), slowest)
                    at[at_call] = of_layout.get(candidate, like)
    return with_calls


def _by_tiles(rates: Rates) -> dict[Any, dict[Any, float]]:
    """`rates`, the candidates with the most first; where one was not timed, of another with the same tile."""
    like: dict[tuple, dict[Any, float]] = defaultdict(dict)
    for candidate, at in rates.items():
        alike = like[_tile(candidate)]
        alike |= {problem: max(rate, alike.get(problem, 0.0)) for problem, rate in at.items()}
    ranked = sorted(rates, key=lambda candidate: -len(rates[candidate]))
    return {candidate: like[_tile(candidate)] | dict(rates[candidate]) for candidate in ranked}


def _tile(candidate: tuple) -> tuple:
    """`candidate` without the parameters that only assign elements to threads for copies."""
    stem, dtype, layout, *parameters = candidate
    return stem, dtype, layout, *((name, value) for name, value in parameters if name not in COPYING)


def _for_updates(rates: Rates, kept: Iterable[Any]) -> Iterator[Any]:
    """The best candidate at `UPDATES` on a device where none that is `kept` is near."""
    kept = set(kept)
    for at in {at for by_class in rates.values() for at in by_class if at[1] == UPDATES}:
        best = max(rates, key=lambda candidate: rates[candidate].get(at, 0.0))
        if max(rates[candidate].get(at, 0.0) for candidate in kept) < LEAST_OF_UPDATES * rates[best][at]:
            yield best


def reduced(records: Iterable[Record], kept: set[tuple]) -> list[Record]:
    """`records` without the times of candidates that are not `kept`; those of algorithms stay."""
    return [r for r in records if r.algorithm or r.kernel is None or kernel_of(*r.kernel) in kept]


def kernel_of(stem: str, dtype: str, layout: str, parameters: dict[str, int]) -> tuple:
    """Return the key of a candidate's kernel: `results.candidate_of` without the run-time parameters."""
    told = TUNED[stem].runtime_parameters
    return candidate_of(stem, dtype, layout, parameters | dict.fromkeys(told, 0))


def _kind(cell: Cell) -> str:
    return "leaf" if cell.routine in ("trsm", "trmm") else cell.routine


def _cell(record: Record) -> Cell:
    routine = "trsm_fused" if record.stem in FUSED_TRSM else TUNED[record.stem].routine
    return Cell(routine, record.dtype, record.layout)


def _rates(records: Iterable[Record]) -> dict[Cell, Rates]:
    """Cell -> candidate -> (device, class) -> rate; of a class with several extents the geometric mean, where
    a candidate was timed at all of them.
    """
    rates: dict = defaultdict(lambda: defaultdict(lambda: defaultdict(dict)))
    for record in records:
        if record.stem in FAMILIES or record.stem in FUSED_TRSM:
            kernel = kernel_of(record.stem, record.dtype, record.layout, record.parameters)
            at = rates[_cell(record)][kernel][record.device, record.size]
            at[record.extents] = max(1 / record.seconds, at.get(record.extents, 0.0))
    return {cell: _of_classes(by_kernel) for cell, by_kernel in rates.items()}


def _of_classes(by_kernel: Mapping[Any, Mapping[Any, Mapping[tuple, float]]]) -> Rates:
    extents: dict[Any, set[tuple]] = defaultdict(set)
    for at in by_kernel.values():
        for size, of_extents in at.items():
            extents[size] |= set(of_extents)
    return {
        kernel: {
            size: prod(of_extents.values()) ** (1 / len(of_extents))
            for size, of_extents in at.items()
            if len(of_extents) == len(extents[size])
        }
        for kernel, at in by_kernel.items()
    }
