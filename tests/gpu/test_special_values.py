"""NaN, Inf, denormal numbers and zeros: what is not read, what propagates, what is kept."""

from __future__ import annotations

from contextlib import nullcontext

import numpy as np
import pytest

import pyblasgpu
from pyblasgpu.dispatch.overrides import override
from pyblasgpu.types import DTYPES

from .running import NAN, cupy, reals, same

INF = float("inf")


@pytest.mark.parametrize("letter", DTYPES)
def test_nan_and_inf_reach_what_depends_on_them(letter):
    a, b = reals(DTYPES[letter], 65, 31, seed=1), reals(DTYPES[letter], 31, 33, seed=2)
    a[40, 30], b[7, 5], b[0, 20] = NAN, INF, NAN
    actual = pyblasgpu.gemm(cupy.asarray(a), cupy.asarray(b)).get()
    spoilt = np.zeros((65, 33), bool)
    spoilt[40] = spoilt[:, [5, 20]] = True
    same(~np.isfinite(actual), spoilt, letter)


@pytest.mark.parametrize("letter", DTYPES)
def test_zeros_are_multiplied(letter):
    a, b = np.zeros((65, 31), DTYPES[letter].name), np.full((31, 33), NAN, DTYPES[letter].name)
    assert np.isnan(pyblasgpu.gemm(cupy.asarray(a), cupy.asarray(b)).get()).all()


@pytest.mark.parametrize("stop", [None, 16])
@pytest.mark.parametrize("routine", ["trmm", "trsm"])
def test_a_nan_in_b_spoils_its_column_from_its_row_on(routine, stop):
    t = np.asfortranarray(np.where(np.tri(65, dtype=bool), 0.01, NAN) + np.eye(65))
    b = np.ones((65, 33), order="F")
    b[40, 7] = NAN
    with override(routine, stop) if stop else nullcontext():
        actual = getattr(pyblasgpu, routine)(cupy.asarray(t), cupy.asarray(b), lower=True).get()
    spoilt = np.zeros((65, 33), bool)
    spoilt[40:, 7] = True
    same(np.isnan(actual), spoilt, routine)


@pytest.mark.parametrize("letter", DTYPES)
def test_a_zero_on_the_diagonal_raises_nothing(letter):
    a, b = np.eye(65, dtype=DTYPES[letter].name, order="F"), reals(DTYPES[letter], 65, 33)
    a[40, 40] = 0
    actual = pyblasgpu.trsm(cupy.asarray(a), cupy.asarray(b), lower=True).get()
    assert not np.isfinite(actual[40]).any()
    same(actual[:40], b[:40], "rows above")


@pytest.mark.parametrize("letter", DTYPES)
def test_denormal_numbers_are_kept(letter):
    dtype = DTYPES[letter]
    tiny = np.finfo(dtype.real).smallest_subnormal
    a = np.full((65, 31), 1, dtype.name, order="F")
    b = np.full((31, 33), tiny, dtype.name, order="F")
    actual = pyblasgpu.gemm(cupy.asarray(a), cupy.asarray(b), alpha=2).get()
    same(actual, np.full((65, 33), 62 * tiny, dtype.name), "sum of denormals")
    small = 2.0 ** (-74 if dtype.real == "float32" else -537)
    column, row = (cupy.full(shape, small, dtype.name) for shape in ((65, 1), (1, 33)))
    actual = pyblasgpu.gemm(column, row).get()
    same(actual, np.full((65, 33), small * small, dtype.name), "product that is denormal")


@pytest.mark.parametrize("letter", DTYPES)
@pytest.mark.parametrize("alpha, beta, expected", [(0, 0, 0.0), (0, 1, 5.0), (0, -2, -10.0)])
def test_alpha_zero_reads_nothing(letter, alpha, beta, expected):
    unread = cupy.full((65, 65), NAN, DTYPES[letter].name)
    out = cupy.full((65, 65), 5 if beta else NAN, DTYPES[letter].name)
    pyblasgpu.gemm(unread, unread, alpha=alpha, beta=beta, out=out)
    same(out.get(), np.full((65, 65), expected, DTYPES[letter].name), "gemm")


@pytest.mark.parametrize("beta, expected", [(0, 0.0), (1, 5.0), (-2, -10.0)])
def test_an_inner_extent_of_zero_scales(beta, expected):
    a, b, out = cupy.empty((65, 0)), cupy.empty((0, 33)), cupy.full((65, 33), 5.0 if beta else NAN)
    pyblasgpu.gemm(a, b, beta=beta, out=out)
    same(out.get(), np.full((65, 33), expected), "k = 0")


@pytest.mark.parametrize("routine", [pyblasgpu.trmm, pyblasgpu.trsm], ids=["trmm", "trsm"])
def test_unread_parts_change_no_bit(routine):
    a, b = reals(DTYPES["d"], 65, 65) / 65 + 2 * np.eye(65), reals(DTYPES["d"], 65, 33)
    results = []
    for poison in (0.0, 1e300, NAN, INF):
        kept = np.asfortranarray(np.where(np.tri(65, k=-1, dtype=bool), a, poison))
        results.append(
            routine(cupy.asarray(kept), cupy.asarray(b), lower=True, unit_diag=True).get().tobytes()
        )
    assert len(set(results)) == 1


@pytest.mark.parametrize("letter", "sc")
def test_a_number_beyond_single_precision_is_infinite(letter):
    one = cupy.ones((65, 65), DTYPES[letter].name)
    assert np.isinf(pyblasgpu.gemm(one, one, alpha=1e39).get().real).all()
