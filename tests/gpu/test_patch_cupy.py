"""patch_cupy on a card: results are CuPy's, in its order, and nothing is left behind."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import pyblasgpu

cp = pytest.importorskip("cupy")
cupyx = pytest.importorskip("cupyx")
scipys = pytest.importorskip("cupyx.scipy.linalg")


@pytest.fixture(autouse=True)
def nothing_is_left_behind() -> Iterator[None]:
    before, own = cp.linalg.solve, vars(cp.ndarray).get("__matmul__")
    yield
    pyblasgpu.unpatch_cupy()
    assert cp.linalg.solve is before and vars(cp.ndarray).get("__matmul__") is own


CALLS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "cholesky": lambda a, p, b: cp.linalg.cholesky(p),
    "solve": lambda a, p, b: cp.linalg.solve(a, b),
    "solve ": lambda a, p, b: cp.linalg.solve(a, b[:, 0]),
    "inv": lambda a, p, b: cp.linalg.inv(a),
    "inv ": lambda a, p, b: cp.linalg.inv(a.T),
    "det": lambda a, p, b: cp.linalg.det(a / 8),
    "qr": lambda a, p, b: cp.linalg.qr(b),
    "qr ": lambda a, p, b: cp.linalg.qr(a, "complete"),
    "qr  ": lambda a, p, b: cp.linalg.qr(b, mode="r"),
    "slogdet": lambda a, p, b: cp.linalg.slogdet(a),
    "solve_triangular": lambda a, p, b: scipys.solve_triangular(p, b, lower=True),
    "solve_triangular ": lambda a, p, b: scipys.solve_triangular(p, b[:, 0], 2, unit_diagonal=True),
    "lu_factor": lambda a, p, b: scipys.lu_factor(a),
    "lu_solve": lambda a, p, b: scipys.lu_solve(scipys.lu_factor(a), b),
    "lu": lambda a, p, b: scipys.lu(a),
}


def operands(dtype: str, *shape: int) -> tuple[Any, Any, Any]:
    rng, n = np.random.default_rng(4), shape[-1]
    a = rng.standard_normal((*shape, n)) + (1j * rng.standard_normal((*shape, n)) if dtype in "FD" else 0)
    p = a @ a.conj().swapaxes(-1, -2) / n + 2 * np.eye(n)
    b = rng.standard_normal((*shape, 3))
    return tuple(cp.asarray(x.astype(dtype)) for x in (a + n * np.eye(n), p, b))


def close(found: Any, expected: Any, dtype: str) -> None:
    limit = 1e-3 if dtype in "fF" else 1e-10
    pairs = zip(found, expected, strict=True) if isinstance(expected, tuple) else [(found, expected)]
    for one, other in pairs:
        assert type(one) is type(other) and one.dtype == other.dtype
        np.testing.assert_allclose(cp.asnumpy(one), cp.asnumpy(other), limit, limit)


@pytest.mark.parametrize("dtype", "fdFD")
@pytest.mark.parametrize("name", CALLS)
def test_results_are_cupys(name: str, dtype: str) -> None:
    arrays = operands(dtype, 150)
    expected = CALLS[name](*arrays)
    with pyblasgpu.patch_cupy(thresholds=0) as patch:
        found = CALLS[name](*arrays)
    assert patch.calls[name.strip()] == 1 and not patch.kept
    if name.startswith("qr"):  # rows of R have either sign
        found, expected = (tuple(map(abs, x)) if isinstance(x, tuple) else abs(x) for x in (found, expected))
    close(found, expected, dtype)
    if name.strip() in ("cholesky", "inv"):
        assert found.flags.c_contiguous == expected.flags.c_contiguous


@pytest.mark.parametrize("name", ["cholesky", "solve", "inv", "slogdet", "qr"])
def test_stacks(name: str) -> None:
    arrays = operands("d", 4, 40)
    expected = CALLS[name](*arrays)
    with pyblasgpu.patch_cupy(thresholds=0) as patch:
        found = CALLS[name](*arrays)
    if name == "qr":
        found, expected = (tuple(map(abs, x)) for x in (found, expected))
    close(found, expected, "d")
    assert patch.calls == {name: 1}


SPECTRA: dict[str, Callable[[Any, Any, Any], Any]] = {
    "eigh": lambda a, p, b: cp.linalg.eigh(p, "U"),
    "eigvalsh": lambda a, p, b: cp.linalg.eigvalsh(p),
    "svd": lambda a, p, b: cp.linalg.svd(b),
    "svd ": lambda a, p, b: cp.linalg.svd(a, compute_uv=False),
    "svd, by pinv": lambda a, p, b: cp.linalg.pinv(b),
}


@pytest.mark.parametrize("dtype", "fdFD")
@pytest.mark.parametrize("name", SPECTRA)
def test_spectra_of_stacks_are_cupys(name: str, dtype: str) -> None:
    """Vectors are compared by their products with the values."""
    arrays = operands(dtype, 300, 24)
    results = []
    expected = SPECTRA[name](*arrays)
    with pyblasgpu.patch_cupy(thresholds=0) as patch:
        found = SPECTRA[name](*arrays)
    products = {"matmul": 1} if "pinv" in name else {}  # which CuPy's function calls itself
    assert patch.calls == {name.split(",")[0].strip(): 1, **products} and not patch.kept
    assert type(found) is type(expected)
    for each in (found, expected):
        if name in ("eigh", "svd"):
            u, values, vh = each if name == "svd" else (each[1], each[0], each[1].conj().swapaxes(-1, -2))
            k = values.shape[-1]
            each = values, (u[..., :k] * values[..., None, :]) @ vh[..., :k, :]
        results.append(each)
    close(results[0], results[1], dtype)


def test_sizes_and_checks() -> None:
    small, large = operands("d", 50)[1], operands("d", 1500)[1]
    with pyblasgpu.patch_cupy() as patch:
        cp.linalg.cholesky(small)
        cp.linalg.cholesky(large)
        with cupyx.errstate(linalg="raise"), pytest.raises(np.linalg.LinAlgError):
            cp.linalg.cholesky(-large)
    assert patch.calls == {"cholesky": 1}
    assert patch.kept == {("cholesky", "small"): 1, ("cholesky", "arguments"): 1}


@pytest.mark.parametrize("dtype", "fd")
def test_products_on_tensor_cores(dtype: str) -> None:
    a, p, _ = operands(dtype, 2048)
    expected = a @ p
    with pyblasgpu.set_math_mode("tensor"):
        patch = pyblasgpu.patch_cupy()
    found = a @ p, cp.matmul(a, p), cp.dot(a, p)
    patch.undo()
    assert patch.calls == {"matmul": 2, "dot": 1}
    for each in found:
        limit = 2048 * float(np.finfo(dtype).eps) * float(abs(expected).max())
        np.testing.assert_allclose(cp.asnumpy(each), cp.asnumpy(expected), 0, limit)
