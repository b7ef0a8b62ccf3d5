"""Launch lists by graphs on a device: the bits of launches, other data in one memory, threads, captures."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from matrices import uniform
from threads import at_once

from pyblasgpu import lapack
from pyblasgpu.gpu import kept_graphs
from pyblasgpu.types import DTYPES

cupy = pytest.importorskip("cupy")

ROUTINES = ["potrf", "getrf", "geqrf", "potri"]
N = 1300
FEW = 900  # rows of QR factors without lookahead, with which they have no graph


def problem(letter: str, seed: int, n: int = N) -> Any:
    a = uniform(letter, n, n, seed=seed)
    return cupy.asfortranarray(cupy.asarray((a + a.conj().T) / 2 + n * np.eye(n, dtype=a.dtype)))


def result(routine: str, letter: str, work: Any, a: Any) -> list[Any]:
    """The results in `work`, which is A first."""
    work[...] = a
    flags = {"lower": 1} if routine == "potrf" else {}
    if routine == "potri":
        return [getattr(lapack, f"{letter}potri")(work, lower=1, overwrite_c=1)[0].copy()]
    results = getattr(lapack, letter + routine)(work, overwrite_a=1, **flags)
    return [cupy.asarray(each).copy() for each in results]


@pytest.mark.parametrize("routine", ROUTINES)
@pytest.mark.parametrize("letter", DTYPES)
def test_a_graph_computes_what_launches_do(monkeypatch, routine, letter):
    """In one memory, with other data each time."""
    matrices = [problem(letter, seed, FEW if routine == "geqrf" else N) for seed in range(3)]
    kept_graphs.graphs.clear()
    with monkeypatch.context() as patch:
        patch.setattr(kept_graphs, "MOST", 0)
        expected = [result(routine, letter, cupy.empty_like(a), a) for a in matrices]
    assert not kept_graphs.graphs
    work = cupy.empty_like(matrices[0])
    for _ in range(3):
        for a, each in zip(matrices, expected, strict=True):
            for one, other in zip(result(routine, letter, work, a), each, strict=True):
                assert bool((one == other).all())
    assert kept_graphs.graphs


@pytest.mark.parametrize("routine", ["potrf", "getrf"])
def test_graphs_on_streams_of_threads(routine):
    """Each thread has a stream, a matrix and a graph of its own."""
    a = problem("d", 4)
    expected, *_ = result(routine, "d", cupy.empty_like(a), a)
    cupy.cuda.Device().synchronize()

    def run() -> None:
        with cupy.cuda.Stream(non_blocking=True) as stream:
            work = cupy.empty_like(a)
            for _ in range(10):
                found, *_ = result(routine, "d", work, a)
                stream.synchronize()
                assert bool((found == expected).all())

    at_once(run, [()] * 3)


def test_a_call_that_has_a_graph_is_captured_by_others():
    a = problem("d", 5)
    work = cupy.empty_like(a)
    for _ in range(4):
        expected, *_ = result("potrf", "d", work, a)
    stream = cupy.cuda.Stream(non_blocking=True)
    cupy.cuda.Device().synchronize()
    with stream:
        for _ in range(4):
            result("potrf", "d", work, a)
        stream.synchronize()
        stream.begin_capture()
        kept = lapack.dpotrf(work, lower=1, overwrite_a=1)
        graph = stream.end_capture()
        for _ in range(3):
            work[...] = a
            graph.launch(stream)
        stream.synchronize()
        del kept
    assert bool((work == expected).all())
