"""Persistent products, whole and streamed: exact on integers, the same bits every time, batches included."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from itertools import product

import numpy as np
import pytest

import pyblasgpu
from pyblasgpu.database import FAMILIES, families_of
from pyblasgpu.dispatch import product_kinds
from pyblasgpu.dispatch.choose import select
from pyblasgpu.dispatch.overrides import override
from pyblasgpu.dispatch.split_k import STREAM_K
from pyblasgpu.gpu.device import current
from pyblasgpu.testing.cases import GemmCase
from pyblasgpu.testing.error_bounds import gemm_error
from pyblasgpu.types import DTYPES, Trans

from .precompile import sources_of
from .running import Run, cupy, reals

SHAPES = ((700, 645, 133), (130, 1033, 77), (2500, 1300, 40))


def runs(letter: str) -> Iterator[Run]:
    dtype = DTYPES[letter]
    for trans_a, trans_b in product((Trans.NO, Trans.TRANS), repeat=2):
        for (m, n, k), aligned in product(SHAPES, (True, False)):
            yield Run("gemm", GemmCase(dtype, m, n, k, trans_a, trans_b, 2, -1), "CF"[aligned], aligned)
    yield Run("gemm", GemmCase(dtype, 65, 33, 50, alpha=-1, batch=(300,)))


@contextmanager
def persistent(letter: str, splits: int):
    """The persistent variant of every Config that a product of 1000 would take, streamed or not."""
    with ExitStack() as held:
        held.enter_context(override("splits", splits))
        for stem in families_of("gemm", letter):
            for layout in FAMILIES[stem].layouts:
                config = select(stem, DTYPES[letter], layout, (1000, 1000, 1000), current()).config
                for variant in product_kinds.persistent(config, current())[:1]:
                    held.enter_context(override(stem, variant))
        yield


def walked(run: Run, splits: int):
    with persistent(run.letter, splits):
        return run.start()


@pytest.fixture(scope="module", autouse=True)
def compiled(compile_once) -> None:
    calls = (partial(walked, run, s) for letter in DTYPES for run in runs(letter) for s in (1, STREAM_K))
    compile_once("persistent", lambda: sources_of(calls))


@pytest.mark.parametrize("splits", [1, STREAM_K], ids=["whole", "streamed"])
@pytest.mark.parametrize("letter", DTYPES)
def test_exact(letter, splits):
    with persistent(letter, splits):
        for run in runs(letter):
            run.check()


@pytest.mark.parametrize("letter", DTYPES)
def test_the_same_bits_within_the_bound(letter):
    dtype = DTYPES[letter]
    a, b, c = (
        reals(dtype, *shape, seed=seed) for seed, shape in enumerate(((900, 500), (500, 1100), (900, 1100)))
    )
    results = []
    with persistent(letter, STREAM_K):
        for _ in range(3):
            out = cupy.asarray(c)
            pyblasgpu.gemm(cupy.asarray(a), cupy.asarray(b), alpha=0.7, beta=-1.3, out=out)
            results.append(out.get())
    assert all(np.array_equal(result, results[0]) for result in results)
    assert gemm_error(0.7, a, b, -1.3, c, results[0]) <= 1
