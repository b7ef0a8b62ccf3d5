"""``gemm(..., method="tensor")`` of complex128 on a Hopper card: exact on integers, within FP64's bound."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

import pyblasgpu
from pyblasgpu.dispatch import tensor
from pyblasgpu.dispatch.overrides import override
from pyblasgpu.kernels.gemm.int8.config import GemmInt8
from pyblasgpu.testing.cases import GemmCase
from pyblasgpu.testing.error_bounds import gemm_error
from pyblasgpu.types import DTYPES, Trans, Uplo

from .precompile import sources_of
from .running import NAN, cupy, reals
from .tensor_products import (
    check_case,
    check_exact,
    check_kept_factor,
    check_triangle,
    check_wide_triangle,
    is_hopper,
    multiply,
    skip_without_hopper,
)

D, Z = DTYPES["d"], DTYPES["z"]
SHAPES = ((300, 257, 130), (129, 530, 256), (128, 128, 128), (2, 3, 300), (500, 350, 1001))
CONJUGATED = [each for each in product(Trans, Trans) if Trans.CONJ in each]


@pytest.fixture(autouse=True)
def on_hopper():
    skip_without_hopper()
    with override("gemm_int8", GemmInt8("z")):  # small products too
        yield


def normal(*shape: int, seed: int = 1) -> np.ndarray:
    return reals(D, *shape, seed=seed) + 1j * reals(D, *shape, seed=seed + 100)


def warm() -> None:
    """One call of each kernel, with operands that lie in any way, conjugated and not."""
    for order_a, order_b, trans in product("CF", "CF", "TC"):
        a, b = (cupy.ones((140, 140), complex, order=order) for order in (order_a, order_b))
        multiply(a, b, trans_a=trans, out=cupy.empty((140, 140), complex, order="F"))


@pytest.fixture(scope="module", autouse=True)
def compiled(compile_once) -> None:
    if is_hopper():
        with override("gemm_int8", GemmInt8("z")):
            compile_once("zgemm_int8", lambda: sources_of([warm]))


@pytest.mark.parametrize("aligned", [True, False])
@pytest.mark.parametrize("shape", SHAPES)
def test_exact_on_integers(shape, aligned):
    check_exact(Z, shape, aligned, "F")


@pytest.mark.parametrize(("trans_a", "trans_b"), CONJUGATED)
def test_conjugated_operands(trans_a, trans_b):
    case = GemmCase(Z, 200, 150, 170, trans_a, trans_b, 2 - 1j, 1j)
    for seed, order in enumerate("CF"):
        check_case(case, seed, True, order)


@pytest.mark.parametrize("n", [512, 1024])
def test_normal_data_are_within_the_bound(n):
    """And served by residues, whose roundings are others than those of FMAs."""
    a, b, c = (normal(n, n, seed=seed) for seed in (1, 2, 3))
    left, right, out = (cupy.asarray(x) for x in (a, b, c))
    multiply(left, right, alpha=0.5 - 2j, beta=3j, out=out)
    assert gemm_error(0.5 - 2j, a, b, 3j, c, out.get()) <= 0.5
    actual = multiply(left, right)
    assert gemm_error(1, a, b, 0, None, actual.get()) <= 0.5
    by_fma = pyblasgpu.gemm(left, right)
    assert (actual != by_fma).mean() > 0.5


def graded(n: int, power: int) -> np.ndarray:
    return 2.0 ** np.random.default_rng(7).integers(-power, power + 1, n)


HARD = {
    "graded_k_300": lambda a, b: (a * graded(a.shape[1], 300), b / graded(a.shape[1], 300)[:, None]),
    "rows_of_any_size": lambda a, b: (a * graded(a.shape[0], 500)[:, None], b),
    "one_large_in_each_row": lambda a, b: (a + 1e18 * np.eye(*a.shape), b),
    "zero_rows": lambda a, b: (np.where(np.arange(a.shape[0])[:, None] % 3 < 2, 0, a), b),
    "cancellation": lambda a, b: (np.hstack([a[:, ::2], a[:, ::2]]), np.vstack([b[::2], -b[::2]])),
    "wide": lambda a, b: (a * np.exp(8 * reals(D, *a.shape, seed=5)), b),
    "subnormal": lambda a, b: (a * 1e-310, b),
    "nearly_real": lambda a, b: (a.real + 1e-18j * a.imag, b.real + 1e-18j * b.imag),
    "real_times_imaginary": lambda a, b: (a.real + 0j, 1j * b.imag),
}


@pytest.mark.parametrize("kind", HARD)
@pytest.mark.parametrize("k", [128, 1024])
def test_hard_data_are_within_the_bound(kind, k):
    a, b = HARD[kind](normal(300, k), normal(k, 260, seed=2))
    actual = multiply(cupy.asarray(a), cupy.asarray(b)).get()
    assert gemm_error(1, a, b, 0, None, actual) <= 1


@pytest.mark.parametrize(("trans_a", "trans_b"), [("C", "N"), ("N", "C"), ("C", "C"), ("T", "C")])
def test_conjugated_operands_of_a_wide_range(trans_a, trans_b):
    """Whose tiles FMAs compute."""
    a, b = (x * np.exp(8 * reals(D, 200, 200, seed=5)) for x in (normal(200, 200), normal(200, 200, seed=2)))
    actual = multiply(cupy.asarray(a), cupy.asarray(b), trans_a=trans_a, trans_b=trans_b).get()
    left, right = ({"C": x.conj().T, "T": x.T, "N": x}[trans] for x, trans in ((a, trans_a), (b, trans_b)))
    assert gemm_error(1, left, right, 0, None, actual) <= 1


@pytest.mark.parametrize("uplo", Uplo)
@pytest.mark.parametrize("routine", ("syrk", "herk", "her2k"))
def test_triangles(routine, uplo):
    check_triangle(Z, routine, uplo, "F")
    check_triangle(Z, routine, uplo, "C")


def test_wide_triangles_are_within_the_bound():
    check_wide_triangle(Z)


@pytest.mark.parametrize("uplo", Uplo)
def test_factors_by_residues_that_are_kept(uplo):
    check_kept_factor(Z, uplo)


def test_what_is_not_finite_reaches_what_depends_on_it():
    a, b = normal(400, 300), normal(300, 350, seed=2)
    a[201, 299] = complex(NAN, 0)
    actual = multiply(cupy.asarray(a), cupy.asarray(b)).get()
    assert np.isnan(actual[201]).all() and np.isnan(actual).sum() == 350


def test_blocks_of_the_result_and_plans(monkeypatch):
    """With little workspace C is computed in blocks, to the same bits, as by a plan."""
    a, b = (cupy.asarray(normal(700, 700, seed=seed)) for seed in (1, 2))
    a[3, 5] = 1e40  # a tile for FMAs
    expected = multiply(a, b)
    out = cupy.full_like(expected, NAN)  # as a row-major one it has other tiles for FMAs
    pyblasgpu.plan_gemm(a, b, out, method="tensor")(a, b, out)
    assert cupy.array_equal(out, expected)
    monkeypatch.setattr(tensor, "MOST_WORKSPACE", 24 << 20)
    monkeypatch.setattr(tensor, "MIN_BLOCK", 256)
    with override("gemm_int8", GemmInt8("z", stages=3)):  # another list of launches
        assert cupy.array_equal(multiply(a, b), expected)
