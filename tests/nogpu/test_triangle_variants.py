"""Which variants of Configs the choice takes: for a triangle of C, by alignment, fused with a triangle."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from pyblasgpu.dispatch import choose, operand_copies, product_kinds
from pyblasgpu.dispatch.choose import tuned_configs
from pyblasgpu.dispatch.portfolio import Portfolio
from pyblasgpu.dispatch.throughput_model import of_fused_trmm
from pyblasgpu.gpu.device import known
from pyblasgpu.types import DTYPES, Region

H200 = known("h200")


def a_persistent(letter: str):
    return next(c for c in tuned_configs("gemm", DTYPES[letter], "nt", H200) if c.persistent)


def test_in_c_persistent_blocks_have_one_tile_each():
    config = a_persistent("c")
    assert product_kinds.triangle_variant(config) == replace(config, persistent=False)


@pytest.mark.parametrize("letter", "sdz")
def test_in_others_they_stay(letter):
    config = a_persistent(letter)
    assert product_kinds.triangle_variant(config) == config


@pytest.mark.parametrize("region", [Region.LOWER, Region.HERMITIAN_UPPER])
def test_the_choice_takes_the_variant(region):
    choice = choose.select("gemm", DTYPES["c"], "nt", (4096, 4096, 4096), H200, region=region)
    assert not choice.config.persistent


def test_operands_that_begin_within_sectors_leave_a_config_as_it_is():
    """Its kernel sees that; single elements it copies where vectors do not fit."""
    config = next(c for c in tuned_configs("gemm", DTYPES["z"], "nn", H200) if not c.through_l1)
    assert operand_copies.match_alignment(config, (16, 16)) == config
    config = next(c for c in tuned_configs("gemm", DTYPES["d"], "nn", H200) if c.VEC_A == c.VEC_B == 2)
    assert operand_copies.match_alignment(config, (16, 16)) == config
    assert operand_copies.match_alignment(config, (8, 32)) == config.scalar_variant


def test_in_a_fused_trmm_paces_count_for_less():
    """Their order, and what is usual, stay."""
    paces = np.array([1.0, 2.0, 4.0])
    fused = of_fused_trmm(paces)
    assert fused[1] == pytest.approx(2.0) and 1.0 < fused[0] < fused[1] < fused[2] < 4.0


@pytest.mark.parametrize(
    ("free", "least", "expected"), [((), 0.5, "b"), ("b", 0.01, ""), ("a", 0.3, "b"), ("a", 0.4, "")]
)
def test_a_kernel_must_gain_something_beside_those_that_are_there(free, least, expected):
    known = Portfolio({"a": {"small": 1.0, "large": 0.5}, "b": {"small": 0.99, "large": 1.0}})
    assert known.first(1, lambda _: True, lambda _: 1.0, least, free) == tuple(expected)
