"""The papers' experiments on stand-ins for compilers and device: what they time, write and stop at."""

from __future__ import annotations

import json
import sys
import zlib
from contextlib import nullcontext
from itertools import count
from types import SimpleNamespace

import fake_worker
import numpy as np
import pytest
from tuner_stage import Inline

from pyblasgpu.gpu.build.compile import Resources
from pyblasgpu.gpu.device import known
from pyblasgpu.tuning.worker_bench import Job, Timing
from tuning.papers import (
    atlas,
    cache_edge,
    device_time,
    everything,
    experiment,
    kblas,
    kblas_figure9,
    kurzak_timed,
    li,
    matsumoto,
    plasma,
    reads,
    steinsland,
    study,
    three_products,
)
from tuning.papers.timings import FILE, Timings

H100 = known("h100")


class Clock:
    """Seconds go by as they are read."""

    def __init__(self, step=0.0):
        self.now, self.step = 0.0, step

    def __call__(self):
        self.now += self.step
        return self.now


@pytest.fixture
def runs(monkeypatch):
    """``runs(...)``: what stands for `on_device`, in which large tiles are fast."""

    def make(
        broken=None, report=lambda stem, config: fake_worker.GOOD, until=float("inf"), step=0.0, timings=None
    ):
        worker = Inline(lambda: fake_worker.device(broken))
        return experiment.Experiment(H100, fake_worker.Compilers(report), worker, until, Clock(step), timings)

    return make


def body(job):
    """A device on which every choice, and cuBLAS, has a time of its own."""
    kind = zlib.crc32(repr((job.routine, job.overrides, job.vendor)).encode()) % 7
    for number, (extents, _) in enumerate(job.problems):
        yield Timing(number, (1 + kind) * 1e-13 * float(np.prod(extents)))


def of(letter, layout, most=None):
    return kurzak_timed.space(letter, layout, known("fermi"), most)


def spilling(stem, config):
    spills = 8 if config.BLK_K == 16 else 0
    return Resources(registers=64, stack_bytes=0, spill_stores=spills, spill_loads=0, shared_bytes=0)


def test_the_variants_of_a_type_are_timed_and_the_fastest_wins(runs):
    result = kurzak_timed.experiment(runs(report=spilling), "d", "nn", of("d", "nn"), 512, (256, 512))
    assert result["variants"] == 66 and result["refused"] == 0
    assert result["outcomes"]["ok"] == len(result["tflops"]) and result["outcomes"]["spills"] > 0
    assert result["tflops"] == sorted(result["tflops"], reverse=True)
    assert result["winner"]["BLK_K"] != 16 and set(result["curve"]) == {"256", "512"}
    assert result["vendor"] == {}  # there is none
    assert next(iter(result["tiles"].values())) == max(result["tiles"].values()) == result["tflops"][0]
    assert "32×32" in result["tiles"] and {*result["low_rank"]} == {"64", "32"}
    assert all(low["tuned"] >= low["default"] for low in result["low_rank"].values())
    shown = kurzak_timed.low_table([result, {}], "a card")
    assert shown.row_count == 1 and "%" in next(iter(shown.columns[3].cells))
    none_timed = {key: result[key] for key in ("dtype", "layout", "variants", "size")} | {"tflops": []}
    assert kurzak_timed.table([result, none_timed], "a card").row_count == 2


def test_section_8_alone_leaves_table_2_as_it_is(runs):
    result = kurzak_timed.tiles(runs(), "d", "nn", of("d", "nn"), 512)
    assert result["timed"] == 66 and {*result["low_rank"]} == {"64", "32"}
    assert kurzak_timed.low_table([result], "a card").row_count == 1
    made = {"device": "a card", "results": [result]}
    assert kurzak_timed.table([result], "a card").row_count == 0
    assert not any(figure.curves for figure in kurzak_timed.STUDY.figures(made, None))
    assert len(kurzak_timed.STUDY.tables(made, None)) == 1


def test_a_time_limit_ends_a_search(runs):
    run = runs(until=10.0, step=1.0)
    result = kurzak_timed.experiment(run, "s", "tt", of("s", "tt"), 512, (256,))
    assert 0 < sum(result["outcomes"].values()) < result["variants"]


def test_each_part_of_a_search_has_its_time(runs):
    run = runs(until=12.0, step=1.0)
    limits = [run.until for _ in run.in_turn("abc")]
    assert limits == [1 + 11 / 3, 2 + 10 / 2, 12.0] and run.until == 12.0


def test_what_is_compiled_ahead_waits_for_its_turn(runs):
    run = runs()
    first, second = (of(letter, "nn", 3).configs for letter in "sd")
    run.prepare("gemm_simt", [*first, *second])
    assert [each.config for each in run.times("gemm_simt", "nn", second, [(64, 64, 64)])] == second
    assert not run.compilers.pending
    assert [each.config for each in run.times("gemm_simt", "nn", first, [(64, 64, 64)])] == first


def test_what_was_timed_is_not_timed_again(runs, tmp_path):
    """Nor what failed; a line that was cut off, and those of another device, count for nothing."""
    path, configs = tmp_path / FILE, of("s", "nn", 6).configs
    broken = {(configs[0].BLK_M, configs[0].BLK_N): "wrong"}
    sizes = [(64, 64, 64), (128, 128, 128)]

    def outcomes(run, until=float("inf")):
        run.until = until
        return {each.config: each[1:] for each in run.times("gemm_simt", "nn", configs, sizes)}

    first = outcomes(runs(broken, timings=Timings(path, "a card", "text")))
    assert len(first) == 6 and {outcome for outcome, _ in first.values()} == {"ok", "wrong"}
    path.write_text(path.read_text() + '{"device": "a card", "ker')
    again = Timings(path, "a card", "text")
    assert outcomes(runs({}, timings=again), until=0.0) == first
    assert len(again) == sum(len(rates) or 1 for _, rates in first.values())
    assert not Timings(path, "another", "text") and not Timings(path, "a card", "other text")


def test_an_experiment_that_was_cut_short_goes_on(runs, tmp_path):
    cut, results = tmp_path / FILE, []
    for until in (8.0, float("inf")):
        run = runs(until=until, step=1.0, timings=Timings(cut))
        results.append(steinsland.experiment(run, "s", "nn", (64, 128), 3))
    timed = [sum(scheme["outcomes"].get("ok", 0) for scheme in each["schemes"].values()) for each in results]
    assert 0 < timed[0] < timed[1] == 3 * len(steinsland.SCHEMES)
    assert results[0]["ours"] == results[1]["ours"]
    assert {*results[1]["appendix_a"]} == {*steinsland.APPENDIX_A}
    labels = [*steinsland.table(results[1:], "a card").columns[1].cells]
    assert "Appendix A's of 'none'" in labels


def test_a_rate_of_this_process_is_remembered(runs, capsys):
    def fails():
        raise NotImplementedError("no such panel")

    run, job = runs(), Job("potrf", "d", "any")
    assert run.remembered(job, (8, 8), lambda: 2.0) == run.remembered(job, (8, 8), lambda: 3.0) == 2.0
    assert run.remembered(job, (7, 7), fails) is None and "no such panel" in capsys.readouterr().err
    run.until = 0.0
    assert run.remembered(job, (9, 9), lambda: 3.0) is None


def test_the_first_kernels_are_ready_before_the_clock_starts(runs):
    run, kernels = runs(), [("gemm_simt", config) for config in of("s", "nn", 5).configs]
    run.begin([*kernels, *kernels])
    assert len(run.compiled("gemm_simt", [config for _, config in kernels])) == 5


def test_a_call_on_arrays_is_timed_by_events_behind_other_work(monkeypatch):
    """Two calls are not timed; the slower the host, the more is written before a call."""
    fills, begun, times = [0], [], iter([9.0, 9.0, 3.0, 1.0, 2.0])

    class Busy:
        def fill(self, value):
            fills[-1] += 1

    def clock(run):
        begun.append(fills[-1])
        run()
        fills.append(0)
        return next(times)

    monkeypatch.setitem(sys.modules, "cupy", SimpleNamespace(uint8="u1", empty=lambda *_: Busy()))
    monkeypatch.setattr(device_time, "device_clock", lambda: clock)
    monkeypatch.setattr(device_time, "host_clock", lambda run: run() or 1e-3)
    called = []
    assert device_time.device_seconds(called.append, [np.ones(2)], repeats=3) == 2.0
    assert len(called) == 5 and begun == [1] + [1 + 19] * 4


def test_a_raster_is_kept_where_it_is_worth_it():
    def rows(**rates):
        return [{"dtype": "d", "raster": int(r[1:]), "tflops": points} for r, points in rates.items()]

    assert cache_edge.best_raster(rows(r0={"8": 10.0}, r4={"8": 10.2}, r8={"8": 11.0}), "d") == 8
    assert cache_edge.best_raster(rows(r0={"8": 10.0}, r4={"8": 10.05}), "d") == 0
    assert cache_edge.best_raster(rows(r4={"8": 10.05}), "d") == 0
    assert cache_edge.best_raster(rows(r0={"8": 1.0}, r4={"9": 10.0}), "d") == 0
    assert cache_edge.best_raster([], "d") == 0


def test_what_fails_on_the_device_has_no_rate(runs):
    configs = steinsland.candidates("shared, private", "s", "nn", H100)[:3]
    broken = {(configs[0].BLK_M, configs[0].BLK_N): "wrong"}
    first, *_ = runs(broken).times("gemm_simt", "nn", configs, [(64, 64, 64)])
    assert (first.outcome, first.rates) == ("wrong", {})


SCRIPTS = {
    "kurzak": (kurzak_timed, "--layout nn --most 2 --sizes 64,128"),
    "steinsland": (steinsland, "--layout nn --most 2 --sizes 64,128"),
    "matsumoto": (matsumoto, "--most 9 --first 64,128 --step 64 --largest 256"),
    "li": (li, "--orders 512,1024"),
    "atlas": (atlas, "--routine trsm --orders 256,512 --most 1"),
    "plasma": (plasma, "--orders 256,512"),
    "kblas": (kblas, "--orders 256,512"),
    "kblas_figure9": (kblas_figure9, "--sizes 256,512"),
    "reads": (reads, "--n 256"),
    "three_products": (three_products, "--dtype c --sizes 64,128"),
    "cache_edge": (cache_edge, "--sizes 256,512 --rasters 4,8"),
}


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_writes_json_table_and_figure(name, monkeypatch, tmp_path, capsys):
    pytest.importorskip("matplotlib")
    script, options = SCRIPTS[name]
    timings = Timings(tmp_path / FILE, H100.name, "text")
    run = experiment.Experiment(H100, fake_worker.Compilers(), Inline(lambda: body), timings=timings)
    monkeypatch.setattr(study, "on_device", lambda *_: nullcontext(run))
    monkeypatch.setattr(study.devices, "present", lambda text: H100)
    for function in ("factor_rate", "interchanged"):
        monkeypatch.setattr(plasma, function, lambda *_: 1.0)
    for module in (kblas_figure9, reads):
        monkeypatch.setattr(module, "rate", lambda *_: 1.0)
    words = ["--dtype", "d", *options.split(), "--out", str(tmp_path)]
    assert script.main(words) == 0
    shown = capsys.readouterr().out
    assert H100.name in shown and (tmp_path / f"{name}.txt").read_text() == shown
    made = json.loads((tmp_path / f"{name}.json").read_text())
    assert made["paper"] == name and made["device"] == H100.name and made["results"]
    assert list(tmp_path.glob("*.svg")) or name in ("reads", "three_products")
    monkeypatch.setattr(study, "draw", lambda *_: None)  # once is enough
    assert script.main([*words, "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == made
    monkeypatch.setattr(study.devices, "present", None)
    assert script.main([*words, "--json", "--recorded"]) == 0
    assert json.loads(capsys.readouterr().out) == made


def test_the_three_steps_keep_the_best():
    asked = []

    def kept(job):
        asked.append(job)
        return body(job)

    run = experiment.Experiment(H100, fake_worker.Compilers(), Inline(lambda: kept))
    result = matsumoto.experiment(run, "s", (64, 128), 64, 192, 60)
    last = [best for job in asked if job.overrides for extents, best in job.problems if extents[0] == 192]
    assert (
        np.isinf(last[0]) and np.isfinite(last).sum() >= matsumoto.FINALISTS - 1
    )  # what is slow is timed less
    rates = [row["tflops"] for row in result["finalists"]]
    assert rates == sorted(rates, reverse=True) and sum(result["outcomes"].values()) == 60
    layouts = [row["layout"] for row in result["finalists"]]
    assert set(layouts) == {"as they lie", "CBL, CBL", "CBL, ROW", "RBL, RBL"}
    assert layouts.count("as they lie") <= matsumoto.FINALISTS
    assert {row["shared"] for row in result["finalists"]} == {"AB", "A", "B", "-"}
    assert set(result["finalists"][0]["curve"]) == {"64", "128", "192"}
    assert "cuBLAS TN" in result["curves"] and "NN, packed" in result["curves"]


def test_a_sample_shows_what_a_smaller_one_misses(runs):
    result = matsumoto.sample(runs(), "s", (64, 128), 60)
    rates = result["tflops"]["128"]
    assert result["kernels"] > 60 == len(rates) == sum(result["outcomes"].values())
    assert result["best"]["128"]["tflops"] >= max(rates)
    shown = matsumoto.sample_table([result, {"best": {}, "dtype": "s"}], "a card")
    assert shown.row_count == 2 and matsumoto.table([result], "a card").row_count == 0
    assert matsumoto.best_of_few([3.0, 1.0, 2.0], 2) == pytest.approx((2.0 + 3.0 + 3.0) / 3)
    assert matsumoto.best_of_few([1.0, 2.0], 2) == 2.0


RECORDING = {
    "routine": "trsm",
    "dtype": "d",
    "orders": [1024, 2048, 4096],
    "stops": [64, 128],
    "leaves": [
        {"config": "flat", "rates": {"1024": 3.0, "2048": 3.0}},
        {"config": "deep", "rates": {"1024": 2.0}},
    ],
    "products": [{"config": "wide", "rates": {"1024": 9.0, "2048": 9.0}}],
    "whole": [
        {"leaf": 0, "stop": 64, "product": 0, "rates": {"1024": 5.0, "2048": 8.0}},
        {"leaf": 0, "stop": 128, "product": 0, "rates": {"1024": 6.0, "2048": 7.0}},
        {"leaf": 1, "stop": 64, "product": 0, "rates": {"1024": 6.6}},
    ],
}


def test_the_two_stage_search_is_replayed_on_a_recording(tmp_path, capsys):
    first, second = atlas.replay(RECORDING, keep=1)
    assert (first["n"], first["PS"], first["ES"], first["tried"], first["all"]) == (1024, 6.0, 6.6, 2, 3)
    assert first["overhead"] == pytest.approx(10.0) and second["overhead"] == 0.0
    assert atlas.replay(RECORDING, keep=2)[0]["overhead"] == 0.0
    file = tmp_path / "recording.json"
    file.write_text(json.dumps({"paper": "atlas", "device": "a card", "results": [RECORDING]}))
    assert atlas.main([str(file), "--keep", "1"]) == 0
    assert "10.0 %" in capsys.readouterr().out


def test_a_solver_with_inverted_blocks_solves(rng):
    class Cublas:
        def gemm(self, alpha, a, b, beta, c, trans_a, trans_b):
            c[...] = alpha * a @ b + beta * c

    t = np.tril(rng.random((10, 10))) + 3 * np.eye(10)
    x = rng.random((10, 3))
    inverses = np.zeros((3, 4, 4))
    for number, first in enumerate(range(0, 10, 4)):
        part = t[first : first + 4, first : first + 4]
        inverses[number, : len(part), : len(part)] = np.linalg.inv(part)
    b = t @ x
    kblas.solve_with_inverses(Cublas(), t, inverses, b, np.empty((4, 3)))
    np.testing.assert_allclose(b, x, rtol=1e-12)


def test_schemes_are_told_apart():
    for letter in "sdcz":
        for scheme, (share_a, share_b, tiled) in steinsland.SCHEMES.items():
            for layout in ("nn", "tn"):
                first, *configs = found = steinsland.candidates(scheme, letter, layout, H100)
                thesis = steinsland.appendix_a(scheme, letter, layout)
                configs = found if thesis is None else configs
                assert (first == thesis) == (scheme in steinsland.APPENDIX_A)
                assert steinsland.scheme_of(first) == scheme and len(found) == len(set(found))
                blocks = {config.UNROLL for config in configs}
                is_private = tiled and not (share_a and share_b)
                assert blocks == (
                    {2, 4} if is_private and letter == "z" else {4, 8, 16} if is_private else {8, 16}
                )
                assert len(configs) == len(set(configs)) >= 10
                assert {config.shares for config in configs} == {(share_a, share_b)}
                assert {config.THR_M * config.THR_N > 1 for config in configs} == {tiled}
                paddings = {config.PAD_A + config.PAD_B > 0 for config in configs}
                assert paddings == ({True, False} if share_a or share_b else {False})
                if letter != "z" and share_a and share_b:
                    assert {config.VEC_K > 1 for config in configs} == {True, False}
                assert {config.read_only for config in configs} == {False, True}


@pytest.mark.parametrize("plan", everything.PLANS)
def test_a_plan_runs_all_its_steps(plan, monkeypatch, tmp_path, capsys):
    """Though one of them fails."""
    for function in ("factor_rate", "interchanged"):
        monkeypatch.setattr(plasma, function, lambda *_: 1.0)
    for script in (kblas_figure9, reads):
        monkeypatch.setattr(script, "rate", lambda *_: 1.0)
    monkeypatch.setattr(study, "draw", lambda folder, figure: (folder / f"{figure.name}.svg").touch())
    options = SimpleNamespace(out=tmp_path)
    few = {"kurzak": "--most 2", "steinsland": "--most 1", "matsumoto": "--most 4"}
    steps = [
        step._replace(arguments=f"{step.arguments} --dtype d {few.get(step.study.name, '')}")
        for step in everything.PLANS[plan]
    ]
    assert len({step.study.name for step in steps}) == len(steps)  # files of results have these names
    broken = steps[0].study._replace(name="broken", collect=lambda run, options: 1 / 0)
    studies = everything.planned([steps[0]._replace(study=broken), *steps], options)
    run = experiment.Experiment(H100, fake_worker.Compilers(), Inline(lambda: body))
    assert everything.run_steps(run, studies, [1.0] * len(studies)) == 1
    assert "ZeroDivisionError" in capsys.readouterr().err
    assert {path.stem for path in tmp_path.glob("*.json")} == {step.study.name for step in steps}


def test_kernels_of_a_plan_are_built_ahead_until_time_is_over(monkeypatch, tmp_path, capsys):
    words = ["--build", "--arch", "h100", "--plan", "short", "--kernels", str(tmp_path)]
    built = []

    def build(sources, cc, folder, workers, watcher):
        built.extend(sources)
        watcher.begin("sm_90a", len(built), ready=0, workers=1)
        watcher.step()
        return SimpleNamespace(kernels=2, compiled=1, path=folder)

    monkeypatch.setattr(everything, "build", build)
    assert everything.main(words) == 0 and "1 compiled now" in capsys.readouterr().out
    assert len(built) > 100 and len(set(built)) == len(built)
    monkeypatch.setattr(everything.time, "monotonic", count(step=1000).__next__)
    assert everything.main([*words, "--seconds", "1m"]) == 0
    assert "time is over" in capsys.readouterr().out


def test_a_dry_run_counts_kernels_without_a_device(capsys):
    assert everything.main(["--dry-run"]) == 0
    counts = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert [line[0][:-1] for line in counts] == [step.study.name for step in everything.PLANS["long"]]
    assert {name: int(number) > 0 for name, number, *_ in counts}["kurzak:"]


@pytest.mark.parametrize("script", [script for script, _ in SCRIPTS.values()])
def test_a_script_refuses_what_it_does_not_know(script, capsys):
    for option, value in (("--dtype", "h"), ("--seconds", "soon")):
        with pytest.raises(SystemExit):
            script.main([option, value])
    assert "usage" in capsys.readouterr().err
