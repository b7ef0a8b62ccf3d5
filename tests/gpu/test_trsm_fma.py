"""TRSM with leaves of `trsm_fma`: all cases exact on integers, backward stable on hard triangles."""

from __future__ import annotations

import pytest

from pyblasgpu.gpu.device import current
from pyblasgpu.kernels.trsm_fma import TrsmFma

from . import test_triangular
from .warp_leaves import KINDS, VARIANTS, check_runs, compile_runs, leaves, of_each

SMALL = {letter: TrsmFma(letter, ORDER=32, BLK=8, WARPS=2) for letter in "sdcz"}
LARGE = {
    "s": (TrsmFma("s", ORDER=512, BLK=16, WARPS=4, LOADERS=4), TrsmFma("s", ORDER=128, BLK=8, WARPS=1)),
    "d": (TrsmFma("d", ORDER=256, BLK=8, WARPS=4), TrsmFma("d", ORDER=128, BLK=16, WARPS=1)),
    "c": (TrsmFma("c", ORDER=256, BLK=16, WARPS=2), TrsmFma("c", ORDER=64, BLK=8, WARPS=1, LOADERS=2)),
    "z": (TrsmFma("z", ORDER=64, BLK=16, WARPS=2), TrsmFma("z", ORDER=32, BLK=8, WARPS=1)),
}

pytestmark = pytest.mark.skipif(not current().has_async_copy, reason="the device lacks asynchronous copies")


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
