"""TRSM with leaves on tensor cores: all cases exact on integers, backward stable on hard triangles."""

from __future__ import annotations

from contextlib import contextmanager
from functools import partial

import pytest
from filelock import FileLock

from pyblasgpu.gpu.device import current
from pyblasgpu.gpu.store import cache_folder
from pyblasgpu.kernels.trsm_mma import STEM, TrsmMma
from pyblasgpu.tuning.select import override
from pyblasgpu.types import Side, Trans, Uplo

from . import test_triangular
from .precompile import compile_all, sources_of
from .running import RUNS, Run

SMALL = {letter: TrsmMma(letter, ORDER=32, BLK=16, WARPS=2) for letter in "dz"}
LARGE = {
    "d": (TrsmMma("d", ORDER=256, BLK=32, WARPS=4), TrsmMma("d", ORDER=128, BLK=16, WARPS=1)),
    "z": (TrsmMma("z", ORDER=128, BLK=16, WARPS=2), TrsmMma("z", ORDER=64, BLK=32, WARPS=1)),
}

pytestmark = pytest.mark.skipif(current().cc < SMALL["d"].needs, reason="the device lacks the instruction")


def runs(letter: str) -> list[Run]:
    return [run for run in RUNS if (run.routine, run.letter) == ("trsm", letter)]


@contextmanager
def leaves(config: TrsmMma):
    """Every triangle of up to the kernel's order is one leaf."""
    with override("trsm", config.ORDER), override(STEM, config):
        yield


def start(run: Run, config: TrsmMma) -> None:
    with override(STEM, config):
        run.start()


@pytest.fixture(scope="module", autouse=True)
def compiled(compiled_kernels) -> None:
    calls = [partial(start, run, SMALL[letter]) for letter in "dz" for run in runs(letter)]
    with FileLock(cache_folder() / "tests.lock"):
        compile_all(sources_of(calls), current().cc)


@pytest.mark.parametrize("letter", "dz")
def test_all_cases(letter):
    for run in runs(letter):
        with override(STEM, SMALL[letter]):
            run.check()


@pytest.mark.parametrize("n", [256, 1000])
@pytest.mark.parametrize("config", [*LARGE["d"], *LARGE["z"]], ids=lambda it: f"{it.dtype}{it.ORDER}")
@pytest.mark.parametrize(
    "kind", [test_triangular.unit_lower, test_triangular.graded, test_triangular.denormal]
)
def test_backward_error_on_hard_triangles(kind, config, n):
    with leaves(config):
        test_triangular.test_backward_error_on_hard_triangles(kind, config.dtype, n)


@pytest.mark.parametrize("config", [*LARGE["d"], *LARGE["z"]], ids=lambda it: f"{it.dtype}{it.ORDER}")
@pytest.mark.parametrize("side, uplo, trans", [
    (Side.LEFT, Uplo.LOWER, Trans.NO), (Side.LEFT, Uplo.UPPER, Trans.CONJ),
    (Side.RIGHT, Uplo.LOWER, Trans.TRANS), (Side.RIGHT, Uplo.UPPER, Trans.NO),
])  # fmt: skip
def test_error_bounds(config, side, uplo, trans):
    with leaves(config):
        test_triangular.test_error_bounds(config.dtype, side, uplo, trans)
