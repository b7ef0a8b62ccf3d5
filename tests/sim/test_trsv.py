"""`trsv` with small block rows: every variant, exactly; how it divides, waits, and leaves its flags."""

from __future__ import annotations

import numpy as np
import pytest
from covering import by_precision

import pyblasgpu
from pyblasgpu.dispatch.overrides import override
from pyblasgpu.gpu import launch as launching
from pyblasgpu.gpu.device import known
from pyblasgpu.gpu.simulator import intrinsics as simulator
from pyblasgpu.kernels.trsv import kernel as trsv
from pyblasgpu.testing.cases import TriangularCase
from pyblasgpu.testing.reference import exact_triangular, fenced, integers, triangle
from pyblasgpu.types import DTYPES, Diag, Side, Trans, Uplo

from .launching import Variant, run, strides

VARIANT = Variant(unit=False, conj=False, t_by_rows=True, b_by_rows=True)
SMALL = {"ROWS": 16, "DIM_M": 8, "DIM_K": 4, "GROUP": 4}
FLAGS = 40
NAN = float("nan")


def small(letter="d", cols=1, kernels=trsv, **changes):
    """Block rows of 16, solved 4 rows at a time, by 32 threads."""
    return kernels.Trsv(letter, COLS=cols, **{**SMALL, **changes})


def launch(t, b, variant=VARIANT, alpha=1.0, kernels=trsv, x=None, **changes) -> None:
    """Solve in place, or into `x`, with the narrowest Config; no flag stays set."""
    letter = next(letter for letter, dtype in DTYPES.items() if dtype.name == t.dtype.name)
    n, r = b.shape
    cols = next(cols for cols in (1, 2, 4) if cols >= r)
    config = small(letter, cols, kernels, **changes)
    flags = np.zeros(FLAGS, DTYPES[letter].real)
    x = b if x is None else x
    integers_ = (n, r, variant.options, *strides(t), *strides(b), *strides(x))
    run(kernels.source(config), config.grid(n), (t, flags, b, x), integers_, (alpha,))
    assert not flags.any()


def check(
    letter="d",
    n=37,
    r=1,
    unit=False,
    conj=False,
    t_by_rows=True,
    b_by_rows=True,
    kernels=trsv,
    apart=False,
    **changes,
):
    """Integers, NaN where it must not read, between fences; compare with ``==``. `apart`: into NaN."""
    dtype, rng = DTYPES[letter], np.random.default_rng(n + 100 * r)
    case = TriangularCase(dtype, n, r, diag=Diag.UNIT if unit else Diag.NON_UNIT)
    t, x = triangle(rng, case), integers(rng, (n, r), dtype)
    start = 2 * exact_triangular(case, t.conj() if conj else t, x)
    t, _ = fenced(t, "F" if t_by_rows else "C")
    b, unharmed = fenced(start, "F" if b_by_rows else "C")
    out = b
    if apart:
        out, unharmed = fenced(np.full_like(start, np.nan), "C" if b_by_rows else "F")
    launch(t, b, Variant(unit, conj, t_by_rows, b_by_rows), 0.5, kernels, out, **changes)
    assert np.array_equal(out, x)
    assert unharmed()
    assert not apart or np.array_equal(b, start)


@pytest.mark.parametrize("letter, unit, t_by_rows, b_by_rows", by_precision(*[(False, True)] * 3))
def test_every_variant(letter, unit, t_by_rows, b_by_rows):
    for r in (1, 3):
        conj = letter in "cz" and unit != b_by_rows
        check(letter, 37, r, unit, conj, t_by_rows, b_by_rows, apart=r > 1)


@pytest.mark.parametrize("n", [1, 3, 4, 15, 16, 17, 32, 65])
@pytest.mark.parametrize("r", [1, 2, 4])
def test_edges(n, r):
    check("d", n, r, t_by_rows=n % 2 == 0)


@pytest.mark.parametrize(
    "changes",
    [
        {"GROUP": 8},
        {"ROWS": 32},
        {"ROWS": 64, "DIM_M": 32, "DIM_K": 4, "GROUP": 8},
        {"DIM_M": 4, "DIM_K": 8},
        {"DIM_M": 16, "DIM_K": 2},
        {"DIM_M": 16, "DIM_K": 16, "GROUP": 8},
    ],
)
@pytest.mark.parametrize("letter", "dc")
def test_every_shape(letter, changes):
    for r, t_by_rows in ((1, True), (2, False)):
        check(letter, 75, r, t_by_rows=t_by_rows, conj=letter == "c", **changes)


@pytest.mark.parametrize("letter, r", by_precision([1, 3]))
def test_the_configs_that_serve(letter, r):
    config = trsv.Trsv(letter).specialize(r, known("h200").shared_per_block)
    changes = {name: getattr(config, name) for name in SMALL}
    check(letter, 2 * config.ROWS + 37, r, t_by_rows=r == 1, **changes)


def test_any_order_of_blocks():
    """They take their numbers, and then run in any order; those that are ahead wait."""
    for seed in range(20):
        simulator.reseed(seed)
        check("s", 16 * 6 + 5, 1)


@pytest.mark.parametrize("letter", "sz")
def test_views_read_backwards(letter):
    """Negative strides, and steps over elements: how an upper triangle becomes a lower one."""
    rng, n, r, dtype = np.random.default_rng(5), 37, 3, DTYPES[letter]
    upper = np.triu(integers(rng, (n, n), dtype, 1))
    np.fill_diagonal(upper, -1)
    x = integers(rng, (n, r), dtype)
    for order in "CF":
        t, b = np.full((n, 3 * n), NAN, dtype.name, order)[:, ::3], np.full((2 * n, r), NAN, dtype.name)[::2]
        t[...], b[...] = upper, upper @ x
        variant = Variant(False, False, t_by_rows=order == "F", b_by_rows=False)
        launch(t[::-1, ::-1], b[::-1], variant)
        assert np.array_equal(b, x)


def test_complex_alpha_and_diagonal():
    t, x = np.asfortranarray(np.tril(np.full((37, 37), (1 - 2j) / 40))), np.arange(74).reshape(37, 2) + 1j
    np.fill_diagonal(t, 2 - 1j)
    b = np.asfortranarray(t.conj() @ x)
    launch(t, b, Variant(False, True, True, True), 3 - 1j)
    np.testing.assert_allclose(b, (3 - 1j) * x, rtol=1e-13)


# ---------------------------------------------------------------------------- what is not finite, or not safe


@pytest.fixture
def careless(monkeypatch):
    """Fails where a block starts again."""
    monkeypatch.setattr(launching, "loaded_kernels", {})  # equal sources share a kernel

    def unneeded(*_):
        pytest.fail("solved with divisions")

    monkeypatch.setattr(trsv, "by_exact_division", lambda *_: unneeded)


@pytest.mark.parametrize("letter", DTYPES)
@pytest.mark.parametrize("unit", [False, True])
def test_nothing_is_solved_twice_without_need(careless, letter, unit):
    """Not at the edges of T and B either."""
    for r in (1, 3):
        check(letter, 37, r, unit)


@pytest.mark.parametrize("spoil", [np.nan, np.inf])
@pytest.mark.parametrize("row", [0, 5, 17, 36])
@pytest.mark.parametrize("unit", [False, True])
def test_what_is_not_finite_spoils_only_what_depends_on_it(spoil, row, unit):
    t, b = np.asfortranarray(np.eye(37)), np.ones((37, 2), order="F")
    t[20:, 17] = 1
    t[row + 1 :, row] = 1
    b[row, 1] = spoil
    expected = np.linalg.solve(t, np.ones((37, 2)))
    launch(t, b, Variant(unit, False, True, True))
    spoilt = ~np.isfinite(b)
    dependent = np.zeros((37, 2), bool)
    dependent[row:, 1] = True
    assert np.array_equal(spoilt, dependent) and np.isnan(b[row, 1]) == np.isnan(spoil)
    np.testing.assert_array_equal(b[~spoilt], expected[~spoilt])


@pytest.mark.parametrize("letter", DTYPES)
@pytest.mark.parametrize("spoil", [np.nan, np.inf])
def test_an_element_of_t_spoils_its_row_and_those_below(letter, spoil):
    for row, col in ((9, 3), (20, 3), (20, 18)):
        t = np.asfortranarray(np.tril(np.ones((37, 37))).astype(DTYPES[letter].name))
        b = np.ones((37, 1), t.dtype)
        t[:, 0] = t[row, col] = 1
        b[...] = t @ np.ones((37, 1))
        t[row, col] = spoil
        launch(t, b)
        assert np.isfinite(b[:row]).all() and not np.isfinite(b[row:]).any()


@pytest.mark.parametrize("letter", DTYPES)
@pytest.mark.parametrize("scale", [1e-310, 1e-38, 3e300])
def test_true_divisions_where_a_reciprocal_would_fail(letter, scale):
    check_true_divisions(letter, scale)


def check_true_divisions(letter, scale, kernels=trsv):
    """Denormal and huge elements of the diagonal, one or two of a block; the last row meets all that is."""
    dtype, n = DTYPES[letter], 37
    tiny = float(np.finfo(dtype.real).smallest_subnormal)
    scale = np.array(min(max(scale, tiny), float(np.finfo(dtype.real).max) / 40), dtype.real)
    t, right = np.eye(n, dtype=dtype.name), np.arange(1, n + 1).astype(dtype.real)
    t[::20, ::20] *= scale
    t[-1, 1:20] = 1
    b = np.where(np.arange(n) % 20 == 0, right * min(scale, 1), right).astype(dtype.name).reshape(n, 1)
    expected = b.real[:, 0] / np.diagonal(t).real
    expected[-1] -= expected[1:20].sum()
    launch(np.asfortranarray(t), b, kernels=kernels)
    np.testing.assert_array_max_ulp(b.real[:, 0], expected, 1)


def test_what_overflows_where_columns_are_divided_first():
    check_overflow()


def check_overflow(kernels=trsv):
    """T'_ij = T_ij / t_jj is infinite, and T_ij x_j is not."""
    t, x = np.eye(20), np.ones((20, 1))
    t[3, 3], t[7, 3], x[3] = 1e-59, 1e250, 1e-248
    b = np.asfortranarray(t @ x)
    launch(np.asfortranarray(t), b, kernels=kernels)
    np.testing.assert_allclose(b, x, rtol=1e-13)


@pytest.mark.parametrize("letter", DTYPES)
@pytest.mark.parametrize("row", [0, 3, 16, 36])
def test_a_zero_on_the_diagonal_is_not_finite(letter, row):
    t, b = np.eye(37, dtype=DTYPES[letter].name), np.ones((37, 2), DTYPES[letter].name)
    t[row, row] = 0
    launch(t, b, Variant(False, False, False, False))
    assert np.isfinite(b[:row]).all() and not np.isfinite(b[row:]).any()  # 0 inf is NaN


@pytest.mark.parametrize("letter", DTYPES)
@pytest.mark.parametrize("kind", ["unit lower", "graded"])
def test_backward_error_on_hard_triangles(letter, kind):
    """Diagonal blocks with entries U(-4, 4), and rows over many exponents: within n u |T| |X|."""
    dtype, rng, n = DTYPES[letter], np.random.default_rng(3), 40
    wide = np.clongdouble if dtype.is_complex else np.longdouble
    t = np.tril(rng.uniform(-4, 4, (n, n)), -1).astype(dtype.name)
    if dtype.is_complex:
        t += 1j * np.tril(rng.uniform(-4, 4, (n, n)), -1).astype(dtype.real)
    np.fill_diagonal(t, rng.uniform(1, 2, n))
    b = rng.uniform(-1, 1, (n, 2))
    if kind == "graded":
        t[np.tril_indices(n, -1)] /= n
        t, b = (x * (10.0 ** np.linspace(-12, 12, n))[:, None] for x in (t, b))
    t, b = (np.asfortranarray(x.astype(dtype.name)) for x in (t, b))
    for group in (4, 8):
        x = b.copy(order="F")
        launch(t, x, GROUP=group)
        assert np.isfinite(x).all()
        residual = abs(t.astype(wide) @ x.astype(wide) - b)
        size = abs(t).astype(np.longdouble) @ abs(x).astype(np.longdouble)
        bound = n * dtype.unit_roundoff * size * (np.sqrt(8) if dtype.is_complex else 1)
        assert (residual <= bound).all()


# ------------------------------------------------------------------------------------------- through the face


@pytest.mark.parametrize("letter, side, uplo, trans, diag", by_precision(Side, Uplo, Trans, Diag))
def test_every_call(monkeypatch, letter, side, uplo, trans, diag):
    monkeypatch.setenv("PYBLASGPU_BACKEND", "sim")
    n, r, dtype = 37, 3, DTYPES[letter]
    m, columns = (n, r) if side is Side.LEFT else (r, n)
    case = TriangularCase(dtype, m, columns, side, uplo, trans, diag, alpha=2)
    rng = np.random.default_rng(2)
    a, x = triangle(rng, case), integers(rng, (m, columns), dtype)
    b, unharmed = fenced(exact_triangular(case, a, x, alpha=1), "CF"[letter in "dc"])
    flags = {"side": side, "lower": uplo, "trans": trans, "unit_diag": diag}
    with override("trsm_algorithm", "trsv"), override("trsv", small(letter)):
        result = pyblasgpu.trsm(np.asfortranarray(a), b, alpha=2, out=b, **flags)
    assert result is b and unharmed()
    np.testing.assert_array_equal(b, 2 * x)
