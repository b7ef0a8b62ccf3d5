"""The dry run of the tuner."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest

from pyblasgpu.gpu.build.compile import Resources
from pyblasgpu.gpu.device import known
from pyblasgpu.tuning import command as tune_command
from pyblasgpu.tuning import dryrun

pytestmark = pytest.mark.usefixtures("home")

H200, FERMI = known("h200"), known("fermi")


def dry(**changes):
    options = {"routine": ("gemm", "trsm"), "dtype": ("s",), "effort": "quick", "json": False}
    return SimpleNamespace(**{**options, "dry_run": True, "device": "h200", "compile": False, **changes})


def test_a_dry_run_prints_the_funnel(capsys):
    assert tune_command.main(dry()) == 0
    text = capsys.readouterr().out
    assert "NVIDIA H200" in text and "occupancy" in text and text.count("gemm_simt") == 4
    assert text.count("trsm_fma") == 1


def test_a_dry_run_speaks_json(capsys):
    assert tune_command.main(dry(device="fermi", json=True, routine=("gemm",))) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["device"] == "Tesla S2050" and len(document["funnels"]) == 4
    for funnel in document["funnels"]:
        assert funnel["candidates"] == sum(funnel["removed"].values()) + funnel["left"]


def test_a_dry_run_can_compile(capsys, monkeypatch):
    bad = Resources(255, 64, 8, 8, 0)
    monkeypatch.setattr(dryrun, "compile_all", lambda jobs, cc: ((job, bad) for job in list(jobs)))
    assert tune_command.main(dry(compile=True, json=True)) == 0
    rows = json.loads(capsys.readouterr().out)["funnels"]
    assert rows and all(row["left"] == 0 and row["removed"]["spills"] for row in rows)


def test_an_unknown_device_is_refused():
    with pytest.raises(ValueError, match="voodoo"):
        tune_command.main(dry(device="voodoo"))
    with pytest.raises(ValueError, match="'h200' is no number"):
        tune_command.main(dry(dry_run=False), routine=print)
