"""The choice for a product, at run time, between the Configs of all classes.

A product takes, of the Configs that won a size class in any family that serves the dtype, the one that should
be fastest at its own extents. Its time there is that measured where it was tuned, scaled by the model of
`score`. So there are no bounds between classes, and no family is preferred but by what was measured. With the
Config it is decided into how many slices its k is split (`split_k`), and whether its operands are copied
first (`operand_copies`), or packed where that is requested. Where three real products may make a complex one,
the variant of that kind is taken.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from math import inf, prod
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..gpu.device import Device
from ..kernels.registry import family_of
from ..model.block_cost import dram_rate
from ..model.columns import Columns
from ..model.gemm import dram_cycles, gemm_block
from ..model.occupancy import blocks_per_sm
from ..types import Dtype, Region, Triangle
from . import portfolio, tuned_files
from .leaf import of_class, runs
from .operand_copies import (
    ALIGNED,
    MIN_SPEEDUP,
    OperandLayouts,
    copied_bytes,
    copying,
    match_alignment,
    misalignment_cost,
    other_layouts,
    packed_bytes,
    packing,
    sector_misaligned,
    within,
)
from .overrides import COMPUTED, OVERRIDE, KernelChoice, get_override
from .product_kinds import (
    LAYOUT_OF_PACKED,
    PLAIN,
    GemmProblem,
    Kind,
    applies,
    packed_variant,
    region_model,
    variant_of,
    without_3m,
)
from .split_k import MIN_SLICE, MOST_WAVES, cuts_k, split_times, whole_or_stream_k
from .throughput_model import (
    Measured,
    RegionModel,
    ThroughputModel,
    Unmeasured,
    has_trapezoids,
    measured_model,
)
from .tuned_files import policy_of, rates_of

__all__ = [
    "CandidateTable",
    "LowerBounds",
    "Candidate",
    "Row",
    "estimates",
    "fastest",
    "fetching_code",
    "from_override",
    "is_tuned",
    "prefetches_c",
    "raster_of",
    "reading_c",
    "table",
]

LONG_CODE = {False: 32, True: 64}  # sums of a thread: by FMAs, and on tensor cores


def from_override(config: Any, problem: GemmProblem, device: Device) -> KernelChoice:
    """A product by an override's Config; packed, its k is not split."""
    variant, splits = variant_of(problem.kind(), config, device), problem.splits
    config = variant or variant_of(without_3m(problem).kind(), config, device)
    if splits is None:
        splits = whole_or_stream_k(
            config, problem.extents, device, region=problem.region, workspace_limit=problem.workspace_limit
        )
    config = (problem.packed and packed_variant(config, device)) or config
    return KernelChoice(config, OVERRIDE, 1 if splits > 1 and not cuts_k(config) else splits, problem.copied)


class Candidate(NamedTuple):
    """A Config, its splits and copies; with the estimated seconds, without copies that must be made anyway,
    and the `seconds_per_cycle` of the model.
    """

    seconds: float
    splits: int
    config: Any
    measured: Measured
    copied: tuple[bool, bool]
    seconds_per_cycle: float = 0.0


def fastest(problem: GemmProblem, device: Device) -> KernelChoice:
    """The fastest candidate by measurement and model: of the tuned Configs of all classes, of numbers of
    slices, and of operands in place or copied; of packed ones where these are requested.
    """
    best = _fastest(_packed_candidates(problem, device)) if problem.packed else None
    if best is None:
        best = _fastest(_candidates(problem, inf, device))
        if best is None and problem.splits not in (None, 1):  # no Config at hand cuts k
            return fastest(problem._replace(splits=None), device)
        if best is None:
            return fastest(without_3m(problem), device)
        if problem.packed is not False:
            best = _better(problem, best.seconds, device) or best
    return KernelChoice(best.config, best.measured.origin(problem.extents), best.splits, best.copied)


def _fastest(candidates: Iterable[Candidate]) -> Candidate | None:
    """Return the fastest candidate, the first of equal ones."""
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


def estimates(problem: GemmProblem, device: Device) -> Iterator[Candidate]:
    """All candidates with operands as they are, of all Configs, those with the least bounds first."""
    candidates = table(problem, device)
    for _, at, cycle, uncertainty in candidates.likeliest(problem):
        yield from _of_row(candidates.rows[at], cycle, uncertainty, problem, device)


def _of_row(
    row: Row, cycle: float, uncertainty: float, problem: GemmProblem, device: Device
) -> Iterator[Candidate]:
    """The candidates of a Config, by numbers of slices."""
    strays = sector_misaligned(problem.aligned)
    cycle *= misalignment_cost(row.config, problem.extents, strays, device, problem.region)
    for time in split_times(
        row.config, cycle, problem.extents, device, problem.splits, problem.region, problem.workspace_limit
    ):
        seconds = time.seconds * uncertainty + reading_c(row.config, problem, device)
        if problem.extents[3:]:
            seconds += fetching_code(row.config, problem, device)
        yield Candidate(seconds, time.splits, row.variant, row.measured, problem.copied, cycle * uncertainty)


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
        yield Candidate(seconds, time.splits, variant, row.measured, problem.copied)


# -------------------------------------------------------------------------------------------------- C in L2


def prefetches_c(k: int, adds: bool, device: Device) -> bool:
    """Return whether a product that `adds` to C prefetches it into L2: by an override, else by its `k`."""
    requested = get_override("prefetch_c")
    return adds and (k <= policy_of(device).prefetch_c_max_k if requested is None else bool(requested))


def raster_of(dtype: Dtype, device: Device) -> int:
    """The value of products in `dtype`: an override's, else that of the files; 0: that of the kernels."""
    requested = get_override("raster")
    if requested is not None:
        return int(requested)
    filed = (document.rasters.get(dtype.letter) for _, document in tuned_files.documents(device))
    return next((raster for raster in filed if raster is not None), 0)


def reading_c(config: Any, problem: GemmProblem, device: Device) -> float:
    """Seconds in which C is read, where the `problem` adds to it.

    A block reads a few elements of C at a time, and does not multiply meanwhile. Other blocks of its
    multiprocessor do. With one block a multiprocessor reading takes twice the time that DRAM needs, with two
    1.2 times, with three as long as DRAM. Where the policy has no rate for a dtype, C counts
    as if it were not read.

    Persistent blocks are few, and with a short k they wait for most of their C. That was seen in batches.
    """
    policy, seconds = rates_of(device), 0.0
    if not problem.adds:
        return seconds
    share = policy.read_c_share.get(problem.dtype.letter)
    m, n, k, *batch = problem.extents
    resident = max(blocks_per_sm(config, device), 1)
    if share is not None:
        size = m * n * prod(batch) * problem.dtype.itemsize / (1 if problem.region is Region.ALL else 2)
        seconds += size * (1 + 1 / resident**2) * policy.cycle_seconds / (share * dram_rate(device))
    if config.persistent and problem.is_batch and k <= policy.prefetch_c_max_k:
        tiles = config.grid(m, n, problem.region) * prod(batch) / (device.sm_count * resident)
        seconds += tiles * config.BLK_M * config.BLK_N / config.threads * policy.read_c_wait
    return seconds


def fetching_code(config: Any, problem: GemmProblem, device: Device) -> float:
    """Seconds that a batch waits for machine code.

    After other kernels, those of more than 100 KB took Hopper 7 to 14 us longer, smaller ones 1. Rates are of
    calls one after the other, which do not wait, so a part of that counts. Code grows with a thread's sums;
    it is half as long in complex128, which is always loaded by vectors.
    """
    if not problem.is_batch or problem.region is not Region.ALL or problem.dtype.itemsize == 16:
        return 0.0
    is_long = config.sums >= LONG_CODE[family_of(config.STEM).tensor_cores]
    return float(rates_of(device).long_code_seconds) if is_long else 0.0


# --------------------------------------------------------------------------- the Configs that were measured


class Row(NamedTuple):
    """A Config as it may run: the number of the `measured` one, its variant, and the `config` to estimate it
    by. That is not packed, with loads as the alignment of the operands leaves them.
    """

    number: int
    measured: Measured
    variant: Any
    config: Any


class CandidateTable:
    """Configs of a model that can run problems of one kind, with lower bounds of their seconds."""

    def __init__(
        self,
        model: ThroughputModel | RegionModel | Unmeasured,
        problem: GemmProblem,
        kind: Kind,
        device: Device,
    ):
        self.rows = list(_rows(model.tuned, problem, kind, device))
        self._model, self._numbers = model, np.array([row.number for row in self.rows], dtype=int)
        self._bounds = LowerBounds([row.config for row in self.rows], device) if self.rows else None

    def likeliest(self, problem: GemmProblem) -> Iterator[tuple[float, int, float, float]]:
        """A lower bound of each row's seconds, the least first; the row, the seconds of a cycle, and by what
        factor they are uncertain.
        """
        if self._bounds is None:
            return
        seconds_per_cycle, factors = (
            values[self._numbers] for values in self._model.at(problem.extents, problem.aligned)
        )
        bounds = np.zeros(len(self.rows))
        if problem.splits in (None, 1):
            may_split = problem.splits is None
            bounds = self._bounds.seconds(seconds_per_cycle, problem.extents, problem.region, may_split)
            bounds = bounds * factors
        order = np.argsort(bounds, kind="stable")
        columns = (bounds[order], order, seconds_per_cycle[order], factors[order])
        yield from zip(*(column.tolist() for column in columns), strict=True)


def table(problem: GemmProblem, device: Device, packed: bool = False) -> CandidateTable:
    """Return the measured candidates, or else their substitutes, for `packed` operands or strided ones."""
    kind, is_part = problem.kind(packed), problem.region is not Region.ALL
    if _model(problem, device) is None:
        candidates = CandidateTable(_of_class(problem, device), problem, kind, device)
        return (
            candidates
            if candidates.rows
            else CandidateTable(_of_portfolio(problem, device), problem, kind, device)
        )
    alike = problem._replace(
        extents=(2 if is_part and problem.is_trapezoid else 1, 1, 1) + (2,) * problem.is_batch,
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


@tuned_files.memo(1 << 10)
def _tuned_table(problem: GemmProblem, kind: Kind, device: Device) -> CandidateTable:
    model = _model(problem, device)
    assert model
    return CandidateTable(model, problem, kind, device)


def _rows(tuned: Sequence[Measured], problem: GemmProblem, kind: Kind, device: Device) -> Iterator[Row]:
    """Yield the Configs that apply to the problem (`dispatch.product_kinds`)."""
    unpacked = kind.unpacked
    for number, known in enumerate(tuned):
        if applies(known.config, kind, problem.stems, device):
            variant = variant_of(kind, known.config, device)
            estimated_as = variant if kind == unpacked else variant_of(unpacked, known.config, device)
            yield Row(number, known, variant, match_alignment(estimated_as, problem.aligned))


def _model(problem: GemmProblem, device: Device) -> ThroughputModel | RegionModel | None:
    """The Configs of all families that were measured, if any; where a region of C is computed, or T is a
    triangle, also by times of such.
    """
    where = problem.stems, problem.dtype.letter, problem.layout
    if problem.region is Region.ALL or problem.is_trapezoid:
        of_trapezoid = problem.is_trapezoid and has_trapezoids(*where, device)
        return measured_model(*where, problem.is_batch, device, of_trapezoid=of_trapezoid)
    use = problem.kind().use if isinstance(problem.region, Triangle) else PLAIN
    return region_model(*where, Kind(use), problem.is_batch, device)


def _of_class(problem: GemmProblem, device: Device) -> Unmeasured:
    """Return each family's filed Config for the class, without a rate."""
    stems, dtype, layout, extents, *_ = problem
    usable = [stem for stem in stems if runs(stem, device)]
    choices = [of_class((stem,), dtype.letter, layout, extents, device) for stem in usable]
    filed = [choice for choice in choices if choice.origin != COMPUTED]
    tuned = [Measured(choice.config, (((), choice.origin),)) for choice in filed]
    return Unmeasured(tuned, rates_of(device).cycle_seconds)


def _of_portfolio(problem: GemmProblem, device: Device) -> Unmeasured:
    """Return all Configs to choose from where nothing was measured."""
    known = portfolio.products(problem.stems, problem.dtype.letter, problem.layout, device)
    tuned = [Measured(config, (((), known.origin),)) for config in known.rates]
    return Unmeasured(tuned, rates_of(device).cycle_seconds)


ROUNDING = 1 - 1e-9  # bounds and estimates are not summed in the same order


class LowerBounds:
    """Bounds for products by `configs` on `device`.

    Parameters
    ----------
    configs : sequence of GemmConfig
        At least one, all of one dtype.
    device : Device
    """

    def __init__(self, configs: Sequence[Any], device: Device):
        resident = [[each.min_blocks if each.persistent else blocks_per_sm(each, device)] for each in configs]
        self._columns, self._device = Columns(configs, np.array(resident)), device
        self._policy = rates_of(device)
        self._fit = np.array([[blocks_per_sm(each, device)] for each in configs])
        self._persistent = np.array([[each.persistent] for each in configs])

    def seconds(
        self,
        seconds_per_cycle: NDArray[Any],
        extents: tuple[int, ...],
        region: Region | Triangle,
        may_split: bool,
    ) -> NDArray[Any]:
        """The least seconds of each Config, at their `seconds_per_cycle`; of products whose k is not split,
        unless it `may_split`.
        """
        (m, n, k, *batch), columns, device = extents, self._columns, self._device
        block, seconds_per_cycle = gemm_block(columns, k, device, (False, False)), seconds_per_cycle[:, None]
        tiles: Any = prod(batch) * columns.grid(m, n)
        if region is not Region.ALL:  # half of its tiles, or of each tile's k
            tiles = prod(batch) * m * n / (2 * columns.BLK_M * columns.BLK_N)
        work = tiles * block.work / device.sm_count
        if isinstance(region, Triangle):
            return self._one_each(ROUNDING * seconds_per_cycle * work)
        # stream-K may spare what a last wave lacks; it is no less than one wave where tiles are few
        waves = tiles / (device.sm_count * columns.resident)
        waves = np.where(self._persistent | (tiles >= device.sm_count), waves, 1)
        least = np.maximum(work, waves * (block.latency + block.end))
        dram: Any = dram_cycles(columns, (m, n, k), columns.resident, device)
        seconds = seconds_per_cycle * np.maximum(least, prod(batch) * dram) + self._policy.launch_seconds
        if may_split and k >= 2 * MIN_SLICE and prod(batch) == 1:
            split = self._split(seconds_per_cycle * work, extents, region)
            can_split = 2 * tiles <= MOST_WAVES * device.sm_count * self._fit
            seconds = np.where(can_split, np.minimum(seconds, split), seconds)
        return self._one_each(ROUNDING * seconds)

    def _split(self, seconds: Any, extents: tuple[int, ...], region: Region) -> Any:
        """The least seconds in slices, by the `seconds` of unsplit work: with the sum of two partials."""
        m, n, k = extents[:3]
        depth, size = self._columns.BLK_K, self._columns.dtype_facts.itemsize
        covered = 1.0 if region is Region.ALL else 0.5
        policy = self._policy
        summing = policy.cycle_seconds * covered * 4 * m * n * size / dram_rate(self._device)
        added = policy.launch_seconds + policy.sum_seconds + summing
        return np.maximum(seconds * k / (-(-k // depth) * depth) + added, policy.host_seconds)

    @staticmethod
    def _one_each(column: Any) -> NDArray[Any]:
        bounds: NDArray[Any] = column[:, 0]
        return bounds
