"""Split-K products: exact on integers, the same bits every time, within their bound."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import product

import numpy as np
import pytest

import pyblasgpu
from pyblasgpu.dispatch.choose import select
from pyblasgpu.dispatch.overrides import override
from pyblasgpu.gpu.device import current
from pyblasgpu.testing.cases import GemmCase, TriangularCase
from pyblasgpu.testing.error_bounds import gemm_error
from pyblasgpu.testing.reference import integers
from pyblasgpu.types import DTYPES, Side, Trans, Uplo

from .precompile import sources_of
from .running import NAN, Placed, Run, cupy, reals, same

LONG = (64, 64, 65536)
SPLITS = (2, 3, 7)


def products(letter: str) -> Iterator[Run]:
    """All flags, orders and alignments; k that slices divide, and k that leaves something over."""
    dtype, flags = DTYPES[letter], product(Trans, Trans, "CF", (True, False))
    for number, (trans_a, trans_b, order, aligned) in enumerate(flags):
        for k in (336, 509):
            case = GemmCase(dtype, 65, 33, k, trans_a, trans_b, -1, (0, 2)[number % 2])
            yield Run("gemm", case, order, aligned)
    for m, n in ((1, 1), (1, 130), (130, 1), (127, 3), (3, 129), (257, 255)):
        yield Run("gemm", GemmCase(dtype, m, n, 1003, alpha=2, beta=-1), aligned=False)


def triangles(letter: str) -> Iterator[Run]:
    for routine, side, uplo in product(("trmm", "trsm"), Side, Uplo):
        yield Run(routine, TriangularCase(DTYPES[letter], 129, 65, side, uplo, alpha=2), stop=16)


RUNS = [run for letter in DTYPES for run in (*products(letter), *triangles(letter))]


def in_chunks(run: Run, splits: int):
    with override("splits", splits):
        return run.start()


@pytest.fixture(scope="module", autouse=True)
def compiled(compile_once) -> None:
    calls = [partial(in_chunks, run, splits) for run in RUNS for splits in SPLITS]
    compile_once("split", lambda: sources_of(calls))


@pytest.mark.parametrize("splits", SPLITS)
@pytest.mark.parametrize("letter", DTYPES)
def test_exact(letter, splits):
    for run in RUNS:
        if run.letter == letter:
            with override("splits", splits):
                run.check()


def operands(letter: str, m: int, n: int, k: int):
    dtype = DTYPES[letter]
    return (reals(dtype, *shape, seed=seed) for seed, shape in enumerate(((m, k), (k, n), (m, n))))


@pytest.mark.parametrize("letter", DTYPES)
def test_the_choice_cuts_a_long_k_within_its_bound(letter):
    """In slices, or by persistent blocks that share tiles, as is faster there."""
    assert select("gemm", DTYPES[letter], "nn", LONG, current()).splits != 1
    a, b, c = operands(letter, *LONG)
    out = cupy.asarray(c, order="F")
    pyblasgpu.gemm(cupy.asarray(a), cupy.asarray(b), alpha=0.7, beta=-1.3, out=out)
    assert gemm_error(0.7, a, b, -1.3, c, out.get()) < 1


@pytest.mark.parametrize("splits", [None, 7])
@pytest.mark.parametrize("letter", DTYPES)
def test_the_same_bits(letter, splits):
    """Again, on another stream, with other leading strides, and by a plan; by one Config, which the library
    may choose otherwise where operands are not aligned.
    """
    a, b, _ = operands(letter, 65, 33, 20_003)
    left, right = cupy.asarray(a, order="F"), cupy.asarray(b, order="F")
    stream = cupy.cuda.Stream(non_blocking=True)
    chosen = select("gemm", DTYPES[letter], "nn", (65, 33, 20_003), current())
    with override("splits", splits or chosen.splits), override(chosen.config.STEM, chosen.config):
        first = pyblasgpu.gemm(left, right)
        cupy.cuda.Device().synchronize()
        results = [pyblasgpu.gemm(left, right) for _ in range(50)]
        results.append(pyblasgpu.gemm(Placed(a).array, Placed(b, aligned=False).array))
        results.append(pyblasgpu.gemm(left, right, stream=stream))
        planned = cupy.full_like(first, NAN)
        pyblasgpu.plan_gemm(left, right, planned)(left, right, planned)
        cupy.cuda.Device().synchronize()
    assert all(cupy.array_equal(first, other) for other in (*results, planned))


def test_a_nan_reaches_its_row_and_no_other():
    a, b = np.ones((65, 1003), np.float32), np.zeros((1003, 33), np.float32)
    a[40, 1002] = NAN
    for splits in SPLITS:
        out = cupy.full((65, 33), NAN, np.float32)
        with override("splits", splits):
            pyblasgpu.gemm(cupy.asarray(a), cupy.asarray(b), out=out)
        assert cupy.isnan(out[40]).all() and cupy.isnan(out).sum() == 33


def test_more_splits_than_a_round_of_the_sum():
    """And a C whose partials would exceed what the choice allows."""
    dtype, rng = DTYPES["d"], np.random.default_rng(5)
    for m, n, k, splits in ((33, 31, 4099, 500), (1500, 1400, 64, 5)):
        a, b = integers(rng, (m, k), dtype), integers(rng, (k, n), dtype)
        with override("splits", splits):
            result = pyblasgpu.gemm(cupy.asarray(a), cupy.asarray(b))
        same(result.get(), a @ b, f"{m} x {n} x {k} in {splits}")
