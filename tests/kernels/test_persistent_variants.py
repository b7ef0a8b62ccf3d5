"""Persistent variants that products take, compiled: nothing spills."""

from __future__ import annotations

import chosen_kernels
import pytest

from benchmarks.kernels import as_it_runs, choice_of
from pyblasgpu.bench.command import SHAPES
from pyblasgpu.dispatch.choose import tuned_configs
from pyblasgpu.gpu.compile import compile_here
from pyblasgpu.gpu.device import known
from pyblasgpu.tuning.compile_pool import complaint, source_of
from pyblasgpu.types import DTYPES

pytestmark = chosen_kernels.NEEDS_COMPILER

H200 = known("h200")
LAYOUTS = "nn", "nt", "tn", "tt"


def chosen_twins(letter: str) -> set:
    """Kernels of the variants that products of `letter` take, as they run."""
    found, dtype = set(), DTYPES[letter]
    shapes = [(n, n, n) for n in range(64, 8193, 61)] + list(SHAPES["awkward"])
    for layout in LAYOUTS:
        for shape in shapes:
            config = choice_of(dtype, layout, shape, H200).config
            if config not in tuned_configs("gemm", dtype, config.layout, H200):
                found.add(as_it_runs(config, layout, shape) if config.layout == layout else config)
    return found


@pytest.mark.parametrize("letter", DTYPES)
def test_a_variant_that_is_chosen_keeps_everything_in_registers(letter):
    for config in chosen_twins(letter):
        report = compile_here(source_of(config.STEM, config), H200.cc).resources
        assert (report.stack_bytes, report.spill_stores, report.spill_loads) == (0, 0, 0), config
        assert complaint(config, report, H200) == ("ok", "")
