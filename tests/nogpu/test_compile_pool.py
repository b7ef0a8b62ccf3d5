"""Compilers of the tuner: verdicts on their reports, processes, cores."""

from __future__ import annotations

import multiprocessing
import time
from multiprocessing import connection

import pytest

from pyblasgpu import processes
from pyblasgpu.gpu.build.compile import Resources
from pyblasgpu.gpu.device import known
from pyblasgpu.processes import Pool
from pyblasgpu.tuning import compile_pool
from pyblasgpu.tuning.prune import candidates

pytestmark = pytest.mark.usefixtures("home")

H200 = known("h200")

GOOD = Resources(registers=64, stack_bytes=0, spill_stores=0, spill_loads=0, shared_bytes=0)


@pytest.mark.parametrize(
    ("report", "rule"),
    [
        (GOOD, "ok"),
        ("line 1: syntax error", "compile"),
        (Resources(64, 0, 8, 0, 0), "spills"),
        (Resources(64, 256, 0, 0, 0), "stack"),
        (Resources(1024, 0, 0, 0, 0), "residence"),
    ],
)
def test_the_compilers_report_is_judged(report, rule):
    config = candidates("gemm_simt", "s", "nn", H200).left[0]
    assert compile_pool.complaint(config, report, H200)[0] == rule


@pytest.mark.slow
def test_candidates_compile_without_a_device():
    pytest.importorskip("numba.cuda")
    stem = "gemm_simt"
    few = candidates(stem, "s", "nn", H200, "quick").left
    config = next(each for each in few if each.THR_M * each.THR_N == 8)
    (((_, compiled), report),) = compile_pool.compile_all([(stem, config)], H200.cc, workers=1)
    assert compiled == config and compile_pool.complaint(config, report, H200) == ("ok", "")
    assert config.registers < report.registers <= 255


def test_what_nobody_waits_for_is_ended():
    """The interpreter joins these processes at its exit."""
    before = multiprocessing.active_children()
    with Pool(time.sleep, workers=1) as pool:
        pool.submit(600)
        (process,) = [each for each in multiprocessing.active_children() if each not in before]
    assert connection.wait([process.sentinel], 60)  # not exitcode, which a thread of the pool reads, too


def test_compilers_use_the_cores_that_were_granted(monkeypatch):
    monkeypatch.setattr(processes.os, "sched_getaffinity", lambda process: {3, 5, 7}, raising=False)
    assert processes.cores() == compile_pool.Compilers((9, 0)).workers == 3
    monkeypatch.delattr(processes.os, "sched_getaffinity")
    monkeypatch.setattr(processes.os, "cpu_count", lambda: None)
    assert processes.cores() == 1
