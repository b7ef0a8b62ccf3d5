"""Host arrays on the processor: SciPy's arithmetic, or Numba's kernels, with pyblasgpu's special values,
in place in any layout.
"""

from __future__ import annotations

from functools import partial
from itertools import product

import numpy as np
import pytest
from agreement import assert_agree
from hypothesis import given
from hypothesis import strategies as st

from pyblasgpu.cpu.numba import level3 as numba_cpu
from pyblasgpu.cpu.scipy import level3 as cpu
from pyblasgpu.routine_table import ROUTINES
from pyblasgpu.testing import reference
from pyblasgpu.testing.cases import (
    EDGES,
    SIZES,
    GemmCase,
    TriangularCase,
    gemm_cases,
    scalars,
    triangular_cases,
)
from pyblasgpu.testing.error_bounds import gemm_error
from pyblasgpu.types import DTYPES, Diag, Side, Trans, Uplo

ERRORS = {name: ROUTINES[name].error for name in ("trmm", "trsm")}
HOSTS = cpu, numba_cpu
ON_BOTH = pytest.mark.parametrize("host", HOSTS, ids=["scipy", "numba"])
NAN = float("nan")


def flags(case):
    return case.side, case.uplo, case.trans, case.diag


def run_gemm(host, case, a, b, c):
    host.gemm(case.alpha, a, b, case.beta, c, case.trans_a, case.trans_b)


@pytest.mark.parametrize("letter", "sdcz")
def test_gemm_is_exact_on_integers(letter, rng):
    for case in gemm_cases((0, 1, 31, 33, 64)):
        if case.dtype.letter != letter:
            continue
        a, b, start = (reference.integers(rng, shape, case.dtype) for shape in case.shapes)
        if case.alpha == 0:
            a, b = np.full_like(a, NAN), np.full_like(b, NAN)
        if case.beta == 0:
            start = np.full_like(start, NAN)
        expected = reference.exact_gemm(case, a, b, start)
        for host, order in product(HOSTS, "CF"):
            c, unharmed = reference.fenced(start, order)
            run_gemm(host, case, a, b, c)
            assert_agree(c, expected, partial("{} by {}, {}".format, case, host.__name__, order))
            assert unharmed()


@pytest.mark.parametrize("letter", "sdcz")
@pytest.mark.parametrize("name", ERRORS)
def test_triangles_are_exact_on_integers(name, letter, rng):
    for case in triangular_cases((0, 1, 31, 33, 64)):
        if case.dtype.letter != letter:
            continue
        a = reference.triangle(rng, case)
        x = reference.integers(rng, (case.m, case.n), case.dtype)
        initial, expected = x, reference.exact_triangular(case, a, x)
        if name == "trsm":
            initial, expected = (
                reference.exact_triangular(case, a, x, alpha=1),
                (case.alpha * x).astype(x.dtype),
            )
        if case.alpha == 0:
            a, initial = np.full_like(a, NAN), np.full_like(initial, NAN)
        for host, order in product(HOSTS, "CF"):
            b, unharmed = reference.fenced(initial, order)
            getattr(host, name)(case.alpha, a, b, *flags(case))
            assert_agree(b, expected, partial("{} by {}, {}".format, case, host.__name__, order))
            assert unharmed()


@ON_BOTH
@pytest.mark.parametrize("dtype", DTYPES.values(), ids=DTYPES)
def test_errors_stay_within_their_bounds(host, dtype, rng):
    for size, (one, two) in zip(SIZES[-4:], product([Trans.TRANS, Trans.CONJ], [Side.LEFT, Side.RIGHT])):
        product_case = GemmCase(dtype, size, 33, size, one, Trans.CONJ, alpha=-2, beta=0.5)
        a, b, c = (reference.reals(rng, shape, dtype) for shape in product_case.shapes)
        result = c.copy()
        run_gemm(host, product_case, a, b, result)
        left, right = reference.apply(a, one), reference.apply(b, Trans.CONJ)
        assert gemm_error(-2, left, right, 0.5, c, result) <= 1
        case = TriangularCase(
            dtype, *((size, 33) if two is Side.LEFT else (33, size)), two, trans=one, alpha=2
        )
        a, b = reference.triangle(rng, case, reference.reals), reference.reals(rng, (case.m, case.n), dtype)
        for name, error in ERRORS.items():
            result = b.copy()
            getattr(host, name)(2, a, result, *flags(case))
            assert error(2, a, b, result, *flags(case)) <= 1


@st.composite
def strided(draw, shape, dtype, writable=False):
    """An array of `shape` in any layout: order, steps of either sign, repetition if it is only read."""
    steps = [draw(st.sampled_from([1, 2, 3, -1, -2] + [0] * (not writable))) for _ in shape]
    room = [max(1, extent * abs(step)) for extent, step in zip(shape, steps)]
    rng = np.random.default_rng(draw(st.integers(0, 99)))
    base = reference.integers(rng, tuple(draw(st.permutations([0, 1])) and room), dtype)
    if draw(st.booleans()):
        base = np.asfortranarray(base)
    index = tuple(slice(None, None, step or None) for step in steps)
    view = base[index][tuple(slice(0, 1 if step == 0 else extent) for step, extent in zip(steps, shape))]
    return view if writable else np.broadcast_to(view, shape)


@ON_BOTH
@given(st.data())
def test_gemm_in_any_layout(host, data):
    dtype = DTYPES[data.draw(st.sampled_from("sdcz"))]
    m, n, k = (data.draw(st.integers(0, 5)) for _ in range(3))
    trans = [data.draw(st.sampled_from(Trans)) for _ in range(2)]
    alpha = data.draw(st.sampled_from(scalars((0, 1, 2, 1j), dtype)))
    case = GemmCase(dtype, m, n, k, *trans, alpha, data.draw(st.sampled_from([0, 1, -1])))
    a, b = (data.draw(strided(shape, dtype)) for shape in case.shapes[:2])
    c = data.draw(strided((m, n), dtype, writable=True))
    expected = reference.exact_gemm(case, a, b, c)
    run_gemm(host, case, a, b, c)
    np.testing.assert_array_equal(c, expected)


@ON_BOTH
@given(st.data())
def test_triangles_in_any_layout(host, data):
    dtype = DTYPES[data.draw(st.sampled_from("sdcz"))]
    m, n = (data.draw(st.integers(0, 5)) for _ in range(2))
    kinds = [data.draw(st.sampled_from(kind)) for kind in (Side, Uplo, Trans, Diag)]
    case = TriangularCase(dtype, m, n, *kinds, alpha=data.draw(st.sampled_from([0, 1, -2])))
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    a = np.repeat(np.repeat(reference.triangle(rng, case), 2, 0), 3, 1)[::2, ::3]
    x = data.draw(strided((m, n), dtype, writable=True))
    before = x.copy()
    host.trmm(case.alpha, a, x, *flags(case))
    np.testing.assert_array_equal(x, reference.exact_triangular(case, a, before))
    if case.alpha:
        host.trsm(1 / case.alpha, a, x, *flags(case))
        np.testing.assert_array_equal(x, before)


@ON_BOTH
@pytest.mark.parametrize("letter", "sdcz")
def test_nan_that_is_read_reaches_what_depends_on_it(host, letter):
    """Also through zeros: there are no tests for zero on data."""
    dtype = DTYPES[letter]
    for n in (3, 40, 150):
        a, c = np.zeros((n, n), dtype.name), np.zeros((n, n), dtype.name)
        a[1, 2] = NAN
        host.gemm(1, a, np.zeros_like(a), 0, c, Trans.NO, Trans.NO)
        assert np.isnan(c[1]).all() and np.isnan(c).sum() == n
        for side, trans, routine in product(Side, Trans, (host.trmm, host.trsm)):
            triangle = np.eye(n, dtype=dtype.name)
            triangle[0, n - 1] = NAN
            b = np.zeros((n, n), dtype.name)
            routine(1, triangle, b, side, Uplo.UPPER, trans, Diag.NON_UNIT)
            row = 0 if trans is Trans.NO else n - 1
            hit = b[row] if side is Side.LEFT else b[:, n - 1 - row]
            assert np.isnan(hit).all() and np.isnan(b).sum() == n


@ON_BOTH
def test_a_zero_on_the_diagonal_is_no_error(host):
    b = np.ones((2, 1))
    host.trsm(1, np.zeros((2, 2)), b, Side.LEFT, Uplo.LOWER, Trans.NO, Diag.NON_UNIT)
    assert not np.isfinite(b).any()


@ON_BOTH
def test_misaligned_memory(host):
    memory = np.zeros(8 * 9 + 1, np.uint8)
    c = memory[1:].view("f8").reshape(3, 3)
    host.gemm(1, np.eye(3), np.eye(3), 0, c, Trans.NO, Trans.NO)
    np.testing.assert_array_equal(c, np.eye(3))


@ON_BOTH
def test_stacks_broadcast(host, rng):
    a, b = reference.integers(rng, (3, 1, 4, 5), DTYPES["d"]), reference.integers(rng, (2, 5, 6), DTYPES["d"])
    c = np.empty((3, 2, 4, 6))
    host.gemm(1, a, b, 0, c, Trans.NO, Trans.NO)
    np.testing.assert_array_equal(c, a @ b)


def test_the_list_of_cases_covers_what_it_says():
    cases = list(gemm_cases())
    assert {case.m for case in cases} >= set(EDGES) and len(set(cases)) >= 250
    assert {(case.trans_a, case.trans_b) for case in cases} == set(product(Trans, Trans))
    triangles = list(triangular_cases())
    assert {flags(case) for case in triangles} == set(product(Side, Uplo, Trans, Diag))
    assert {case.dtype for case in triangles} == {case.dtype for case in cases} == set(DTYPES.values())


def test_fences_tell():
    for order in "CF":
        view, unharmed = reference.fenced(np.ones((2, 3)), order)
        view[...] = 5
        assert unharmed()
        beyond = np.lib.stride_tricks.as_strided(view, (3, 4), view.strides)
        beyond[(0, 3) if order == "C" else (2, 0)] = 5
        assert not unharmed()
