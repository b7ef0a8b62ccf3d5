"""Products of packed and of copied operands on a device: exact on integers, of packed ones the bits those of
operands as they lie.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from itertools import product

import numpy as np
import pytest

import pyblasgpu
from pyblasgpu.database import families_of
from pyblasgpu.dispatch.choose import select
from pyblasgpu.dispatch.overrides import override
from pyblasgpu.dispatch.product_kinds import LAYOUT_OF_PACKED, packed_variant, persistent
from pyblasgpu.dispatch.split_k import STREAM_K
from pyblasgpu.gpu.device import current
from pyblasgpu.testing.cases import GemmCase, TriangularCase
from pyblasgpu.testing.error_bounds import gemm_error
from pyblasgpu.testing.reference import integers
from pyblasgpu.types import DTYPES, Side, Trans, Uplo

from .precompile import sources_of
from .running import NAN, Run, cupy, reals, same

SHAPES = ((1, 1, 1), (300, 257, 65), (129, 1030, 77), (256, 128, 64))
LAYOUTS = ("nn", "nt", "tn", "tt")
FORMS = {"ordinary": 1, "whole": 1, "streamed": STREAM_K}


def products(letter: str) -> Iterator[Run]:
    """All flags; odd and even extents, strides and alignments; results in both orders; a batch."""
    for number, (trans_a, trans_b) in enumerate(product(Trans, Trans)):
        for m, n, k in SHAPES:
            case = GemmCase(DTYPES[letter], m, n, k, trans_a, trans_b, 2, (-1, 0)[number % 2])
            yield Run("gemm", case, "CF"[number % 2], aligned=m % 2 == 0)
    yield Run("gemm", GemmCase(DTYPES[letter], 65, 33, 50, alpha=-1, batch=(300,)))


def triangles(letter: str) -> Iterator[Run]:
    for routine, side, uplo in product(("trmm", "trsm"), Side, Uplo):
        yield Run(routine, TriangularCase(DTYPES[letter], 129, 65, side, uplo, alpha=2), stop=16)


@contextmanager
def packed(letter: str, form: str = "ordinary"):
    """Packed operands; by persistent blocks, with the Config that a product of 1000 would take."""
    with ExitStack() as held:
        held.enter_context(override("packed", True))
        if form != "ordinary":
            held.enter_context(override("splits", FORMS[form]))
            for stem in families_of("gemm", letter):
                config = select(stem, DTYPES[letter], LAYOUT_OF_PACKED, (1000, 1000, 1000), current()).config
                variant = packed_variant(config, current())
                if variant is not None:
                    held.enter_context(override(stem, persistent(variant, current())[0]))
        yield


def started(run: Run, form: str):
    with packed(run.letter, form):
        return run.start()


def started_in(run: Run, layout: str):
    with override("layout", layout):
        return run.start()


@pytest.fixture(scope="module", autouse=True)
def compiled(compile_once) -> None:
    calls = [partial(started, run, form) for letter in DTYPES for run in products(letter) for form in FORMS]
    calls += [
        partial(started_in, run, layout)
        for letter in DTYPES
        for run in products(letter)
        for layout in LAYOUTS
    ]
    calls += [partial(started, run, "ordinary") for letter in DTYPES for run in triangles(letter)]
    compile_once("packed_products", lambda: sources_of(calls))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("letter", DTYPES)
def test_exact(letter, form):
    with packed(letter, form):
        config = select("gemm", DTYPES[letter], "tn", (300, 257, 65), current()).config
        assert config.packed and (config.persistent or form == "ordinary")
        for run in products(letter):
            run.check()


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("letter", DTYPES)
def test_exact_by_copies_of_what_lies_otherwise(letter, layout):
    for run in products(letter):
        with override("layout", layout):
            run.check()


@pytest.mark.parametrize("letter", DTYPES)
def test_triangles_whose_updates_are_packed(letter):
    with packed(letter):
        for run in triangles(letter):
            run.check()


@pytest.mark.parametrize(
    "stem, letter", [(s, letter) for s in ("gemm_simt", "gemm_mma") for letter in DTYPES]
)
def test_the_same_bits_as_without_packing(stem, letter):
    """The sums are those of the same tile in the same order, however operands lie; no tile is parted."""
    if stem not in families_of("gemm", letter):
        pytest.skip(f"{stem} is not made for {letter}")
    dtype = DTYPES[letter]
    config = select(stem, dtype, LAYOUT_OF_PACKED, (1000, 1000, 1000), current()).config
    a, b, c = (
        reals(dtype, *shape, seed=seed) for seed, shape in enumerate(((900, 501), (501, 1100), (900, 1100)))
    )
    left, right = cupy.asarray(a, order="F"), cupy.asarray(b, order="C")
    results = []
    for chosen, orders in ((config, ["FC"]), (packed_variant(config, current()), ["CC", "CF", "FC", "FF"])):
        for order_a, order_b in map(tuple, orders):
            x, y = cupy.asarray(left, order=order_a), cupy.asarray(right, order=order_b)
            with override(stem, chosen), override("splits", 1):
                results.append(pyblasgpu.gemm(x, y, alpha=0.7, beta=-1.3, out=cupy.asarray(c)).get())
    assert all(np.array_equal(result, results[0]) for result in results)
    assert gemm_error(0.7, a, b, -1.3, c, results[0]) <= 1


@pytest.mark.parametrize("letter", DTYPES)
def test_strided_operands_that_are_conjugated(letter):
    dtype, rng = DTYPES[letter], np.random.default_rng(5)
    a, b = integers(rng, (520, 150), dtype), integers(rng, (300, 520), dtype)
    left, right = (cupy.asarray(np.repeat(np.repeat(x, 2, 0), 3, 1))[::2, ::3] for x in (a, b))
    for is_packed in (True, False):
        with override("packed", is_packed):
            actual = pyblasgpu.gemm(left, right, trans_a="C", trans_b="C")
        same(actual.get(), a.conj().T @ b.conj().T, f"{letter}, packed: {is_packed}")


def test_a_nan_reaches_its_row_and_an_infinity_no_padding():
    a, b = np.ones((65, 1003), np.float32), np.zeros((1003, 33), np.float32)
    a[40, 1002], b[1002, 7] = NAN, np.inf
    out = cupy.full((65, 33), NAN, np.float32)
    with override("packed", True):
        pyblasgpu.gemm(cupy.asarray(a), cupy.asarray(b), out=out)
    actual = out.get()
    assert np.isnan(actual[40]).all() and np.isnan(actual).sum() == 33
    assert np.isinf(np.delete(actual[:, 7], 40)).all() and np.isinf(actual).sum() == 64


def test_a_plan_packs_into_its_own_workspace():
    a, b = (cupy.asarray(reals(DTYPES["d"], 300, 300, seed=seed)) for seed in (1, 2))
    with override("packed", True):
        expected = pyblasgpu.gemm(a, b)
        planned = cupy.full_like(expected, NAN)
        plan = pyblasgpu.plan_gemm(a, b, planned)
        plan(a, b, planned)
    assert cupy.array_equal(planned, expected)
