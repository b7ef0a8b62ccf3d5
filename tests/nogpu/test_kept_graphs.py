"""Graphs of launch lists: made when addresses are repeated, and as many as are kept."""

from __future__ import annotations

from collections import OrderedDict
from itertools import count

import pytest

from pyblasgpu.gpu import kept_graphs, launch
from pyblasgpu.gpu.driver import DeviceError

LAUNCHES = kept_graphs.LEAST


class Log(list):
    """What was enqueued: launches at addresses on a stream, or their graph."""

    captured, refuses, is_busy, by_priority = False, False, False, None

    def enqueue(self, bases, stream):
        self.append(("launches", tuple(bases), stream))

    def take(self):
        taken, self[:] = self[:], []
        return taken


@pytest.fixture
def log(monkeypatch):
    log, apart = Log(), 0x57

    class Graph:
        def __init__(self, enqueue, device, by_priority=False):
            if log.refuses:
                raise DeviceError("cuStreamEndCapture: refused")
            enqueue(apart)
            ((_, self.bases, stream),) = log[-1:]
            del log[-1]
            assert stream == apart and device == 3
            log.by_priority = by_priority

        def launch(self, stream):
            if log.is_busy:
                return False
            log.append(("graph", self.bases, stream))
            return True

    monkeypatch.setattr(launch, "Graph", Graph)
    monkeypatch.setattr(launch, "is_captured", lambda stream: log.captured)
    monkeypatch.setattr(kept_graphs, "graphs", OrderedDict())
    monkeypatch.setattr(kept_graphs, "seen", OrderedDict())
    monkeypatch.setattr(kept_graphs, "runs", count())
    monkeypatch.setattr(kept_graphs, "REPEATS", 1)
    monkeypatch.setattr(kept_graphs, "by_graphs", [0])
    return log


def kept(log, launches=LAUNCHES, has_lanes=False):
    return kept_graphs.kept(log.enqueue, 3, launches, has_lanes)


def test_the_second_run_at_the_same_addresses_has_a_graph(log):
    run = kept(log)
    for addresses in ([1, 2], [3, 4], [1, 2], (3, 4), (1, 2)):
        run(addresses, 9)
    assert [(what, bases) for what, bases, _ in log] == [
        ("launches", (1, 2)),
        ("launches", (3, 4)),
        ("graph", (1, 2)),
        ("graph", (3, 4)),
        ("graph", (1, 2)),
    ]
    assert {stream for *_, stream in log} == {9}


def test_a_graph_is_made_after_some_runs(log, monkeypatch):
    monkeypatch.setattr(kept_graphs, "REPEATS", 3)
    run = kept(log)
    for address in (1, 1, 2, 1, 1, 2, 2):
        run((address,), 9)
    assert [what for what, *_ in log] == ["launches"] * 4 + ["graph"] + ["launches"] * 2


def test_each_list_has_graphs_of_its_own(log):
    one, other = kept(log), kept(log)
    for run in (one, one, other):
        run((1, 2), 9)
    assert [what for what, *_ in log] == ["launches", "graph", "launches"]


@pytest.mark.parametrize("has_lanes", [False, True])
def test_lanes_keep_their_priorities(log, has_lanes):
    run = kept(log, has_lanes=has_lanes)
    for _ in range(2):
        run((1, 2), 9)
    assert log.by_priority is has_lanes


def test_few_launches_have_no_graph(log):
    run = kept(log, kept_graphs.LEAST - 1)
    for _ in range(4):
        run((1, 2), 9)
    assert [what for what, *_ in log] == ["launches"] * 4


def test_what_is_captured_or_cannot_be_is_launches(log):
    run = kept(log)
    log.captured = True
    for _ in range(3):
        run((1, 2), 9)
    log.captured, log.refuses = False, True
    run((1, 2), 9)
    log.refuses = False
    run((1, 2), 9)
    assert [what for what, *_ in log] == ["launches"] * 5 and not kept_graphs.graphs


def test_launches_while_another_thread_has_the_graph(log):
    run = kept(log)
    for log.is_busy in (False, False, True, False):
        run((1, 2), 9)
    assert [what for what, *_ in log] == ["launches", "graph", "launches", "graph"]


@pytest.mark.parametrize(("earned", "made"), [(10, [3]), (13, [1])])
def test_idle_graphs_make_room(log, monkeypatch, earned, made):
    """Not where those that are kept have saved less than another one costs."""
    monkeypatch.setattr(kept_graphs, "MOST", 2)
    monkeypatch.setattr(kept_graphs, "IDLE", 10)
    monkeypatch.setattr(kept_graphs, "EARNED", earned)
    run = kept(log)
    for address in (1, 1, 2, 2, 3, 3, 3):
        run((address,), 9)
    assert [bases for what, bases, _ in log.take() if what == "graph"] == [(1,), (2,)]
    for _ in range(10):
        run((2,), 9)
    log.take()
    for address in (3, 3, 1, 1, 2):
        run((address,), 9)
    assert [bases[0] for what, bases, _ in log if what == "graph"] == [*made, *made, 2]
    assert len(kept_graphs.graphs) == 2


def test_addresses_that_are_not_repeated_are_forgotten(log, monkeypatch):
    monkeypatch.setattr(kept_graphs, "SEEN", 3)
    run = kept(log)
    for address in (1, 2, 3, 4, 1, 1):
        run((address,), 9)
    assert [what for what, *_ in log] == ["launches"] * 5 + ["graph"]
    assert len(kept_graphs.seen) == 2
