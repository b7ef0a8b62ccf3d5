"""Tile tasks on fake cards: results, whatever runs when, and with little memory."""

from __future__ import annotations

from collections import Counter

import pytest
from fake_cards_install import holds_nothing
from tiled_runs import KINDS, problem

from pyblasgpu.engine import executor, host_traffic
from pyblasgpu.engine.placement import owners_of
from pyblasgpu.gpu import page_locked
from pyblasgpu.testing.leaves_on_host import enqueue_on


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("order", ["C", "F"])
def test_one_card(fake_cards, kind, order):
    p = problem(kind, order=order)
    assert p.run(fake_cards()) == 0
    p.check()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("locked", ["", "abc", "a"])
def test_eight_cards(fake_cards, kind, locked):
    p, driver = problem(kind, size=2, order="FC"[len(locked) == 1]), fake_cards(seed=len(locked))
    assert p.run(driver, range(8), locked=locked) == 0
    p.check()
    assert not driver.pageable or kind == "potrf"  # its infos are few bytes


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("slots", [3, 4, 7])
def test_little_memory(fake_cards, kind, slots):
    for devices in ((0,), (2, 5)):
        p, driver = problem(kind, size=2, order="C"), fake_cards(seed=slots)
        assert p.run(driver, devices, slots=slots, locked="b" * (slots == 4)) == 0
        p.check()
        assert holds_nothing(driver)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("nbytes", [1, 300])
def test_tiles_in_pieces(fake_cards, monkeypatch, kind, nbytes):
    """Threads copy some lines of a tile at a time, and buffers are few."""
    monkeypatch.setattr(host_traffic, "PIECE", nbytes)
    for order in "CF":
        p, driver = problem(kind, size=2, order=order), fake_cards(seed=nbytes)
        for use in ("up", "down"):
            pool = page_locked.PinnedPool(limit=1000)
            monkeypatch.setitem(page_locked.shared_pools, use, pool)
        assert p.run(driver, (0, 1), slots=6) == 0
        p.check()
        assert all(pool.held <= 1000 for pool in page_locked.shared_pools.values())
        assert holds_nothing(driver)


@pytest.mark.parametrize("devices", [(0,), (0, 1)], ids=["one", "two"])
def test_a_tile_is_waited_for_once(fake_cards, devices):
    """By the kernels of each card that reads it, and by its copy home."""
    p, driver = problem("gemm_new", size=5), fake_cards()
    p.run(driver, devices, locked="abc")
    p.check()
    tasks = p.tasks.tasks
    owners = owners_of(p.tasks, [1.0] * len(devices))
    read = {(tile, owner) for task, owner in zip(tasks, owners, strict=True) for tile in task.reads}
    home = sum(len(task.finishes) for task in tasks)
    peer = driver.calls["cuMemcpyPeerAsync"] + driver.calls["cuMemcpy3DPeerAsync"]
    streams = 4 * len(devices)
    waits = driver.calls["cuStreamWaitEvent"]
    assert waits <= len(read) + home + 2 * peer + 3 * streams < 2 * len(tasks)


@pytest.mark.parametrize("seed", range(6))
def test_any_order_of_streams(fake_cards, seed):
    for kind in KINDS:
        p, driver = problem(kind, size=2), fake_cards(seed=seed, eagerness=(0, 0.3, 0.7)[seed % 3])
        assert p.run(driver, (0, 1, 2), slots=5 + seed, locked="abc"[seed % 3]) == 0
        p.check()


@pytest.mark.parametrize("letter", "scz")
def test_dtypes(fake_cards, letter):
    for kind in KINDS:
        p = problem(kind, letter)
        p.run(fake_cards(), (0, 3))
        p.check()


@pytest.mark.parametrize("seed", range(4))
def test_tasks_dealt_at_random(fake_cards, seed):
    """Cards write tiles in turn, and read them before they are overwritten elsewhere."""
    for kind in (*KINDS, "chain"):
        p, driver = problem(kind, size=2), fake_cards(seed=seed)
        p.run(driver, (0, 1, 2), slots=4 + 2 * seed, locked="abc"[seed % 3], scatter=seed)
        p.check()


@pytest.mark.parametrize("locked", ["", "abc"])
@pytest.mark.parametrize("kind", ["gemm_new", "trsm"])
def test_links_share_what_comes_from_the_host(fake_cards, kind, locked):
    """Each tile comes from the host once, by one link or the other; cards have the rest from each other."""
    p, driver = problem(kind, size=3), fake_cards()
    p.run(driver, (0, 1), locked=locked)
    p.check()
    brought = [driver.copied[-1, card] for card in (0, 1)]
    outputs = {"gemm_new": 0, "trsm": p.arrays["b"].nbytes}[kind]
    triangle = 0.5 if kind == "trsm" else 1
    whole = triangle * p.arrays["a"].nbytes + (p.arrays["b"].nbytes if kind == "gemm_new" else outputs)
    assert max(brought) < 0.6 * sum(brought) and driver.copied[0, 1] and driver.copied[1, 0]
    if locked:  # staged tiles come with the gaps between their lines
        assert whole <= sum(brought) < 1.2 * whole


@pytest.mark.parametrize(
    "devices, first", [((0,), [1, 2, 3]), ((0, 1), [1, 2, 3, 4, 5, 6, 7, 7, 7, 1, 2, 3])], ids=["one", "two"]
)
def test_tasks_in_flight(fake_cards, monkeypatch, devices, first):
    """A card has few before it, more as long as another one has none: the first nine are of one card."""
    for name, value in {"IN_FLIGHT": 3, "MOST_IN_FLIGHT": 7, "FEW": 0}.items():
        monkeypatch.setattr(executor, name, value)
    p, driver, waiting, counts = problem("gemm"), fake_cards(eagerness=0), Counter(), []
    run_leaf = enqueue_on(driver)

    def enqueue(leaf, operands, stream):
        run_leaf(leaf, operands, stream)
        waiting[stream] += 1
        counts.append(waiting[stream])
        driver.enqueue(stream, "done", lambda: waiting.subtract([stream]))

    assert p.run(driver, devices, locked="abc", enqueue=enqueue) == 0
    p.check()
    assert counts == first + [3] * (len(p.tasks.tasks) - len(first))
    assert not any(waiting.values())
