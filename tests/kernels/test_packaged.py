"""Every Config that the package chooses, compiled: nothing spills."""

from __future__ import annotations

import chosen_kernels
import pytest

from pyblasgpu.gpu.build.compile import compile_here
from pyblasgpu.tuning.compile_pool import complaint

pytestmark = chosen_kernels.NEEDS_COMPILER


@pytest.mark.parametrize("chosen", chosen_kernels.parameters(chosen_kernels.CHOSEN))
def test_a_chosen_config_keeps_everything_in_registers(chosen):
    report = chosen_kernels.in_registers(chosen.source, chosen.device.cc)
    assert report.registers > 0
    assert complaint(chosen.config, report, chosen.device) == ("ok", "")


@pytest.mark.parametrize("chosen", chosen_kernels.parameters(chosen_kernels.packed()))
def test_so_does_its_variant_for_packed_operands(chosen):
    report = chosen_kernels.in_registers(chosen.source, chosen.device.cc)
    assert complaint(chosen.config, report, chosen.device) == ("ok", "")


@pytest.mark.parametrize("chosen", chosen_kernels.parameters(chosen_kernels.of_triangles()))
def test_the_kernel_of_a_triangle_hardly_spills(chosen):
    """At most eleven registers, of those that wait for the end of a tile: its masks cost a few more."""
    report = compile_here(chosen.source, chosen.device.cc).resources
    assert report.stack_bytes <= 48 and report.spill_stores <= 44 and report.spill_loads <= 80
