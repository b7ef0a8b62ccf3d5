"""How the fused TRSM is chosen, without a device."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import NamedTuple

import fake_kernels
import pytest

from pyblasgpu.dispatch import trsm_fused as dispatch_trsm_fused
from pyblasgpu.dispatch import trsm_fused_candidates
from pyblasgpu.dispatch.algorithms import trsm_algorithm
from pyblasgpu.dispatch.overrides import Algorithm, KernelChoice, override
from pyblasgpu.errors import BackendUnavailable
from pyblasgpu.gpu import workspace
from pyblasgpu.gpu.device import known, stand_ins
from pyblasgpu.kernels.gemm.fused import FLAG_STRIDE, tile_counts
from pyblasgpu.model.trsm_fused import cycles
from pyblasgpu.operands import Operand
from pyblasgpu.routines.launch_list import LaunchList
from pyblasgpu.routines.level3 import trsm_fused
from pyblasgpu.routines.level3.triangular import fused_operands, on_left
from pyblasgpu.routines.level3.trsm import launch_list
from pyblasgpu.types import DTYPES, Diag, Side, Triangle, Uplo

H200 = known("h200")


@pytest.fixture(autouse=True)
def on_an_h200(monkeypatch):
    monkeypatch.setitem(stand_ins, 0, H200)


@pytest.fixture
def kernels(monkeypatch):
    return fake_kernels.install(monkeypatch)


def list_of(letter, order, others) -> LaunchList:
    """The launch list of a call."""

    def dense(rows: int, cols: int) -> Operand:
        return Operand(1 << 30, rows, cols, 1, rows, DTYPES[letter], batch_stride=rows * cols)

    launches = launch_list(
        1, dense(order, order), dense(order, others), side=Side.LEFT, uplo=Uplo.LOWER, diag=Diag.NON_UNIT
    )
    assert launches is not None
    return launches


class Planned(NamedTuple):
    """The largest triangle that is solved in one launch."""

    order: int
    choice: KernelChoice
    triangle: Triangle


def planned(letter, order, others, side=Side.LEFT, uplo=Uplo.LOWER, **changes) -> Planned | None:
    dtype = DTYPES[letter]
    launches = LaunchList(dtype, 0)

    def dense(rows: int, cols: int) -> Operand:
        return Operand(1 << 30, rows, cols, 1, rows, dtype, batch_stride=rows * cols)

    t, b = dense(order, order), dense(*((order, others) if side is Side.LEFT else (others, order)))
    system = on_left(t, b._replace(**changes), side, uplo).oriented
    algorithm = trsm_algorithm(dtype, system.b.rows, system.b.cols, system.b.batch, H200)
    choices = trsm_fused.plan(launches, system, algorithm)
    if not choices:
        return None
    largest = max(choices)
    t, b, uplo, _ = system.block(0, largest)
    operands = fused_operands(t, b, Side.LEFT, uplo)
    assert operands is not None
    return Planned(largest, choices[largest], operands.triangle)


@pytest.mark.parametrize("letter", DTYPES)
def test_triangles_of_middling_size_are_one_launch(letter):
    """And large ones end in some of 1024 or 2048 rows."""
    assert planned(letter, 2048, 512).order == 2048
    assert (planned(letter, 256, 512) is None) == (letter != "c")
    assert planned(letter, 8192, 8192).order in (1024, 2048)


def test_the_triangle_of_each_variant():
    for side, uplo, triangle in (
        (Side.LEFT, Uplo.LOWER, Triangle.LOWER_LEFT),
        (Side.LEFT, Uplo.UPPER, Triangle.UPPER_LEFT),
        (Side.RIGHT, Uplo.LOWER, Triangle.LOWER_RIGHT),
        (Side.RIGHT, Uplo.UPPER, Triangle.UPPER_RIGHT),
    ):
        assert planned("c", 512, 300, side, uplo).triangle == triangle


def test_what_takes_the_recursion():
    with override("trsm_algorithm", "trsm_fused"):
        assert planned("c", 512, 512, batch=3) is None
        assert planned("c", 512, 512, row_stride=2, col_stride=1024) is None
        assert planned("c", 512, 4) is None  # few right-hand sides are trsv's
        assert planned("c", 64, 1 << 20) is None  # more strips than flags
        assert planned("c", 64, 64) is not None
    with override("trsm_algorithm", "recursion"):
        assert planned("c", 512, 512) is None
    with override("trsm", 128):
        assert planned("c", 512, 512) is None


@pytest.mark.parametrize("letter", DTYPES)
def test_no_more_strips_than_flags(letter):
    with override("trsm_algorithm", "trsm_fused"):
        for others in (512, 4096, 8192, 20000):
            plan = planned(letter, 1024, others)
            assert plan is not None or others > 8192
            if plan is not None:
                _, strips = tile_counts(plan.choice.config, plan.triangle, 1024, others)
                assert strips * FLAG_STRIDE <= workspace.FLAGS


def test_one_launch_and_no_workspace(kernels):
    launches = list_of("d", 2048, 512)
    assert len(launches.entries) == 1 and launches.workspace_bytes == 0 and launches.uses_flags


def test_the_recursion_may_end_in_launches(kernels):
    """Triangles of the last rows have fewer."""
    with override("trsm_algorithm", "trsm_fused_512"):
        assert len(list_of("d", 2048, 2048).entries) == 7 and len(list_of("d", 1600, 2048).entries) == 7
        assert len(list_of("d", 512, 2048).entries) == len(list_of("d", 300, 2048).entries) == 1
    for letter in DTYPES:
        with override("trsm_algorithm", "trsm_fused_1024"):
            launches = list_of(letter, 4096, 4096)
        solved = [step.source for step in launches.entries if dict(step.source.flags).get("solved")]
        assert len(solved) == 4 and len(set(solved)) == 1
        assert launches.choices[0] == Algorithm("trsm_fused_1024", "override")


@pytest.mark.parametrize("algorithm", ["trsm_fused", "trsm_fused_32"])
@pytest.mark.parametrize("side, uplo, diag, order", list(product(Side, Uplo, Diag, "CF")))
@pytest.mark.parametrize("letter", "dz")
def test_every_variant(kernels, letter, side, uplo, diag, order, algorithm):
    """In place, and into another array of the same order, without a copy."""
    for out_order in (None, order):
        with override("trsm_algorithm", algorithm):
            fake_kernels.check_trsm(letter, 107, 33, side, uplo, diag, order, out_order)
    assert len(kernels.launches) == 2 * (1 if algorithm == "trsm_fused" else 7)


def test_a_config_that_is_asked_for():
    chosen = planned("d", 2048, 512).choice
    assert chosen.origin == "packaged for sm_90, 2048x512"
    with override(chosen.config.STEM, replace(chosen.config, stages=2)):
        forced = planned("d", 2048, 512).choice
    assert forced.origin == "override" and forced.config.stages == 2


def test_without_a_kernel_the_choice_says_so(monkeypatch):
    monkeypatch.setattr(dispatch_trsm_fused, "serving_trsm", lambda *_: ())
    with pytest.raises(BackendUnavailable, match="one launch"):
        dispatch_trsm_fused.choose(DTYPES["d"], "nn", (999, 999, 999), Triangle.LOWER_LEFT, H200)
    assert planned("c", 999, 999) is None


@pytest.mark.parametrize("letter", DTYPES)
def test_few_strips_want_short_steps_and_many_tiles_want_work(letter):
    def tile(others):
        config = dispatch_trsm_fused.choose(
            DTYPES[letter], "nn", (4096, others, 4096), Triangle.LOWER_LEFT, H200
        ).config
        return config.BLK_M * config.BLK_N

    assert tile(32) < tile(4096)


@pytest.mark.parametrize("letter", DTYPES)
def test_the_estimate_grows_with_the_work(letter):
    config = dispatch_trsm_fused.choose(
        DTYPES[letter], "nn", (1024, 512, 1024), Triangle.LOWER_LEFT, H200
    ).config

    def taken(order, others):
        return cycles(config, (order, others, order), Triangle.LOWER_LEFT, H200)

    assert taken(1024, 32) < taken(2048, 32) < taken(2048, 4096) < taken(4096, 4096)


def test_every_triangle_has_candidates():
    for letter, triangle, layout in product(DTYPES, Triangle, ("nn", "nt", "tn", "tt")):
        assert trsm_fused_candidates.candidates(DTYPES[letter], layout, triangle, H200)
