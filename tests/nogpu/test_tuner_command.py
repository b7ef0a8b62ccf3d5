"""`pyblasgpu tune` on a device that is played by NumPy."""

from __future__ import annotations

import json
from functools import cache
from importlib.util import find_spec
from itertools import islice
from types import SimpleNamespace

import pytest
from fake_worker import Compilers, Sensor
from tuner_stage import FASTEST, H200, Inline

from pyblasgpu.dispatch import tuned_files
from pyblasgpu.gpu.nvml import State
from pyblasgpu.tuning import candidate_list as planning
from pyblasgpu.tuning import command as tune_command

pytestmark = pytest.mark.usefixtures("home")


def options(**changes):
    defaults = {
        "routine": ("gemm", "trsm"),
        "dtype": ("s",),
        "effort": "quick",
        "strategy": "exhaustive",
        "budget": None,
        "resume": False,
        "report": None,
        "dry_run": False,
        "device": None,
        "json": False,
        "compile": False,
    }
    return SimpleNamespace(**{**defaults, **changes})


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
    some = planning.candidates
    monkeypatch.setattr(planning, "candidates", lambda *key: SimpleNamespace(left=some(*key).left[::8]))
    every = tune_command.catalogue.kernels
    few = cache(lambda device: [*islice(every(device), 20)])
    monkeypatch.setattr(tune_command.catalogue, "kernels", few)
    stage.built = []
    monkeypatch.setattr(tune_command.build, "build", lambda sources, *_, **__: stage.built.extend(sources))
    return stage


@pytest.mark.slow
def test_the_command_shows_the_winners_and_writes_a_report(machine, capsys, tmp_path):
    assert tune_command.main(options(), machine.routine) == 0
    output = capsys.readouterr()
    assert "gemm_simt" in output.out and 0 < len(machine.built) <= 20
    assert "strsm: trsm_fused at 256x256" in output.out and "strsm: recursion at 512x32" in output.out
    assert str(tuned_files.user_file(H200.name)) in output.out
    folder = tmp_path / "report"
    report = str(folder) if find_spec("matplotlib") else None
    assert tune_command.main(options(json=True, resume=True, report=report), machine.routine) == 0
    document = json.loads(capsys.readouterr().out)
    assert {winner["layout"] for winner in document["winners"]} >= {"nn", "nt", "tn", "tt"}
    rates = {row.pop("point"): row for row in document["trsm_rates"] if row.pop("dtype")}
    assert {point: max(each, key=each.__getitem__) for point, each in rates.items()} == FASTEST
    names = {path.name for path in folder.iterdir()} if report else set()
    assert not report or {"report.md", "report.json", "distribution.svg", "over_n.svg"} <= names


def test_the_command_may_be_of_algorithms_alone(machine, capsys):
    assert tune_command.main(options(stage=("algorithms",), routine=("trmm", "trsm")), machine.routine) == 0
    output = capsys.readouterr().out
    assert "strsm: trsm_fused at 256x256" in output
    assert str(tuned_files.user_file(H200.name)) in output


def test_the_command_says_what_is_left_and_what_is_doubtful(machine, capsys, monkeypatch):
    monkeypatch.setattr(tune_command, "Sensor", lambda ordinal: Sensor(State(busy=60)))
    assert tune_command.main(options(budget=1e-9), machine.routine) == 1
    output = capsys.readouterr().err
    assert "searches not begun; --resume goes on" in output and "doubtful: the device was 60 % busy" in output
