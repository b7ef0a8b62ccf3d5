"""With an archive of kernels a process calls routines where what compiles cannot be imported; a call loads no
more of the package than it needs.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import pyblasgpu

pytest.importorskip("cuda.bindings.driver")

#: A process that makes calls on a driver that is none; "record" puts the kernels that they need into an
#: archive, "serve" hides what compiles, and the name of a routine does so for one call of it.
PROGRAM = """
import sys
from pathlib import Path

HIDDEN = ("numba", "numba_cuda", "llvmlite", "filelock", "cuda.core", "rich", "matplotlib")

class Finder:
    def find_spec(self, name, path=None, target=None):
        if any(name == hidden or name.startswith(hidden + ".") for hidden in HIDDEN):
            raise ImportError(f"{name} is hidden")

step = sys.argv[1]
from_archive = step != "record"
if from_archive:
    sys.meta_path.insert(0, Finder())
    sys.modules["numba"] = None

import numpy as np
import pytest
import fake_device, fake_driver, fake_toolchain
from fake_device import Array
import pyblasgpu
from pyblasgpu.gpu import backend, launch
from pyblasgpu.gpu.build import archive, compile
from pyblasgpu.gpu.build.kernel_digest import digest_of_all

needed = {}

def recording(source, cc):
    found = fake_toolchain.compiled(source, cc)
    needed[compile.archive_key(source, cc)] = compile.record_of(source, found)
    return found

def first_call(routine):
    a = Array(fake_device.aligned((700, 700), "d", 0, "F"))
    getattr(pyblasgpu, routine)(a, a)
    files = [Path(module.__file__) for name, module in sys.modules.items() if name.startswith("pyblasgpu")]
    print(len(files), sum(len(file.read_text().splitlines()) for file in files))
    sys.exit()

def calls():
    for letter in "fdFD":
        shapes = (700, 700), (700, 96), (700, 96), (700, 1), (20, 20)
        a, b, b2, thin, small = (Array(fake_device.aligned(shape, letter, 0, "F")) for shape in shapes)
        pyblasgpu.gemm(a, a), pyblasgpu.trsm(a, a)
        pyblasgpu.gemm(a, b), pyblasgpu.gemm(a, thin), pyblasgpu.gemm(Array(a.host.T), b)
        pyblasgpu.trsm(a, b), pyblasgpu.trsm(a, thin), pyblasgpu.trsm(small, small)
        pyblasgpu.trmm(a, b), pyblasgpu.trmm(Array(a.host[::2, ::2]), Array(b.host[::2]))
        pyblasgpu.syrk(b), pyblasgpu.syr2k(b, b), pyblasgpu.symm(a, b)
        pyblasgpu.blas.gemm(1, a, b), pyblasgpu.linalg.solve_triangular(a, thin)
        pyblasgpu.plan_gemm(a, b, b2)(a, b, b2), pyblasgpu.plan_trsm(a, b, b2)(a, b, b2)
        host = a.host[:64, :64]
        pyblasgpu.gemm(host, host, backend="cuda")

patch, require = pytest.MonkeyPatch(), backend.require
driver = fake_driver.install(patch)
patch.setattr(launch, "compile_source", compile.compile_source if from_archive else recording)
if not from_archive:
    patch.setattr("pyblasgpu.kernels.compile_ahead.ensure_compiled", lambda sources, ordinal: None)
if from_archive:  # the stand-in has replaced it
    patch.setattr("pyblasgpu.gpu.backend.require", require)
if step not in ("record", "serve"):
    first_call(step)
calls()
digest = digest_of_all()
if from_archive:
    (found,) = archive.archives("sm_90a", digest)
    print(len(found), len(found.used), len(driver.launches))
    print(*sorted(name for name in sys.modules if "pyblasgpu.tuning" in name))
else:
    path = archive.user_folder() / archive.archive_name("sm_90a", digest)
    archive.write(path, "sm_90a", digest, {}, needed.items())
    print(len(needed), len(driver.launches))
"""


def lines(step: str, home: Path) -> list[str]:
    here = Path(__file__).parents[1]
    path = os.pathsep.join([str(Path(pyblasgpu.__file__).parents[1]), str(here)])
    environment = {**os.environ, "PYTHONPATH": path, "PYBLASGPU_HOME": str(home)}
    process = subprocess.run(
        [sys.executable, "-c", PROGRAM, step], env=environment, text=True, capture_output=True
    )
    assert process.returncode == 0, process.stderr[-3000:]
    return process.stdout.splitlines()


#: Modules that a first call loads at most, and their lines.
LOADED = {"gemm": (118, 18_000), "trsm": (125, 19_400)}


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """A folder with an archive of kernels, how many they are, and launches."""
    home = tmp_path_factory.mktemp("home")
    return home, *map(int, lines("record", home)[0].split())


def test_calls_need_no_compiler(recorded):
    home, needed, launches = recorded
    assert needed > 30
    counts, imported = lines("serve", home)
    assert counts.split() == [str(needed), str(needed), str(launches)]
    assert imported == "", "nor the tuner"


@pytest.mark.parametrize("routine", LOADED)
def test_a_first_call_loads_few_modules(recorded, routine):
    modules, text = map(int, lines(routine, recorded[0])[0].split())
    most_modules, most_lines = LOADED[routine]
    assert modules <= most_modules and text <= most_lines, (modules, text)
