"""Functions of `linalg` and `lapack` that stand on eigenvalues and singular values, on a device."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.linalg
from eigen_cases import check_eigen, check_singular, hermitian
from eigen_testers import ORDERS, THRESHOLD, singular_ratios, symmetric_ratios, worst
from eigen_testers import SHAPES as SHAPES_OF_TESTERS
from qr_cases import matrix_of

from pyblasgpu import lapack, linalg
from pyblasgpu.api.linalg import eigen
from pyblasgpu.types import DTYPES

cupy = pytest.importorskip("cupy")

SHAPES = [(1, 1), (5, 5), (33, 20), (20, 33), (70, 64), (7, 12, 12), (5, 40, 9), (500, 16)]


def host(array: Any) -> np.ndarray:
    return cupy.asnumpy(array)


def close(ours: Any, theirs: Any, factor: float = 1e4) -> None:
    ours, theirs = host(ours), np.asarray(theirs)
    assert ours.shape == theirs.shape
    scale = max(np.abs(theirs).max(initial=0), 1e-30)
    eps = np.finfo(ours.dtype).eps if ours.dtype.kind in "fc" else 0
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=factor * eps * scale)


def definite(letter: str, *shape: int) -> np.ndarray:
    a = hermitian("random", letter, *shape, seed=4)
    return a @ a + np.eye(shape[-1], dtype=a.dtype)


@pytest.mark.parametrize("letter", DTYPES)
@pytest.mark.parametrize("shape", [(1,), (4,), (33,), (100,), (150,), (500, 3), (9, 64), (2, 3, 17)])
@pytest.mark.parametrize("lower", [True, False])
@pytest.mark.parametrize("order", "CF")
def test_eigenvalues(letter, shape, lower, order):
    whole = hermitian("random", letter, int(np.prod(shape[:-1])), shape[-1])
    whole = whole.reshape(*shape, shape[-1])
    half = np.tril(whole) if lower else np.triu(whole)
    a = cupy.asarray(half if order == "C" else np.ascontiguousarray(half.swapaxes(-1, -2)))
    a = a if order == "C" else a.swapaxes(-1, -2)
    for _ in range(2):  # kept calls too
        w, v = linalg.eigh(a, lower=lower)
        check_eigen(whole, host(w), host(v))
        check_eigen(whole, host(linalg.eigvalsh(a, lower=lower)))
    np.testing.assert_array_equal(host(a), half)


@pytest.mark.parametrize("letter", DTYPES)
@pytest.mark.parametrize("kind", [1, 2, 3])
@pytest.mark.parametrize("shape", [(6,), (70,), (20, 16)])
def test_generalized_problems(letter, kind, shape):
    a, b = hermitian("random", letter, *shape), definite(letter, shape[-1])
    w, v = map(host, linalg.eigh(cupy.asarray(a), cupy.asarray(b), type=kind))
    left, right = {1: (a @ v, b @ v), 2: (a @ (b @ v), v), 3: (b @ (a @ v), v)}[kind]
    close(left, right * w[..., None, :], 1e4)
    close(linalg.eigvalsh(cupy.asarray(a), cupy.asarray(b), type=kind), w, 1e4)


@pytest.mark.parametrize("letter", DTYPES)
@pytest.mark.parametrize("n", [40, 300])
def test_vectors_of_an_interval(monkeypatch, letter, n):
    """Values first, as of large matrices, then the vectors of those in the interval alone."""
    monkeypatch.setattr(eigen, "VALUES_FIRST", 1)
    a = hermitian("random", letter, n)
    w, v = map(host, linalg.eigh(cupy.asarray(a), subset_by_value=(0.0, np.inf)))
    assert len(w) == v.shape[1] == (np.linalg.eigvalsh(a) > 0).sum()
    close(cupy.asarray(a @ v), v * w, 1e3)


@pytest.mark.parametrize("letter", DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("full", [True, False])
def test_singular_values(letter, shape, full):
    a = matrix_of("random", letter, *shape)
    for _ in range(2):
        u, s, vh = map(host, linalg.svd(cupy.asarray(a), full_matrices=full))
        check_singular(a, s, u, vh)
        check_singular(a, host(linalg.svdvals(cupy.asarray(a))))
    found = lapack.gesdd(cupy.asarray(a), full_matrices=full)
    check_singular(a, host(found[1]), host(found[0]), host(found[2]))


#: Calls of one matrix or a stack with the results that host arrays have.
CALLS: list[tuple[str, dict[str, Any]]] = [
    ("pinv", {}), ("matrix_rank", {}), ("polar", {}), ("polar", {"side": "left"}), ("cond", {}),
    ("matrix_norm", {"ord": 2}), ("matrix_norm", {"ord": "nuc"}), ("matrix_norm", {"ord": 1}),
    ("matrix_norm", {}), ("vector_norm", {"axis": -1}), ("norm", {}), ("trace", {}),
    ("diagonal", {"offset": 1}), ("matrix_transpose", {}),
]  # fmt: skip


@pytest.mark.parametrize("letter", DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(("name", "options"), CALLS, ids=str)
def test_functions(letter, shape, name, options):
    a = matrix_of("random", letter, *shape)
    ours, theirs = getattr(linalg, name)(cupy.asarray(a), **options), getattr(linalg, name)(a, **options)
    pairs = zip(ours, theirs, strict=True) if isinstance(theirs, tuple) else [(ours, theirs)]
    for one, other in pairs:
        close(one, other, 1e5)


@pytest.mark.parametrize("letter", DTYPES)
@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("pinvh", {}),
        ("sqrtm", {"hermitian": True}),
        ("logm", {"hermitian": True}),
        ("matrix_rank", {"hermitian": True}),
        ("expm", {}),
        ("cond", {"p": 1}),
        ("cond", {"p": "fro"}),
    ],
    ids=str,
)
@pytest.mark.parametrize("shape", [(5,), (60,), (30, 12)])
def test_functions_of_square_matrices(letter, name, options, shape):
    a = definite(letter, *shape)
    a = a / np.abs(a).sum(axis=-1).max() * 8
    a = a.astype(DTYPES[letter].name)
    close(getattr(linalg, name)(cupy.asarray(a), **options), getattr(linalg, name)(a, **options), 1e5)


@pytest.mark.parametrize("letter", "sd")
def test_exponentials_keep_small_matrices_apart(letter):
    a = np.stack([matrix_of("random", letter, 20, 20) * scale for scale in (1e-4, 0.1, 1.0, 20.0)])
    a[3] = (a[3] - a[3].T) / 2
    for one, other in zip(host(linalg.expm(cupy.asarray(a))), a, strict=True):
        close(one, scipy.linalg.expm(other.astype(float)).astype(one.dtype), 1e4)


@pytest.mark.parametrize("letter", DTYPES)
@pytest.mark.parametrize("shape", [(40, 9), (9, 40), (12, 12), (5, 30, 7)])
@pytest.mark.parametrize("options", [{"lapack_driver": "gelsd"}, {"cond": 0.2}], ids=str)
def test_least_squares(letter, shape, options):
    a, b = matrix_of("random", letter, *shape), matrix_of("random", letter, shape[-2], 3, seed=6)
    ours, theirs = linalg.lstsq(cupy.asarray(a), cupy.asarray(b), **options), linalg.lstsq(a, b, **options)
    for one, other in zip(ours, theirs, strict=True):
        if np.size(other):
            close(one, other, 1e5)


@pytest.mark.parametrize("kind", ["random", "geometric", "equal", "two clusters", "one"])
@pytest.mark.parametrize("shape", [(2, 250, 250), (3, 400, 200), (2, 200, 300), (5, 95, 90), (1, 300, 300)])
@pytest.mark.parametrize("letter", DTYPES)
def test_stacks_of_larger_matrices(letter, shape, kind):
    batch, m, n = shape
    a = hermitian(kind, letter, batch, max(m, n))[:, ::-1][:, :m, :n]
    on_device = cupy.asarray(a)
    for full in (True, False):
        u, s, vh = map(host, linalg.svd(on_device, full_matrices=full))
        check_singular(a, s, u, vh)
    check_singular(a, host(linalg.svdvals(on_device)))


@pytest.mark.parametrize("n", [90, 130])
def test_singular_values_in_a_graph(n):
    """The host does not wait for singular values there."""
    a = matrix_of("random", "d", 2, n, n)
    on_device, stream = cupy.asarray(a), cupy.cuda.Stream(non_blocking=True)
    cupy.cuda.get_current_stream().synchronize()
    with stream:
        linalg.svd(on_device)
        stream.begin_capture()
        u, s, vh = linalg.svd(on_device)
        graph = stream.end_capture()
        graph.launch(stream)
    stream.synchronize()
    check_singular(a, host(s), host(u), host(vh))


def test_stacks_beyond_the_kernels():
    """They are divided one after the other."""
    a = hermitian("random", "z", 2, 1100)
    w, v = map(host, linalg.eigh(cupy.asarray(a)))
    check_eigen(a, w, v)
    check_eigen(a, host(linalg.eigvalsh(cupy.asarray(a))))


@pytest.mark.parametrize("name", ["pinv", "orth", "null_space", "matrix_rank"])
@pytest.mark.parametrize("shape", [(600, 300), (300, 600), (400, 400)])
def test_large_matrices_of_full_rank(name, shape):
    a = matrix_of("random", "d", *shape) + 30 * np.eye(*shape)
    ours, theirs = host(getattr(linalg, name)(cupy.asarray(a))), getattr(linalg, name)(a)
    if name in ("orth", "null_space"):
        assert ours.shape == theirs.shape
        ours, theirs = ours @ ours.T, theirs @ theirs.T
    close(ours, theirs, 1e5)


@pytest.mark.parametrize("name", ["eigh", "eigvalsh", "svd", "svdvals"])
@pytest.mark.parametrize("n", [9, 50])
def test_special_values_stay_in_their_matrix(name, n):
    a = np.stack([np.eye(n), np.full((n, n), np.nan), 2 * np.eye(n)])
    found = getattr(linalg, name)(cupy.asarray(a))
    for each in map(host, found if isinstance(found, tuple) else (found,)):
        assert np.isnan(each[1]).all() and np.isfinite(each[[0, 2]]).all()


@pytest.mark.parametrize("letter", DTYPES)
@pytest.mark.parametrize("shape", [(50, 20, 20), (9, 30, 7), (9, 7, 30), (3, 2, 64, 64)])
def test_host_stacks(monkeypatch, letter, shape):
    monkeypatch.setenv("PYBLASGPU_BACKEND", "cuda")
    a = matrix_of("random", letter, int(np.prod(shape[:-2])), *shape[-2:]).reshape(shape)
    for full in (True, False):
        u, s, vh = linalg.svd(a, full_matrices=full)
        check_singular(a, s, u, vh)
    check_singular(a, linalg.svdvals(a))
    if shape[-1] == shape[-2]:
        whole = a + a.swapaxes(-1, -2).conj()
        w, v = linalg.eigh(whole)
        check_eigen(whole, w, v)
        check_eigen(whole, linalg.eigvalsh(whole))


@pytest.mark.parametrize("letter", DTYPES)
@pytest.mark.parametrize("by_band", [False, True])
def test_ratios_of_eigenvalues(letter, by_band, decide_by):
    if by_band:
        decide_by(band_eigh_min_order={letter: 66})
    for n in ORDERS[-2:] if by_band else ORDERS:
        ratios = worst(symmetric_ratios, letter, n, (cupy.asarray, cupy.asnumpy))
        assert max(ratios.values()) < THRESHOLD, (n, ratios)


@pytest.mark.parametrize("letter", DTYPES)
def test_ratios_of_singular_values(letter):
    for shape in SHAPES_OF_TESTERS:
        ratios = worst(singular_ratios, letter, shape, (cupy.asarray, cupy.asnumpy))
        assert max(ratios.values()) < THRESHOLD, (shape, ratios)
