"""The choice for a product, at run time, between the Configs of all classes.

A product takes, of the Configs that won a size class in any family that serves the dtype, the one that
should be fastest at its own extents: the time that was measured where it was tuned, scaled by the model of
`score`. So there are no bounds between classes, and no family is preferred but by what was measured. With
the Config it is decided into how many slices its k is split (`split_k`), and whether its operands are copied
or packed first (`operand_copies`). Where three real products may make a complex one, the variant of that
kind is taken. Untimed persistent variants are candidates too (`variants`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from functools import lru_cache, partial
from math import inf, prod
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np

from ..database import is_batch, size_class, sizes_of, tuned_at
from ..errors import BackendUnavailable
from ..gpu.device import Device
from ..model.score import cycles
from ..types import DTYPES, Dtype, Region, Triangle
from . import tuned_files
from .decisions import COMPUTED, OVERRIDE, KernelChoice
from .leaf import computed, of_class, runs
from .lower_bounds import LowerBounds
from .operand_copies import (
    ALIGNED,
    LAYOUT,
    MIN_SPEEDUP,
    OperandLayouts,
    copied_bytes,
    copying,
    fits,
    other_layouts,
    packed_bytes,
    packed_variant,
    packing,
    within,
)
from .split_k import pace, split_times, stream_k, whole_or_stream_k
from .throughput_model import Measured, Sample, ThroughputModel, Unmeasured
from .variants import fused_variant, min_share, persistent_variants, three_m_variant, triangle_variants

__all__ = ["GemmProblem", "fastest", "from_override", "forget", "measured"]

UNTIMED_MARGIN = 1.03  # of an untimed variant's seconds


class GemmProblem(NamedTuple):
    """A product, and what is fixed of how it is computed."""

    stems: tuple[str, ...]
    dtype: Dtype
    layout: str
    extents: tuple[int, ...]
    region: Region | Triangle
    splits: int | None
    copied: tuple[bool, bool]
    packed: bool | None
    aligned: tuple[int, int]
    three_m: bool
    room: int | None

    @property
    def layouts(self) -> OperandLayouts:
        """How the operands lie."""
        return OperandLayouts(self.layout, self.copied, self.aligned)


def from_override(config: Any, problem: GemmProblem, device: Device) -> KernelChoice:
    """A product by an override's Config; packed, its k is not split."""
    config, splits = (
        variant_for(config, problem, device) or variant_for(config, without_3m(problem), device),
        problem.splits,
    )
    if splits is None:
        splits = whole_or_stream_k(config, problem.extents, device, region=problem.region, room=problem.room)
    config = (problem.packed and packed_variant(config, device)) or config
    return KernelChoice(config, OVERRIDE, 1 if config.packed and splits > 1 else splits, problem.copied)


class Candidate(NamedTuple):
    """A Config, its splits and copies; with the estimated seconds, without copies that must be made anyway,
    and the `pace` of a cycle of the model.
    """

    seconds: float
    splits: int
    config: Any
    known: Measured
    copied: tuple[bool, bool]
    pace: float = 0.0


def fastest(problem: GemmProblem, device: Device) -> KernelChoice:
    """The fastest candidate by measurement and model: of the tuned Configs of all classes, of numbers of
    slices, and of operands as they lie, copied or packed.
    """
    best = _fastest(_packed_candidates(problem, inf, device)) if problem.packed else None
    if best is None:
        best = _fastest(_candidates(problem, inf, device))
        if best is None:
            return fastest(without_3m(problem), device)
        if problem.packed is not False:
            best = _better(problem, best.seconds, device) or best
    return KernelChoice(best.config, best.known.origin(problem.extents), best.splits, best.copied)


def _fastest(candidates: Iterable[Candidate]) -> Candidate | None:
    """Of equal ones the first."""
    return min(candidates, key=itemgetter(0), default=None)


def _better(problem: GemmProblem, seconds: float, device: Device) -> Candidate | None:
    """The fastest candidate with more copies than must be, or others; None where none is faster than the
    `seconds` without.
    """
    best, others = None, seconds / MIN_SPEEDUP
    limit = seconds if any(problem.copied) else others
    anyway = copying(problem.extents, problem.copied, problem.dtype, device)
    if copying(problem.extents, (True, True), problem.dtype, device) - anyway < limit:  # the least it takes
        packed = _fastest(_packed_candidates(problem, limit + anyway, device))
        if packed and packed.seconds - anyway < limit:
            best = packed._replace(seconds=packed.seconds - anyway)
    for other in other_layouts(problem.layouts):
        limit = seconds if other.copied == problem.copied else others
        limit = min(limit, best.seconds) if best else limit
        candidate = _fastest(_copied_candidates(problem, other, limit, device))
        if candidate and candidate.seconds < limit:
            best = candidate
    return best


def _copied_candidates(
    problem: GemmProblem, other: OperandLayouts, limit: float, device: Device
) -> Iterator[Candidate]:
    """Candidates with operands as in `other`; none if copies alone take the `limit`."""
    extents, dtype, both = problem.extents, problem.dtype, (other.copied, problem.copied)
    seconds, anyway = (copying(extents, copied, dtype, device) for copied in both)
    size, given = (copied_bytes(extents, copied, dtype) for copied in both)
    extra = seconds - anyway
    if extra >= limit or not within(size - given, problem.room):
        return
    room = None if problem.room is None else problem.room - (size - given)
    problem = problem._replace(**other._asdict(), room=room)
    if _tuned(problem, device):
        for candidate in _candidates(problem, limit - extra, device):
            yield candidate._replace(seconds=candidate.seconds + extra)


def _candidates(problem: GemmProblem, limit: float, device: Device) -> list[Candidate]:
    """Candidates with operands as they are: of what the tuner kept, and of its persistent variants; those
    that cannot be the fastest, or not within the `limit` of seconds, may be missing.
    """
    kept = _tuned_candidates(problem, limit, device)
    variants = _stream_k_candidates(kept, limit, problem, device) if problem.splits is None else ()
    return [*kept, *variants]


def _stream_k_candidates(
    kept: list[Candidate], limit: float, problem: GemmProblem, device: Device
) -> Iterator[Candidate]:
    """Persistent variants of measured Configs that are not, with stream-K, that might be faster than all
    that was `kept`.
    """
    extents, region, room = problem.extents, problem.region, problem.room
    best = min([limit, *(candidate.seconds for candidate in kept)])
    for candidate in kept:
        config, seconds = candidate.config, UNTIMED_MARGIN * candidate.seconds
        if candidate.splits != 1 or config.persistent or not candidate.known.samples:
            continue
        if seconds * min_share(config, extents, device, region) > best:
            continue
        for variant in persistent_variants(config, device):
            matched = match_alignment(variant, problem.aligned)
            for time in stream_k(matched, candidate.pace, extents, device, region, room):
                seconds = UNTIMED_MARGIN * time.seconds
                yield candidate._replace(seconds=seconds, splits=time.splits, config=variant)


class _Row(NamedTuple):
    """A Config as it may run: the number of the `known` one, its variant, how many times longer that takes,
    and the variant for operands as they are aligned.
    """

    number: int
    known: Measured
    variant: Any
    slowdown: float
    config: Any


class _Table:
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


def _rows(tuned: Sequence[Measured], problem: GemmProblem, device: Device) -> Iterator[_Row]:
    for number, known in enumerate(tuned):
        chosen = variant_for(known.config, problem, device)
        if chosen is None:
            continue
        for variant, slowdown in triangle_variants(chosen, problem.region, device):
            config = match_alignment(variant, problem.aligned)
            yield _Row(number, known, variant, slowdown, config)


def _table(problem: GemmProblem, device: Device) -> _Table:
    if _tuned(problem, device) is None:
        return _Table(_unmeasured(problem, device), problem, device)
    kind = problem._replace(extents=(1,) * 3 + (2,) * (_batch(problem) > 1), splits=None, room=None)
    return _tuned_table(kind._replace(copied=(False, False), packed=None), device)


@lru_cache(maxsize=1 << 10)
def _tuned_table(kind: GemmProblem, device: Device) -> _Table:
    model = _tuned(kind, device)
    assert model
    return _Table(model, kind, device)


def _tuned_candidates(problem: GemmProblem, limit: float, device: Device) -> list[Candidate]:
    """Those of what the tuner kept, in its order."""
    table = _table(problem, device)
    kept: list[tuple[int, list[Candidate]]] = []
    for bound, at, cycle, uncertainty in table.likeliest(problem):
        if bound > limit:
            break
        times = list(_of_row(table.rows[at], cycle, uncertainty, problem, device))
        limit = min([limit, *(candidate.seconds for candidate in times)])
        kept.append((at, times))
    return [candidate for _, times in sorted(kept, key=itemgetter(0)) for candidate in times]


def _of_row(
    row: _Row, cycle: float, uncertainty: float, problem: GemmProblem, device: Device
) -> Iterator[Candidate]:
    """The candidates of a Config, by numbers of slices."""
    cycle *= _misalignment_cost(row.config, problem, device)
    for time in split_times(
        row.config, cycle, problem.extents, device, problem.splits, problem.region, problem.room
    ):
        seconds = time.seconds * uncertainty * row.slowdown
        yield Candidate(seconds, time.splits, row.variant, row.known, problem.copied, cycle * uncertainty)


def without_3m(problem: GemmProblem) -> GemmProblem:
    """What is asked for where no kernel has the three products; a product in place has no stand-in."""
    if isinstance(problem.region, Triangle):
        raise BackendUnavailable(f"no {problem.dtype.name} product at hand can be made in place")
    return problem._replace(three_m=False)


def variant_for(config: Any, problem: GemmProblem, device: Device) -> Any:
    """`config`, or its variant with three products, or for a product in place; None where there is none."""
    if isinstance(problem.region, Triangle):
        return fused_variant(config, problem.region)
    return three_m_variant(config, device) if problem.three_m else config


@lru_cache(maxsize=1 << 12)
def match_alignment(config: Any, aligned: tuple[int, int]) -> Any:
    """`config` as it runs on operands that begin at multiples of so many bytes."""
    a, b = (max(distance // config.dtype_facts.itemsize, 1) for distance in aligned)
    sector_misaligned = min(aligned) < ALIGNED
    return config.with_vector_width(a, b, sector_misaligned) if sector_misaligned else config


def _misalignment_cost(config: Any, problem: GemmProblem, device: Device) -> float:
    """How many times longer the product takes with sector-misaligned columns."""
    sector_misaligned = problem.aligned[0] < ALIGNED, problem.aligned[1] < ALIGNED
    if not any(sector_misaligned):
        return 1.0
    there = partial(cycles, config.STEM, config, problem.extents, device, region=problem.region)
    return there(sector_misaligned=sector_misaligned) / there()


def _packed_candidates(problem: GemmProblem, limit: float, device: Device) -> Iterator[Candidate]:
    """Candidates with packed operands, k not split: of what was measured, unless packing is asked for. Those
    that cannot be within the `limit` of seconds, or the fastest, may be missing.
    """
    extents, region, splits = problem.extents, problem.region, problem.splits
    copied, packed = problem.copied, problem.packed
    slices = splits is not None and splits > 1
    if packed is False or (slices and not packed):
        return
    kind = problem._replace(layout=LAYOUT, aligned=(ALIGNED, ALIGNED), splits=None if slices else splits)
    if not packed and _tuned(kind, device) is None:
        return
    table = _table(kind._replace(region=Region.ALL), device)
    for bound, at, cycle, uncertainty in table.likeliest(kind._replace(splits=kind.splits and 1)):
        if bound > limit:
            return
        row = table.rows[at]
        variant = packed_variant(row.variant, device)
        if variant is None or not (packed or fits(variant, extents, copied, problem.room)):
            continue
        left = None if problem.room is None else problem.room - packed_bytes(variant, extents)
        time = next(split_times(row.variant, cycle, extents, device, kind.splits, region, left))
        seconds = time.seconds * uncertainty + packing(variant, extents, device)
        limit = min(limit, seconds)
        yield Candidate(seconds, time.splits, variant, row.known, copied)


def _batch(problem: GemmProblem) -> int:
    return prod(problem.extents[3:])


def _tuned(problem: GemmProblem, device: Device) -> ThroughputModel | None:
    """The Configs of all families that were measured, if any."""
    batched = _batch(problem) > 1
    return _throughput_model(problem.stems, problem.dtype.letter, problem.layout, batched, device)


def _unmeasured(problem: GemmProblem, device: Device) -> Unmeasured:
    """A Config of each family that suits the device, from a file if any family has one there."""
    stems, dtype, layout, extents, *_ = problem
    usable = [stem for stem in stems if runs(stem, device)] or stems
    found = [of_class((stem,), dtype.letter, layout, extents, device) for stem in usable]
    filed = [choice for choice in found if choice.origin != COMPUTED]
    if problem.three_m and not any(variant_for(choice.config, problem, device) for choice in filed):
        found, filed = list(_computed_3m_variants(problem, usable, device)), []
    return Unmeasured([Measured(choice.config, (((), choice.origin),)) for choice in filed or found])


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

    found = (Measured(config, tuple(won), tuple(samples(config))) for config, won in origins.items())
    return tuple(known for known in found if known.samples)


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
