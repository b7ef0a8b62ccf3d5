"""Rates of algorithms: from the records of a sweep, and the search that takes them."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain, repeat

import pytest
from fake_worker import Sensor

from pyblasgpu.database import (
    RECURSION,
    TRSM_FUSED,
    TRSM_POINTS,
    TRSM_SMALL,
    TRSM_SMALL_POINTS,
    algorithms_at,
)
from pyblasgpu.gpu.device import known
from pyblasgpu.tuning import routine_search
from pyblasgpu.tuning.clock_monitor import ClockMonitor
from pyblasgpu.tuning.results import FATAL, Record, winners
from pyblasgpu.tuning.runner import Runner
from pyblasgpu.tuning.signals import Interrupts
from pyblasgpu.tuning.sweep_log import SweepLog
from pyblasgpu.tuning.worker import DONE
from pyblasgpu.tuning.worker_bench import Failed, Timing

POINTS: dict[str, tuple[int, ...]] = {**TRSM_POINTS, **TRSM_SMALL_POINTS}
H200 = known("h200")


def record(point, name, seconds=1.0, outcome="ok", letter="d"):
    times = (seconds, 1 / seconds) if outcome == "ok" else (0.0, 0.0)
    return Record(H200.name, "sm_90", "trsm", letter, "any", point, POINTS[point], {name: 1}, outcome, *times)


def fastest(records, device="x"):
    rates = winners(records, device).trsm_rates
    return {at: max(each, key=each.__getitem__) for at, each in rates.items()}


def test_each_algorithm_keeps_its_rate_at_each_point():
    records = [
        record(point, name, 2.0 if name == slow else 1.0)
        for point, slow in (("512x32", RECURSION), ("256x256", TRSM_FUSED), ("64x64x100", RECURSION))
        for name in algorithms_at(point)
    ]
    assert fastest(records) == {
        ("d", "512x32"): TRSM_FUSED,
        ("d", "256x256"): RECURSION,
        ("d", "64x64x100"): TRSM_SMALL,
    }
    assert winners(records, "x").trsm_rates["d", "512x32"] == {TRSM_FUSED: 1.0, RECURSION: 0.5}


def test_one_algorithm_alone_says_nothing():
    assert not winners([record("512x32", TRSM_FUSED)], "x")
    assert not winners([record("512x32", TRSM_FUSED), record("256x256", RECURSION)], "x")


def test_one_alone_says_nothing_beside_a_device_that_tried_both():
    """For their architecture that device decides."""
    pair = [record("512x32", TRSM_FUSED, 2.0), record("512x32", RECURSION, 1.0)]
    other = replace(record("512x32", TRSM_FUSED, 0.5), device="NVIDIA H100")
    assert fastest([*pair, other], "sm_90") == {("d", "512x32"): RECURSION}


@pytest.mark.parametrize("failing", [TRSM_FUSED, RECURSION])
@pytest.mark.parametrize("outcome", [*sorted(FATAL), "absent"])
def test_an_algorithm_that_fails_is_out_at_its_point_alone(failing, outcome):
    """Where it was the faster one, and where it is still; the other then serves."""
    other = RECURSION if failing == TRSM_FUSED else TRSM_FUSED
    records = [
        record(point, name, 1.0 if name == failing else 2.0)
        for point in ("512x32", "256x256")
        for name in (failing, other)
    ]
    if outcome not in FATAL:  # it has no time then
        del records[0]
    actual = fastest([*records, record("512x32", failing, outcome=outcome)])
    assert actual == {("d", "512x32"): other, ("d", "256x256"): failing}


def test_records_of_unknown_points_or_algorithms_say_nothing():
    pair = [record("512x32", name) for name in (TRSM_FUSED, RECURSION)]
    for changes in (
        {"size": "few"},
        {"size": "7x7"},
        {"stem": "gemm"},
        {"parameters": {"fast": 1}},
        {"parameters": {TRSM_SMALL: 1}},
        {"size": "64x64x100", "parameters": {TRSM_FUSED: 1}},
    ):
        assert not winners([replace(each, **changes) for each in pair], "x")


class Played:
    """Stands for a worker: all algorithms take equally long; what is in `broken` fails."""

    busy = False

    def __init__(self):
        self.jobs, self.broken = [], {}

    def send(self, job, patience=None):
        self.jobs.append(job)
        (override,), ((extents, _),) = job.overrides, job.problems
        failure = self.broken.get((*override, extents))
        self.answers, self.busy = [DONE, failure or Timing(0, 1e-3)], True

    def receive(self, timeout):
        answer = self.answers.pop()
        self.busy = bool(self.answers)
        return answer


@pytest.fixture
def runner(home):
    return Runner(Played(), SweepLog(H200, "quick"), ClockMonitor(Sensor()), Interrupts())


def after(count):
    """A function that says `count` times that it is not late."""
    answers = chain(repeat(False, count), repeat(True))
    return lambda: next(answers)


def test_a_search_that_is_cut_off_has_compared_all_dtypes_at_the_first_points(runner):
    first, second, *others = (2 * len(algorithms_at(point)) for point in POINTS)
    assert routine_search.search_algorithms(runner, "sz", after(first + second)) == sum(others)
    rates = winners(runner.log.records, H200.name).trsm_rates
    assert rates.keys() == {(letter, point) for letter in "sz" for point in list(TRSM_POINTS)[:2]}
    assert all(job.reload for job in runner.worker.jobs)
    # and goes on with the others
    assert routine_search.search_algorithms(runner, "sz", after(10_000)) == 0
    jobs = {(job.dtype, job.overrides, job.problems) for job in runner.worker.jobs}
    assert len(jobs) == len(runner.worker.jobs) == first + second + sum(others)
    assert len(winners(runner.log.records, H200.name).trsm_rates) == 2 * len(POINTS)


def test_what_has_failed_is_not_tried_again(runner):
    point = "1024x32"
    runner.worker.broken["trsm_algorithm", TRSM_FUSED, TRSM_POINTS[point]] = Failed("error", "planted")
    assert routine_search.search_algorithms(runner, "c", after(10_000)) == 0
    rates = winners(runner.log.records, H200.name).trsm_rates
    assert rates["c", point].keys() == {RECURSION} and len(rates) == len(POINTS)
    count = len(runner.worker.jobs)
    assert routine_search.search_algorithms(runner, "c", after(10_000)) == 0
    assert len(runner.worker.jobs) == count
