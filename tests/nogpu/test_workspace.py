"""Workspace of calls: the last of each stream serves again, never two calls at once, never a graph."""

from __future__ import annotations

import pytest

from pyblasgpu.gpu import launch, memory, workspace

MOST, FLAGS = workspace.MAX_KEPT_BYTES, workspace.ALL_FLAGS


class Memory:
    """Stands for the device's memory."""

    def __init__(self):
        self.held: dict[int, tuple[int, int, int]] = {}
        self.cleared: list[int] = []
        self.next, self.captured = 4096, set()

    def allocate(self, nbytes, device, stream):
        self.next += 1 << 40
        self.held[self.next] = nbytes, device, stream
        return self.next

    def release(self, address, stream):
        assert self.held.pop(address)[2] == stream

    def clear(self, address, nbytes, stream):
        assert nbytes == FLAGS and self.held[address][2] == stream
        self.cleared.append(address)


@pytest.fixture
def device(monkeypatch):
    fake_memory = Memory()
    monkeypatch.setattr(memory, "allocate", fake_memory.allocate)
    monkeypatch.setattr(memory, "release", fake_memory.release)
    monkeypatch.setattr(memory, "clear", fake_memory.clear)
    monkeypatch.setattr(launch, "is_captured", lambda stream: stream in fake_memory.captured)
    monkeypatch.setattr(workspace, "free_lists", {})
    return fake_memory


def borrowed(nbytes, device=0, stream=0x70, flags=False):
    """Where the allocation begins, with the flags."""
    room = workspace.take(nbytes, device, stream, flags)
    workspace.give(room)
    return room.address - FLAGS


def test_a_stream_keeps_its_last_one(device):
    first = borrowed(1000)
    assert borrowed(1000) == borrowed(10) == first and device.held[first] == (FLAGS + 1000, 0, 0x70)
    larger = borrowed(1001)
    assert larger != first and set(device.held) == {larger}, "a smaller one goes back"
    assert borrowed(1000) == larger


def test_streams_and_devices_have_their_own(device):
    assert len({borrowed(64), borrowed(64, stream=0), borrowed(64, 1, 0), borrowed(64, stream=0x80)}) == 4


def test_two_calls_at_once_share_nothing(device):
    first, second = (workspace.take(64, 0, 0x70) for _ in range(2))
    assert first.address != second.address
    workspace.give(first)
    workspace.give(second)
    assert set(device.held) == {first.address - FLAGS}, "one is kept"


def test_flags_are_cleared_once_where_they_stay(device):
    """What uses them leaves them clear; who has no flags may get one that has."""
    kept = borrowed(64)
    assert borrowed(64, flags=True) == kept and device.cleared == [kept]
    for flags in (True, False):
        passing = borrowed(MOST + 1, flags=flags)
        assert (passing in device.cleared) == flags


def test_memory_of_somebody_else_is_taken_once_at_a_time(device):
    """Where it is enough; its flags are cleared on request, and it stays with its owner."""
    mine = device.allocate(0, 0, 0x70) + 100
    start = mine + 156
    device.held[start] = 0, 0, 0x70
    for clears in (False, True):
        with workspace.lent(mine, FLAGS + 1156, 0, 0x70, clears):
            device.captured.add(0x70)
            assert borrowed(1000, flags=True) == borrowed(10) == start
            first, second = (workspace.take(64, 0, 0x70) for _ in range(2))
            assert first.address == start + FLAGS and second.address - FLAGS not in (mine, start)
            for each in (second, first):
                workspace.give(each)
            assert borrowed(1001) not in (mine, start)
        assert device.cleared == [start] * clears and borrowed(10) != start
        assert set(device.held) == {mine - 100, start}
    device.captured.clear()


def test_what_is_large_is_not_kept(device):
    kept = borrowed(MOST)
    assert borrowed(MOST + 1) != kept and set(device.held) == {kept}


def test_a_graph_has_its_own(device):
    kept = borrowed(64)
    device.captured.add(0x70)
    assert borrowed(64) != kept and set(device.held) == {kept}, "allocated and freed in the graph"
    device.captured.clear()
    assert borrowed(64) == kept


def test_not_all_streams_keep_one(device):
    for stream in range(0x100, 0x100 + workspace.STREAMS):
        borrowed(64, stream=stream)
    assert len(device.held) == workspace.STREAMS
    borrowed(64, stream=0x99)
    assert len(device.held) == workspace.STREAMS


def test_the_stream_of_each_thread_keeps_none(device):
    borrowed(64, stream=2)
    assert not device.held


def test_what_fails_leaves_nothing_behind(device, monkeypatch):
    borrowed(64)

    def none(*_):
        raise MemoryError

    monkeypatch.setattr(memory, "allocate", none)
    with pytest.raises(MemoryError):
        workspace.take(65, 0, 0x70)
    assert not device.held
