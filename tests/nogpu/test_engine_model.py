"""The model of calls by tiles: times between what the work takes and all of it one after the other."""

from __future__ import annotations

from dataclasses import replace

import pytest

from benchmarks.engine_model import STUDY, Links, Timeline, schedule_for
from benchmarks.reach import Rates
from benchmarks.study import run

RATES, LINKS = Rates.of("nvidia-h200"), Links()


def timeline(name, n, cards=1, links=LINKS, **options) -> Timeline:
    return Timeline(schedule_for(name, n, "d", cards), RATES, links, 8, **options)


@pytest.mark.parametrize("name", ["gemm", "trsm", "trmm", "syrk", "potrf"])
@pytest.mark.parametrize("cards", [1, 2, 4])
def test_a_call_takes_what_its_parts_take(name, cards):
    line = timeline(name, 8192, cards)
    took = line.run()
    links = sum(line.linked.values())
    assert max(line.busy.values()) < took < LINKS.start + sum(line.busy.values()) + links + 0.1
    fast = timeline(name, 8192, cards, replace(LINKS, host=1e15, peer=1e15, start=0, task=0))
    shorter = fast.run()
    assert max(fast.busy.values()) <= shorter < took


@pytest.mark.parametrize(("name", "cards"), [("gemm", 2), ("syrk", 2), ("potrf", 2), ("potrf", 4)])
def test_no_card_runs_out_of_tasks_while_another_one_has_a_column_of_them(name, cards):
    line = timeline(name, 24 * 4096, cards)
    assert line.run() < 1.03 * max(line.busy.values())


def test_each_byte_moves_once():
    n = 8192
    line = timeline("gemm", n, 2)
    line.run()
    up, down = (sum(x for (_, goes_up), x in line.moved.items() if goes_up is way) for way in (True, False))
    assert up == 2 * n * n * 8 and down == n * n * 8
    assert 0.9 < line.moved[0, True] / line.moved[1, True] < 1.2
    assert not timeline("gemm", n, 2, on_card=True).moved


def test_short_lines_that_are_far_apart_are_copied_slowly():
    def linked(n, tile):
        line = Timeline(schedule_for("potrf", n, "d", 1, (tile,)), RATES, LINKS, 8)
        line.run()
        return line.linked[0, True] * LINKS.host / line.moved[0, True]

    assert (
        linked(8192, 2048) > linked(8192, 2560) > linked(8192, 4096) > linked(4096, 1024) == pytest.approx(1)
    )


def test_a_slow_host_sets_the_pace():
    slow = timeline("trsm", 8192, links=replace(LINKS, task=0.01))
    assert slow.run() >= 0.01 * len(slow.schedule.owners)


def test_the_table(capsys):
    assert (
        run(STUDY, ["--routines", "gemm", "--sizes", "4096", "--cards", "1", "--tiles", "1024,1024,2048"])
        == 0
    )
    assert "1024x2048" in capsys.readouterr().out
