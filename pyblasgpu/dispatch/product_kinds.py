"""The rule of the catalogue: which Configs of a dtype and layout serve which kinds of products.

A kernel is made for a Config and a kind. All Configs of a portfolio serve plain products; of the kinds that
are rarer only the first few that are worth having do. One kernel may serve all of C and triangles. So there
are few kernels, all of which can be built ahead. The choice takes its candidates from here, and `catalogue`
lists the same kernels.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from itertools import product
from typing import Any, NamedTuple

from ..errors import ConfigError
from ..gpu.device import Device
from ..model.occupancy import blocks_per_sm, check_device, has_register_slack
from ..model.score import cycles
from ..types import DTYPES, Triangle
from . import portfolio
from .measured_products import throughput_model
from .portfolio import Portfolio
from .throughput_model import of_fused_trmm
from .variants import fused_variant, three_m_variant, triangle_variant

__all__ = [
    "LAYOUT_OF_PACKED",
    "PACKED",
    "PACKED_3M",
    "PLAIN",
    "THREE_M",
    "TRMM_LEFT",
    "TRMM_RIGHT",
    "Kind",
    "forget",
    "kinds",
    "packed_variant",
    "applies",
    "configs_of",
    "variant_of",
]

PLAIN, THREE_M, PACKED, PACKED_3M = "plain", "three_m", "packed", "packed_three_m"
TRMM_LEFT, TRMM_RIGHT = "trmm_left", "trmm_right"
LAYOUT_OF_PACKED = "nt"  # whose Configs, and times, serve packed operands


class Kind(NamedTuple):
    """A kind of products.

    Attributes
    ----------
    use : str
        'plain'; 'three_m', three real products for a complex one; 'packed', of packed operands;
        'packed_three_m'; 'trmm_left' or 'trmm_right', a fused TRMM with T on that side.
    triangular : bool
        Of a triangle of C.
    conj : bool
        Of one operand that is conjugated and one that is not.
    """

    use: str = PLAIN
    triangular: bool = False
    conj: bool = False

    @property
    def unpacked(self) -> Kind:
        """The kind of the same product of all of C with operands as they lie, by which it is judged."""
        uses = {PACKED: PLAIN, PACKED_3M: THREE_M}
        return Kind(uses[self.use]) if self.use in uses else self


#: How many Configs serve a use; None: all.
MOST = {PLAIN: None, THREE_M: 1, PACKED: 1, PACKED_3M: 1, TRMM_LEFT: 4, TRMM_RIGHT: 3}
#: How many of the plain ones serve triangles, conjugation, and both: of the layouts of SYRK and its kin, and
#: of others. Of other uses it is one.
SYRK = ("nt", "tn")
MOST_TRIANGULAR, MOST_CONJ, MOST_BOTH = (4, 1), (3, 1), (3, 1)
#: What a kernel of triangles alone must gain, of the mean logarithm at squares, in the same layouts.
TRIANGULAR_GAIN = (0.0075, 0.2)

#: Layouts of a fused TRMM: T by columns or by rows.
LAYOUTS = {TRMM_LEFT: ("nn", "tn"), TRMM_RIGHT: ("nn", "nt"), PACKED: ("nt",), PACKED_3M: ("nt",)}
TRIANGLES = {TRMM_LEFT: Triangle.LOWER_LEFT, TRMM_RIGHT: Triangle.UPPER_RIGHT}

#: Order and right-hand sides at which Configs for a fused TRMM are judged.
TRMM_POINTS = tuple((order, rhs) for order in (128, 512, 1024, 2048, 4096) for rhs in (32, 512, order))
LEAST_GAIN = 0.0065  # of the mean logarithm there
LARGE = 1 << 29  # m n k of products that are worth packing


def kinds(dtype: str, layout: str) -> Iterator[Kind]:
    """Those that some Config of the dtype and layout serves, but for those that are asked for by name."""
    is_complex = DTYPES[dtype].is_complex
    for kind in map(Kind, *zip(*product(MOST, (False, True), {False, is_complex}), strict=True)):
        if _most(kind, layout) != 0 and kind.use not in (PACKED, PACKED_3M):
            yield kind


def _most(kind: Kind, layout: str) -> int | None:
    """How many Configs serve a kind; None: all."""
    use, triangular, conj = kind
    is_packed = use in (PACKED, PACKED_3M)
    if layout not in LAYOUTS.get(use, (layout,)) or (is_packed and conj):  # packing conjugates
        return 0
    if (triangular and use not in (PLAIN, PACKED)) or (conj and use == THREE_M):
        return 0
    if not (triangular or conj):
        return MOST[use]
    if use != PLAIN:
        return 1
    most = MOST_BOTH if triangular and conj else MOST_TRIANGULAR if triangular else MOST_CONJ
    return most[layout not in SYRK]


@lru_cache(maxsize=1 << 12)
def configs_of(
    kind: Kind, stems: tuple[str, ...], dtype: str, layout: str, device: Device
) -> tuple[Any, ...]:
    """The Configs of the portfolio of these families that serve a kind, the one most worth having first; then
    those whose kernel is there for the same products of all of C, or of a triangle.

    What runs is their `variant_of` that kind.
    """
    own = _first(kind, stems, dtype, layout, device)
    if kind.use != PLAIN:
        return own
    others = _first(kind._replace(triangular=not kind.triangular), stems, dtype, layout, device)
    return (*own, *(config for config in others if config.serves_any_region and config not in own))


def _first(kind: Kind, stems: tuple[str, ...], dtype: str, layout: str, device: Device) -> tuple[Any, ...]:
    """Those that are few enough to have a kernel for this kind."""
    candidates = portfolio.products(stems, dtype, layout, device)
    if kind.use in TRIANGLES:
        estimated = _by_estimate(kind, stems, candidates, device)
        return estimated.first(_most(kind, layout), lambda _: True, lambda _: 1.0, LEAST_GAIN)

    def usable(config: Any) -> bool:
        return variant_of(kind, config, device) is not None

    def weight(size: str) -> float:
        stem = stems[0]
        if kind.triangular:
            return 1.0 if portfolio.is_square(stem, size) else 0.0
        if kind.use in (PACKED, PACKED_3M):
            return 1.0 if portfolio.multiplications(stem, size) >= LARGE else 0.0
        return portfolio.class_weight(stem, size)

    if kind.use == PLAIN and kind.triangular:
        free, least_gain = _free(kind, stems, dtype, layout, device), TRIANGULAR_GAIN[layout not in SYRK]
        return candidates.first(_most(kind, layout), usable, weight, least_gain, free)
    return candidates.first(_most(kind, layout), usable, weight)


def _free(kind: Kind, stems: tuple[str, ...], dtype: str, layout: str, device: Device) -> tuple[Any, ...]:
    """Those whose kernel for all of C, which is there in any case, computes triangles too."""
    others = _first(kind._replace(triangular=False), stems, dtype, layout, device)
    return tuple(config for config in others if config.serves_any_region)


def _by_estimate(kind: Kind, stems: tuple[str, ...], candidates: Portfolio, device: Device) -> Portfolio:
    """The Configs for a fused TRMM, with what the model has for it at `TRMM_POINTS`."""
    triangle = TRIANGLES[kind.use]
    rates: dict[Any, dict[str, float]] = {}
    for order, rhs in TRMM_POINTS:
        extents = (order, rhs, order) if triangle.on_left else (rhs, order, order)
        for config, seconds_per_cycle in _seconds_per_cycle(stems, candidates, extents, device).items():
            variant = variant_of(kind, config, device)
            if variant is not None and _fits(variant, device):
                needed = seconds_per_cycle * cycles(config.STEM, variant, extents, device, region=triangle)
                rates.setdefault(config, {})[f"{order}x{rhs}"] = 1 / needed
    return Portfolio(rates)


def _fits(variant: Any, device: Device) -> bool:
    """Whether a fused TRMM can run, and has registers for more than a product: large tiles of FMAs of complex
    numbers have none, and those of bounded blocks few.
    """
    if variant.dtype == "c" and variant.has_many_sums:
        return False
    is_bound = variant.min_blocks > 1
    return blocks_per_sm(variant, device) > 0 and (not is_bound or has_register_slack(variant, device))


def _seconds_per_cycle(
    stems: tuple[str, ...], candidates: Portfolio, extents: tuple[int, ...], device: Device
) -> dict[Any, float]:
    """What a cycle of a fused TRMM takes, of each Config that may be chosen; all the same where nothing was
    measured.
    """
    first = next(iter(candidates.rates))
    model = throughput_model(stems, first.dtype, first.layout, False, device)
    if model is None:
        return dict.fromkeys(candidates.rates, 1.0)
    values, uncertainties = model.at(extents)
    return {
        known.config: float(value)
        for known, value in zip(model.tuned, of_fused_trmm(values) * uncertainties, strict=True)
        if known.config in candidates.rates
    }


def applies(config: Any, kind: Kind, stems: tuple[str, ...], device: Device) -> bool:
    """Whether a Config of the portfolio serves a kind."""
    return config in configs_of(kind, stems, config.dtype, config.layout, device)


@lru_cache(maxsize=1 << 12)
def variant_of(kind: Kind, config: Any, device: Device) -> Any:
    """`config` as it runs for products of a kind; None where there is no such."""
    use, triangular, _ = kind
    if use in TRIANGLES:
        variant = fused_variant(config, TRIANGLES[use])
    elif use == PLAIN:
        variant = triangle_variant(config) if triangular else config
    else:
        variant = config if use == PACKED else three_m_variant(config, device)
        if use in (PACKED, PACKED_3M) and variant is not None:
            variant = packed_variant(variant, device)
    return variant


def forget() -> None:
    """Forget what follows from the files of tuned values."""
    configs_of.cache_clear()


@lru_cache(maxsize=1 << 10)
def packed_variant(config: Any, device: Device) -> Any:
    """`config` for packed operands; None where there is no such, or `device` cannot run it."""
    try:
        variant = config.for_packed()
        check_device(variant, device)
    except ConfigError:
        return None
    return variant
