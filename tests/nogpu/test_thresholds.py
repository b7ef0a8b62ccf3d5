"""The sizes of `patch_scipy`: how they are found, kept and read."""

from __future__ import annotations

import json
import logging
from dataclasses import replace
from math import inf
from types import SimpleNamespace

import pytest
import scipy.linalg

from pyblasgpu import cli, patch_scipy
from pyblasgpu.gpu.device import known
from pyblasgpu.gpu.user_folders import NoFolder
from pyblasgpu.scipy_patch import switch
from pyblasgpu.scipy_patch.thresholds import THRESHOLDS, save, thresholds_file, tuned
from pyblasgpu.tuning import scipy_thresholds as tuning


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("PYBLASGPU_HOME", str(tmp_path))
    return tmp_path


@pytest.mark.parametrize(
    ("gains", "expected"),
    [
        ({128: 0.5, 256: 1.5, 512: 2}, 256),
        ({128: 2, 256: 1, 512: 2}, 512),
        ({128: 2, 256: 1.3}, inf),
        ({}, inf),
    ],
)
def test_a_threshold_holds_for_all_larger_sizes(gains, expected):
    assert tuning.threshold(gains) == expected


def test_every_routine_has_a_kind():
    listed = [routine for _, routines in tuning.KINDS.values() for routine in routines]
    assert sorted(listed) == sorted(THRESHOLDS)
    assert [name for name, _ in tuning.calls(8)] == list(tuning.KINDS)


def test_calls_are_timed_with_and_without_the_patch(monkeypatch):
    """The CPU backend is no faster, so nothing is ever sent there."""
    monkeypatch.setattr(tuning, "MIN_SPEEDUP", 1e9)
    seen = []
    thresholds = tuning.thresholds((8, 16), "cpu", lambda *row: seen.append(row[:2]))
    assert thresholds == dict.fromkeys(THRESHOLDS, inf) and seen == [
        (k, n) for n in (8, 16) for k in tuning.KINDS
    ]
    assert type(scipy.linalg.blas.dgemm).__name__ == "fortran"


def test_what_is_slow_is_not_timed_at_larger_sizes(monkeypatch):
    monkeypatch.setattr(tuning, "SECONDS", 0)
    monkeypatch.setattr(tuning, "MIN_SPEEDUP", 0)
    thresholds = tuning.thresholds((8, 16), "cpu")
    assert thresholds["gemm"] == 8 and thresholds["cho_solve"] == 4


def test_sizes_are_kept_by_device(home):
    assert tuned("Card") == {}
    path = save("Card", {"gemm": 100.0, "inv": inf})
    assert path == thresholds_file("Card") and path.is_relative_to(home)
    assert json.loads(path.read_text())["thresholds"] == {"gemm": 100, "inv": None}
    assert tuned("Card") == {"gemm": 100, "inv": inf} and tuned("Other") == {}


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"thresholds": 3}', '{"thresholds": {"gemm": "many"}}', "\x00"]
)
def test_a_damaged_file_is_passed_over(text, caplog):
    path = save("Card", {})
    path.write_text(text)
    with caplog.at_level(logging.WARNING, "pyblasgpu"):
        assert tuned("Card") == {}
    assert "passed over" in caplog.text and str(path) in caplog.text


def test_a_file_that_cannot_be_read_is_passed_over(caplog):
    thresholds_file("Card").mkdir(parents=True)
    assert tuned("Card") == {} and "passed over" in caplog.text


def test_sizes_without_a_folder(monkeypatch, caplog):
    def missing():
        raise NoFolder("there is no home folder")

    monkeypatch.setattr("pyblasgpu.scipy_patch.thresholds.data_folder", missing)
    assert tuned("Card") == {} and "no home folder" in caplog.text


def test_unknown_routines_are_left_out():
    thresholds_file("Card").parent.mkdir(parents=True)
    thresholds_file("Card").write_text('{"thresholds": {"gemm": 5, "qr": 7, "inv": -1}}')
    assert tuned("Card") == {"gemm": 5}


def test_a_patch_takes_the_sizes_of_its_device(monkeypatch):
    card = known("h200")
    save(card.name, {"gemm": 99.0, "inv": 98.0})
    monkeypatch.setattr(switch, "current", lambda: card)
    monkeypatch.setattr(switch, "backend_status", lambda backend: SimpleNamespace(backend=backend))
    with patch_scipy(backend="cuda") as patch:
        assert patch.thresholds == {**THRESHOLDS, "gemm": 99, "inv": 98}
    with patch_scipy(backend="cuda", thresholds={"gemm": 3}) as patch:
        assert (patch.thresholds["gemm"], patch.thresholds["inv"]) == (3, 98)
    with patch_scipy(backend="cpu") as patch:
        assert patch.thresholds == THRESHOLDS


def test_the_command_writes_the_file_of_the_device(monkeypatch, capsys):
    monkeypatch.setattr(tuning, "present", lambda name: replace(known("h200"), ordinal=0))
    monkeypatch.setattr(tuning, "thresholds", lambda **options: {"gemm": 77.0, "inv": inf})
    assert cli.main(["tune", "--scipy", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"gemm": 77, "inv": None}
    assert tuned(known("h200").name)["gemm"] == 77
    assert cli.main(["tune", "--scipy"]) == 0
    assert "written to" in capsys.readouterr().out
