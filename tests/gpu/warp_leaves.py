"""TRSM by a family of leaves whose warps own columns of B: what the tests of each family ask of it."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import contextmanager
from functools import partial

import pytest
from filelock import FileLock

from pyblasgpu.gpu.device import current
from pyblasgpu.gpu.store import cache_folder
from pyblasgpu.kernels.trsm_config import TrsmConfig
from pyblasgpu.tuning.select import override
from pyblasgpu.types import Side, Trans, Uplo

from . import test_triangular
from .precompile import compile_all, sources_of
from .running import RUNS, Run

KINDS = [test_triangular.unit_lower, test_triangular.graded, test_triangular.denormal]
VARIANTS = [
    (Side.LEFT, Uplo.LOWER, Trans.NO), (Side.LEFT, Uplo.UPPER, Trans.CONJ),
    (Side.RIGHT, Uplo.LOWER, Trans.TRANS), (Side.RIGHT, Uplo.UPPER, Trans.NO),
]  # fmt: skip


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


def compile_runs(configs: Mapping[str, TrsmConfig]) -> None:
    """Compile what `check_runs` needs, by dtype."""
    calls = [partial(start, run, config) for letter, config in configs.items() for run in runs(letter)]
    with FileLock(cache_folder() / "tests.lock"):
        compile_all(sources_of(calls), current().cc)


def check_runs(config: TrsmConfig) -> None:
    """All cases of the dtype, exactly."""
    for run in runs(config.dtype):
        with override(config.STEM, config):
            run.check()


def of_each(configs: Mapping[str, tuple[TrsmConfig, ...]]):
    """A test's `config`, of every dtype."""
    every = [config for some in configs.values() for config in some]
    return pytest.mark.parametrize("config", every, ids=lambda config: f"{config.dtype}{config.ORDER}")
