"""The Configs that were measured for products, as they may run for problems of one kind."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from ..gpu.device import Device
from ..types import Triangle
from . import measured_products, portfolio, product_kinds
from .decisions import COMPUTED
from .gemm_problem import GemmProblem
from .leaf import of_class, runs
from .lower_bounds import LowerBounds
from .measured_products import throughput_model
from .product_kinds import Kind, applies, variant_of
from .throughput_model import Measured, ThroughputModel, Unmeasured, of_fused_trmm
from .variants import match_alignment

__all__ = ["CandidateTable", "Row", "forget", "is_tuned", "table"]


class Row(NamedTuple):
    """A Config as it may run: the number of the `known` one, its variant, and what this is judged by: not
    packed, with loads as the alignment of the operands leaves them.
    """

    number: int
    known: Measured
    variant: Any
    config: Any


class CandidateTable:
    """What a model knows, as it may run for problems of one kind, with lower bounds of their seconds."""

    def __init__(self, model: ThroughputModel | Unmeasured, problem: GemmProblem, kind: Kind, device: Device):
        self.rows = list(_rows(model.tuned, problem, kind, device))
        self._model, self._numbers = model, np.array([row.number for row in self.rows], dtype=int)
        self._bounds = LowerBounds([row.config for row in self.rows], device) if self.rows else None

    def likeliest(self, problem: GemmProblem) -> Iterator[tuple[float, int, float, float]]:
        """A lower bound of each row's seconds, the least first; the row, the seconds of a cycle, and by what
        factor they are uncertain.
        """
        if self._bounds is None:
            return
        seconds_per_cycle, factors = (values[self._numbers] for values in self._model.at(problem.extents))
        if isinstance(problem.region, Triangle):
            seconds_per_cycle = of_fused_trmm(seconds_per_cycle)
        bounds = np.zeros(len(self.rows))
        if problem.splits in (None, 1):
            may_split = problem.splits is None
            bounds = self._bounds.seconds(seconds_per_cycle, problem.extents, problem.region, may_split)
            bounds = bounds * factors
        order = np.argsort(bounds, kind="stable")
        columns = (bounds[order], order, seconds_per_cycle[order], factors[order])
        yield from zip(*(column.tolist() for column in columns), strict=True)


def table(problem: GemmProblem, device: Device, packed: bool = False) -> CandidateTable:
    """What was measured, or what stands in for it; of `packed` operands or of such as they lie."""
    kind = problem.kind(packed)
    if _model(problem, device) is None:
        candidates = CandidateTable(_of_class(problem, device), problem, kind, device)
        return (
            candidates
            if candidates.rows
            else CandidateTable(_of_portfolio(problem, device), problem, kind, device)
        )
    alike = problem._replace(
        extents=(1,) * 3 + (2,) * (problem.is_batch),
        splits=None,
        copied=(False, False),
        packed=None,
        conjs=(False, False),
        workspace_limit=None,
        adds=False,
    )
    return _tuned_table(alike, kind, device)


def is_tuned(problem: GemmProblem, device: Device) -> bool:
    """Whether Configs were measured, with operands as the problem has them."""
    return _model(problem, device) is not None


@lru_cache(maxsize=1 << 10)
def _tuned_table(problem: GemmProblem, kind: Kind, device: Device) -> CandidateTable:
    model = _model(problem, device)
    assert model
    return CandidateTable(model, problem, kind, device)


def _rows(tuned: Sequence[Measured], problem: GemmProblem, kind: Kind, device: Device) -> Iterator[Row]:
    """Those that serve (`dispatch.product_kinds`)."""
    unpacked = kind.unpacked
    for number, known in enumerate(tuned):
        if applies(known.config, kind, problem.stems, device):
            variant = variant_of(kind, known.config, device)
            judged = variant if kind == unpacked else variant_of(unpacked, known.config, device)
            yield Row(number, known, variant, match_alignment(judged, problem.aligned))


def _model(problem: GemmProblem, device: Device) -> ThroughputModel | None:
    """The Configs of all families that were measured, if any."""
    batched = problem.is_batch
    return throughput_model(problem.stems, problem.dtype.letter, problem.layout, batched, device)


def _of_class(problem: GemmProblem, device: Device) -> Unmeasured:
    """What a file of each family names for the class without a rate, if any does."""
    stems, dtype, layout, extents, *_ = problem
    usable = [stem for stem in stems if runs(stem, device)]
    choices = [of_class((stem,), dtype.letter, layout, extents, device) for stem in usable]
    filed = [choice for choice in choices if choice.origin != COMPUTED]
    return Unmeasured([Measured(choice.config, (((), choice.origin),)) for choice in filed])


def _of_portfolio(problem: GemmProblem, device: Device) -> Unmeasured:
    """All Configs that stand in where nothing was measured."""
    known = portfolio.products(problem.stems, problem.dtype.letter, problem.layout, device)
    return Unmeasured([Measured(config, (((), known.origin),)) for config in known.rates])


def forget() -> None:
    """Forget what was read of the files of tuned values."""
    portfolio.forget()
    measured_products.forget()
    product_kinds.forget()
    _tuned_table.cache_clear()
