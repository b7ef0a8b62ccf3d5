"""patch_cupy on arrays that stand in for CuPy's: results, sizes, and nothing left behind."""

from __future__ import annotations

import sys
import warnings

import host_cupy
import numpy as np
import pytest
import scipy.linalg

import pyblasgpu
from pyblasgpu import patch_cupy, set_math_mode, unpatch_cupy


@pytest.fixture
def cupy(monkeypatch):
    host_cupy.install(monkeypatch)
    module = sys.modules["cupy"]
    homes = module.linalg, sys.modules["cupyx.scipy.linalg"], module
    before = [vars(home).copy() for home in homes]
    yield module
    unpatch_cupy()
    for home, names in zip(homes, before):
        assert [name for name, value in names.items() if vars(home)[name] is not value] == []
    assert "__matmul__" not in vars(module.ndarray)


def taken(**options):
    return patch_cupy(**{"backend": "cpu", "thresholds": 0, **options})


def arrays(cupy, dtype, *batch):
    rng = np.random.default_rng(8)
    a = rng.standard_normal((*batch, 5, 5)) + (
        1j * rng.standard_normal((*batch, 5, 5)) if dtype in "FD" else 0
    )
    b = rng.standard_normal((*batch, 5, 3))
    p = a @ a.conj().swapaxes(-1, -2) + 5 * np.eye(5)
    return [x.astype(dtype).view(cupy.ndarray) for x in (a, p, b)]


CALLS = {
    "cholesky": lambda cupy, a, p, b: cupy.linalg.cholesky(p),
    "solve": lambda cupy, a, p, b: cupy.linalg.solve(a, b),
    "inv": lambda cupy, a, p, b: cupy.linalg.inv(a),
    "det": lambda cupy, a, p, b: cupy.linalg.det(a),
    "qr": lambda cupy, a, p, b: cupy.linalg.qr(b),
    "qr ": lambda cupy, a, p, b: cupy.linalg.qr(a, "complete"),
    "qr  ": lambda cupy, a, p, b: cupy.linalg.qr(b, mode="r"),
    "slogdet": lambda cupy, a, p, b: cupy.linalg.slogdet(a),
}
OF_MATRICES = {
    "solve ": lambda cupy, a, p, b: cupy.linalg.solve(a, b[:, 0]),
    "inv ": lambda cupy, a, p, b: cupy.linalg.inv(a.T),
    "solve_triangular": lambda cupy, a, p, b: scipys().solve_triangular(p, b, lower=True),
    "solve_triangular ": lambda cupy, a, p, b: scipys().solve_triangular(p, b[:, 0], 2, unit_diagonal=True),
    "lu_factor": lambda cupy, a, p, b: scipys().lu_factor(a),
    "lu_solve": lambda cupy, a, p, b: scipys().lu_solve(scipy.linalg.lu_factor(np.asarray(a)), b),
    "lu": lambda cupy, a, p, b: scipys().lu(a),
}


def scipys():
    return sys.modules["cupyx.scipy.linalg"]


def close(found, expected, limit):
    pairs = zip(found, expected, strict=True) if isinstance(expected, tuple) else [(found, expected)]
    for one, other in pairs:
        np.testing.assert_allclose(one, other, limit, limit)
        assert np.asarray(one).dtype == np.asarray(other).dtype


@pytest.mark.parametrize("dtype", "fdFD")
@pytest.mark.parametrize("name", [*CALLS, *OF_MATRICES])
def test_results_are_cupys(cupy, name, dtype):
    for batch in [()] if name in OF_MATRICES else [(), (2, 3)]:
        call, operands = (CALLS | OF_MATRICES)[name], arrays(cupy, dtype, *batch)
        if name == "lu_solve":
            factors = scipy.linalg.lu_factor(np.asarray(operands[0]))
            factors = factors[0].view(cupy.ndarray), factors[1].view(cupy.ndarray)
            call = lambda cupy, a, p, b: scipys().lu_solve(factors, b)  # noqa: E731, B023
        expected = call(cupy, *operands)
        with taken() as patch:
            found = call(cupy, *operands)
        assert patch.calls == {name.strip(): 1} and not patch.kept
        close(found, expected, 1e-4 if dtype in "fF" else 1e-11)
        call(cupy, *operands)
        assert patch.calls == {name.strip(): 1}


SPECTRA = {
    "eigh": lambda cupy, a, p, b: _product(*cupy.linalg.eigh(p, "U")),
    "eigvalsh": lambda cupy, a, p, b: cupy.linalg.eigvalsh(p),
    "svd": lambda cupy, a, p, b: _product(*cupy.linalg.svd(b)),
    "svd ": lambda cupy, a, p, b: _product(*cupy.linalg.svd(b.swapaxes(-1, -2), full_matrices=False)),
    "svd  ": lambda cupy, a, p, b: cupy.linalg.svd(a, compute_uv=False),
}


def _product(*factors):
    """The values, and the product of vectors and values, which have no sign."""
    u, values, vh = (
        factors if len(factors) == 3 else (factors[1], factors[0], factors[1].conj().swapaxes(-1, -2))
    )
    k = values.shape[-1]
    return values, (u[..., :k] * values[..., None, :]) @ vh[..., :k, :]


@pytest.mark.parametrize("dtype", "fdFD")
@pytest.mark.parametrize("name", SPECTRA)
def test_spectra_of_stacks_are_cupys(cupy, name, dtype):
    """Calls of few matrices, and of larger ones, stay CuPy's."""
    operands = arrays(cupy, dtype, 2, 4)
    expected = SPECTRA[name](cupy, *operands)
    with taken() as patch:
        found = SPECTRA[name](cupy, *operands)
        assert patch.calls == {name.strip(): 1}
        SPECTRA[name](cupy, *(each[0, 0] for each in operands))
        SPECTRA[name](cupy, *(each[0] for each in operands))
        if dtype == "d":
            large = 513 if name.startswith("eig") else 81
            SPECTRA[name](cupy, *(np.zeros((8, large, large)).view(cupy.ndarray) for _ in range(3)))
    close(found, expected, 1e-4 if dtype in "fF" else 1e-11)
    assert patch.kept == {(name.strip(), "arguments"): 3 if dtype == "d" else 2}


def test_stacks_are_served_from_their_sizes_on(cupy):
    _, p, _ = arrays(cupy, "d", 8)  # as much work as order 10
    with patch_cupy(backend="cpu", thresholds={"eigh": 9, "svd": 11}) as patch:
        cupy.linalg.eigh(p)
        cupy.linalg.eigvalsh(p)
        cupy.linalg.svd(p)
        assert patch.thresholds["eigvalsh"] == 256
        # the last two wait for info, and CuPy's do not
        assert [patch.thresholds[name] for name in ("cholesky", "lu_factor", "inv", "solve")] == [
            128,
            128,
            1024,
            1024,
        ]
    assert patch.calls == {"eigh": 1} and patch.kept == {("eigvalsh", "small"): 1, ("svd", "small"): 1}


@pytest.mark.parametrize("name", ["cholesky", "inv"])
def test_results_are_by_rows_where_cupys_are(cupy, name):
    _, p, _ = arrays(cupy, "D")
    with taken():
        assert getattr(cupy.linalg, name)(p).flags.c_contiguous
        assert cupy.linalg.inv(p.T).flags.f_contiguous


def test_a_singular_matrix_is_no_error(cupy):
    a = np.ones((3, 3)).view(cupy.ndarray)
    with taken() as patch, np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("error")
        assert not np.isfinite(cupy.linalg.solve(a, a)).all()
        assert not np.isfinite(cupy.linalg.inv(a)).all()
    assert patch.calls == {"solve": 1, "inv": 1}


def test_what_is_not_served_says_why(cupy, monkeypatch):
    a, _, b = arrays(cupy, "d")
    with patch_cupy(backend="cpu", thresholds={"cholesky": 0, "inv": 100}) as patch:
        cupy.linalg.inv(a)
        with pytest.raises(np.linalg.LinAlgError):
            cupy.linalg.cholesky(a[:3])
        scipys().solve_triangular(a, b, check_finite=True)
        monkeypatch.setattr(sys.modules["cupyx"], "geterr", lambda: {"linalg": "raise"})
        cupy.linalg.cholesky(np.eye(5).view(cupy.ndarray))
    assert patch.kept == {("inv", "small"): 1, ("cholesky", "arguments"): 2, ("solve_triangular", "small"): 1}
    monkeypatch.setattr(sys.modules["cupyx"], "geterr", lambda: {"linalg": "ignore"})
    with taken() as patch:
        scipys().solve_triangular(a, b, check_finite=True)
    assert patch.kept == {("solve_triangular", "refused"): 1}


def test_products_in_tensor_mode(cupy):
    a, _, b = arrays(cupy, "d")
    stack = np.ones((2, 5, 5)).view(cupy.ndarray)
    with taken(thresholds=None) as patch:
        assert not patch.multiplies and patch.thresholds["matmul"] == np.inf
        a @ b
        cupy.matmul(a, b)
        assert patch.kept == {("matmul", "small"): 1}
    with set_math_mode("tensor"):
        patch = patch_cupy(backend="cpu", thresholds={"matmul": 4, "dot": 0})
    close(a @ b, np.asarray(a) @ np.asarray(b), 1e-12)
    close(stack @ b, np.asarray(stack) @ np.asarray(b), 1e-12)
    close(cupy.dot(a, b), np.asarray(a) @ np.asarray(b), 1e-12)
    a[:2, :2] @ b[:2]
    cupy.dot(stack, b)
    assert patch.calls == {"matmul": 2, "dot": 1}
    assert patch.kept == {("matmul", "small"): 1, ("dot", "arguments"): 1}
    assert type(a) is cupy.ndarray and type(a @ b) is cupy.ndarray
    patch.undo()
    a @ b
    assert patch.calls["matmul"] == 3


def test_patches_nest(cupy):
    a = np.eye(3).view(cupy.ndarray)
    outer, inner = taken(), taken(thresholds=100)
    cupy.linalg.inv(a)
    assert inner.kept == {("inv", "small"): 1}
    inner.undo()
    cupy.linalg.inv(a)
    assert outer.calls == {"inv": 1}


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"backend": "sim"}, ValueError, "patch_cupy: backend='sim' is none of auto, cuda"),
        ({"thresholds": {"eig": 1}}, ValueError, "patch_cupy: thresholds names eig; known: cholesky"),
        ({"thresholds": -1}, ValueError, "patch_cupy: thresholds has -1"),
    ],
)
def test_wrong_options(cupy, options, error, words):
    with pytest.raises(error, match=words):
        patch_cupy(**{"backend": "cpu", **options})


def test_a_backend_of_the_environment_that_serves_no_arrays(cupy, monkeypatch):
    monkeypatch.setenv("PYBLASGPU_BACKEND", "numba")
    with pytest.raises(ValueError, match="patch_cupy: backend 'numba' serves no arrays of CuPy's"):
        patch_cupy()


def test_without_cupy(monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", None)
    with pytest.raises(ImportError, match="patch_cupy needs CuPy"):
        pyblasgpu.patch_cupy()
