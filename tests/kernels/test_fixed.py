"""Kernels without tuned values, and three products for a complex one, compiled: nothing spills."""

from __future__ import annotations

from itertools import product

import pytest
from chosen_kernels import NEEDS_COMPILER, in_registers

from pyblasgpu.database import FIXED
from pyblasgpu.dispatch import choose
from pyblasgpu.dispatch.catalogue import fixed_kernels
from pyblasgpu.gpu.build.translate import to_ptx
from pyblasgpu.gpu.device import known
from pyblasgpu.kernels.copy import pack
from pyblasgpu.kernels.copy.packing import Packing
from pyblasgpu.kernels.factor.lu import (
    gesv_small,
    getrf_column,
    getrf_panel,
    getrf_small,
    getrs_small,
    laswp,
    pivot_moves,
)
from pyblasgpu.kernels.gemm import mma as gemm_mma
from pyblasgpu.kernels.registry import family_of
from pyblasgpu.kernels.trsm import small as trsm_small
from pyblasgpu.kernels.trsv import kernel as trsv
from pyblasgpu.tuning.compile_pool import complaint
from pyblasgpu.types import DTYPES

pytestmark = NEEDS_COMPILER

CC, AMPERE = (9, 0), (8, 0)
#: Families, with letters and architectures.
PLAIN = [
    *product(["split_k_reduce", "symmetrize"], DTYPES, [CC]),
    *product(["level1_map", "level1_reduce"], DTYPES, [CC, AMPERE]),
    *product(["gemv", "symv", "symv_small", "symv_sum", "ger"], "sz", [CC]),
    *product(["determinant"], DTYPES, [CC, AMPERE]),
    *product(["permute_rows"], "sd", [CC]),
    ("pivot_order", "s", CC),
]
#: Those whose single precision stays single.
LEAVES = [
    *product(["copy_scaled", "ragged_copy", "trmm_small"], DTYPES, [CC]),
    *product(
        ["potrf_leaf", "potrf_small", "trtri_leaf", "lauum_leaf", "zero_diagonal"], DTYPES, [CC, AMPERE]
    ),
    *product(
        ["geqrf_small", "geqrf_panel", "geqrf_tall", "larft_leaf", "reflector_copy"], DTYPES, [CC, AMPERE]
    ),
    *product(["geqp3_panel", "orhr_leaf"], DTYPES, [CC]),
    *product(["sytrd", "sytrd_resident", "band_chase"], DTYPES, [CC]),
    *product(["svd_correction", "svd_results"], "dz", [CC]),
    *product(["ormtr"], DTYPES, [CC]),
    *product(["jacobi_thread"], DTYPES, [CC]),
    *product(["jacobi_eigh"], DTYPES, [AMPERE]),
    *product(["ldl_triangle", "ldl_rows", "sytrf_panel"], "sd", [CC]),
]


@pytest.mark.parametrize("stem, letter, cc", PLAIN)
def test_everything_stays_in_registers(stem, letter, cc):
    family = family_of(stem)
    configs = [family.fixed_config(letter)]
    if family.is_tuned:
        configs = [config for layout in family.layouts for config in family.untuned(letter, layout)]
    for source in {source for config in configs for source in family.plain_sources(config)}:
        in_registers(source, cc)


def in_single(source, letter, cc):
    """In registers, and without a double where there should be none."""
    report = in_registers(source, cc)
    if letter in "sc":
        assert ".f64" not in to_ptx(source, cc)
    return report


@pytest.mark.parametrize("stem, letter, cc", LEAVES)
def test_single_precision_stays_single(stem, letter, cc):
    family = FIXED[stem]
    if letter not in family.dtypes:
        pytest.skip("complex elements are reals to it")
    config = family.fixed_config(letter)
    if stem == "geqrf_panel":
        config = config.on(known("h200" if cc == CC else "a100"))
    in_single(family.source(config), letter, cc)


@pytest.mark.parametrize("layout", ["nn", "tn"])
@pytest.mark.parametrize("n", [64, 512, 2048, 8192])
def test_three_products(n, layout):
    chosen = choose.select("gemm", DTYPES["z"], layout, (n, n, n), known("h200"), three_m=True)
    assert chosen.config.three_m and chosen.origin.startswith("packaged")
    in_registers(gemm_mma.source(chosen.config), CC)


@pytest.mark.parametrize("name", ["h200", "a100"])
@pytest.mark.parametrize("columns", [1, 2, 4])
@pytest.mark.parametrize("letter", DTYPES)
def test_few_right_hand_sides(letter, columns, name):
    device = known(name)
    config = FIXED[trsv.STEM].config(letter, "", {}).specialize(columns, device.shared_per_block)
    assert complaint(config, in_registers(trsv.source(config), device.cc), device) == ("ok", "")


@pytest.mark.parametrize("cc", [AMPERE, CC])
@pytest.mark.parametrize("letter", DTYPES)
def test_packing_and_small_triangles(letter, cc):
    for packing in (Packing("row", 96, 8), Packing("cbl", 128, 16, 4)):
        in_registers(pack.source(FIXED[pack.STEM].config(letter, "", {}).specialize(packing)), cc)
    small = FIXED[trsm_small.STEM].config(letter, "", {})
    in_registers(trsm_small.source(small.specialize(small.max_rows, 64)), cc)


@pytest.mark.parametrize("name", ["h200", "a100"])
@pytest.mark.parametrize(
    "stem, letter",
    [
        *product(["jacobi_svd", "gemm_grouped", "trmm_stack"], DTYPES),
        *product(["jacobi_columns"], DTYPES),
        *product(["tridiagonal_merge"], "sd"),
        *product(["geqp3"], "sz"),
        ("sytrf_panel", "z"),
    ],
)
def test_kernels_of_all_sizes(stem, letter, name):
    device = known(name)
    if not family_of(stem).runs_on(device):
        pytest.skip("not for this architecture")
    sources = list(fixed_kernels(stem, letter, device))
    assert len(sources) > 1
    for source in sources:
        report = in_single(source, letter, device.cc)
        assert device.occupancy(source.threads, report.registers, source.shared_bytes)


# -------------------------------------------------------------------------------------------- factors of LU


@pytest.mark.parametrize("name, sizes", [("h200", (64, 128, 256, 4000, 8000, 20000)), ("a100", (256,))])
@pytest.mark.parametrize("letter", DTYPES)
def test_panels_keep_rows_in_registers(letter, name, sizes):
    device, best = known(name), FIXED[getrf_panel.STEM].fixed_config(letter)
    for config in {best.specialize(rows, device) for rows in sizes}:
        report = in_registers(getrf_panel.source(config), device.cc)
        blocks = device.occupancy(config.threads, report.registers, config.shared_bytes) * device.sm_count
        assert blocks >= config.resident(device)  # which `specialize` counts on


@pytest.mark.parametrize("letter", DTYPES)
def test_rows_are_interchanged_in_registers(letter):
    for source in (laswp.source(laswp.Laswp(letter)), pivot_moves.source(pivot_moves.PivotMoves("s"))):
        in_registers(source, CC)


@pytest.mark.parametrize("name", ["h200", "a100"])
@pytest.mark.parametrize("letter", DTYPES)
def test_the_catalogue_has_the_panels_that_serve(letter, name):
    device, best = known(name), FIXED[getrf_panel.STEM].fixed_config(letter)
    listed = set(fixed_kernels(getrf_panel.STEM, letter, device))
    for rows in (1, 20, 33, 64, 65, 10**4, 20000, 50000):
        assert getrf_panel.source(best.specialize(rows, device)) in listed


@pytest.mark.parametrize("name", ["h200", "a100"])
@pytest.mark.parametrize("letter", DTYPES)
def test_small_matrices_stay_in_registers(letter, name):
    device, sources = known(name), []
    for kernels in (getrf_small, gesv_small):
        best = FIXED[kernels.STEM].fixed_config(letter)
        sources += [kernels.source(best.specialize(order, device)) for order in best.WIDTHS]
    sources += [getrs_small.source(each) for each in getrs_small.GetrsSmall(letter).variants]
    sources.append(getrf_column.source(getrf_column.GetrfColumn(letter)))
    for source in sources:
        in_single(source, letter, device.cc)
