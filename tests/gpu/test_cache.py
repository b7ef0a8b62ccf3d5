"""The store of cubins, used: a second process compiles nothing, a damaged store only costs time."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

PROCESS = """
import cupy
import pyblasgpu
from pyblasgpu.kernels import compile_ahead
from pyblasgpu.gpu.build.compile import kept

missing = []
original = compile_ahead.compile_missing


def counted(sources, cc):
    missing.extend(source for source in dict.fromkeys(sources) if kept(source, cc) is None)
    original(sources, cc)


compile_ahead.compile_missing = counted
result = pyblasgpu.gemm((cupy.eye(8) * 3)[::2, ::2], cupy.ones((4, 4)))
assert (result == 3).all()
print(len(missing))
"""


@pytest.fixture
def process(tmp_path):
    """Multiply in a process whose home is a folder of its own; how many kernels that compiled."""

    def run() -> int:
        done = subprocess.run(
            [sys.executable, "-c", PROCESS],
            text=True,
            capture_output=True,
            timeout=300,
            env={**os.environ, "PYBLASGPU_HOME": str(tmp_path)},
        )
        assert done.returncode == 0, done.stderr[-800:]
        return int(done.stdout)

    return run


def test_a_second_process_compiles_nothing_unless_the_store_is_damaged(process, tmp_path):
    kernels = process()
    assert kernels == 2, "one packs, one multiplies"
    assert process() == 0
    for path in tmp_path.rglob("*"):
        if path.is_file() and path.stat().st_size > 1000:
            path.write_bytes(path.read_bytes()[:-100])
    assert process() == kernels
    assert process() == 0
