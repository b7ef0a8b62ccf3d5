"""Memory of cards for tiles: taken as tiles come, kept for later calls, given back where it is short."""

from __future__ import annotations

import numpy as np
import pytest
from fake_cards_install import holds_nothing
from tiled_runs import problem

import pyblasgpu
from pyblasgpu.engine import cards, tile_memory
from pyblasgpu.engine.run import memory_limit
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
    driver = fake_cards()
    run(driver)
    first = allocations(driver)
    run(driver)
    assert first > 1 and allocations(driver) == first and any(driver.taken.values())
    assert holds_nothing(driver)


def test_a_call_takes_what_it_uses(fake_cards, monkeypatch):
    """Not all that it might: a tile that is not needed again gives way only where there is no more memory."""
    monkeypatch.setattr(tile_memory, "CHUNK", 1)
    driver = fake_cards()
    run(driver, (0,), slots=4)
    few = driver.taken[0]
    pyblasgpu.release_memory()
    run(driver, (0,))
    assert few < driver.taken[0]


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
