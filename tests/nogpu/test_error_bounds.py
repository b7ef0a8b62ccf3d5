"""The error checks of the demo and the benchmarks: they pass what is right and see what is not."""

from __future__ import annotations

import numpy as np
import pytest
from matrices import uniform
from residuals import residual
from scipy.linalg import blas

from pyblasgpu.testing.cases import GemmCase, TriangularCase
from pyblasgpu.testing.error_bounds import gemm_error
from pyblasgpu.testing.problems import Problem, fits
from pyblasgpu.types import DTYPES, Side

GEMM = [a + b for a in "NTC" for b in "NTC"]
TRIANGULAR = [s + u + t + d for s in "LR" for u in "UL" for t in "NTC" for d in "NU"]
CASES = [("gemm", v) for v in GEMM] + [(r, v) for r in ("trmm", "trsm") for v in TRIANGULAR]
SYMMETRIC = [(r, a + b) for r in ("symm", "hemm") for a in "LR" for b in "UL"]
RANK_K = [(r, u + t) for r in ("syrk", "herk", "syr2k", "her2k") for u in "UL" for t in "NTC"]
RANK_K += [("gemmtr", u + t) for u in "UL" for t in ("NN", "TC", "CN")]


def solve(problem, x):
    """The result by SciPy's BLAS."""
    routine = getattr(blas, problem.dtype.letter + problem.routine)
    case = problem.case
    if problem.routine == "gemm":
        trans_a, trans_b = ("NTC".index(letter) for letter in problem.variant)
        return routine(case.alpha, x.a, x.b, case.beta, x.out, trans_a=trans_a, trans_b=trans_b)
    side, uplo, trans, diag = problem.variant
    return routine(
        case.alpha,
        x.a,
        x.out,
        side=side == "R",
        lower=uplo == "L",
        trans_a="NTC".index(trans),
        diag=diag == "U",
    )


@pytest.mark.parametrize("letter", "sdcz")
@pytest.mark.parametrize(("routine", "variant"), CASES)
def test_right_results_pass_and_one_wrong_entry_fails(routine, variant, letter):
    problem = Problem.square(routine, DTYPES[letter], variant, 53, alpha=0.75, beta=-0.5)
    x = problem.data()
    result = solve(problem, x)
    assert 0 < problem.error(x, result) < 1
    # the last entry is always among the sampled ones
    result[-1, -1] *= 1 + 1e4 * problem.dtype.unit_roundoff
    assert problem.error(x, result) > 1
    result[-1, -1] = np.nan
    assert problem.error(x, result) == np.inf


@pytest.mark.parametrize("letter", "sdcz")
@pytest.mark.parametrize(("routine", "variant"), SYMMETRIC + RANK_K)
def test_results_with_a_triangle(routine, variant, letter):
    dtype = DTYPES[letter]
    if not fits(routine, dtype, variant):
        with pytest.raises(ValueError, match=f"{routine}: variant"):
            Problem.square(routine, dtype, variant, 4)
        return
    problem = Problem.square(routine, dtype, variant, 53, alpha=0.75, beta=-0.5)
    x = problem.data()
    operands = x.map(np.copy)
    problem.ours(x, "cpu")
    assert 0 < problem.error(operands, x.out) < 1
    if (routine, variant) in RANK_K:
        other = np.tri(53, k=-1, dtype=bool)
        other = other.T if variant[0] == "L" else other
        assert np.isnan(x.out[other]).all(), "the other triangle is as it was"
    x.out[-1, -1] *= 1 + 1e6 * dtype.unit_roundoff
    assert problem.error(operands, x.out) > 1
    x.out[-1, -1] = np.nan
    assert problem.error(operands, x.out) == np.inf


def test_a_hermitian_diagonal_must_be_real():
    problem = Problem.square("herk", DTYPES["z"], "LN", 20)
    x = problem.data()
    operands = x.map(np.copy)
    problem.ours(x, "cpu")
    x.out[-1, -1] += 1e-300j
    assert problem.error(operands, x.out) == np.inf


def test_a_bound_of_zero_is_met_only_exactly():
    unread = np.full((8, 8), np.nan)
    assert gemm_error(0, unread, unread, 0, unread, np.zeros((8, 8))) == 0
    assert gemm_error(0, unread, unread, 0, unread, np.full((8, 8), 1e-300)) == np.inf


def test_empty_results_have_no_error():
    assert gemm_error(1, np.ones((0, 3)), np.ones((3, 4)), 0, None, np.ones((0, 4))) == 0
    assert gemm_error(1, np.ones((2, 0)), np.ones((0, 4)), 0, None, np.zeros((2, 4))) == 0


def test_triangles_hold_nan_where_nothing_may_be_read():
    a = Problem.square("trsm", DTYPES["z"], "LUNU", 9).data().a
    assert a.flags.f_contiguous and a.shape == (9, 9)
    assert np.array_equal(np.isnan(a), np.tri(9, dtype=bool))


def test_flops_count_the_triangle_once():
    assert Problem("gemm", GemmCase(DTYPES["s"], 3, 5, 7)).flops == 2 * 3 * 5 * 7
    assert Problem("gemm", GemmCase(DTYPES["z"], 3, 5, 7)).flops == 8 * 3 * 5 * 7
    assert Problem("trsm", TriangularCase(DTYPES["d"], 3, 5)).flops == 3 * 3 * 5
    assert Problem("trmm", TriangularCase(DTYPES["c"], 3, 5, Side.RIGHT)).flops == 4 * 3 * 5 * 5
    flops = {
        name: Problem.square(name, DTYPES["d"], variant, 10).flops
        for name, variant in (("symm", "LL"), ("syrk", "LN"), ("syr2k", "LN"), ("gemmtr", "LNN"))
    }
    assert flops == {"symm": 2000, "syrk": 1000, "syr2k": 2000, "gemmtr": 1000}
    assert Problem.square("herk", DTYPES["z"], "LN", 10).flops == 4000


@pytest.mark.parametrize(
    ("routine", "variant"),
    [("gemm", "NX"), ("gemm", "LLNN"), ("trsm", "NN"), ("trmm", ""), ("syrk", "NN"), ("hemm", "LL")],
)
def test_unknown_variants_are_refused(routine, variant):
    with pytest.raises(ValueError, match=routine):
        Problem.square(routine, DTYPES["s"], variant, 4)


@pytest.mark.parametrize("letter", DTYPES)
def test_residuals_have_more_digits_than_their_operands(letter):
    dtype = DTYPES[letter]
    a, b = uniform(letter, 2, 20, 300), uniform(letter, 300, 30)
    c = a @ b
    wide = np.clongdouble if dtype.is_complex else np.longdouble
    exact = c.astype(wide) - a.astype(wide) @ b.astype(wide)
    assert (abs(residual(c, a, b) - exact) <= 2.0**-7 * dtype.unit_roundoff * (abs(a) @ abs(b))).all()
