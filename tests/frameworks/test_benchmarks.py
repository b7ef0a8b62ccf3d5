"""The benchmark of frameworks with small problems on the processor, from options to its file."""

from __future__ import annotations

import json
import sys
from importlib import import_module
from importlib.util import find_spec
from types import SimpleNamespace

import pytest
from benchmark_runs import FRAMEWORKS

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
NAME, OPTIONS, CONSTANTS, LISTS = FRAMEWORKS


@pytest.fixture
def script(monkeypatch):
    made = import_module(f"benchmarks.{NAME}")
    for key, value in CONSTANTS.items():
        monkeypatch.setattr(made, key, value)
    return made


def test_a_script_from_options_to_its_file(script, tmp_path, capsys):
    options = [*OPTIONS.split(), "--device", "cpu", "--out", str(tmp_path)]
    assert import_module("benchmarks.study").run(script.STUDY, options) == 0
    document = json.loads((tmp_path / f"{NAME}.json").read_text())
    rows = [row for each in LISTS.split() for row in document[each]]
    ways = {(row["part"], row.get("way", row.get("call"))) for row in rows if "ratio" in row}
    skipped = {row["part"] for row in rows if "skipped" in row}
    if find_spec("torch"):
        from pyblasgpu import torch as ours

        assert {("steps", way) for way in ("inv_quad_logdet", "operators", "patched")} <= ways
        assert {("operators", name) for name in ours.__all__} <= ways
    if find_spec("jax"):
        assert ("jax", "operators") in ways and ("stacks", "inv_quad_logdet") in ways
    for name in ("gpytorch", "botorch"):
        assert (name in skipped) == (find_spec(name) is None)
        assert ((name, "patched") in ways) == (find_spec(name) is not None)
    assert "geometric mean" in capsys.readouterr().out


@pytest.mark.parametrize("by", ["torch", "jax"])
def test_programs_of_first_calls(script, by, monkeypatch):
    """They are texts, which other processes run."""
    pytest.importorskip(by)
    ran = []

    def seconds(program, rounds, start):
        monkeypatch.setattr(sys, "argv", ["", "0"])
        exec(compile(start + program.replace("1000", "24"), by, "exec"), scope := {})
        scope["finish"](scope["call"])
        ran.append(program)
        return {"first": 1.0, "second": 0.5}

    monkeypatch.setattr(script, "seconds", seconds)
    rows = list(script.first(SimpleNamespace(device="cpu")))
    assert len([row for row in rows if row.get("by") == by]) == 3 <= len(ran)
