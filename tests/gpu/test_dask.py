"""pyblasgpu.dask on CuPy chunks: what stays on the device, and results."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg

cupy = pytest.importorskip("cupy")
da = pytest.importorskip("dask.array")
dask = pytest.importorskip("dask")

import pyblasgpu.dask as ours  # noqa: E402


def random(letter, *shape):
    rng = np.random.default_rng(shape)
    a = rng.uniform(-1, 1, shape) + (1j * rng.uniform(-1, 1, shape) if letter in "FD" else 0)
    return a.astype(letter)


def on_device(a, chunks):
    return da.from_array(cupy.asarray(a), chunks=chunks, asarray=False)


def check(result, expected):
    """Computed in one thread, on the device, and close to what SciPy has."""
    assert isinstance(result._meta, cupy.ndarray)
    got = result.compute(scheduler="sync")
    assert isinstance(got, cupy.ndarray)
    scale = 1e3 * np.finfo(expected.dtype).eps * max(abs(expected).max(), 1)
    np.testing.assert_allclose(got.get(), expected, atol=scale, rtol=0)


@pytest.mark.parametrize("letter", "fdFD")
def test_results_stay_on_the_device(letter):
    n, chunks = 150, ((60, 50, 40), (70, 80))
    a, b = random(letter, n, n), random(letter, n, 33)
    spd = a @ a.conj().T + n * np.eye(n, dtype=letter)
    x, y, s = on_device(a, chunks), on_device(b, (50, 20)), on_device(spd, chunks)
    check(ours.gemm(x, y, alpha=2, trans_a="C"), 2 * (a.conj().T @ b))
    check(ours.herk(x, lower=True), np.tril(a @ a.conj().T))
    check(ours.trmm(s, y, lower=True), np.tril(spd) @ b)
    for lower in (False, True):
        check(ours.cholesky(s, lower), scipy.linalg.cholesky(spd, lower=lower))
        check(ours.solve_triangular(s, y, lower=lower), scipy.linalg.solve_triangular(spd, b, lower=lower))
        check(ours.solve(s, y, assume_a="pos", lower=lower), np.linalg.solve(spd, b))


@pytest.mark.parametrize("letter", "fdFD")
def test_lu(letter):
    a, b = random(letter, 130, 130), random(letter, 130, 5)
    x = on_device(a, (50, 50))
    p, l, u = dask.compute(*ours.lu(x, p_indices=True), scheduler="sync")
    eps = np.finfo(letter).eps
    np.testing.assert_allclose((l.get() @ u.get())[np.asarray(p)], a, atol=1e4 * eps)
    safe = a + 300 * np.eye(130, dtype=letter)[::-1]
    check(ours.solve(on_device(safe, (50, 50)), on_device(b, (50, 5))), np.linalg.solve(safe, b))


def test_a_cluster_of_cards():
    """A worker a card; chunks move between them."""
    cuda, distributed = pytest.importorskip("dask_cuda"), pytest.importorskip("distributed")
    a = random("d", 400, 400)
    spd = a @ a.T + 400 * np.eye(400)
    with cuda.LocalCUDACluster(dashboard_address=None) as cluster, distributed.Client(cluster):
        x = da.from_array(spd, chunks=90).map_blocks(cupy.asarray)
        got = ours.cholesky(x, lower=True).compute()
    np.testing.assert_allclose(cupy.asnumpy(got), np.linalg.cholesky(spd), atol=1e-10)


def test_not_definite():
    a = np.eye(90)
    a[70, 70] = -1
    with pytest.raises(np.linalg.LinAlgError, match="71-th leading minor"):
        ours.cholesky(on_device(a, 40)).compute(scheduler="sync")


@pytest.mark.parametrize("cut", [(60, 30), (0, 60, 0, 30)], ids=str)
def test_chunks_of_another_dtype_than_declared_and_empty_ones(cut):
    a, b = random("d", 90, 90), random("d", 90, 7)
    spd = np.rint(a @ a.T + 90 * np.eye(90))
    x, y = (
        da.from_array(each, chunks=chunks).map_blocks(cupy.asarray, dtype="d", meta=cupy.empty((0, 0), "d"))
        for each, chunks in ((spd.astype("i4"), (cut, cut)), (b.astype("f"), (cut, (4, 3))))
    )
    check(ours.cholesky(x, lower=True), np.linalg.cholesky(spd))
    check(ours.gemm(x, y, beta=1, c=y), spd @ b.astype("f") + b.astype("f"))
    for structure in ("pos", "gen"):
        check(ours.solve(x, y, assume_a=structure), np.linalg.solve(spd, b.astype("f")))
    check(ours.lu(x)[2], scipy.linalg.lu(spd)[2])
