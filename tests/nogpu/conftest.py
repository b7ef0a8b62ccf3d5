from __future__ import annotations

import fake_device
import numpy as np
import pytest

from pyblasgpu import execution


@pytest.fixture
def rng():
    return np.random.default_rng(2011)


@pytest.fixture
def fake(monkeypatch):
    """A fake device, as `fake_device` has it: (routines, memory)."""
    yield fake_device.install(monkeypatch)
    execution._why_no_device.cache_clear()
