"""Least squares of `linalg`, and updates of QR factors, compared with SciPy's."""

from __future__ import annotations

from itertools import product

import fake_device
import numpy as np
import pytest
import scipy.linalg
from covering import by_turns
from qr_cases import SHAPES, check_factors, matrix_of, same

from pyblasgpu import linalg
from pyblasgpu.types import DTYPES


@pytest.fixture(autouse=True)
def on_the_cpu(monkeypatch):
    monkeypatch.setenv("PYBLASGPU_BACKEND", "cpu")


@pytest.mark.parametrize(
    ("of", "shape", "columns"),
    by_turns(
        product(DTYPES, [None, "gelsd", "gelsy", "gelss"]),
        [*SHAPES, (0, 3), (3, 0), (2, 5, 3), (2, 3, 5)],
        [0, 1, 3],
    ),
    ids=str,
)
def test_least_squares_are_scipys(of, shape, columns):
    letter, driver = of
    a = matrix_of("random", letter, *shape)
    b = matrix_of("random", letter, shape[-2], max(columns, 1), seed=3)
    b = b if columns else b[:, 0]
    ours = linalg.lstsq(a, b, lapack_driver=driver)
    if driver == "gelsy" and a.ndim > 2:  # which SciPy cannot stack
        theirs = [scipy.linalg.lstsq(each, b, lapack_driver=driver) for each in a]
        assert ours[3] is None and list(ours[2]) == [each[2] for each in theirs]
        return same(ours[0], np.stack([each[0] for each in theirs]))
    theirs = scipy.linalg.lstsq(a, b, lapack_driver=driver)
    for one, other in zip(ours, theirs, strict=True):
        assert np.shape(one) == np.shape(other) and (one is None) == (other is None)
        if one is not None:
            assert np.asarray(one).dtype == np.asarray(other).dtype
            np.testing.assert_allclose(one, other, rtol=1e-3 if letter in "sc" else 1e-11)
    return None


@pytest.mark.parametrize("kind", ["random", "graded", "huge", "tiny"])
@pytest.mark.parametrize("letter", DTYPES)
@pytest.mark.parametrize("shape", [(9, 4), (4, 9), (5, 5), (3, 9, 4)])
def test_least_squares_by_factors(kind, letter, shape):
    """Residuals are orthogonal to the columns, and the norm is the least."""
    a = matrix_of(kind, letter, *shape)
    (m, n), eps = shape[-2:], np.finfo(a.dtype).eps
    scale = np.abs(a).max()
    b = matrix_of("random", letter, m, 2, seed=8)
    x, residues, rank, s = linalg.lstsq(a, b, lapack_driver="gels")
    assert s is None and np.all(rank == min(m, n)) and residues.dtype == np.finfo(a.dtype).dtype
    a, x = (a / scale).astype(complex), x.astype(complex) * float(scale)
    rest = b - a @ x
    size = np.linalg.norm(a, 2, axis=(-2, -1)).max() * np.linalg.norm(x) + np.linalg.norm(b)
    bound = 100 * m * n * eps * size
    rows = np.linalg.norm(a, axis=-2)[..., None]
    if m > n:
        squares = (np.abs(rest) ** 2).sum(axis=-2)
        np.testing.assert_allclose(residues, squares, rtol=0, atol=bound * np.linalg.norm(b))
    assert (np.abs(a.swapaxes(-1, -2).conj() @ rest) <= bound * rows).all()
    if m < n:
        null = np.linalg.svd(a)[2][..., m:, :] if kind == "random" else np.zeros((1, n))
        assert np.abs(null @ x).max() <= bound


def test_matrices_without_full_rank():
    a = np.array([[1.0, 0], [1, 0], [1, 0]])
    with pytest.raises(np.linalg.LinAlgError, match="lstsq: a has no full rank: element 2"):
        linalg.lstsq(a, np.ones(3), lapack_driver="gels")
    x, residues, rank, _ = linalg.lstsq(np.stack([a, np.eye(3, 2)]), np.ones((3, 1)))
    assert list(rank) == [1, 2] and residues.shape == (2, 0)
    np.testing.assert_allclose(x[..., 0], [[1, 0], [1, 1]], atol=1e-15)
    assert linalg.lstsq(np.ones((0, 3, 2)), np.ones(3))[0].shape == (0, 2)


@pytest.mark.parametrize("cond", [None, 0.0, 1e-3, 0.9])
@pytest.mark.parametrize("driver", ["gelsd", "gelsy", "gelss"])
def test_ranks_by_cond(cond, driver):
    a, b = np.diag([1.0, 0.1, 1e-8]), np.ones(3)
    ours, theirs = (module.lstsq(a, b, cond, lapack_driver=driver) for module in (linalg, scipy.linalg))
    assert ours[2] == theirs[2]
    np.testing.assert_allclose(ours[0], theirs[0])


# ------------------------------------------------------------------------------------------------- updates


@pytest.mark.parametrize("letter", DTYPES)
@pytest.mark.parametrize("mode", ["full", "economic"])
@pytest.mark.parametrize("batch", [(), (2,)])
def test_updates_are_scipys(letter, mode, batch):
    a = matrix_of("random", letter, *batch, 6, 3)
    q, r = scipy.linalg.qr(a, mode=mode)
    u, v = (
        matrix_of("random", letter, *batch, 6, 2, seed=4),
        matrix_of("random", letter, *batch, 3, 2, seed=5),
    )
    calls = [
        ("qr_insert", (q, r, u, 1, "col")),
        ("qr_insert", (q, r, v.swapaxes(-1, -2), 2)),
        ("qr_delete", (q, r, 0, 1, "col")),
        ("qr_update", (q, r, u, v)),
    ]
    for name, arguments in [*calls, ("qr_delete", (q, r, 1, 2))]:
        same(getattr(linalg, name)(*arguments), getattr(scipy.linalg, name)(*arguments))


@pytest.mark.parametrize("letter", DTYPES)
@pytest.mark.parametrize("mode, batch", [("full", ()), ("economic", ()), ("full", (2,))])
def test_updates_on_a_device(fake, letter, mode, batch):
    """Factors of the changed matrix, which SciPy's function gives with other signs."""
    a = matrix_of("random", letter, *batch, 7, 4)
    q, r = (fake_device.Array(np.array(each)) for each in scipy.linalg.qr(a, mode=mode))
    u, v = (matrix_of("random", letter, *batch, n, 2, seed=n) for n in (7, 4))
    rows, adjoint = v.swapaxes(-1, -2), v.conj().swapaxes(-1, -2)
    changed = {
        "qr_update": ((u, v), a + u @ adjoint),
        "qr_insert": ((rows, -2), np.concatenate([a[..., :5, :], rows, a[..., 5:, :]], axis=-2)),
        "qr_delete": ((2, 3), np.delete(a, [2, 3, 4], axis=-2)),
    }
    by_columns = {
        "qr_insert": ((u[..., :1] if batch else u[:, 0], 4, "col"), np.concatenate([a, u[..., :1]], axis=-1)),
        "qr_delete": ((-1, 1, "col"), a[..., :-1]),
    }
    for name, (others, expected) in [*changed.items(), *by_columns.items()]:
        put = [fake_device.Array(np.array(x)) if isinstance(x, np.ndarray) else x for x in others]
        q1, r1 = (each.host for each in getattr(linalg, name)(q, r, *put))
        theirs = getattr(scipy.linalg, name)(q.host, r.host, *others)
        assert (q1.shape, r1.shape) == tuple(each.shape for each in theirs)
        check_factors(expected, q1, r1)


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda q, r, u: linalg.qr_insert(q, r, u, 5), "k=5 is out of bounds"),
        (lambda q, r, u: linalg.qr_insert(q, r, u, 0, "col"), r"u has shape \(2,\), of A \(4, 2\)"),
        (lambda q, r, u: linalg.qr_insert(q, r, u, 0, "rows"), "which='rows'"),
        (lambda q, r, u: linalg.qr_delete(q, r, 4), "k=4 is out of bounds"),
        (lambda q, r, u: linalg.qr_delete(q, r, 3, 2), "p=2 is out of range"),
        (lambda q, r, u: linalg.qr_delete(r, q, 0), ".*which are no factors"),
        (lambda q, r, u: linalg.qr_update(q, r, u, u), "u has shape"),
    ],
)
def test_refused_updates_on_a_device(fake, call, message):
    q, r, u = (fake_device.Array(each) for each in (np.eye(4), np.eye(4, 2), np.ones(2)))
    with pytest.raises(ValueError, match=f"^qr_.*: {message}"):
        call(q, r, u)
