"""`trsm_fma` and `trsm_mma`: updates of several runs, every instruction, places of strips, and rules.

The rest is in `test_trsm_body`.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
from covering import pairs

from pyblasgpu.errors import ConfigError
from pyblasgpu.gpu.intrinsics.mma import SHAPES
from pyblasgpu.types import DTYPES

from .test_trsm_body import SMALL, check


@pytest.mark.parametrize(
    "letter, n, changes", pairs(DTYPES, [33, 61, 90], [{"ORDER": 96, "BLK": 16}, {"ORDER": 96}]), ids=str
)
def test_runs_of_tiles(letter, n, changes):
    check("trsm_fma", letter, n, 9, changes={"WARPS": 1, **changes}, conj=letter in "cz")


@pytest.mark.parametrize("letter", DTYPES)
@pytest.mark.parametrize("BLK", [8, 16, 24, 32])
def test_rows_of_a_strip_are_loaded_without_conflicts(letter, BLK):
    """Vectors of 16 bytes of eight rows, at the same k, lie in all 32 banks."""
    config = replace(SMALL["trsm_fma"], dtype=letter, ORDER=2 * BLK, BLK=BLK)
    size = config.dtype_facts.itemsize
    assert config.strip_steps(True) == config.strip_steps(False) == (config.row_of_strip, 1)
    places = {row * config.row_of_strip * size // 16 % 8 for row in range(8)}
    assert len(places) == 8 and config.row_of_strip * size % 16 == 0


@pytest.mark.parametrize("letter", "dz")
@pytest.mark.parametrize("shape", SHAPES)
def test_every_instruction(letter, shape):
    changes = {"ORDER": 64, "BLK": 16, "MMA_M": shape[0], "MMA_K": shape[1]}
    check("trsm_mma", letter, 61, 17, changes=changes, conj=letter == "z")


@pytest.mark.parametrize("letter", "dz")
def test_deep_tiles(letter):
    check("trsm_mma", letter, 61, 21, changes={"ORDER": 64, "BLK": 32, "MMA_M": 16, "MMA_K": 8})


@pytest.mark.parametrize("depth", [8, 16])
def test_both_parts_at_once_in_tiles_of_eight(depth):
    check("trsm_mma", "z", 29, 17, changes={"BLK": 8, "MMA_M": 16, "MMA_K": depth}, conj=True)


@pytest.mark.parametrize(
    "stem, changes, rule",
    [
        ("trsm_fma", {"BLK": 12, "ORDER": 24}, "tile"),
        ("trsm_fma", {"BLK": 4}, "tile"),
        ("trsm_fma", {"ORDER": 36}, "order"),
        ("trsm_fma", {"ORDER": 0}, "order"),
        ("trsm_fma", {"WARP_N": 12}, "lane_columns"),
        ("trsm_fma", {"stages": 1}, "stages"),
        ("trsm_fma", {"WARPS": 33}, "max_threads"),
        ("trsm_mma", {"dtype": "s"}, "double"),
        ("trsm_mma", {"MMA_M": 8, "MMA_K": 8}, "shape"),
        ("trsm_mma", {"BLK": 12}, "tile"),
        ("trsm_mma", {"MMA_M": 16, "BLK": 24, "ORDER": 48}, "tile"),
        ("trsm_mma", {"ORDER": 36}, "order"),
        ("trsm_mma", {"ORDER": 0}, "order"),
        ("trsm_mma", {"WARP_N": 12}, "lane_columns"),
        ("trsm_mma", {"stages": 1}, "stages"),
        ("trsm_mma", {"WARPS": 33}, "max_threads"),
        ("trsm_mma", {"WARPS": 0}, "max_threads"),
    ],
)
def test_rules(stem, changes, rule):
    with pytest.raises(ConfigError) as broken:
        replace(SMALL[stem], **changes)
    assert broken.value.rule == rule
