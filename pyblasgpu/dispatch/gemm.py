"""The choice for a product, at run time, between the Configs of all classes.

A product takes, of the Configs that won a size class in any family that serves the dtype, the one that
should be fastest at its own extents: the time that was measured where it was tuned, scaled by the model of
`score`. So there are no bounds between classes, and no family is preferred but by what was measured. With
the Config it is decided into how many slices its k is split (`split_k`), and whether its operands are copied
or packed first (`operand_copies`). Where three real products may make a complex one, the variant of that
kind is taken. Untimed persistent variants are candidates too (`variants`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import lru_cache, partial
from math import prod
from operator import itemgetter
from typing import Any, NamedTuple

from ..database import is_batch, size_class, sizes_of, tuned_at
from ..errors import BackendUnavailable
from ..gpu.device import Device
from ..model.score import cycles
from ..types import DTYPES, Dtype, Region, Triangle
from . import tuned_files
from .decisions import COMPUTED, OVERRIDE, KernelChoice
from .leaf import computed, of_class, runs
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
    found = list(_packed_candidates(problem, device)) if problem.packed else []
    if not found:
        best = min(_candidates(problem, device), key=itemgetter(0), default=None)
        if best is None:
            return fastest(without_3m(problem), device)
        found = [best] if problem.packed is False else list(_better(problem, best.seconds, device)) or [best]
    _, slices, config, known, copied, _ = min(found, key=itemgetter(0))
    return KernelChoice(config, known.origin(problem.extents), slices, copied)


def _better(problem: GemmProblem, seconds: float, device: Device) -> Iterator[Candidate]:
    """Candidates with more copies than must be, or others, that are faster than the `seconds` without."""
    anyway = copying(problem.extents, problem.copied, problem.dtype, device)
    limit = seconds if any(problem.copied) else seconds / MIN_SPEEDUP
    if copying(problem.extents, (True, True), problem.dtype, device) - anyway < limit:  # the least it takes
        packed = (
            candidate._replace(seconds=candidate.seconds - anyway)
            for candidate in _packed_candidates(problem, device)
        )
        yield from (candidate for candidate in packed if candidate.seconds < limit)
    for other in other_layouts(problem.layouts):
        limit = seconds if other.copied == problem.copied else seconds / MIN_SPEEDUP
        yield from (
            candidate
            for candidate in _copied_candidates(problem, other, limit, device)
            if candidate.seconds < limit
        )


def _copied_candidates(
    problem: GemmProblem, other: OperandLayouts, limit: float, device: Device
) -> Iterator[Candidate]:
    """Candidates with operands as in `other`; none if copies alone take the `limit`."""
    extents, dtype, both = problem.extents, problem.dtype, (other.copied, problem.copied)
    seconds, anyway = (copying(extents, copied, dtype, device) for copied in both)
    size, given = (copied_bytes(extents, copied, dtype) for copied in both)
    if seconds - anyway >= limit or not within(size - given, problem.room):
        return
    room = None if problem.room is None else problem.room - (size - given)
    problem = problem._replace(**other._asdict(), room=room)
    if _tuned(problem, device):
        for candidate in _candidates(problem, device):
            yield candidate._replace(seconds=candidate.seconds + seconds - anyway)


def _candidates(problem: GemmProblem, device: Device) -> list[Candidate]:
    """Candidates with operands as they are: of what the tuner kept, and of its persistent variants."""
    kept = list(_tuned_candidates(problem, device))
    variants = _stream_k_candidates(kept, problem, device) if problem.splits is None else ()
    return [*kept, *variants]


def _stream_k_candidates(kept: list[Candidate], problem: GemmProblem, device: Device) -> Iterator[Candidate]:
    """Persistent variants of measured Configs that are not, with stream-K, that might be faster than all
    that was `kept`.
    """
    extents, region, room = problem.extents, problem.region, problem.room
    best = min((candidate.seconds for candidate in kept), default=0.0)
    for candidate in kept:
        ordinary = candidate.splits == 1 and candidate.known.samples and not candidate.config.persistent
        if (
            not ordinary
            or UNTIMED_MARGIN * candidate.seconds * min_share(candidate.config, extents, device, region)
            > best
        ):
            continue
        for variant in persistent_variants(candidate.config, device):
            config = match_alignment(variant, problem.aligned)
            for time in stream_k(config, candidate.pace, extents, device, region, room):
                yield candidate._replace(
                    seconds=UNTIMED_MARGIN * time.seconds, splits=time.splits, config=variant
                )


def _tuned_candidates(problem: GemmProblem, device: Device) -> Iterator[Candidate]:
    """Those of what the tuner kept."""
    extents = problem.extents
    model = _tuned(problem, device) or _unmeasured(problem, device)
    for known, pace_there, uncertainty in model.at(extents):
        chosen = variant_for(known.config, problem, device)
        if chosen is None:
            continue
        for variant, slowdown in triangle_variants(chosen, problem.region, device):
            config = match_alignment(variant, problem.aligned)
            pace_here = pace_there * _misalignment_cost(config, problem, device)
            for time in split_times(
                config, pace_here, extents, device, problem.splits, problem.region, problem.room
            ):
                seconds = time.seconds * uncertainty * slowdown
                yield Candidate(seconds, time.splits, variant, known, problem.copied, pace_here * uncertainty)


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


def _packed_candidates(problem: GemmProblem, device: Device) -> Iterator[Candidate]:
    """Candidates with packed operands, k not split: of what was measured, unless packing is asked for."""
    extents, region, splits = problem.extents, problem.region, problem.splits
    copied, packed = problem.copied, problem.packed
    slices = splits is not None and splits > 1
    if packed is False or (slices and not packed):
        return
    problem = problem._replace(layout=LAYOUT)
    model = _tuned(problem, device) or (_unmeasured(problem, device) if packed else None)
    for known, pace_there, uncertainty in model.at(extents) if model else ():
        unpacked = variant_for(known.config, problem, device)
        variant = packed_variant(unpacked, device) if unpacked else None
        if variant is None or not (packed or fits(variant, extents, copied, problem.room)):
            continue
        left = None if problem.room is None else problem.room - packed_bytes(variant, extents)
        time = next(
            split_times(unpacked, pace_there, extents, device, None if slices else splits, region, left)
        )
        seconds = time.seconds * uncertainty + packing(variant, extents, device)
        yield Candidate(seconds, time.splits, variant, known, problem.copied)


def _tuned(problem: GemmProblem, device: Device) -> ThroughputModel | None:
    """The Configs of all families that were measured, if any."""
    batched = prod(problem.extents[3:]) > 1
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
