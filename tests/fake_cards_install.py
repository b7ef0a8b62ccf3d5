"""Puts the fake cards of `pyblasgpu.testing.fake_cards` in place of the driver."""

from __future__ import annotations

from pyblasgpu.engine import cards
from pyblasgpu.gpu import context, memory, page_locked, transfers
from pyblasgpu.gpu.driver import DriverState
from pyblasgpu.testing.fake_cards import FakeDriver


def install(monkeypatch, driver: FakeDriver) -> FakeDriver:
    """Let the package find `driver`, and remember nothing of another one."""
    monkeypatch.setattr(DriverState, "driver", driver)
    monkeypatch.setattr(context, "primary_contexts", {})
    monkeypatch.setattr(context, "get_current_context", None)
    monkeypatch.setattr(cards, "known_cards", {})
    monkeypatch.setattr(transfers, "enabled_peers", set())
    monkeypatch.setattr(page_locked, "shared_pools", {})
    memory.memory_pool.cache_clear()
    return driver


def forget() -> None:
    """Nothing is kept that the fake driver has told."""
    memory.memory_pool.cache_clear()
