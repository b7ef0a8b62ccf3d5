"""The kernels of a call are compiled at once, in processes of their own; one line on the log says so."""

from __future__ import annotations

import logging
import subprocess

import chosen_kernels
import pytest

from pyblasgpu.gpu.build import compile as gpu_compile
from pyblasgpu.kernels import compile_ahead
from pyblasgpu.kernels.compile_ahead import compile_missing

pytestmark = chosen_kernels.NEEDS_COMPILER

CC = (8, 6)  # nothing else in the tests compiles for it


@pytest.fixture
def sources(monkeypatch, tmp_path, caplog):
    """Three kernels that nobody keeps, and three cores."""
    monkeypatch.setenv("PYBLASGPU_HOME", str(tmp_path))
    monkeypatch.setattr("pyblasgpu.processes.cores", lambda: 3)
    monkeypatch.setattr(gpu_compile, "in_memory", {})
    caplog.set_level(logging.INFO, "pyblasgpu")
    return [chosen_kernels.smallest("diagonal_blocks", letter) for letter in "sdc"]


@pytest.fixture
def compiled_here(monkeypatch):
    """The kernels that this process compiles."""
    compiled = []

    def note(source, cc):
        compiled.append(source)
        return gpu_compile.compile_source(source, cc)

    monkeypatch.setattr(compile_ahead, "compile_source", note)
    return compiled


def test_each_in_a_process_of_its_own(sources, compiled_here, caplog):
    compile_missing([*sources, sources[0]], CC)
    assert compiled_here == sources[:1]
    assert all(gpu_compile.kept(source, CC).resources.registers > 0 for source in sources)
    (record,) = caplog.records
    assert "3 kernels for sm_86 in 3 processes" in record.message and "`pyblasgpu build`" in record.message
    compile_missing(sources, CC)
    assert len(caplog.records) == 1 and compiled_here == sources[:1]


def test_one_kernel_needs_no_process(sources, compiled_here, monkeypatch):
    monkeypatch.setattr(subprocess, "Popen", None)
    compile_missing(sources[:1], CC)
    assert compiled_here == sources[:1]


def test_a_worker_that_dies_is_no_error(sources, monkeypatch):
    monkeypatch.setattr(compile_ahead, "WORKER", "import os; os.abort()")
    compile_missing(sources, CC)
    assert gpu_compile.kept(sources[0], CC) and not gpu_compile.kept(sources[1], CC)


def test_an_interpreter_that_does_not_start_is_no_error(sources, compiled_here, monkeypatch):
    monkeypatch.setattr(compile_ahead.sys, "executable", "/nowhere/python")
    compile_missing(sources, CC)
    assert compiled_here == sources[:1]


def test_without_a_compiler_loading_says_what_is_missing(sources, monkeypatch, caplog):
    monkeypatch.setattr(compile_ahead.backend, "why_unavailable", lambda: "it is absent")
    compile_missing(sources, CC)
    assert not caplog.records
