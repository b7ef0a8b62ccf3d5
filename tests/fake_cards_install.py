"""Puts the fake cards of `pyblasgpu.testing.fake_cards` in place of the driver."""

from __future__ import annotations

from pyblasgpu import release_memory
from pyblasgpu.engine import cards, leaves
from pyblasgpu.frontend import backend_status
from pyblasgpu.frontend.calls import call_cache
from pyblasgpu.gpu import (
    backend,
    context,
    device,
    kept_results,
    memory,
    page_locked,
    readback,
    transfers,
)
from pyblasgpu.gpu.driver import DriverState
from pyblasgpu.testing.fake_cards import FakeDriver
from pyblasgpu.testing.leaves_on_host import enqueue_on


def install(monkeypatch, driver: FakeDriver) -> FakeDriver:
    """Let the package find `driver`, and remember nothing of another one."""
    monkeypatch.setattr(DriverState, "driver", driver)
    monkeypatch.setattr(context, "primary_contexts", {})
    monkeypatch.setattr(context, "get_current_context", None)
    monkeypatch.setattr(cards, "known_cards", {})
    monkeypatch.setattr(leaves, "enqueue_leaf", enqueue_on(driver))
    monkeypatch.setattr(transfers, "enabled_peers", set())
    monkeypatch.setattr(page_locked, "shared_pools", {})
    monkeypatch.setattr(backend, "require", lambda: None)
    forget()
    return driver


def holds_nothing(driver: FakeDriver) -> bool:
    """Whether cards and the host have all memory back, once what calls keep for later ones is released."""
    release_memory()
    pinned = sum(pool.held for pool in page_locked.shared_pools.values())
    return not pinned and not kept_results.kept_results().held and not any(driver.taken.values())


def forget() -> None:
    """Nothing is kept that a fake driver has told."""
    kept = kept_results.kept_results
    for cached in (memory.memory_pool, device.described_by_driver, backend_status.why_no_device, kept):
        cached.cache_clear()
    call_cache.clear()
    readback.release()
