"""Kernels in the simulator: ``NUMBA_ENABLE_CUDASIM=1 pytest tests/sim``, a process of its own."""

from __future__ import annotations

import sys
import zlib
from types import SimpleNamespace

import fake_device
import pytest


@pytest.fixture(autouse=True)
def thread_order(request: pytest.FixtureRequest) -> None:
    """Another order of threads and blocks in every test, the same one on every run."""
    from pyblasgpu.gpu.simulator.intrinsics import reseed

    reseed(zlib.crc32(request.node.nodeid.encode()))


def _reached(array: fake_device.Array) -> SimpleNamespace:
    """Where the simulator finds the array."""
    from pyblasgpu.gpu.simulator import intrinsics as simulator

    return SimpleNamespace(ptr=simulator.adopt(array.host), device_id=0)


@pytest.fixture
def on_device(monkeypatch):
    """A library whose arrays the simulator takes for those of a device."""
    monkeypatch.setitem(sys.modules, "cupy", fake_device.cupy)
    monkeypatch.setattr(fake_device.Array, "data", property(_reached))
    fake_device.without_contexts(monkeypatch)
    return fake_device.Array
