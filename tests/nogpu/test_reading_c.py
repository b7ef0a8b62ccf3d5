"""Products that add to C: the choice knows which kernels wait for it."""

from __future__ import annotations

import pytest

from pyblasgpu.dispatch.choose import select
from pyblasgpu.gpu.device import known
from pyblasgpu.types import DTYPES

H200 = known("h200")


def chosen(letter, layout, extents, adds):
    return select("gemm", DTYPES[letter], layout, extents, H200, adds=adds).config


@pytest.mark.parametrize("layout", ["nn", "nt"])
@pytest.mark.parametrize("k", [32, 64, 128])
def test_updates_of_low_rank_have_several_blocks_a_multiprocessor(layout, k):
    assert chosen("d", layout, (8192, 8192 - k, k), True).min_blocks > 1


@pytest.mark.parametrize("n", [2048, 8192])
def test_long_sums_are_chosen_as_if_c_were_not_read(n):
    assert chosen("d", "nn", (n, n, n), True) == chosen("d", "nn", (n, n, n), False)


@pytest.mark.parametrize("letter", "scz")
def test_other_types_are_not_judged_by_it(letter):
    extents = 4096, 4032, 64
    assert chosen(letter, "nn", extents, True) == chosen(letter, "nn", extents, False)
