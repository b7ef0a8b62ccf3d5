"""`trsm_mma` and `trsm_fma` on small tiles: every variant and shape, exactly; and how they divide."""

from __future__ import annotations

from dataclasses import asdict, replace
from itertools import product

import numpy as np
import pytest

from pyblasgpu.gpu import launch as launching
from pyblasgpu.kernels.trsm import body as trsm_body
from pyblasgpu.kernels.trsm import fma as trsm_fma
from pyblasgpu.kernels.trsm import mma as trsm_mma
from pyblasgpu.kernels.trsm.config import TrsmConfig
from pyblasgpu.kernels.trsm.fma import TrsmFma
from pyblasgpu.kernels.trsm.mma import TrsmMma
from pyblasgpu.types import DTYPES

from . import test_leaves
from .launching import Variant
from .test_leaves import VARIANT, launch

FAMILIES = {family.STEM: family for family in (trsm_mma, trsm_fma)}
#: Tiles of 8 and blocks of 16 columns.
SMALL: dict[str, TrsmConfig] = {
    "trsm_mma": TrsmMma("d", ORDER=32, BLK=8, WARPS=2, MMA_M=8, MMA_K=4),
    "trsm_fma": TrsmFma("d", ORDER=32, BLK=8, WARPS=2),
}
SERVED = [*product(["trsm_mma"], "dz"), *product(["trsm_fma"], DTYPES)]
VARIANTS = list(product((False, True), repeat=3))

of_each_family = pytest.mark.parametrize("stem", FAMILIES)
of_each_dtype = pytest.mark.parametrize(("stem", "letter"), SERVED)


def of_some_dtypes(all_changes: list[dict]):
    """Each Config in half of the dtypes of a family, by turns."""
    cases = [
        (stem, letter, changes)
        for number, changes in enumerate(all_changes)
        for stem, letter in SERVED
        if letter in ("sz", "dc")[number % 2]
    ]
    return pytest.mark.parametrize(("stem", "letter", "changes"), cases)


def small(kernels, letter, changes=None) -> TrsmConfig:
    """The Config above of the family `kernels`, which may have been made anew."""
    config = replace(SMALL[kernels.STEM], dtype=letter, **(changes or {}))
    return getattr(kernels, type(config).__name__)(**asdict(config))


def check(stem, letter="d", n=21, r=11, kernels=None, changes=None, **options) -> None:
    """`test_leaves.check` of a family, by default with its Config above."""
    kernels = kernels or FAMILIES[stem]
    config = small(kernels, letter, changes)
    test_leaves.check("trsm", letter, n, r, kernels=kernels, config=config, **options)


def solve(stem, t, b, variant=VARIANT, kernels=None, alpha=1, changes=None) -> np.ndarray:
    """What becomes of `b`."""
    letter = next(letter for letter, dtype in DTYPES.items() if dtype.name == t.dtype.name)
    x, kernels = np.array(b, order="F"), kernels or FAMILIES[stem]
    launch(kernels, small(kernels, letter, changes), np.asfortranarray(t), x, variant, alpha)
    return x


@of_each_dtype
@pytest.mark.parametrize("unit, t_by_rows, b_by_rows", VARIANTS)
def test_every_variant(stem, letter, unit, t_by_rows, b_by_rows):
    conj = letter in "cz" and unit != b_by_rows
    check(stem, letter, unit=unit, conj=conj, t_by_rows=t_by_rows, b_by_rows=b_by_rows)


@of_each_family
@pytest.mark.parametrize("n", [1, 7, 8, 9, 16, 25, 31, 32])
@pytest.mark.parametrize("r", [1, 16, 23])
def test_edges(stem, n, r):
    check(stem, n=n, r=r, changes={"stages": 3})


@of_some_dtypes(
    [
        {"ORDER": 8},
        {"WARPS": 1},
        {"WARPS": 3},
        {"WARP_N": 16},
        {"WARP_N": 32, "WARPS": 1},
        {"stages": 3},
        {"stages": 4},
        {"BLK": 16},
        {"ORDER": 64, "BLK": 32},
        {"ORDER": 72},
        {"WARPS_PER_COLUMN_GROUP": 2},
        {"ORDER": 16, "WARPS_PER_COLUMN_GROUP": 2},
        {"ORDER": 64, "WARPS_PER_COLUMN_GROUP": 2},
        {"ORDER": 64, "WARPS_PER_COLUMN_GROUP": 2, "stages": 3, "PRODUCER_WARPS": 1},
    ],
)
def test_every_shape(stem, letter, changes):
    check(stem, letter, {"ORDER": 32, **changes}["ORDER"] - 3, 21, changes=changes)


@of_each_dtype
@pytest.mark.parametrize("n", [5, 8, 21])
def test_nothing_is_solved_twice_without_need(monkeypatch, stem, letter, n):
    """Not at the edges of T and B either."""

    def unneeded(*_):
        pytest.fail("solved with divisions")

    monkeypatch.setattr(launching, "loaded_kernels", {})  # equal sources share a kernel
    monkeypatch.setattr(trsm_body, "exact_division_solver", lambda *_: unneeded)
    check(stem, letter, n)


@of_each_dtype
@pytest.mark.parametrize("apart", [False, True])
def test_batch(stem, letter, apart):
    check(stem, letter, n=11, r=5, batch=3, apart=apart)


@of_each_dtype
def test_views_read_backwards(stem, letter):
    """Negative strides: how an upper triangle becomes a lower one."""
    rng, n, r = np.random.default_rng(5), 13, 6
    upper = np.triu(rng.integers(-3, 4, (n, n))).astype(DTYPES[letter].name)
    np.fill_diagonal(upper, 2)
    x = rng.integers(-3, 4, (n, r)).astype(upper.dtype)
    b, t = np.asfortranarray(upper @ x), np.asfortranarray(upper)
    launch(FAMILIES[stem], replace(SMALL[stem], dtype=letter), t[::-1, ::-1], b[::-1], VARIANT, 1.0)
    assert np.array_equal(b, x)


@of_each_family
def test_complex_alpha_and_diagonal(stem):
    t, x = np.tril(np.full((9, 9), 1 - 2j)), np.arange(18).reshape(9, 2) + 1j
    variant = Variant(unit=False, conj=True, t_by_rows=True, b_by_rows=True)
    actual = solve(stem, t, t.conj() @ x, variant, alpha=3 - 1j)
    np.testing.assert_allclose(actual, (3 - 1j) * x, rtol=1e-14)


@of_each_family
@pytest.mark.parametrize("spoil", [np.nan, np.inf])
@pytest.mark.parametrize("row", [0, 5, 12, 20])
@pytest.mark.parametrize("unit", [False, True])
def test_what_is_not_finite_spoils_only_what_depends_on_it(stem, spoil, row, unit):
    t, b = np.tril(np.ones((21, 21))), np.ones((21, 11))
    b[row, 2] = spoil
    x = solve(stem, t, b, Variant(unit, False, True, True))
    expected = np.vstack([np.ones((1, 11)), np.zeros((20, 11))])
    expected[row, 2] = spoil
    expected[row + 1 :, 2] = np.nan if np.isnan(spoil) else x[row + 1 :, 2]
    np.testing.assert_array_equal(x, expected)
    assert not np.isfinite(x[row:, 2]).any()


@of_each_dtype
@pytest.mark.parametrize("spoil", [np.nan, np.inf])
def test_an_element_of_t_spoils_its_row_and_those_below(stem, letter, spoil):
    t = np.tril(np.ones((21, 21))).astype(DTYPES[letter].name)
    t[13, 9] = spoil
    x = solve(stem, t, np.ones((21, 3)).astype(t.dtype))
    assert np.isfinite(x[:13]).all() and not np.isfinite(x[13:]).any()


@of_each_dtype
@pytest.mark.parametrize("scale", [1e-310, 1e-200, 1e-30, 3e30, 3e300, np.inf])
def test_divides_where_a_reciprocal_would_fail(stem, letter, scale):
    """Denormal, tiny, huge and infinite diagonals, in one row of many."""
    dtype = DTYPES[letter]
    with np.errstate(over="ignore"):
        scale = np.maximum(np.array(scale, dtype.real), np.finfo(dtype.real).smallest_subnormal)
    t = np.eye(11).astype(dtype.name)
    t[9, 9] = scale
    right = np.arange(1, 6).astype(dtype.real) * (scale if np.isfinite(scale) else 1)
    b = np.ones((11, 5)).astype(t.dtype)
    b[9] = right
    x = solve(stem, t, b)
    np.testing.assert_array_max_ulp(x[9].real, right / scale, 1)
    assert np.array_equal(np.delete(x, 9, 0), np.ones((10, 5)))


def overflowing(real: str, rows=9, at=4) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """T, B and X; an entry of row `at` divided by its diagonal overflows, the outcome does not."""
    t, x = np.eye(rows, dtype=real), np.ones((rows, 2), real)
    small, large = (1e-10, 1e30) if real == "float32" else (1e-20, 1e300)
    t[at, at], t[at, at - 2] = small, large
    x[at], x[at - 2] = 1 / small, 1 / large
    return t, t @ x, x


@pytest.mark.parametrize(
    ("stem", "real"), [("trsm_mma", "float64"), ("trsm_fma", "float64"), ("trsm_fma", "float32")]
)
def test_an_entry_too_large_for_its_diagonal(stem, real):
    for turns, (rows, at) in product((1, 2), [(9, 4), (5, 4), (29, 4), (29, 12), (29, 26), (16, 14)]):
        t, b, x = overflowing(real, rows, at)
        actual = solve(stem, t, b, changes={"WARPS_PER_COLUMN_GROUP": turns})
        np.testing.assert_allclose(actual, x, rtol=50 * np.finfo(real).eps)


@of_each_dtype
def test_a_zero_on_the_diagonal_is_not_finite(stem, letter):
    t = np.eye(11).astype(DTYPES[letter].name)
    t[9, 9] = 0
    x = solve(stem, t, np.ones((11, 3)).astype(t.dtype))
    assert not np.isfinite(x[9]).any() and np.array_equal(x[:9], np.ones((9, 3)))


@of_each_dtype
def test_a_diagonal_matrix_divides(stem, letter):
    """Results are as good as divisions: an ulp."""
    rng, dtype = np.random.default_rng(2), DTYPES[letter]
    d, b = (rng.uniform(*bounds).astype(dtype.real) for bounds in ((1, 10, 17), (-1, 1, (17, 4))))
    x = solve(stem, np.diag(d).astype(dtype.name), b.astype(dtype.name))
    np.testing.assert_array_max_ulp(x.real, b / d[:, None], 1)


@of_each_dtype
@pytest.mark.parametrize("diagonal", [1.0, 1e-3, 1e3])
def test_backward_error_on_hard_triangles(stem, letter, diagonal):
    """Lower with entries U(-4, 4): substitution stays within n u |T| |X|."""
    dtype, rng, n = DTYPES[letter], np.random.default_rng(3), 32
    # small diagonals make X grow as its powers
    rows = n if letter in "dz" or diagonal > 1e-3 else 8
    wide = np.clongdouble if dtype.is_complex else np.longdouble
    t = np.tril(rng.uniform(-4, 4, (n, n)), -1).astype(dtype.name)
    if dtype.is_complex:
        t += 1j * np.tril(rng.uniform(-4, 4, (n, n)), -1).astype(dtype.real)
    np.fill_diagonal(t, diagonal * rng.uniform(1, 2, n))
    t, b = t[:rows, :rows], rng.uniform(-1, 1, (rows, 3)).astype(dtype.name)
    x = solve(stem, t, b)
    residual = abs(t.astype(wide) @ x.astype(wide) - b)
    bound = rows * dtype.unit_roundoff * (abs(t).astype(np.longdouble) @ abs(x))
    assert (residual <= bound * (np.sqrt(8) if dtype.is_complex else 1)).all()


@of_some_dtypes(
    [{"PRODUCER_WARPS": 1}, {"PRODUCER_WARPS": 2, "stages": 3}, {"PRODUCER_WARPS": 3, "WARPS": 1}]
)
def test_warps_that_only_bring_t(stem, letter, changes):
    for n, r, t_by_rows in ((21, 11, True), (32, 33, False), (7, 5, True)):
        check(stem, letter, n, r, changes=changes, t_by_rows=t_by_rows, conj=letter in "cz")
    check(stem, letter, batch=2, changes=changes, unit=True)
