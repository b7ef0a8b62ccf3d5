"""Whether the times of a run can be compared: clocks, temperature, power, other load, and a reference."""

from __future__ import annotations

import time
from collections import Counter
from typing import Protocol

from ..gpu.nvml import State

__all__ = ["ClockMonitor"]

SAMPLE_EVERY = 1.0  # seconds between two samples
REFERENCE_EVERY = 15.0  # seconds between two timings of the reference
DRIFT = 0.05  # of the reference's first time
HELD_DOWN = 0.1  # of the samples
BUSY = 10  # percent, before the run has begun


class _Sensor(Protocol):
    def read(self) -> State: ...


class ClockMonitor:
    """Samples a device's clock, temperature, power and load over a run.

    Parameters
    ----------
    sensor : Sensor
        Read once at once, before the run puts any load on the device.

    Attributes
    ----------
    references : list of float
        Seconds of the reference, each time that it was timed.
    """

    def __init__(self, sensor: _Sensor):
        self._sensor = sensor
        self._before = self._last = sensor.read()
        self._read_at = time.monotonic()
        self._samples, self._limits = 0, Counter[str]()
        self._other_processes = self._before.processes or 0
        self.references: list[float] = []
        self._reference_at = -REFERENCE_EVERY

    def state(self) -> dict[str, float]:
        """The state that a record of this moment keeps; NVML is queried once a second."""
        now = time.monotonic()
        if now - self._read_at >= SAMPLE_EVERY:
            self._read_at, self._last = now, self._sensor.read()
            self._samples += 1
            self._limits.update(self._last.limits)
            self._other_processes = max(
                self._other_processes, (self._last.processes or 0) - 1
            )  # one is the worker
        last = self._last
        facts = {"sm_mhz": last.sm_mhz, "celsius": last.celsius, "watts": last.watts}
        return {name: value for name, value in facts.items() if value is not None}

    @property
    def wants_reference(self) -> bool:
        """Whether it is time to time the reference again."""
        return time.monotonic() - self._reference_at >= REFERENCE_EVERY

    def reference(self, seconds: float) -> None:
        """Add a time of the reference."""
        self._reference_at = time.monotonic()
        self.references.append(seconds)

    def complaints(self) -> list[str]:
        """Return why the times of this run may not be comparable, in words."""
        complaints = []
        if (self._before.busy or 0) >= BUSY:
            complaints.append(f"the device was {self._before.busy} % busy before the run began")
        if self._other_processes > 0:
            complaints.append(f"other processes were on the device: {self._other_processes}")
        for limit, count in self._limits.items():
            if count >= HELD_DOWN * self._samples:
                share = count / self._samples
                complaints.append(f"{limit} held the clocks down in {share:.0%} of {self._samples} samples")
        if self.references:
            first = self.references[0]
            worst = max(self.references, key=lambda seconds: abs(seconds / first - 1))
            if abs(worst / first - 1) > DRIFT:
                complaints.append(
                    f"the run drifted: the same kernel took {first:.3g} s at first and {worst:.3g} s later"
                )
        return complaints
