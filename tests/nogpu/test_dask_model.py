"""Tasks of Dask on four workers of one process: chains of a graph, results, and how work is spread."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg

da = pytest.importorskip("dask.array")
distributed = pytest.importorskip("distributed")

from dask_model import LEAVES, bounds, makespans  # noqa: E402

import pyblasgpu.dask as ours  # noqa: E402
from benchmarks.dask_cluster import cluster  # noqa: E402
from pyblasgpu.dask.leaves import Accumulate  # noqa: E402

CARDS = 4


def chain(result) -> float:
    """Seconds of the longest chain of Dask tasks of an array, with the model's leaves."""
    graph = dict(result.dask.layers[result.name])
    ends: dict = {}

    def end(key) -> float:
        if key not in ends:
            task = graph.get(key)
            is_task = isinstance(task, tuple) and isinstance(task[0], Accumulate)
            before = [task[1], *task[2]] if is_task else []
            seconds = sum(LEAVES[call.leaf.routine] for call in task[0].calls) if is_task else 0
            ends[key] = max((end(each) for each in before if isinstance(each, tuple)), default=0) + seconds
        return ends[key]

    return max(end(key) for key in graph)


@pytest.mark.parametrize("blocks", [2, 4, 8, 16, 32])
def test_the_chain_of_a_factor_is_little_longer_than_that_of_its_leaves(blocks):
    x = da.ones((2 * blocks, 2 * blocks), chunks=2)
    shortest, _ = bounds("potrf", blocks, 8192, CARDS)
    for factor in (ours.cholesky(x, lower=True), ours.cholesky(x)):
        assert shortest <= chain(factor) * 1.000001 <= 1.2 * shortest


def test_solves_of_many_columns_are_few_tasks():
    """Each column is a chain of its own: there is enough to do."""
    x = da.ones((16, 16), chunks=2)
    many, one = ours.trsm(x, x), ours.trsm(x, x[:, :2])
    assert len(many.dask.layers[many.name]) < 8 * len(one.dask.layers[one.name])
    assert chain(one) < chain(many)


def test_results_on_workers_of_one_process():
    root = np.random.default_rng(0).uniform(-1, 1, (60, 60))
    a = root @ root.T + 60 * np.eye(60)
    with cluster(CARDS, False, use) as workers, distributed.Client(workers) as client:
        client.wait_for_workers(CARDS)
        x = client.persist(da.from_array(a, chunks=((8, 7) * 4, 10)))
        np.testing.assert_allclose(ours.cholesky(x).compute(), scipy.linalg.cholesky(a), atol=1e-12)
        np.testing.assert_allclose(ours.gemm(x, x).compute(), a @ a, atol=1e-9)
        solved = ours.solve_triangular(x, x, lower=True).compute()
        np.testing.assert_allclose(np.tril(a) @ solved, a, atol=1e-9)


def use(_: int) -> None:
    """There are no cards."""


@pytest.mark.parametrize("routine", ["gemm", "trsm", "potrf"])
def test_leaves_that_sleep_are_spread_over_the_workers(routine):
    order = 8192 if routine == "potrf" else 6144
    times, busy = makespans(routine, 8, order, CARDS, threads=2, repeats=1)
    longest, shared = bounds(routine, 8, order, CARDS)
    assert sum(busy) == pytest.approx(CARDS * shared)
    assert max(longest, shared) <= times[0]
    assert 0 < min(busy) <= max(busy) < 2 * shared  # on one worker it would be 4
