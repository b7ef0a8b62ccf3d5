"""A whole tuning run on a device that is played by NumPy: which candidates are tried, and in which order."""

from __future__ import annotations

import math
from contextlib import suppress
from types import SimpleNamespace

import pytest
from fake_worker import Sensor
from recorded import RIVALS
from tuner_stage import H200, Stage, best_of, on, planned, rate, tune

from pyblasgpu.database import FAMILIES, read, sizes_of
from pyblasgpu.dispatch import choose as selecting
from pyblasgpu.dispatch import tuned_files
from pyblasgpu.gpu.nvml import State
from pyblasgpu.processes import background_pool
from pyblasgpu.tuning import candidate_list as planning
from pyblasgpu.tuning import prune, search, strategies, sweep_file, verify_winners
from pyblasgpu.tuning.active_search import ActiveSearch
from pyblasgpu.tuning.clock_monitor import ClockMonitor
from pyblasgpu.tuning.results import winners
from pyblasgpu.tuning.search_problem import search_problem_of
from pyblasgpu.tuning.strategies import STRATEGIES
from pyblasgpu.tuning.sweep_log import SweepLog
from pyblasgpu.types import DTYPES

pytestmark = pytest.mark.usefixtures("home")


def test_a_run_finds_the_best_and_the_next_call_uses_it(stage):
    made, document = tune(on(stage))
    best = best_of(("gemm_simt", "s", "nn"))
    assert {size for *_, size in document.entries} == set(sizes_of("gemm_simt"))
    choice = selecting.select("gemm_simt", DTYPES["s"], "nn", (4096,) * 3, H200)
    assert Stage.rate(choice.config) == Stage.rate(best) and choice.origin.startswith("tuned here")
    # another layout tries the tiles that did best
    other = selecting.select("gemm_simt", DTYPES["s"], "tn", (4096,) * 3, H200).config
    first = sorted(planned(("gemm_simt", "s", "nn")), key=Stage.rate)[-search.BEST_TILES["quick"] :]
    assert other.trans_a and (other.BLK_M, other.BLK_N) in {(c.BLK_M, c.BLK_N) for c in first}
    assert sweep_file.read_sweep(made.log.path) == made.log.records
    assert made.log.counts == {"ok": made.done} and made.untried == 0


def test_a_plan_is_the_same_from_another_process():
    key = ("gemm_mma", "d", "nn")
    with background_pool(1) as processes:
        made = processes.submit(planning.candidate_list, key, H200, "quick", None).result()
    assert (
        made == planning.candidate_list(key, H200, "quick", None)
        and made.configs
        and made.other_families_best
    )


def test_a_run_may_be_of_some_size_classes_alone(stage):
    _, before = tune(on(stage))
    made, document = tune(on(stage), sizes=("tiny", "few"))
    assert {record.size for record in made.log.records} == {"tiny"}
    assert {(layout, size) for *_, layout, size in document.entries} == {("nn", "tiny"), ("tn", "tiny")}
    assert set(read(tuned_files.user_file(H200.name)).entries) == set(before.entries)


def test_other_layouts_try_the_tiles_that_won_before_others(stage):
    """With their persistent variants: a search that ends early has had the most promising ones."""
    made, _ = tune(on(stage), layouts=("nn",))
    key, family = ("gemm_simt", "s", "tn"), FAMILIES["gemm_simt"]
    records = {}
    for record in made.log.timed(("gemm_simt", "s", "nn")):
        records.setdefault(record.size, []).append(record)
    won = {
        prune.tile_of(family.config("s", "nn", min(timed, key=lambda r: r.seconds).parameters))
        for timed in records.values()
    }
    candidates = planned(key)
    tiles = [prune.tile_of(c) for c in search.promising(key, candidates, made.log, H200, "quick")]
    first = [tile in won for tile in tiles]
    assert any(first) and first == sorted(first, reverse=True) and not all(first)
    # a longer run tries the rest as well
    ordered = search.promising(key, candidates, made.log, H200, "normal")
    assert [prune.tile_of(config) for config in ordered][: sum(first)] == tiles[: sum(first)]
    assert len(ordered) > len(tiles) and set(ordered) >= set(candidates)


def test_a_family_is_tried_where_it_comes_near_its_rivals():
    """Wherever `gemm_simt` came within a tenth of `gemm_mma` in the recorded sweep, and not everywhere."""
    letter = "d"
    assert planning.candidate_list(("gemm_simt", "s", "nn"), H200, "quick", None).other_families_best == {}
    best: dict = {}
    for record in sweep_file.read_sweep(RIVALS):
        if record.dtype == letter:
            at = record.stem, record.size
            best[at] = max(record.tflops, best.get(at, 0.0))
    sizes = {size for stem, size in best if stem == "gemm_mma"}
    near = {size for size in sizes if best["gemm_simt", size] > 0.9 * best["gemm_mma", size]}
    candidates, other_families_best = planning.candidate_list(
        ("gemm_simt", letter, "nn"), H200, "normal", None
    )
    search_problem = search_problem_of("gemm_simt", tuple(candidates), H200)
    measurements = requested(search_problem._replace(other_families_best=other_families_best))
    assert near <= {measurement.size for measurement in measurements}
    assert len(measurements) < 0.1 * len(requested(search_problem))


def requested(search_problem) -> list:
    """All that `likely` wants timed where nothing fails."""
    measurements, steps = [], STRATEGIES["likely"](search_problem)
    batch = next(steps)
    with suppress(StopIteration):
        while True:
            measurements += batch
            batch = steps.send(dict.fromkeys(batch, 1.0))
    return measurements


def test_what_serves_now_is_tried_first_in_every_layout(stage, monkeypatch):
    """And so it stays, unless something faster is found; it is not verified a second time."""
    monkeypatch.setattr(verify_winners.WinnerVerifier, "verify", None)
    for layout in ("nn", "tn"):
        ranked = sorted(prune.candidates("gemm_simt", "s", layout, H200).left, key=Stage.rate)
        stage.filed["gemm_simt", "s", layout] = {"large": ranked[-1]}
    made, document = tune(on(stage))
    for layout in ("nn", "tn"):
        current = stage.filed["gemm_simt", "s", layout]["large"]
        assert rate(document.entries["gemm_simt", "s", layout, "large"]) == Stage.rate(current)
        first = next(record for record in made.log.records if record.layout == layout)
        assert first.parameters == FAMILIES["gemm_simt"].parameters_of(current)
        assert first.size == "large"


def test_a_search_that_is_cut_off_replaces_nothing_that_it_did_not_try(stage):
    """What serves `large` cannot be compiled in time; what was found there is no reason to give it up."""
    key = ("gemm_simt", "s", "nn")
    ranked = sorted(prune.candidates(*key, H200).left, key=Stage.rate)
    stage.filed[key] = {"tiny": ranked[0], "large": ranked[-1]}
    made, _ = tune(on(stage), layouts=("nn",))
    kept = [r for r in made.log.records if r.parameters != FAMILIES["gemm_simt"].parameters_of(ranked[-1])]
    made.log = SweepLog(H200, "quick")
    for record in kept:
        made.log.take(record)
    sizes = {size for *_, size in made.decided(winners(kept, H200.name)).entries}
    assert sizes == set(sizes_of("gemm_simt")) - {"large"}
    # one that has failed is none to keep
    made.log.note(key, "", ranked[-1], outcome="wrong")
    assert "large" in {size for *_, size in made.decided(winners(kept, H200.name)).entries}


def test_what_was_not_asked_for_in_time_is_untried(stage):
    """While what serves is being tried, nothing else is wanted yet."""
    key = ("gemm_simt", "s", "nn")
    first, *others = prune.candidates(*key, H200).left[:5]
    search_problem = search_problem_of("gemm_simt", (first, *others), H200)
    for current, left in (({"large": first}, 1 + len(others)), ({}, 1 + len(others))):
        strategy = strategies.beginning_with(current, strategies.exhaustive)
        assert ActiveSearch(key, search_problem, strategy, SweepLog(H200, "quick")).stop() == left


@pytest.mark.parametrize(("seen", "others"), [(search.SEEN, 1.0), (math.inf, 0.0)])
def test_other_layouts_do_not_wait_for_the_end_of_the_first(stage, monkeypatch, seen, others):
    """But for its likeliest candidates, or for half of the time."""
    keys = [("gemm_simt", "s", layout) for layout in ("nn", "tn")]
    ready = {key: SimpleNamespace(left=prune.candidates(*key, H200).left[:40]) for key in keys}
    monkeypatch.setattr(planning, "candidates", lambda *key: ready[key[:3]])
    monkeypatch.setattr(planning, "in_turns", lambda search_problem: list(search_problem.candidates))
    monkeypatch.setattr(search, "SEEN", seen)
    monkeypatch.setattr(search, "OTHERS", others)
    made, document = tune(on(stage), strategy="likely", budget=1e6)
    layouts = [record.layout for record in made.log.records if record.outcome == "ok"]
    assert layouts.index("tn") < len(layouts) - layouts[::-1].index("nn")
    assert {layout for _, _, layout, _ in document.entries} == {"nn", "tn"}


def test_a_record_says_under_what_it_was_taken(stage):
    state = State(sm_mhz=1980, celsius=50, watts=400.0)
    made, _ = tune(on(stage), layouts=("nn",), monitor=ClockMonitor(Sensor(state)))
    record = sweep_file.read_sweep(made.log.path)[0]
    assert record.state == {"sm_mhz": 1980, "celsius": 50, "watts": 400.0}
    assert record.effort == "quick" and record.caches == "cold" and "kernels" in record.toolchain
    assert record.when.startswith("20")


def test_progress_tells_the_best_and_counts(stage):
    made, _ = tune(on(stage), layouts=("nn",))
    seen = made.watcher.seen
    done, total, best = seen[-1]
    assert done == total == len(seen)
    top = max(record.tflops for record in made.log.timed(("gemm_simt", "s", "nn")))
    assert best == f"gemm_simt s nn, best {top:.1f} TFLOP/s"


def test_the_reference_shows_a_drift(stage, monkeypatch):
    monkeypatch.setattr("pyblasgpu.tuning.clock_monitor.REFERENCE_EVERY", 0.0)
    monkeypatch.setattr("pyblasgpu.tuning.clock_monitor.SAMPLE_EVERY", 0.0)
    slow = iter([1.0] * (len(sizes_of("gemm_simt")) + 1) + [2.0] * 1000)
    plain = Stage.rate
    monkeypatch.setattr(Stage, "rate", staticmethod(lambda chosen: plain(chosen) / next(slow)))
    states = State(busy=30, processes=1), State(limits=("power cap",), processes=3)
    made, _ = tune(on(stage), layouts=("nn",), monitor=ClockMonitor(Sensor(*states)))
    complaints = "; ".join(made.monitor.complaints())
    assert "30 % busy" in complaints and "other processes were on the device: 2" in complaints
    assert "power cap held the clocks down in 100% of" in complaints and "the run drifted" in complaints
    assert any(record.outcome == "reference" for record in made.log.records)


def test_a_calm_run_has_no_complaints(stage, monkeypatch):
    monkeypatch.setattr("pyblasgpu.tuning.clock_monitor.REFERENCE_EVERY", 0.0)
    made, _ = tune(
        on(stage), layouts=("nn",), monitor=ClockMonitor(Sensor(State(processes=0), State(processes=1)))
    )
    assert made.monitor.references and not made.monitor.complaints()
