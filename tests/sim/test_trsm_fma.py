"""`trsm_fma`: updates of several runs, exactly, the places of its strips, and its rules; all else is in
`test_trsm_body`.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from pyblasgpu.errors import ConfigError
from pyblasgpu.types import DTYPES

from .test_trsm_body import SMALL, check

STEM = "trsm_fma"


@pytest.mark.parametrize("letter", DTYPES)
@pytest.mark.parametrize("n", [33, 61, 90])
@pytest.mark.parametrize("changes", [{"ORDER": 96, "BLK": 16}, {"ORDER": 96}], ids=str)
def test_runs_of_tiles(letter, n, changes):
    check(STEM, letter, n, 9, changes={"WARPS": 1, **changes}, conj=letter in "cz")


@pytest.mark.parametrize("letter", DTYPES)
@pytest.mark.parametrize("BLK", [8, 16, 24, 32])
def test_rows_of_a_strip_are_loaded_without_conflicts(letter, BLK):
    """Vectors of 16 bytes of eight rows, at the same k, lie in all 32 banks."""
    config = replace(SMALL[STEM], dtype=letter, ORDER=2 * BLK, BLK=BLK)
    size = config.dtype_facts.itemsize
    assert config.strip_steps(True) == config.strip_steps(False) == (config.row_of_strip, 1)
    places = {row * config.row_of_strip * size // 16 % 8 for row in range(8)}
    assert len(places) == 8 and config.row_of_strip * size % 16 == 0


@pytest.mark.parametrize(
    "changes, rule",
    [
        ({"BLK": 12, "ORDER": 24}, "tile"),
        ({"BLK": 4}, "tile"),
        ({"ORDER": 36}, "order"),
        ({"ORDER": 0}, "order"),
        ({"WARP_N": 12}, "lane_columns"),
        ({"stages": 1}, "stages"),
        ({"WARPS": 33}, "max_threads"),
    ],
)
def test_rules(changes, rule):
    with pytest.raises(ConfigError) as broken:
        replace(SMALL[STEM], **changes)
    assert broken.value.rule == rule
