"""``gemm(..., method="tensor")`` on a Hopper card: exact on integers, within FP32's bound on any data."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

import pyblasgpu
from pyblasgpu.dispatch.overrides import override
from pyblasgpu.kernels.gemm.wgmma.config import GemmWgmma
from pyblasgpu.testing.cases import GemmCase
from pyblasgpu.testing.error_bounds import gemm_error
from pyblasgpu.testing.reference import integers
from pyblasgpu.types import DTYPES, Trans, Uplo

from .precompile import sources_of
from .running import NAN, cupy, reals, same
from .tensor_products import (
    check_case,
    check_exact,
    check_triangle,
    check_wide_triangle,
    is_hopper,
    multiply,
    skip_without_hopper,
)

S, C = DTYPES["s"], DTYPES["c"]
SHAPES = ((300, 257, 130), (129, 1030, 256), (128, 128, 128), (2, 3, 300), (1000, 700, 1001), (130, 65, 4097))
#: k and fields of Configs. One of warpgroups in turns is compiled: they are in no archive.
FIELDS: tuple[dict[str, Any], ...] = ({}, {"BLK_N": 64, "cluster": 1})
CONFIGS = [(k, fields) for fields in FIELDS for k in (200, 300, 2048, 4096)]
CONFIGS += [(2048, {"ordered": True})]


@pytest.fixture(autouse=True)
def on_hopper():
    skip_without_hopper()
    with override("gemm_wgmma", GemmWgmma()):  # small products too
        yield


def warm() -> None:
    """One call of each kernel: any depth of blocks, operands that lie in any way."""
    for (k, fields), order_a, order_b in product(CONFIGS, "CF", "CF"):
        a, b = cupy.ones((130, k), np.float32, order=order_a), cupy.ones((k, 130), np.float32, order=order_b)
        with override("gemm_wgmma", GemmWgmma(**fields)):
            multiply(a, b, out=cupy.empty((130, 130), np.float32, order="F"))
            for conj in "NC" if not fields and order_b == "F" else "":
                left, right = a.astype(np.complex64), b.astype(np.complex64)
                left = left if conj == "N" else left.T.copy(order_a)
                multiply(left, right, trans_a=conj, out=cupy.empty((130, 130), np.complex64, order="F"))


@pytest.fixture(scope="module", autouse=True)
def compiled(compile_once) -> None:
    if is_hopper():
        with override("gemm_wgmma", GemmWgmma()):
            compile_once("gemm_wgmma", lambda: sources_of([warm]))


@pytest.mark.parametrize("order", "CF")
@pytest.mark.parametrize("aligned", [True, False])
@pytest.mark.parametrize("shape", SHAPES)
def test_exact_on_integers(shape, aligned, order):
    check_exact(S, shape, aligned, order)


@pytest.mark.parametrize(
    ("shape", "fields"),
    [
        (SHAPES[0], {"BLK_N": 64, "cluster": 1}),
        (SHAPES[-1], {"BLK_N": 64, "cluster": 1}),
        ((300, 257, 2049), {"ordered": True}),
    ],
)
def test_other_configs_are_exact_on_integers(shape, fields):
    with override("gemm_wgmma", GemmWgmma(**fields)):
        check_exact(S, shape, True, "F")


@pytest.mark.parametrize("order", "CF")
@pytest.mark.parametrize("aligned", [True, False])
@pytest.mark.parametrize("shape", [(150, 130, 65), (129, 1030, 128), (64, 128, 2050)])
def test_complex_products_are_exact_on_integers(shape, aligned, order):
    """All layouts and conjugations, complex scalars; what must not be read is NaN."""
    m, n, k = shape
    ways, scalars = (Trans.NO, Trans.TRANS, Trans.CONJ), ((2, -1), (1 - 2j, 0), (-1, 1 + 1j), (2j, 0))
    for number, (trans_a, trans_b) in enumerate(product(ways, ways)):
        alpha, beta = scalars[number % 4]
        case = GemmCase(C, m, n, k, trans_a, trans_b, alpha, beta)
        check_case(case, number, aligned, order)


@pytest.mark.parametrize("kind", ["barely", "graded_k_12", "few_tiny", "exponentials"])
def test_complex_products_are_within_the_bound(kind):
    (a, b), (x, y) = (HARD[kind](reals(S, 200, 600, seed=i), reals(S, 600, 150, seed=i + 1)) for i in (1, 3))
    a, b = np.asarray(a + 1j * x, np.complex64), np.asarray(b + 1j * y, np.complex64)
    assert gemm_error(1, a, b, 0, None, multiply(cupy.asarray(a), cupy.asarray(b)).get()) <= 1


def test_batches_and_a_shared_factor():
    rng = np.random.default_rng(3)
    a, b = integers(rng, (5, 200, 150), S), integers(rng, (150, 140), S)
    same(multiply(cupy.asarray(a), cupy.asarray(b)).get(), a @ b, "a batch times a matrix")
    same(
        multiply(cupy.asarray(b.T.copy()), cupy.asarray(a.swapaxes(1, 2).copy())).get(),
        b.T @ a.swapaxes(1, 2),
        "a matrix times a batch",
    )


@pytest.mark.parametrize("n", [256, 1024, 2048, 4096])
def test_normal_data_are_within_the_bound(n):
    a, b = reals(S, n, n, seed=1), reals(S, n, n, seed=2)
    actual, rows = multiply(cupy.asarray(a), cupy.asarray(b)).get(), slice(0, n, max(n // 256, 1))
    assert gemm_error(1, a[rows], b, 0, None, actual[rows]) <= 0.5


def graded(n: int, power: int) -> np.ndarray:
    return np.float32(2) ** np.random.default_rng(7).integers(-power, power + 1, n).astype(np.float32)


def barely(a, b):
    """Sums of what pairs barely hold, beside large elements that meet zeros."""
    a, b = ((np.sign(x) * np.float32(0.9) + x / 16) * np.float32(2.0**-28) for x in (a, b))
    a[:, :2], b[:2] = (1, 0), [[0], [1]]
    return a, b


HARD = {
    "barely": barely,
    "graded_k_12": lambda a, b: (a * graded(a.shape[1], 12), b / graded(a.shape[1], 12)[:, None]),
    "graded_k_40": lambda a, b: (a * graded(a.shape[1], 40), b / graded(a.shape[1], 40)[:, None]),
    "rows_of_any_size": lambda a, b: (a * graded(a.shape[0], 40)[:, None], b),
    "one_large_in_each_row": lambda a, b: (a + np.float32(1e18) * np.eye(*a.shape, dtype=np.float32), b),
    "zero_blocks": lambda a, b: (np.where(np.arange(a.shape[1]) % 200 < 100, 0, a), b),
    "cancellation": lambda a, b: (np.hstack([a[:, ::2], a[:, ::2]]), np.vstack([b[::2], -b[::2]])),
    "wide": lambda a, b: (a * np.exp(4 * reals(S, *a.shape, seed=5)), b),
    "subnormal": lambda a, b: (a * np.float32(1e-39), b),
    "huge": lambda a, b: (a * np.float32(1e30), b * np.float32(1e-20)),
    "exponentials": lambda a, b: (np.exp(-10 * a * a), np.exp(-10 * b * b)),
    "few_tiny": lambda a, b: (np.where(reals(S, *a.shape, seed=6) > 3.5, a * np.float32(1e-12), a), b),
}


@pytest.mark.parametrize("kind", HARD)
@pytest.mark.parametrize("k", [128, 1024])
def test_hard_data_are_within_the_bound(kind, k):
    a, b = HARD[kind](reals(S, 300, k, seed=1), reals(S, k, 260, seed=2))
    a, b = np.asarray(a, np.float32), np.asarray(b, np.float32)
    actual = multiply(cupy.asarray(a), cupy.asarray(b)).get()
    assert gemm_error(1, a, b, 0, None, actual) <= 1


def test_graded_data_are_equilibrated(decide_by):
    """A D and D^-1 B, of more than the range of pairs, are served by pairs, within the bound."""
    decide_by(fp16_min_equilibrated_work=0)
    a, b = HARD["graded_k_40"](reals(S, 500, 1024, seed=1), reals(S, 1024, 260, seed=2))
    actual = multiply(cupy.asarray(a), cupy.asarray(b)).get()
    assert gemm_error(1, a, b, 0, None, actual) <= 0.5


@pytest.mark.parametrize("kind", ["wide", "exponentials", "few_tiny", "subnormal", "graded_k_40"])
def test_three_numbers_an_element(kind, decide_by):
    """Large products have data that pairs do not hold, some of which triples do not hold either."""
    decide_by(fp16_min_equilibrated_work=0)
    (a, b), (x, y) = (
        HARD[kind](reals(S, 300, 1100, seed=i), reals(S, 1100, 260, seed=i + 1)) for i in (1, 3)
    )
    a, b = np.asarray(a, np.float32), np.asarray(b, np.float32)
    actual = multiply(cupy.asarray(a), cupy.asarray(b, order="F")).get()
    assert gemm_error(1, a, b, 0, None, actual) <= 1
    a, b = np.asarray(a + 1j * x, np.complex64), np.asarray(b + 1j * y, np.complex64)
    assert gemm_error(1, a, b, 0, None, multiply(cupy.asarray(a, order="F"), cupy.asarray(b)).get()) <= 1


def test_what_is_not_finite_reaches_what_depends_on_it():
    a, b = reals(S, 400, 300), reals(S, 300, 350, seed=2)
    a[201, 299], b[0, 17] = NAN, np.inf
    actual = multiply(cupy.asarray(a), cupy.asarray(b)).get()
    assert np.isnan(actual[201]).all() and np.isnan(actual).sum() == 350
    assert np.isinf(np.delete(actual[:, 17], 201)).all() and np.isinf(actual).sum() == 399


def test_sums_keep_24_bits():
    """What the error bound rests on: beside 1 the tensor core keeps 2^-23, from one step to the next too."""
    k = 256
    a, b = np.zeros((128, k), np.float32), np.zeros((k, 128), np.float32)
    a[:, 0] = b[0] = 1
    a[:, 1:64], b[1:64] = 2.0**-12, 2.0**-11
    actual = multiply(cupy.asarray(a), cupy.asarray(b)).get()
    assert (actual == np.float32(1 + 63 * 2.0**-23)).all()


def test_exponents_of_subnormal_halves():
    """Products of subnormal FP16 count as large as 2^-28: their sums are exact where 24 bits hold them."""
    k = 256
    a, b = np.zeros((128, k), np.float32), np.zeros((k, 128), np.float32)
    a[:, 0], b[1] = 1, 1  # what scales the rows and columns
    a[:, 2:64], b[2:64] = 15 * 2.0**-32, 15 * 2.0**-32
    actual = multiply(cupy.asarray(a), cupy.asarray(b)).get()
    assert (actual == np.float32(62 * 225 * 2.0**-64)).all()


@pytest.mark.parametrize("uplo", Uplo)
@pytest.mark.parametrize("name", ["ssyrk", "ssyr2k", "csyrk", "cherk", "cher2k"])
def test_triangles(name, uplo):
    dtype = DTYPES[name[0]]
    check_triangle(dtype, name[1:], uplo, "F")
    check_triangle(dtype, name[1:], uplo, "C")


@pytest.mark.parametrize("letter", "sc")
def test_wide_triangles_are_within_the_bound(letter):
    check_wide_triangle(DTYPES[letter])


def test_the_same_bits_on_every_run():
    a, b = (cupy.asarray(reals(S, 1500, 1500, seed=seed)) for seed in (1, 2))
    a[3, 5] = 1e-20  # a tile for FMAs
    results = [multiply(a, b) for _ in range(20)]
    for stream in (cupy.cuda.Stream(non_blocking=True) for _ in range(3)):
        with stream:
            results += [multiply(a, b) for _ in range(3)]
    cupy.cuda.Device().synchronize()
    assert all(cupy.array_equal(result, results[0]) for result in results)


def test_a_plan_computes_the_same():
    a, b = (cupy.asarray(reals(S, 700, 700, seed=seed)) for seed in (1, 2))
    # a row-major result is that of the transposed product, whose sums are added up in another order
    out = cupy.full((700, 700), NAN, np.float32)
    expected = multiply(a, b, out=cupy.empty_like(out))
    plan = pyblasgpu.plan_gemm(a, b, out, method="tensor")
    for _ in range(5):
        out[...] = NAN
        plan(a, b, out)
        assert cupy.array_equal(out, expected)


@pytest.mark.parametrize("routine", ["syrk", "symm", "trsm", "cholesky"])
def test_other_routines_in_the_mode(routine):
    """Their products are made on tensor cores; results keep the bounds of their routines."""
    n = 2500
    a, b = reals(S, n, n, seed=1), reals(S, n, n, seed=2)
    left, right = cupy.asarray(a, order="F"), cupy.asarray(b, order="F")
    with pyblasgpu.set_math_mode("tensor"):
        if routine == "syrk":
            actual = pyblasgpu.syrk(left, lower=True).get()
            errors = [
                gemm_error(1, a[i], a[i].T, 0, None, actual[i, i]) for i in (slice(0, 1), slice(n - 1, n))
            ]
            product, sizes = np.tril(a.astype(float) @ a.T), abs(a.astype(float)) @ abs(a.T)
            assert max(errors) <= 1 and (abs(actual - product) <= (n + 2) * 2.0**-24 * sizes).all()
        elif routine == "symm":
            full = np.tril(a) + np.tril(a, -1).T
            actual = pyblasgpu.symm(left, right, lower=True).get()
            assert gemm_error(1, full, b, 0, None, actual) <= 1
        elif routine == "trsm":
            left += 50 * cupy.eye(n, dtype=np.float32)
            actual = pyblasgpu.trsm(left, right, lower=True).get()
            t = np.tril(left.get()).astype(float)
            assert (abs(t @ actual - b) <= n * 2.0**-24 * (abs(t) @ abs(actual))).all()
        else:
            s = (left @ left.T / n + cupy.eye(n, dtype=np.float32)).get()
            lower = np.tril(pyblasgpu.linalg.cholesky(cupy.asarray(s), lower=True).get()).astype(float)
            error = np.tril(abs(lower @ lower.T - s))
            assert (error <= (n + 4) * 2.0**-24 * (abs(lower) @ abs(lower.T))).all()


def test_a_large_product():
    n = 8192
    a, b = (cupy.random.RandomState(seed).standard_normal((n, n), dtype=np.float32) for seed in (1, 2))
    actual, rows = multiply(a, b), slice(0, n, 64)  # the host would take a minute for all
    assert gemm_error(1, a[rows].get(), b.get(), 0, None, actual[rows].get()) <= 0.5
