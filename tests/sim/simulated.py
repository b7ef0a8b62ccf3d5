"""How the tests of the simulator run a kernel and fill its memory."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import fake_device
import numpy as np
import pytest

from pyblasgpu.gpu.simulator import intrinsics as simulator

THREADS = 32


def device(values) -> tuple[int, simulator.Pointer]:
    """`values` as float32 in fresh device memory."""
    values = np.asarray(values, np.float32)
    address = simulator.allocate(values.nbytes)
    simulator.view(address, values.nbytes)[:] = values.view(np.uint8)
    return address, simulator.resolve(address, "float32")


def host(address: int, count: int) -> np.ndarray:
    return simulator.view(address, 4 * count).view(np.float32)


def run(kernel, *arguments, threads=THREADS, grid=(1, 1, 1), shared=0, **limits) -> None:
    simulator.launch(kernel, grid, (threads, 1, 1), shared, arguments, **limits)


def once(statement) -> None:
    """Run `statement` as a kernel of one thread."""
    run(statement, threads=1, shared=1024)


def arrays_on_device(monkeypatch: pytest.MonkeyPatch) -> type[fake_device.Array]:
    """A library whose arrays the simulator takes for those of a device."""
    monkeypatch.setitem(sys.modules, "cupy", fake_device.cupy)
    monkeypatch.setattr(fake_device.Array, "data", property(_reached))
    fake_device.without_contexts(monkeypatch)
    return fake_device.Array


def _reached(array: fake_device.Array) -> SimpleNamespace:
    """Where the simulator finds the array."""
    return SimpleNamespace(ptr=simulator.adopt(array.host), device_id=0)
