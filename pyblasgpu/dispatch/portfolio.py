"""The Configs that serve products of one dtype and layout, or fused TRSMs, and what each of them reaches.

Those of the files of tuned values; where these hold none, a few that are the best by the cost model.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress
from functools import lru_cache
from itertools import chain, islice
from math import prod
from typing import Any, NamedTuple

import numpy as np

from ..database import BY_TIMES_ALONE, FAMILIES, FUSED_STEMS, TRSM_POINTS, is_batch, sizes_of, tuned_at
from ..errors import BackendUnavailable, ConfigError
from ..gpu.device import Device
from ..kernels.space import quick_points
from ..model.occupancy import check_device, has_register_slack
from ..model.score import cycles, scores
from ..types import DTYPES
from . import tuned_files
from .overrides import COMPUTED

__all__ = [
    "GreedyOrder",
    "Portfolio",
    "best_by_model",
    "class_weight",
    "fused_trsm",
    "is_square",
    "multiplications",
    "products",
    "quick_configs",
    "rates_of",
]

SQUARE = 2.0  # what a class of square products counts for, since most calls are of such
MOST_COMPUTED = 6  # Configs of products, by the model, for a dtype and layout
LEAST_GAIN = 0.015  # of the mean logarithm, for which a Config serves a kind too
MOST_LEAVES = 3  # the same of leaves, for a dtype


class Portfolio(NamedTuple):
    """Configs, and the rate of each at size classes where it is known.

    Attributes
    ----------
    rates : mapping of Config to mapping of str to float
    origin : str
        Their origin, if not files with rates.
    """

    rates: Mapping[Any, Mapping[str, float]]
    origin: str = ""

    def first(
        self,
        most: int | None,
        usable: Callable[[Any], bool],
        weight: Callable[[str], float],
        least_gain: float = LEAST_GAIN,
        free: Collection[Any] = (),
    ) -> tuple[Any, ...]:
        """The `most` of those that are `ordered`; None: all.

        None of them gains less than `least_gain` over those before and those that are `free`. There is at
        least one, unless some are free.
        """
        order = self.ordered(usable, weight)
        if most is None:
            return tuple(order)
        for config in free:
            order.take(config)
        chosen: list[Any] = []
        while len(chosen) < most and (order.gain >= least_gain or not (chosen or free)):
            chosen += islice(order, 1)
            if not chosen:
                break
        return tuple(chosen)

    def ordered(self, usable: Callable[[Any], bool], weight: Callable[[str], float]) -> GreedyOrder:
        """The `usable` Configs, those that are the most worth having first; ``weight(size class)`` says what
        a class counts for.
        """
        rates = {config: at for config, at in self.rates.items() if usable(config)}
        return GreedyOrder(rates, weight)


def is_square(stem: str, size: str) -> bool:
    """Whether C is square in a class of products, and no batch."""
    m, n, *_ = tuned_at(stem, size)[-1]
    return m == n and not is_batch(size)


def multiplications(stem: str, size: str) -> int:
    """m n k of a class of products, of all matrices of a batch."""
    return prod(tuned_at(stem, size)[-1])


def class_weight(stem: str, size: str) -> float:
    """Return the weight of a class in the choice of few Configs."""
    extents = tuned_at(stem, size)[-1]
    is_cube = FAMILIES[stem].is_product and len(extents) == 3 and len(set(extents)) == 1
    return SQUARE if is_cube else 1.0


@tuned_files.memo(1 << 8)
def products(stems: tuple[str, ...], dtype: str, layout: str, device: Device) -> Portfolio:
    """The Configs of products by these families; at least one, if `device` can run any."""
    rates: dict[Any, dict[str, float]] = {}
    for stem in stems:
        rates.update(rates_of(stem, dtype, layout, device))
    if any(not is_batch(size) for at in rates.values() for size in at):
        return Portfolio(rates)
    others = _unrated(stems, dtype, layout, device) or _computed(stems, dtype, layout, device)
    return Portfolio({**others, **rates}, COMPUTED)


def rates_of(stem: str, dtype: str, layout: str, device: Device) -> dict[Any, dict[str, float]]:
    """Return the filed rates of a family's Configs; a Config without a rate has none."""
    rates: dict[Any, dict[str, float]] = {}
    for size, filed in tuned_files.of_classes(stem, dtype, layout, device).items():
        if filed.tflops:
            rates.setdefault(filed.config, {}).update({**filed.elsewhere, size: filed.tflops})
    return rates


def _unrated(stems: tuple[str, ...], dtype: str, layout: str, device: Device) -> dict[Any, dict[str, float]]:
    """Return the filed Configs without a rate."""
    filed = (tuned_files.of_classes(stem, dtype, layout, device).values() for stem in stems)
    return {entry.config: {} for entry in chain.from_iterable(filed) if not entry.tflops}


def _computed(stems: tuple[str, ...], dtype: str, layout: str, device: Device) -> dict[Any, dict[str, float]]:
    """Return the best Configs by the model, of all families that run on the device."""
    rates: dict[Any, dict[str, float]] = {}
    for stem in stems:
        if FAMILIES[stem].runs_on(device):
            with suppress(BackendUnavailable):
                for config in best_by_model(stem, dtype, layout, device).rates:
                    at = {size: tuned_at(stem, size)[-1] for size in _estimated(stem)}
                    rates[config] = {
                        size: prod(extents) / cycles(stem, config, extents, device)
                        for size, extents in at.items()
                    }
    order = Portfolio(rates).ordered(lambda config: True, lambda size: class_weight(stems[0], size))
    return {config: rates[config] for config in islice(order, MOST_COMPUTED)}


def _estimated(stem: str) -> list[str]:
    """The classes for which the model alone says what is best."""
    return [size for size in sizes_of(stem) if size not in BY_TIMES_ALONE]


@lru_cache(maxsize=1 << 8)
def best_by_model(stem: str, dtype: str, layout: str, device: Device) -> Portfolio:
    """The few of the quick space that should serve all classes of a family best, and not spill.

    Raises
    ------
    BackendUnavailable
        Where `device` can run none.
    """
    configs = list(quick_configs(stem, dtype, layout, device))
    sizes = _estimated(stem)
    if not configs:
        raise BackendUnavailable(f"{stem}: no Config can run on {device.name} ({device.arch})")
    # asynchronous copies serve operands of any alignment by one kernel
    configs = [config for config in configs if config.stages > 1] or configs
    configs = [config for config in configs if has_register_slack(config, device)] or configs
    table = scores(configs, [tuned_at(stem, size)[-1] for size in sizes], device)
    rates = {
        config: dict(zip(sizes, row.tolist(), strict=True))
        for config, row in zip(configs, table, strict=True)
        if row.any()
    }
    order = GreedyOrder(
        rates or {configs[0]: dict.fromkeys(sizes, 1.0)}, lambda size: class_weight(stem, size)
    )
    most = MOST_COMPUTED if FAMILIES[stem].is_product else MOST_LEAVES
    return Portfolio({config: rates.get(config, {}) for config in islice(order, most)})


def quick_configs(stem: str, dtype: str, layout: str, device: Device) -> Iterator[Any]:
    for parameters in quick_points(stem, DTYPES[dtype], layout, device):
        try:
            config = FAMILIES[stem].config(dtype, layout, parameters)
            check_device(config, device)
        except ConfigError:
            continue
        yield config


@tuned_files.memo(1 << 8)
def fused_trsm(stem: str, dtype: str, layout: str, device: Device) -> Portfolio:
    """The Configs of a family of products with which files solve by a T of this layout, one of `T_LAYOUTS`;
    none where nothing was tuned.

    Those too that another card of the architecture has at a point: they may be the best between points.
    """
    rates: dict[Any, dict[str, float]] = {}
    for point in TRSM_POINTS:
        for filed in tuned_files.all_of_class(FUSED_STEMS[stem], dtype, layout, point, device):
            rates.setdefault(filed.config, {}).setdefault(point, filed.tflops or 1.0)
    return Portfolio(rates)


UNTIMED = 0.3  # of the best rate at a problem, what a candidate is taken to reach where it was not timed


class GreedyOrder:
    """Iterates over candidates in that order, those that gain nothing last.

    Parameters
    ----------
    rates : mapping
        Candidate -> problem -> rate.
    weight : callable
        ``weight(problem)``: what the logarithm of a rate counts for.

    Attributes
    ----------
    gain : float
        Gain of the next candidate: how much larger the mean logarithm of the rates becomes.
    """

    def __init__(self, rates: Mapping[Any, Mapping[Any, float]], weight: Callable[[Any], float]):
        self._candidates = list(rates)
        if not self._candidates:
            self.gain, self._left = 0.0, np.zeros(0, bool)
            return
        problems = list(dict.fromkeys(problem for at in rates.values() for problem in at))
        table = np.array([[at.get(problem, 0.0) for problem in problems] for at in rates.values()])
        weights = np.array([weight(problem) for problem in problems])
        self._weights = weights / max(weights.sum(), 1e-9)
        best = np.maximum(table.max(axis=0), 1e-30)
        self._logs = np.log(np.maximum(table / best, UNTIMED))
        self._covered = np.full(len(problems), np.log(UNTIMED))
        self._left = np.ones(len(self._candidates), bool)
        self._find()

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        """The next one."""
        if not self._left.any():
            raise StopIteration
        number = self._next
        self._take(number)
        return self._candidates[number]

    def take(self, candidate: Any) -> None:
        """Count `candidate` as one of those before, whatever it gains."""
        self._take(self._candidates.index(candidate))

    def _take(self, number: int) -> None:
        self._left[number] = False
        self._covered = np.maximum(self._covered, self._logs[number])
        self._find()

    def _find(self) -> None:
        gains = (np.maximum(self._logs, self._covered) - self._covered) @ self._weights
        gains = np.where(self._left, gains, -1.0)
        self._next = int(gains.argmax())
        self.gain = float(gains[self._next])
