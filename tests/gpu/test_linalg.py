"""linalg on CuPy arrays and PyTorch tensors: products, factors, solves; patch_scipy on host arrays."""

from __future__ import annotations

import warnings
from itertools import product
from typing import Any

import numpy as np
import pytest
import scipy.linalg
from exact_determinants import check_slogdet, systems, values

import pyblasgpu
from pyblasgpu import linalg

cupy = pytest.importorskip("cupy")


class CuPy:
    array = staticmethod(lambda x: cupy.asarray(x))
    host = staticmethod(lambda x: cupy.asnumpy(x))

    @staticmethod
    def kind():
        return cupy.ndarray


class Torch:
    @staticmethod
    def array(x):
        return pytest.importorskip("torch").from_numpy(np.array(x)).cuda()

    @staticmethod
    def host(x):
        return x.cpu().numpy()

    @staticmethod
    def kind():
        return pytest.importorskip("torch").Tensor


@pytest.fixture(params=[CuPy, Torch], ids=["cupy", "torch"])
def library(request):
    request.param.kind()
    return request.param


def matrix(shape, dtype, seed=0):
    rng = np.random.default_rng(seed)
    values = rng.standard_normal(shape)
    return (values + 1j * rng.standard_normal(shape) if np.dtype(dtype).kind == "c" else values).astype(dtype)


def definite(shape, dtype):
    a = matrix(shape, dtype)
    return (a @ a.conj().swapaxes(-1, -2) + shape[-1] * np.eye(shape[-1])).astype(dtype)


def check(library, actual, expected, factor=100.0):
    assert isinstance(actual, library.kind())
    got = library.host(actual)
    tolerance = factor * max(expected.shape, default=1) * np.finfo(expected.dtype).eps
    scale = max(1.0, float(np.abs(expected).max(initial=0)))
    np.testing.assert_allclose(got, expected, 0, tolerance * scale, strict=True)


#: Functions of a matrix and right-hand sides, whose repeated calls are chains of what is kept.
REPEATED = {
    "cholesky": lambda a, b: linalg.cholesky(a, lower=True),
    "cho_solve": lambda a, b: linalg.cho_solve(linalg.cho_factor(a), b),
    "solve": lambda a, b: linalg.solve(a, b),
    "vector": lambda a, b: linalg.solve(a, b[0, :, 0]),
    "pos": lambda a, b: linalg.solve(a, b, assume_a="pos"),
    "triangular": lambda a, b: linalg.solve(a, b, assume_a="upper triangular"),
    "inv": lambda a, b: linalg.inv(a),
    "inv pos": lambda a, b: linalg.inv(a, assume_a="pos"),
    "det": lambda a, b: linalg.det(a),
    "slogdet": lambda a, b: linalg.slogdet(a)[1],
    "lu_solve": lambda a, b: linalg.lu_solve(linalg.lu_factor(a), b),
}


@pytest.mark.parametrize("shape", [(6, 6), (300, 300), (40, 5, 5), (3, 70, 70)], ids=str)
@pytest.mark.parametrize("dtype", "fdFD")
@pytest.mark.parametrize("name", REPEATED)
def test_repeated_calls_have_the_same_bits(library, name, dtype, shape):
    """On other arrays of the same layout too; the arrays that are passed stay."""
    function = REPEATED[name]
    a, b = definite(shape, dtype), matrix((1, shape[-1], 3), dtype)
    b = b if len(shape) > 2 or name == "vector" else b[0]
    first, *others = (
        (library.host(function(*given)), [library.host(each) for each in given])
        for given in ([library.array(a), library.array(b)] for _ in range(3))
    )
    for result, given in (first, *others):
        np.testing.assert_array_equal(result, first[0])
        for one, other in zip(given, (a, b), strict=True):
            np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("count", [1, 5000])
def test_a_repeated_call_raises_what_the_first_one_would(library, count):
    """By the numbers that one small transfer reads, of large stacks too."""
    good, bad = definite((count, 4, 4), "d"), definite((count, 4, 4), "d")
    bad[-1, 1] = bad[-1, :, 1] = 0
    good, bad = library.array(good), library.array(bad)
    for function, text in (
        (linalg.cholesky, "2-th leading minor"),
        (linalg.inv, rf"slice\(s\) \[{count - 1}\]"),
    ):
        for _ in range(2):
            function(good)
            with pytest.raises(np.linalg.LinAlgError, match=text):
                function(bad)


@pytest.mark.parametrize("dtype", "dF")
def test_products(library, dtype):
    a, b, v = matrix((3, 40, 50), dtype), matrix((50, 30), dtype, 1), matrix(50, dtype, 2)
    x, y, w = map(library.array, (a, b, v))
    check(library, linalg.matmul(x, y), a @ b)
    check(library, linalg.dot(x, y), np.dot(a, b))
    check(library, linalg.dot(x, w), np.dot(a, v))
    check(library, linalg.inner(x, x[0]), np.inner(a, a[0]))
    check(library, linalg.outer(w, w), np.outer(v, v))
    check(library, linalg.vdot(w, w), np.asarray(np.vdot(v, v)))
    check(library, linalg.tensordot(x, x, axes=([0, 2], [0, 2])), np.tensordot(a, a, axes=([0, 2], [0, 2])))
    check(library, linalg.einsum("bij,jk->kbi", x, y), np.einsum("bij,jk->kbi", a, b))
    check(library, linalg.einsum("bij,bij->j", x, x), np.einsum("bij,bij->j", a, a))
    check(library, linalg.matvec(x, w), a @ v)
    check(library, linalg.vecmat(w, y), v.conj() @ b)
    check(library, linalg.vecdot(x, x[1]), np.einsum("bij,ij->bi", a.conj(), a[1]))
    check(library, linalg.multi_dot([x[0], y, y.T, w]), a[0] @ b @ b.T @ v)
    check(library, linalg.matrix_power(x[:, :, :40], 3), np.linalg.matrix_power(a[:, :, :40], 3))
    check(library, linalg.matrix_power(x[:, :, :40], 0), np.linalg.matrix_power(a[:, :, :40], 0))


@pytest.mark.parametrize("shape", [(1, 1), (33, 33), (300, 300), (5, 60, 60)], ids=str)
@pytest.mark.parametrize("lower", [False, True])
@pytest.mark.parametrize("dtype", "fdFD")
def test_cholesky(library, dtype, lower, shape):
    a = definite(shape, dtype)
    kept = np.tril if lower else np.triu
    read = np.where(kept(np.ones(shape)) != 0, a, np.nan).astype(dtype)
    factor = linalg.cholesky(library.array(read), lower=lower)
    adjoint = np.linalg.cholesky(a)
    check(library, factor, adjoint if lower else adjoint.conj().swapaxes(-1, -2))
    b = matrix((*shape[:-1], 3), dtype, 1)
    pair = linalg.cho_factor(library.array(read), lower)
    check(library, linalg.cho_solve(pair, library.array(b)), np.linalg.solve(a, b))
    check(
        library,
        linalg.solve(library.array(read), library.array(b), lower, assume_a="pos"),
        np.linalg.solve(a, b),
    )
    vector = b[..., 0] if b.ndim == 2 else b[0, :, 0]
    check(
        library, linalg.cho_solve(pair, library.array(vector)), np.linalg.solve(a, vector[..., None])[..., 0]
    )


def test_not_positive_definite(library):
    a = definite((50, 50), "d")
    a[30, 30] = -1
    with pytest.raises(
        np.linalg.LinAlgError, match="31-th leading minor of the array is not positive definite"
    ):
        linalg.cholesky(library.array(a))
    with pytest.raises(np.linalg.LinAlgError, match=r"slice\(s\) \[0\]"):
        linalg.solve(library.array(a), library.array(a[0]), assume_a="pos")


@pytest.mark.parametrize("dtype", "fdFD")
@pytest.mark.parametrize(
    "shape",
    [(1, 1), (7, 7), (32, 32), (40, 40), (300, 300), (4, 50, 50), (5000, 4, 4), (2, 3, 31, 31)],
    ids=str,
)
def test_lu(library, shape, dtype):
    n = shape[-1]
    a, b = matrix(shape, dtype) + 2 * np.sqrt(n) * np.eye(n, dtype=dtype), matrix((n, 3), dtype, 1)
    x, y = library.array(a), library.array(b)
    expected = np.linalg.solve(a, np.broadcast_to(b, (*shape[:-1], 3)))
    check(library, linalg.solve(x, y), expected)
    factors, pivots = linalg.lu_factor(x)
    assert isinstance(pivots, library.kind())
    check(library, linalg.lu_solve((factors, pivots), y), expected)
    check(library, linalg.lu_solve((factors, pivots), y, trans=1), np.linalg.solve(a.swapaxes(-1, -2), b))
    check(library, linalg.inv(x), np.linalg.inv(a))
    sign, logarithm = linalg.slogdet(x)
    np.testing.assert_allclose(library.host(sign), np.linalg.slogdet(a)[0], atol=1e-3)
    np.testing.assert_allclose(library.host(logarithm), np.linalg.slogdet(a)[1], 1e-4)
    p, lower, upper = linalg.lu(x)
    rebuilt = library.host(p).astype(a.dtype) @ library.host(lower) @ library.host(upper)
    np.testing.assert_allclose(rebuilt, a, 0, 1e3 * n * np.finfo(dtype).eps)


@pytest.mark.parametrize("dtype", "fdFD")
def test_determinants_at_the_ends_of_the_range(library, dtype):
    ends = np.array([np.diag([x, 1]) for x in values(dtype)], dtype)
    for a in (*(systems(dtype, 20, n) for n in (1, 2, 4)), ends):
        sign, logarithm = linalg.slogdet(library.array(a))
        check_slogdet((library.host(sign), library.host(logarithm)), a)
    big = np.diag(np.array([1e200, 1e200, -1e-200, 1e-200]))
    np.testing.assert_allclose(library.host(linalg.det(library.array(big))), -1, 1e-12)


@pytest.mark.parametrize("dtype", "fdFD")
@pytest.mark.parametrize("shape", [(3, 3), (300, 300), (20_000, 4, 4), (2, 3, 70, 70)], ids=str)
def test_determinants(library, shape, dtype):
    """New ones, repeated, and in place of the matrices."""
    a = matrix(shape, dtype)
    expected = np.linalg.slogdet(a.astype(np.result_type(a, "d")))
    factor = 100 * shape[-1] * np.finfo(dtype).eps * np.linalg.cond(a.astype(np.result_type(a, "d")))
    product, error = expected[0] * np.exp(expected[1]), np.minimum(factor, 1)
    for overwrite in (False, False, True):
        x = library.array(a)
        sign, logarithm = map(library.host, linalg.slogdet(x))
        assert sign.dtype == dtype and logarithm.dtype == a.real.dtype and sign.shape == shape[:-2]
        assert (abs(sign - expected[0]) <= factor).all() and (abs(logarithm - expected[1]) <= factor).all()
        found = library.host(linalg.det(x, overwrite_a=overwrite))
        assert found.dtype == np.result_type(a, "d") and found.shape == shape[:-2]
        if shape[-1] < 100:
            assert (abs(found - product) <= error * abs(product)).all()


@pytest.mark.parametrize("dtype", "fdFD")
def test_determinants_of_what_is_not_finite(library, dtype):
    numbers = [np.inf, -np.inf, 0, 1]
    a = np.array([np.diag(pair) for pair in product(numbers, [*numbers, np.nan])], dtype)
    with np.errstate(all="ignore"):
        expected = np.linalg.slogdet(a)
        expected_det = np.linalg.det(a)
    for actual, each in zip(linalg.slogdet(library.array(a)), expected, strict=True):
        np.testing.assert_array_equal(library.host(actual), each)
    found = library.host(linalg.det(library.array(a)))
    if dtype in "fd":
        np.testing.assert_array_equal(found, expected_det)
    else:
        np.testing.assert_array_equal(np.isfinite(found), np.isfinite(expected_det))


@pytest.mark.parametrize("dtype", "fdFD")
@pytest.mark.parametrize("n", [2, 9, 40, 300])
def test_a_nan_makes_no_matrix_singular(library, dtype, n):
    for at in (0, n // 2, n - 1):
        a = np.eye(n, dtype=dtype)
        a[at, at] = np.nan
        assert np.isnan(library.host(linalg.slogdet(library.array(a))[1]))
        assert np.isnan(library.host(linalg.inv(library.array(a)))).any()


def test_singular(library):
    with pytest.raises(np.linalg.LinAlgError, match=r"slice\(s\) \[1\] are singular"):
        linalg.solve(library.array(np.stack([np.eye(20), np.ones((20, 20))])), library.array(np.ones(20)))
    assert float(linalg.det(library.array(np.ones((20, 20))))) == 0


@pytest.mark.parametrize("structure", ["upper triangular", "lower triangular", "diagonal", "sym", "her"])
def test_structures(library, structure):
    a = definite((60, 60), "D")
    full = {
        "upper triangular": np.triu(a),
        "lower triangular": np.tril(a),
        "diagonal": np.diag(np.diag(a)),
        "sym": np.triu(a) + np.triu(a, 1).T,
        "her": a,
    }[structure]
    b = matrix((60, 2), "D", 1)
    actual = linalg.solve(library.array(a), library.array(b), assume_a=structure)
    check(library, actual, np.linalg.solve(full, b))


def test_check_finite_is_asked_for(library):
    with pytest.raises(ValueError, match="infs or NaNs"):
        linalg.cholesky(library.array(np.full((4, 4), np.nan)), check_finite=True)


@pytest.mark.parametrize("n", [60, 700])
def test_residuals_of_solve(n):
    """Within the documented bounds, of a matrix whose columns nearly depend on each other."""
    rng = np.random.default_rng(n)
    a = rng.standard_normal((n, n)) @ (10.0 ** -np.linspace(0, 5, n)[:, None] * rng.standard_normal((n, n)))
    a, b = a.astype("f"), rng.standard_normal((n, 3)).astype("f")
    x = cupy.asnumpy(linalg.solve(cupy.asarray(a), cupy.asarray(b))).astype("d")
    p, lower, upper = (cupy.asnumpy(each).astype("d") for each in linalg.lu(cupy.asarray(a)))
    bound = 3 * n * np.finfo("f").eps / 2 * (p @ abs(lower) @ abs(upper) @ abs(x))
    assert (abs(a.astype("d") @ x - b) <= bound).all()


@pytest.mark.parametrize("n", [300, 1100])
def test_programs_of_scipys(n):
    a, b = definite((n, n), "d"), matrix((n, 4), "d")
    expected = scipy.linalg.cho_solve(scipy.linalg.cho_factor(a), b), scipy.linalg.solve(a, b)
    with pyblasgpu.patch_scipy(thresholds=0) as patch:
        assert patch.backend == "cuda"
        actual = scipy.linalg.cho_solve(scipy.linalg.cho_factor(a), b), scipy.linalg.solve(a, b)
        assert patch.calls == {"cho_factor": 1, "cho_solve": 1, "solve": 1}
        with pytest.raises(np.linalg.LinAlgError, match="1-th leading minor"):
            scipy.linalg.cholesky(-a)
    for ours, scipys in zip(actual, expected, strict=True):
        np.testing.assert_allclose(ours, scipys, 1e-9, 1e-9)


@pytest.mark.parametrize("shape", [(200, 200), (3, 40, 40)], ids=str)
@pytest.mark.parametrize("dtype", "dF")
def test_host_arrays(dtype, shape):
    a, spd, b = (
        matrix(shape, dtype) + 2 * np.eye(shape[-1], dtype=dtype),
        definite(shape, dtype),
        matrix(shape, dtype),
    )
    tolerance = 1e4 * shape[-1] * np.finfo(dtype).eps
    for actual, expected in [
        (linalg.solve(a, b, assume_a="gen"), np.linalg.solve(a, b)),
        (linalg.solve(spd, b, assume_a="pos"), np.linalg.solve(spd, b)),
        (linalg.inv(a), np.linalg.inv(a)),
        (linalg.inv(spd, assume_a="pos", lower=True), np.linalg.inv(spd)),
        (linalg.slogdet(spd)[1], np.linalg.slogdet(spd)[1]),
    ]:
        np.testing.assert_allclose(actual, expected, tolerance, tolerance * max(1, np.abs(expected).max()))


@pytest.mark.parametrize("order", "CF")
@pytest.mark.parametrize("shape", [(200, 200), (3, 40, 40)], ids=str)
@pytest.mark.parametrize("dtype", "dF")
def test_host_results_are_placed_as_the_originals(dtype, shape, order):
    """In new memory and in the arguments', of SciPy's functions and of NumPy's."""
    general = matrix(shape, dtype) + 14 * np.eye(shape[-1], dtype=dtype)
    a, spd, b = (
        x if order == "C" else np.ascontiguousarray(x.swapaxes(-1, -2)).swapaxes(-1, -2)
        for x in (general, definite(shape, dtype), matrix((*shape[:-1], 7), dtype))
    )
    calls: list[tuple[Any, str, list[Any], dict[str, Any]]] = [
        (scipy.linalg, "cholesky", [spd], {}),
        (scipy.linalg, "inv", [spd], {"assume_a": "pos"}),
        (scipy.linalg, "lu", [a], {}),
        *((scipy.linalg, "inv", [a], {"overwrite_a": flag}) for flag in (False, True)),
        (scipy.linalg, "det", [a / 14], {"overwrite_a": True}),
        (scipy.linalg, "solve", [a, b], {}),
        (scipy.linalg, "solve", [a, b], {"overwrite_a": True, "overwrite_b": True}),
        (scipy.linalg, "solve", [spd, b], {"overwrite_b": True}),
        (scipy.linalg, "solve_triangular", [np.tril(a), b], {"lower": True}),
        *((np.linalg, name, [spd], {}) for name in ("cholesky", "inv", "slogdet")),
        (np.linalg, "solve", [a, b], {}),
    ]

    def run(module: Any, name: str, arguments: list[Any], options: dict[str, Any]) -> list[Any]:
        copies = [each.copy("K") for each in arguments]
        results = getattr(module, name)(*copies, **options)
        results = results if isinstance(results, tuple) else (results,)
        shared = [np.shares_memory(x, y) for x in results for y in copies]
        return [results, [np.asarray(x).flags.c_contiguous for x in results], shared]

    expected = [run(*call) for call in calls]
    with pyblasgpu.patch_scipy(thresholds=0, numpy=True) as patch:
        actual = [run(*call) for call in calls]
    assert patch.backend == "cuda" and sum(patch.calls.values()) == len(calls)
    tolerance = 1e4 * shape[-1] * np.finfo(dtype).eps
    for call, (ours, *places), (originals, *others) in zip(calls, actual, expected, strict=True):
        assert places == others, call[1]
        for one, other in zip(ours, originals, strict=True):
            np.testing.assert_allclose(one, other, tolerance, tolerance * np.abs(other).max())


@pytest.mark.parametrize("structure", ["gen", "pos"])
def test_ill_conditioned_matrices_are_told(monkeypatch, structure):
    """Factors of host arrays are examined on the device; those of device arrays on request."""
    monkeypatch.setenv("PYBLASGPU_BACKEND", "cuda")
    q, _ = np.linalg.qr(np.random.default_rng(0).standard_normal((200, 200)))
    for smallest, warns in ((1e-5, False), (3e-17, True)):
        a = (q * np.geomspace(1, smallest, 200)) @ q.T
        a = (a + a.T) / 2 + (structure == "pos") * 1e-11 * np.eye(200)
        for on_device in (False, True):
            operand, b = (cupy.asarray(x) if on_device else x for x in (a, np.ones(200)))
            options: dict[str, Any] = {"check_finite": True} if on_device else {}
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                linalg.solve(operand, b, assume_a=structure, **options)
            warned = [each for each in caught if "ill-conditioned" in str(each.message)]
            assert bool(warned) == (warns and structure == "gen")
