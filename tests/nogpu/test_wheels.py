"""Wheels with kernels built ahead: what goes into them, and that it is found where they are installed."""

from __future__ import annotations

import importlib
import sys
from configparser import ConfigParser
from pathlib import Path
from types import SimpleNamespace

import fake_toolchain
import pytest

import pyblasgpu
from pyblasgpu import build
from pyblasgpu.gpu.build import archive
from pyblasgpu.gpu.build.compile import archives_for

ROOT = Path(__file__).parents[2]


@pytest.fixture
def wheels(monkeypatch):
    """The script."""
    monkeypatch.syspath_prepend(ROOT / "tools")
    return importlib.import_module("wheels")


@pytest.fixture
def built(tmp_path, monkeypatch):
    """An archive of two kernels, in no place where it is looked for."""
    monkeypatch.setenv("PYBLASGPU_HOME", str(tmp_path / "home"))
    sources = fake_toolchain.kernels(2)
    done = build.build(sources, (9, 0), tmp_path / "out", workers=1, compiler=fake_toolchain.compile_job)
    yield Path(done.path)
    archive.forget()


def test_a_package_of_kernels_is_found_once_installed(wheels, built, tmp_path, monkeypatch):
    stage = wheels.stage_kernels(tmp_path / "stage", "sm_90", built)
    assert archives_for((9, 0)) == ()
    archive.forget()
    monkeypatch.syspath_prepend(stage)
    importlib.invalidate_caches()
    (installed,) = archives_for((9, 0))
    assert installed.path.parent == stage / "pyblasgpu_kernels_sm90" and len(installed) == 2
    setup = ConfigParser()
    setup.read(stage / "setup.cfg")
    assert setup["metadata"]["name"] == "pyblasgpu-kernels-sm90"
    assert setup["options"]["install_requires"].strip() == f"pyblasgpu=={pyblasgpu.__version__}"


def test_one_wheel_holds_the_archives_beside_the_package(wheels, built, tmp_path):
    stage = wheels.stage_everything(tmp_path / "stage", [built])
    assert (stage / "pyblasgpu" / "data" / built.name).read_bytes() == built.read_bytes()
    names = {path.name for path in (stage / "pyblasgpu" / "database").iterdir()}
    assert {"sm_90.json", "schema.json", "__init__.py"} <= names
    assert not list(stage.rglob("__pycache__"))
    setup = ConfigParser()
    setup.read(stage / "setup.cfg")
    assert "data/*.kernels" in setup["options.package_data"]["pyblasgpu"]


def test_architectures_of_other_wheels_are_extras(wheels, tmp_path):
    stage = wheels.stage_everything(tmp_path / "stage", [], ["sm_90", "sm_120"])
    setup = ConfigParser(interpolation=None)
    setup.read(stage / "setup.cfg")
    extras = setup["options.extras_require"]
    assert extras["sm90"].strip() == f"pyblasgpu-kernels-sm90=={pyblasgpu.__version__}"
    assert "sm120" in extras and "cu13" in extras


@pytest.mark.parametrize(("found", "code"), [("7 7", 0), ("6 7", 1)])
def test_installed_wheels_are_checked(wheels, tmp_path, monkeypatch, capsys, found, code):
    commands = []
    monkeypatch.setattr(
        wheels.subprocess,
        "run",
        lambda command, **_: commands.append(command) or SimpleNamespace(stdout=found),
    )
    (tmp_path / "a.whl").touch()
    assert wheels.check(tmp_path, ["sm_90"]) == code
    assert "kernels are found" in capsys.readouterr().out
    assert commands[1][-1] == str(tmp_path / "a.whl") and commands[2][-1] == "sm_90"


@pytest.mark.parametrize(("limit", "count"), [(90.0, 1), (0.0, 2)])
def test_what_is_too_large_is_a_wheel_for_each_architecture(
    wheels, built, tmp_path, monkeypatch, limit, count
):
    stages = []
    monkeypatch.setattr(wheels.subprocess, "run", lambda command, check: stages.append(command) or Done)

    class Done:
        returncode = 0

    arguments = ["--arch", "sm_90", "--archives", str(built.parent), "--out", str(tmp_path / "dist")]
    assert wheels.main([*arguments, "--limit", str(limit)]) == 0
    compiles, *made = stages
    assert compiles[:4] == [sys.executable, "-m", "pyblasgpu", "build"] and len(made) == count
    assert [Path(command[-1]).name for command in made] == ["pyblasgpu", "sm_90"][:count]
