"""Kernels built ahead, on a device: a process that cannot import a compiler computes with them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

import pytest

import pyblasgpu
from pyblasgpu import build
from pyblasgpu.gpu.build import archive, kernel_store
from pyblasgpu.gpu.device import current

from .precompile import sources_of

cupy = pytest.importorskip("cupy")

N, R = 300, 40

#: Calls of integers, which are exact; what compiles is hidden.
PROGRAM = """
import sys

HIDDEN = ("numba", "numba_cuda", "llvmlite", "filelock")

class Finder:
    def find_spec(self, name, path=None, target=None):
        if any(name == hidden or name.startswith(hidden + ".") for hidden in HIDDEN):
            raise ImportError(f"{name} is hidden")

import cupy

sys.meta_path.insert(0, Finder())

import pyblasgpu
from pyblasgpu.gpu.build.compile import archives_for
from pyblasgpu.gpu.device import current

a = cupy.tril(cupy.arange(300 * 300, dtype="f8").reshape(300, 300) % 3) + cupy.eye(300)
b = cupy.arange(300 * 40, dtype="f8").reshape(300, 40) % 5
assert (pyblasgpu.gemm(a, b) == a @ b).all()
assert (pyblasgpu.trmm(a, b, lower=True) == a @ b).all()
assert (cupy.tril(pyblasgpu.syrk(b, lower=True)) == cupy.tril(b @ b.T)).all()
unit = cupy.tril(a, -1) % 2
x = pyblasgpu.trsm(unit, pyblasgpu.trmm(unit, b, lower=True, unit_diag=True), lower=True, unit_diag=True)
assert (x == b).all()
(found,) = archives_for(current().cc)
print(len(found), len(found.used))
"""


def calls():
    """Calls of PROGRAM, as `sources_of` takes them."""
    a, b = cupy.zeros((N, N)), cupy.zeros((N, R))
    yield lambda: pyblasgpu.gemm(a, b)
    yield lambda: pyblasgpu.trmm(a, b, lower=True)
    yield lambda: pyblasgpu.syrk(b, lower=True)
    yield lambda: pyblasgpu.trmm(a, b, lower=True, unit_diag=True)
    yield lambda: pyblasgpu.trsm(a, b, lower=True, unit_diag=True)


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A home with an archive of what the calls need, and no store of cubins."""
    sources = sources_of(calls())
    folder = tmp_path / "data" / "kernels"
    done = build.build(sources, current().cc, folder)  # from this user's store, or compiled into it
    assert done.kernels == len(sources) and not done.failed
    monkeypatch.setenv("PYBLASGPU_HOME", str(tmp_path))
    monkeypatch.setattr(kernel_store, "open_stores", {})
    archive.forget()
    yield tmp_path
    archive.forget()


def run(home) -> subprocess.CompletedProcess:
    environment = {**os.environ, "PYBLASGPU_HOME": str(home)}
    return subprocess.run(
        [sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, timeout=300
    )


def test_a_process_without_a_compiler_computes(home):
    done = run(home)
    assert done.returncode == 0, done.stderr[-2000:]
    held, used = map(int, done.stdout.split())
    assert held == used > 3


def test_without_the_archive_it_says_what_is_missing(home):
    shutil.rmtree(home / "data")
    done = run(home)
    assert done.returncode and "BackendUnavailable: kernels cannot be built here" in done.stderr
