"""The kernels of level 2, compiled: everything stays in registers, whatever the loads."""

from __future__ import annotations

import chosen_kernels
import pytest

from pyblasgpu.gpu.build.compile import compile_here
from pyblasgpu.kernels.registry import family_of

pytestmark = chosen_kernels.NEEDS_COMPILER


@pytest.mark.parametrize("stem", ["gemv", "symv", "symv_small", "symv_sum", "ger"])
@pytest.mark.parametrize("letter", "sz")
def test_everything_stays_in_registers(letter, stem):
    family = family_of(stem)
    configs = [family.fixed_config(letter)]
    if family.is_tuned:
        configs = [c for layout in family.layouts for c in family.untuned(letter, layout)]
    for source in {source for config in configs for source in family.plain_sources(config)}:
        report = compile_here(source, (9, 0)).resources
        assert (report.stack_bytes, report.spill_stores, report.spill_loads) == (0, 0, 0), source.config
