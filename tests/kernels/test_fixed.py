"""Kernels without tuned values, and three products for a complex one, compiled: nothing spills."""

from __future__ import annotations

import chosen_kernels
import pytest

from pyblasgpu.database import FIXED
from pyblasgpu.dispatch import choose
from pyblasgpu.gpu.build.compile import compile_here
from pyblasgpu.gpu.build.translate import to_ptx
from pyblasgpu.gpu.device import known
from pyblasgpu.kernels.copy import copy_scaled, pack, split_k_reduce, symmetrize
from pyblasgpu.kernels.copy.packing import Packing
from pyblasgpu.kernels.gemm import mma as gemm_mma
from pyblasgpu.kernels.trsm import small as trsm_small
from pyblasgpu.kernels.trsv import kernel as trsv
from pyblasgpu.tuning.compile_pool import complaint
from pyblasgpu.types import DTYPES

pytestmark = chosen_kernels.NEEDS_COMPILER

CC = (9, 0)


@pytest.mark.parametrize("layout", ["nn", "tn"])
@pytest.mark.parametrize("n", [64, 512, 2048, 8192])
def test_three_products_keep_everything_in_registers(n, layout):
    chosen = choose.select("gemm", DTYPES["z"], layout, (n, n, n), known("h200"), three_m=True)
    assert chosen.config.three_m and chosen.origin.startswith("packaged")
    report = compile_here(gemm_mma.source(chosen.config), CC).resources
    assert (report.stack_bytes, report.spill_stores, report.spill_loads) == (0, 0, 0)


@pytest.mark.parametrize("letter", DTYPES)
def test_sums_of_partials_keep_everything_in_registers(letter):
    config = FIXED[split_k_reduce.STEM].config(letter, "", {})
    report = compile_here(split_k_reduce.source(config), CC).resources
    assert (report.stack_bytes, report.spill_stores, report.spill_loads) == (0, 0, 0)


@pytest.mark.parametrize("letter", DTYPES)
def test_mirror_images_are_added_in_registers(letter):
    config = FIXED[symmetrize.STEM].config(letter, "", {})
    report = compile_here(symmetrize.source(config), CC).resources
    assert (report.stack_bytes, report.spill_stores, report.spill_loads) == (0, 0, 0)


@pytest.mark.parametrize("name", ["h200", "a100"])
@pytest.mark.parametrize("columns", [1, 2, 4])
@pytest.mark.parametrize("letter", DTYPES)
def test_few_right_hand_sides_are_solved_in_registers(letter, columns, name):
    device = known(name)
    config = FIXED[trsv.STEM].config(letter, "", {}).specialize(columns, device.shared_per_block)
    report = compile_here(trsv.source(config), device.cc).resources
    assert (report.stack_bytes, report.spill_stores, report.spill_loads) == (0, 0, 0)
    assert complaint(config, report, device) == ("ok", "")


@pytest.mark.parametrize("cc", [(8, 0), (9, 0)])
@pytest.mark.parametrize("letter", DTYPES)
def test_packing_keeps_everything_in_registers(letter, cc):
    for packing in (Packing("row", 96, 8), Packing("cbl", 128, 16, 4)):
        config = FIXED[pack.STEM].config(letter, "", {}).specialize(packing)
        report = compile_here(pack.source(config), cc).resources
        assert (report.stack_bytes, report.spill_stores, report.spill_loads) == (0, 0, 0)


@pytest.mark.parametrize("letter", DTYPES)
def test_copies_keep_everything_in_registers(letter):
    config = FIXED[copy_scaled.STEM].config(letter, "", {})
    source = copy_scaled.source(config)
    report = compile_here(source, CC).resources
    assert (report.stack_bytes, report.spill_stores, report.spill_loads) == (0, 0, 0)
    if letter in "sc":
        assert ".f64" not in to_ptx(source, CC)


@pytest.mark.parametrize("cc", [(8, 0), (9, 0)])
@pytest.mark.parametrize("letter", DTYPES)
def test_small_triangles_keep_everything_in_registers(letter, cc):
    config = FIXED[trsm_small.STEM].config(letter, "", {})
    largest = config.specialize(config.max_rows, 64)
    report = compile_here(trsm_small.source(largest), cc).resources
    assert (report.stack_bytes, report.spill_stores, report.spill_loads) == (0, 0, 0)


@pytest.mark.parametrize("cc", [(8, 0), (9, 0)])
@pytest.mark.parametrize("letter", DTYPES)
@pytest.mark.parametrize("stem", ["level1_map", "level1_reduce"])
def test_vectors_stay_in_registers(stem, letter, cc):
    family = FIXED[stem]
    for source in family.plain_sources(family.fixed_config(letter)):
        report = compile_here(source, cc).resources
        assert (report.stack_bytes, report.spill_stores, report.spill_loads) == (0, 0, 0)
