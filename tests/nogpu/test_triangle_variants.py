"""Which kernels the choice takes for a triangle of C."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pyblasgpu.dispatch import choose, variants
from pyblasgpu.dispatch.choose import tuned_configs
from pyblasgpu.gpu.device import known
from pyblasgpu.types import DTYPES, Region

H200 = known("h200")


def a_persistent(letter: str):
    return next(c for c in tuned_configs("gemm", DTYPES[letter], "nt", H200) if c.persistent)


def test_in_c_persistent_blocks_have_one_tile_each():
    config = a_persistent("c")
    assert variants.triangle_variant(config) == replace(config, persistent=False)


@pytest.mark.parametrize("letter", "sdz")
def test_in_others_they_stay(letter):
    config = a_persistent(letter)
    assert variants.triangle_variant(config) == config


@pytest.mark.parametrize("region", [Region.LOWER, Region.HERMITIAN_UPPER])
def test_the_choice_takes_the_variant(region):
    choice = choose.select("gemm", DTYPES["c"], "nt", (4096, 4096, 4096), H200, region=region)
    assert not choice.config.persistent
