"""The state of a device as the driver's management library (NVML) reports it; needs no context."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .driver import check, load

__all__ = ["Sensor", "State"]

#: Reasons for a clock lower than it could be, by NVML's bits; idling is no reason to worry.
LIMITS = {
    0x004: "power cap",
    0x008: "hardware slowdown",
    0x020: "thermal slowdown",
    0x040: "hardware thermal slowdown",
    0x080: "power brake",
}


@dataclass(frozen=True)
class State:
    """A device at one moment. None where NVML does not report, as on parts of a device.

    Attributes
    ----------
    sm_mhz : int or None
        Clock of the multiprocessors.
    celsius : int or None
    watts : float or None
    limits : tuple of str
        Limits that hold the clocks down, by their names in `LIMITS`.
    busy : int or None
        Percent of the last moments in which a kernel ran.
    processes : int or None
        Processes with a context on the device.
    """

    sm_mhz: int | None = None
    celsius: int | None = None
    watts: float | None = None
    limits: tuple[str, ...] = ()
    busy: int | None = None
    processes: int | None = None


class Sensor:
    """Reads the state of one device; where there is no NVML, every state is empty."""

    def __init__(self, ordinal: int):
        self.nvml: Any
        try:
            from cuda.bindings import nvml

            bus = check(load().cuDeviceGetPCIBusId(32, ordinal), "cuDeviceGetPCIBusId")
            nvml.init_v2()
            name = bytes(bus).split(b"\0")[0].decode()
            self.handle = nvml.device_get_handle_by_pci_bus_id_v2(name)
            self.nvml = nvml
        except Exception:  # of import, driver, or NVML, which have no base in common: then there is no NVML
            self.nvml = None

    def read(self) -> State:
        """The state now."""
        nvml = self.nvml
        if nvml is None:
            return State()
        device = self.handle
        milliwatts = self._ask(nvml.device_get_power_usage, device)
        rates = self._ask(nvml.device_get_utilization_rates, device)
        running = self._ask(nvml.device_get_compute_running_processes_v3, device)
        reasons = self._ask(nvml.device_get_current_clocks_event_reasons, device) or 0
        return State(
            sm_mhz=self._ask(nvml.device_get_clock_info, device, nvml.ClockType.CLOCK_SM),
            celsius=self._ask(nvml.device_get_temperature_v, device, nvml.TemperatureSensors.TEMPERATURE_GPU),
            watts=None if milliwatts is None else milliwatts / 1e3,
            limits=tuple(name for bit, name in LIMITS.items() if int(reasons) & bit),
            busy=None if rates is None else int(rates.gpu),
            processes=None if running is None else len(running),
        )

    def _ask(self, question: Callable, *arguments: Any) -> Any:
        """The answer, or None where this device or driver has none."""
        try:
            return question(*arguments)
        except (self.nvml.NvmlError, RuntimeError):  # the latter where an older driver lacks the question
            return None
