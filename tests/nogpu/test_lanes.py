"""The stream beside a caller's: one for each, kept for the next call, of threads where handles are theirs."""

from __future__ import annotations

import threading
from collections import OrderedDict
from types import SimpleNamespace

import pytest

from pyblasgpu.gpu import lanes
from pyblasgpu.gpu.context import THREAD_STREAM


@pytest.fixture(autouse=True)
def made(monkeypatch):
    """The streams made: device and urgency."""
    made = []

    def stream(device, urgent=False):
        made.append((device, urgent))
        return SimpleNamespace(handle=1000 + len(made))

    monkeypatch.setattr("pyblasgpu.gpu.transfers.Stream", stream)
    monkeypatch.setattr(lanes, "known_streams", OrderedDict())
    return made


def test_one_for_each_stream_of_a_device(made):
    handles = [
        lanes.side_stream(device, stream).handle
        for device, stream in ((0, 0), (0, 7), (1, 7), (0, 7), (0, 0))
    ]
    assert handles == [1001, 1002, 1003, 1002, 1001]
    assert made == [(0, True), (0, True), (1, True)]


def test_default_streams_of_threads_are_told_apart():
    handles = [lanes.side_stream(0, THREAD_STREAM).handle]
    thread = threading.Thread(target=lambda: handles.append(lanes.side_stream(0, THREAD_STREAM).handle))
    thread.start()
    thread.join()
    assert len(set(handles)) == 2


def test_those_used_last_are_kept(made):
    for stream in range(lanes.MAX_STREAMS):
        lanes.side_stream(0, 100 + stream)
    first = lanes.side_stream(0, 100)
    lanes.side_stream(0, 5)
    assert lanes.side_stream(0, 100) == first and len(made) == lanes.MAX_STREAMS + 1
    lanes.side_stream(0, 101)
    assert len(made) == lanes.MAX_STREAMS + 2 and len(lanes.known_streams) == lanes.MAX_STREAMS


def test_the_simulator_has_none(monkeypatch, made):
    monkeypatch.setattr(lanes.backend, "SIMULATED", True)
    assert lanes.side_stream(0, 7) is None and not made
