"""Kernels on a device: ``pytest tests/gpu``. The first run compiles a few hundred of them, in parallel.

Workers of ``pytest -n 4 tests/gpu`` spread over the cards of the machine.
"""

from __future__ import annotations

import os

import pytest
from device_runs import spread_workers

spread_workers(os.environ)


@pytest.fixture(scope="session")
def compile_once(tmp_path_factory):
    """Compile the kernels of a module that needs it, by one worker for all."""
    from .precompile import Once

    folder = tmp_path_factory.getbasetemp()
    return Once(folder.parent if "PYTEST_XDIST_WORKER" in os.environ else folder)


@pytest.fixture(scope="session", autouse=True)
def compiled_kernels(compile_once) -> None:
    """What the list of runs needs, and products of any views, is compiled."""
    from .precompile import every_variant, sources_of
    from .running import RUNS

    def find():
        yield from sources_of(run.start for run in RUNS)
        for letter in "sdz":
            yield from every_variant(letter, 40, 40, 40)

    compile_once("runs", find)


@pytest.fixture(autouse=True)
def current_device():
    """What is current on the thread of the tests stays current, whatever a test does."""
    cupy = pytest.importorskip("cupy")
    before = cupy.cuda.runtime.getDevice()
    cupy.cuda.Device(before).synchronize()  # PyTorch goes back to a device only where that has a context
    yield
    after = cupy.cuda.runtime.getDevice()
    cupy.cuda.runtime.setDevice(before)
    assert after == before


@pytest.fixture
def small_tiles(monkeypatch):
    """Tiles of order 256 on any number of cards, and the devices compute."""
    from pyblasgpu.engine import tile_size

    monkeypatch.setenv("PYBLASGPU_BACKEND", "cuda")
    for name in ("WANTED", "SMALLEST", "LARGEST"):
        monkeypatch.setattr(tile_size, name, 256)
