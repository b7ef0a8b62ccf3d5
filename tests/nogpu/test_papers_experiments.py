"""The papers' experiments on stand-ins for compilers and device: what they time, write and stop at."""

from __future__ import annotations

import json
import zlib
from contextlib import nullcontext

import fake_worker
import numpy as np
import pytest
from tuner_stage import Inline

from pyblasgpu.gpu.compile import Resources
from pyblasgpu.gpu.device import known
from pyblasgpu.tuning.worker_bench import Timing
from tuning.papers import atlas, cache_edge, experiment, kblas, kurzak_timed, li, matsumoto, steinsland

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

    def make(broken=None, report=lambda stem, config: fake_worker.GOOD, until=float("inf"), step=0.0):
        worker = Inline(lambda: fake_worker.device(broken))
        return experiment.Experiment(H100, fake_worker.Compilers(report), worker, until, Clock(step))

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
    found = kurzak_timed.experiment(runs(report=spilling), "d", "nn", of("d", "nn"), 512, (256, 512))
    assert found["variants"] == 66 and found["refused"] == 0
    assert found["outcomes"]["ok"] == len(found["tflops"]) and found["outcomes"]["spills"] > 0
    assert found["tflops"] == sorted(found["tflops"], reverse=True)
    assert found["winner"]["BLK_K"] != 16 and set(found["curve"]) == {"256", "512"}
    assert found["vendor"] == {}  # there is none
    none_timed = {key: found[key] for key in ("dtype", "layout", "variants", "size")} | {"tflops": []}
    assert kurzak_timed.table([found, none_timed], "a card").row_count == 2


def test_a_time_limit_ends_a_search(runs):
    run = runs(until=10.0, step=1.0)
    found = kurzak_timed.experiment(run, "s", "tt", of("s", "tt"), 512, (256,))
    assert 0 < sum(found["outcomes"].values()) < found["variants"]


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
    "kblas": (kblas, "--orders 256,512"),
    "cache_edge": (cache_edge, "--sizes 256,512 --rasters 4,8"),
}


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_writes_json_table_and_figure(name, monkeypatch, tmp_path, capsys):
    pytest.importorskip("matplotlib")
    script, options = SCRIPTS[name]
    run = experiment.Experiment(H100, fake_worker.Compilers(), Inline(lambda: body))
    monkeypatch.setattr(script, "on_device", lambda device, seconds: nullcontext(run))
    monkeypatch.setattr(script.devices, "present", lambda text: H100)
    words = ["--dtype", "d", *options.split(), "--out", str(tmp_path)]
    assert script.main(words) == 0
    shown = capsys.readouterr().out
    assert H100.name in shown and (tmp_path / f"{name}.txt").read_text() == shown
    made = json.loads((tmp_path / f"{name}.json").read_text())
    assert made["paper"] == name and made["device"] == H100.name and made["results"]
    assert list(tmp_path.glob("*.svg"))
    assert script.main([*words, "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == made


def test_the_three_steps_keep_the_best():
    run = experiment.Experiment(H100, fake_worker.Compilers(), Inline(lambda: body))
    found = matsumoto.experiment(run, "s", (64, 128), 64, 192, 60)
    rates = [row["tflops"] for row in found["finalists"]]
    assert rates == sorted(rates, reverse=True) and sum(found["outcomes"].values()) == 60
    assert {row["layout"] for row in found["finalists"]} == {"row", "CBL"}
    assert len([row for row in found["finalists"] if row["layout"] == "row"]) <= matsumoto.FINALISTS
    assert set(found["finalists"][0]["curve"]) == {"64", "128", "192"}
    assert "cuBLAS TN" in found["curves"] and "NN, packed" in found["curves"]


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


def test_the_search_of_a_factorisation_is_recorded(monkeypatch):
    run = experiment.Experiment(H100, fake_worker.Compilers(), Inline(lambda: body))
    monkeypatch.setattr(atlas, "factor_rate", lambda letter, n, overrides: overrides[0][1] / n)
    chosen = atlas.lists("potrf", "d", H100, 1)
    assert not chosen.leaves
    made = atlas.record_factor(run, "d", (512, 1024), chosen)
    assert len(made["whole"]) == len(atlas.STOPS) * len(chosen.products)
    assert [row["overhead"] for row in atlas.replay(made, keep=1)] == [0.0, 0.0]


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
                found = steinsland.candidates(scheme, letter, layout, H100)
                assert len(found) == len(set(found)) >= 10
                assert {config.shares for config in found} == {(share_a, share_b)}
                assert {config.THR_M * config.THR_N > 1 for config in found} == {tiled}
                paddings = {config.PAD_A + config.PAD_B > 0 for config in found}
                assert paddings == ({True, False} if share_a or share_b else {False})
                if letter != "z" and share_a and share_b:
                    assert {config.VEC_K > 1 for config in found} == {True, False}
                assert {config.read_only for config in found} == {False, True}


@pytest.mark.parametrize("script", [script for script, _ in SCRIPTS.values()])
def test_a_script_refuses_what_it_does_not_know(script, capsys):
    for option, value in (("--dtype", "h"), ("--seconds", "soon")):
        with pytest.raises(SystemExit):
            script.main([option, value])
    assert "usage" in capsys.readouterr().err
