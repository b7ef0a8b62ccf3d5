"""Commands on several cards at once: each has a card and cores of its own; what is cut off says so."""

from __future__ import annotations

import os

import pytest

from benchmarks import on_cards

SHOWS = "import os; print(os.environ['CUDA_VISIBLE_DEVICES'], sorted(os.sched_getaffinity(0)))"
WAITS = """
import pathlib, time
try:
    pathlib.Path({!r}).touch()
    for _ in range(600):  # a signal just before a sleep does not end it
        time.sleep(0.1)
except KeyboardInterrupt:
    print("kept")
"""


@pytest.fixture
def module(monkeypatch, tmp_path):
    """Writes a module that may run on a card."""
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)

    def write(name: str, text: str) -> str:
        (tmp_path / f"{name}.py").write_text(text)
        return name

    return write


def test_commands_take_the_first_free_card(module, monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "5,3")
    commands = [module("shows", SHOWS)] * 3 + [module("fails", "raise SystemExit(3)")]
    assert on_cards.main([*commands, "--cards", "2", "--out", str(tmp_path / "out")]) == 1
    printed = capsys.readouterr().out.splitlines()
    assert printed == ["exit code 0 shows"] * 3 + ["exit code 3 fails"]
    cores = [sorted(each) for each in on_cards.slot_cores(2)]
    lines = [(tmp_path / "out" / f"{i}-shows.txt").read_text().strip() for i in range(3)]
    assert lines[:2] == [f"5 {cores[0]}", f"3 {cores[1]}"] and lines[2] in lines[:2]


def test_what_runs_when_the_time_is_up_is_interrupted(module, monkeypatch, tmp_path):
    begun = tmp_path / "begun"
    monkeypatch.setattr(on_cards.time, "monotonic", lambda: 1e9 if begun.exists() else 0.0)
    codes = on_cards.run_all([module("waits", WAITS.format(str(begun))), "waits"], 1, 2.0, tmp_path / "out")
    assert codes == [0, None]
    assert (tmp_path / "out" / "0-waits.txt").read_text() == "kept\n"


def test_cores_are_shared_evenly(monkeypatch):
    monkeypatch.setattr(on_cards.os, "sched_getaffinity", lambda pid: set(range(9)))
    assert [sorted(each) for each in on_cards.slot_cores(4)] == [[0, 1], [2, 3], [4, 5], [6, 7]]
    assert on_cards.slot_cores(10) == [frozenset(range(9))] * 10


def test_scripts_write_where_the_logs_are(monkeypatch, tmp_path):
    started = []

    class Process:
        pid = 0

        def __init__(self, words, **options):
            started.append(words[1:])

    monkeypatch.setattr(on_cards.subprocess, "Popen", Process)
    for command in ("benchmarks.spectra --kinds batches", "pytest tests", "benchmarks.lu --out x"):
        on_cards.start(0, command, 0, frozenset(os.sched_getaffinity(0)), tmp_path)
    assert started == [
        ["-m", "benchmarks.spectra", "--kinds", "batches", "--out", str(tmp_path)],
        ["-m", "pytest", "tests"],
        ["-m", "benchmarks.lu", "--out", "x"],
    ]
