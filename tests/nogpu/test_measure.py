"""What the tuner times once and what five times, and how operations are counted."""

from __future__ import annotations

import math

import fake_device
import pytest

from pyblasgpu.tuning import measure
from pyblasgpu.tuning.arenas import MOST_CALLS
from pyblasgpu.tuning.measure import REPEATS, Rotation, Timer
from pyblasgpu.types import DTYPES

BESIDE = 2.6e-6  # seconds that a pass takes beside its calls


class Passes(Timer):
    """Passes of a call that takes so many seconds; `hiccups` come on top of the first ones."""

    def __init__(self, seconds, hiccups=()):
        self._seconds, self._hiccups, self._device, self._stream = seconds, list(hiccups), 0, 0
        self.calls: list[int] = []

    def _pass(self, work, calls, host):
        self.calls.append(calls)
        late = self._hiccups.pop(0) if self._hiccups else 0.0
        return (BESIDE + calls * self._seconds + late) / calls


@pytest.fixture(autouse=True)
def no_device(monkeypatch):
    monkeypatch.setattr(measure, "memory", fake_device.HostMemory())


def rotation(count=MOST_CALLS):
    return Rotation((lambda: None,) * count, lambda count: None)


def test_what_a_pass_takes_beside_its_calls_ends_no_candidate():
    """It is most of a single short call; with many it is little."""
    timer = Passes(3.6e-6)
    assert timer(rotation(), best=3.9e-6) == pytest.approx(3.6e-6 + BESIDE / MOST_CALLS)
    assert timer.calls == [1, MOST_CALLS] + [MOST_CALLS] * REPEATS


def test_a_hopeless_candidate_is_timed_twice():
    timer = Passes(8e-6)
    assert timer(rotation(), best=4e-6) == pytest.approx(8e-6 + BESIDE / MOST_CALLS)
    assert timer.calls == [1, MOST_CALLS]


def test_a_hiccup_ends_no_candidate():
    timer = Passes(2e-3, hiccups=[5e-3])
    assert timer(rotation(), best=2.1e-3) == pytest.approx(2e-3 + BESIDE)
    assert timer.calls == [1] * (2 + REPEATS)


def test_without_a_time_to_beat_the_median_counts():
    timer = Passes(1e-4, hiccups=[0.0, 1e-3, 1e-3])
    assert timer(rotation(), best=math.inf) == pytest.approx(1e-4 + BESIDE / 10)
    assert timer.calls == [1] + [10] * REPEATS


def test_operations_are_counted_as_the_field_does():
    assert measure.flops("gemm", DTYPES["d"], (2, 3, 5)) == 60
    assert measure.flops("gemm", DTYPES["z"], (2, 3, 5)) == 240
    assert measure.flops("gemm", DTYPES["s"], (2, 3, 5, 100)) == 6000
    assert measure.flops("trsm", DTYPES["s"], (4, 10)) == 160
