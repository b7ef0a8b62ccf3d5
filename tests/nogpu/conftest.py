from __future__ import annotations

import pkgutil
import signal
import sys
from importlib import import_module

import fake_device
import fake_driver
import fake_libraries
import memory_spaces
import numpy as np
import pytest

from pyblasgpu import routines
from pyblasgpu.dispatch import choose, tuned_files
from pyblasgpu.dispatch.overrides import token
from pyblasgpu.engine import tile_size
from pyblasgpu.frontend import backend_status as host_backend
from pyblasgpu.frontend.arrays import libraries
from pyblasgpu.frontend.arrays.libraries import count_write
from pyblasgpu.frontend.arrays.pytorch import torch_stream
from pyblasgpu.frontend.calls import call_cache, kept_lists
from pyblasgpu.frontend.engine_options import ambient_options
from pyblasgpu.gpu import device
from pyblasgpu.gpu.driver import DriverState

#: Imported before a test has stand-ins in modules that they import from.
for _module in pkgutil.walk_packages(routines.__path__, f"{routines.__name__}."):
    import_module(_module.name)


@pytest.fixture
def rng():
    return np.random.default_rng(2011)


@pytest.fixture
def home(monkeypatch, tmp_path):
    """A folder of the user's that is empty, and no choice made from another."""
    monkeypatch.setenv("PYBLASGPU_HOME", str(tmp_path))
    choose.reload()
    yield tmp_path
    choose.reload()


@pytest.fixture
def levels(monkeypatch, tmp_path):
    """An empty user's folder, and an empty folder for packaged files, which is returned."""
    packaged = tmp_path / "packaged"
    packaged.mkdir()
    monkeypatch.setenv("PYBLASGPU_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(tuned_files, "PACKAGED", packaged)
    choose.reload()
    yield packaged
    choose.reload()


@pytest.fixture
def default_sigint():
    """Ctrl-C is Python's own; where a shell runs the tests in the background, it would be ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    signal.signal(signal.SIGINT, before)


@pytest.fixture(autouse=True)
def no_fake_device_is_remembered():
    """What a stand-in for the driver has told is forgotten with it: the next tests have no device."""
    yield
    described = device.described_by_driver.cache_info().currsize
    assert DriverState.driver or not described, "end with fake_driver.forget()"


@pytest.fixture(autouse=True)
def no_setting_is_left():
    """What is set around calls ends with its block, also where the block raises."""
    yield
    assert (ambient_options(), host_backend.preferred.get(), token.get()) == (None, None, 0)


@pytest.fixture
def fake(monkeypatch):
    """A fake device, as `fake_device` has it: (routines, memory)."""
    call_cache.clear()
    yield fake_device.install(monkeypatch)
    call_cache.clear()
    kept_lists.forget()
    host_backend.why_no_device.cache_clear()


@pytest.fixture
def card(request, monkeypatch):
    """The fake device with the launch lists that a card has; `Kernels`, which NumPy computes."""
    import fake_kernels  # before the fake device: it keeps what that replaces

    request.getfixturevalue("fake")
    return fake_kernels.install_below(monkeypatch)


@pytest.fixture
def pytorch(monkeypatch):
    """``pytorch(module)``: calls take it for PyTorch."""

    def forget() -> None:
        libraries.module.cache_clear()
        torch_stream.cache_clear()
        count_write.cache_clear()

    def install(module) -> None:
        monkeypatch.setitem(sys.modules, "torch", module)
        forget()

    yield install
    forget()


@pytest.fixture
def driver(monkeypatch):
    """A driver that is none, with two devices, as `fake_driver` has it."""
    yield fake_driver.install(monkeypatch)
    fake_driver.forget()


@pytest.fixture(params=[memory_spaces.Host, memory_spaces.Staged, memory_spaces.Device])
def memory_space(request, fake):
    """A class of `memory_spaces`; what it took of the device's memory is given back."""
    yield request.param
    assert not fake[1].held


@pytest.fixture
def stage(monkeypatch):
    """A `tuner_stage.Stage`: a tuning run's stand-ins."""
    from tuner_stage import Stage

    monkeypatch.setattr(
        "pyblasgpu.tuning.routine_search.TRSM_POINTS", {"512x32": (64, 32), "256x256": (64, 64)}
    )
    monkeypatch.setattr("pyblasgpu.tuning.routine_search.TRSM_SMALL_POINTS", {"64x64x100": (16, 8, 3)})
    return Stage(monkeypatch)


@pytest.fixture
def fake_cards(monkeypatch):
    """Makes a `FakeDriver`, put in place of the driver: ``fake_cards(seed=1)``."""
    import fake_cards_install

    from pyblasgpu.testing.fake_cards import FakeDriver

    yield lambda **options: fake_cards_install.install(monkeypatch, FakeDriver(**options))
    fake_cards_install.forget()


@pytest.fixture
def small_tiles(monkeypatch):
    """Tiles of 8 rows and columns, so that small matrices have several."""
    for name in ("UNIT", "SMALLEST", "WANTED", "LARGEST"):
        monkeypatch.setattr(tile_size, name, 8)
    monkeypatch.setattr(tile_size, "NARROWEST", 4)


@pytest.fixture(name="device")
def device_of_libraries(fake, monkeypatch):
    """The fake device, and fake array libraries."""
    imported = libraries.module
    fake_libraries.install(monkeypatch)
    yield fake
    imported.cache_clear()
