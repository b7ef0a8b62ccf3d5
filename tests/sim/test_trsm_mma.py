"""`trsm_mma`: every instruction, exactly, and its rules; all else is in `test_trsm_body`."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pyblasgpu.errors import ConfigError
from pyblasgpu.gpu.intrinsics.mma import SHAPES

from .test_trsm_body import SMALL, check

STEM = "trsm_mma"


@pytest.mark.parametrize("letter", "dz")
@pytest.mark.parametrize("shape", SHAPES)
def test_every_instruction(letter, shape):
    changes = {"ORDER": 64, "BLK": 16, "MMA_M": shape[0], "MMA_K": shape[1]}
    check(STEM, letter, 61, 17, changes=changes, conj=letter == "z")


@pytest.mark.parametrize("letter", "dz")
def test_deep_tiles(letter):
    check(STEM, letter, 61, 21, changes={"ORDER": 64, "BLK": 32, "MMA_M": 16, "MMA_K": 8})


@pytest.mark.parametrize("depth", [8, 16])
def test_both_parts_at_once_in_tiles_of_eight(depth):
    check(STEM, "z", 29, 17, changes={"BLK": 8, "MMA_M": 16, "MMA_K": depth}, conj=True)


@pytest.mark.parametrize(
    "changes, rule",
    [
        ({"dtype": "s"}, "double"),
        ({"MMA_M": 8, "MMA_K": 8}, "shape"),
        ({"BLK": 12}, "tile"),
        ({"MMA_M": 16, "BLK": 24, "ORDER": 48}, "tile"),
        ({"ORDER": 36}, "order"),
        ({"ORDER": 0}, "order"),
        ({"WARP_N": 12}, "lane_columns"),
        ({"stages": 1}, "stages"),
        ({"WARPS": 33}, "max_threads"),
        ({"WARPS": 0}, "max_threads"),
    ],
)
def test_rules(changes, rule):
    with pytest.raises(ConfigError) as broken:
        replace(SMALL[STEM], **changes)
    assert broken.value.rule == rule
