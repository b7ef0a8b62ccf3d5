"""The rule of the catalogue: which Configs of a dtype and layout serve which kinds of products.

A kernel is made for a Config and a kind. All Configs of a portfolio serve plain products; of the kinds that
are rarer only the first few that are worth having do. So there are few kernels, all of which can be built
ahead. The choice takes its candidates from here, and `catalogue` lists the same kernels.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from itertools import islice, product
from typing import Any, NamedTuple

from ..errors import ConfigError
from ..gpu.device import Device
from ..model.occupancy import check_device
from ..types import DTYPES, Triangle
from . import portfolio
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
    "serves",
    "serving",
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
MOST = {PLAIN: None, THREE_M: 1, PACKED: 2, PACKED_3M: 1, TRMM_LEFT: 2, TRMM_RIGHT: 2}
#: How many of the plain ones serve triangles, by layout: those of SYRK and its kin, and of others one; and
#: how many serve conjugation. Of other uses, and of both together, it is one.
MOST_TRIANGULAR, MOST_CONJ = {"nt": 3, "tn": 3}, 2

#: Layouts of a fused TRMM: T by columns or by rows.
LAYOUTS = {TRMM_LEFT: ("nn", "tn"), TRMM_RIGHT: ("nn", "nt"), PACKED: ("nt",), PACKED_3M: ("nt",)}
TRIANGLES = {TRMM_LEFT: Triangle.LOWER_LEFT, TRMM_RIGHT: Triangle.UPPER_RIGHT}

LARGE = 1 << 29  # m n k of products that are worth packing


def kinds(dtype: str, layout: str) -> Iterator[Kind]:
    """Those that some Config of the dtype and layout serves."""
    is_complex = DTYPES[dtype].is_complex
    for kind in map(Kind, *zip(*product(MOST, (False, True), {False, is_complex}), strict=True)):
        if _most(kind, layout) != 0:
            yield kind


def _most(kind: Kind, layout: str) -> int | None:
    """How many Configs serve a kind; None: all."""
    use, triangular, conj = kind
    is_packed = use in (PACKED, PACKED_3M)
    if layout not in LAYOUTS.get(use, (layout,)) or (is_packed and conj):  # packing conjugates
        return 0
    if triangular and use not in (PLAIN, PACKED, PACKED_3M):
        return 0
    if not (triangular or conj):
        return MOST[use]
    if use != PLAIN or (triangular and conj):
        return 1
    return MOST_TRIANGULAR.get(layout, 1) if triangular else MOST_CONJ


@lru_cache(maxsize=1 << 12)
def serving(kind: Kind, stems: tuple[str, ...], dtype: str, layout: str, device: Device) -> tuple[Any, ...]:
    """The Configs of the portfolio of these families that serve a kind, the one most worth having first.

    What runs is their `variant_of` that kind.
    """
    found = portfolio.products(stems, dtype, layout, device)

    def usable(config: Any) -> bool:
        return variant_of(kind, config, device) is not None

    def weight(size: str) -> float:
        stem = stems[0]
        if kind.triangular or kind.use in TRIANGLES:
            return 1.0 if portfolio.is_square(stem, size) else 0.0
        if kind.use in (PACKED, PACKED_3M):
            return 1.0 if portfolio.multiplications(stem, size) >= LARGE else 0.0
        return portfolio.class_weight(stem, size)

    return tuple(islice(found.ordered(usable, weight), _most(kind, layout)))


def serves(config: Any, kind: Kind, stems: tuple[str, ...], device: Device) -> bool:
    """Whether a Config of the portfolio serves a kind."""
    return config in serving(kind, stems, config.dtype, config.layout, device)


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
    serving.cache_clear()


@lru_cache(maxsize=1 << 10)
def packed_variant(config: Any, device: Device) -> Any:
    """`config` for packed operands; None where there is no such, or `device` cannot run it."""
    try:
        variant = config.for_packed()
        check_device(variant, device)
    except ConfigError:
        return None
    return variant
