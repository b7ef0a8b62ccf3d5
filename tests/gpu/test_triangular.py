"""TRMM and TRSM on a device: exact on integers, backward stable on hard triangles."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

import pyblasgpu
from pyblasgpu.dispatch.overrides import override
from pyblasgpu.testing.cases import TriangularCase
from pyblasgpu.testing.reference import exact_triangular, integers, triangle
from pyblasgpu.types import DTYPES, Diag, Side, Trans, Uplo

from .running import NAN, RUNS, cupy, flags, same
from .triangular_checks import HARD, check_bounds, check_hard


@pytest.mark.parametrize("recursive", [False, True], ids=["", "recursive"])
@pytest.mark.parametrize("letter", DTYPES)
@pytest.mark.parametrize("routine", ["trmm", "trsm"])
def test_all_cases(routine, letter, recursive):
    for run in RUNS:
        if (run.routine, run.letter, run.stop is not None) == (routine, letter, recursive):
            run.check()


@pytest.mark.parametrize("letter", DTYPES)
def test_products_without_workspace(letter):
    runs = [run for run in RUNS if (run.routine, run.letter, run.stop) == ("trmm", letter, None)]
    with override("workspace", 0):
        for run in runs[::5]:
            run.check()


@pytest.mark.parametrize("letter", DTYPES)
@pytest.mark.parametrize("routine", [pyblasgpu.trmm, pyblasgpu.trsm], ids=["trmm", "trsm"])
def test_out_of_place(routine, letter):
    case = TriangularCase(DTYPES[letter], 65, 33, trans=Trans.TRANS, alpha=2)
    rng = np.random.default_rng(3)
    a, x = triangle(rng, case), integers(rng, (65, 33), case.dtype)
    initial, expected = x, exact_triangular(case, a, x)
    if routine is pyblasgpu.trsm:
        initial, expected = exact_triangular(case, a, x, alpha=1), 2 * x
    b = cupy.asarray(initial, order="F")
    out = cupy.full_like(b, NAN)
    left = cupy.asarray(a, order="F")
    for target in (None, out):
        result = routine(left, b, alpha=2, out=target, **flags(case))
        same(result.get(), expected, f"{letter} out")
        same(b.get(), initial, "b")
    assert result is out


@pytest.mark.parametrize("routine", [pyblasgpu.trmm, pyblasgpu.trsm], ids=["trmm", "trsm"])
def test_a_stack(routine):
    case = TriangularCase(DTYPES["d"], 65, 33)
    rng = np.random.default_rng(4)
    a, x = triangle(rng, case, batch_shape=(3, 1)), integers(rng, (2, 65, 33), case.dtype)
    product = exact_triangular(case, a, x)
    if routine is pyblasgpu.trmm:
        same(routine(cupy.asarray(a), cupy.asarray(x), lower=True).get(), product, "trmm")
    else:
        expected = np.broadcast_to(x, product.shape)
        same(routine(cupy.asarray(a), cupy.asarray(product), lower=True).get(), expected, "trsm")


@pytest.mark.parametrize("letter", DTYPES)
@pytest.mark.parametrize(
    "n, columns, count", [(1, 1, 1), (20, 100, 1), (7, 70, 150), (40, 33, 150), (100, 9, 150), (150, 40, 3)]
)
def test_small_and_many_triangles(letter, n, columns, count):
    """Kernels of their own serve them, in every variant, B in either order."""
    rng = np.random.default_rng(7)
    for number, (side, uplo, trans, diag) in enumerate(product(Side, Uplo, Trans, Diag)):
        m, r = (n, columns) if side is Side.LEFT else (columns, n)
        case = TriangularCase(DTYPES[letter], m, r, side, uplo, trans, diag, alpha=2)
        a, x = triangle(rng, case, batch_shape=(count,)), integers(rng, (count, m, r), case.dtype)
        b = cupy.asarray(exact_triangular(case, a, x, alpha=1), order="CF"[number % 2])
        with override("trsm_algorithm", "trsm_small"):
            result = pyblasgpu.trsm(cupy.asarray(a), b, alpha=2, out=b, **flags(case))
            out = cupy.full_like(b, NAN)
            b_twice = cupy.asarray(exact_triangular(case, a, x), order="FC"[number % 2])
            pyblasgpu.trsm(cupy.asarray(a), b_twice, out=out, **flags(case))
        same(result.get(), 2 * x, str(case))
        same(out.get(), 2 * x, f"{case}, out")
        with override("trmm_algorithm", "trmm_small"):
            pyblasgpu.trmm(cupy.asarray(a), result, out=out, **flags(case))
            pyblasgpu.trmm(cupy.asarray(a), result, out=result, **flags(case))
        same(out.get(), exact_triangular(case, a, x), f"{case}, product")
        same(result.get(), out.get(), f"{case}, product in place")
    with override("trsm_algorithm", "trsm_small"):
        families = [family for family, *_ in pyblasgpu.explain("trsm", letter, n, columns, batch=count)]
    assert families[:2] == ["algorithm", "trsm_small"]


# ------------------------------------------------------------------------------------------------- errors


@pytest.mark.parametrize("n", [256, 1000])
@pytest.mark.parametrize("letter", DTYPES)
@pytest.mark.parametrize("kind", HARD)
def test_backward_error_on_hard_triangles(kind, letter, n):
    check_hard(kind, letter, n)


@pytest.mark.parametrize("letter", DTYPES)
@pytest.mark.parametrize(
    "side, uplo, trans",
    [
        (Side.LEFT, Uplo.LOWER, Trans.NO),
        (Side.LEFT, Uplo.UPPER, Trans.NO),
        (Side.RIGHT, Uplo.LOWER, Trans.CONJ),
        (Side.RIGHT, Uplo.UPPER, Trans.TRANS),
    ],
)
def test_error_bounds(letter, side, uplo, trans):
    check_bounds(letter, side, uplo, trans)
