"""Configs of the SGEMM by pairs of FP16, its tolerances, and its kernels, compiled."""

from __future__ import annotations

from collections.abc import Iterator

import chosen_kernels
import fake_driver
import pytest

from pyblasgpu import set_math_mode
from pyblasgpu.api.explain import launches_of
from pyblasgpu.dispatch.tensor import TensorProblem, tensor_product
from pyblasgpu.errors import ConfigError
from pyblasgpu.gpu.build.compile import compile_here
from pyblasgpu.gpu.build.translate import to_ptx
from pyblasgpu.gpu.device import known, stand_in
from pyblasgpu.kernels.gemm.wgmma import guarded, pack_halves, product
from pyblasgpu.kernels.gemm.wgmma.config import GemmWgmma
from pyblasgpu.kernels.gemm.wgmma.guarded import GemmGuarded
from pyblasgpu.kernels.gemm.wgmma.image import block_of, least_element
from pyblasgpu.kernels.gemm.wgmma.pack_halves import PackHalves
from pyblasgpu.types import DTYPES

CC = (9, 0)


@pytest.mark.parametrize(
    ("k", "blk_k"), [(256, 64), (1000, 64), (16384, 256), (128, 32), (1 << 22, 256), (200, 32), (2000, 128)]
)
def test_the_errors_of_the_least_element_are_within_the_bound(k, blk_k):
    """Errors are those that docs/design/gemm_wgmma.md adds up, in units of u."""
    v, steps, blocks = 2.0**-14 / least_element(k, blk_k), blk_k // 16, -(-k // blk_k)
    assert 1 <= v <= 16
    hi = 2 * (17 * v**2 + 1) * steps
    cross = 2 * (17 * v**2 + 1) * (2 * steps) * 2.0**-11
    lost, without = 2 * 4 * v, 4 * v**2
    growth = (1 + 2.0**-11 * v) ** 2  # sums of halves beside sums of elements
    assert growth * (hi + cross + lost + without + blocks) + 4 <= k + 2


def test_small_products_leave_no_room():
    assert least_element(64, 64) is None and least_element(64, 32) is None
    assert [block_of(k) for k in (64, 128, 200, 256, 1 << 22, (1 << 22) + 1)] == [None, 32, 64, 64, 256, None]
    assert [block_of(k) for k in (1024, 2048, 4096)] == [64, 128, 256]


@pytest.mark.parametrize(
    "wrong",
    [
        {"BLK_M": 96},
        {"BLK_N": 12},
        {"BLK_N": 256},
        {"BLK_K": 48},
        {"stages": 1},
        {"cluster": 3},
        {"cluster": 2, "BLK_N": 24},
        {"PANEL": 96},
        {"BLK_M": 64, "ordered": True},
        {"stages": 7},
        {"ordered": True, "BLK_K": 256},
        {"dtype": "d"},
    ],
)
def test_configs_without_a_kernel(wrong):
    with pytest.raises(ConfigError):
        GemmWgmma(**wrong)


@pytest.fixture
def forgets() -> Iterator[None]:
    """No device that is described is known to later tests."""
    yield
    fake_driver.forget()


def launched(routine: str, n: int, device: str = "h200") -> list[str]:
    """The kernels of a call in float32 under the mode."""
    meant = stand_in(known(device))
    with set_math_mode("tensor"):
        launches = launches_of(routine, DTYPES["s"], n, n, n, meant.ordinal, 1, None)
    return [entry.source.name for entry in launches.entries]


@pytest.mark.usefixtures("forgets")
def test_an_operand_that_is_both_factors_is_packed_once():
    assert launched("gemm", 1024) == ["pack_halves", "gemm_wgmma", "gemm_guarded"]
    more = ["pack_triples", "gemm_triples"]
    assert launched("gemm", 4096) == ["equilibrate", "pack_halves", "gemm_wgmma", *more, "gemm_guarded"]
    assert launched("syrk", 4096) == ["pack_halves", "gemm_wgmma", "gemm_guarded"]


@pytest.mark.usefixtures("forgets")
@pytest.mark.parametrize("batch", [1, 2, 5])
def test_the_images_of_a_batch_follow_each_other(batch):
    """Images of A have a unit each, and then those of B, with room for all."""
    m, n, k = 1100, 1300, 2000
    meant = stand_in(known("h200"))
    launches = launches_of("gemm", DTYPES["s"], m, n, k, meant.ordinal, batch, "tensor")
    (entry,) = [each for each in launches.entries if each.source.name == "pack_halves"]
    how = tensor_product(TensorProblem(DTYPES["s"], "nn", (m, n, k, batch), meant))
    of_a, of_b = (batch * how.pack.image(extent, k).flags for extent in (m, n))
    assert entry.integers[5] == of_a and entry.grid[0] == of_a + of_b
    words = how.pack.rows * how.pack.BLK_K + how.pack.rows + 1  # of a unit: image, scales, flag
    assert launches.workspace_bytes >= 4 * entry.grid[0] * words


@pytest.mark.usefixtures("forgets")
def test_what_tensor_cores_do_not_serve_runs_as_without():
    assert set(launched("gemm", 256)) == {"gemm_simt"}
    assert "gemm_wgmma" not in launched("gemm", 2048, "a100") + launched("gemm", 2048, "b200")


@pytest.mark.parametrize("wrong", [{"BLK": 100}, {"BLK_K": 48}, {"threads": 96}, {"dtype": "z"}])
def test_packs_without_a_kernel(wrong):
    with pytest.raises(ConfigError):
        PackHalves(**wrong)


@pytest.mark.usefixtures("forgets")
@pytest.mark.parametrize(("n", "columns"), [(1024, 64), (1536, 64), (2048, 128), (4096, 128)])
def test_small_results_have_narrow_tiles(n, columns):
    """So that one wave has a tile for every multiprocessor, or the last wave few that idle."""
    how = tensor_product(TensorProblem(DTYPES["s"], "nn", (n, n, n, 1), stand_in(known("h200"))))
    assert columns == how.choice.config.BLK_N


@pytest.mark.parametrize("wrong", [{"PANEL": 96}, {"persistent": True}, {"BLK_K": 5}])
def test_guarded_products_without_a_kernel(wrong):
    with pytest.raises(ConfigError):
        GemmGuarded(dtype="s", **wrong)


@chosen_kernels.NEEDS_COMPILER
@pytest.mark.parametrize(
    "fields", [{"BLK_K": 32, "cluster": 1}, {"BLK_K": 256}, {"BLK_N": 64}, {"ordered": True}]
)
def test_a_warpgroup_keeps_all_sums_in_registers(fields):
    """Linked as a whole program, with registers that move from the copying warps to the multiplying ones."""
    compiled = compile_here(product.source(GemmWgmma(**fields)), CC)
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
