"""Kernels of the papers' spaces compute a product: each blocking scheme, and the winners of Table 2."""

from __future__ import annotations

import pytest

from pyblasgpu.gpu.device import known
from pyblasgpu.types import DTYPES
from tuning.papers import kurzak_timed, steinsland
from tuning.papers.kurzak import CodeVariant

from .test_gemm_simt import check

H100 = known("h100")
ZGEMM = CodeVariant(24, 16, 8, 8, 8, 8, 8, 8, 8)


@pytest.mark.parametrize("letter", DTYPES)
@pytest.mark.parametrize("scheme", steinsland.SCHEMES)
def test_a_kernel_of_each_scheme(scheme, letter):
    layout = "tn" if letter in "sz" else "nn"
    configs = steinsland.candidates(scheme, letter, layout, H100)
    smallest = min(configs, key=lambda config: config.threads * config.BLK_M * config.BLK_N)
    check(smallest, smallest.BLK_M + 4, smallest.BLK_N - 4, smallest.BLK_K + 4)


#: Where stripes along k are kept: beside a private operand too, and of elements as wide as a load.
KEPT = [("A shared", "tn"), ("B shared", "nn"), ("shared, private", "tn"), ("both shared", "nn")]


@pytest.mark.parametrize("scheme, layout", KEPT)
@pytest.mark.parametrize("letter", DTYPES)
def test_stripes_that_stay_as_stored(scheme, layout, letter):
    configs = [each for each in steinsland.candidates(scheme, letter, layout, H100) if each.keeps_k_major]
    padded = [each for each in configs if each.PAD_A + each.PAD_B]
    smallest = min(padded, key=lambda config: config.threads * config.BLK_M * config.BLK_N)
    check(smallest, smallest.BLK_M + 4, smallest.BLK_N - 4, smallest.BLK_K + 4)


@pytest.mark.parametrize("layout", ["nn", "tn"])
def test_the_winner_of_zgemm(layout):
    check(kurzak_timed.config_of("z", layout, ZGEMM), 25, 15, 9)
