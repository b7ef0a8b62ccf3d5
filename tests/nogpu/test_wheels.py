"""Wheels with kernels built ahead: what goes into them, and that it is found where they are installed."""

from __future__ import annotations

import importlib
import json
import shutil
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


@pytest.fixture(scope="module")
def two_kernels(tmp_path_factory):
    """An archive of two kernels; its processes take seconds to start."""
    folder = tmp_path_factory.mktemp("built")
    done = build.build(
        fake_toolchain.kernels(2), (9, 0), folder, workers=1, compiler=fake_toolchain.compile_job
    )
    return Path(done.path)


@pytest.fixture
def built(two_kernels, tmp_path, monkeypatch):
    """An archive in no place where it is looked for."""
    monkeypatch.setenv("PYBLASGPU_HOME", str(tmp_path / "home"))
    (tmp_path / "out").mkdir()
    yield Path(shutil.copy(two_kernels, tmp_path / "out"))
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
    stage = wheels.stage_everything(tmp_path / "stage", [built], ["sm_90"])
    assert (stage / "pyblasgpu" / "data" / built.name).read_bytes() == built.read_bytes()
    names = {path.name for path in (stage / "pyblasgpu" / "database").iterdir()}
    assert {"sm_90.json", "schema.json", "__init__.py"} <= names
    assert not list(stage.rglob("__pycache__"))
    setup = ConfigParser()
    setup.read(stage / "setup.cfg")
    assert "data/*.kernels" in setup["options.package_data"]["pyblasgpu"]
    assert setup["options.extras_require"]["sm90"] == ""


def test_architectures_of_other_wheels_are_extras(wheels, tmp_path):
    stage = wheels.stage_everything(tmp_path / "stage", [], ["sm_90", "sm_120"])
    setup = ConfigParser(interpolation=None)
    setup.read(stage / "setup.cfg")
    extras = setup["options.extras_require"]
    assert extras["sm90"].strip() == f"pyblasgpu-kernels-sm90=={pyblasgpu.__version__}"
    assert "sm120" in extras and "cu13" in extras


@pytest.fixture
def commands(wheels, built, monkeypatch):
    """Commands that the script has run; each wheel is a file, and kernels are found once it is installed."""
    made = []

    def run(command, **_):
        made.append(command)
        done = SimpleNamespace(stdout="", returncode=0)
        if "wheel" in command:
            name = Path(command[-1]).name.replace("sm_", "pyblasgpu_kernels_sm")
            Path(command[-2], f"{name}-{pyblasgpu.__version__}-py3-none-any.whl").touch()
        elif "build" in command:
            done.stdout = json.dumps([{"compiled": 2, "failed": run.failed, "seconds": 1.0}])
        elif command[-2] == wheels.COUNT:
            is_installed = any("[sm90]" in each[-1] for each in made)
            done.stdout = run.found if is_installed else "0 7"
        return done

    run.failed, run.found, run.made = [], "7 7", made
    monkeypatch.setattr(wheels.subprocess, "run", run)
    return run


def arguments(built, tmp_path, *others):
    folders = ["--archives", str(built.parent), "--out", str(tmp_path / "dist")]
    return ["--arch", "sm_90", *folders, *others]


@pytest.mark.parametrize(("found", "code"), [("7 7", 0), ("6 7", 1)])
def test_wheels_are_installed_by_the_extra_and_recorded(
    wheels, commands, built, tmp_path, monkeypatch, capsys, found, code
):
    commands.found, file = found, tmp_path / "wheels.json"
    assert wheels.main(arguments(built, tmp_path, "--limit", "0", "--check", "--record", str(file))) == code
    assert f"{found[0]} of 7 kernels are found, 0 before [sm90]" in capsys.readouterr().out
    (install,) = (each for each in commands.made if "--no-index" in each)
    assert install[-2:] == [str(tmp_path / "dist"), f"pyblasgpu[sm90]=={pyblasgpu.__version__}"]
    recorded = json.loads(file.read_text())
    (row,) = recorded["results"]
    assert (row["architecture"], row["compiled"], row["found"], row["kernels"]) == (
        "sm_90", 2, int(found[0]), 7,
    )  # fmt: skip
    assert len(recorded["wheels_mb"]) == 2


def test_a_record_keeps_what_a_later_run_has_not_measured(wheels, commands, built, tmp_path):
    file = tmp_path / "wheels.json"
    kept = {"architecture": "sm_90", "seconds": 5, "archive_mb": 99.0}
    before = {"version": pyblasgpu.__version__, "wheels_mb": {"other.whl": 1.0}}
    file.write_text(json.dumps({"results": [kept, {"architecture": "sm_80"}]} | before))
    assert wheels.main(arguments(built, tmp_path, "--built", "--record", str(file))) == 0
    assert [command for command in commands.made if "build" in command] == []
    recorded = json.loads(file.read_text())
    other, row = recorded["results"]
    assert row["seconds"] == 5 and row["archive_mb"] < 99.0 and other == {"architecture": "sm_80"}
    assert row["toolchain"] == archive.Archive(built, "sm_90a", None).toolchain
    assert recorded["wheels_mb"].pop("other.whl") == 1.0 and recorded["wheels_mb"]


@pytest.mark.parametrize("limit, count", [("90", 1), ("0", 2)])
def test_what_is_too_large_is_a_wheel_for_each_architecture(
    wheels, commands, built, tmp_path, monkeypatch, limit, count
):
    assert wheels.main(arguments(built, tmp_path, "--limit", limit)) == 0
    compiles, *made = commands.made
    assert compiles[:4] == [sys.executable, "-m", "pyblasgpu", "build"] and len(made) == count
    assert [Path(command[-1]).name for command in made] == ["pyblasgpu", "sm_90"][:count]


def test_no_wheel_is_made_of_what_is_missing(wheels, commands, built, tmp_path, capsys):
    commands.failed = [["gemm_simt", "no registers"]]
    assert wheels.main(arguments(built, tmp_path)) == 1
    built.unlink()
    assert wheels.main(arguments(built, tmp_path, "--built")) == 1
    assert not (tmp_path / "dist").exists()
    errors = capsys.readouterr().err
    assert "gemm_simt: no registers" in errors and built.name in errors


def test_a_release_builds_and_checks_every_architecture(wheels):
    workflow = (ROOT / ".github/workflows/release.yml").read_text()
    assert f"arch: [{', '.join(wheels.ARCHITECTURES)}]" in workflow
    assert "python tools/wheels.py --built --check" in workflow  # without --arch these are all
    assert wheels._parser().parse_args([]).arch == list(wheels.ARCHITECTURES)


def test_the_guide_has_the_recorded_sizes():
    recorded = json.loads((ROOT / "benchmarks/results/wheels.json").read_text())
    text = (ROOT / "docs/guide/first_call.md").read_text()
    rows = recorded["results"]
    assert all(row["found"] == row["kernels"] for row in rows) and rows
    megabytes, kernels = ([row[name] for row in rows] for name in ("archive_mb", "kernels"))
    took = f"{min(kernels)} to {max(kernels)} kernels took {min(megabytes):.0f} to {max(megabytes):.0f} MB"
    assert f"Archives of {took}" in text
    assert all(size < 100 for size in recorded["wheels_mb"].values())
