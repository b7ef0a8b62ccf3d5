"""The kernels of a call are compiled at once, in processes of their own; one line on stderr says so."""

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
    monkeypatch.setattr(compile_ahead, "noticed", set())
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


ADVICE = "`pyblasgpu build` compiles the kernels of all calls ahead"


def test_each_in_a_process_of_its_own(sources, compiled_here, caplog, capsys):
    compile_missing([*sources, sources[0]], CC)
    assert compiled_here == sources[:1]
    assert all(gpu_compile.kept(source, CC).resources.registers > 0 for source in sources)
    (record,) = caplog.records
    assert record.message == "compiling 3 kernels in 3 processes for sm_86, about 7 s"
    assert capsys.readouterr().err == f"pyblasgpu: {record.message}; {ADVICE}\n"
    compile_missing(sources, CC)
    assert len(caplog.records) == 1 and compiled_here == sources[:1] and not capsys.readouterr().err


class Closed:
    """The stream of a file that is closed."""

    def write(self, text):
        raise ValueError("I/O operation on closed file")


@pytest.mark.parametrize("silent", ["by the environment", "without stderr", "with a closed stderr"])
@pytest.mark.parametrize("has_archive", [False, True])
def test_the_notice_is_once_an_architecture(sources, monkeypatch, capsys, has_archive, silent):
    """It names the command where that helps; and it can be switched off."""
    monkeypatch.setattr(compile_ahead, "compile_source", lambda source, cc: None)
    monkeypatch.setattr(compile_ahead, "archives_for", lambda cc: ["archive"] * has_archive)
    with monkeypatch.context() as patch:
        if silent == "by the environment":
            patch.setenv("PYBLASGPU_PROGRESS", "0")
        else:
            patch.setattr("sys.stderr", None if silent == "without stderr" else Closed())
        compile_missing(sources[:1], CC)
    assert not capsys.readouterr().err
    compile_ahead.noticed.clear()
    for cc in (CC, CC, (8, 9)):
        compile_missing(sources[:1], cc)
    lines = capsys.readouterr().err.splitlines()
    what = [
        "pyblasgpu: compiling 1 kernel for sm_86, about 7 s",
        "pyblasgpu: compiling 1 kernel for sm_89, about 7 s",
    ]
    assert lines == [
        f"{line}; {'the archive lacks what an override names' if has_archive else ADVICE}" for line in what
    ]


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
