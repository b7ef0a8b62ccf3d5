"""Memory of cards for tiles: taken as tiles come, kept for later calls, given back where it is short."""

from __future__ import annotations

import numpy as np
import pytest
from fake_cards_install import holds_nothing
from tiled_runs import problem

import pyblasgpu
from pyblasgpu.engine import cards, tile_memory
from pyblasgpu.engine.cards import held
from pyblasgpu.engine.run import Controls, memory_limit, slot_bytes
from pyblasgpu.engine.schedule import Schedule
from pyblasgpu.gpu import memory, page_locked
from pyblasgpu.gpu.context import current_context


def allocations(driver) -> int:
    return driver.calls["cuMemAllocFromPoolAsync"]


def run(driver, devices=(0, 1), **options) -> None:
    p = problem("gemm", size=2)
    p.run(driver, devices, **options)
    p.check()


@pytest.mark.parametrize("chunk", [1, 2048, 1 << 28])
def test_a_repeated_call_allocates_nothing(fake_cards, monkeypatch, chunk):
    monkeypatch.setattr(tile_memory, "CHUNK", chunk)
    driver = fake_cards(eagerness=0)  # else a call takes more where cards are slower
    run(driver, locked="abc")
    first = allocations(driver)
    run(driver, locked="abc")
    assert first > 1 and allocations(driver) == first and any(driver.taken.values())
    assert holds_nothing(driver)


def test_tiles_of_a_call_are_taken_together(fake_cards):
    driver = fake_cards(eagerness=0)
    run(driver, locked="abc")
    assert allocations(driver) == 2, "once on each card"


def test_a_call_takes_what_it_uses(fake_cards, monkeypatch):
    """Not all that it might."""
    monkeypatch.setattr(tile_memory, "CHUNK", 1)
    driver = fake_cards()
    run(driver, (0,), slots=4)
    few = driver.taken[0]
    pyblasgpu.release_memory()
    run(driver, (0,))
    assert few < driver.taken[0]


@pytest.mark.parametrize("kind", ["gemm", "trsm", "potrf"])
def test_what_no_task_needs_again_makes_room(fake_cards, monkeypatch, kind):
    """Once the card is done with it: then no more memory is taken."""
    monkeypatch.setattr(tile_memory, "CHUNK", 1)
    taken = []
    for eagerness in (0, 1):
        pyblasgpu.release_memory()
        driver = fake_cards(eagerness=eagerness)
        p = problem(kind, size=4)
        p.run(driver, (0,), locked="abc")
        p.check()
        taken.append(driver.taken[0])
    assert taken[1] < taken[0]


def test_a_card_keeps_no_more_than_it_may(fake_cards, monkeypatch):
    monkeypatch.setattr(tile_memory, "CHUNK", 1)
    monkeypatch.setattr(cards, "KEPT", 2048)
    driver = fake_cards()
    run(driver)
    assert 0 < driver.taken[0] <= 2048 and 0 < driver.taken[1] <= 2048


def test_a_card_whose_memory_ends_on_the_way(fake_cards, monkeypatch):
    """Tiles give way then."""
    monkeypatch.setattr(tile_memory, "CHUNK", 1)
    driver = fake_cards(nbytes=2100)
    run(driver)
    assert holds_nothing(driver)


def test_what_is_kept_is_given_where_memory_is_short(fake_cards):
    driver = fake_cards()
    run(driver)
    kept = driver.taken[0]
    driver.nbytes = kept + 100
    with current_context(0):
        stream = driver.add_stream(0)
        address = memory.allocate(200, 0, stream)
        assert driver.taken[0] == 200 and driver.taken[1]
        with pytest.raises(MemoryError):
            memory.allocate(driver.nbytes, 0, stream)
        memory.release(address, stream)


def test_what_is_kept_counts_as_free(fake_cards):
    driver = fake_cards()
    free = memory_limit([0], None)
    run(driver)
    assert driver.taken[0] and memory_limit([0], None) == free


def test_pinned_buffers_are_freed(fake_cards):
    fake_cards()
    a = np.ones((40, 40))
    pyblasgpu.gemm(a, a, devices=[0, 1])
    pools = [page_locked.shared_pool(use) for use in ("up", "down")]
    assert all(pool.held for pool in pools)
    pyblasgpu.release_memory()
    assert not any(pool.held for pool in pools)
    np.testing.assert_array_equal(pyblasgpu.gemm(a, a, devices=[0, 1]), a @ a)


@pytest.mark.parametrize("chunk", [1, 1 << 28])
def test_what_is_kept_counts_within_the_limit(fake_cards, monkeypatch, chunk):
    """Kept chunks, whatever their size, and new ones together."""
    monkeypatch.setattr(tile_memory, "CHUNK", chunk)
    driver = fake_cards()
    run(driver, (0,))
    p = problem("gemm", size=2)
    limit, most = 5 * slot_bytes(Schedule(p.tasks, [0] * len(p.tasks.tasks)), p.matrices()), []
    controls = Controls(progress=lambda *_: most.append(driver.taken[0]))
    p.run(driver, (0,), slots=5, controls=controls)
    p.check()
    assert max(most) == limit
    assert holds_nothing(driver)


def test_kept_chunks_that_hold_no_tile_are_given_back(fake_cards):
    driver = fake_cards()
    with held([0]) as (card,):
        for nbytes in (100, 250, 100):
            with tile_memory.tile_memory(card, nbytes, 3, 1000) as slots:
                assert len(slots.first(3)) == 3
                assert driver.taken[0] == sum(chunk.nbytes for chunk in card.chunks) <= 1000
                assert all(chunk.nbytes >= nbytes for chunk in card.chunks)
        with tile_memory.tile_memory(card, 400, 2, 900) as slots:
            assert len(slots.first(2)) == 2 and driver.taken[0] <= 900
    assert holds_nothing(driver)


def test_released_memory_is_there_for_others(fake_cards):
    driver = fake_cards()
    run(driver)
    pyblasgpu.release_memory()
    assert not driver.taken[0] and not driver.pooled[0] and not driver.pooled[1]


def test_memory_that_is_held_asks_for_what_is_kept(fake_cards):
    driver = fake_cards()
    run(driver)
    driver.nbytes = driver.taken[0] + 50
    room = memory.OwnedMemory(100, 0)
    assert driver.taken[0] == 100
    with pytest.raises(MemoryError, match="cuMemAlloc"):
        memory.OwnedMemory(driver.nbytes, 0)
    del room
    assert holds_nothing(driver)
