"""Which kernels the package's own values choose: those of `make check-kernels`, and a sample of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from pyblasgpu import database
from pyblasgpu.database import FAMILIES, FIXED, sizes_of
from pyblasgpu.dispatch import leaf as dispatch_leaf
from pyblasgpu.dispatch import product_kinds
from pyblasgpu.gpu import backend
from pyblasgpu.gpu.build.compile import KernelSource, Resources, compile_here
from pyblasgpu.gpu.device import Device, known, names
from pyblasgpu.kernels.gemm.form import Form
from pyblasgpu.kernels.registry import family_of
from pyblasgpu.tuning.compile_pool import source_of

#: What modules that compile are marked with.
NEEDS_COMPILER = pytest.mark.skipif(bool(backend.why_unavailable()), reason=str(backend.why_unavailable()))


class Chosen(NamedTuple):
    """A kernel that is chosen on a device, and what a test of it is called."""

    device: Device
    config: Any
    source: KernelSource
    name: str


#: Bytes of a thread's stack in kernels that took less time than other Configs, which spill nothing.
STACK = {
    ("tridiagonal_merge", "d", 512): 32,
    ("sytrd_resident", "c", 256): 104,
    ("sytrd_resident", "z", 256): 8,
}


def in_registers(source: KernelSource, cc: tuple[int, int]) -> Resources:
    """The report of a kernel's compiler; nothing is spilled, and no array of a thread is in local memory."""
    report = compile_here(source, cc).resources
    most = STACK.get((source.name, source.config.dtype, source.threads), 0)
    spilled = max(report.spill_stores, report.spill_loads) > 0 and most == 0
    assert report.stack_bytes <= most and not spilled, f"{source.name}, {source.config}: {report}"
    return report


def parameters(kernels: Iterable[Chosen]) -> list:
    """A test's parameter for each."""
    return [pytest.param(kernel, id=kernel.name) for kernel in kernels]


def packaged() -> Iterator[tuple]:
    """Every Config of the packaged files but those of the fused TRSM, whose kernels are of a triangle."""
    devices = {device.name: device for device in map(known, names())}
    for path in sorted(Path(database.__file__).parent.glob("*.json")):
        if path.name == "schema.json":
            continue
        document = database.parse(path.read_bytes())
        for (stem, dtype, layout, size), entry in document.entries.items():
            if stem not in FAMILIES:
                continue
            config = FAMILIES[stem].config(dtype, layout, entry.parameters)
            yield devices[document.device], stem, config, f"{path.stem}-{stem}-{dtype}-{layout}-{size}"


def computed(name: str) -> Iterator[tuple]:
    """The Configs computed for a device without a file, for a layout and a size class of each family."""
    for stem, family, dtype in ((stem, f, dtype) for stem, f in FAMILIES.items() for dtype in f.dtypes):
        layout, size = family.layouts[-1], sizes_of(stem)[-1]
        if family.is_matrix_vector:
            for config in family.untuned(dtype, layout)[:1]:
                yield known(name), stem, config, f"{name}-{stem}-{dtype}-{layout}"
            continue
        config = dispatch_leaf.computed(stem, dtype, layout, size, known(name))
        yield known(name), stem, config, f"{name}-{stem}-{dtype}-{layout}-{size}"


def different(*chosen: Iterable[tuple]) -> list[Chosen]:
    """One of those that compile to the same: an architecture's Configs are often its device's."""
    kernels: dict = {}
    for device, stem, config, name in chain(*chosen):
        kernels.setdefault((device.cc, stem, config), Chosen(device, config, source_of(stem, config), name))
    return list(kernels.values())


#: Every Config that a file of the package or, on a device without one, the computed default chooses.
CHOSEN = different(packaged(), computed("a100"))


def of_products(layout: str) -> list[Chosen]:
    """Kernels of the products of a layout."""
    return [c for c in CHOSEN if FAMILIES[c.config.STEM].routine == "gemm" and c.config.layout == layout]


def packed() -> list[Chosen]:
    """The kernels for packed operands that stand for those of layout `nt`."""
    kernels = {}
    for chosen in of_products(product_kinds.LAYOUT_OF_PACKED):
        variant = product_kinds.packed_variant(chosen.config, chosen.device)
        if variant is not None:
            source = source_of(variant.STEM, variant)
            kernels[chosen.device.cc, variant] = Chosen(
                chosen.device, variant, source, f"{chosen.name}-packed"
            )
    return list(kernels.values())


def of_triangles() -> list[Chosen]:
    """Kernels of layout `nt`, which SYRK and HERK take most often, for a triangle of C."""

    def source(config):
        return family_of(config.STEM).source(config, Form.TRIANGLE)

    return [
        chosen._replace(source=source(chosen.config), name=f"{chosen.name}-triangle")
        for chosen in of_products("nt")
    ]


def tightest() -> list[Chosen]:
    """The Config of each family and dtype with the fewest registers to spare: what `make test` compiles.

    Where a change of a family makes it spill, this one most likely does; of equals it is the first.
    """
    kernels: dict = {}
    for chosen in CHOSEN:
        key = chosen.config.STEM, chosen.config.dtype
        if key not in kernels or chosen.config.registers > kernels[key].config.registers:
            kernels[key] = chosen
    return list(kernels.values())


#: Of families that need no tuning, what ``source`` takes beside the Config, for a kernel with much to do.
ARGUMENTS: dict[str, tuple] = {
    "level1_map": ("rot",),
    "level1_reduce": ("nrm2",),
}


def smallest(stem: str, letter: str) -> KernelSource:
    """A kernel of the family that compiles quickly: of the chosen ones that with the shortest text."""
    if stem in FIXED:
        return FIXED[stem].source(FIXED[stem].fixed_config(letter), *ARGUMENTS.get(stem, ()))
    return source_of(stem, min(configs_of(stem, letter), key=length))


def configs_of(stem: str, letter: str) -> list:
    """The chosen Configs of a family and a dtype."""
    return [c.config for c in CHOSEN if (c.config.STEM, c.config.dtype) == (stem, letter)]


def length(config) -> int:
    """What a kernel's text grows with."""
    if FAMILIES[config.STEM].is_matrix_vector:
        return config.registers
    return config.THR_M * config.THR_N * config.BLK_K
