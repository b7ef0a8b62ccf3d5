"""How the fused TRMM is chosen, without a device."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pyblasgpu.dispatch import choose, product_kinds
from pyblasgpu.dispatch.algorithms import trmm_algorithm
from pyblasgpu.dispatch.overrides import override
from pyblasgpu.dispatch.product_kinds import fused_variant
from pyblasgpu.errors import BackendUnavailable
from pyblasgpu.gpu.device import known, stand_ins
from pyblasgpu.kernels.gemm.fused import tile_counts, tile_orders
from pyblasgpu.model.score import in_place_cycles
from pyblasgpu.operands import Operand
from pyblasgpu.routines.launch_list import LaunchList
from pyblasgpu.routines.level3 import trmm_fused
from pyblasgpu.types import DTYPES, Side, Triangle, Uplo

H200 = known("h200")


@pytest.fixture(autouse=True)
def on_an_h200(monkeypatch):
    monkeypatch.setitem(stand_ins, 0, H200)


def planned(letter, order, others, side=Side.LEFT, uplo=Uplo.LOWER, **changes):
    dtype = DTYPES[letter]

    def dense(rows: int, cols: int) -> Operand:
        return Operand(1 << 30, rows, cols, 1, rows, dtype, batch_stride=rows * cols)

    t, b = dense(order, order), dense(*((order, others) if side is Side.LEFT else (others, order)))
    if trmm_algorithm(dtype, order, others, 1, H200).name != "trmm_fused":
        return None
    return trmm_fused.plan(LaunchList(dtype, 0), t, b._replace(**changes), side, uplo)


@pytest.mark.parametrize("letter", DTYPES)
def test_squares_are_one_launch_but_for_leaves(letter):
    assert planned(letter, 64, 64) is None
    assert planned(letter, 1000, 1000) is not None


def test_the_triangle_of_each_variant():
    for side, uplo, triangle in (
        (Side.LEFT, Uplo.LOWER, Triangle.LOWER_LEFT),
        (Side.LEFT, Uplo.UPPER, Triangle.UPPER_LEFT),
        (Side.RIGHT, Uplo.LOWER, Triangle.LOWER_RIGHT),
        (Side.RIGHT, Uplo.UPPER, Triangle.UPPER_RIGHT),
    ):
        assert planned("d", 512, 300, side, uplo).operands.triangle == triangle
    # a row-major B is the transposed problem
    by_rows = planned("d", 512, 512, row_stride=512, col_stride=1)
    assert by_rows.operands.triangle == Triangle.UPPER_RIGHT


def test_what_takes_the_recursion():
    assert planned("d", 512, 512, batch=3) is None
    assert planned("d", 512, 512, row_stride=2, col_stride=1024) is None
    assert planned("d", 4096, 8) is None  # one column of tiles: most of the device would wait
    with override("trmm", 128):
        assert planned("d", 512, 512) is None
    with override("trmm_algorithm", "recursion"):
        assert planned("d", 512, 512) is None
    with override("trmm_algorithm", "trmm_fused"):
        assert planned("d", 4096, 8) is not None


@pytest.mark.parametrize("letter", DTYPES)
def test_no_more_workspace_than_triangular_routines_may_take(letter):
    job = planned(letter, 16384, 16384) or planned(letter, 1024, 1024)
    _, c, triangle = job.operands
    levels, strips = tile_counts(job.choice.config, triangle, c.rows, c.cols)
    bytes_taken = DTYPES[letter].itemsize * levels * (job.block**2 + strips)
    assert bytes_taken <= trmm_fused.most_workspace(c)


def test_work_in_levels():
    """A tile of the whole order takes longer than the mean one, and many tiles more than one."""
    chosen = choose.select(
        "gemm", DTYPES["d"], "nn", (4096, 4096, 4096), H200, region=Triangle.LOWER_LEFT
    ).config
    share, longest = in_place_cycles(chosen, (4096, 4096, 4096), H200, Triangle.LOWER_LEFT)
    fewer, same = in_place_cycles(chosen, (4096, 2048, 4096), H200, Triangle.LOWER_LEFT)
    assert longest < share and same == longest and fewer < 0.6 * share


def test_without_a_config_for_it_the_choice_says_so(monkeypatch, request):
    monkeypatch.setattr(product_kinds, "fused_variant", lambda config, triangle: None)

    def forget():
        product_kinds.variant_of.cache_clear()
        choose.reload()

    forget()
    request.addfinalizer(forget)
    with pytest.raises(BackendUnavailable, match="in place"):
        choose.select("gemm", DTYPES["d"], "nn", (999, 999, 999), H200, region=Triangle.LOWER_LEFT)
    assert planned("d", 999, 999) is None


def test_a_config_that_is_asked_for_and_cannot_takes_the_recursion():
    chosen = choose.select(
        "gemm", DTYPES["d"], "nn", (999, 999, 999), H200, region=Triangle.LOWER_LEFT
    ).config
    with override(chosen.STEM, replace(chosen, stages=1, prefetch=False, through_l1=False)):
        assert planned("d", 999, 999) is None
    with override(chosen.STEM, chosen):
        assert planned("d", 999, 999).choice.origin == "override"


def test_a_variant_takes_one_tile_a_block():
    chosen = choose.select("gemm", DTYPES["d"], "nn", (4096,) * 3, H200).config
    variant = fused_variant(chosen, Triangle.LOWER_LEFT)
    assert not variant.persistent and tile_orders(variant, Triangle.LOWER_LEFT) == (
        chosen.BLK_M,
        chosen.BLK_N,
    )
