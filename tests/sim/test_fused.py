"""TRMM and TRSM in one launch: every triangle, layout, pipeline and dtype, exactly."""

from __future__ import annotations

from itertools import cycle

import pytest
from covering import pairs

from pyblasgpu.gpu.simulator import intrinsics as simulator
from pyblasgpu.kernels.gemm import trmm_fused, trsm_fused_phases
from pyblasgpu.types import Side, Triangle, Uplo

from . import test_trmm_fused, test_trsm_fused
from .test_trmm_fused import VECTORS_OF_T, flags_are_set_often  # noqa: F401 - the fixture serves here too

PIPELINES = [{"stages": 2}, {"stages": 3}, {"stages": 2, "prefetch": True}, {"stages": 4, "prefetch": True}]
LEFT = [Triangle.LOWER_LEFT, Triangle.UPPER_LEFT]
EXTENTS = [(1, 1), (16, 8), (5, 3), (17, 9), (33, 40), (32, 16)]

pytestmark = pytest.mark.parametrize(
    "check", [pytest.param(test_trmm_fused.check, id="trmm"), pytest.param(test_trsm_fused.check, id="trsm")]
)


@pytest.mark.parametrize("letter, triangle, by_rows", pairs("sz", Triangle, [False, True]))
def test_every_triangle_and_layout(check, letter, triangle, by_rows):
    """In d and c: `test_into_another_matrix` of each."""
    check(letter, triangle, by_rows=by_rows)


@pytest.mark.parametrize(
    "letter, triangle", [*(("z", triangle) for triangle in Triangle), ("d", Triangle.LOWER_RIGHT)], ids=str
)
def test_on_tensor_cores(check, letter, triangle):
    """Other triangles in d: `test_every_pipeline`."""
    check(letter, triangle, 71, 37, mma=True)


@pytest.mark.parametrize("pipeline, triangle, mma", pairs(PIPELINES, LEFT, [False, True]))
def test_every_pipeline(check, pipeline, triangle, mma):
    if mma:
        check("d", triangle, 70, 18, mma=True, **pipeline)
    else:
        check("s", triangle, **pipeline)


@pytest.mark.parametrize("triangle, unit, conj", pairs(Triangle, [False, True], [False, True]))
def test_unit_and_conjugated(check, triangle, unit, conj):
    check("c", triangle, unit=unit, conj=conj)


@pytest.mark.parametrize("extents, upper", list(zip(EXTENTS, cycle([False, True]))))
@pytest.mark.parametrize("on_left", [True, False])
def test_odd_extents(check, extents, upper, on_left):
    """On both sides, so that one triangle is read forwards, and the other backwards."""
    uplo, side = (Uplo.UPPER if upper else Uplo.LOWER), (Side.LEFT if on_left else Side.RIGHT)
    check("s", Triangle.of(uplo, side), *extents)


@pytest.mark.parametrize("triangle", LEFT)
@pytest.mark.parametrize("order", [44, 45])
def test_vectors_where_t_is_aligned_for_them(check, order, triangle):
    """T lies 4 apart from column to column beyond its order."""
    check("d", triangle, order, **VECTORS_OF_T)


@pytest.mark.parametrize(
    "span, seed, extents",
    pairs([8, 16, 32, 256], range(2), [(Triangle.LOWER_LEFT, 50, 30), (Triangle.LOWER_RIGHT, 30, 50)]),
)
def test_in_any_order_of_blocks(check, span, seed, extents, monkeypatch):
    for module in (trmm_fused, trsm_fused_phases):
        monkeypatch.setattr(module, "SPAN", span)
    simulator.reseed(seed)
    check("s", *extents)
