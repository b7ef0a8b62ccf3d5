"""TRSM with leaves on tensor cores: all cases exact on integers, backward stable on hard triangles."""

from __future__ import annotations

import pytest

from pyblasgpu.gpu.device import current
from pyblasgpu.kernels.trsm_mma import TrsmMma

from . import test_triangular
from .warp_leaves import KINDS, VARIANTS, check_runs, compile_runs, leaves, of_each

SMALL = {letter: TrsmMma(letter, ORDER=32, BLK=16, WARPS=2) for letter in "dz"}
LARGE = {
    "d": (TrsmMma("d", ORDER=256, BLK=32, WARPS=4), TrsmMma("d", ORDER=128, BLK=16, WARPS=1, LOADERS=2)),
    "z": (TrsmMma("z", ORDER=128, BLK=16, WARPS=2, LOADERS=4), TrsmMma("z", ORDER=64, BLK=32, WARPS=1)),
}

pytestmark = pytest.mark.skipif(current().cc < SMALL["d"].needs, reason="the device lacks the instruction")


@pytest.fixture(scope="module", autouse=True)
def compiled(compiled_kernels) -> None:
    compile_runs(SMALL)


@pytest.mark.parametrize("letter", SMALL)
def test_all_cases(letter):
    check_runs(SMALL[letter])


@pytest.mark.parametrize("n", [256, 1000])
@of_each(LARGE)
@pytest.mark.parametrize("kind", KINDS)
def test_backward_error_on_hard_triangles(kind, config, n):
    with leaves(config):
        test_triangular.test_backward_error_on_hard_triangles(kind, config.dtype, n)


@of_each(LARGE)
@pytest.mark.parametrize("side, uplo, trans", VARIANTS)
def test_error_bounds(config, side, uplo, trans):
    with leaves(config):
        test_triangular.test_error_bounds(config.dtype, side, uplo, trans)
