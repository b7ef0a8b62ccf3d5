"""The simulation of many cards: rates as measured, times between their bounds and what one card takes."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from benchmarks.reach import STUDY, Links, Rates, bounds, gemm_bounds, simulate
from benchmarks.study import run
from pyblasgpu import tasks
from pyblasgpu.types import Uplo

RATES, LINKS = Rates.of("nvidia-h200"), Links()
N, CHUNK = 40_000, 2048
LIST = tasks.potrf(tasks.cut(N, CHUNK), Uplo.LOWER)


def test_rates_are_those_measured():
    for routine in ("gemm", "herk", "trsm", "potrf"):
        points = RATES.points[routine]
        assert len(points) >= 5
        for order, rate in points:
            assert RATES.at(routine, order) == pytest.approx(rate)
        (low, slow), (high, fast) = points[:2]
        assert slow < RATES.at(routine, (low + high) / 2) < fast
        assert RATES.at(routine, 10**6) == points[-1][1]
        assert RATES.at(routine, 1) == points[0][1]


def test_seconds_of_square_operands():
    order, rate = RATES.points["gemm"][2]
    assert RATES.seconds("gemm", 2 * order**3) == pytest.approx(2 * order**3 / rate)


def test_one_card_works_all_the_time():
    alone = sum(RATES.seconds(task.leaf.routine, tasks.flops(LIST, task)) for task in LIST.tasks)
    everything = replace(LINKS, nvlink=1e30, network=1e30)
    at_most = simulate(LIST, 8, RATES, everything)
    assert alone / 8 <= at_most < alone


@pytest.mark.parametrize("uplo", Uplo)
@pytest.mark.parametrize("cards", [8, 64, 512])
def test_times_keep_to_their_bounds(cards, uplo):
    what = tasks.potrf(tasks.cut(N, CHUNK), uplo)
    seconds = simulate(what, cards, RATES, LINKS)
    least = bounds(N, CHUNK, cards, RATES, LINKS)
    # work is of whole blocks' rates, the chain's last blocks are whole
    assert seconds > 0.95 * max(least["work"], least["chain"] * 0.9)
    assert seconds < sum(least.values()) * 3


def test_slow_links_cost_time():
    times = [
        simulate(LIST, 64, RATES, replace(LINKS, network=rate, nvlink=8 * rate)) for rate in (1e9, 1e10, 1e11)
    ]
    assert times[0] > 2 * times[1]
    assert times[1] > times[2]


def test_the_host_serves_what_does_not_fit():
    assert gemm_bounds(10**6, 8192, 8, RATES, LINKS)["host"] > 0
    assert gemm_bounds(10**6, 8192, 512, RATES, LINKS)["host"] == 0
    small, large = (
        gemm_bounds(10**6, 8192, 8, RATES, replace(LINKS, memory=size))["host"] for size in (40e9, 120e9)
    )
    assert small > large
    assert bounds(10**6, 8192, 8, RATES, LINKS)["host"] > 0
    assert bounds(10**6, 8192, 64, RATES, LINKS)["host"] == 0


def test_command(tmp_path, capsys):
    assert (
        run(STUDY, ["--n", "20000", "--chunks", "2048", "4096", "--cards", "8", "--out", str(tmp_path)]) == 0
    )
    made = json.loads((tmp_path / "reach.json").read_text())
    assert [(row["cards"], row["chunk"]) for row in made["results"]] == [(8, 2048), (8, 4096)]
    assert all(row["seconds"] > 0 for row in made["results"])
    assert "efficiency" in capsys.readouterr().out
    run(STUDY, ["--n", "20000", "--chunks", "2048", "--cards", "8", "--most-tasks", "1"])
