"""pyblasgpu.dask on worker processes: results, graphs made by the scheduler, a worker that is killed."""

from __future__ import annotations

import os
import signal
import time

import numpy as np
import pytest
import scipy.linalg

da = pytest.importorskip("dask.array")
distributed = pytest.importorskip("distributed")

import pyblasgpu.dask as ours  # noqa: E402


@pytest.fixture(scope="module")
def client():
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


def definite(order: int) -> np.ndarray:
    root = np.random.default_rng(order).uniform(-1, 1, (order, order))
    return root @ root.T + order * np.eye(order)


def slow(chunk):
    time.sleep(0.02)
    return chunk


def test_results(client):
    a = definite(90)
    x = da.from_array(a, chunks=((30, 17, 23, 20), 40))
    b = a[:, :7]
    np.testing.assert_allclose(ours.cholesky(x).compute(), scipy.linalg.cholesky(a), atol=1e-12)
    np.testing.assert_allclose(ours.solve(x, b, assume_a="pos").compute(), np.eye(90)[:, :7], atol=1e-12)
    np.testing.assert_allclose(ours.solve(x, b).compute(), np.eye(90)[:, :7], atol=1e-12)
    np.testing.assert_allclose(ours.gemm(x, x).compute(), a @ a, atol=1e-9)


def test_the_client_makes_no_graph(client):
    x = da.ones((200, 200), chunks=50)
    product = ours.gemm(x, x)
    kept = client.persist(product)
    assert not product.dask.layers[product.name].is_materialized()
    np.testing.assert_array_equal(kept.compute(), 200)


def test_names_on_the_dashboard(client):
    x = da.from_array(definite(60), chunks=10)
    kept = client.persist(ours.cholesky(x, lower=True))
    distributed.wait(kept)
    prefixes = client.run_on_scheduler(lambda dask_scheduler: set(dask_scheduler.task_prefixes))
    assert {"cholesky", "cholesky-update"} <= prefixes


def test_an_error_of_a_worker_arrives(client):
    with pytest.raises(np.linalg.LinAlgError, match="1-th leading minor"):
        ours.cholesky(-da.eye(8, chunks=4)).compute()


@pytest.mark.slow
def test_a_killed_worker_is_survived(client):
    a = definite(120)
    x = da.from_array(a, chunks=15).map_blocks(slow)
    kept = client.persist(ours.cholesky(x, lower=True))
    distributed.wait(distributed.futures_of(kept), return_when="FIRST_COMPLETED")
    os.kill(next(iter(client.run(os.getpid).values())), signal.SIGKILL)
    np.testing.assert_allclose(kept.compute(), scipy.linalg.cholesky(a, lower=True), atol=1e-12)
