"""Kernels in the simulator: ``NUMBA_ENABLE_CUDASIM=1 pytest tests/sim``, a process of its own."""

from __future__ import annotations

import zlib

import pytest

from . import simulated


@pytest.fixture(autouse=True)
def thread_order(request: pytest.FixtureRequest) -> None:
    """Another order of threads and blocks in every test, the same one on every run."""
    from pyblasgpu.gpu.simulator.intrinsics import reseed

    reseed(zlib.crc32(request.node.nodeid.encode()))


@pytest.fixture
def on_device(monkeypatch):
    """A library whose arrays the simulator takes for those of a device."""
    return simulated.arrays_on_device(monkeypatch)
