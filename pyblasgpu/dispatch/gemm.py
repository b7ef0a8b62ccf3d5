"""The choice for a product, at run time, between the Configs of all classes.

A product takes, of the Configs that won a size class in any family that serves the dtype, the one that
should be fastest at its own extents: the time that was measured where it was tuned, scaled by the model of
`score`. So there are no bounds between classes, and no family is preferred but by what was measured. With
the Config it is decided into how many slices its k is cut (`split_k`), and whether its operands are copied or
packed first (`operand_copies`). Where three real products may make a complex one, the variant of that kind is
taken. Persistent variants that nobody timed are candidates too (`variants`).
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
    GAIN,
    LAYOUT,
    Laid,
    copied_bytes,
    copying,
    fits,
    other_ways,
    packed_bytes,
    packed_twin,
    packing,
    within,
)
from .split_k import pace, streamed, timed, whole_or_streamed
from .throughput_model import Measured, Paces, Reading, Unmeasured
from .variants import in_place_twin, least_share, persistent_twins, three_m_twin, triangle_twins

__all__ = ["Wanted", "fastest", "forced", "forget", "measured"]

UNTIMED = 1.03  # times what a persistent twin should take by its Config's time: it was not timed itself


class Wanted(NamedTuple):
    """A product, and what is given of the way to compute it."""

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
    def given(self) -> Laid:
        """How the operands lie."""
        return Laid(self.layout, self.copied, self.aligned)


def forced(config: Any, wanted: Wanted, device: Device) -> KernelChoice:
    """A product by an override's Config; packed, its k is not cut."""
    config, splits = _meant(config, wanted, device) or _meant(config, _relaxed(wanted), device), wanted.splits
    if splits is None:
        splits = whole_or_streamed(config, wanted.extents, device, region=wanted.region, room=wanted.room)
    config = (wanted.packed and packed_twin(config, device)) or config
    return KernelChoice(config, OVERRIDE, 1 if config.packed and splits > 1 else splits, wanted.copied)


class _Option(NamedTuple):
    """A way to compute a product, and the seconds that it should take, without copies that must be made; by
    `pace` for a cycle of the model.
    """

    seconds: float
    splits: int
    config: Any
    known: Measured
    copied: tuple[bool, bool]
    pace: float = 0.0


def fastest(wanted: Wanted, device: Device) -> KernelChoice:
    """Of the tuned Configs of all classes, the numbers of chunks (or in `splits` of them), and operands as
    they lie, copied or packed, the one with the shortest time by measurement and model.
    """
    found = list(_packed_options(wanted, device)) if wanted.packed else []
    if not found:
        best = min(_options(wanted, device), key=itemgetter(0), default=None)
        if best is None:
            return fastest(_relaxed(wanted), device)
        found = [best] if wanted.packed is False else list(_better(wanted, best.seconds, device)) or [best]
    _, chunks, config, known, copied, _ = min(found, key=itemgetter(0))
    return KernelChoice(config, known.origin(wanted.extents), chunks, copied)


def _better(wanted: Wanted, seconds: float, device: Device) -> Iterator[_Option]:
    """The ways with more copies than must be, or others, that promise less than the `seconds` without."""
    anyway = copying(wanted.extents, wanted.copied, wanted.dtype, device)
    limit = seconds if any(wanted.copied) else GAIN * seconds
    if copying(wanted.extents, (True, True), wanted.dtype, device) - anyway < limit:  # the least it takes
        packed = (way._replace(seconds=way.seconds - anyway) for way in _packed_options(wanted, device))
        yield from (way for way in packed if way.seconds < limit)
    for other in other_ways(wanted.given):
        limit = seconds if other.copied == wanted.copied else GAIN * seconds
        yield from (way for way in _copied_options(wanted, other, limit, device) if way.seconds < limit)


def _copied_options(wanted: Wanted, other: Laid, limit: float, device: Device) -> Iterator[_Option]:
    """The ways of what was measured with operands as in `other`; none if copies alone take the `limit`."""
    extents, dtype, both = wanted.extents, wanted.dtype, (other.copied, wanted.copied)
    seconds, anyway = (copying(extents, copied, dtype, device) for copied in both)
    size, given = (copied_bytes(extents, copied, dtype) for copied in both)
    if seconds - anyway >= limit or not within(size - given, wanted.room):
        return
    room = None if wanted.room is None else wanted.room - (size - given)
    wanted = wanted._replace(**other._asdict(), room=room)
    if _tuned(wanted, device):
        for way in _options(wanted, device):
            yield way._replace(seconds=way.seconds + seconds - anyway)


def _options(wanted: Wanted, device: Device) -> list[_Option]:
    """All ways with operands as they are given; k in as many chunks as may be, or streamed by twins."""
    kept = list(_kept_options(wanted, device))
    twins = _streamed_options(kept, wanted, device) if wanted.splits is None else ()
    return [*kept, *twins]


def _streamed_options(kept: list[_Option], wanted: Wanted, device: Device) -> Iterator[_Option]:
    """The ways of the persistent twins of measured Configs that are not, where the last tiles are parted
    between their blocks, and that might be faster than all that was `kept`.
    """
    extents, region, room = wanted.extents, wanted.region, wanted.room
    best = min((way.seconds for way in kept), default=0.0)
    for way in kept:
        ordinary = way.splits == 1 and way.known.readings and not way.config.persistent
        if not ordinary or UNTIMED * way.seconds * least_share(way.config, extents, device, region) > best:
            continue
        for twin in persistent_twins(way.config, device):
            config = _as_aligned(twin, wanted.aligned)
            for time in streamed(config, way.pace, extents, device, region, room):
                yield way._replace(seconds=UNTIMED * time.seconds, splits=time.splits, config=twin)


def _kept_options(wanted: Wanted, device: Device) -> Iterator[_Option]:
    """Those of what the tuner kept."""
    extents = wanted.extents
    paces = _tuned(wanted, device) or _unmeasured(wanted, device)
    for known, pace_there, doubt in paces.at(extents):
        meant = _meant(known.config, wanted, device)
        if meant is None:
            continue
        for twin, longer in triangle_twins(meant, wanted.region, device):
            config = _as_aligned(twin, wanted.aligned)
            pace_here = pace_there * _straying(config, wanted, device)
            for time in timed(config, pace_here, extents, device, wanted.splits, wanted.region, wanted.room):
                seconds = time.seconds * doubt * longer
                yield _Option(seconds, time.splits, twin, known, wanted.copied, pace_here * doubt)


def _relaxed(wanted: Wanted) -> Wanted:
    """What is asked for where no kernel has the three products; a product in place has no stand-in."""
    if isinstance(wanted.region, Triangle):
        raise BackendUnavailable(f"no {wanted.dtype.name} product at hand can be made in place")
    return wanted._replace(three_m=False)


def _meant(config: Any, wanted: Wanted, device: Device) -> Any:
    """`config`, or its twin with three products, or for a product in place; None where there is none."""
    if isinstance(wanted.region, Triangle):
        return in_place_twin(config, wanted.region)
    return three_m_twin(config, device) if wanted.three_m else config


@lru_cache(maxsize=1 << 12)
def _as_aligned(config: Any, aligned: tuple[int, int]) -> Any:
    """`config` as it runs on operands that begin at multiples of so many bytes."""
    a, b = (max(distance // config.dtype_facts.itemsize, 1) for distance in aligned)
    astray = min(aligned) < ALIGNED
    return config.with_vector_width(a, b, astray) if astray else config


def _straying(config: Any, wanted: Wanted, device: Device) -> float:
    """How many times longer the product takes for columns that begin within sectors of memory."""
    astray = wanted.aligned[0] < ALIGNED, wanted.aligned[1] < ALIGNED
    if not any(astray):
        return 1.0
    there = partial(cycles, config.STEM, config, wanted.extents, device, region=wanted.region)
    return there(astray=astray) / there()


def _packed_options(wanted: Wanted, device: Device) -> Iterator[_Option]:
    """All ways with packed operands, k uncut: of what was measured, unless packing is asked for."""
    extents, region, splits = wanted.extents, wanted.region, wanted.splits
    copied, packed = wanted.copied, wanted.packed
    chunks = splits is not None and splits > 1
    if packed is False or (chunks and not packed):
        return
    wanted = wanted._replace(layout=LAYOUT)
    paces = _tuned(wanted, device) or (_unmeasured(wanted, device) if packed else None)
    for known, pace_there, doubt in paces.at(extents) if paces else ():
        meant = _meant(known.config, wanted, device)
        twin = packed_twin(meant, device) if meant else None
        if twin is None or not (packed or fits(twin, extents, copied, wanted.room)):
            continue
        left = None if wanted.room is None else wanted.room - packed_bytes(twin, extents)
        time = next(timed(meant, pace_there, extents, device, None if chunks else splits, region, left))
        seconds = time.seconds * doubt + packing(twin, extents, device)
        yield _Option(seconds, time.splits, twin, known, wanted.copied)


def _tuned(wanted: Wanted, device: Device) -> Paces | None:
    """The Configs of all families that were measured, if any."""
    batched = prod(wanted.extents[3:]) > 1
    return _paces(wanted.stems, wanted.dtype.letter, wanted.layout, batched, device)


def _unmeasured(wanted: Wanted, device: Device) -> Unmeasured:
    """A Config of each family that suits the device, from a file if any family has one there."""
    stems, dtype, layout, extents, *_ = wanted
    usable = [stem for stem in stems if runs(stem, device)] or stems
    found = [of_class((stem,), dtype.letter, layout, extents, device) for stem in usable]
    filed = [choice for choice in found if choice.origin != COMPUTED]
    if wanted.three_m and not any(_meant(choice.config, wanted, device) for choice in filed):
        found, filed = list(_computed_twins(wanted, usable, device)), []
    return Unmeasured([Measured(choice.config, (((), choice.origin),)) for choice in filed or found])


def _computed_twins(wanted: Wanted, stems: Sequence[str], device: Device) -> Iterator[KernelChoice]:
    """With three products, of each family that has them."""
    for stem in stems:
        size = size_class(stem, wanted.extents)
        with suppress(BackendUnavailable):
            yield KernelChoice(
                computed(stem, wanted.dtype.letter, wanted.layout, size, device, True), COMPUTED
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

    def readings(config: Any) -> Iterator[Reading]:
        for size, rate in rates[config].items():
            if batched or not is_batch(size):
                extents = tuned_at(stem, size)[-1]
                seconds = flops * prod(extents) / rate / 1e12
                yield Reading(extents, pace(config, extents, seconds, device))

    found = (Measured(config, tuple(won), tuple(readings(config))) for config, won in origins.items())
    return tuple(known for known in found if known.readings)


@lru_cache(maxsize=1 << 10)
def _paces(stems: tuple[str, ...], dtype: str, layout: str, batched: bool, device: Device) -> Paces | None:
    """Those of several families."""
    tuned = [known for stem in stems for known in measured(stem, dtype, layout, batched, device)]
    return Paces(tuned) if tuned else None


def forget() -> None:
    """Forget what was read of the files of tuned values."""
    measured.cache_clear()
    _paces.cache_clear()
