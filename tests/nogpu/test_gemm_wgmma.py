"""Configs of the SGEMM by pairs of FP16, its tolerances, and its kernels, compiled."""

from __future__ import annotations

import chosen_kernels
import pytest

from pyblasgpu.errors import ConfigError
from pyblasgpu.gpu.compile import compile_here, to_ptx
from pyblasgpu.kernels.gemm.wgmma import guarded, pack_halves, product
from pyblasgpu.kernels.gemm.wgmma.config import GemmWgmma
from pyblasgpu.kernels.gemm.wgmma.guarded import GemmGuarded
from pyblasgpu.kernels.gemm.wgmma.image import tolerances
from pyblasgpu.kernels.gemm.wgmma.pack_halves import PackHalves

U = 2.0**-24
CC = (9, 0)


@pytest.mark.parametrize(("k", "blk_k"), [(256, 64), (1024, 64), (16384, 64), (128, 32)])
def test_tolerances_are_what_the_bound_leaves(k, blk_k):
    most_lo, most_lost = tolerances(k, blk_k)
    sums = 36 * (blk_k // 16) * (1 + 2**-5 + 16 * most_lo) + 1.05 * k / blk_k + 4
    assert most_lo**2 / U + 2 * most_lost / U + sums <= k + 2
    assert most_lo >= 2.0**-11 and most_lost >= 2.0**-23  # what elements in range need
    assert tolerances(64, 64) is None


@pytest.mark.parametrize(
    "wrong",
    [
        {"BLK_M": 96},
        {"BLK_N": 12},
        {"BLK_N": 256},
        {"BLK_K": 48},
        {"stages": 1},
        {"stages": 7},
        {"dtype": "d"},
    ],
)
def test_configs_without_a_kernel(wrong):
    with pytest.raises(ConfigError):
        GemmWgmma(**wrong)


@pytest.mark.parametrize("wrong", [{"BLK": 100}, {"BLK_K": 48}, {"threads": 96}, {"dtype": "z"}])
def test_packs_without_a_kernel(wrong):
    with pytest.raises(ConfigError):
        PackHalves(**wrong)


@pytest.mark.parametrize("wrong", [{"PANEL_M": 96}, {"persistent": True}, {"BLK_K": 5}])
def test_guarded_products_without_a_kernel(wrong):
    with pytest.raises(ConfigError):
        GemmGuarded(dtype="s", **wrong)


@chosen_kernels.NEEDS_COMPILER
@pytest.mark.parametrize("blk_k", [64, 32])
def test_a_warpgroup_keeps_all_sums_in_registers(blk_k):
    """Linked as a whole program, with registers that move from the copying warps to the multiplying ones."""
    compiled = compile_here(product.source(GemmWgmma(BLK_K=blk_k)), CC)
    report = compiled.resources
    assert (report.stack_bytes, report.spill_stores, report.spill_loads) == (0, 0, 0)
    assert report.registers == 168 and "gemm_wgmma" in compiled.entry


@chosen_kernels.NEEDS_COMPILER
def test_the_others_keep_everything_in_registers():
    for source in (pack_halves.source(PackHalves()), guarded.source(GemmGuarded(dtype="s"))):
        report = compile_here(source, CC).resources
        assert (report.stack_bytes, report.spill_stores, report.spill_loads) == (0, 0, 0)


@chosen_kernels.NEEDS_COMPILER
def test_splitting_flushes_nothing_to_zero():
    ptx = to_ptx(pack_halves.source(PackHalves(BLK_K=32)), CC)
    assert ".ftz" not in ptx and ".f64" not in ptx
