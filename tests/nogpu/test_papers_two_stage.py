"""Two-stage tuning as in PLASMA: what the times of kernels promise, and which pairs are timed."""

from __future__ import annotations

import math

import pytest

from pyblasgpu.database import FAMILIES, RHS_AT
from pyblasgpu.gpu.device import known
from pyblasgpu.tuning.prune import candidates
from pyblasgpu.tuning.results import Record
from pyblasgpu.tuning.search_problem import Measurement
from tuning.papers import two_stage
from tuning.papers.two_stage import Combination, combinations, predicted

H200 = known("h200")


def test_the_time_of_a_recursion_is_that_of_its_kernels():
    leaf, gemm = {(64, 32): 3.0, (128, 32): 8.0}, {(64, 32, 64): 1.0, (128, 32, 128): 5.0}
    assert predicted(leaf, gemm, 64, 32, 64) == 3.0
    assert predicted(leaf, gemm, 256, 32, 128) == 8.0 + 8.0 + 5.0
    assert predicted(leaf, gemm, 256, 32, 64) == 4 * 3.0 + 2 * 1.0 + 5.0
    # elsewhere at the rate of the nearest: twice the columns, twice the time
    assert math.isclose(predicted(leaf, gemm, 128, 64, 128), 16.0)


def test_the_best_combinations_go_on():
    leaves = {
        Measurement("deep", "few", (64, 32)): 4.0,
        Measurement("deep", "few", (256, 32)): 9.0,
        Measurement("flat", "few", (64, 32)): 1.0,
        Measurement("flat", "few", (256, 32)): 90.0,
        Measurement("bad", "few", (64, 32)): 50.0,
        Measurement("bad", "few", (256, 32)): 500.0,
    }
    products = {
        Measurement("p", "small", (128, 32, 128)): 2.0,
        Measurement("q", "small", (128, 32, 128)): 3.0,
    }
    best = combinations(leaves, products, 256, 32, stops=(64, 256), keep=3, best=2)
    assert [tuple(c) for c in best] == [
        ("flat", 64, "p", 7.0),
        ("flat", 64, "q", 8.5),
        ("deep", 256, "p", 9.0),
    ]
    assert {c.leaf for c in combinations(leaves, products, 256, 32, (64, 256), 99, 2)} == {"deep", "flat"}
    with pytest.raises(ValueError, match="0 times of leaves"):
        combinations({}, products, 256, 32, (64,))


def times_of(stem, config, seconds=1e-4):
    parameters = FAMILIES[stem].parameters_of(config)
    return [
        Record(H200.name, "sm_90", stem, "d", "any", size, (512, rhs), parameters, "ok", seconds, 1.0)
        for size, rhs in RHS_AT.items()
    ]


def test_stops_beyond_the_largest_order_of_a_leaf_are_not_timed():
    leaf = candidates("trsm_mma", "d", "any", H200).left[0]
    actual = two_stage.pairs(times_of("trsm_mma", leaf), "trsm", "d", "many")
    assert actual == [("trsm_mma", leaf, stop) for stop in two_stage.STOPS if stop <= leaf.ORDER]


def test_a_leaf_that_promises_more_within_its_routine_is_timed_too(monkeypatch):
    best, other = candidates("trmm_leaf", "d", "any", H200).left[:2]
    gemm = candidates("gemm_mma", "d", "nn", H200).left[0]
    product = Record(
        H200.name,
        "sm_90",
        "gemm_mma",
        "d",
        "nn",
        "square1024",
        (1024,) * 3,
        FAMILIES["gemm_mma"].parameters_of(gemm),
        "ok",
        1e-3,
        1.0,
    )
    records = [*times_of("trmm_leaf", best), *times_of("trmm_leaf", other, 2e-4), product]
    promised = [Combination(other, 128, gemm, 1.0)]
    monkeypatch.setattr(two_stage, "combinations", lambda *_: promised)
    timed = two_stage.pairs(records, "trmm", "d", "few")
    assert ("trmm_leaf", other, 128) in timed and {leaf for _, leaf, _ in timed} == {best, other}
    assert not two_stage.pairs([product], "trmm", "d", "few")


def test_the_second_stage_decides_on_leaf_and_stop_together():
    """The routine is timed with both, and what fails is left out."""
    leaf = candidates("trmm_leaf", "d", "any", H200).left[0]
    jobs = []

    def measure(job):
        jobs.append(job)
        (_, stop), (stem, config) = job.overrides
        assert (job.routine, stem, config) == ("trmm", "trmm_leaf", leaf)
        return None if stop == 64 else 1.0 / stop

    timed = two_stage.second_stage(times_of("trmm_leaf", leaf), "trmm", "d", measure)
    assert list(timed) == list(RHS_AT)
    for pairs in timed.values():
        assert [pair.stop for pair, _ in pairs] == sorted(
            (stop for stop in two_stage.STOPS if 64 < stop <= leaf.ORDER), reverse=True
        ) or max(two_stage.STOPS) <= leaf.ORDER
    assert {job.problems[0][0] for job in jobs} == {(two_stage.ORDER, rhs) for rhs in RHS_AT.values()}
    rows = two_stage.table(timed, "dtrmm", H200.name).row_count
    assert rows == sum(map(len, timed.values()))
