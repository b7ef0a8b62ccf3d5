"""Which kernels the choice weighs for a triangle of C."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pyblasgpu.dispatch import choose, variants
from pyblasgpu.dispatch.choose import tuned_configs
from pyblasgpu.gpu.device import known
from pyblasgpu.model.occupancy import has_register_slack
from pyblasgpu.types import DTYPES, Region

H200 = known("h200")


def a_persistent(letter: str, spare: bool | None = None):
    """With registers to spare, or without."""
    return next(
        c
        for c in tuned_configs("gemm", DTYPES[letter], "nt", H200)
        if c.persistent and spare in (None, has_register_slack(c, H200))
    )


@pytest.fixture
def longer(monkeypatch):
    """``set(factor)``: how many times longer persistent blocks of c are taken to need."""

    def forget():
        variants.triangle_variants.cache_clear()
        choose.reload()

    def set_to(factor: float):
        monkeypatch.setitem(variants.SLOWDOWN, "c", (factor, factor))
        forget()

    yield set_to
    monkeypatch.undo()
    forget()


def variants_of(config, region):
    return variants.triangle_variants(config, region, H200)


@pytest.mark.parametrize("spare", [True, False])
def test_persistent_blocks_of_c_have_a_rival(spare):
    config = a_persistent("c", spare)
    ordinary, longer = replace(config, persistent=False), variants.SLOWDOWN["c"][not spare]
    assert variants_of(config, Region.LOWER) == ((ordinary, 1.0), (config, longer))
    assert variants_of(config, Region.ALL) == ((config, 1.0),)
    assert variants_of(ordinary, Region.LOWER) == ((ordinary, 1.0),)


@pytest.mark.parametrize("letter", "sdz")
def test_others_have_none(letter):
    config = a_persistent(letter)
    assert variants_of(config, Region.LOWER) == ((config, 1.0),)


@pytest.mark.parametrize("region", [Region.LOWER, Region.HERMITIAN_UPPER])
@pytest.mark.parametrize("factor, persistent", [(100.0, False), (0.01, True)])
def test_the_choice_weighs_both(longer, region, factor, persistent):
    longer(factor)
    choice = choose.select("gemm", DTYPES["c"], "nt", (4096, 4096, 4096), H200, region=region)
    assert choice.config.persistent is persistent


def test_all_of_c_is_not_concerned(longer):
    extents = 4096, 4096, 4096
    before = choose.select("gemm", DTYPES["c"], "nt", extents, H200)
    longer(0.01)
    assert choose.select("gemm", DTYPES["c"], "nt", extents, H200) == before
