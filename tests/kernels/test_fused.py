"""Kernels that do TRMM and TRSM in one launch, as they are chosen: they hardly spill, or not at all."""

from __future__ import annotations

import chosen_kernels
import pytest

from pyblasgpu.database.policy import reference
from pyblasgpu.dispatch import choose
from pyblasgpu.dispatch import trsm_fused as dispatch_trsm_fused
from pyblasgpu.gpu.build.compile import compile_here
from pyblasgpu.gpu.device import known
from pyblasgpu.kernels.registry import family_of
from pyblasgpu.types import DTYPES, Triangle

pytestmark = chosen_kernels.NEEDS_COMPILER

H200 = known("h200")

TRMM = {
    (config.STEM, config, triangle): f"{letter}-{triangle.name}-{n}"
    for letter in DTYPES
    for triangle in Triangle
    for n in (512, 2048, 8192)
    if n <= reference().fused_trmm_max_order.get(letter, n)
    for config in [choose.select("gemm", DTYPES[letter], "nn", (n, n, n), H200, region=triangle).config]
}


@pytest.mark.parametrize(
    ("stem", "config", "triangle"),
    [pytest.param(*chosen, id=name) for chosen, name in TRMM.items()],
)
def test_kernels_of_trmm_do_not_spill(stem, config, triangle):
    source = family_of(stem).source(config, triangle=triangle)
    chosen_kernels.in_registers(source, H200.cc)


TRSM = {
    (config.STEM, config, triangle, layout): f"{letter}-{triangle.name}-{layout}-{n}x{r}"
    for letter, n, r in (
        ("s", 1024, 512),
        ("s", 4096, 2048),
        ("d", 2048, 512),
        ("d", 2048, 2048),
        ("c", 512, 512),
        ("c", 2048, 2048),
        ("z", 4096, 512),
    )
    for triangle, layout in zip(Triangle, ("nn", "tn", "nn", "nt"))
    for m, k in [(n, r) if triangle.on_left else (r, n)]
    for config in [dispatch_trsm_fused.choose(DTYPES[letter], layout, (m, k, n), triangle, H200).config]
}


@pytest.mark.parametrize(
    ("stem", "config", "triangle", "layout"),
    [pytest.param(*chosen, id=name) for chosen, name in TRSM.items()],
)
def test_kernels_of_trsm_hardly_spill(stem, config, triangle, layout):
    """At most ten registers, as kernels of a triangle."""
    source = family_of(stem).source(config, triangle=triangle, solved=True)
    report = compile_here(source, H200.cc).resources
    assert report.stack_bytes <= 40 and report.spill_stores <= 44 and report.spill_loads <= 80
