"""A whole tuning run on a device that is played by NumPy, and one in which candidates take it down."""

from __future__ import annotations

import ctypes
import json
import math
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from contextlib import suppress
from types import SimpleNamespace

import fake_device
import fake_worker
import numpy as np
import pytest
from fake_device import elements
from fake_worker import GOOD, Compilers, Sensor, Watcher
from recorded import RIVALS

from pyblasgpu.database import (
    FAMILIES,
    RECURSION,
    T_LAYOUTS,
    TRSM_FUSED,
    TRSM_SMALL,
    Document,
    Entry,
    read,
    sizes_of,
    tuned_at,
)
from pyblasgpu.dispatch import choose as selecting
from pyblasgpu.dispatch import gemm as dispatch_gemm
from pyblasgpu.dispatch import leaf as dispatch_leaf
from pyblasgpu.dispatch import overrides, tuned_files
from pyblasgpu.dispatch.algorithms import trsm_algorithm
from pyblasgpu.errors import PyblasgpuError
from pyblasgpu.frontend import cpu
from pyblasgpu.gpu.compile import Resources
from pyblasgpu.gpu.device import known
from pyblasgpu.gpu.nvml import State
from pyblasgpu.processes import beside
from pyblasgpu.routines.triangular import fused_operands
from pyblasgpu.tuning import candidate_list as planning
from pyblasgpu.tuning import (
    command as tune_command,
)
from pyblasgpu.tuning import (
    measure,
    prune,
    routine_search,
    search,
    session,
    strategies,
    sweep_file,
    sweep_log,
    verify,
    verify_winners,
    worker_bench,
)
from pyblasgpu.tuning import search_problem as tasks
from pyblasgpu.tuning.active_search import ActiveSearch
from pyblasgpu.tuning.clock_monitor import ClockMonitor
from pyblasgpu.tuning.results import winners
from pyblasgpu.tuning.search_problem import search_problem_of
from pyblasgpu.tuning.strategies import STRATEGIES
from pyblasgpu.tuning.sweep_log import SweepLog
from pyblasgpu.tuning.worker import DONE, DeviceLost, Lost, Worker
from pyblasgpu.types import DTYPES, Side, Trans, Uplo

H200 = known("h200")


pytestmark = pytest.mark.usefixtures("home")


# ------------------------------------------------------------------------- a run on a device that is NumPy


class Memory(fake_device.HostMemory):
    """Memory of a context that may be lost."""

    def __init__(self):
        super().__init__()
        self.alive = True

    def synchronize(self, stream):
        if not self.alive:
            raise PyblasgpuError("the context is gone")


class Inline:
    """Stands for `Worker`: the body runs in this process."""

    def __init__(self, make):
        self.make, self.body, self.busy, self.replaced = make, None, False, 0

    def send(self, job, patience=None):
        self.body = self.body or self.make()
        self.answers, self.busy = self.body(job), True

    def receive(self, timeout):
        try:
            return next(self.answers)
        except StopIteration:
            self.busy = False
            return DONE
        except DeviceLost:
            self.busy, self.body, self.replaced = False, None, self.replaced + 1
            return Lost("crash", "the process ended with code 0")


def every_class():
    return [(stem, size) for stem in FAMILIES for size in sizes_of(stem)]


class Stage:
    """The stand-ins of a run: routines that compute with NumPy, and a clock that goes by the Config."""

    def __init__(self, monkeypatch):
        self.memory, self.chosen, self.broken, self.calls = Memory(), None, {}, Counter()
        for module in (verify, measure, worker_bench):
            monkeypatch.setattr(module, "memory", self.memory)
        monkeypatch.setattr(worker_bench, "Timer", lambda device, stream: self.time)
        monkeypatch.setattr(worker_bench.devices, "current", lambda ordinal: H200)
        every = planning.candidates
        monkeypatch.setattr(planning, "candidates", lambda *key: SimpleNamespace(left=every(*key).left[::16]))
        self.filed = {}  # what files name, by search
        monkeypatch.setattr(tuned_files, "serving", lambda *key: self.filed.get(key[:3], {}))
        # operands of the real sizes would take long to fill
        small = {key: [tuple(max(x // 32, 1) for x in tuned_at(*key)[-1])] for key in every_class()}
        for module in (routine_search, dispatch_gemm, dispatch_leaf, session):
            monkeypatch.setattr(module, "tuned_at", lambda stem, size: small[stem, size])
        monkeypatch.setattr(
            tasks, "tuned_points",
            lambda stem, only: tuple((size, at) for size in sizes_of(stem, only) for at in small[stem, size]),
        )  # fmt: skip
        monkeypatch.setattr(routine_search, "CURVE", (32, 64))
        monkeypatch.setattr(measure, "MOST_CALLS", 2)

    def time(self, work, best=float("inf")):
        work.restore(1)
        work.calls[-1]()
        self.calls[self.chosen] += 1
        return 4e-3 / self.rate(self.chosen)

    @staticmethod
    def rate(chosen):
        if isinstance(chosen, int):
            return chosen
        if hasattr(chosen, "WARPS"):  # a leaf of TRSM
            return chosen.ORDER * chosen.WARPS / (1 + chosen.BLK)
        return chosen.BLK_M * chosen.BLK_N / (1 + chosen.BLK_K)

    def routine(self, name):
        return getattr(self, name)

    def gemm(self, alpha, a, b, beta, c, stream):
        layout = ("n" if a.row_stride == 1 else "t") + ("n" if b.row_stride == 1 else "t")
        extents = (c.rows, c.cols, a.cols)
        self.chosen = selecting.select("gemm_simt", c.dtype, layout, extents, H200).config
        left, right, out = map(elements, (a, b, c))
        cpu.gemm(alpha, left, right, beta, out, Trans.NO, Trans.NO)
        self.spoil(c.rows % 2, out)

    def trmm(self, alpha, t, b, stream, **flags):
        self.triangular("trmm", alpha, t, b, **flags)

    def trsm(self, alpha, t, b, stream, **flags):
        self.triangular("trsm", alpha, t, b, **flags)

    def triangular(self, name, alpha, t, b, *, side, uplo, diag):
        leaf = selecting.select(name, b.dtype, "", (b.rows, b.cols), H200)
        self.chosen = leaf.config
        asked = overrides.get_override("trsm_algorithm")
        if asked is not None:
            best = TRSM_FUSED if b.cols > 32 else RECURSION
            if t.batch == 3:
                best = TRSM_SMALL
            self.chosen = 2 if asked == best else 1
        getattr(cpu, name)(alpha, elements(t), elements(b), side, uplo, Trans.NO, diag)
        self.spoil(False, elements(b))

    def spoil(self, odd, out):
        for config, how in self.broken.items():
            if self.chosen == config:
                how(odd, out)


@pytest.fixture
def stage(monkeypatch):
    monkeypatch.setattr(routine_search, "TRSM_POINTS", {"512x32": (64, 32), "256x256": (64, 64)})
    monkeypatch.setattr(routine_search, "TRSM_SMALL_POINTS", {"64x64x100": (16, 8, 3)})
    return Stage(monkeypatch)


STEMS = {"gemm": "gemm_simt", "trmm": "trmm_leaf", "trsm": "trsm_fma"}


def tune(make, routines=("gemm",), dtypes=("s",), layouts=("nn", "tn"), **options):
    """Run a tuner whose body is ``make()``; returns it and what it found."""
    searches = [
        (STEMS[name], dtype, layout)
        for name in routines for dtype in dtypes for layout in FAMILIES[STEMS[name]].layouts
        if layout in (*layouts, "any")
    ]  # fmt: skip
    resume = options.pop("resume", False)
    worker = options.pop("worker", None) or Inline(make)
    compilers = options.pop("compilers", None) or Compilers()
    monitor = options.pop("monitor", None) or ClockMonitor(Sensor())
    candidates = planning.CandidateOptions("quick", options.pop("sizes", ()))
    made = session.Tuner(
        H200, compilers, worker, Watcher(), SweepLog(H200, "quick", resume), monitor, candidates, **options
    )
    return made, made.run(searches)


def on(stage):
    return lambda: worker_bench.Bench(stage.routine, 0)


def rate(entry):
    """By which a candidate wins; several may have the same."""
    return Stage.rate(SimpleNamespace(**entry.parameters))


def planned(key):
    """The candidates in the order in which a quick run comes to them."""
    return planning.candidate_list(key, H200, "quick", None).configs


def best_of(key):
    return max(planned(key), key=Stage.rate)


def outcomes(made, config):
    parameters = FAMILIES["gemm_simt"].parameters_of(config)
    return {record.outcome for record in made.log.records if record.parameters == parameters}


def test_a_run_finds_the_best_and_the_next_call_uses_it(stage):
    made, found = tune(on(stage))
    best = best_of(("gemm_simt", "s", "nn"))
    assert {size for *_, size in found.entries} == set(sizes_of("gemm_simt"))
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
    with beside(1) as processes:
        made = processes.submit(planning.candidate_list, key, H200, "quick", None).result()
    assert (
        made == planning.candidate_list(key, H200, "quick", None)
        and made.configs
        and made.other_families_best
    )


def test_a_run_may_be_of_some_size_classes_alone(stage):
    _, before = tune(on(stage))
    made, found = tune(on(stage), sizes=("tiny", "few"))
    assert {record.size for record in made.log.records} == {"tiny"}
    assert {(layout, size) for *_, layout, size in found.entries} == {("nn", "tiny"), ("tn", "tiny")}
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


@pytest.mark.parametrize("letter", "dz")
def test_a_family_is_tried_where_it_comes_near_its_rivals(letter):
    """Wherever `gemm_simt` came within a tenth of `gemm_mma` in the recorded sweep, and not everywhere."""
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
    wanted = asked(search_problem._replace(other_families_best=other_families_best))
    assert near <= {measurement.size for measurement in wanted}
    assert len(wanted) < 0.1 * len(asked(search_problem))


def asked(search_problem) -> list:
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
    made, found = tune(on(stage))
    for layout in ("nn", "tn"):
        serving = stage.filed["gemm_simt", "s", layout]["large"]
        assert rate(found.entries["gemm_simt", "s", layout, "large"]) == Stage.rate(serving)
        first = next(record for record in made.log.records if record.layout == layout)
        assert first.parameters == FAMILIES["gemm_simt"].parameters_of(serving)
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
    for serving, left in (({"large": first}, 1 + len(others)), ({}, 1 + len(others))):
        strategy = strategies.beginning_with(serving, strategies.exhaustive)
        assert ActiveSearch(key, search_problem, strategy, SweepLog(H200, "quick")).stop() == left


@pytest.mark.parametrize(("seen", "others"), [(search.SEEN, 1.0), (math.inf, 0.0)])
def test_other_layouts_do_not_wait_for_the_end_of_the_first(stage, monkeypatch, seen, others):
    """But for its likeliest candidates, or for half of the time."""
    keys = [("gemm_simt", "s", layout) for layout in ("nn", "tn")]
    ready = {key: SimpleNamespace(left=prune.candidates(*key, H200).left[:80]) for key in keys}
    monkeypatch.setattr(planning, "candidates", lambda *key: ready[key[:3]])
    monkeypatch.setattr(planning, "in_turns", lambda search_problem: list(search_problem.candidates))
    monkeypatch.setattr(search, "SEEN", seen)
    monkeypatch.setattr(search, "OTHERS", others)
    made, found = tune(on(stage), strategy="likely", budget=1e6)
    layouts = [record.layout for record in made.log.records if record.outcome == "ok"]
    assert layouts.index("tn") < len(layouts) - layouts[::-1].index("nn")
    assert {layout for _, _, layout, _ in found.entries} == {"nn", "tn"}


def test_the_best_leaf_wins(stage):
    _, found = tune(on(stage), ("trsm",), ("d",))
    best = best_of(("trsm_fma", "d", "any"))
    assert rate(found.entries["trsm_fma", "d", "any", "many"]) == Stage.rate(best)


FASTEST = {"512x32": RECURSION, "256x256": TRSM_FUSED, "64x64x100": TRSM_SMALL}


def fastest(found) -> dict[str, str]:
    """Of TRSM in d, by point."""
    return {at: max(rates, key=rates.__getitem__) for (_, at), rates in found.trsm_rates.items()}


@pytest.mark.parametrize("routines", [("trsm",), ("trmm", "trsm")])
def test_each_algorithm_of_trsm_where_it_is_faster(stage, routines):
    made, found = tune(on(stage), routines, ("d",))
    filed = read(tuned_files.user_file(H200.name), H200.name)
    assert fastest(found) == FASTEST and filed.trsm_rates.keys() == found.trsm_rates.keys()
    assert found.entries and made.untried == 0
    selecting.reload()
    for n, rhs, name in ((600, 20, RECURSION), (300, 300, TRSM_FUSED)):
        chosen = trsm_algorithm(DTYPES["d"], n, rhs, 1, H200)
        assert chosen.name == name and chosen.origin.startswith("tuned here")
    # nothing of it is timed again by a run that resumes this one
    again, _ = tune(on(stage), routines, ("d",), resume=True)
    assert len(again.log.records) == len(made.log.records)


def test_a_run_may_be_of_algorithms_alone(stage):
    _, before = tune(on(stage), ("trsm",), ("d",))
    made, found = tune(on(stage), ("trmm", "trsm"), ("d",), stages=("algorithms",))
    assert len(found.trsm_rates) == 3 == len(made.log.records) / 2
    assert not found.entries
    filed = read(tuned_files.user_file(H200.name), H200.name)
    assert filed.entries.keys() == before.entries.keys() and fastest(filed) == FASTEST
    # what there was no time for is told of
    made, found = tune(on(stage), ("trmm", "trsm"), ("d",), stages=("algorithms",), budget=1e-9)
    assert made.untried == 6 and not found


def test_batches_of_trmm_are_not_compared_with_cublas_which_has_none():
    sizes = ("few", "batch64")
    entries = {(stem, "s", "any", size): Entry({}) for stem in ("trsm_fma", "trmm_leaf") for size in sizes}
    timed = []
    runner = SimpleNamespace(
        finish=lambda job, patience: ([1.0], None),
        add_time=lambda key, size, *_: timed.append((key[0], size)),
    )
    routine_search.time_vendor(runner, Document(H200.name, entries))
    assert timed == [("trsm_fma", "few"), ("trsm_fma", "batch64"), ("trmm_leaf", "few")]


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
    done, wanted, best = seen[-1]
    assert done == wanted == len(seen)
    top = max(record.tflops for record in made.log.timed(("gemm_simt", "s", "nn")))
    assert best == f"gemm_simt s nn, best {top:.1f} TFLOP/s"


def flip_one(odd, out):
    out[0, -1, -1] += 1


def write_past(odd, out):
    ctypes.c_char.from_address(out.ctypes.data - 1).value = b"\0"


def only_at_odd(odd, out):
    if odd:
        flip_one(odd, out)


@pytest.mark.parametrize("how", [flip_one, write_past, only_at_odd])
def test_a_candidate_that_is_wrong_never_wins(stage, how):
    fastest = max(planning.candidates("gemm_simt", "s", "nn", H200, "quick").left, key=Stage.rate)
    stage.broken = {fastest: how}
    made, found = tune(on(stage), layouts=("nn",))
    parameters = FAMILIES["gemm_simt"].parameters_of(fastest)
    assert found.entries and all(entry.parameters != parameters for entry in found.entries.values())
    assert "wrong" in outcomes(made, fastest)
    # nor when the packaged values are computed from the sweep
    assert winners(sweep_file.read_sweep(made.log.path), H200.name).entries == found.entries


def test_a_winner_that_cannot_run_at_odd_extents_is_out_and_the_run_ends(stage):
    """Not only if it is wrong there."""

    def refuse(odd, out):
        if odd:
            raise PyblasgpuError("launch refused")

    fastest = max(planning.candidates("gemm_simt", "s", "nn", H200, "quick").left, key=Stage.rate)
    stage.broken = {fastest: refuse}
    made, found = tune(on(stage), layouts=("nn",))
    parameters = FAMILIES["gemm_simt"].parameters_of(fastest)
    assert found.entries and all(entry.parameters != parameters for entry in found.entries.values())
    assert "error" in outcomes(made, fastest)


def test_winners_are_verified_again_while_other_searches_go_on(stage):
    """At the end of a run, when its budget is spent, hundreds of kernels would be left to compile."""
    jobs = []

    def body():
        made = worker_bench.Bench(stage.routine, 0)
        return lambda job: jobs.append((job.layout, job.verify)) or made(job)

    _, found = tune(body, layouts=("nn", "tn"))
    odd = [number for number, (_, verify) in enumerate(jobs) if verify == ("odd",)]
    timed = [number for number, (layout, verify) in enumerate(jobs) if layout == "tn" and verify != ("odd",)]
    assert odd[0] < timed[0] and len(found.entries) > 2
    winning = {
        (layout, *sorted(entry.parameters.items())) for (_, _, layout, _), entry in found.entries.items()
    }
    assert len(odd) == len(winning)  # each once


def test_a_candidate_that_writes_around_its_operands_is_noticed(stage):
    """At the sizes at which it is timed, where verification did not run it."""

    def write_far(odd, out):
        if out.shape[1:] == (256, 256):
            ctypes.memset(stage.c_arena().address - 1, 0, 1)

    fastest = max(planning.candidates("gemm_simt", "s", "nn", H200, "quick").left, key=Stage.rate)
    stage.broken = {fastest: write_far}
    body = worker_bench.Bench(stage.routine, 0)
    stage.c_arena = lambda: body.workload.arenas["C", "s"]
    made, found = tune(lambda: body, layouts=("nn",))
    assert "spoils" in outcomes(made, fastest)
    assert all(e.parameters != FAMILIES["gemm_simt"].parameters_of(fastest) for e in found.entries.values())


def test_a_candidate_that_raises_is_recorded_and_the_run_goes_on(stage):
    def fail(odd, out):
        raise PyblasgpuError("launch refused")

    fastest = max(planning.candidates("gemm_simt", "s", "nn", H200, "quick").left, key=Stage.rate)
    stage.broken = {fastest: fail}
    made, found = tune(on(stage), layouts=("nn",))
    failed = [r for r in made.log.records if r.outcome == "error"]
    assert [record.detail for record in failed] == ["launch refused"] and found.entries


def test_a_candidate_that_takes_the_device_down_is_out_and_the_worker_replaced(stage):
    def lose(odd, out):
        stage.memory.alive = False
        raise PyblasgpuError("illegal address")

    def fresh():
        stage.memory.alive = True
        return worker_bench.Bench(stage.routine, 0)

    bad = planning.candidates("gemm_simt", "s", "nn", H200, "quick").left[1]
    stage.broken = {bad: lose}
    worker = Inline(fresh)
    made, found = tune(None, layouts=("nn",), worker=worker)
    assert outcomes(made, bad) == {"crash"} and worker.replaced == 1
    assert len(made.log.counts) == 2 and found.entries


def test_a_device_that_is_lost_for_good_ends_the_run_and_the_records_are_kept(stage):
    def lose(odd, out):
        stage.memory.alive = False
        raise PyblasgpuError("illegal address")

    made = []

    def once():
        if made:
            raise PyblasgpuError("the worker cannot start")
        made.append(True)
        return worker_bench.Bench(stage.routine, 0)

    stage.broken = {planned(("gemm_simt", "s", "nn"))[1]: lose}
    with pytest.raises(PyblasgpuError, match=r"cannot start; what was measured is in .*--resume"):
        tune(once, layouts=("nn",))
    assert SweepLog(H200, "quick", resume=True).counts.total() == 0
    assert {"ok", "crash"} <= {r.outcome for r in SweepLog(H200, "quick", resume=True).records}


def test_what_the_compiler_speaks_against_is_not_run(stage):
    spilling = Resources(255, 0, 8, 8, 0)
    left = planning.candidates("gemm_simt", "s", "nn", H200, "quick").left
    compilers = Compilers(lambda stem, config: spilling if config == left[0] else GOOD)
    made, _ = tune(on(stage), layouts=("nn",), compilers=compilers)
    assert outcomes(made, left[0]) == {"spills"} and made.log.counts["spills"] == 1
    (dropped,) = [record for record in made.log.records if record.outcome == "spills"]
    assert dropped.numbers["spill_bytes"] == 16 and dropped.numbers["registers"] == 255


def test_the_budget_ends_a_run(stage):
    made, found = tune(on(stage), budget=1e-9)
    assert not found.entries and not made.log.records
    assert made.untried + made.unbegun > 0 and not tuned_files.user_file(H200.name).exists()


def interrupt(odd, out):
    raise KeyboardInterrupt


def test_an_interrupted_run_keeps_what_it_has_and_is_resumed(stage):
    order = planned(("gemm_simt", "s", "nn"))
    stage.broken = {order[2]: interrupt}
    made, found = tune(on(stage), layouts=("nn",))
    kept = max(order[:2], key=Stage.rate)
    entry = found.entries["gemm_simt", "s", "nn", "large"]
    assert rate(entry) == Stage.rate(kept)
    assert read(tuned_files.user_file(H200.name)).entries == read_back(found)
    assert made.watcher.said == ["interrupted: what was measured so far decides"]

    stage.broken, before = {}, stage.calls.copy()
    again, all_found = tune(on(stage), layouts=("nn",), resume=True)
    assert stage.calls[order[0]] <= before[order[0]] + 1  # once as the reference
    assert stage.calls[order[1]] == before[order[1]] and stage.calls[order[2]] > 0
    best = all_found.entries["gemm_simt", "s", "nn", "large"]
    assert rate(best) == max(map(Stage.rate, order))
    assert again.log.records[: len(made.log.records)] == made.log.records


class Interrupted(Inline):
    """Ctrl-C is pressed at a moment of the third job."""

    def __init__(self, make, moment):
        super().__init__(make)
        self.moment, self.jobs, self.times = moment, 0, 0

    def press(self, moment):
        if (self.jobs, self.moment) == (3, moment):
            self.moment = None
            signal.raise_signal(signal.SIGINT)

    def send(self, job, patience=None):
        self.jobs += 1
        self.press("before it is sent")
        super().send(job, patience)

    def receive(self, timeout):
        answer = super().receive(timeout)
        self.times += isinstance(answer, worker_bench.Timing)
        self.press("at its end" if answer == DONE else "with an answer")
        return answer


@pytest.mark.usefixtures("default_sigint")
@pytest.mark.parametrize("moment", ["before it is sent", "with an answer", "at its end"])
def test_ctrl_c_loses_no_job_and_no_answer(stage, moment):
    """The worker would be waited for in vain had a job not been sent, or its end been lost."""
    worker = Interrupted(on(stage), moment)
    made, _ = tune(None, layouts=("nn",), worker=worker)
    timed = [record for record in made.log.records if record.outcome in ("ok", "reference")]
    assert worker.moment is None and not worker.busy
    assert made.watcher.said == ["interrupted: what was measured so far decides"]
    assert len(timed) == worker.times and made.done + made.untried == len(planned(("gemm_simt", "s", "nn")))


def test_a_resumed_run_decides_of_its_own_searches(stage):
    """The winners of others were put into the file, and verified, by the run that made them."""
    _, first = tune(on(stage))
    again, found = tune(on(stage), layouts=("tn",), resume=True)
    assert {layout for _, _, layout, _ in found.entries} == {"tn"}
    assert {record.layout for record in again.log.records} == {"nn", "tn"}
    kept = read(tuned_files.user_file(H200.name)).entries
    assert {key for key in kept if key[2] == "nn"} == {key for key in first.entries if key[2] == "nn"}


def test_only_the_same_toolchain_and_effort_are_resumed(stage, monkeypatch):
    tune(on(stage), layouts=("nn",))
    assert SweepLog(H200, "quick", resume=True).records and not SweepLog(H200, "normal", resume=True).records
    assert not SweepLog(H200, "quick").records
    monkeypatch.setattr(sweep_log, "toolchain", lambda: "another")
    assert not SweepLog(H200, "quick", resume=True).records


def test_failures_are_resumed_too(stage):
    left = planning.candidates("gemm_simt", "s", "nn", H200, "quick").left
    stage.broken = {left[0]: flip_one}
    tune(on(stage), layouts=("nn",))
    calls = Counter()
    stage.broken = {left[0]: lambda odd, out: calls.update([odd])}
    again, _ = tune(on(stage), layouts=("nn",), resume=True)
    assert not calls and again.log.counts.total() == 0


def test_each_record_is_in_the_file_at_once(stage):
    def look(odd, out):
        path = sweep_file.sweep_file(H200.name)
        lines.append(len(path.read_bytes().splitlines()) if path.exists() else 0)

    lines = []
    order = planned(("gemm_simt", "s", "nn"))
    stage.broken = {order[1]: look}
    tune(on(stage), layouts=("nn",))
    # after the first candidate and the reference: verified in two calls, then timed, a line a class
    first = len(sizes_of("gemm_simt")) + 1
    assert sorted(set(lines))[:3] == [first, first + 1, first + 2]


def test_before_and_after_are_timed_if_asked_for(stage):
    made, found = tune(on(stage), layouts=("nn",), curves=True)
    timed = [(r.outcome, r.extents[0]) for r in made.log.records if r.outcome in ("before", "after")]
    assert timed == [("before", 32), ("before", 64), ("after", 32), ("after", 64)]
    assert winners(made.log.records, H200.name).entries == found.entries


def test_the_reference_shows_a_drift(stage, monkeypatch):
    monkeypatch.setattr("pyblasgpu.tuning.clock_monitor.REFERENCE_EVERY", 0.0)
    monkeypatch.setattr("pyblasgpu.tuning.clock_monitor.SAMPLE_EVERY", 0.0)
    slow = iter([1.0] * (len(sizes_of("gemm_simt")) + 1) + [2.0] * 1000)
    plain = Stage.rate
    monkeypatch.setattr(Stage, "rate", staticmethod(lambda chosen: plain(chosen) / next(slow)))
    states = State(busy=30, processes=1), State(limits=("power cap",), processes=3)
    made, _ = tune(on(stage), layouts=("nn",), monitor=ClockMonitor(Sensor(*states)))
    said = "; ".join(made.monitor.complaints())
    assert "30 % busy" in said and "other processes were on the device: 2" in said
    assert "power cap held the clocks down in 100% of" in said and "the run drifted" in said
    assert any(record.outcome == "reference" for record in made.log.records)


def test_a_calm_run_has_no_complaints(stage, monkeypatch):
    monkeypatch.setattr("pyblasgpu.tuning.clock_monitor.REFERENCE_EVERY", 0.0)
    made, _ = tune(
        on(stage), layouts=("nn",), monitor=ClockMonitor(Sensor(State(processes=0), State(processes=1)))
    )
    assert made.monitor.references and not made.monitor.complaints()


# -------------------------------------------------------------------------- a process that is taken down


@pytest.mark.parametrize("mishap", ["exit", "hang", "wrong", "spoils"])
def test_a_mishap_in_the_process_is_marked_and_the_sweep_goes_on(mishap, monkeypatch):
    every = planning.candidates
    monkeypatch.setattr(planning, "candidates", lambda *key: SimpleNamespace(left=every(*key).left[::8]))
    monkeypatch.setattr(tuned_files, "serving", lambda *key: {})
    left = planning.candidates("gemm_simt", "s", "nn", H200, "quick").left
    bad = max(left, key=Stage.rate)
    tile = (bad.BLK_M, bad.BLK_N)
    with Worker(fake_worker.device, ({tile: mishap},), patience=1.0) as worker:
        made, found = tune(None, layouts=("nn",), worker=worker)
    outcome = {"exit": "crash", "hang": "hang"}.get(mishap, mishap)
    assert outcomes(made, bad) == {"ok", outcome}
    good = max(Stage.rate(c) for c in left if tile != (c.BLK_M, c.BLK_N))
    assert rate(found.entries["gemm_simt", "s", "nn", "large"]) == good
    mishaps = sum(tile == (c.BLK_M, c.BLK_N) for c in left)
    assert worker.replaced == (mishaps if mishap in ("exit", "hang") else 0)
    timed = made.log.timed(("gemm_simt", "s", "nn"))
    variants = {str(record.parameters) for record in timed if record.parameters["through_l1"]}
    assert variants and made.log.counts == {"ok": len(left) - mishaps + len(variants), outcome: mishaps}


def test_tuners_at_once_lose_nothing(home):
    """Records and winners of several runs on one device, as of several processes: the locks are of files."""

    def one(dtype):
        made, found = tune(fake_worker.device, dtypes=(dtype,), layouts=("nn",))
        done.append((made, found))

    done = []
    threads = [threading.Thread(target=one, args=(dtype,)) for dtype in "scz"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    recorded = sweep_file.read_sweep(sweep_file.sweep_file(H200.name))
    assert len(recorded) == sum(len(made.log.records) for made, _ in done)
    kept = read(tuned_files.user_file(H200.name))
    assert kept.entries == {key: entry for _, found in done for key, entry in read_back(found).items()}


def read_back(found):
    """The entries as a file keeps them, rates rounded."""
    from pyblasgpu.database import dumps, parse

    return parse(dumps(found).encode()).entries


INTERRUPTED = """
from fake_worker import Compilers, Sensor, Watcher, device
from pyblasgpu.gpu.device import known
from pyblasgpu.tuning.clock_monitor import ClockMonitor
from pyblasgpu.tuning.sweep_log import SweepLog
from pyblasgpu.tuning.session import Tuner
from pyblasgpu.tuning.worker import Worker
import sys
h200 = known("h200")
with Worker(device, ({}, float(sys.argv[1]))) as worker:
    log = SweepLog(h200, "quick", "resume" in sys.argv)
    tuner = Tuner(h200, Compilers(), worker, Watcher(), log, ClockMonitor(Sensor()))
    found = tuner.run([("gemm_simt", "s", "nn")])
print(len(found.entries), worker.replaced, tuner.untried, *tuner.watcher.said)
"""


def restore_sigint():
    """What a shell runs in the background ignores them, and so would what that starts."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def test_ctrl_c_in_a_terminal_keeps_everything_and_the_run_goes_on(home):
    """The signal goes to every process of the group, as a terminal sends it."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    arguments = [sys.executable, "-c", INTERRUPTED]
    process = subprocess.Popen(  # so slow that it cannot have ended however late the signal comes
        [*arguments, "0.2"], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        start_new_session=True, preexec_fn=restore_sigint,
    )  # fmt: skip
    path = sweep_file.sweep_file(H200.name)
    for _ in range(600):
        if path.exists() and len(path.read_bytes().splitlines()) > 2 * len(sizes_of("gemm_simt")):
            break
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGINT)
    said, complaints = process.communicate(timeout=60)
    entries, replaced, untried, *words = said.split()
    assert process.returncode == 0 and not complaints
    assert int(entries) == len(sizes_of("gemm_simt")) and int(replaced) == 0 and int(untried) > 0
    assert words[0] == "interrupted:" and read(tuned_files.user_file(H200.name)).entries
    before = sweep_file.read_sweep(path)
    done = subprocess.run(
        [*arguments, "0.02", "resume"], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout.split()[2] == "0"
    after = [record for record in sweep_file.read_sweep(path) if record.outcome == "ok"]
    assert len(after) == len({(record.candidate, record.size) for record in after}) > len(before)


# --------------------------------------------------------------------------------------- the command line


def options(**changes):
    given = {"routine": ("gemm", "trsm"), "dtype": ("s",), "effort": "quick", "strategy": "exhaustive",
             "budget": None, "resume": False, "report": None, "dry_run": False, "device": None, "json": False,
             "compile": False}  # fmt: skip
    return SimpleNamespace(**{**given, **changes})


@pytest.fixture
def machine(stage, monkeypatch):
    """A machine with one device, for the command."""

    class Here(Inline):
        def __init__(self, make, arguments):
            super().__init__(lambda: make(*arguments))

        def __enter__(self):
            return self

        def __exit__(self, *_):
            pass

    class AtOnce(Compilers):
        def __init__(self, cc):
            super().__init__()

        __enter__, __exit__ = Here.__enter__, Here.__exit__

    monkeypatch.setattr(tune_command, "Worker", Here)
    monkeypatch.setattr(tune_command, "Compilers", AtOnce)
    monkeypatch.setattr(tune_command, "Sensor", lambda ordinal: Sensor())
    stage.built = []
    monkeypatch.setattr(tune_command.build, "build", lambda sources, *_, **__: stage.built.extend(sources))
    return stage


def test_the_command_shows_the_winners(machine, capsys):
    assert tune_command.main(options(), machine.routine) == 0
    said = capsys.readouterr()
    assert "gemm_simt" in said.out
    assert "strsm: trsm_fused at 256x256" in said.out and "strsm: recursion at 512x32" in said.out
    assert str(tuned_files.user_file(H200.name)) in said.out
    assert tune_command.main(options(json=True), machine.routine) == 0
    said = json.loads(capsys.readouterr().out)
    assert {winner["layout"] for winner in said["winners"]} >= {"nn", "nt", "tn", "tt"}
    rates = {row.pop("point"): row for row in said["trsm_rates"] if row.pop("dtype")}
    assert {point: max(each, key=each.__getitem__) for point, each in rates.items()} == FASTEST


def test_the_command_may_be_of_algorithms_alone(machine, capsys):
    assert tune_command.main(options(stage=("algorithms",), routine=("trmm", "trsm")), machine.routine) == 0
    said = capsys.readouterr().out
    assert "strsm: trsm_fused at 256x256" in said
    assert str(tuned_files.user_file(H200.name)) in said


def test_the_command_says_what_is_left_and_what_is_doubtful(machine, capsys, monkeypatch):
    monkeypatch.setattr(tune_command, "Sensor", lambda ordinal: Sensor(State(busy=60)))
    assert tune_command.main(options(budget=1e-9), machine.routine) == 1
    said = capsys.readouterr().err
    assert "searches not begun; --resume goes on" in said and "doubtful: the device was 60 % busy" in said


def test_the_command_writes_a_report(machine, capsys, tmp_path):
    pytest.importorskip("matplotlib")
    folder = tmp_path / "report"
    assert tune_command.main(options(routine=("gemm",), report=str(folder)), machine.routine) == 0
    names = {path.name for path in folder.iterdir()}
    assert {"report.md", "report.json", "distribution.svg", "over_n.svg"} <= names


# -------------------------------------------------------------------------------------- operands, timing


def test_a_rotation_has_operands_of_its_own_for_each_call(stage, monkeypatch):
    monkeypatch.setattr(measure, "MOST_CALLS", 3)
    seen = []
    work = measure.Workload(0, 0).rotation(
        lambda alpha, t, b, stream, **flags: seen.append((t.pointer, b.pointer, elements(b).copy())),
        "trsm", DTYPES["d"], "any", (8, 4),
    )  # fmt: skip
    assert len(work.calls) == 3
    work.restore(3)
    for call in work.calls:
        call()
    assert len({t for t, *_ in seen}) == len({b for _, b, _ in seen}) == 3
    assert all(np.array_equal(seen[0][2], b) for *_, b in seen)  # the same numbers


@pytest.mark.parametrize("layout", T_LAYOUTS)
def test_a_triangle_lies_as_asked(stage, layout):
    """Column- or row-major, on either side, NaN beyond it; the kernel meets it as `T_LAYOUTS` says."""
    seen = []
    work = measure.Workload(0, 0).rotation(
        lambda alpha, t, b, stream, **flags: seen.append((t, b, flags)), "trsm", DTYPES["d"], layout, (8, 4),
    )  # fmt: skip
    work.calls[0]()
    ((t, b, flags),) = seen
    on_left = layout.startswith("left")
    assert flags["side"] is (Side.LEFT if on_left else Side.RIGHT)
    assert (t.row_stride == 1) == layout.endswith("colmajor") and b.row_stride == 1
    assert (b.rows, b.cols) == ((8, 4) if on_left else (4, 8))
    made = fused_operands(t, b, flags["side"], flags["uplo"])
    assert (made.layout, made.triangle) == T_LAYOUTS[layout]
    ones = np.ones((8, 8), bool)
    beyond = np.triu(ones, 1) if flags["uplo"] is Uplo.LOWER else np.tril(ones, -1)
    assert np.array_equal(np.isnan(elements(t)[0]), beyond)


@pytest.mark.parametrize("layout", ["nn", "tt"])
@pytest.mark.parametrize("batch", [(), (3,)])
@pytest.mark.parametrize(("pad", "shift"), [(0, 0), (2, 1)])
def test_products_lie_as_asked(stage, layout, batch, pad, shift):
    seen = []
    load = measure.Workload(0, 0)
    made = load.products(lambda *call: seen.append(call), DTYPES["d"], layout, (9, 7, 5, *batch), pad, shift)
    for call in made.calls:
        call()
    for _, a, b, _, c, _ in seen:
        leads = {"nn": (9, 5), "tt": (5, 7)}[layout]
        inner = (a.row_stride, b.row_stride) if layout == "nn" else (a.col_stride, b.col_stride)
        outer = (a.col_stride, b.col_stride) if layout == "nn" else (a.row_stride, b.row_stride)
        assert inner == (1, 1) and outer == tuple(lead + pad for lead in leads)
        assert (c.row_stride, c.col_stride) == (1, 9 + pad)
        assert [(x.pointer - seen[0][4].pointer) % 256 for x in (c, seen[0][4])] == [0, 0]
        assert [x.batch for x in (a, b, c)] == [*(batch or (1,)) * 3]
        assert c.batch_stride == (7 * (9 + pad) if batch else 0)
        elements(c)[...] = 0
    first = load.arenas["C", "d"].address
    assert seen[0][4].pointer == first + 8 * shift
    load.check()  # every element is inside


def test_restoring_undoes_what_calls_in_place_have_done(stage):
    def ruin(alpha, t, b, stream, **flags):
        values.append(elements(b).copy())
        elements(b)[...] = 0

    values = []
    work = measure.Workload(0, 0).rotation(ruin, "trmm", DTYPES["z"], "any", (8, 4))
    for _ in range(2):
        work.restore(1)
        work.calls[0]()
    assert np.array_equal(*values) and values[0].all()


def test_memory_that_is_short_is_taken_from_other_problems(stage, monkeypatch):
    load, plain = measure.Workload(0, 0), stage.memory.allocate
    load.rotation(print, "gemm", DTYPES["s"], "nn", (8, 8, 8))
    full = iter([True])

    def allocate(nbytes, device, stream):
        if next(full, False):
            raise MemoryError("out of memory")
        return plain(nbytes, device, stream)

    monkeypatch.setattr(stage.memory, "allocate", allocate)
    load.rotation(print, "gemm", DTYPES["d"], "tt", (8, 8, 8))
    assert {dtype for _, dtype in load.arenas} == {"d"} and len(stage.memory.held) == 3
    load.release()
    assert not stage.memory.held


def test_an_arena_repeats_its_chunk(stage):
    arena = measure.Arena(100, np.arange(7, dtype=np.uint8), 0, 0)
    held = np.ctypeslib.as_array((ctypes.c_uint8 * 100).from_address(arena.address))
    assert np.array_equal(held, np.resize(np.arange(7), 100)) and arena.intact()
    ctypes.memset(arena.address + 100, 0, 1)
    assert not arena.intact()
