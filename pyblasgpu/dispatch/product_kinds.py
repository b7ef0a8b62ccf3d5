"""The rule of the catalogue: which Configs of a dtype and layout serve which kinds of products.

A kernel is made for a Config and a kind. All Configs of a portfolio serve plain products; of the kinds that
are rarer only the first few that are worth having do. One kernel may serve all of C and triangles. So there
are few kernels, all of which can be built ahead. The choice takes its candidates from here, and `catalogue`
lists the same kernels.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import lru_cache
from itertools import islice, product
from math import isnan, nan, prod
from typing import Any, NamedTuple

from ..errors import BackendUnavailable, ConfigError
from ..gpu.device import Device
from ..kernels.gemm.fused import check, shared_bytes, tile_orders
from ..model.occupancy import blocks_per_sm, check_device, has_register_slack, register_limit
from ..model.score import cycles
from ..model.trsm_fused import resident
from ..types import DTYPES, Dtype, Region, Triangle
from . import portfolio
from .operand_copies import OperandLayouts
from .portfolio import Portfolio
from .split_k import split_times
from .throughput_model import (
    FAR,
    LEFT,
    LOWER,
    RegionModel,
    config_name,
    measured_model,
    of_fused_trmm,
    timed_regions,
)
from .tuned_files import memo, rates_of

__all__ = [
    "FEWER_BLOCKS",
    "GemmProblem",
    "Kind",
    "LAYOUT_OF_PACKED",
    "ONE_TILE_EACH",
    "PACKED",
    "PACKED_3M",
    "PLAIN",
    "THREE_M",
    "TRMM_LEFT",
    "TRMM_RIGHT",
    "applies",
    "configs_of",
    "fused_variant",
    "higher_occupancy",
    "kinds",
    "packed_variant",
    "persistent",
    "region_model",
    "stems",
    "three_m_variant",
    "tile",
    "triangle_variant",
    "trsm_variant",
    "variant_of",
    "with_requested_occupancy",
    "without_3m",
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
        Whether a triangle of C is computed.
    conj : bool
        Whether one operand is conjugated and one is not.
    """

    use: str = PLAIN
    triangular: bool = False
    conj: bool = False

    @property
    def unpacked(self) -> Kind:
        """The kind of the same product of all of C with unpacked operands, by which it is estimated."""
        uses = {PACKED: PLAIN, PACKED_3M: THREE_M}
        return Kind(uses[self.use]) if self.use in uses else self


#: Number of Configs that serve a use; None: all.
MOST = {PLAIN: None, THREE_M: 1, PACKED: 1, PACKED_3M: 1, TRMM_LEFT: 4, TRMM_RIGHT: 3}
#: Number of the plain Configs that serve triangles, conjugation, and both: of the layouts of SYRK and its
#: kin, and of others. For other uses it is one.
SYRK = ("nt", "tn")
MOST_TRIANGULAR, MOST_CONJ, MOST_BOTH = (4, 1), (3, 1), (3, 1)
#: Least gain of a kernel for triangles alone: mean logarithm at squares, in the same layouts.
TRIANGULAR_GAIN = (0.0075, 0.2)

#: Layouts of a fused TRMM: T by columns or by rows.
LAYOUTS = {TRMM_LEFT: ("nn", "tn"), TRMM_RIGHT: ("nn", "nt"), PACKED: ("nt",), PACKED_3M: ("nt",)}
TRIANGLES = {TRMM_LEFT: Triangle.LOWER_LEFT, TRMM_RIGHT: Triangle.UPPER_RIGHT}

#: Order and right-hand sides at which Configs for a fused TRMM are judged.
TRMM_POINTS = tuple((order, rhs) for order in (128, 512, 1024, 2048, 4096) for rhs in (32, 512, order))
LEAST_GAIN = 0.0065  # of the mean logarithm there, and where TRMMs were timed
MOST_TIMED = 2  # Configs more by such times


def kinds(dtype: str, layout: str) -> Iterator[Kind]:
    """Yield the kinds that some Config of the dtype and layout serves, except those that only an override
    requests.
    """
    is_complex = DTYPES[dtype].is_complex
    for kind in map(Kind, *zip(*product(MOST, (False, True), {False, is_complex}), strict=True)):
        if _most(kind, layout) != 0 and kind.use not in (PACKED, PACKED_3M):
            yield kind


def _most(kind: Kind, layout: str) -> int | None:
    """Return the number of Configs that serve a kind; None: all."""
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


@memo(1 << 12)
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
    """Return the Configs that have a kernel for this kind: the first few of the portfolio."""
    candidates = portfolio.products(stems, dtype, layout, device)
    if kind.use in TRIANGLES:
        estimated = _by_estimate(kind, stems, candidates, device)
        own = estimated.first(_most(kind, layout), lambda _: True, lambda _: 1.0, LEAST_GAIN)
        return own if kind.conj else (*own, *_by_time(kind, stems, candidates, own, device))

    def usable(config: Any) -> bool:
        return variant_of(kind, config, device) is not None

    def weight(size: str) -> float:
        stem = stems[0]
        if kind.triangular:
            return 1.0 if portfolio.is_square(stem, size) else 0.0
        if kind.use in (PACKED, PACKED_3M):
            least = rates_of(device).packed_min_work
            return 1.0 if portfolio.multiplications(stem, size) >= least else 0.0
        return portfolio.class_weight(stem, size)

    if kind.use == PLAIN and kind.triangular:
        free, least_gain = _free(kind, stems, dtype, layout, device), TRIANGULAR_GAIN[layout not in SYRK]
        return candidates.first(_most(kind, layout), usable, weight, least_gain, free)
    return candidates.first(_most(kind, layout), usable, weight)


def _free(kind: Kind, stems: tuple[str, ...], dtype: str, layout: str, device: Device) -> tuple[Any, ...]:
    """Return the Configs whose kernel for all of C, which is always built, computes triangles too."""
    others = _first(kind._replace(triangular=False), stems, dtype, layout, device)
    return tuple(config for config in others if config.serves_any_region)


def _by_estimate(kind: Kind, stems: tuple[str, ...], candidates: Portfolio, device: Device) -> Portfolio:
    """The Configs for a fused TRMM, with what the model has for it at `TRMM_POINTS`."""
    triangle = TRIANGLES[kind.use]
    rates: dict[Any, dict[str, float]] = {}
    for order, rhs in TRMM_POINTS:
        extents = (order, rhs, order) if triangle.on_left else (rhs, order, order)
        for config, seconds_per_cycle in _seconds_per_cycle(stems, candidates, extents, device).items():
            variant = _trmm_variant(kind, config, device)
            if variant is not None:
                needed = seconds_per_cycle * cycles(config.STEM, variant, extents, device, region=triangle)
                rates.setdefault(config, {})[f"{order}x{rhs}"] = 1 / needed
    return Portfolio(rates)


def _by_time(
    kind: Kind, stems: tuple[str, ...], candidates: Portfolio, own: tuple[Any, ...], device: Device
) -> tuple[Any, ...]:
    """The Configs by which a fused TRMM with its `own` ones gains where it was timed."""
    first = next(iter(candidates.rates))
    if not TRIANGLES[kind.use].on_left:
        return ()
    timed = timed_regions(stems, first.dtype, first.layout, LEFT, device)
    rates: dict[Any, dict[str, float]] = {}
    for config in candidates.rates:
        name = config_name(config)
        if any(name in at for at in timed.values()) and _trmm_variant(kind, config, device) is not None:
            rates[config] = {str(point): at[name] for point, at in timed.items() if name in at}
    free = tuple(config for config in own if config in rates)
    return Portfolio(rates).first(MOST_TIMED, lambda _: True, lambda _: 1.0, LEAST_GAIN, free) if free else ()


def _trmm_variant(kind: Kind, config: Any, device: Device) -> Any:
    """`config` as it runs in a fused TRMM; None where it cannot."""
    variant = variant_of(kind, config, device)
    return variant if variant is not None and _fits(variant, device) else None


def _fits(variant: Any, device: Device) -> bool:
    """Whether a fused TRMM can run, and has registers for more than a product. Large tiles of FMAs of complex
    numbers have none, and those of bounded blocks few.
    """
    if variant.dtype == "c" and variant.has_many_sums:
        return False
    is_bound = variant.min_blocks > 1
    return blocks_per_sm(variant, device) > 0 and (not is_bound or has_register_slack(variant, device))


def _seconds_per_cycle(
    stems: tuple[str, ...], candidates: Portfolio, extents: tuple[int, ...], device: Device
) -> dict[Any, float]:
    """Return the seconds per cycle of a fused TRMM for each candidate; 1 for all where none is measured."""
    first = next(iter(candidates.rates))
    model = measured_model(stems, first.dtype, first.layout, False, device, between=False)
    if model is None:
        return dict.fromkeys(candidates.rates, 1.0)
    values, uncertainties = model.at(extents)
    return {
        known.config: float(value)
        for known, value in zip(model.tuned, of_fused_trmm(values) * uncertainties, strict=True)
        if known.config in candidates.rates
    }


@memo(1 << 8)
def region_model(
    stems: tuple[str, ...], dtype: str, layout: str, kind: Kind, batched: bool, device: Device
) -> RegionModel | None:
    """Return the model of these families' Configs where a triangle of C is computed, or T is one; None where
    they were not measured in products.
    """
    model = measured_model(stems, dtype, layout, batched, device)
    if model is None:
        return None
    is_of_c = kind.use not in TRIANGLES
    name, region = (LOWER, Region.LOWER) if is_of_c else (LEFT, TRIANGLES[kind.use])
    timed = timed_regions(stems, dtype, layout, name, device) if kind.use != TRMM_RIGHT else {}
    flops = DTYPES[dtype].flops_per_fma
    variants = [
        triangle_variant(known.config) if is_of_c else _trmm_variant(kind, known.config, device)
        for known in model.tuned
    ]

    def pace(variant: Any, config: Any, extents: tuple[int, ...], rates: Mapping[str, float]) -> float:
        rate = rates.get(config_name(variant if is_of_c else config)) if variant else None
        if rate is None:
            return nan
        needed = next(split_times(variant, 1.0, extents, device, region=region)).seconds
        return flops * prod(extents) / rate / 1e12 / needed

    paces = {
        extents: [
            pace(variant, known.config, extents, rates)
            for variant, known in zip(variants, model.tuned, strict=True)
        ]
        for extents, rates in timed.items()
    }
    known_paces = {extents: row for extents, row in paces.items() if not all(map(isnan, row))}
    from_products = () if is_of_c else (of_fused_trmm,)
    return RegionModel(model, known_paces, FAR[name], *from_products)


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


@lru_cache(maxsize=1 << 10)
def packed_variant(config: Any, device: Device) -> Any:
    """`config` for packed operands; None where there is no such, or `device` cannot run it."""
    try:
        variant = config.for_packed()
        check_device(variant, device)
    except ConfigError:
        return None
    return variant


# ------------------------------------------------------------------------------------------------- problems


class GemmProblem(NamedTuple):
    """A product, and what is fixed of how it is computed; whether it `adds` to C, which is read then."""

    stems: tuple[str, ...]
    dtype: Dtype
    layout: str
    extents: tuple[int, ...]
    region: Region | Triangle
    splits: int | None
    copied: tuple[bool, bool]
    packed: bool | None
    aligned: tuple[int, int]
    conjs: tuple[bool, bool]
    three_m: bool
    workspace_limit: int | None
    adds: bool = False

    @property
    def layouts(self) -> OperandLayouts:
        """Layout of the operands."""
        return OperandLayouts(self.layout, self.copied, self.aligned)

    def kind(self, packed: bool = False) -> Kind:
        """Return the problem's kind, which decides the Configs that serve it, for `packed` operands or
        strided ones.
        """
        if isinstance(self.region, Triangle):
            return Kind(TRMM_LEFT if self.region.on_left else TRMM_RIGHT, conj=any(self.conjs))
        # a copy is not conjugated
        conj_a, conj_b = (
            conj and not (packed or copied) for conj, copied in zip(self.conjs, self.copied, strict=True)
        )
        use = (PACKED_3M if packed else THREE_M) if self.three_m else PACKED if packed else PLAIN
        return Kind(use, self.region is not Region.ALL, conj_a != conj_b)

    @property
    def is_batch(self) -> bool:
        """Whether it is of more than one matrix."""
        return prod(self.extents[3:]) > 1

    @property
    def is_trapezoid(self) -> bool:
        """Whether a lower triangle of C, and the rows below it, are computed."""
        return self.region is Region.LOWER and self.extents[0] > self.extents[1]


def without_3m(problem: GemmProblem) -> GemmProblem:
    """Return the problem without the three products; raise for one in place."""
    if isinstance(problem.region, Triangle):
        raise BackendUnavailable(f"no {problem.dtype.name} product at hand can be made in place")
    return problem._replace(three_m=False)


# ------------------------------------------------------------------------------------- variants of a Config


@lru_cache(maxsize=1 << 12)
def fused_variant(config: Any, triangle: Triangle) -> Any:
    """Return the Config with one tile a block, not persistent; None where there is no such kernel."""
    variant = replace(config, persistent=False)
    try:
        check(variant, triangle)
    except ConfigError:
        return None
    return variant


SMALLEST = 4  # MMA_K: the fewest registers for fragments


@lru_cache(maxsize=1 << 10)
def three_m_variant(config: Any, device: Device) -> Any:
    """`config` with three products, by smaller instructions if need be; None where there is no such."""
    if not hasattr(config, "three_m"):
        return None
    for depth in dict.fromkeys((config.MMA_K, SMALLEST)):
        try:
            variant = replace(config, three_m=True, MMA_K=depth)
            check_device(variant, device)
        except ConfigError:
            continue
        if has_register_slack(variant, device):
            return variant
    return None


#: Dtypes in which a triangle of C has no persistent blocks. The next tile of a triangle is found in the loop,
#: and what FMAs of complex singles gain by the order of their registers is lost: up to 12 % of the time.
ONE_TILE_EACH = ("c",)


def triangle_variant(config: Any) -> Any:
    """The kernel of the same tile and pipeline for a triangle of C."""
    return replace(config, persistent=False) if config.dtype in ONE_TILE_EACH else config


FEWER_BLOCKS = (1, 2, 4)  # persistent blocks a multiprocessor, where it holds more


def persistent(config: Any, device: Device) -> list[Any]:
    """`config` with persistent blocks: as many as a multiprocessor holds, and fewer, of which each has more
    of a product that is soon over; none where there is no such.
    """
    most = blocks_per_sm(config, device) if config.stages > 1 else 0
    counts = sorted({count for count in (*FEWER_BLOCKS, most) if 0 < count <= most}, reverse=True)
    return [replace(config, persistent=True, min_blocks=count) for count in counts]


SPARE = {1: 40, 2: 110}  # registers that a kernel needs beyond its estimate, by parts of an element
#: Registers a thread needs beyond the estimate, by dtype, when compiled for several blocks a multiprocessor.
#: In d and z it needs all that there are; with fewer than `LEAST` it spills, whatever the estimate.
TIGHT, LEAST = {"s": 40, "c": 56}, 120


def stems(dtype: Dtype, device: Device) -> tuple[str, ...]:
    """The families that are fast in `dtype`."""
    return ("gemm_mma",) if dtype.real_size == 8 and device.has_double_mma else ("gemm_simt",)


def with_requested_occupancy(config: Any, triangle: Triangle, device: Device) -> Any:
    """The Config as it solves, for as many blocks a multiprocessor as it says, where they leave it registers
    enough; None where it cannot.
    """
    if config is None:
        return None
    return trsm_variant(config, triangle, device, config.min_blocks) or trsm_variant(config, triangle, device)


def higher_occupancy(config: Any, triangle: Triangle, device: Device) -> list[Any]:
    """Return `config` compiled for the most blocks a multiprocessor, and for one less."""
    fit = device.occupancy(config.threads, 1, shared_bytes(config, triangle))
    variants = (trsm_variant(config, triangle, device, blocks) for blocks in range(fit, 1, -1))
    return list(islice(filter(None, variants), 2))


def trsm_variant(config: Any, triangle: Triangle, device: Device, blocks: int = 1) -> Any:
    """The Config as it solves, with all registers that `blocks` on a multiprocessor leave it; None where it
    cannot, or has too few, or is none.
    """
    fused = config and fused_variant(config, triangle)
    if not fused or (blocks > 1 and config.dtype not in TIGHT):
        return None
    fused = replace(fused, min_blocks=blocks)
    try:
        check_device(fused, device)
    except ConfigError:
        return None
    if blocks == 1:
        needed = fused.registers + SPARE[fused.dtype_facts.reals_per_element]
    else:
        needed = max(fused.registers + TIGHT[fused.dtype], LEAST)
    has_registers = needed <= register_limit(fused, device)
    return fused if has_registers and resident(fused, triangle, device) >= blocks else None


def tile(config: Any, triangle: Triangle) -> tuple[Any, ...]:
    """Return a Config's tile, alike for triangles on either side: extents along the triangle and across."""
    return (*tile_orders(config, triangle), config.BLK_K, config.threads)
