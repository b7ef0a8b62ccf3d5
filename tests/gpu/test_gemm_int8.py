"""``gemm(..., method="tensor")`` of float64 on a Hopper card: exact on integers, within FP64's bound."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

import pyblasgpu
from pyblasgpu.dispatch import tensor
from pyblasgpu.dispatch.overrides import override
from pyblasgpu.kernels.gemm.int8.config import GemmInt8
from pyblasgpu.testing.error_bounds import gemm_error
from pyblasgpu.testing.policies import deciding_by
from pyblasgpu.testing.reference import integers
from pyblasgpu.types import DTYPES, Uplo

from .precompile import sources_of
from .running import NAN, cupy, reals, same
from .tensor_products import (
    check_exact,
    check_kept_factor,
    check_triangle,
    check_wide_triangle,
    is_hopper,
    multiply,
    skip_without_hopper,
)

D = DTYPES["d"]
SHAPES = ((300, 257, 130), (129, 1030, 256), (128, 128, 128), (2, 3, 300), (1000, 700, 1001), (130, 65, 4097))


@pytest.fixture(autouse=True)
def on_hopper():
    skip_without_hopper()
    with override("gemm_int8", GemmInt8()):  # small products too
        yield


def warm() -> None:
    """One call of each kernel, with operands that lie in any way."""
    for order_a, order_b in product("CF", "CF"):
        a, b = cupy.ones((130, 200), order=order_a), cupy.ones((200, 130), order=order_b)
        multiply(a, b, out=cupy.empty((130, 130), order="F"))


@pytest.fixture(scope="module", autouse=True)
def compiled(compile_once) -> None:
    if is_hopper():
        with override("gemm_int8", GemmInt8()):
            compile_once("gemm_int8", lambda: sources_of([warm]))


@pytest.mark.parametrize("order", "CF")
@pytest.mark.parametrize("aligned", [True, False])
@pytest.mark.parametrize("shape", SHAPES)
def test_exact_on_integers(shape, aligned, order):
    check_exact(D, shape, aligned, order)


def test_batches_and_a_shared_factor():
    rng = np.random.default_rng(3)
    a, b = integers(rng, (5, 200, 150), D), integers(rng, (150, 140), D)
    same(multiply(cupy.asarray(a), cupy.asarray(b)).get(), a @ b, "a batch times a matrix")


@pytest.mark.parametrize("n", [1024, 2048])
def test_normal_data_are_within_the_bound(n):
    """And served by residues, whose roundings are others than those of FMAs."""
    a, b = reals(D, n, n, seed=1), reals(D, n, n, seed=2)
    left, right = cupy.asarray(a), cupy.asarray(b)
    actual = multiply(left, right)
    assert gemm_error(1, a, b, 0, None, actual.get()) <= 0.5
    by_fma = pyblasgpu.gemm(left, right)
    assert (actual != by_fma).mean() > 0.5
    assert (cupy.asarray(actual)[:, : n // 2] != by_fma[:, : n // 2]).any(axis=1).all()


def graded(n: int, power: int) -> np.ndarray:
    return 2.0 ** np.random.default_rng(7).integers(-power, power + 1, n)


HARD = {
    "graded_k_12": lambda a, b: (a * graded(a.shape[1], 12), b / graded(a.shape[1], 12)[:, None]),
    "graded_k_300": lambda a, b: (a * graded(a.shape[1], 300), b / graded(a.shape[1], 300)[:, None]),
    "rows_of_any_size": lambda a, b: (a * graded(a.shape[0], 300)[:, None], b),
    "rows_of_more_than_any_size": lambda a, b: (a * graded(a.shape[0], 500)[:, None], b),
    "one_large_in_each_row": lambda a, b: (a + 1e18 * np.eye(*a.shape), b),
    "zero_blocks": lambda a, b: (np.where(np.arange(a.shape[1]) % 200 < 100, 0, a), b),
    "zero_rows": lambda a, b: (np.where(np.arange(a.shape[0])[:, None] % 3 < 2, 0, a), b),
    "disjoint": lambda a, b: (
        np.where(np.arange(a.shape[1]) % 2, a, 1e-20 * a),
        np.where(np.arange(a.shape[1])[:, None] % 2, 1e-20 * b, b),
    ),
    "cancellation": lambda a, b: (np.hstack([a[:, ::2], a[:, ::2]]), np.vstack([b[::2], -b[::2]])),
    "wide": lambda a, b: (a * np.exp(8 * reals(D, *a.shape, seed=5)), b),
    "subnormal": lambda a, b: (a * 1e-310, b),
    "huge": lambda a, b: (a * 1e300, b * 1e-200),
    "exponentials": lambda a, b: (np.exp(-10 * a * a), np.exp(-10 * b * b)),
    "same_signs": lambda a, b: (abs(a), abs(b)),
    "all_equal": lambda a, b: (np.ones_like(a) / 3, np.ones_like(b) / 7),
}


@pytest.mark.parametrize("kind", HARD)
@pytest.mark.parametrize("k", [128, 1024])
def test_hard_data_are_within_the_bound(kind, k):
    a, b = HARD[kind](reals(D, 300, k, seed=1), reals(D, k, 260, seed=2))
    actual = multiply(cupy.asarray(a), cupy.asarray(b)).get()
    assert gemm_error(1, a, b, 0, None, actual) <= 1


@pytest.mark.parametrize("kind", ["wide", "one_large_in_each_row", "graded_k_12", "same_signs"])
def test_sampled_data_are_within_the_bound(kind):
    """Samples change what is packed, whatever their verdict is, and not the bound."""
    a, b = HARD[kind](reals(D, 700, 1100, seed=1), reals(D, 1100, 600, seed=2))
    with deciding_by(int8_min_sampled_work=1):
        actual = multiply(cupy.asarray(a), cupy.asarray(b, order="F")).get()
    assert gemm_error(1, a, b, 0, None, actual) <= 1


def test_what_is_not_finite_reaches_what_depends_on_it():
    a, b = reals(D, 400, 300), reals(D, 300, 350, seed=2)
    a[201, 299], b[0, 17] = NAN, np.inf
    actual = multiply(cupy.asarray(a), cupy.asarray(b)).get()
    assert np.isnan(actual[201]).all() and np.isnan(actual).sum() == 350
    assert np.isinf(np.delete(actual[:, 17], 201)).all() and np.isinf(actual).sum() == 399


@pytest.mark.parametrize("uplo", Uplo)
@pytest.mark.parametrize("routine", ("syrk", "syr2k"))
def test_triangles(routine, uplo):
    check_triangle(D, routine, uplo, "F")
    check_triangle(D, routine, uplo, "C")


def test_wide_triangles_are_within_the_bound():
    check_wide_triangle(D)


@pytest.mark.parametrize("uplo", Uplo)
def test_factors_by_residues_that_are_kept(uplo):
    check_kept_factor(D, uplo)


def test_the_same_bits_on_every_run():
    a, b = (cupy.asarray(reals(D, 1500, 1500, seed=seed)) for seed in (1, 2))
    a[3, 5] = 1e40  # a tile for FMAs
    results = [multiply(a, b) for _ in range(10)]
    for stream in (cupy.cuda.Stream(non_blocking=True) for _ in range(3)):
        with stream:
            results += [multiply(a, b) for _ in range(3)]
    cupy.cuda.Device().synchronize()
    assert all(cupy.array_equal(result, results[0]) for result in results)


def test_a_plan_computes_the_same():
    a, b = (cupy.asarray(reals(D, 700, 700, seed=seed)) for seed in (1, 2))
    out = cupy.full((700, 700), NAN)
    expected = multiply(a, b, out=cupy.empty_like(out))
    plan = pyblasgpu.plan_gemm(a, b, out, method="tensor")
    for _ in range(3):
        out[...] = NAN
        plan(a, b, out)
        assert cupy.array_equal(out, expected)


def test_blocks_of_the_result(monkeypatch):
    """With little workspace C is computed in blocks, to the same bits; so is a triangle."""
    a, b = (cupy.asarray(reals(D, 1300, 1300, seed=seed)) for seed in (1, 2))
    expected = multiply(a, b)
    monkeypatch.setattr(tensor, "MOST_WORKSPACE", 24 << 20)
    monkeypatch.setattr(tensor, "MIN_BLOCK", 256)
    with override("gemm_int8", GemmInt8(stages=3)):  # another list of launches
        assert cupy.array_equal(multiply(a, b), expected)
        for limit, uplo in ((24, Uplo.LOWER), (38, Uplo.UPPER)):  # in blocks of rows, in columns of one image
            monkeypatch.setattr(tensor, "MOST_WORKSPACE", limit << 20)
            check_triangle(D, "syrk", uplo, "F", 1300, 1300)


def test_host_arrays_by_tiles():
    """Tiles of a product that streams are made of residues, as by the mode."""
    n = 4096
    rng = np.random.default_rng(3)
    a, b = (rng.integers(-1000, 1000, (n, n)).astype(float) for _ in range(2))
    actual = pyblasgpu.gemm(a, b, method="tensor", backend="cuda")
    rows = slice(0, n, 97)
    np.testing.assert_array_equal(actual[rows], a[rows] @ b)


def test_the_mode():
    a, b = (cupy.asarray(reals(D, 700, 700, seed=seed)) for seed in (1, 2))
    with pyblasgpu.set_math_mode("tensor"):
        actual = pyblasgpu.gemm(a, b)
    assert cupy.array_equal(actual, multiply(a, b))
