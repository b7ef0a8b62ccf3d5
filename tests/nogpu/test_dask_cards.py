"""Chunks on several cards: copies, streams and waits of a worker's tasks, by a CuPy that only tells."""

from __future__ import annotations

import sys
import threading
from types import SimpleNamespace

import fake_device
import numpy as np
import pytest

pytest.importorskip("dask.array")

from pyblasgpu.dask import leaves
from pyblasgpu.dask.declared import Declared

SHAPE, DTYPE = (2, 2), np.dtype("d")


class FakeCupy:
    """Cards and streams that are current, as CuPy has them; card 2 at first.

    Attributes
    ----------
    log : list of tuple
        What was enqueued, and what was waited for.
    """

    def __init__(self):
        self.log, self.cards, self.streams = [], [2], []
        self.own_streams = 0
        self.cuda = SimpleNamespace(
            Device=lambda: Card(self, self.cards[-1]),
            Stream=lambda non_blocking: Own(self, self.cards[-1]),
            get_current_stream=self.current,
        )

    def current(self):
        """An own stream is current on its card alone."""
        own = [each for each in self.streams if each.card == self.cards[-1]]
        return own[-1] if own else Stream(self, self.cards[-1], "default")

    def zeros(self, shape, dtype, order):
        self.log.append(("zeros", self.cards[-1], self.current().name))
        return Array(self, self.cards[-1], dtype=dtype)


class Stream:
    def __init__(self, cupy, card, name):
        self.cupy, self.card, self.name = cupy, card, name

    def record(self):
        return self

    def synchronize(self):
        self.cupy.log.append(("done", self.card, self.name))


class Own(Stream):
    def __init__(self, cupy, card):
        super().__init__(cupy, card, "own")
        cupy.own_streams += 1

    def wait_event(self, event):
        self.cupy.log.append(("own waits for", event.card, event.name))

    def __enter__(self):
        self.cupy.streams.append(self)

    def __exit__(self, *_):
        self.cupy.streams.pop()


class Card:
    def __init__(self, cupy, number):
        self.cupy, self.id = cupy, number

    def __eq__(self, other):
        return self.id == other.id

    def __enter__(self):
        self.cupy.cards.append(self.id)

    def __exit__(self, *_):
        self.cupy.cards.pop()


class Array:
    """On a card; copies come to the current one."""

    shape = SHAPE

    def __init__(self, cupy, card, contiguous=True, dtype=DTYPE):
        self.cupy, self.device, self.dtype = cupy, Card(cupy, card), dtype
        self.flags = SimpleNamespace(c_contiguous=contiguous, f_contiguous=False)

    def copy(self, order="C"):
        here = self.cupy.cards[-1]
        self.cupy.log.append(("copy", self.device.id, here, self.cupy.current().name))
        return Array(self.cupy, here, dtype=self.dtype)

    def astype(self, dtype, order="K"):
        here = self.cupy.cards[-1]
        assert here == self.device.id
        self.cupy.log.append(("cast", here, self.cupy.current().name))
        return Array(self.cupy, here, dtype=dtype)

    def __getitem__(self, rows):
        return self

    def __setitem__(self, rows, array):
        assert array.device == self.device


@pytest.fixture
def cupy(monkeypatch):
    fake = FakeCupy()
    monkeypatch.setitem(sys.modules, "cupy", fake)
    monkeypatch.setattr(leaves, "run_call", lambda call, reads, out: fake.log.append("leaf"))
    return fake


def run(cupy, start, operands, declared=()):
    """What one call on all operands does, in a thread that has no streams yet."""
    reads = tuple((number, slice(None)) for number in range(len(operands)))
    task = leaves.Accumulate((leaves.LeafCall(None, reads, slice(None), 0),), "C", declared)
    results, cupy.log = [], []
    thread = threading.Thread(target=lambda: results.append(task(start, operands)))
    thread.start()
    thread.join()
    assert results[0].device.id == 2 and cupy.cards == [2] and not cupy.streams
    assert results[0].dtype == DTYPE
    return cupy.log


def test_chunks_of_other_cards_come_on_a_stream_of_the_thread(cupy):
    """The result is made where others use it: on the stream that is current outside."""
    near, far = Array(cupy, 2), Array(cupy, 1)
    assert run(cupy, near, [near, far, np.zeros(2)]) == [
        ("copy", 2, 2, "default"),
        ("own waits for", 2, "default"),
        ("own waits for", 1, "default"),
        ("done", 2, "own"),  # a copy that waits would hold up others
        ("copy", 1, 2, "own"),
        ("done", 2, "own"),
        "leaf",
        ("done", 2, "own"),
    ]


def test_a_result_that_begins_as_a_chunk_of_another_card(cupy):
    assert run(cupy, Array(cupy, 1), [Array(cupy, 2)]) == [
        ("zeros", 2, "default"),
        ("own waits for", 2, "default"),
        ("own waits for", 1, "default"),
        ("done", 2, "own"),  # a copy that waits would hold up others
        ("copy", 1, 2, "own"),
        ("done", 2, "own"),
        "leaf",
        ("done", 2, "own"),
    ]


@pytest.mark.parametrize(("card", "beginning"), [(2, ("cast", 2, "default")), (1, ("zeros", 2, "default"))])
def test_chunks_of_another_dtype_than_declared_are_cast_on_this_card(cupy, card, beginning):
    declared = Declared("gemm", "a", DTYPE, (0, 0), SHAPE)
    start, far = (Array(cupy, number, dtype=np.dtype("f")) for number in (card, 1))
    log = run(cupy, start, [far], (declared, declared))
    assert log[0] == beginning
    assert log[-4:] == [("done", 2, "own"), ("cast", 2, "own"), "leaf", ("done", 2, "own")]


def test_a_part_of_a_chunk_of_another_card_is_copied_there_first(cupy):
    assert run(cupy, Array(cupy, 2), [Array(cupy, 1, contiguous=False)])[-6:] == [
        ("copy", 1, 1, "default"),
        ("done", 1, "default"),
        ("copy", 1, 2, "own"),
        ("done", 2, "own"),  # before others get the memory of the first copy
        "leaf",
        ("done", 2, "own"),
    ]


def test_a_task_that_fails_leaves_nothing_under_way(cupy, monkeypatch):
    def fail(*_):
        raise ArithmeticError

    monkeypatch.setattr(leaves, "run_call", fail)
    task = leaves.Accumulate((leaves.LeafCall(None, (), slice(None), 0),))
    with pytest.raises(ArithmeticError):
        task(leaves.Zeros(SHAPE, "cupy", DTYPE), [])
    assert cupy.log[-1] == ("done", 2, "own") and not cupy.streams


def test_pivots_of_a_card_come_to_the_host(fake):
    a = fake_device.Array(np.array([[1.0, 3.0], [2.0, 4.0]]))
    leaf = SimpleNamespace(routine="getrf", keywords={})
    pivots = leaves.run_call(SimpleNamespace(leaf=leaf, first=0), [], a)
    np.testing.assert_array_equal(pivots, np.array([1, 1], np.int32), strict=True)
    np.testing.assert_array_equal(a.host, [[2, 4], [0.5, 1]])


def test_a_thread_has_one_stream_on_a_card(cupy):
    def work():
        task = leaves.Accumulate(())
        for _ in range(3):
            task(leaves.Zeros(SHAPE, "cupy", DTYPE), [])

    for _ in range(2):
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    assert cupy.own_streams == 2
