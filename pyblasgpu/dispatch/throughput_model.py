"""A model of the seconds per cycle at extents at which nothing was measured.

The score is wrong by a factor that differs between Configs and between kinds of products. Where a Config was
timed, in the class that it won or in another, the factor is known: its seconds per cycle. Elsewhere it
goes by what it was nearby and by what is usual there.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from math import gcd, log2, prod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..database import is_batch, tuned_at
from ..gpu.device import Device
from ..gpu.garbage import uncollected
from ..model.columns import Columns
from ..model.occupancy import blocks_per_sm
from ..types import DTYPES, Dtype
from . import portfolio, tuned_files
from .operand_copies import ALIGNED, match_alignment, misalignment_cost, sector_misaligned
from .split_k import measured_seconds_per_cycle

__all__ = [
    "FAR",
    "LEFT",
    "LOWER",
    "Measured",
    "RegionModel",
    "Sample",
    "ThroughputModel",
    "Unmeasured",
    "config_name",
    "contiguous_alignment",
    "has_trapezoids",
    "measured",
    "of_fused_trmm",
    "measured_model",
    "timed_regions",
]

UNCERTAINTY = 0.02  # of an estimate, for each factor of two between an extent and the nearest measured
SAME = 0.3  # of such a factor, within which a Config's measurement is used as it is
POWER = 3  # of such a factor, by which a measurement says less
NEAR = 16.0  # such factors, over which what sets a Config apart gives way to what does on average
STRAY = 0.4  # such factors, that half as much of an operand's alignment counts for
#: The power of what sets a Config apart that counts in a fused TRMM: products of all of C say only so much.
SHARE_IN_TRMM = 0.35
LOWER = "/lower"  # behind the extents of a product of which a lower triangle or trapezoid was computed
LEFT = "/left"  # behind those of a fused TRMM with T on the left
#: Factors of two in extents, from which on a time of a region says nothing. All three extents of a square are
#: others at another order, and columns of TRMM alone are.
FAR = {LOWER: 4.0, LEFT: 2.0}

Extents = tuple[int, ...]


EXTENTS = 4  # m, n, k and batch
Aligned = tuple[int, int]


class Sample(NamedTuple):
    """The seconds that a cycle of the model took at some extents, with columns of operands at multiples of
    `aligned` bytes.
    """

    extents: Extents
    seconds_per_cycle: float
    aligned: Aligned = (ALIGNED, ALIGNED)


@dataclass(frozen=True, slots=True)
class Measured:
    """A Config, its origin, and its samples; there are none where nothing was measured.

    Attributes
    ----------
    config : GemmConfig
    origins : tuple of (extents, str)
        Extents and origins of the classes that it won.
    samples : tuple of Sample
    """

    config: Any
    origins: tuple[tuple[Extents, str], ...]
    samples: tuple[Sample, ...] = ()

    def origin(self, extents: Extents = ()) -> str:
        """Return the origin of the class nearest to `extents`, or of the first."""
        _, origin = min(self.origins, key=lambda won: _log2_distance(won[0], extents) if extents else 0)
        return origin


class ThroughputModel:
    """Seconds per cycle of many Configs, each with one sample or more.

    Parameters
    ----------
    tuned : sequence of Measured
    """

    def __init__(self, tuned: Sequence[Measured]):
        self.tuned = tuple(tuned)
        samples = [(row, sample) for row, known in enumerate(tuned) for sample in known.samples]
        distinct = dict.fromkeys((sample.extents, sample.aligned) for _, sample in samples)
        places = {where: _place(*where) for where in distinct}
        column = {place: i for i, place in enumerate(dict.fromkeys(places.values()))}
        self._points = np.array(list(column))
        # Configs by points: the logarithm of the seconds, and whether there is a sample
        self._logs, self._has_sample = np.zeros((2, len(tuned), len(column)))
        at = [row for row, _ in samples], [column[places[s.extents, s.aligned]] for _, s in samples]
        self._logs[at] = np.log([sample.seconds_per_cycle for _, sample in samples])
        self._has_sample[at] = 1
        # what is usual at a point, and what sets Configs apart from it, there and on average
        self._usual = _mean(self._logs, self._has_sample, axis=0)
        self._apart = self._logs - self._usual
        self._own = _mean(self._apart, self._has_sample, axis=1)
        # a choice looks up the same extents several times, once for each way to copy operands
        self._last: tuple[Any, Any] = (None, None)

    def at(
        self, extents: Extents, aligned: Aligned = (ALIGNED, ALIGNED)
    ) -> tuple[NDArray[Any], NDArray[Any]]:
        """The seconds per cycle of each Config at `extents`, and by what factor they are uncertain.

        A Config's seconds are what is usual there times what sets the Config apart. Where it was measured far
        away alone, the latter is what it is on average.
        """
        known, answer = self._last
        if known != (extents, aligned):
            answer = self._at(_place(extents, aligned))
            self._last = (extents, aligned), answer
        seconds_per_cycle, factors = answer
        return seconds_per_cycle, factors

    def _at(self, place: tuple[float, ...]) -> tuple[NDArray[Any], NDArray[Any]]:
        apart = np.abs(self._points - np.array(place))
        strays = apart[:, EXTENTS:].sum(axis=1)  # beyond those that all have
        distances = apart[:, :EXTENTS].sum(axis=1) + strays - strays.min()
        nearest = np.where(self._has_sample, distances, np.inf).min(axis=1)
        shares = self._has_sample * _weights(distances, nearest[:, None])
        near = np.exp(-nearest / NEAR)
        logs = _mean(self._apart, shares, axis=1) * near + self._own * (1 - near)
        logs += _mean(self._usual, _weights(distances, distances.min()), axis=0)
        return np.exp(logs), 1 + UNCERTAINTY * nearest


def _weights(distances: NDArray[Any], nearest: Any) -> NDArray[Any]:
    """Weights of measurements by their distances (Shepard, 1968), relative to that of the `nearest`."""
    weights: NDArray[Any] = ((nearest + SAME) / (distances + SAME)) ** POWER
    return weights


def _mean(values: NDArray[Any], weights: NDArray[Any], axis: int) -> NDArray[Any]:
    means: NDArray[Any] = (weights * values).sum(axis=axis) / weights.sum(axis=axis)
    return means


class Unmeasured(NamedTuple):
    """Configs without samples, with the default seconds per cycle."""

    tuned: Sequence[Measured]
    seconds_per_cycle: float

    def at(
        self, extents: Extents, aligned: Aligned = (ALIGNED, ALIGNED)
    ) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return the usual seconds of a cycle for each Config."""
        return np.full(len(self.tuned), self.seconds_per_cycle), np.ones(len(self.tuned))


def of_fused_trmm(seconds_per_cycle: NDArray[Any]) -> NDArray[Any]:
    """The seconds per cycle of Configs in a fused TRMM, by those in products."""
    usual = np.exp(np.log(seconds_per_cycle).mean())
    scaled: NDArray[Any] = usual * (seconds_per_cycle / usual) ** SHARE_IN_TRMM
    return scaled


class RegionModel:
    """Seconds per cycle where a region of C is computed, or T is a triangle: by products, and by what was
    timed near of such a region.

    Parameters
    ----------
    model : ThroughputModel
        The model of products.
    timed : mapping of extents to sequence of float
        The seconds per cycle of each Config of the model in the region; NaN where it was not timed.
    far : float
        Factors of two, from which on these say nothing.
    from_products : callable, optional
        The seconds per cycle of all Configs in the region, by those in products; by default these.
    """

    def __init__(
        self,
        model: ThroughputModel,
        timed: Mapping[Extents, Sequence[float]],
        far: float,
        from_products: Callable[[NDArray[Any]], NDArray[Any]] = np.asarray,
    ):
        self.tuned, self._model, self._far, self._from_products = model.tuned, model, far, from_products
        self._points = np.array([_place(at, (ALIGNED, ALIGNED)) for at in timed])
        apart = np.array([np.log(each / from_products(model.at(at)[0])) for at, each in timed.items()])
        # what all Configs have there is that of those that were timed
        apart = np.array([np.where(np.isnan(each), np.nanmean(each), each) for each in apart])
        # which shares of all points add up to at each point; `patch_scipy` leaves NumPy's `lstsq` alone
        self._parts = np.linalg.lstsq(self._shares(self._points), apart, rcond=None)[0] if timed else apart

    def at(
        self, extents: Extents, aligned: Aligned = (ALIGNED, ALIGNED)
    ) -> tuple[NDArray[Any], NDArray[Any]]:
        """The seconds per cycle of each Config at `extents`, and by what factor they are uncertain."""
        values, factors = self._model.at(extents, aligned)
        seconds = self._from_products(values)
        if len(self._points):
            shares = self._shares(np.array([_place(extents, (ALIGNED, ALIGNED))]))[0]
            seconds, factors = seconds * np.exp(shares @ self._parts), factors ** (1 - shares.max())
        return seconds, factors

    def _shares(self, places: NDArray[Any]) -> NDArray[Any]:
        """By how much each place is as each point: from 1 to 0 far away."""
        distances = np.abs(places[:, None] - self._points).sum(axis=2)
        shares: NDArray[Any] = np.maximum(1 - distances / self._far, 0) ** 2
        return shares


def _place(extents: Extents, aligned: Aligned) -> tuple[float, ...]:
    """The logarithms of m, n, k and batch, and of what the operands lack in alignment."""
    strays = (STRAY * log2(ALIGNED / min(each, ALIGNED)) for each in aligned)
    return (*map(log2, extents), *[0.0] * (EXTENTS - len(extents)), *strays)


def _log2_distance(first: Extents, second: Extents) -> float:
    """Number of factors of two between them."""
    return sum(abs(log2(one / other)) for one, other in zip_longest(first, second, fillvalue=1))


@tuned_files.memo(1 << 10)
def measured(
    stem: str,
    dtype: str,
    layout: str,
    batched: bool,
    device: Device,
    between: bool = True,
    of_trapezoid: bool = False,
) -> tuple[Measured, ...]:
    """The Configs with a time, in classes and, unless not `between`, at other extents; of batches, which hide
    latency, there are times only for batches, and times of trapezoids only for these.
    """
    origins: dict[Any, list[tuple[tuple[int, ...], str]]] = {}
    rates = portfolio.rates_of(stem, dtype, layout, device)
    for size, filed in tuned_files.of_classes(stem, dtype, layout, device).items():
        if filed.tflops:
            won = tuned_at(stem, size)[-1], f"{filed.origin}, class {size}"
            origins.setdefault(filed.config, []).append(won)
    others = _between(stem, dtype, layout, device, of_trapezoid) if between else {}
    points = {extents for of in others.values() for extents in of}
    aligned = {extents: contiguous_alignment(layout, extents, DTYPES[dtype]) for extents in points}
    distinct = set(aligned.values())
    products: list[_Product] = []
    for number, config in enumerate(origins):
        variants = {at: match_alignment(config, at) for at in distinct}
        for size, rate in rates[config].items():
            if batched or not is_batch(size):
                products.append(_Product(number, config, tuned_at(stem, size)[-1], rate))
        for extents, (rate, splits) in others.get(config_name(config), {}).items():
            if batched or len(extents) == 3:
                at = aligned[extents]
                products.append(_Product(number, variants[at], extents, rate, splits, at))
    samples: list[list[Sample]] = [[] for _ in origins]
    for one, cycle in zip(products, _seconds_per_cycle(products, device), strict=True):
        samples[one.number].append(Sample(one.extents, cycle, one.aligned))
    each = zip(origins.items(), samples, strict=True)
    return tuple(Measured(config, tuple(won), tuple(timed)) for (config, won), timed in each if timed)


class _Product(NamedTuple):
    """A product that was timed, by a Config of this `number`: as it ran there, and in `splits` slices."""

    number: int
    config: Any
    extents: Extents
    tflops: float
    splits: int = 1
    aligned: Aligned = (ALIGNED, ALIGNED)


def _seconds_per_cycle(products: Sequence[_Product], device: Device) -> list[float]:
    """The seconds of a cycle of each product, without what misalignment costs; many at a time."""
    values, groups = np.zeros(len(products)), defaultdict[tuple[bool, bool], list[int]](list)
    for at, one in enumerate(products):
        groups[one.splits > 1, one.config.persistent].append(at)
    for (in_slices, _), chosen in groups.items():
        values[chosen] = _of_group([products[at] for at in chosen], in_slices, device)[:, 0]
    seconds: list[float] = values.tolist()
    return seconds


def _of_group(products: Sequence[_Product], in_slices: bool, device: Device) -> NDArray[Any]:
    """A column of these, all in slices or none, all persistent or none."""
    # equal Configs are one object, or have as well rows of their own
    keys = [(id(one.config), one.aligned) for one in products]
    rows = dict(zip(keys, products, strict=True))
    numbers = {key: number for number, key in enumerate(rows)}
    configs = [one.config for one in rows.values()]
    resident = np.array([[blocks_per_sm(config, device)] for config in configs])
    columns = Columns(configs, resident, [numbers[key] for key in keys])
    extents = [(*one.extents, *(1,) * (EXTENTS - len(one.extents))) for one in products]
    flops = columns.dtype_facts.flops_per_fma
    seconds = np.array([[flops * prod(one.extents) / one.tflops / 1e12] for one in products])
    splits = np.array([[one.splits] for one in products]) if in_slices else None
    cycle: NDArray[Any] = measured_seconds_per_cycle(columns, extents, seconds, device, splits)
    strays = tuple(sector_misaligned(one.aligned) for one in rows.values())
    cycle /= misalignment_cost(columns, tuple(np.array(extents).T[:, :, None]), strays, device)
    return cycle


def config_name(config: Any) -> str:
    """Return the name by which files have rates of a Config: its tile, threads, stages and blocks."""
    blocks = f"{'p' if config.persistent else ''}{config.min_blocks}"
    slices = f"s{config.SLICES_K}" if config.SLICES_K > 1 else ""
    return f"{config.BLK_M}x{config.BLK_N}x{config.BLK_K}/{config.threads}/{config.stages}/{blocks}{slices}"


def _between(
    stem: str, dtype: str, layout: str, device: Device, of_trapezoid: bool
) -> Mapping[str, Mapping[Extents, tuple[float, int]]]:
    """The rates of Configs, by name, at extents of no class, each with the number of slices of k by which it
    was reached; of several the best.
    """
    found: dict[str, dict[Extents, tuple[float, int]]] = {}
    for point, rates in _products(device).get((stem, dtype, layout), ()):
        extents, region = _extents_of(point)
        if region and not (of_trapezoid and _is_trapezoid(extents, region)):
            continue
        of_point: dict[str, tuple[float, int]] = {}
        for name, rate in rates.items():
            config, _, splits = name.partition("*")
            of_point[config] = max((rate, int(splits or 1)), of_point.get(config, (0.0, 1)))
        for config, best in of_point.items():
            found.setdefault(config, {})[extents] = best
    return found


@tuned_files.memo(1 << 7)
def _products(device: Device) -> Mapping[tuple[str, ...], list[tuple[str, Mapping[str, float]]]]:
    """The points of the files, by family, dtype and layout, those that take precedence last."""
    found = defaultdict[tuple[str, ...], list[tuple[str, Mapping[str, float]]]](list)
    for _, document in reversed(tuned_files.documents(device)):
        for (*where, point), rates in document.products.items():
            found[tuple(where)].append((point, rates))
    return dict(found)


def timed_regions(
    stems: tuple[str, ...], dtype: str, layout: str, region: str, device: Device
) -> Mapping[Extents, Mapping[str, float]]:
    """The rates of Configs, by name, where a region was timed: triangles of C, or T on the left."""
    found: dict[Extents, dict[str, float]] = {}
    for stem in stems:
        for point, rates in _products(device).get((stem, dtype, layout), ()):
            extents, of_point = _extents_of(point)
            if of_point == region and not _is_trapezoid(extents, region):
                found.setdefault(extents, {}).update(rates)
    return found


@tuned_files.memo(1 << 10)
def has_trapezoids(stems: tuple[str, ...], dtype: str, layout: str, device: Device) -> bool:
    """Whether products of a lower trapezoid were timed."""
    found = _products(device)
    points = (point for stem in stems for point, _ in found.get((stem, dtype, layout), ()))
    return any(_is_trapezoid(*_extents_of(point)) for point in points)


def _extents_of(point: str) -> tuple[Extents, str]:
    """The extents of a product, and the ending that names its region; '' for all of C."""
    text, separator, region = point.partition("/")
    return tuple(map(int, text.split("x"))), separator + region


def _is_trapezoid(extents: Extents, region: str) -> bool:
    """Whether there are rows below the lower triangle of C."""
    return region == LOWER and extents[0] > extents[1]


def contiguous_alignment(layout: str, extents: Extents, dtype: Dtype) -> Aligned:
    """Return the bytes at multiples of which columns of contiguous operands begin (rows, if transposed)."""
    m, n, k, *_ = extents
    leading = (k if layout[0] == "t" else m), (n if layout[1] == "t" else k)
    return gcd(leading[0] * dtype.itemsize, ALIGNED), gcd(leading[1] * dtype.itemsize, ALIGNED)


@tuned_files.memo(1 << 10)
@uncollected()  # a quarter of the time otherwise: what it makes is kept
def measured_model(
    stems: tuple[str, ...],
    dtype: str,
    layout: str,
    batched: bool,
    device: Device,
    between: bool = True,
    of_trapezoid: bool = False,
) -> ThroughputModel | None:
    """Return the model of several families' measured Configs, in classes and `between` these."""
    options = batched, device, between, of_trapezoid
    tuned = [known for stem in stems for known in measured(stem, dtype, layout, *options)]
    return ThroughputModel(tuned) if tuned else None
