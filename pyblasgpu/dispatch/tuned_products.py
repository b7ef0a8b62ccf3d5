"""The Configs that were measured for products, as they may run for problems of one kind."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import lru_cache
from math import prod
from typing import Any, NamedTuple

import numpy as np

from ..database import is_batch, size_class, sizes_of, tuned_at
from ..errors import BackendUnavailable
from ..gpu.device import Device
from ..types import DTYPES
from . import tuned_files
from .decisions import COMPUTED, KernelChoice
from .gemm_problem import GemmProblem, match_alignment, variant_for
from .leaf import computed, of_class, runs
from .lower_bounds import LowerBounds
from .split_k import pace
from .throughput_model import Measured, Sample, ThroughputModel, Unmeasured
from .variants import triangle_variants

__all__ = ["CandidateTable", "Row", "forget", "is_tuned", "measured", "table"]


class Row(NamedTuple):
    """A Config as it may run: the number of the `known` one, its variant, how many times longer that takes,
    and the variant for operands as they are aligned.
    """

    number: int
    known: Measured
    variant: Any
    slowdown: float
    config: Any


class CandidateTable:
    """What a model knows, as it may run for problems of one kind, with lower bounds of their seconds."""

    def __init__(self, model: ThroughputModel | Unmeasured, problem: GemmProblem, device: Device):
        self.rows = list(_rows(model.tuned, problem, device))
        self._model, self._numbers = model, np.array([row.number for row in self.rows], dtype=int)
        self._slowdowns = np.array([row.slowdown for row in self.rows])
        self._bounds = LowerBounds([row.config for row in self.rows], device) if self.rows else None

    def likeliest(self, problem: GemmProblem) -> Iterator[tuple[float, int, float, float]]:
        """A lower bound of each row's seconds, the least first; the row, the pace of a cycle, and by what
        factor it is uncertain.
        """
        if self._bounds is None:
            return
        paces, factors = (values[self._numbers] for values in self._model.at(problem.extents))
        bounds = np.zeros(len(self.rows))
        if problem.splits in (None, 1):
            may_split = problem.splits is None
            bounds = self._bounds.seconds(paces, problem.extents, problem.region, may_split)
            bounds = bounds * factors * self._slowdowns
        order = np.argsort(bounds, kind="stable")
        columns = (bounds[order], order, paces[order], factors[order])
        yield from zip(*(column.tolist() for column in columns), strict=True)


def table(problem: GemmProblem, device: Device) -> CandidateTable:
    """What was measured, or what stands in for it."""
    if _model(problem, device) is None:
        return CandidateTable(_unmeasured(problem, device), problem, device)
    kind = problem._replace(extents=(1,) * 3 + (2,) * (problem.is_batch), splits=None, room=None)
    return _tuned_table(kind._replace(copied=(False, False), packed=None), device)


def is_tuned(problem: GemmProblem, device: Device) -> bool:
    """Whether Configs were measured, with operands as the problem has them."""
    return _model(problem, device) is not None


@lru_cache(maxsize=1 << 10)
def _tuned_table(kind: GemmProblem, device: Device) -> CandidateTable:
    model = _model(kind, device)
    assert model
    return CandidateTable(model, kind, device)


def _rows(tuned: Sequence[Measured], problem: GemmProblem, device: Device) -> Iterator[Row]:
    for number, known in enumerate(tuned):
        chosen = variant_for(known.config, problem, device)
        if chosen is None:
            continue
        for variant, slowdown in triangle_variants(chosen, problem.region, device):
            config = match_alignment(variant, problem.aligned)
            yield Row(number, known, variant, slowdown, config)


def _model(problem: GemmProblem, device: Device) -> ThroughputModel | None:
    """The Configs of all families that were measured, if any."""
    batched = problem.is_batch
    return _throughput_model(problem.stems, problem.dtype.letter, problem.layout, batched, device)


def _unmeasured(problem: GemmProblem, device: Device) -> Unmeasured:
    """A Config of each family that suits the device, from a file if any family has one there."""
    stems, dtype, layout, extents, *_ = problem
    usable = [stem for stem in stems if runs(stem, device)] or stems
    choices = [of_class((stem,), dtype.letter, layout, extents, device) for stem in usable]
    filed = [choice for choice in choices if choice.origin != COMPUTED]
    if problem.three_m and not any(variant_for(choice.config, problem, device) for choice in filed):
        choices, filed = list(_computed_3m_variants(problem, usable, device)), []
    return Unmeasured([Measured(choice.config, (((), choice.origin),)) for choice in filed or choices])


def _computed_3m_variants(
    problem: GemmProblem, stems: Sequence[str], device: Device
) -> Iterator[KernelChoice]:
    """With three products, of each family that has them."""
    for stem in stems:
        size = size_class(stem, problem.extents)
        with suppress(BackendUnavailable):
            yield KernelChoice(
                computed(stem, problem.dtype.letter, problem.layout, size, device, True), COMPUTED
            )


@lru_cache(maxsize=1 << 10)
def measured(stem: str, dtype: str, layout: str, batched: bool, device: Device) -> tuple[Measured, ...]:
    """The Configs with a time; of batches, which hide latency, there are times only for batches."""
    origins: dict[Any, list[tuple[tuple[int, ...], str]]] = {}
    rates: dict[Any, dict[str, float]] = {}
    for size in sizes_of(stem):
        filed = tuned_files.of_class(stem, dtype, layout, size, device)
        if filed and filed.tflops:
            won = tuned_at(stem, size)[-1], f"{filed.origin}, class {size}"
            origins.setdefault(filed.config, []).append(won)
            rates.setdefault(filed.config, {}).update({**filed.elsewhere, size: filed.tflops})
    flops = DTYPES[dtype].flops_per_fma

    def samples(config: Any) -> Iterator[Sample]:
        for size, rate in rates[config].items():
            if batched or not is_batch(size):
                extents = tuned_at(stem, size)[-1]
                seconds = flops * prod(extents) / rate / 1e12
                yield Sample(extents, pace(config, extents, seconds, device))

    configs = (Measured(config, tuple(won), tuple(samples(config))) for config, won in origins.items())
    return tuple(known for known in configs if known.samples)


@lru_cache(maxsize=1 << 10)
def _throughput_model(
    stems: tuple[str, ...], dtype: str, layout: str, batched: bool, device: Device
) -> ThroughputModel | None:
    """Those of several families."""
    tuned = [known for stem in stems for known in measured(stem, dtype, layout, batched, device)]
    return ThroughputModel(tuned) if tuned else None


def forget() -> None:
    """Forget what was read of the files of tuned values."""
    measured.cache_clear()
    _throughput_model.cache_clear()
    _tuned_table.cache_clear()
