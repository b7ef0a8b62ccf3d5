"""Kernels of LU factors, compiled for all architectures' sizes: nothing spills."""

from __future__ import annotations

import chosen_kernels
import pytest

from pyblasgpu.database import FIXED
from pyblasgpu.dispatch.catalogue import fixed_kernels
from pyblasgpu.gpu.build.compile import compile_here
from pyblasgpu.gpu.build.translate import to_ptx
from pyblasgpu.gpu.device import known
from pyblasgpu.kernels.factor import getrf_column, getrf_panel, getrf_small, getrs_small, laswp, pivot_moves
from pyblasgpu.types import DTYPES

pytestmark = chosen_kernels.NEEDS_COMPILER


@pytest.mark.parametrize("name, sizes", [("h200", (64, 128, 256, 4000, 8000, 20000)), ("a100", (256,))])
@pytest.mark.parametrize("letter", DTYPES)
def test_panels_keep_rows_in_registers(letter, name, sizes):
    device, best = known(name), FIXED[getrf_panel.STEM].fixed_config(letter)
    for config in {best.specialize(rows, device) for rows in sizes}:
        report = compile_here(getrf_panel.source(config), device.cc).resources
        assert (report.stack_bytes, report.spill_stores, report.spill_loads) == (0, 0, 0)
        blocks = device.occupancy(config.threads, report.registers, config.shared_bytes) * device.sm_count
        assert blocks >= config.resident(device)  # which `specialize` counts on


@pytest.mark.parametrize("letter", DTYPES)
def test_rows_are_interchanged_in_registers(letter):
    for source in (laswp.source(laswp.Laswp(letter)), pivot_moves.source(pivot_moves.PivotMoves("s"))):
        report = compile_here(source, (9, 0)).resources
        assert (report.stack_bytes, report.spill_stores, report.spill_loads) == (0, 0, 0)


@pytest.mark.parametrize("name", ["h200", "a100"])
@pytest.mark.parametrize("letter", DTYPES)
def test_the_catalogue_has_the_panels_that_serve(letter, name):
    device, best = known(name), FIXED[getrf_panel.STEM].fixed_config(letter)
    listed = set(fixed_kernels(getrf_panel.STEM, letter, device))
    for rows in (1, 20, 33, 64, 65, 10**4, 50000):
        assert getrf_panel.source(best.specialize(rows, device)) in listed


@pytest.mark.parametrize("name", ["h200", "a100"])
@pytest.mark.parametrize("letter", DTYPES)
def test_small_matrices_stay_in_registers(letter, name):
    device, best = known(name), FIXED[getrf_small.STEM].fixed_config(letter)
    others = (
        getrs_small.source(getrs_small.GetrsSmall(letter)),
        getrf_column.source(getrf_column.GetrfColumn(letter)),
    )
    small = [getrf_small.source(best.specialize(order, device)) for order in (8, 32)]
    for source in (*small, *others):
        report = compile_here(source, device.cc).resources
        assert (report.stack_bytes, report.spill_stores, report.spill_loads) == (0, 0, 0)
        if letter in "sc":
            assert ".f64" not in to_ptx(source, device.cc)
