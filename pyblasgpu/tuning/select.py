"""The choice at run time: a Config for (family, dtype, layout, extents, device), and where it comes from.

The levels, first the one that wins: an override, the user's file, the packaged file of the device, that of
its architecture, a computed default. What a device cannot run is passed over with a warning.

A product takes, of the Configs that won a size class in any family that serves the dtype, the one that
should be fastest at its own extents: the time that was measured where it was tuned, scaled by the model of
`score`. So there are no bounds between classes, and no family is preferred but by what was measured. With
the Config it is decided into how many chunks its k is cut (`splits`), and whether its operands are copied or
packed first (`packs`); where three real products may make a complex one, its twin of that kind is taken
(`three_m`). A leaf takes the Config of its class, or of the nearest class that has one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache, partial
from math import prod
from operator import itemgetter
from typing import Any, NamedTuple

from ..database import (
    FAMILIES,
    FIXED,
    FIXED_BUT,
    families_of,
    is_batch,
    nearest,
    rhs_class,
    size_class,
    sizes_of,
    tuned_at,
)  # fmt: skip
from ..errors import BackendUnavailable, ConfigError
from ..gpu.device import Device
from ..kernels.gemm_in_place import TRIANGLES
from ..types import DTYPES, Dtype
from . import overlay, overrides
from .in_place import in_place_twin
from .paces import Measured, Paces, Reading, Unmeasured
from .packs import (
    ALIGNED,
    GAIN,
    LAYOUT,
    Laid,
    copied_bytes,
    copying,
    fits,
    laid,
    other_ways,
    packed_bytes,
    packed_twin,
    packing,
    within,
)
from .prune import check_device
from .score import comfortable, cycles, score
from .space import quick_points
from .splits import attainable, pace, timed, whole_or_streamed
from .three_m import three_m_twin
from .triangle_twins import triangle_twins

__all__ = [
    "ALIGNED", "Choice", "generation", "reload", "select", "stop_size", "tuned_configs",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Choice:
    """What was chosen, a Config or a stop size, and from where; of a product, also the chunks of its k, or
    that it is `STREAMED`, and which of A and B are copied first, to lie as the Config has it.
    """

    config: Any
    origin: str
    splits: int = 1
    copied: tuple[bool, bool] = (False, False)


COMPUTED = "computed"  # the origin of what no file gave

#: Where nothing was measured.
DEFAULT_STOP = {"few": 256, "some": 256, "many": 256, "most": 128}

MOST_CHOICES = 1 << 14  # kept at a time

_chosen: dict[tuple, Choice] = {}
_reloads = 0


def select(
    name: str,
    dtype: Dtype,
    layout: str,
    extents: tuple[int, ...],
    device: Device,
    copied: tuple[bool, bool] = (False, False),
    part: str = "all",
    aligned: tuple[int, int] = (ALIGNED, ALIGNED),
    three_m: bool = False,
    room: int | None = None,
) -> Choice:
    """The Config for a problem, and its origin; the Config tells its family, and whether it is `packed`.

    Parameters
    ----------
    name : str
        'gemm', which may take any family of GEMM kernels, and such for packed operands; 'trsm' or 'trmm',
        for a leaf of any family; or a family, for operands as they lie: 'trsm_leaf', 'gemm_tile', ...
    dtype : Dtype
    layout : str
        As the family's Config tells layouts apart ('nn', 'tn', ...); else ignored.
    extents : tuple of int
        (m, n, k) of a GEMM, (order, right-hand sides) of a leaf; then the batch, if any.
    device : Device
    copied : (bool, bool)
        Whether A, B of a product must be copied, unless they are packed. A copy can lie either way.
    part : str
        Of the C of a product, as `kernels.part` names it; or the triangle of order k by which it is
        multiplied in place, as `kernels.gemm_in_place` does.
    aligned : (int, int)
        Bytes, up to `ALIGNED`, at multiples of which all columns of A, B begin (rows, if transposed). They
        bound the vectors by which a Config is judged, and say whether its copies go astray.
    three_m : bool
        Whether a complex product had better be made of three real ones, if any kernel can.
    room : int, optional
        Bytes of workspace that the product may take; by default as much as any.

    Raises
    ------
    BackendUnavailable
        Where no Config can run on `device`, or in place.
    """
    stems = families_of(name, dtype.letter) or (name,)
    is_product = name not in FIXED and FAMILIES[stems[0]].routine == "gemm"
    splits = _given_splits(extents, dtype) if is_product else None
    packed = overrides.given("packed") if name == "gemm" else False
    if part in TRIANGLES:
        splits, packed = 1, False
    elif name == "gemm" and (asked := overrides.given("layout")):
        layout, copied, aligned = laid(Laid(layout, copied, aligned), asked)
        packed = packed or False
    given = copied, packed, aligned, three_m, room
    wanted = _Wanted(stems, dtype, layout, extents, part, splits, *given)
    for stem, config in overrides.active():
        if stem in stems and config.dtype == dtype.letter and _serves(config, layout):
            if is_product:
                return _forced(config, wanted, device)
            return Choice(config, "override")
    if name in FIXED:
        return Choice(_fixed(name, dtype.letter), "fixed")
    shape = wanted if is_product else (dtype.letter, layout, size_class(name, extents))
    key = (name, shape, device.name, device.ordinal)
    choice = _chosen.get(key)
    if choice is None:
        if len(_chosen) >= MOST_CHOICES:
            _chosen.clear()
        if is_product:
            choice = _fastest(wanted, device)
        else:
            choice = _of_class(stems, dtype.letter, layout, extents, device)
        _chosen[key] = choice
    return choice


class _Wanted(NamedTuple):
    """A product, and what is given of the way to compute it."""

    stems: tuple[str, ...]
    dtype: Dtype
    layout: str
    extents: tuple[int, ...]
    part: str
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


def _given_splits(extents: tuple[int, ...], dtype: Dtype) -> int | None:
    """What an override asks for, as far as it goes; None: to be decided."""
    splits = overrides.given("splits")
    return None if splits is None else attainable(splits, extents, dtype)


def _serves(config: Any, layout: str) -> bool:
    """Whether operands may lie so; before they are packed, in any way."""
    return getattr(config, "packed", False) or getattr(config, "layout", layout) == layout


def _forced(config: Any, wanted: _Wanted, device: Device) -> Choice:
    """A product by an override's Config; packed, its k is not cut."""
    config, splits = _meant(config, wanted, device) or _meant(config, _relaxed(wanted), device), wanted.splits
    if splits is None:
        splits = whole_or_streamed(config, wanted.extents, device, part=wanted.part, room=wanted.room)
    config = (wanted.packed and packed_twin(config, device)) or config
    return Choice(config, "override", 1 if config.packed and splits > 1 else splits, wanted.copied)


def stop_size(routine: str, dtype: Dtype, n: int, rhs: int, device: Device) -> Choice:
    """The order at which the recursion of 'trmm' or 'trsm' ends in a leaf, and its origin.

    Parameters
    ----------
    routine : str
    dtype : Dtype
    n, rhs : int
        Order of the triangle, right-hand sides.
    device : Device
    """
    given = overrides.given(routine)
    if given is not None:
        return Choice(given, "override")
    key = (routine, dtype.letter, rhs_class(rhs), device.name, device.ordinal)
    choice = _chosen.get(key)
    if choice is None:
        choice = _chosen[key] = _choose_stop(routine, dtype.letter, key[2], device)
    return choice


def tuned_configs(name: str, dtype: Dtype, layout: str, device: Device) -> dict[Any, str]:
    """The Configs between which `select` decides for a single product, and where each comes from.

    Parameters
    ----------
    name : str
        'gemm', or one family of GEMM kernels.
    dtype : Dtype
    layout : str
    device : Device
    """
    found: dict[Any, str] = {}
    for stem in families_of(name, dtype.letter) or (name,):
        for known in _measured(stem, dtype.letter, layout, False, device):
            found.setdefault(known.config, known.origin())
    return found


def generation() -> tuple[int, int]:
    """A value that changes whenever `select` and `stop_size` might answer differently than before."""
    return _reloads, overrides.token()


def reload() -> None:
    """Forget the files of tuned values and every choice made from them."""
    global _reloads
    overlay.documents.cache_clear()
    _measured.cache_clear()
    _paces.cache_clear()
    _chosen.clear()
    _reloads += 1


class _Option(NamedTuple):
    """A way to compute a product, and the seconds that it should take, without copies that must be made."""

    seconds: float
    splits: int
    config: Any
    known: Measured
    copied: tuple[bool, bool]


def _fastest(wanted: _Wanted, device: Device) -> Choice:
    """Of the tuned Configs of all classes, the numbers of chunks (or in `splits` of them), and operands as
    they lie, copied or packed, the one with the shortest time by measurement and model.
    """
    found = list(_packed_options(wanted, device)) if wanted.packed else []
    if not found:
        best = min(_options(wanted, device), key=itemgetter(0), default=None)
        if best is None:
            return _fastest(_relaxed(wanted), device)
        found = [best] if wanted.packed is False else list(_better(wanted, best.seconds, device)) or [best]
    _, chunks, config, known, copied = min(found, key=itemgetter(0))
    return Choice(config, known.origin(wanted.extents), chunks, copied)


def _better(wanted: _Wanted, seconds: float, device: Device) -> Iterator[_Option]:
    """The ways with more copies than must be, or others, that promise less than the `seconds` without."""
    seconds = _sure(wanted, seconds, device)
    anyway = copying(wanted.extents, wanted.copied, wanted.dtype, device)
    limit = seconds if any(wanted.copied) else GAIN * seconds
    if copying(wanted.extents, (True, True), wanted.dtype, device) - anyway < limit:  # the least it takes
        packed = (way._replace(seconds=way.seconds - anyway) for way in _packed_options(wanted, device))
        yield from (way for way in packed if way.seconds < limit)
    for other in other_ways(wanted.given):
        limit = seconds if other.copied == wanted.copied else GAIN * seconds
        yield from (way for way in _copied_options(wanted, other, limit, device) if way.seconds < limit)


def _sure(wanted: _Wanted, seconds: float, device: Device) -> float:
    """The `seconds` as operands are given, for elements of 8 bytes without what columns that begin within
    sectors cost: of these copies do not save it (docs/performance.md).
    """
    if wanted.dtype.itemsize != 8 or min(wanted.aligned) == ALIGNED:
        return seconds
    aligned = wanted._replace(aligned=(ALIGNED, ALIGNED))
    return min(way.seconds for way in _options(aligned, device))


def _copied_options(wanted: _Wanted, other: Laid, limit: float, device: Device) -> Iterator[_Option]:
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


def _options(wanted: _Wanted, device: Device) -> Iterator[_Option]:
    """All ways with operands as they are given."""
    extents = wanted.extents
    paces = _tuned(wanted, device) or _unmeasured(wanted, device)
    for known, pace_there, doubt in paces.at(extents):
        meant = _meant(known.config, wanted, device)
        if meant is None:
            continue
        for twin, longer in triangle_twins(meant, wanted.part):
            config = _as_aligned(twin, wanted.aligned)
            pace_here = pace_there * _straying(config, wanted, device)
            for time in timed(config, pace_here, extents, device, wanted.splits, wanted.part, wanted.room):
                yield _Option(time.seconds * doubt * longer, time.splits, twin, known, wanted.copied)


def _relaxed(wanted: _Wanted) -> _Wanted:
    """What is asked for where no kernel has the three products; a product in place has no stand-in."""
    if wanted.part in TRIANGLES:
        raise BackendUnavailable(f"no {wanted.dtype.name} product at hand can be made in place")
    return wanted._replace(three_m=False)


def _meant(config: Any, wanted: _Wanted, device: Device) -> Any:
    """`config`, or its twin with three products, or for a product in place; None where there is none."""
    if wanted.part in TRIANGLES:
        return in_place_twin(config, wanted.part)
    return three_m_twin(config, device) if wanted.three_m else config


@lru_cache(maxsize=1 << 12)
def _as_aligned(config: Any, aligned: tuple[int, int]) -> Any:
    """`config` as it runs on operands that begin at multiples of so many bytes."""
    a, b = (max(distance // config.dtype_facts.itemsize, 1) for distance in aligned)
    astray = min(aligned) < ALIGNED
    return config.narrowed(a, b, astray) if astray else config


def _straying(config: Any, wanted: _Wanted, device: Device) -> float:
    """How many times longer the product takes for columns that begin within sectors of memory."""
    astray = wanted.aligned[0] < ALIGNED, wanted.aligned[1] < ALIGNED
    if not any(astray):
        return 1.0
    there = partial(cycles, config.STEM, config, wanted.extents, device, part=wanted.part)
    return there(astray=astray) / there()


def _packed_options(wanted: _Wanted, device: Device) -> Iterator[_Option]:
    """All ways with packed operands, k uncut: of what was measured, unless packing is asked for."""
    extents, part, splits = wanted.extents, wanted.part, wanted.splits
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
        time = next(timed(meant, pace_there, extents, device, None if chunks else splits, part, left))
        seconds = time.seconds * doubt + packing(twin, extents, device)
        yield _Option(seconds, time.splits, twin, known, wanted.copied)


def _tuned(wanted: _Wanted, device: Device) -> Paces | None:
    """The Configs of all families that were measured, if any."""
    batched = prod(wanted.extents[3:]) > 1
    return _paces(wanted.stems, wanted.dtype.letter, wanted.layout, batched, device)


def _unmeasured(wanted: _Wanted, device: Device) -> Unmeasured:
    """A Config of each family that suits the device, from a file if any family has one there."""
    stems, dtype, layout, extents, *_ = wanted
    usable = [stem for stem in stems if _runs(stem, device)] or stems
    found = [_of_class((stem,), dtype.letter, layout, extents, device) for stem in usable]
    filed = [choice for choice in found if choice.origin != COMPUTED]
    if wanted.three_m and not any(_meant(choice.config, wanted, device) for choice in filed):
        found, filed = list(_computed_twins(wanted, usable, device)), []
    return Unmeasured([Measured(choice.config, (((), choice.origin),)) for choice in filed or found])


def _computed_twins(wanted: _Wanted, stems: Sequence[str], device: Device) -> Iterator[Choice]:
    """With three products, of each family that has them."""
    for stem in stems:
        size = size_class(stem, wanted.extents)
        with suppress(BackendUnavailable):
            yield Choice(_computed(stem, wanted.dtype.letter, wanted.layout, size, device, True), COMPUTED)


def _runs(stem: str, device: Device) -> bool:
    """Whether `device` is made for the family; that it can run a Config at all is seen with the Config."""
    return not stem.endswith("_mma") or device.has_double_mma


@lru_cache(maxsize=1 << 10)
def _measured(stem: str, dtype: str, layout: str, batched: bool, device: Device) -> tuple[Measured, ...]:
    """The Configs with a time; of batches, which hide latency, there are times only for batches."""
    origins: dict[Any, list[tuple[tuple[int, ...], str]]] = {}
    rates: dict[Any, dict[str, float]] = {}
    for size in sizes_of(stem):
        filed = overlay.of_class(stem, dtype, layout, size, device)
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
    tuned = [known for stem in stems for known in _measured(stem, dtype, layout, batched, device)]
    return Paces(tuned) if tuned else None


def _of_class(
    stems: tuple[str, ...], dtype: str, layout: str, extents: tuple[int, ...], device: Device
) -> Choice:
    """The Config of the size class, or of the nearest that has one; of several families the one that was
    fastest where the class is tuned.
    """
    size = size_class(stems[0], extents)
    for candidate in nearest(stems[0], size):
        filed = [
            found for stem in stems if (found := overlay.of_class(stem, dtype, layout, candidate, device))
        ]
        if filed:
            best = max(filed, key=itemgetter(0))
            config, origin = best.config, best.origin
            return Choice(config, origin if candidate == size else f"{origin}, class {candidate}")
    stem = next((stem for stem in stems if _runs(stem, device)), stems[0])
    return Choice(_computed(stem, dtype, FAMILIES[stem].layout(layout), size, device), COMPUTED)


@lru_cache(maxsize=1 << 10)
def _computed(stem: str, dtype: str, layout: str, size: str, device: Device, three_m: bool = False) -> Any:
    """The best by `score` of the quick space that `device` can run, and that should not spill."""
    family, extents = FAMILIES[stem], tuned_at(stem, size)[-1]
    best, best_points = None, (False, -1.0)
    for parameters in quick_points(stem, DTYPES[dtype], layout, device):
        try:
            config = family.config(dtype, layout, parameters)
            check_device(config, device)
        except ConfigError:
            continue
        if three_m and (config := three_m_twin(config, device)) is None:
            continue
        points = comfortable(config, device), score(stem, config, extents, device)
        if points > best_points:
            best, best_points = config, points
    if best is None:
        raise BackendUnavailable(f"{stem}: no Config can run on {device.name} ({device.arch})")
    return best


def _choose_stop(routine: str, dtype: str, size: str, device: Device) -> Choice:
    for candidate in nearest(routine, size):
        for origin, document in overlay.documents(device):
            stop = document.stop_sizes.get((routine, dtype, candidate))
            if stop is not None:
                return Choice(stop, origin if candidate == size else f"{origin}, class {candidate}")
    return Choice(DEFAULT_STOP[size], COMPUTED)


@lru_cache
def _fixed(stem: str, dtype: str) -> Any:
    return FIXED[stem].config(dtype, "", FIXED_BUT.get((stem, dtype), {}))
