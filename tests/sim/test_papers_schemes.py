"""Kernels of the papers' spaces compute a product: each blocking scheme, and the winners of Table 2."""

from __future__ import annotations

import numpy as np
import pytest

from pyblasgpu.gpu.device import known
from pyblasgpu.testing.reference import fenced, integers
from pyblasgpu.types import DTYPES
from tuning.papers import kurzak_timed, steinsland, textured
from tuning.papers.kurzak import CodeVariant
from tuning.papers.textures import simulated

from .launching import run, strides
from .test_gemm_simt import LAYOUTS, check, config

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


@pytest.mark.parametrize("trans_a, trans_b", LAYOUTS)
@pytest.mark.parametrize("letter", DTYPES)
def test_reads_by_textures(letter, trans_a, trans_b):
    """Beyond the matrices a texture gives zeros, which no mask has to."""
    tile, dtype, rng = (
        config(letter, trans_a, trans_b, PAD_A=1, PAD_B=1),
        DTYPES[letter],
        np.random.default_rng(7),
    )
    a, b, c = (integers(rng, shape, dtype) for shape in ((35, 11), (11, 19), (35, 19)))
    expected, (c, unharmed) = 2 * (a @ b) - c, fenced(c, "F")
    with simulated(a if trans_a else a.T) as of_a, simulated(b if trans_b else b.T) as of_b:
        numbers = (35, 19, 11, 0, of_a, of_b, strides(c)[1])
        run(textured.source(tile), tile.grid(35, 19), (c,), numbers, (2, -1))
    np.testing.assert_array_equal(c, expected)
    assert unharmed()
