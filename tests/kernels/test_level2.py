"""The kernels of level 2, compiled: everything stays in registers, whatever the loads."""

from __future__ import annotations

import chosen_kernels
import pytest

from pyblasgpu.database import FIXED
from pyblasgpu.gpu.compile import compile_here

pytestmark = chosen_kernels.NEEDS_COMPILER


@pytest.mark.parametrize("stem", ["gemv_n", "gemv_t", "symv", "symv_sum", "ger"])
@pytest.mark.parametrize("letter", "sz")
def test_everything_stays_in_registers(letter, stem):
    family = FIXED[stem]
    config = family.fixed_config(letter)
    shapes = (config, config.with_alignment(1)) if hasattr(config, "with_alignment") else (config,)
    for source in map(family.source, shapes):
        report = compile_here(source, (9, 0)).resources
        assert (report.stack_bytes, report.spill_stores, report.spill_loads) == (0, 0, 0), source.config
