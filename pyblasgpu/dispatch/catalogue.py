"""The kernels that calls on a device need, listed ahead."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import product
from typing import Any

from ..database import FAMILIES, FIXED, Document, sizes_of
from ..errors import BackendUnavailable, ConfigError
from ..gpu.compile import KernelSource
from ..gpu.device import Device, known, names
from ..kernels.registry import family_of
from ..model.occupancy import check_device
from . import leaf
from .tuned_files import documents

__all__ = ["chosen", "kernels", "source_of"]


def kernels(device: Device) -> Iterator[KernelSource]:
    """Each kernel once: those of the tuned values for the device and for others of its architecture; where
    there are none, of the computed Configs; and those of families that need no tuning.
    """
    yield from _plain_sources(_configs(device))


def chosen(document: Document, device: Device) -> Iterator[KernelSource]:
    """The kernels of a document's Configs, each once."""
    yield from _plain_sources((key[0], config) for key, config in _of_document(document, device))


def source_of(stem: str, config: Any, flags: tuple[tuple[str, Any], ...]) -> KernelSource:
    """The kernel that `flags` specialise, those of a `KernelSource`."""
    return family_of(stem).source(config, **dict(flags))


def _plain_sources(configs: Iterable[tuple[str, Any]]) -> Iterable[KernelSource]:
    """Those of all families and Configs, each once."""
    return dict.fromkeys(
        source for stem, config in configs for source in family_of(stem).plain_sources(config)
    )


def _configs(device: Device) -> Iterator[tuple[str, Any]]:
    for stem in FAMILIES:
        configs = list(_tuned(stem, device)) or list(_computed(stem, device))
        yield from ((stem, config) for config in configs)
    for stem, family in FIXED.items():
        if device.cc >= family.needs:
            yield from ((stem, family.fixed_config(dtype)) for dtype in family.dtypes)


def _tuned(stem: str, device: Device) -> Iterator[Any]:
    cards = [device, *(card for card in map(known, names()) if card.cc == device.cc)]
    for card in cards:
        for _, document in documents(card):
            yield from (config for key, config in _of_document(document, device) if key[0] == stem)


def _of_document(document: Document, device: Device) -> Iterator[tuple[tuple[str, ...], Any]]:
    """The Configs of its entries, with their keys, that the device can run."""
    for key, entry in document.entries.items():
        stem, dtype, layout, _ = key
        if stem not in FAMILIES:
            continue  # a fused TRSM
        try:
            config = FAMILIES[stem].config(dtype, layout, entry.parameters)
            check_device(config, device)
        except ConfigError:
            continue
        yield key, config


def _computed(stem: str, device: Device) -> Iterator[Any]:
    family = FAMILIES[stem]
    for dtype, layout, size in product(family.dtypes, family.layouts, sizes_of(stem)):
        try:
            yield leaf.computed(stem, dtype, layout, size, device)
        except (BackendUnavailable, ConfigError):
            continue
