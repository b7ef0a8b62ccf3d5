"""QR factors of `linalg` compared with SciPy's."""

from __future__ import annotations

import inspect
from itertools import product
from unittest.mock import Mock

import fake_device
import numpy as np
import pytest
import scipy.linalg
from covering import by_turns
from qr_cases import (
    SETS,
    SHAPES,
    check_factors,
    leaves,
    matrix_of,
    nearly_equal_columns,
    relative_residual,
    same,
)

from pyblasgpu import linalg
from pyblasgpu.api.lapack import names
from pyblasgpu.api.linalg import cholesky_qr, normal_equations
from pyblasgpu.api.linalg.arrays import taken
from pyblasgpu.types import DTYPES

MODES = ["full", "economic", "r", "raw"]


@pytest.fixture(autouse=True)
def on_the_cpu(monkeypatch):
    monkeypatch.setenv("PYBLASGPU_BACKEND", "cpu")


@pytest.mark.parametrize(
    ("shape", "how", "letter"),
    by_turns([*SHAPES, (0, 3), (3, 0), (0, 0), (2, 5, 3), (2, 3, 5)], product(MODES, [False, True]), DTYPES),
    ids=str,
)
def test_factors_are_scipys(shape, how, letter):
    mode, pivoting = how
    a = matrix_of("random", letter, *shape)
    if mode == "raw" and len(shape) > 2:  # which SciPy cannot stack
        ours = leaves(linalg.qr(a, mode=mode, pivoting=pivoting))
        theirs = [leaves(scipy.linalg.qr(each, mode=mode, pivoting=pivoting)) for each in a]
        return same(tuple(ours), tuple(map(np.stack, zip(*theirs, strict=True))))
    same(linalg.qr(a, mode=mode, pivoting=pivoting), scipy.linalg.qr(a, mode=mode, pivoting=pivoting))
    return None


@pytest.mark.parametrize("kind", SETS)
@pytest.mark.parametrize("letter", DTYPES)
def test_bounds(kind, letter):
    for shape in [*SHAPES, (3, 20, 9), (3, 9, 20)]:
        a = matrix_of(kind, letter, *shape)
        for mode in ("full", "economic"):
            check_factors(a, *linalg.qr(a, mode=mode))
            q, r, p = linalg.qr(a, mode=mode, pivoting=True)
            check_factors(np.take_along_axis(a, p[..., None, :], -1), q, r)
            sizes = np.abs(np.diagonal(r, axis1=-2, axis2=-1))
            noise = np.finfo(a.dtype).eps * sizes[..., :1]  # which has no order
            assert (sizes[..., 1:] <= sizes[..., :-1] * (1 + 1e-5) + noise).all() or kind in (
                "graded",
                "nearly dependent",
            )


@pytest.mark.parametrize(
    ("numpys", "scipys"), [("complete", "full"), ("reduced", "economic"), ("raw", "raw")]
)
def test_modes_of_numpy(numpys, scipys):
    a = matrix_of("random", "d", 2, 5, 3)
    ours, theirs = linalg.qr(a, mode=numpys), leaves(np.linalg.qr(a, mode=numpys))
    for one, other in zip(leaves(ours), theirs, strict=False):
        np.testing.assert_allclose(one.swapaxes(-1, -2) if numpys == "raw" and one.ndim > 2 else one, other)
    same(ours, linalg.qr(a, mode=scipys))


@pytest.mark.parametrize("a", [[[1, 2], [3, 4]], np.eye(3, dtype="f2"), np.arange(6).reshape(3, 2)])
def test_what_becomes_floating_point(a):
    same(linalg.qr(a), scipy.linalg.qr(a))


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_special_values(value):
    a = np.eye(4, 3)
    a[2, 1] = value
    with pytest.raises(ValueError, match="qr: array must not contain infs or NaNs"):
        linalg.qr(a)
    with pytest.raises(ValueError, match="qr_multiply: array must not contain infs or NaNs"):
        linalg.qr_multiply(np.eye(4, 3), a.T)
    for one, other in zip(
        linalg.qr(a, check_finite=False), scipy.linalg.qr(a, check_finite=False), strict=True
    ):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("letter", DTYPES)
@pytest.mark.parametrize("shape", [(5, 3), (3, 5), (4, 4), (1, 1), (2, 5, 3), (2, 3, 5)])
@pytest.mark.parametrize("mode", ["left", "right"])
@pytest.mark.parametrize("options", [{}, {"conjugate": True}, {"pivoting": True}])
@pytest.mark.parametrize("is_vector", [False, True])
def test_products_are_scipys(letter, shape, mode, options, is_vector):
    m, n = shape[-2:]
    extent = min(m, n) if mode == "left" else m
    c = matrix_of("random", letter, extent, 2, seed=4)
    c = c[:, 0] if is_vector else c if mode == "left" else np.ascontiguousarray(c.T)
    a = matrix_of("random", letter, *shape)
    start = a.copy(), c.copy()
    same(linalg.qr_multiply(a, c, mode, **options), scipy.linalg.qr_multiply(a, c, mode, **options))
    assert np.array_equal(a, start[0]) and np.array_equal(c, start[1])


def test_products_with_the_rows_of_the_result():
    """c has them with `overwrite_c`."""
    a, c = matrix_of("random", "d", 5, 3), np.asfortranarray(matrix_of("random", "d", 5, 2))
    theirs = scipy.linalg.qr_multiply(a, c.copy(), "left", overwrite_c=True)
    same(linalg.qr_multiply(a, c.copy(), "left", overwrite_c=True), theirs)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("order", "CF")
def test_overwriting(mode, order):
    a = np.array(matrix_of("random", "d", 6, 4), order=order)
    start = a.copy()
    same(linalg.qr(a, True, mode=mode), scipy.linalg.qr(start, mode=mode))
    stack = matrix_of("random", "d", 2, 6, 4)
    before = stack.copy()
    linalg.qr(stack, True, mode=mode)
    np.testing.assert_array_equal(stack, before)


# --------------------------------------------------------------------------------------------- all of them


@pytest.mark.parametrize("name", ["qr", "qr_multiply", "lstsq"])
def test_signatures(name):
    ours, theirs = (inspect.signature(getattr(module, name)).parameters for module in (linalg, scipy.linalg))
    assert [parameter for parameter in ours if parameter != "method"] == list(theirs)  # which SciPy lacks
    for parameter in theirs:
        assert ours[parameter].default == theirs[parameter].default or parameter == "check_finite"


def test_refusals():
    a = np.ones((5, 3))
    for wrong, message in (
        (lambda: linalg.qr(a, mode="thin"), "qr: mode='thin' is none of full, qr, complete"),
        (lambda: linalg.qr(a, mode=1), "qr: mode=1 is none"),
        (lambda: linalg.qr(a[0]), r"qr: a has shape \(3,\)"),
        (lambda: linalg.qr(a, lwork=2), "lwork=2 is less than 3"),
        (lambda: linalg.qr(a, pivoting="yes"), "pivoting"),
        (lambda: linalg.qr_multiply(a, a, mode="both"), "qr_multiply: mode='both'"),
        (lambda: linalg.qr_multiply(a, a), r"a has shape \(5, 3\) and c \(5, 3\); c needs 5 columns"),
        (lambda: linalg.qr_multiply(a, a, "left"), "c needs 3 rows"),
        (lambda: linalg.qr_multiply(a, 1.0, "left"), r"c \(\); c needs 3 rows"),
        (lambda: linalg.lstsq(a, a.T), r"lstsq: a has shape \(5, 3\) and b \(3, 5\), of other rows"),
        (lambda: linalg.lstsq(a[0], a), r"lstsq: a has shape \(3,\)"),
        (lambda: linalg.lstsq(a, a, lapack_driver="gelsx"), "lstsq: lapack_driver='gelsx' is none of gelsd"),
        (lambda: linalg.lstsq(a, a, 0.1, lapack_driver="gels"), "lstsq: cond=0.1 is for drivers"),
        (lambda: linalg.lstsq(a * np.nan, a), "lstsq: array must not contain infs or NaNs"),
        (lambda: linalg.qr_delete(np.eye(3), a[:3], 4), "qr_delete: .*out of bounds"),
        (lambda: linalg.qr_update(np.eye(3), a[:3], a[:3, 0] * np.inf, a[0]), "qr_update: array must not"),
    ):
        with pytest.raises(ValueError, match=message):
            wrong()
    with pytest.raises(TypeError, match="qr"):
        linalg.qr(np.ones((2, 2), object))


def hosts(results) -> list[np.ndarray]:
    return [getattr(each, "host", each) for each in leaves(results)]


@pytest.mark.parametrize("letter", DTYPES)
@pytest.mark.parametrize("shape", [(5, 3), (3, 5), (4, 4), (2, 5, 3), (2, 3, 5), (3, 0), (0, 3)])
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("order", "CF")
def test_factors_on_a_device(fake, letter, shape, mode, order):
    a = matrix_of("random", letter, *shape)
    put = fake_device.Array(np.array(a, order=order))
    for _ in range(3):
        same(tuple(hosts(linalg.qr(put, mode=mode))), tuple(leaves(linalg.qr(a, mode=mode))))
    np.testing.assert_array_equal(put.host, a)


@pytest.mark.parametrize("letter", "sz")
@pytest.mark.parametrize("shape", [(5, 3), (3, 5), (2, 5, 3), (3, 0), (0, 3), (2, 0, 3)])
@pytest.mark.parametrize("mode", MODES)
def test_pivots_on_a_device(fake, letter, shape, mode):
    """Three times: the calls that follow the first one are kept."""
    a = matrix_of("random", letter, *shape)
    put = fake_device.Array(np.array(a, order="F"))
    expected = linalg.qr(a, mode=mode, pivoting=True)
    for _ in range(3):
        same(tuple(hosts(linalg.qr(put, mode=mode, pivoting=True))), tuple(leaves(expected)))
    c = np.ones((max(shape[-2], 1), shape[-2]), a.dtype)
    if a.size:
        ours = linalg.qr_multiply(put, fake_device.Array(c), pivoting=True)
        same(tuple(hosts(ours)), linalg.qr_multiply(a, c, pivoting=True))


@pytest.mark.parametrize("letter", DTYPES)
@pytest.mark.parametrize("shape", [(5, 3), (3, 5), (2, 5, 3)])
@pytest.mark.parametrize("mode", ["left", "right"])
@pytest.mark.parametrize("conjugate", [False, True])
@pytest.mark.parametrize("is_vector", [False, True])
def test_products_on_a_device(fake, letter, shape, mode, conjugate, is_vector):
    (m, n), put = shape[-2:], fake_device.Array
    extent = min(m, n) if mode == "left" else m
    c = matrix_of("random", letter, extent, 2, seed=4)
    c = c[:, 0] if is_vector else c if mode == "left" else c.T
    a = matrix_of("random", letter, *shape)
    ours = linalg.qr_multiply(put(a), put(np.array(c)), mode, conjugate=conjugate)
    same(tuple(hosts(ours)), linalg.qr_multiply(a, c, mode, conjugate=conjugate))


@pytest.mark.parametrize("letter", DTYPES)
@pytest.mark.parametrize("shape", [(7, 3), (3, 7), (4, 4), (2, 7, 3), (2, 3, 7)])
@pytest.mark.parametrize("columns", [0, 2])
def test_least_squares_on_a_device(fake, letter, shape, columns):
    a, put = matrix_of("random", letter, *shape), fake_device.Array
    b = matrix_of("random", letter, shape[-2], max(columns, 1), seed=6)
    b = b if columns else b[:, 0]
    for _ in range(3):
        x, residues, rank, s = linalg.lstsq(put(a), put(np.array(b)))
        theirs = linalg.lstsq(a, b, lapack_driver="gels")
        assert s is None and np.array_equal(rank, theirs[2])
        for one, other in zip(hosts((x, residues)), theirs[:2], strict=True):
            assert one.shape == other.shape and one.dtype == other.dtype
            np.testing.assert_allclose(one, other, rtol=1e-3 if letter in "sc" else 1e-11, atol=1e-6)


@pytest.mark.parametrize("letter", "sz")
@pytest.mark.parametrize("shape", [(600, 7), (2, 500, 5)])
@pytest.mark.parametrize(
    "shift, size, refined",
    [(0, 1, "sz"), (4, 1, "sz"), (30, 1, "z"), (1e4, 1, "z"), (1e6, 1, ""), (0, 0, ""), (0, 1e30, "")],
)
@pytest.mark.filterwarnings("ignore:overflow")
def test_least_squares_of_tall_matrices(fake, decide_by, monkeypatch, letter, shape, shift, size, refined):
    """By normal equations and corrections, where A is not too sensitive and no squares leave the range."""
    decide_by(cholesky_qr_min_rows=32)
    monkeypatch.setattr(normal_equations, "LEAST_ELEMENTS", 0)
    a, b = matrix_of("random", letter, *shape), matrix_of("random", letter, *shape[:-1], 2, seed=6)
    a, b = a + np.float32(shift), b * (np.float32(size) if letter == "s" else size**9)
    called = Mock(wraps=names.geqrf)
    monkeypatch.setattr(names, "geqrf", called)
    x, squares, rank, _ = linalg.lstsq(fake_device.Array(a.copy()), fake_device.Array(b.copy()))
    assert (called.call_count == 0) == (letter in refined) and (np.asarray(rank) == shape[-1]).all()
    exact, rest, _, _ = linalg.lstsq(a.astype("D"), b.astype("D"), lapack_driver="gels")
    tolerance = 50 * np.finfo(a.dtype).eps * max(1, shift / 4) ** 2  # the condition, squared
    np.testing.assert_allclose(x.host, exact, rtol=0, atol=tolerance * np.abs(exact).max())
    if size == 1:
        np.testing.assert_allclose(squares.host, rest, rtol=50 * np.finfo(a.dtype).eps * max(1, shift / 4))


@pytest.mark.parametrize(
    "letter, shift, columns, count", [("d", 0, 1, 1), ("d", 1e4, 2, 2), ("s", 4, 1, 1), ("s", 0, 15, 0)]
)
def test_corrections_of_least_squares(fake, decide_by, monkeypatch, letter, shift, columns, count):
    """As many as the first one shows to be needed; none for many right-hand sides."""
    decide_by(cholesky_qr_min_rows=32)
    monkeypatch.setattr(normal_equations, "LEAST_ELEMENTS", 0)
    products = Mock(wraps=normal_equations.gemm)
    monkeypatch.setattr(normal_equations, "gemm", products)
    a, b = matrix_of("random", letter, 600, 7), matrix_of("random", letter, 600, columns, seed=6)
    linalg.lstsq(fake_device.Array(a + np.float32(shift)), fake_device.Array(b))
    assert products.call_count == (4 + 4 * count if count else 0)


@pytest.mark.parametrize(
    "ratio, count", [(0, 1), (1e-9, 1), (1e-7, 2), (1e-5, 3), (1e-3, None), (np.nan, None)]
)
def test_count_of_corrections(ratio, count):
    arrays = taken("lstsq", {"a": np.eye(2)})
    assert normal_equations.needed_corrections(arrays, ratio) == count


@pytest.mark.parametrize("letter", "dc")
@pytest.mark.parametrize("shape", [(40, 3), (2, 30, 5)])
def test_pivots_of_tall_matrices_on_a_device(fake, monkeypatch, letter, shape):
    """They are those of R, and the factors those of the whole matrix but for signs."""
    monkeypatch.setattr("pyblasgpu.api.linalg.qr.LEAST_ROWS", 30)
    called = Mock(wraps=names.geqp3)
    monkeypatch.setattr(names, "geqp3", called)
    a, b = matrix_of("random", letter, *shape), matrix_of("random", letter, shape[-2], 2, seed=6)
    put = fake_device.Array(a.copy())
    q, r, p = hosts(linalg.qr(put, mode="economic", pivoting=True))
    np.testing.assert_array_equal(p, linalg.qr(a, mode="r", pivoting=True)[-1])
    check_factors(np.take_along_axis(a, p[..., None, :], -1), q, r)
    a[..., 1] = a[..., 0]
    x, _, ranks, _ = linalg.lstsq(fake_device.Array(a), fake_device.Array(b), 1e-3, lapack_driver="gelsy")
    theirs = linalg.lstsq(a, b, 1e-3, lapack_driver="gelsy")
    assert np.array_equal(ranks, theirs[2]) and (np.asarray(ranks) == shape[-1] - 1).all()
    np.testing.assert_allclose(x.host, theirs[0], rtol=0, atol=1e4 * np.finfo(a.dtype).eps)
    factored = [each.args[0] for each in called.call_args_list]
    assert [each.shape[-2] for each in factored if not isinstance(each, np.ndarray)] == [shape[-1]] * 2


@pytest.mark.parametrize("letter", "dc")
@pytest.mark.parametrize("shape", [(7, 3), (3, 7), (4, 4), (3, 7, 4), (3, 4, 7), (0, 3), (3, 0), (0, 3, 2)])
@pytest.mark.parametrize("rank", [0, 1, 2, 9])
@pytest.mark.parametrize("columns", [0, 2])
def test_least_squares_of_any_rank_on_a_device(fake, letter, shape, rank, columns):
    """Stacks have matrices of other ranks too; zero is what SciPy's takes for zero."""
    a, put = matrix_of("random", letter, *shape), fake_device.Array
    b = matrix_of("random", letter, shape[-2], max(columns, 1), seed=6)
    b = b if columns else b[:, 0]
    if rank < min(shape[-2:]) and a.size:
        a = np.ascontiguousarray(a[..., :rank] @ a[..., :rank, :])
        if a.ndim > 2:
            a[1] = matrix_of("random", letter, *shape[1:], seed=9)
    for cond in (None if rank == 9 else 1e-3, 0.3):
        ours = linalg.lstsq(put(a), put(np.array(b)), cond, lapack_driver="gelsy")
        theirs = linalg.lstsq(a, b, cond, lapack_driver="gelsy")
        assert ours[3] is None and np.array_equal(ours[2], theirs[2])
        for one, other in zip(hosts(ours[:2]), theirs[:2], strict=True):
            assert one.shape == other.shape and (one.dtype == other.dtype or not a.size)
            np.testing.assert_allclose(
                one, other, rtol=0, atol=1e4 * np.finfo(a.dtype).eps * (1 + np.abs(other).max(initial=0))
            )


def test_matrices_without_full_rank_on_a_device(fake):
    a, b = fake_device.Array(np.diag([1.0, 0, 2])), fake_device.Array(np.ones(3))
    wide = fake_device.Array(np.eye(3, 4) * [[1.0], [0], [2]])
    for matrix in (a, wide):
        with pytest.raises(np.linalg.LinAlgError, match="lstsq: a has no full rank"):
            linalg.lstsq(matrix, b, check_finite=True)
    assert not np.isfinite(linalg.lstsq(a, b)[0].host).all()


@pytest.mark.parametrize("letter", DTYPES)
@pytest.mark.parametrize("kind", [*SETS, "zeros in a row"])
@pytest.mark.parametrize("shape", [(80, 3), (2, 70, 4)])
def test_tall_matrices_on_a_device(fake, decide_by, letter, kind, shape):
    """Factors by Cholesky where the condition allows it, else by reflectors: both keep the bounds."""
    decide_by(cholesky_qr_min_rows=32)
    a = matrix_of("random" if kind == "zeros in a row" else kind, letter, *shape)
    if kind == "zeros in a row":
        a[..., 5, :] = 0
    for _ in range(2):
        q, r = hosts(linalg.qr(fake_device.Array(a.copy()), mode="economic"))
        check_factors(a, q, r)
        assert (np.tril(r, -1) == 0).all()
    if kind == "random":
        diagonal = np.diagonal(r, axis1=-2, axis2=-1)
        assert (diagonal.real > 0).all() and (diagonal.imag == 0).all()


@pytest.mark.parametrize("fails", [0, 1])
def test_tall_matrices_of_a_large_condition(fake, decide_by, fails):
    """One of a stack is enough for reflectors of all, whose R has another sign than Cholesky's."""
    decide_by(cholesky_qr_min_rows=32)
    a = np.abs(matrix_of("random", "d", 2, 64, 2))
    if fails:
        a[1, :, 1] = a[1, :, 0] * (1 + 1e-12 * np.arange(64))
    q, r = hosts(linalg.qr(fake_device.Array(a.copy()), mode="economic"))
    check_factors(a, q, r)
    assert (r[0, 0, 0] > 0) == (not fails)


@pytest.mark.parametrize("letter, n", [("s", 6), ("z", 40)])
@pytest.mark.parametrize("shift, rounds", [(1, 1), (10, 2)])
def test_rounds_of_tall_matrices(fake, decide_by, monkeypatch, letter, n, shift, rounds):
    """One where the least eigenvalue of A^H A, columns scaled to norm one, is no small fraction of one."""
    decide_by(cholesky_qr_min_rows=32)
    a, taken, take = matrix_of("random", letter, 40 * n, n) + np.float32(shift), [], names.potrf
    monkeypatch.setattr(names, "potrf", lambda *arguments: taken.append(1) or take(*arguments))
    q, r = hosts(linalg.qr(fake_device.Array(a.copy()), mode="economic"))
    assert len(taken) == rounds
    check_factors(a, q, r)


@pytest.mark.parametrize("n", [4, 40, 130])
@pytest.mark.parametrize("shift, is_out", [(0, True), (0.5, True), (10, False)])
def test_q_of_one_round_in_memory_that_is_there(fake, decide_by, n, shift, is_out):
    decide_by(cholesky_qr_min_rows=32)
    a = matrix_of("random", "d", 40 * n, n) + shift
    arrays, out = (
        taken("qr", {"a": fake_device.Array(a.copy())}),
        fake_device.Array(np.empty_like(a, order="F")),
    )
    found = cholesky_qr.cholesky_qr(arrays, arrays.each[0], out)
    assert found is not None and (found[0] is out) == is_out
    check_factors(a, *hosts(found))


@pytest.mark.parametrize("letter", "dz")
@pytest.mark.parametrize("width", [2, 128])
def test_tall_matrices_with_nearly_equal_columns(fake, decide_by, monkeypatch, letter, width):
    """Substitution takes the place of a product with R^-1, which would leave more than roundoffs."""
    decide_by(cholesky_qr_min_rows=32)
    monkeypatch.setattr(cholesky_qr, "WIDTH", width)
    others = matrix_of("random", letter, 400, 9)
    for a in (nearly_equal_columns(letter, 400, 9), np.stack([others, others + 1])):
        q, r = hosts(linalg.qr(fake_device.Array(a.copy()), mode="economic"))
        diagonal = np.diagonal(r, axis1=-2, axis2=-1)
        assert (diagonal.real > 0).all() and (diagonal.imag == 0).all()  # by Cholesky factors
        check_factors(a, q, r)
        assert relative_residual(a, q, r) < 50 * np.finfo(a.dtype).eps


@pytest.mark.parametrize(
    "lwork, message", [(1, "lwork=1 is less than 2"), (2.5, r"lwork=2\.5 is no integer")]
)
def test_workspaces_of_tall_matrices(fake, decide_by, lwork, message):
    """They are checked though none is needed, as of other matrices."""
    decide_by(cholesky_qr_min_rows=32)
    a = fake_device.Array(matrix_of("random", "d", 64, 2))
    for mode in ("economic", "r"):
        with pytest.raises(ValueError, match=f"^qr: {message}"):
            linalg.qr(a, lwork=lwork, mode=mode)
    assert len(linalg.qr(a, lwork=-1, mode="economic")) == 2


def test_tall_matrices_without_a_number(fake, decide_by):
    decide_by(cholesky_qr_min_rows=32)
    a = matrix_of("random", "d", 64, 2)
    a[3, 1] = np.nan
    q, r = hosts(linalg.qr(fake_device.Array(a), mode="economic"))
    assert np.isfinite(r[0, 0]) and np.isnan(r[:, 1]).any() and np.isnan(q[:, 1]).any()
