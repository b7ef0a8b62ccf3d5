"""The papers' experiments on stand-ins for compilers and device: what they time, write and stop at."""

from __future__ import annotations

import json

import fake_worker
import pytest
from tuner_stage import Inline

from pyblasgpu.gpu.compile import Resources
from pyblasgpu.gpu.device import known
from tuning.papers import experiment, kurzak_timed, steinsland

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


def spilling(stem, config):
    spills = 8 if config.BLK_K == 16 else 0
    return Resources(registers=64, stack_bytes=0, spill_stores=spills, spill_loads=0, shared_bytes=0)


def test_the_variants_of_a_type_are_timed_and_the_fastest_wins(runs):
    found = kurzak_timed.experiment(runs(report=spilling), "d", "nn", known("fermi"), 512, (256, 512), None)
    assert found["variants"] == 66 and found["refused"] == 0
    assert found["outcomes"]["ok"] == len(found["tflops"]) and found["outcomes"]["spills"] > 0
    assert found["tflops"] == sorted(found["tflops"], reverse=True)
    assert found["winner"]["BLK_K"] != 16 and set(found["curve"]) == {"256", "512"}
    assert found["vendor"] == {}  # there is none
    none_timed = {key: found[key] for key in ("dtype", "layout", "variants", "size")} | {"tflops": []}
    assert kurzak_timed.table([found, none_timed], "a card").row_count == 2


def test_a_time_limit_ends_a_search(runs):
    run = runs(until=10.0, step=1.0)
    found = kurzak_timed.experiment(run, "s", "tt", known("fermi"), 512, (256,), None)
    assert 0 < sum(found["outcomes"].values()) < found["variants"]
    assert not run.compilers.pending


def test_each_part_of_a_search_has_its_time(runs):
    run = runs(until=12.0, step=1.0)
    limits = [run.until for _ in run.in_turn("abc")]
    assert limits == [1 + 11 / 3, 2 + 10 / 2, 12.0] and run.until == 12.0


def test_what_fails_on_the_device_has_no_rate(runs):
    configs = steinsland.candidates("shared, private", "s", "nn", H100)[:3]
    broken = {(configs[0].BLK_M, configs[0].BLK_N): "wrong"}
    first, *_ = runs(broken).times("gemm_simt", "nn", configs, [(64, 64, 64)])
    assert (first.outcome, first.rates) == ("wrong", {})


@pytest.mark.parametrize("script, name", [(kurzak_timed, "kurzak"), (steinsland, "steinsland")])
def test_a_script_writes_json_table_and_figure(script, name, runs, monkeypatch, tmp_path, capsys):
    pytest.importorskip("matplotlib")
    from contextlib import nullcontext

    monkeypatch.setattr(script, "on_device", lambda device, seconds: nullcontext(runs()))
    monkeypatch.setattr(script.devices, "present", lambda text: H100)
    words = ["--dtype", "d", "--layout", "nn", "--most", "2", "--sizes", "64,128", "--out", str(tmp_path)]
    assert script.main(words) == 0
    shown = capsys.readouterr().out
    assert "dgemm nn" in shown and (tmp_path / f"{name}.txt").read_text() == shown
    made = json.loads((tmp_path / f"{name}.json").read_text())
    assert made["paper"] == name and made["device"] == H100.name and len(made["results"]) == 1
    assert list(tmp_path.glob("*.svg"))
    assert script.main([*words, "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == made


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
                assert {config.read_only for config in found} == {False, not (share_a and share_b)}


@pytest.mark.parametrize("script", [kurzak_timed, steinsland])
def test_a_script_refuses_what_it_does_not_know(script, capsys):
    for option, value in (("--dtype", "h"), ("--layout", "xy"), ("--seconds", "soon")):
        with pytest.raises(SystemExit):
            script.main([option, value])
    assert "usage" in capsys.readouterr().err
