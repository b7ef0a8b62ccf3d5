"""Eigenvalues, singular values and functions of them, of arrays on a device and of other libraries."""

from __future__ import annotations

from typing import Any

import fake_device
import numpy as np
import pytest
import scipy.linalg
from numpy.linalg import LinAlgError
from qr_cases import matrix_of
from spectra_cases import definite_of, eps_of, hermitian_of, host, mismatch, same, stack_of

from pyblasgpu import linalg
from pyblasgpu.api.linalg import eigen
from pyblasgpu.types import DTYPES


@pytest.fixture(autouse=True)
def on_the_cpu(monkeypatch):
    monkeypatch.setenv("PYBLASGPU_BACKEND", "cpu")


@pytest.mark.parametrize(("name", "arguments"), [("sqrtm", ()), ("logm", ()), ("funm", (np.sin,))])
def test_arrays_on_a_device_are_refused(fake, name, arguments):
    """By functions of general matrices."""
    a = fake_device.Array(np.eye(3, order="F"))
    with pytest.raises(NotImplementedError, match=f"^{name}: A is on a device, .* on the CPU alone"):
        getattr(linalg, name)(a, *arguments)


#: Functions of singular values, and options that make their results comparable.
OF_VALUES = [
    ("svdvals", {}), ("polar", {}), ("polar", {"side": "left"}), ("pinv", {"return_rank": True}),
    ("matrix_rank", {}), ("norm", {"ord": 2, "axis": (-2, -1)}), ("norm", {"ord": "nuc", "axis": (-2, -1)}),
    ("matrix_norm", {"ord": -2}), ("cond", {}), ("cond", {"p": -2}), ("svd", {"compute_uv": False}),
]  # fmt: skip


def called(name: str, a: Any, options: dict[str, Any]) -> list[Any]:
    found = getattr(linalg, name)(a, **options)
    return [host(each) for each in (found if isinstance(found, tuple) else (found,))]


@pytest.mark.parametrize("letter", DTYPES)
@pytest.mark.parametrize("shape", [(4, 4), (6, 3), (3, 6), (2, 5, 3), (1, 1)])
@pytest.mark.parametrize(("name", "options"), OF_VALUES, ids=str)
def test_functions_of_singular_values_on_a_device(card, letter, shape, name, options):
    a = stack_of(letter, *shape)
    for one, other in zip(called(name, fake_device.Array(a), options), called(name, a, options), strict=True):
        same(one, other, 1e4)


@pytest.mark.parametrize("letter", DTYPES)
@pytest.mark.parametrize(
    "shape", [(4, 4), (6, 3), (3, 6), (2, 5, 3), (2, 3, 5), (0, 3), (3, 0), (2, 0, 3), (0, 2, 3)]
)
@pytest.mark.parametrize("full", [True, False])
def test_singular_vectors_on_a_device(card, letter, shape, full):
    a = stack_of(letter, *shape)
    u, s, vh = map(host, linalg.svd(fake_device.Array(a), full_matrices=full))
    theirs = linalg.svd(a, full_matrices=full)
    same(s, theirs.S)
    k = min(shape[-2:])
    assert u.shape == theirs.U.shape and vh.shape == theirs.Vh.shape
    if a.size:
        assert mismatch(a, (u[..., :k] * s[..., None, :]) @ vh[..., :k, :]) <= 100 * eps_of(a)
    for gram in (u.swapaxes(-1, -2).conj() @ u, vh @ vh.swapaxes(-1, -2).conj()):
        assert np.abs(gram - np.eye(gram.shape[-1])).max(initial=0) <= 100 * eps_of(a)


@pytest.mark.parametrize("kind", ["random", "zero columns", "zeros"])
@pytest.mark.parametrize("shape", [(7, 4), (4, 7), (5, 5)])
def test_bases_on_a_device(card, kind, shape):
    a = matrix_of(kind, "d", *shape)
    for name in ("orth", "null_space"):
        ours, theirs = host(getattr(linalg, name)(fake_device.Array(a))), getattr(linalg, name)(a)
        assert ours.shape == theirs.shape
        same(ours @ ours.T, theirs @ theirs.T, 1e3)


@pytest.mark.parametrize("letter", DTYPES)
@pytest.mark.parametrize("shape", [(7, 3), (3, 7), (4, 4), (2, 7, 3)])
@pytest.mark.parametrize("columns", [0, 2])
@pytest.mark.parametrize("options", [{"lapack_driver": "gelsd"}, {"cond": 0.3}], ids=str)
def test_least_squares_by_singular_values_on_a_device(fake, letter, shape, columns, options):
    a, b = stack_of(letter, *shape), matrix_of("random", letter, shape[-2], max(columns, 1), seed=6)
    b = b if columns else b[:, 0]
    ours, theirs = linalg.lstsq(*map(fake_device.Array, (a, b)), **options), linalg.lstsq(a, b, **options)
    for one, other in zip(map(host, ours), theirs, strict=True):
        assert np.shape(one) == np.shape(other)
        if np.size(other):
            same(one, other, 1e4)


@pytest.mark.parametrize("letter", DTYPES)
@pytest.mark.parametrize("shape", [(3, 5, 5), (2, 2, 3, 3), (4, 6, 3), (4, 3, 6)])
@pytest.mark.parametrize("order", "CF")
def test_host_stacks_run_on_a_device(card, monkeypatch, letter, shape, order):
    """Where that is the backend and has kernels; SciPy is not called."""
    a = np.array(stack_of(letter, *shape), order=order)
    start = a.copy()
    expected = linalg.svd(a), linalg.svdvals(a), linalg.pinv(a)
    is_square = shape[-1] == shape[-2]
    hermitian = a + a.swapaxes(-1, -2).conj() if is_square else None
    values = linalg.eigvalsh(hermitian) if is_square else None
    monkeypatch.setenv("PYBLASGPU_BACKEND", "cuda")
    monkeypatch.setattr("pyblasgpu.api.linalg.standard.over_stacks", None)
    for full in (True, False):
        u, s, vh = linalg.svd(a, full_matrices=full)
        same(s, expected[0].S)
        k = min(shape[-2:])
        assert mismatch(a, (u[..., :k] * s[..., None, :]) @ vh[..., :k, :]) <= 100 * eps_of(a)
        assert type(u) is type(s) is type(vh) is np.ndarray
    same(linalg.svdvals(a), expected[1])
    same(linalg.pinv(a), expected[2], 1e4)
    np.testing.assert_array_equal(a, start)
    if hermitian is not None:
        w, v = linalg.eigh(hermitian)
        same(w, values)
        assert mismatch(hermitian @ v, v * w[..., None, :]) <= 100 * eps_of(a)
        same(linalg.eigvalsh(hermitian), values)


@pytest.mark.parametrize("letter", DTYPES)
@pytest.mark.parametrize(
    "subset", [{}, {"subset_by_index": (2, 5)}, {"subset_by_value": (-1.0, 2.5)}], ids=str
)
def test_one_host_matrix_runs_on_a_device(card, decide_by, monkeypatch, letter, subset):
    """From the order on from which others do; options that name LAPACK's routines stay with SciPy."""
    decide_by(host_min_order=dict.fromkeys("sdcz", 9))
    monkeypatch.delenv("PYBLASGPU_BACKEND")
    small, large = hermitian_of(letter, 8), hermitian_of(letter, 9)
    expected = scipy.linalg.eigvalsh(large, **subset)
    monkeypatch.setattr(eigen, "of_scipy", None)
    monkeypatch.setattr(eigen, "scipys_linalg", None)
    w, v = linalg.eigh(large, **subset)
    same(w, expected)
    assert mismatch(large @ v, v * w) <= 100 * eps_of(large) and type(v) is np.ndarray
    same(linalg.eigvalsh(large, **subset), w)
    with pytest.raises(TypeError):
        linalg.eigvalsh(small, **subset)


@pytest.mark.parametrize("name", ["eigvalsh", "svdvals"])
def test_other_host_arrays_stay_with_scipy(card, monkeypatch, name):
    """Single matrices, and stacks of larger ones than kernels have."""
    monkeypatch.setenv("PYBLASGPU_BACKEND", "cuda")
    for a in (hermitian_of("d", 7), hermitian_of("d", 2, 230), np.zeros((0, 3, 3))):
        theirs = getattr(np.linalg, name)(a)
        same(getattr(linalg, name)(a), theirs, 1e3)


#: Functions of large matrices of full rank, whose singular values have no kernels.
OF_FULL_RANK = ["pinv", "orth", "null_space", "matrix_rank"]


@pytest.mark.parametrize("name", OF_FULL_RANK)
@pytest.mark.parametrize("shape", [(300, 200), (200, 300), (210, 210)])
@pytest.mark.parametrize("letter", "dc")
def test_large_matrices_of_full_rank_on_a_device(fake, name, shape, letter):
    a = matrix_of("random", letter, *shape) + np.eye(*shape, dtype=DTYPES[letter].name) * 20
    ours, theirs = host(getattr(linalg, name)(fake_device.Array(a))), getattr(linalg, name)(a)
    if name in ("orth", "null_space"):
        assert ours.shape == theirs.shape
        ours, theirs = ours @ ours.conj().T, theirs @ theirs.conj().T
    same(ours, theirs, 1e4)


@pytest.mark.parametrize("name", ["svdvals", "pinv", "matrix_rank"])
@pytest.mark.parametrize("letter", "cd")
def test_stacks_of_large_matrices_of_less_than_full_rank(fake, name, letter):
    a = matrix_of("random", letter, 2, 190, 180)
    a[..., 3] = a[..., 4]
    same(host(getattr(linalg, name)(fake_device.Array(a))), getattr(linalg, name)(a), 1e5)


def test_kept_calls_of_eigenvalues_are_none_of_singular_values(card):
    """Singular values of the first stack are eigenvalues of one of the layout of the second."""
    for letter in "sdd":
        a = matrix_of("random", letter, 2, 180, 180)
        u, s, vh = map(host, linalg.svd(fake_device.Array(a)))
        assert mismatch(a, (u * s[..., None, :]) @ vh) <= 1e3 * eps_of(a)


HERMITIAN = [
    ("eigh", {}), ("eigvalsh", {}), ("pinvh", {}), ("pinv", {"hermitian": True}),
    ("matrix_rank", {"hermitian": True}), ("sqrtm", {"hermitian": True}), ("logm", {"hermitian": True}),
]  # fmt: skip


@pytest.mark.parametrize("letter", DTYPES)
@pytest.mark.parametrize("shape", [(1,), (5,), (3, 4), (2, 2, 3), (0,), (0, 3)])
@pytest.mark.parametrize("lower", [True, False])
@pytest.mark.parametrize("order", "CF")
def test_eigenvalues_on_a_device(card, letter, shape, lower, order):
    whole = hermitian_of(letter, *shape)
    a = np.array(np.tril(whole) if lower else np.triu(whole), order=order)
    put = fake_device.Array(a.copy(order="K"))
    for _ in range(3):  # kept calls too
        w, v = map(host, linalg.eigh(put, lower=lower))
        same(w, np.linalg.eigvalsh(whole), 100 * shape[-1])
        assert w.dtype == np.finfo(a.dtype).dtype and v.dtype == a.dtype and v.shape == a.shape
        rest = whole @ v - v * w[..., None, :]
        assert np.abs(rest).max(initial=0) <= 100 * shape[-1] * eps_of(a) * np.abs(whole).max(initial=1)
        same(host(linalg.eigvalsh(put, lower=lower)), w)
    np.testing.assert_array_equal(put.host, a)


@pytest.mark.parametrize("letter", DTYPES)
@pytest.mark.parametrize("kind", [1, 2, 3])
@pytest.mark.parametrize("lower", [True, False])
def test_generalized_problems_on_a_device(card, letter, kind, lower):
    a, b = hermitian_of(letter, 3, 6), definite_of(letter, 6)
    half = np.tril if lower else np.triu
    put = [fake_device.Array(half(each)) for each in (a, b)]
    w, v = map(host, linalg.eigh(*put, type=kind, lower=lower))
    theirs = linalg.eigh(half(a), half(b), type=kind, lower=lower)
    same(w, theirs[0], 2000)
    left, right = {1: (a @ v, b @ v), 2: (a @ (b @ v), v), 3: (b @ (a @ v), v)}[kind]
    assert mismatch(left, right * w[..., None, :]) <= 1e4 * eps_of(a)
    same(host(linalg.eigvalsh(*put, type=kind, lower=lower)), w, 2000)
    with pytest.raises(
        LinAlgError, match=r"eigh: The leading minor of order \d of B is not positive definite"
    ):
        linalg.eigh(put[0], fake_device.Array(np.diag([1, -1, 1, 1, 1, 1]).astype(a.dtype)))


@pytest.mark.parametrize(
    "options",
    [
        {"subset_by_index": (1, 2)},
        {"subset_by_value": (-1.0, 1.0)},
        {"subset_by_value": (50.0, 60.0)},
        {"driver": "evx"},
    ],
    ids=str,
)
def test_subsets_on_a_device(fake, monkeypatch, options):
    a, wanted = np.diag([-2.0, -1.0, 0.5, 1.0, 7.0]), []
    theirs, run = linalg.eigh(a, **options), eigen.eigenpairs
    for least in (6, 5):  # orders from which on the values of an interval are computed first
        monkeypatch.setattr(eigen, "VALUES_FIRST", least)
        monkeypatch.setattr(eigen, "eigenpairs", lambda *each: wanted.append(each[-1]) or run(*each))
        w, v = map(host, linalg.eigh(fake_device.Array(a), **options))
        same(w, theirs[0])
        same(np.abs(v), np.abs(theirs[1]))
    by_index, by_value = options.get("subset_by_index"), options.get("subset_by_value")
    if by_index:
        assert wanted == [(1, 3), (1, 3)]
    elif by_value:
        assert wanted == [True, False, (2, 4) if by_value[0] < 0 else (4, 5)]
    else:
        assert wanted == [True, True]
    if "subset_by_value" in options:
        stack = fake_device.Array(np.stack([a, a + np.eye(5)]))
        with pytest.raises(ValueError, match="of each matrix of the stack are in subset_by_value"):
            linalg.eigvalsh(stack, subset_by_value=(-3.0, -0.5))


@pytest.mark.parametrize("letter", DTYPES)
@pytest.mark.parametrize(("name", "options"), HERMITIAN)
def test_functions_of_eigenvalues_on_a_device(fake, letter, name, options):
    a = definite_of(letter, 3, 5)
    ours, theirs = (getattr(linalg, name)(each, **options) for each in (fake_device.Array(a), a))
    same(host(ours[0] if name == "eigh" else ours), theirs[0] if name == "eigh" else theirs, 1e4)


def test_special_values_on_a_device(fake):
    """They stay in their matrix of a stack: nothing is looked at."""
    a = np.stack([np.eye(3), np.full((3, 3), np.nan)])
    with pytest.raises(ValueError, match="eigh: array must not contain infs or NaNs"):
        linalg.eigh(fake_device.Array(a), check_finite=True)


@pytest.mark.parametrize("letter", DTYPES)
@pytest.mark.parametrize("order", ["fro", 1, -1, np.inf, -np.inf])
def test_norms_on_a_device(fake, letter, order):
    a = stack_of(letter, 2, 5, 5)
    put = fake_device.Array(a)
    same(linalg.norm(put, order, axis=(1, 2)).host, linalg.norm(a, order, axis=(1, 2)))
    same(linalg.matrix_norm(put, ord=order).host, linalg.matrix_norm(a, ord=order))
    same(linalg.norm(put, axis=1).host, linalg.norm(a, axis=1))
    a[1] = 0
    same(linalg.cond(fake_device.Array(a), order).host, linalg.cond(a, order), 1e4)


@pytest.mark.parametrize("letter", DTYPES)
@pytest.mark.parametrize("scales", [(1e-3,), (0.3,), (1.0,), (3.0,), (100.0,), (1e-6, 1.0, 300.0, 0.0)])
@pytest.mark.parametrize("n", [1, 2, 9])
def test_exponentials_on_a_device(fake, letter, scales, n):
    """Each matrix of a stack is scaled by itself: small ones lose nothing to large ones."""
    a = np.stack([matrix_of("random", letter, n, n, seed=3) / n * scale for scale in scales])
    if max(scales) > 10:  # of imaginary eigenvalues
        a = (a - a.swapaxes(-1, -2).conj()) / 2
    ours = linalg.expm(fake_device.Array(a)).host
    for one, other in zip(ours, a, strict=True):
        wide = scipy.linalg.expm(other.astype(complex if letter in "cz" else float))
        size = max(np.abs(other).sum(axis=0).max(), 1)
        assert np.abs(one - wide).max() <= 30 * n * size * eps_of(a) * np.abs(wide).max()
    assert ours.dtype == a.dtype


def test_exponentials_of_special_values_on_a_device(fake):
    a = np.stack([np.eye(2), np.full((2, 2), np.nan), np.full((2, 2), np.inf)])
    found = linalg.expm(fake_device.Array(a)).host
    same(found[0], np.e * np.eye(2))
    assert np.isnan(found[1:]).all()


def test_elements_on_a_device(fake):
    a = np.arange(18.0).reshape(2, 3, 3)
    put = fake_device.Array(a)
    for name in ("diagonal", "trace", "matrix_transpose"):
        np.testing.assert_array_equal(getattr(linalg, name)(put).host, getattr(linalg, name)(a))
    np.testing.assert_array_equal(linalg.cross(put, put[:1]).host, linalg.cross(a, a[:1]))


# ------------------------------------------------------------------------------------- arrays of libraries

#: Calls of arrays a and p, and of tolerances t, of any library: with results that are arrays.
IN_LIBRARIES = [
    lambda a, p, t: linalg.eigvalsh(p),
    lambda a, p, t: linalg.eigh(a, p)[0],
    lambda a, p, t: linalg.svdvals(a),
    lambda a, p, t: linalg.polar(a)[1],
    lambda a, p, t: linalg.pinv(a, rtol=t),
    lambda a, p, t: linalg.pinvh(p),
    lambda a, p, t: linalg.matrix_rank(a, rtol=t),
    lambda a, p, t: linalg.norm(a),
    lambda a, p, t: linalg.norm(a, 1, axis=(0, 1)),
    lambda a, p, t: linalg.matrix_norm(a, ord=2, keepdims=True),
    lambda a, p, t: linalg.vector_norm(a, axis=(0, 1)),
    lambda a, p, t: linalg.cond(a, 1),
    lambda a, p, t: linalg.expm(a),
    lambda a, p, t: linalg.sqrtm(p, hermitian=True),
    lambda a, p, t: linalg.logm(p),
    lambda a, p, t: linalg.cross(a[..., :3], p[..., :3]),
    lambda a, p, t: linalg.diagonal(a, offset=1),
    lambda a, p, t: linalg.trace(a),
    lambda a, p, t: linalg.matrix_transpose(a),
]


@pytest.mark.parametrize("library", ["torch", "array_api_strict", "jax.numpy"])
@pytest.mark.parametrize("index", range(len(IN_LIBRARIES)))
def test_other_libraries_on_the_host(library, index):
    xp = pytest.importorskip(library)
    operands = stack_of("s", 2, 4, 4), definite_of("s", 2, 4), np.array([1e-3, 0.5], np.float32)
    there, call = list(map(xp.asarray, operands)), IN_LIBRARIES[index]
    found, expected = call(*there), call(*operands)
    assert type(found) is type(there[0])
    np.testing.assert_allclose(np.asarray(found), expected, 1e-3, 1e-4)
