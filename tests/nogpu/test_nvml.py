"""The state of a device, read from an NVML that is played."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from pyblasgpu.gpu import device
from pyblasgpu.gpu.nvml import Sensor, State


class NvmlError(Exception):
    pass


def refuse(*_):
    raise NvmlError("not supported")


def nvml(**changes):
    answers = {
        "NvmlError": NvmlError,
        "ClockType": SimpleNamespace(CLOCK_SM=1),
        "TemperatureSensors": SimpleNamespace(TEMPERATURE_GPU=0),
        "device_get_power_usage": lambda d: 412_500,
        "device_get_utilization_rates": lambda d: SimpleNamespace(gpu=97),
        "device_get_compute_running_processes_v3": lambda d: [object(), object()],
        "device_get_current_clocks_event_reasons": lambda d: 0x1 | 0x4 | 0x20,
        "device_get_clock_info": lambda d, kind: 1755,
        "device_get_temperature_v": lambda d, sensor: 64,
    }
    return SimpleNamespace(**{**answers, **changes})


@pytest.fixture
def sensor():
    made = Sensor.__new__(Sensor)
    made.nvml, made.handle = nvml(), 7
    return made


def test_a_state_has_units_and_names_what_holds_the_clocks_down(sensor):
    assert sensor.read() == State(1755, 64, 412.5, ("power cap", "thermal slowdown"), 97, 2)


def test_what_a_device_does_not_tell_is_none(sensor):
    silent = {name: refuse for name in vars(nvml()) if name.startswith("device_")}
    sensor.nvml = nvml(**silent)
    assert sensor.read() == State()


@pytest.mark.skipif(device.count() > 0, reason="there is a device")
def test_without_a_driver_every_state_is_empty():
    assert Sensor(0).read() == State()
