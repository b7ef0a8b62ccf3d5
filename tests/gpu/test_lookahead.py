"""Factors with lookahead on a device: the bits of one stream on two, in graphs, on any stream, many times."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

import numpy as np
import pytest
from matrices import uniform
from threads import at_once

from pyblasgpu import lapack
from pyblasgpu.dispatch.overrides import override
from pyblasgpu.gpu import kept_graphs, lanes
from pyblasgpu.testing.policies import deciding_by
from pyblasgpu.types import DTYPES

from .lu_checks import check_factors

cupy = pytest.importorskip("cupy")

ROUTINES = ["getrf", "potrf"]
BLOCK = 128


def problem(routine: str, letter: str, n: int) -> Any:
    a = uniform(letter, n, n)
    if routine == "potrf":
        a = (a + a.conj().T) / 2 + n * np.eye(n, dtype=a.dtype)
    return cupy.asfortranarray(cupy.asarray(a))


def factor(routine: str, letter: str, a: Any) -> list[Any]:
    """The factors of a copy, and pivots."""
    if routine == "getrf":
        lu, piv, info = getattr(lapack, letter + routine)(a)
        return [lu, cupy.asarray(piv), cupy.asarray(info)]
    c, info = getattr(lapack, letter + routine)(a, lower=1)
    return [c, cupy.asarray(info)]


def on_one_stream(monkeypatch, routine: str, letter: str, a: Any) -> list[Any]:
    with monkeypatch.context() as patch:
        patch.setattr(lanes, "side_stream", lambda device, stream: None)
        patch.setattr(kept_graphs, "graphs", OrderedDict())
        patch.setattr(kept_graphs, "MOST", 0)
        return factor(routine, letter, a)


def check_same(actual, expected) -> None:
    for x, y in zip(actual, expected, strict=True):
        assert bool((x == y).all())


@pytest.mark.parametrize("routine", ROUTINES)
@pytest.mark.parametrize("letter", DTYPES)
@pytest.mark.parametrize("n, tiles, least", [(500, 1, 0), (1100, 1, 10**5), (1100, 4, 0), (2300, 1, 0)])
def test_two_streams_compute_what_one_does(monkeypatch, routine, letter, n, tiles, least):
    a, decided = problem(routine, letter, n), deciding_by(getrf_permuted_min_order=least)
    with override("lookahead", BLOCK), override("tiles", tiles), decided:
        expected = on_one_stream(monkeypatch, routine, letter, a)
        for _ in range(5):
            check_same(factor(routine, letter, a), expected)
    if routine == "getrf":  # pivots may be others than without lookahead, and as good
        check_factors(a.get(), expected[0].get(), expected[1].get())
        return
    with override("lookahead", 0):
        other = factor(routine, letter, a)
    tolerance = 1e-3 if letter in "sc" else 1e-10
    assert float(abs(other[0] - expected[0]).max() / abs(other[0]).max()) < tolerance


@pytest.mark.parametrize("routine", ROUTINES)
@pytest.mark.parametrize("kind", ["null", "non_blocking", "per_thread"])
def test_callers_streams(monkeypatch, routine, kind):
    """What comes on the stream after the call sees the factors; what was there before is read."""
    a = problem(routine, "d", 1500)
    stream = {"null": cupy.cuda.Stream.null, "per_thread": cupy.cuda.Stream.ptds}.get(kind)
    with stream or cupy.cuda.Stream(non_blocking=True), override("lookahead", BLOCK):
        expected = [x.copy() for x in on_one_stream(monkeypatch, routine, "d", a)]
        for _ in range(5):
            late = cupy.zeros_like(a)
            late[...] = a
            check_same([x.copy() for x in factor(routine, "d", late)], expected)


@pytest.mark.parametrize("routine", ROUTINES)
@pytest.mark.parametrize("is_known", [True, False])
def test_capture_in_a_graph(routine, is_known):
    """On a stream never seen before, its workspace and the stream beside it are made while it is captured."""
    a = problem(routine, "d", 1500)
    flags = {"overwrite_a": 1} | ({"lower": 1} if routine == "potrf" else {})
    call = getattr(lapack, "d" + routine)
    with override("lookahead", BLOCK):
        expected, work = factor(routine, "d", a)[0], a.copy(order="F")
        cupy.cuda.Stream.null.synchronize()
        stream = cupy.cuda.Stream(non_blocking=True)
        with stream:
            if is_known:
                call(work, **flags)
                stream.synchronize()
            stream.begin_capture()
            try:
                kept = call(work, **flags)
            finally:
                graph = stream.end_capture()
            for _ in range(3):
                work[...] = a
                graph.launch(stream)
                check_same([work], [expected])
            del kept


def test_threads_on_streams_of_their_own():
    a = problem("getrf", "d", 1500)
    with override("lookahead", BLOCK):
        expected = factor("getrf", "d", a)

    def work() -> None:
        with cupy.cuda.Device(0), cupy.cuda.Stream(non_blocking=True), override("lookahead", BLOCK):
            for _ in range(5):
                check_same(factor("getrf", "d", a), expected)

    at_once(work, [()] * 3)
