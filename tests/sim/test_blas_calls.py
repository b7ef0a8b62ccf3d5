"""The functions of `pyblasgpu.blas` in the simulator beside the reference BLAS."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import fake_device
import numpy as np
import pytest
from blas_calls import ON_DEVICE, calls_of, check, placed

from pyblasgpu.gpu.simulator import intrinsics as simulator

SMALL = [(1, 2, 3), (5, 3, 2), (4, 6, 5)]


def _reached(array: fake_device.Array) -> SimpleNamespace:
    return SimpleNamespace(ptr=simulator.adopt(array.host), device_id=0)


@pytest.fixture
def on_device(monkeypatch):
    """A library whose arrays the simulator takes for those of a device."""
    monkeypatch.setitem(sys.modules, "cupy", fake_device.cupy)
    monkeypatch.setattr(fake_device.Array, "data", property(_reached))
    fake_device.without_contexts(monkeypatch)
    return fake_device.Array


@pytest.mark.filterwarnings("ignore:invalid value encountered in cast")  # new indices are NaN
@pytest.mark.parametrize("name", ON_DEVICE)
def test_device_arrays(name, on_device):
    for given in calls_of(name, *SMALL):
        for how in ("F", "reversed"):
            check(name, given, lambda array, how=how: on_device(placed(array, how)), lambda each: each.host)


@pytest.mark.parametrize("name", ON_DEVICE)
def test_host_arrays(name, monkeypatch):
    monkeypatch.setenv("PYBLASGPU_BACKEND", "sim")
    for given in calls_of(name, (4, 6, 5)):
        check(name, given, np.copy)
