"""TRSM with leaves whose warps own columns of B, on tensor cores and on FMA units: all cases exact on
integers, backward stable on hard triangles.
"""

from __future__ import annotations

from contextlib import contextmanager
from functools import partial

import pytest

from pyblasgpu.dispatch.overrides import override
from pyblasgpu.gpu.device import current
from pyblasgpu.kernels.trsm.config import TrsmConfig
from pyblasgpu.kernels.trsm.fma import TrsmFma
from pyblasgpu.kernels.trsm.mma import TrsmMma
from pyblasgpu.types import Side, Trans, Uplo

from .precompile import sources_of
from .running import RUNS, Run
from .triangular_checks import HARD, check_bounds, check_hard

SMALL = [
    *(TrsmMma(letter, ORDER=32, BLK=16, WARPS=2) for letter in "dz"),
    *(TrsmFma(letter, ORDER=32, BLK=8, WARPS=2) for letter in "sdcz"),
    TrsmMma("d", ORDER=64, BLK=16, WARPS=2, WARPS_PER_COLUMN_GROUP=2),
    TrsmFma("c", ORDER=64, BLK=8, WARPS=2, PRODUCER_WARPS=1, WARPS_PER_COLUMN_GROUP=2),
]
LARGE = [
    TrsmMma("d", ORDER=256, BLK=32, WARPS=1),
    TrsmMma("d", ORDER=128, BLK=16, WARPS=1, PRODUCER_WARPS=2),
    TrsmMma("z", ORDER=128, BLK=16, WARPS=2, PRODUCER_WARPS=4),
    TrsmMma("z", ORDER=64, BLK=32, WARPS=1),
    TrsmFma("s", ORDER=512, BLK=16, WARPS=4, PRODUCER_WARPS=4),
    TrsmFma("s", ORDER=128, BLK=8, WARPS=1),
    TrsmFma("d", ORDER=256, BLK=8, WARPS=4),
    TrsmFma("d", ORDER=128, BLK=16, WARPS=1),
    TrsmFma("c", ORDER=256, BLK=16, WARPS=2),
    TrsmFma("c", ORDER=64, BLK=8, WARPS=1, PRODUCER_WARPS=2),
    TrsmFma("z", ORDER=64, BLK=16, WARPS=2),
    TrsmFma("z", ORDER=32, BLK=8, WARPS=1),
    TrsmMma("d", ORDER=256, BLK=16, WARPS=4, PRODUCER_WARPS=4, WARPS_PER_COLUMN_GROUP=2),
    TrsmMma("z", ORDER=128, BLK=8, WARPS=2, MMA_M=8, MMA_K=4, WARPS_PER_COLUMN_GROUP=2),
    TrsmMma("z", ORDER=128, BLK=8, WARPS=2, PRODUCER_WARPS=2, WARPS_PER_COLUMN_GROUP=2),
    TrsmFma("s", ORDER=256, BLK=16, WARPS=4, PRODUCER_WARPS=4, WARPS_PER_COLUMN_GROUP=2),
    TrsmFma("c", ORDER=128, BLK=8, WARPS=4, WARPS_PER_COLUMN_GROUP=2),
]
VARIANTS = [
    (Side.LEFT, Uplo.LOWER, Trans.NO),
    (Side.LEFT, Uplo.UPPER, Trans.CONJ),
    (Side.RIGHT, Uplo.LOWER, Trans.TRANS),
    (Side.RIGHT, Uplo.UPPER, Trans.NO),
]


def runs(letter: str) -> list[Run]:
    return [run for run in RUNS if (run.routine, run.letter) == ("trsm", letter)]


@contextmanager
def leaves(config: TrsmConfig):
    """Every triangle of up to the kernel's order is one leaf."""
    with override("trsm", config.ORDER), override(config.STEM, config):
        yield


def start(run: Run, config: TrsmConfig) -> None:
    with override(config.STEM, config):
        run.start()


@pytest.fixture(scope="module", autouse=True)
def compiled(compile_once) -> None:
    served = [config for config in SMALL if runs_here(config)]
    calls = [partial(start, run, config) for config in served for run in runs(config.dtype)]
    compile_once("warp_leaves", lambda: sources_of(calls))


def runs_here(config: TrsmConfig) -> bool:
    """Whether the device has the copies and the instruction that the kernel needs."""
    return current().has_async_copy and current().cc >= getattr(config, "needs", (0, 0))


def of_each(configs: list[TrsmConfig]):
    """A test's `config`."""
    marked = [
        pytest.param(
            config,
            id=f"{config.STEM}-{config.dtype}{config.ORDER}",
            marks=pytest.mark.skipif(not runs_here(config), reason="the device lacks what the kernel needs"),
        )
        for config in configs
    ]
    return pytest.mark.parametrize("config", marked)


@of_each(SMALL)
def test_all_cases(config):
    for run in runs(config.dtype):
        with override(config.STEM, config):
            run.check()


@pytest.mark.parametrize("n", [256, 1000])
@of_each(LARGE)
@pytest.mark.parametrize("kind", HARD)
def test_backward_error_on_hard_triangles(kind, config, n):
    with leaves(config):
        check_hard(kind, config.dtype, n)


@of_each(LARGE)
@pytest.mark.parametrize("side, uplo, trans", VARIANTS)
def test_error_bounds(config, side, uplo, trans):
    with leaves(config):
        check_bounds(config.dtype, side, uplo, trans)
