"""The choice for a product, at run time, between the Configs of all classes.

A product takes, of the Configs that won a size class in any family that serves the dtype, the one that
should be fastest at its own extents: the time that was measured where it was tuned, scaled by the model of
`score`. So there are no bounds between classes, and no family is preferred but by what was measured. With
the Config it is decided into how many slices its k is split (`split_k`), and whether its operands are copied
first (`operand_copies`), or packed where that is asked for. Where three real products may make a complex one,
the variant of that kind is taken.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from math import inf
from operator import itemgetter
from typing import Any, NamedTuple

from ..gpu.device import Device
from ..model.score import cycles
from .decisions import OVERRIDE, KernelChoice
from .gemm_problem import GemmProblem, without_3m
from .operand_copies import (
    ALIGNED,
    MIN_SPEEDUP,
    OperandLayouts,
    copied_bytes,
    copying,
    other_layouts,
    packed_bytes,
    packing,
    within,
)
from .product_kinds import LAYOUT_OF_PACKED, packed_variant, variant_of
from .reading_c import reading_c
from .split_k import split_times, whole_or_stream_k
from .throughput_model import Measured
from .tuned_products import Row, is_tuned, table

__all__ = ["fastest", "from_override"]


def from_override(config: Any, problem: GemmProblem, device: Device) -> KernelChoice:
    """A product by an override's Config; packed, its k is not split."""
    variant, splits = variant_of(problem.kind(), config, device), problem.splits
    config = variant or variant_of(without_3m(problem).kind(), config, device)
    if splits is None:
        splits = whole_or_stream_k(
            config, problem.extents, device, region=problem.region, workspace_limit=problem.workspace_limit
        )
    config = (problem.packed and packed_variant(config, device)) or config
    return KernelChoice(config, OVERRIDE, 1 if config.packed and splits > 1 else splits, problem.copied)


class Candidate(NamedTuple):
    """A Config, its splits and copies; with the estimated seconds, without copies that must be made anyway,
    and the `seconds_per_cycle` of the model.
    """

    seconds: float
    splits: int
    config: Any
    known: Measured
    copied: tuple[bool, bool]
    seconds_per_cycle: float = 0.0


def fastest(problem: GemmProblem, device: Device) -> KernelChoice:
    """The fastest candidate by measurement and model: of the tuned Configs of all classes, of numbers of
    slices, and of operands as they lie or copied; of packed ones where these are asked for.
    """
    best = _fastest(_packed_candidates(problem, device)) if problem.packed else None
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
    size, must = (copied_bytes(extents, copied, dtype) for copied in both)
    extra = seconds - anyway
    if extra >= limit or not within(size - must, problem.workspace_limit):
        return
    workspace_limit = None if problem.workspace_limit is None else problem.workspace_limit - (size - must)
    problem = problem._replace(**other._asdict(), workspace_limit=workspace_limit)
    if is_tuned(problem, device):
        for candidate in _candidates(problem, limit - extra, device):
            yield candidate._replace(seconds=candidate.seconds + extra)


def _candidates(problem: GemmProblem, limit: float, device: Device) -> list[Candidate]:
    """Candidates with operands as they are, in the order of the tuned Configs; those that cannot be the
    fastest, or not within the `limit` of seconds, may be missing.
    """
    candidates = table(problem, device)
    kept: list[tuple[int, list[Candidate]]] = []
    for bound, at, cycle, uncertainty in candidates.likeliest(problem):
        if bound > limit:
            break
        times = list(_of_row(candidates.rows[at], cycle, uncertainty, problem, device))
        limit = min([limit, *(candidate.seconds for candidate in times)])
        kept.append((at, times))
    return [candidate for _, times in sorted(kept, key=itemgetter(0)) for candidate in times]


def _of_row(
    row: Row, cycle: float, uncertainty: float, problem: GemmProblem, device: Device
) -> Iterator[Candidate]:
    """The candidates of a Config, by numbers of slices."""
    cycle *= _misalignment_cost(row.config, problem, device)
    for time in split_times(
        row.config, cycle, problem.extents, device, problem.splits, problem.region, problem.workspace_limit
    ):
        seconds = time.seconds * uncertainty + reading_c(row.config, problem, device)
        yield Candidate(seconds, time.splits, row.variant, row.known, problem.copied, cycle * uncertainty)


def _misalignment_cost(config: Any, problem: GemmProblem, device: Device) -> float:
    """How many times longer the product takes with sector-misaligned columns."""
    sector_misaligned = problem.aligned[0] < ALIGNED, problem.aligned[1] < ALIGNED
    if not any(sector_misaligned):
        return 1.0
    cycles_here = partial(cycles, config.STEM, config, problem.extents, device, region=problem.region)
    return cycles_here(sector_misaligned=sector_misaligned) / cycles_here()


def _packed_candidates(problem: GemmProblem, device: Device) -> Iterator[Candidate]:
    """Candidates with packed operands, k not split."""
    extents, region, splits = problem.extents, problem.region, problem.splits
    slices = splits is not None and splits > 1
    aligned, splits = (ALIGNED, ALIGNED), None if slices else splits
    repacked = problem._replace(layout=LAYOUT_OF_PACKED, aligned=aligned, splits=splits)
    candidates = table(repacked, device, packed=True)
    for _, at, cycle, uncertainty in candidates.likeliest(repacked._replace(splits=splits and 1)):
        row = candidates.rows[at]
        variant = row.variant
        left = (
            None
            if problem.workspace_limit is None
            else problem.workspace_limit - packed_bytes(variant, extents)
        )
        time = next(split_times(row.config, cycle, extents, device, splits, region, left))
        seconds = time.seconds * uncertainty + packing(variant, extents, device)
        yield Candidate(seconds, time.splits, variant, row.known, problem.copied)
