"""L D L^H factors of `lapack`: bounds, panels, pivots, singular matrices in a stack, refusals."""

from __future__ import annotations

import fake_device
import fake_kernels
import numpy as np
import pytest
import scipy.linalg
import scipy.linalg.lapack as scipys
from ldl_cases import check_factors, special, symmetric

from pyblasgpu import lapack, linalg
from pyblasgpu.gpu.device import known, stand_in
from pyblasgpu.operands import Operand
from pyblasgpu.routines.lapack import sytrf, sytrs
from pyblasgpu.types import DTYPES, Uplo


@pytest.fixture
def kernels(fake, monkeypatch):
    """The package's own launch lists on a fake device; NumPy computes what their kernels do."""
    return fake_kernels.install_below(monkeypatch)


@pytest.fixture(params=["host", "device"])
def put(request, kernels, monkeypatch):
    monkeypatch.setenv("PYBLASGPU_BACKEND", "cpu")
    return np.asarray if request.param == "host" else lambda array: fake_device.Array(np.array(array))


def fetched(*results):
    return [each.host if isinstance(each, fake_device.Array) else np.asarray(each) for each in results]


def named(letter: str, stem: str, hermitian: bool):
    return getattr(lapack, letter + (stem.replace("sy", "he") if hermitian else stem))


@pytest.mark.parametrize("letter, hermitian", [("d", False), ("z", True), ("z", False)])
@pytest.mark.parametrize("lower", [0, 1])
def test_panels_of_any_size(put, letter, hermitian, lower):
    """Factors of several panels, pivots of two columns across them, and solutions from them."""
    for shape, seed in (((131,), 0), ((2, 65), 1)):
        a = symmetric(letter, *shape, hermitian=hermitian, seed=seed)
        ldu, ipiv, info = named(letter, "sytrf", hermitian)(put(a), lower)
        ldu, piv, number = fetched(ldu, ipiv, info)
        check_factors(a, ldu, piv, bool(lower), hermitian)
        run = getattr(scipys, letter + ("hetrf" if hermitian else "sytrf"))
        matrices = a.reshape(-1, *a.shape[-2:])
        np.testing.assert_array_equal(
            piv.reshape(-1, a.shape[-1]), [run(each, lower)[1] for each in matrices]
        )
        assert not number.any()
        b = symmetric(letter, *shape, seed=9)[..., :3]
        x, _ = named(letter, "sytrs", hermitian)(put(ldu), ipiv, put(b), lower)
        np.testing.assert_allclose(a @ fetched(x)[0], b, rtol=0, atol=1e-8)


@pytest.mark.parametrize("hermitian", [False, True])
def test_lazily_conjugated_factors(kernels, hermitian):
    a = symmetric("z", 20, hermitian=hermitian)
    ldu, ipiv, _ = named("z", "sytrf", hermitian)(a, 1)
    piv, b = np.zeros((20, 1), complex), symmetric("z", 20, seed=9)[:, :3].copy()
    piv.view(np.int32)[:, 0] = ipiv
    expected = np.linalg.solve(a.conj(), b)
    operands = [fake_kernels.operand(each, DTYPES["z"]) for each in (piv, ldu, b)]
    operands[1] = operands[1]._replace(conj=True)
    launches = sytrs.launch_list(*operands, uplo=Uplo.LOWER, hermitian=hermitian)
    launches.run([each.pointer for each in operands], 1.0, stream=0)
    np.testing.assert_allclose(b, expected, atol=1e-8)


def test_many_matrices_are_factored_some_at_a_time(kernels, monkeypatch):
    """For the sake of memory; a panel has one block then."""
    monkeypatch.setattr(sytrf, "MOST_MEMORY", 0)
    a = np.tile(symmetric("d", 65), (140, 1, 1))
    ldu, ipiv, _ = lapack.dsytrf(fake_device.Array(a.copy()), 1)
    grids = [grid[2] for name, grid, _ in kernels.launches if name == "sytrf_panel"]
    assert grids == [132, 132, 8, 8]
    check_factors(a, *fetched(ldu, ipiv), True, False)


def test_a_stack_with_singular_matrices(put):
    """Solutions of the others; where D is singular, b stays."""
    a = np.stack([symmetric("d", 6), np.zeros((6, 6)), 2 * np.eye(6)])
    b = np.arange(18.0).reshape(3, 6, 1)
    udut, ipiv, x, info = lapack.dsysv(put(a), put(b), lower=1)
    _, _, x, number = fetched(udut, ipiv, x, info)
    assert number.tolist() == [0, 1, 0]
    np.testing.assert_array_equal(x[1], b[1])
    np.testing.assert_allclose(a[[0, 2]] @ x[[0, 2]], b[[0, 2]], atol=1e-12)


@pytest.mark.parametrize("letter", "sd")
def test_special_matrices_are_lapacks(monkeypatch, letter):
    monkeypatch.setenv("PYBLASGPU_BACKEND", "cpu")
    a = special(letter)
    for lower in (0, 1):
        ldu, ipiv, info = lapack.sytrf(a, lower)
        check_factors(a, ldu, ipiv, bool(lower), False)
        assert info.tolist() == [getattr(scipys, f"{letter}sytrf")(each, lower)[2] for each in a]


def test_factors_stay_in_place(put):
    a = np.asfortranarray(symmetric("d", 7))
    matrix = put(a.copy(order="F"))
    ldu, _, _ = lapack.dsytrf(matrix, overwrite_a=1)
    assert ldu is matrix
    np.testing.assert_array_equal(np.tril(fetched(ldu)[0], -1), np.tril(a, -1))


@pytest.mark.parametrize("shape", [(0, 0), (0, 3, 3), (2, 0, 0)])
def test_empty_ones(put, shape):
    ldu, ipiv, info = lapack.dsytrf(put(np.ones(shape)))
    assert tuple(ldu.shape) == shape and tuple(ipiv.shape) == shape[:-1]
    assert not fetched(info)[0].any()
    assert tuple(lapack.dsytrs(ldu, ipiv, put(np.ones((*shape[:-1], 2))))[0].shape) == (*shape[:-1], 2)


def test_refusals():
    a, b = np.eye(3), np.ones((3, 2))
    for wrong, message in (
        (lambda: lapack.dsytrf(np.ones((2, 3))), r"dsytrf: a has shape \(2, 3\); a square matrix"),
        (lambda: lapack.dsytrf(a, lwork=2), "dsytrf: lwork=2 is less than the order, 3"),
        (lambda: lapack.dsytrf(a, lower=2), "dsytrf: lower=2"),
        (lambda: lapack.dsytrs(a, [1, 2, 4], b), "dsytrs: ipiv holds 1 ... 4; rows are 1 ... 3"),
        (lambda: lapack.dsytrs(a, [0, 1, 2], b), "dsytrs: ipiv holds 0 ... 2; rows are 1 ... 3"),
        (lambda: lapack.dsytrs(a, [1, 2], b), r"dsytrs: ipiv has shape \(2,\), and the matrix is of order 3"),
        (lambda: lapack.dsytrs(a, [1, 2, 3], np.ones((2, 2))), r"dsytrs: a is of order 3 and b has shape"),
        (lambda: lapack.dsysv(a, b, lwork=1), "dsysv: lwork=1 is less than the order, 3"),
        (lambda: lapack.zhetrf_lwork(-1), "zhetrf_lwork: n=-1 is negative"),
    ):
        with pytest.raises(ValueError, match=message):
            wrong()
    with pytest.raises(TypeError, match="dsytrs: ipiv has dtype float64"):
        lapack.dsytrs(a, [1.0, 2, 3], b)
    assert lapack.dsytrf(a, lwork=lapack.dsytrf_lwork(3))[2] == 0  # as SciPy takes it
    assert lapack.dsytrf_lwork(50) == scipys.dsytrf_lwork(50)
    assert lapack.zhesv_lwork(50, 1) == scipys.zhesv_lwork(50, 1)


def test_orders_without_a_kernel(kernels):
    """A card with little shared memory solves smaller systems; the error names the largest one."""
    ordinal = stand_in(known("h200")).ordinal
    n = 60_000
    piv, a, b = (Operand(1 << 40, n, cols, 1, n, DTYPES["s"], device=ordinal) for cols in (1, n, 2))
    with pytest.raises(NotImplementedError, match="sytrs: a is of order 60000; systems are solved"):
        sytrs.launch_list(piv, a, b, uplo=Uplo.LOWER)


@pytest.mark.parametrize("letter, hermitian", [("d", False), ("z", True), ("z", False)])
@pytest.mark.parametrize("lower", [0, 1])
def test_rook_pivots(put, letter, hermitian, lower):
    """Pivots that interchange both of their rows, small elements of L; solutions and inverses from them."""
    for shape in ((201,), (2, 21)):
        a = symmetric(letter, *shape, hermitian=hermitian)
        a[..., range(shape[-1]), range(shape[-1])] *= 0.01
        ldu, ipiv, info = named(letter, "sytrf", hermitian)(put(a), lower, rook=1)
        factors, piv, number = fetched(ldu, ipiv, info)
        check_factors(a, factors, piv, bool(lower), hermitian, rook=True)
        pairs = (piv < 0) & (abs(piv) != np.arange(1, shape[-1] + 1))
        assert (pairs[..., 1:] & pairs[..., :-1]).any() and not number.any()
        b = symmetric(letter, *shape, seed=9)[..., :3]
        x, _ = named(letter, "sytrs", hermitian)(ldu, ipiv, put(b), lower, rook=1)
        np.testing.assert_allclose(a @ fetched(x)[0], b, rtol=0, atol=1e-8)
        *_, x, info = named(letter, "sysv", hermitian)(put(a), put(b), lower=lower, rook=True)
        np.testing.assert_allclose(a @ fetched(x)[0], b, rtol=0, atol=1e-8)
        inverse, info = fetched(*named(letter, "sytri", hermitian)(ldu, ipiv, lower, rook=1))
        kept = np.tri(shape[-1], dtype=bool)
        kept = kept if lower else kept.T
        np.testing.assert_allclose(inverse[..., kept], np.linalg.inv(a)[..., kept], rtol=0, atol=1e-8)
        np.testing.assert_array_equal(inverse[..., ~kept], a[..., ~kept])
        assert not info.any()


@pytest.mark.parametrize("lower, pivots", [(1, [-1, -3, 3, -4, -6, 6]), (0, [1, 1, -1, -3, -5, -4])])
def test_rook_pivots_are_lapacks(put, lower, pivots):
    """Those of OpenBLAS's dsytf2_rook."""
    a = np.random.default_rng(0).standard_normal((6, 6))
    a = a + a.T
    np.fill_diagonal(a, 0.01)
    _, ipiv, _ = lapack.sytrf(put(a), lower, rook=1)
    assert fetched(ipiv)[0].tolist() == pivots


def test_singular_matrices_by_rook_pivots(put):
    """The first zero block is named, inverses stay away, and Bunch and Kaufman's large elements of L go."""
    a = np.diag([0.0, 1, 2, 0, 3])
    for lower, number in ((1, 1), (0, 4)):
        ldu, ipiv, info = lapack.sytrf(put(a), lower, rook=1)
        assert int(fetched(info)[0]) == number
        inverse, info = fetched(*lapack.sytri(ldu, ipiv, lower, rook=1))
        assert int(info) == number and np.isfinite(inverse).all()
    low = 1e-8
    a = np.array([[1, low, low, 0], [low, 0, 0, low], [low, 0, 0, 1], [0, low, 1, 1]])
    largest = [abs(np.tril(fetched(lapack.sytrf(put(a), 1, rook=rook)[0])[0], -1)).max() for rook in (0, 1)]
    assert largest[0] > 1e7 and largest[1] <= 2.79


@pytest.mark.parametrize("letter, hermitian", [("d", True), ("z", True), ("z", False)])
@pytest.mark.parametrize("lower", [True, False])
def test_matrices_of_ldl(put, letter, hermitian, lower):
    """SciPy's factors, D and permutation, of one matrix and of a stack."""
    for shape in ((1,), (9,), (2, 7)):
        a = symmetric(letter, *shape, hermitian=hermitian)
        lu, d, perm = fetched(*linalg.ldl(put(a), lower, hermitian))
        n = shape[-1]
        expected = [scipy.linalg.ldl(each, lower, hermitian) for each in a.reshape(-1, n, n)]
        for found, results in zip((lu, d, perm), zip(*expected, strict=True), strict=True):
            np.testing.assert_allclose(found.reshape(-1, *results[0].shape), results, atol=1e-10)
            assert found.dtype == results[0].dtype


@pytest.mark.parametrize("letter, hermitian", [("d", False), ("z", True)])
@pytest.mark.parametrize("lower", [True, False])
def test_inertia(put, letter, hermitian, lower):
    """The signs of the eigenvalues, of pivots of both orders; zeros where D has them."""
    a = np.stack([*symmetric(letter, 6, 9, hermitian=hermitian), np.zeros((9, 9)), np.diag(range(-2, 7))])
    read = (np.tril if lower else np.triu)(a)
    found = np.stack(fetched(*linalg.inertia(put(read), lower)))
    values = np.linalg.eigvalsh(a)
    signs = [values > 1e-12, values < -1e-12, abs(values) < 1e-12]
    np.testing.assert_array_equal(found, [sign.sum(-1) for sign in signs])
    assert [int(each) for each in fetched(*linalg.inertia(put(read[-1]), lower))] == [6, 2, 1]


def test_ldl_of_special_arguments(put):
    for shape in ((0, 0), (2, 0, 0)):
        lu, d, perm = linalg.ldl(put(np.ones(shape)))
        assert tuple(lu.shape) == tuple(d.shape) == shape and tuple(perm.shape) == shape[:-1]
        counts = fetched(*linalg.inertia(put(np.ones(shape))))
        assert all(each.shape == shape[:-2] and not each.any() for each in counts)
    with pytest.raises(ValueError, match=r"ldl: Expected square matrix, got .* of shape \(2, 3\)"):
        linalg.ldl(put(np.ones((2, 3))))
    with pytest.raises(ValueError, match=r"inertia: Expected square matrix"):
        linalg.inertia(put(np.ones((2, 3))))
    with pytest.raises(ValueError, match="infs or NaNs"):
        linalg.ldl(put(np.full((2, 2), np.nan)), check_finite=True)
    with pytest.raises(ValueError, match="ldl: lower=2"):
        linalg.ldl(put(np.eye(2)), 2)


def test_inverses_of_singular_matrices(put):
    """The inverses of the others; where D is singular, the factors stay."""
    a = np.stack([symmetric("d", 5), np.zeros((5, 5)), np.diag([1.0, 2, 0, 4, 0])])
    for lower in (0, 1):
        ldu, ipiv, info = lapack.dsytrf(put(a), lower)
        inverse, number = lapack.dsytri(ldu, ipiv, lower)
        factors, inverse, number = fetched(ldu, inverse, number)
        assert number.tolist() == ([0, 1, 3] if lower else [0, 5, 5]) == fetched(info)[0].tolist()
        np.testing.assert_array_equal(inverse[1:], factors[1:])
        kept = np.tri(5, dtype=bool) if lower else np.tri(5, dtype=bool).T
        np.testing.assert_allclose(inverse[0][kept], np.linalg.inv(a[0])[kept], atol=1e-10)
