"""The kernels that calls on a device need, listed ahead: what the choice can name, and nothing else.

Of products there are the Configs of each dtype and layout and the kinds that they serve (`product_kinds`), of
fused TRSMs those of `trsm_fused`. Of leaves, of level 2 and of families that need no tuning there are all
kernels of their Configs.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from ..database import FAMILIES, FIXED, T_LAYOUTS, families_of, sizes_of
from ..errors import BackendUnavailable, ConfigError
from ..gpu.build.compile import KernelSource
from ..gpu.device import Device, known, names
from ..kernels.gemm.form import Form
from ..kernels.registry import family_of
from ..kernels.trsv.limits import MAX_COLS
from ..types import DTYPES
from . import leaf
from .product_kinds import TRIANGLES, Kind, configs_of, kinds, variant_of
from .trsm_fused import serving_trsm

__all__ = ["fixed_kernels", "kernels"]


def kernels(device: Device) -> Iterator[KernelSource]:
    """Each kernel once, of the device and of others of its architecture, of which it may be one."""
    cards = [device, *(card for card in map(known, names()) if card.cc == device.cc)]
    yield from dict.fromkeys(source for card in cards for source in _of_device(card))


def _of_device(device: Device) -> Iterator[KernelSource]:
    for dtype in DTYPES:
        for layout in FAMILIES["gemm_simt"].layouts:
            yield from _products(dtype, layout, device)
        for layout in T_LAYOUTS:
            yield from _fused_trsms(dtype, layout, device)
        for routine in ("trsm", "trmm"):
            yield from _leaves(routine, dtype, device)
        yield from _matrix_vector(dtype, device)
    for stem, family in FIXED.items():
        if family.runs_on(device) and not family.on_request:
            for dtype in family.dtypes:
                if not family.gives_way(dtype, device):
                    yield from fixed_kernels(stem, dtype, device)


# --------------------------------------------------------------------------------------------- products


def _products(dtype: str, layout: str, device: Device) -> Iterator[KernelSource]:
    """Yield the kernels of products, of all kinds."""
    stems = families_of("gemm", dtype)
    for kind in kinds(dtype, layout):
        for config in configs_of(kind, stems, dtype, layout, device):
            yield from _of_kind(kind, variant_of(kind, config, device))


def _of_kind(kind: Kind, config: Any) -> Iterator[KernelSource]:
    """The kernels that the kind may need of a Config."""
    source = family_of(config.STEM).source
    if kind.use in TRIANGLES:
        yield source(config, conj=kind.conj, triangle=TRIANGLES[kind.use])
    else:
        form = Form.TRIANGLE if kind.triangular else Form.ALL
        yield source(config, form, kind.conj)
        if config.needs_alignment:
            yield source(config.scalar_variant, form, kind.conj)


# -------------------------------------------------------------------------------------------- triangles


def _fused_trsms(dtype: str, layout: str, device: Device) -> Iterator[KernelSource]:
    triangle = T_LAYOUTS[layout].triangle
    for conj in {False, DTYPES[dtype].is_complex}:
        for config in serving_trsm(DTYPES[dtype], layout, device, conj):
            yield family_of(config.STEM).source(config, conj=conj, triangle=triangle, solved=True)


def _leaves(routine: str, dtype: str, device: Device) -> Iterator[KernelSource]:
    """Yield the kernels of the routine's leaves, of all size classes."""
    stems = families_of(routine, dtype)
    configs: dict[Any, None] = {}
    for size in sizes_of(stems[0]):
        with suppress(BackendUnavailable, ConfigError):
            configs[leaf.of_size(stems, dtype, "", size, device).config] = None
    for config in configs:
        yield from family_of(config.STEM).plain_sources(config)


def _matrix_vector(dtype: str, device: Device) -> Iterator[KernelSource]:
    """Yield the kernels of the tuned routines of level 2."""
    for stem, family in FAMILIES.items():
        if family.is_matrix_vector and dtype in family.dtypes:
            for layout in family.layouts:
                for config in leaf.candidates(stem, dtype, layout, device):
                    yield from family.plain_sources(config)


def fixed_kernels(stem: str, dtype: str, device: Device) -> Iterator[KernelSource]:
    """All kernels of a family that needs no tuning, and of the Configs that serve its calls on the device."""
    family, config = family_of(stem), leaf.fixed(stem, dtype, device)
    if stem == "trsv":
        configs = (config.specialize(columns, device.shared_per_block) for columns in range(1, MAX_COLS + 1))
        yield from (family.source(each) for each in configs)
    elif stem == "getrf_panel":
        yield from (family.source(each) for each in _panels(config, device))
    elif stem in ("getrf_small", "gesv_small"):
        yield from (family.source(config.specialize(order, device)) for order in config.WIDTHS)
    elif hasattr(config, "on"):
        yield from family.plain_sources(config.on(device))
    elif hasattr(config, "fitting"):
        yield from family.plain_sources(config.fitting(device.shared_per_block))
    else:
        yield from family.plain_sources(config)


def _panels(config: Any, device: Device) -> Iterator[Any]:
    """The Configs of LU's panels, for any rows."""
    return (config.specialize(1 << power, device) for power in range(25))
