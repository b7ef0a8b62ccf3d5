"""A process forked after CUDA was initialised is told so, and computes host arrays on the CPU."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytest.importorskip("cupy")

FORK = """
import os, re, sys, warnings
import cupy, numpy as np
warnings.simplefilter("ignore", DeprecationWarning)
one = np.eye(8)
array, out = cupy.asarray(one), cupy.zeros((8, 8))
calls = []
if sys.argv[1] == "ours":
    import pyblasgpu
    plan = pyblasgpu.plan_gemm(array, array, out)
    calls = [lambda: pyblasgpu.gemm(array, array, out=out), lambda: plan(array, array, out)]
    for call in calls * 2:
        call()
cupy.cuda.Device().synchronize()
sys.stdout.flush()
child = os.fork()
if child:
    _, status = os.waitpid(child, 0)
    assert (cupy.asnumpy(pyblasgpu.gemm(array, array)) == one).all() if calls else True
    sys.exit(os.waitstatus_to_exitcode(status))
code = 1
try:
    import pyblasgpu
    from pyblasgpu.errors import BackendUnavailable
    told = "CUDA was initialised before this process was forked.*'spawn'"
    backend, reason = pyblasgpu.backend_status()
    assert backend == "cpu" and re.search(told, reason), (backend, reason)
    assert (pyblasgpu.gemm(one, 2 * one) == 2 * one).all()
    calls += [
        lambda: pyblasgpu.gemm(one, one, backend="cuda"), lambda: pyblasgpu.gemm(array, array),
        lambda: pyblasgpu.trsm(array, array, out=array), lambda: pyblasgpu.explain("gemm", "d", 8, 8),
    ]
    for call in calls:
        try:
            call()
        except BackendUnavailable as problem:
            assert re.search(told, str(problem)), problem
        else:
            raise AssertionError("it ran")
    print("fine", flush=True)
    code = 0
except BaseException:
    import traceback
    traceback.print_exc()
os._exit(code)
"""


@pytest.mark.parametrize("who", ["ours", "another's"])
def test_a_forked_process_is_told(who, monkeypatch):
    """Whether pyblasgpu had begun with CUDA or only CuPy."""
    monkeypatch.delenv("PYBLASGPU_BACKEND", raising=False)
    command = [sys.executable, "-c", FORK, who]
    process = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert (process.returncode, process.stdout.strip()) == (0, "fine"), process.stderr
