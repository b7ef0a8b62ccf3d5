"""The package in a zip: commands, calls on host arrays, tuned values, archives of kernels, and compiling."""

from __future__ import annotations

import json
import os
import py_compile
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import pyblasgpu
from pyblasgpu.gpu.build.archive import Record, archive_name, write
from pyblasgpu.gpu.build.kernel_digest import digest_of_all

PACKAGE = Path(pyblasgpu.__file__).parent
ARCH = "sm_90a"


@pytest.fixture(scope="module")
def zipped(tmp_path_factory):
    """A zip of the package and an archive of one kernel; one module has bytecode compiled elsewhere."""
    folder = tmp_path_factory.mktemp("zip")
    archive = folder / archive_name(ARCH, digest_of_all())
    record = Record({"kernel": {}, "entry": "kernel", "resources": {}}, b"cubin")
    write(archive, ARCH, digest_of_all(), {}, [("0" * 64, record)])
    bytecode = py_compile.compile(
        str(PACKAGE / "kernels/level1/map.py"), str(folder / "map.pyc"), "/x/map.py"
    )
    with zipfile.ZipFile(folder / "package.zip", "w", zipfile.ZIP_DEFLATED) as file:
        for path in PACKAGE.rglob("*"):
            if path.is_file() and path.suffix != ".pyc" and path.parent.name != "data":
                file.write(path, path.relative_to(PACKAGE.parent))
        file.write(archive, f"pyblasgpu/data/{archive.name}")
        file.write(bytecode, "pyblasgpu/kernels/level1/map.pyc")
    return folder / "package.zip"


@pytest.fixture
def python(zipped, tmp_path):
    """Runs Python on the package in the zip; returns what it prints."""

    def run(*arguments: str) -> str:
        home = {"PYTHONPATH": str(zipped), "PYBLASGPU_HOME": str(tmp_path / "home")}
        done = subprocess.run(
            [sys.executable, *arguments],
            cwd=tmp_path,
            env={**os.environ, **home},
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


def test_calls_on_host_arrays(python, zipped):
    program = """if True:
        import numpy as np, pyblasgpu
        a = np.array([[4.0, 2.0], [2.0, 3.0]])
        print(pyblasgpu.__file__)
        print(pyblasgpu.gemm(a, a).tolist(), pyblasgpu.blas.dgemm(1.0, a, a).tolist())
        print(float(pyblasgpu.linalg.det(a)), pyblasgpu.gemm(a, a, backend="numba").tolist())
    """
    place, *results = python("-c", program).splitlines()
    square = "[[20.0, 14.0], [14.0, 13.0]]"
    assert place == str(zipped / "pyblasgpu" / "__init__.py")
    assert results == [f"{square} {square}", f"8.0 {square}"]


@pytest.mark.parametrize("device", ["h200", "a100", "sm_90"])
def test_explain_reads_devices_and_tuned_values(python, device):
    command = ["-m", "pyblasgpu", "explain", "dgemm", "1000", "--json", "--device", device]
    from_zip = json.loads(python(*command))
    here = subprocess.run([sys.executable, *command], capture_output=True, text=True, check=True)
    assert from_zip == json.loads(here.stdout)


def test_where_tuned_values_are(python, zipped):
    rows = json.loads(python("-m", "pyblasgpu", "wisdom", "where", "--device", "h200", "--json"))
    assert [row["exists"] for row in rows] == [False, True, True]
    assert rows[1]["file"] == f"{zipped}/pyblasgpu/database/nvidia_h200.json"


def test_info(python):
    facts = json.loads(python("-m", "pyblasgpu", "info", "--json"))
    assert facts["pyblasgpu"] == pyblasgpu.__version__


def test_archives_of_kernels(python, zipped):
    program = """if True:
        from pyblasgpu.gpu.build.compile import archives_for
        (archive,) = archives_for((9, 0))
        print(archive.path, archive.get("0" * 64).cubin.decode())
    """
    path, cubin = python("-c", program).split()
    assert path == f"{zipped}/pyblasgpu/data/{archive_name(ARCH, digest_of_all())}" and cubin == "cubin"


def test_kernels_are_shown_and_compiled(python):
    command = ("-m", "pyblasgpu", "explain", "daxpy", "1000", "--device", "h200")
    assert "# the kernel, /x/map.py:" in python(*command, "--source")
    assert ".target sm_90" in python(*command, "--ptx")
