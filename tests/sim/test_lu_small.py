"""LU factors and solutions of small matrices, several a warp, in the simulator."""

from __future__ import annotations

import numpy as np
import pytest
from covering import by_precision
from scipy.linalg import lapack as scipys

from pyblasgpu import lapack
from pyblasgpu.kernels.common.options import options_of
from pyblasgpu.kernels.factor import restore
from pyblasgpu.kernels.factor.lu import gesv_small, getrf_small, getrs_small
from pyblasgpu.testing.reference import fenced
from pyblasgpu.types import DTYPES

from .launching import run, strides
from .test_getrf_panel import random


def letter_of(array) -> str:
    return next(letter for letter, dtype in DTYPES.items() if dtype.name == array.dtype.name)


def factor(stack, kernels=getrf_small, source=None, **changes):
    """Factor a batch, in place or from a `source`: pivots and info, which stand among other integers."""
    batch, m, n = stack.shape
    config = kernels.GetrfSmall(letter_of(stack), **changes)
    piv, info = np.full((batch, 2 * min(m, n) + 1), -7, np.int32), np.full((batch, 2), -7, np.int32)
    step, *steps = strides(stack)
    integers = m, n, config.lanes(m), batch, *steps, 2, step, piv.shape[1], 2
    run(
        kernels.source(config),
        config.grid(m, batch),
        (stack if source is None else source, stack, piv, info),
        integers,
        (),
    )
    assert (piv[:, 1::2] == -7).all() and (piv[:, -1] == -7).all() and (info[:, 1] == -7).all()
    return piv[:, :-1:2], info[:, 0]


def check_factors(letter="d", m=7, n=7, batch=5, order="F", kernels=getrf_small, start=None, **changes):
    """LAPACK's pivots, factors and info, and nothing else written."""
    stack = np.stack([random(letter, m, n, seed) for seed in range(batch)]) if start is None else start
    expected = [getattr(scipys, f"{letter}getrf")(a) for a in stack]
    view, unharmed = fenced(stack, order)
    piv, info = factor(view, kernels, **changes)
    for (lu, pivots, failed), got, got_piv, got_info in zip(expected, view, piv, info, strict=True):
        np.testing.assert_array_equal(got_piv, pivots)
        np.testing.assert_allclose(got, lu, rtol=0, atol=100 * stack.shape[1] * np.finfo(stack.dtype).eps)
        assert got_info == failed
    assert unharmed()


def solve(lu, piv, b, trans=0, groups=1, kernels=getrs_small, info=None) -> None:
    """Solutions of a batch in place of `b`, where `info` is 0."""
    batch, n, r = b.shape
    op = lu if trans == 0 else lu.swapaxes(1, 2)
    config = kernels.GetrsSmall(letter_of(b)).specialize(n)
    (lu_step, *lu_steps), (b_step, *b_steps) = strides(op), strides(b)
    options = options_of(conj=trans == 2, unit=trans == 0) | kernels.UNLESS_FAILED * (info is not None)
    strides_of_b, steps = (*b_steps, *b_steps), (n, 2, lu_step, b_step, b_step)
    integers = n, r, options, config.lanes(n), batch, groups, *lu_steps, 1, *strides_of_b, *steps
    arrays = piv, piv if info is None else info, op, b, b
    run(kernels.source(config), config.grid(n, batch) * groups, arrays, integers, ())


def check_solutions(letter="d", n=7, r=1, batch=5, order="F", trans=0, groups=1, kernels=getrs_small) -> None:
    """SciPy's solutions, and nothing else written; none of a matrix whose info is not 0."""
    wide = "dz"[letter in "cz"]
    rng = np.random.default_rng(n)
    stack = np.stack([random(letter, n, n, z) + 3 * np.eye(n)[rng.permutation(n)] for z in range(batch)])
    factors = [getattr(scipys, f"{letter}getrf")(a) for a in stack.astype(DTYPES[letter].name)]
    lu, piv = (np.stack([each[part] for each in factors]) for part in (0, 1))
    right = np.stack([random(letter, n, r, seed + 9) for seed in range(batch)])
    exact = getattr(scipys, f"{wide}getrs")
    expected = [exact(f, p, b, trans)[0] for f, p, b in zip(lu, piv, right, strict=True)]
    info = np.zeros((batch, 2), np.int32)
    info[:, 1] = info[1, 0] = 3
    expected[1] = right[1]
    view, unharmed = fenced(right, order)
    solve(np.array(lu, order=order), piv, view, trans, groups, kernels, info)
    assert (view[1] == right[1]).all()
    for got, x in zip(view, expected, strict=True):
        np.testing.assert_allclose(got, x, rtol=0, atol=500 * n * np.finfo(right.dtype).eps * abs(x).max())
    assert unharmed()


def check_definite(letter="d", n=7, r=1, batch=5, order="F", upper=False, kernels=getrs_small) -> None:
    """Solutions from Cholesky factors, of which the other triangle is NaN."""
    stack = np.stack([random(letter, n, n, seed) for seed in range(batch)])
    a = stack @ stack.conj().swapaxes(1, 2) + np.eye(n, dtype=stack.dtype)
    factors = np.linalg.cholesky(a)
    factors[:, ~np.tri(n, dtype=bool)] = np.nan
    stored = np.array(factors.conj().swapaxes(1, 2) if upper else factors, order=order)
    right = np.stack([random(letter, n, r, seed + 9) for seed in range(batch)])
    source, source_unharmed = fenced(right, "CF"[order == "C"])
    view, unharmed = fenced(np.full_like(right, np.nan), order)
    config, lower = kernels.GetrsSmall(letter).specialize(n), stored.swapaxes(1, 2) if upper else stored
    (step, *steps), (b_step, *b_steps) = strides(lower), strides(view)
    from_step, *from_steps = strides(source)
    options = options_of(conj=upper, mirrored=True)
    batch_steps = n, 0, step, from_step, b_step
    integers = n, r, options, config.lanes(n), batch, 1, *steps, 1, *from_steps, *b_steps, *batch_steps
    piv = np.full((batch, n), 99, np.int32)
    run(kernels.source(config), config.grid(n, batch), (piv, piv, lower, source, view), integers, ())
    eps = np.finfo(right.dtype).eps
    for matrix, x, b in zip(a, view, right, strict=True):
        assert (abs(matrix @ x - b) <= 100 * n * eps * abs(matrix).max() * abs(x).max() * n).all()
    assert unharmed() and source_unharmed() and (source == right).all()


def check_inverses(letter="d", n=7, batch=5, order="F", kernels=getrs_small) -> None:
    """Triangles of inverses in place of Cholesky factors; one with a zero on its diagonal stays."""
    stack = np.stack([random(letter, n, n, seed) for seed in range(batch)])
    a = stack @ stack.conj().swapaxes(1, 2) + np.eye(n, dtype=stack.dtype)
    factors, lower = np.linalg.cholesky(a), np.tri(n, dtype=bool)
    factors[:, ~lower] = np.nan
    factors[1, n // 2, n // 2] = 0
    view, unharmed = fenced(factors, order)
    config, info = kernels.GetrsSmall(letter).specialize(n, True), np.full((batch, 2), -7, np.int32)
    (step, *steps), options = strides(view), options_of(mirrored=True)
    integers = n, n, options, config.lanes(n), batch, 1, *steps, 1, *steps, *steps, 0, 2, step, step, step
    run(kernels.source(config), config.grid(n, batch), (info, info, view, view, view), integers, ())
    assert unharmed() and (info[:, 1] == -7).all() and np.isnan(view[:, ~lower]).all()
    np.testing.assert_array_equal(info[:, 0], [n // 2 + 1 if z == 1 else 0 for z in range(batch)])
    np.testing.assert_array_equal(view[1], factors[1])
    eps, wide = np.finfo(a.dtype).eps, a.astype(np.result_type(a, "d"))
    for z in set(range(batch)) - {1}:
        inverse = np.linalg.inv(wide[z])
        limit = 100 * n * eps * np.linalg.cond(wide[z]) * abs(inverse).max()
        assert (abs(view[z] - inverse)[lower] <= limit).all() and not view[z].diagonal().imag.any()


def check_tiny_pivots(kernels=getrs_small) -> None:
    """Quotients that are finite, by divisors whose reciprocals are not."""
    lu, piv, b = np.full((1, 1, 1), 1e-310), np.zeros((1, 1), np.int32), np.full((1, 1, 1), 1e-10)
    solve(lu, piv, b, kernels=kernels)
    assert b[0, 0, 0] == 1e-10 / 1e-310


def solve_at_once(a, b, kernels=gesv_small, out="F", **changes):
    """Solutions of a batch, or inverses where `b` is None, and info, amid other integers."""
    batch, n, _ = a.shape
    r = n if b is None else b.shape[2]
    x, unharmed = fenced(np.full((batch, n, r), -7, a.dtype), out)
    config, info = kernels.GesvSmall(letter_of(a), **changes), np.full((batch, 2), -7, np.int32)
    (a_step, *a_steps), (x_step, *x_steps) = strides(a), strides(x)
    b_step, *b_steps = (0, 0, 0) if b is None else strides(b)
    integers = n, r, int(b is None), config.lanes(n), batch, *a_steps, *b_steps, *x_steps, 2
    arrays = info, a, a if b is None else b, x
    run(
        kernels.source(config),
        config.grid(n, batch) * config.shares(r),
        arrays,
        (*integers, a_step, b_step, x_step),
        (),
    )
    assert unharmed() and (info[:, 1] == -7).all()
    return x, info[:, 0]


def check_at_once(letter="d", n=7, r=1, batch=5, order="F", out="F", kernels=gesv_small, **changes) -> None:
    """Solutions, or with r = 0 inverses, of matrices that need interchanges; A and B stay."""
    rng = np.random.default_rng(n)
    stack = np.stack([random(letter, n, n, z) + 3 * np.eye(n)[rng.permutation(n)] for z in range(batch)])
    a, unharmed = fenced(stack.astype(DTYPES[letter].name), order)
    right = np.stack([random(letter, n, r or n, seed + 9) for seed in range(batch)]) if r else None
    b, b_unharmed = (None, lambda: True) if right is None else fenced(right, "FC"[order == "F"])
    x, info = solve_at_once(a, b, kernels, out, **changes)
    assert not info.any() and unharmed() and b_unharmed()
    assert (a == stack.astype(a.dtype)).all() and (b is None or (b == right).all())
    wide = a.astype(np.result_type(a, "d"))
    expected = np.linalg.solve(wide, np.broadcast_to(np.eye(n), a.shape) if b is None else b)
    conditions = np.linalg.cond(wide)[:, None, None]
    assert (abs(x - expected) <= 8 * n * np.finfo(a.dtype).eps * conditions * abs(expected).max()).all()


@pytest.mark.parametrize("letter, order", by_precision("CF"))
def test_systems_at_once(letter, order):
    for n, r, batch, changes in (
        (4, 0, 17, {"COLS": 8}),
        (7, 1, 9, {"COLS": 8}),
        (13, 6, 5, {"DIM": 32}),
        (11, 0, 3, {"COLS": 16}),
        (27, 0, 3, {}),
    ):
        check_at_once(letter, n, r, batch, order, "FC"[n % 2], **changes)


@pytest.mark.parametrize(
    "n, r", [(1, 0), (1, 3), (8, 8), (9, 4), (16, 5), (32, 1), (32, 0), (2, 17), (3, 40)]
)
def test_shapes_at_once(n, r):
    check_at_once("d", n, r, 3)


def check_singular(letter="d", kernels=gesv_small) -> None:
    """The first zero pivot is info, as LAPACK has it; other matrices are inverted, NaN is no zero."""
    stack = np.stack([random(letter, 6, 6, seed) for seed in range(5)])
    stack[1, :, 2] = stack[1, :, 4] = stack[2] = stack[4, :, 5] = 0
    stack[3, 1, 0] = np.nan
    with np.errstate(all="ignore"):
        x, info = solve_at_once(stack, None, kernels)
    np.testing.assert_array_equal(info, [0, 3, 1, 0, 6])
    np.testing.assert_allclose(x[0] @ stack[0], np.eye(6), atol=1e-3 if letter in "sc" else 1e-11)
    assert np.isnan(x[3]).any()


@pytest.mark.parametrize("letter", DTYPES)
def test_singular_matrices_at_once(letter):
    check_singular(letter)


@pytest.mark.parametrize("letter", DTYPES)
@pytest.mark.parametrize("upper", [False, True])
def test_definite_systems(letter, upper):
    check_definite(letter, 7, 1, 9, "FC"[upper], upper)
    check_definite(letter, 20, 6, 2, "CF"[upper], upper)


@pytest.mark.parametrize("letter, order", by_precision("CF"))
def test_factors(letter, order):
    check_factors(letter, 7, 7, 9, order)
    check_factors(letter, 8, 5, 9, order, COLS=8)
    check_factors(letter, 4, 4, 17, order, COLS=8)
    check_factors(letter, 13, 13, 5, order, DIM=32)
    check_factors(letter, 27, 27, 3, order)


@pytest.mark.parametrize(
    "m, n", [(1, 1), (1, 5), (5, 1), (8, 8), (9, 4), (4, 31), (16, 17), (32, 32), (30, 3)]
)
def test_shapes(m, n):
    check_factors("d", m, n, 3, "CF"[m % 2])


@pytest.mark.parametrize("order", "CF")
def test_factors_of_another_matrix(order):
    """A source of the same strides is read, and stays; nothing else is read."""
    start = np.stack([random("d", 5, 7, seed) for seed in range(3)])
    (source, unharmed), (lu, _) = fenced(start, order), fenced(np.full_like(start, np.nan), order)
    expected = [scipys.dgetrf(a) for a in start]
    piv, _ = factor(lu, source=source, COLS=8)
    np.testing.assert_allclose(lu, [each for each, _, _ in expected], atol=1e-13)
    assert (piv == [each for _, each, _ in expected]).all() and (source == start).all() and unharmed()


@pytest.mark.parametrize("batch", [1, 8, 9, 17])
def test_blocks_that_are_not_full(batch):
    check_factors("s", 3, 3, batch)


def test_fewer_columns_on_older_cards():
    check_factors("z", 13, 16, 3, COLS=16)


@pytest.mark.parametrize("letter", DTYPES)
def test_ties_go_to_the_uppermost_row(letter):
    units = [1, -1, 1j, -1j] if letter in "cz" else [1, -1]
    for m in (8, 14, 30):
        stack = np.random.default_rng(m).choice(units, (4, m, 2)).astype(DTYPES[letter].name)
        check_factors(start=stack, letter=letter)


def check_rows_left(kernels=getrf_small) -> None:
    """More rows than columns: what is left of a row beyond the last pivot is no pivot."""
    stack = np.stack([random("d", 7, 3, seed) for seed in range(3)])
    stack[:, 5] = 0
    check_factors(start=stack, kernels=kernels)


def test_a_row_of_zeros_that_is_no_pivot():
    check_rows_left()


@pytest.mark.parametrize("m", [6, 20])
def test_columns_of_zeros(m):
    stack = np.stack([random("d", m, 6, seed) for seed in range(4)])
    stack[1, :, 2] = stack[2, :, 0] = stack[2, :, 5] = 0
    check_factors(start=stack)


@pytest.mark.parametrize("m", [6, 20])
def test_what_is_not_a_number_is_a_pivot(m):
    stack = np.stack([random("d", m, 3, seed) for seed in range(3)])
    stack[0, 1, 0], stack[1] = np.nan, np.nan
    piv, info = factor(stack)
    assert piv[0, 0] == 1 and not info.any() and np.array_equal(piv[1], [0, 1, 2])
    assert np.isnan(stack[1]).all() and np.isfinite(stack[2]).all()


@pytest.mark.parametrize("letter", DTYPES)
@pytest.mark.parametrize("trans", [0, 1, 2])
def test_solutions(letter, trans):
    check_solutions(letter, 7, 1, 9, "CF"[trans % 2], trans)
    check_solutions(letter, 13, 6, 3, "FC"[trans % 2], trans)


@pytest.mark.parametrize(
    "n, r, groups",
    [(1, 1, 1), (8, 4, 1), (9, 5, 2), (32, 9, 2), (16, 2, 1), (30, 16, 4), (33, 1, 1), (64, 6, 2)],
)
def test_edges_of_solutions(n, r, groups):
    check_solutions("d", n, r, 3, groups=groups)


@pytest.mark.parametrize("letter", DTYPES)
def test_inverses_from_factors(letter):
    for n, batch, order in ((1, 5, "F"), (4, 9, "C"), (13, 3, "C"), (16, 5, "F")):
        check_inverses(letter, n, batch, order)


def test_a_singular_triangle_divides_by_zero():
    check_tiny_pivots()
    lu, piv, b = np.eye(4)[None], np.arange(4, dtype=np.int32)[None], np.ones((1, 4, 1))
    lu[0, 2, 2] = 0
    solve(lu, piv, b)
    np.testing.assert_array_equal(b[0, :, 0], [np.nan, np.nan, np.inf, 1])


@pytest.mark.parametrize("letter", "sz")
def test_the_routines(letter, monkeypatch):
    """A stack by the public functions, in which every matrix and right-hand side is its own."""
    monkeypatch.setenv("PYBLASGPU_BACKEND", "sim")
    a = np.stack([random(letter, 10, 10, seed) + 3 * np.eye(10) for seed in range(2)])
    a, b = a.astype(DTYPES[letter].name), np.stack([random(letter, 10, 2, seed) for seed in range(2)])
    lu, piv, x, info = lapack.gesv(a, b)
    assert not info.any()
    np.testing.assert_allclose(a @ x, b, atol=1e-3 if letter == "s" else 1e-11)
    for trans, op in enumerate((a, a.swapaxes(1, 2), a.conj().swapaxes(1, 2))):
        x, _ = lapack.getrs(lu, piv, b, trans)
        np.testing.assert_allclose(op @ x, b, atol=1e-3 if letter == "s" else 1e-11)


def check_restored(kernels=restore, letter="d", order="F", rows=20, columns=17) -> None:
    """Matrices whose info is not 0, and no others."""
    dtype, parts = DTYPES[letter].name, 2 if letter in "cz" else 1
    before = np.stack([random(letter, rows, columns, z) for z in range(3)])
    view, unharmed = fenced(np.full(before.shape, 7, dtype), order)
    info = np.array([[0, -1], [3, -1], [0, -1]], np.int32)
    config = kernels.Restore("s" if letter in "sc" else "d", DIM=32)
    (from_step, *from_steps), (to_step, *to_steps) = strides(before), strides(view)
    integers = rows, columns, parts, *from_steps, *to_steps, 2, from_step, to_step
    run(kernels.source(config), config.grid(rows, columns), (info, before, view), integers, (), batch=3)
    np.testing.assert_array_equal(view[1], before[1])
    assert (view[[0, 2]] == 7).all() and unharmed()


@pytest.mark.parametrize("letter", DTYPES)
@pytest.mark.parametrize("order", "CF")
def test_restored_matrices(letter, order):
    check_restored(letter=letter, order=order)


def test_more_elements_than_threads():
    check_restored(rows=70, columns=71)


@pytest.mark.parametrize("letter", "dc")
def test_singular_systems_keep_their_right_hand_sides(letter, monkeypatch):
    monkeypatch.setenv("PYBLASGPU_BACKEND", "sim")
    a, b = np.stack([random(letter, 9, 9, z) for z in range(2)]), np.stack([random(letter, 9, 2)] * 2)
    a[1, :, 4] = 0
    _, _, x, info = lapack.gesv(a, b)
    assert list(info) == [0, 5] and not np.allclose(x[0], b[0])
    np.testing.assert_array_equal(x[1], b[1])
    definite = (a @ a.conj().swapaxes(1, 2)).astype(a.dtype)
    definite[1, 3, 3] = -1
    _, x, info = lapack.posv(definite, b, lower=1)
    assert list(info) == [0, 4] and not np.allclose(x[0], b[0])
    np.testing.assert_array_equal(x[1], b[1])
