"""The command line: what it prints and with which exit code."""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
from dataclasses import replace

import fake_toolchain
import pytest
from fake_device import described

import pyblasgpu
from pyblasgpu import __version__, build, cli, demo, options
from pyblasgpu.frontend.backend_status import backend_status
from pyblasgpu.gpu import backend, device
from pyblasgpu.gpu.build import archive
from pyblasgpu.gpu.build.compile import archives_for
from pyblasgpu.testing import symmetric_cases


@pytest.fixture
def on_cpu(monkeypatch):
    """The demo on SciPy's BLAS, without the simulator's process."""
    monkeypatch.setenv("PYBLASGPU_BACKEND", "cpu")
    monkeypatch.setattr(demo, "simulated", lambda: iter(()))


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["nonsense"],
        ["demo", "--n", "0"],
        ["tune", "--dtype", "s,x"],
        ["tune", "--budget", "-3m"],
        ["tune", "--budget", "soon"],
        ["tune", "--strategy", "luck"],
        ["wisdom"],
        ["wisdom", "buy"],
        ["bench", "--sizes", "64,"],
        ["bench", "--shapes", "64x64"],
        ["bench", "--shapes", "64x64x0"],
        ["bench", "--batched", "16"],
        ["bench", "--batched", "9x8x8"],
        ["bench", "--routine", "syr"],
        ["tune", "--routine", "syrk"],
        ["build", "-j", "0"],
        ["build", "--arch", "sm_70"],
    ],
)
def test_wrong_use_exits_with_2(arguments, capsys):
    with pytest.raises(SystemExit) as exit:
        cli.main(arguments)
    assert exit.value.code == 2
    assert "usage: pyblasgpu" in capsys.readouterr().err


def commands() -> dict[str, argparse.ArgumentParser]:
    """The parsers of all commands, and the one of the command line under the name ''."""
    whole = cli.parser()
    (chosen,) = (each for each in whole._actions if isinstance(each, argparse._SubParsersAction))
    return {"": whole, **chosen.choices}


#: Arguments that a command needs beside its options.
NEEDED = {"explain": ["dgemm", "64"], "wisdom": ["list"], "": ["info"]}


@pytest.mark.parametrize("command", commands())
def test_every_help_is_sentences_with_an_example_that_parses(command, capsys):
    parser = commands()[command]
    texts = {command: f"{parser.description} {parser.epilog}"}
    texts |= {str(action.option_strings or action.dest): action.help for action in parser._actions}
    for name, text in texts.items():
        sentences, _, example = text.partition(" Example: ")
        assert re.fullmatch(r"([A-Z].*[A-Za-z0-9)]\.)+", sentences) and example, (name, text)
        words = example.split()
        if words[0] == "pyblasgpu":
            cli.parser().parse_args(words[1:])
        elif words[0] in ("--help", "--version"):
            with pytest.raises(SystemExit):
                cli.parser().parse_args([*command.split(), *words])
        else:
            cli.parser().parse_args([*command.split(), *NEEDED.get(command, []), *words])


@pytest.mark.parametrize("command", commands())
def test_help_is_printed(command, capsys):
    with pytest.raises(SystemExit) as exit:
        cli.main([*command.split(), "--help"])
    assert exit.value.code == 0
    text = capsys.readouterr().out
    assert f"usage: pyblasgpu {command}".strip() in text and "Example: pyblasgpu" in text


def test_version(capsys):
    with pytest.raises(SystemExit) as exit:
        cli.main(["--version"])
    assert exit.value.code == 0
    assert capsys.readouterr().out == f"pyblasgpu {__version__}\n"


def test_python_m_runs_the_same_command():
    text = subprocess.check_output([sys.executable, "-m", "pyblasgpu", "--version"], text=True)
    assert text == f"pyblasgpu {__version__}\n"


def test_info_tells_why_the_cpu_is_used(capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("PYBLASGPU_BACKEND", "cpu")
    monkeypatch.setenv("PYBLASGPU_HOME", str(tmp_path))
    (tmp_path / "cache" / "cubin").mkdir(parents=True)
    (tmp_path / "cache" / "cubin" / "kernel").write_bytes(bytes(100))
    assert cli.main(["info", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert (facts["backend"], facts["reason"]) == backend_status()
    assert facts["cache"] == {"folder": str(tmp_path / "cache"), "files": 1, "bytes": 100}
    assert facts["environment"]["PYBLASGPU_HOME"] == str(tmp_path)
    assert {"numpy", "scipy", "numba"} <= set(facts["libraries"])

    assert cli.main(["info"]) == 0
    page = capsys.readouterr().out
    assert pyblasgpu.show_config() is None
    assert capsys.readouterr().out == page
    assert pyblasgpu.show_config("dicts") == facts
    with pytest.raises(ValueError, match="mode='yaml' is neither"):
        pyblasgpu.show_config("yaml")
    assert facts["reason"] in page and str(tmp_path / "cache") in page
    assert "\x1b" not in page  # no colour in a pipe


def test_info_lists_the_devices(capsys, monkeypatch):
    monkeypatch.setenv("PYBLASGPU_BACKEND", "cpu")
    described(monkeypatch, *(replace(device.known("h200"), ordinal=ordinal) for ordinal in range(2)))
    assert cli.main(["info"]) == 0
    page = capsys.readouterr().out
    assert "device 0" in page and "device 1" in page
    assert "NVIDIA H200, arch sm_90, multiprocessors 132" in page


def test_info_says_which_archive_serves(capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("PYBLASGPU_BACKEND", "cpu")
    monkeypatch.setenv("PYBLASGPU_HOME", str(tmp_path))
    described(monkeypatch, *(replace(device.known("h200"), ordinal=ordinal) for ordinal in range(2)))
    archive.forget()
    assert cli.main(["info"]) == 0
    page = capsys.readouterr().out
    assert page.count("kernels (sm_90a)") == 1 and "`pyblasgpu build` compiles them ahead" in page

    done = build.build(fake_toolchain.kernels(3), (9, 0), workers=1, compiler=fake_toolchain.compile_job)
    (served,) = archives_for((9, 0))
    served.get(min(served))
    assert cli.main(["info"]) == 0
    page = "".join(capsys.readouterr().out.split())
    assert f"{done.path}:3kernels,1ofthemusedbythisprocess" in page
    archive.forget()


def test_demo_checks_every_result(capsys, on_cpu):
    assert cli.main(["demo", "--n", "90", "--json"]) == 0
    rows = [demo.DemoResult(**row) for row in json.loads(capsys.readouterr().out)]
    assert [row.dtype + row.routine for row in rows] == [
        d + r for d in "sdcz" for r in ("gemm", "trmm", "trsm")
    ]
    assert all(row.where == "cpu" and row.n == 90 and row.seconds > 0 and 0 < row.error < 1 for row in rows)

    assert cli.main(["demo", "--n", "90"]) == 0
    table = capsys.readouterr().out
    assert "ztrsm" in table
    *_, where, passed = table.splitlines()
    assert where.startswith("backend cpu: set by PYBLASGPU_BACKEND")
    assert passed == "12 of 12 results within their error bound"


def test_demo_fails_when_a_result_is_wrong(capsys, on_cpu, monkeypatch):
    def half(a, b, *, out, **options):
        out *= 0.5

    monkeypatch.setattr("pyblasgpu.trmm", half)
    assert cli.main(["demo", "--n", "40"]) == 1
    assert "8 of 12 results within" in capsys.readouterr().out


@pytest.mark.skipif(backend.why_unavailable() is not None, reason=f"{backend.why_unavailable()}")
def test_demo_runs_every_kernel_in_the_simulator():
    rows = list(demo.simulated())
    assert {(row.routine, row.dtype) for row in rows} == {(r, d) for r in demo.ROUTINES for d in "sdcz"}
    assert all(row.where == "sim" and row.passed for row in rows)
    kernels = {"gemm_simt", "trmm_leaf", "trsm_fma", "trsm_mma"}
    assert kernels <= {stem for row in rows for stem, _, _ in row.configs}


def test_demo_shows_cublas_and_when_asked_each_config_once(capsys, on_cpu, monkeypatch):
    config = [["gemm_simt", "BLK_M=64", "packaged: NVIDIA H200"]]
    row = demo.DemoResult("gemm", "d", 4096, "cuda", 0.003, 45.8, 0.01, config, cublas_seconds=0.0025)
    monkeypatch.setattr(demo, "collect", lambda n, progress: iter([row, row]))
    assert cli.main(["demo"]) == 0
    text = capsys.readouterr().out
    assert "cuBLAS s" in text and text.count("2.50e-03") == 2
    assert "BLK_M=64" not in text
    assert cli.main(["demo", "--verbose"]) == 0
    text = capsys.readouterr().out
    assert text.count("BLK_M=64") == 1 and "packaged: NVIDIA H200" in text


def test_tune_hands_its_options_over(monkeypatch):
    from pyblasgpu.tuning import command as tune_command

    calls = []
    monkeypatch.setattr(tune_command, "main", lambda options: calls.append(options) or 0)
    arguments = "tune --routine gemm --dtype s,d --effort quick --budget 1.5m --dry-run --device h200 --json"
    assert cli.main(arguments.split()) == 0
    (parsed,) = calls
    assert parsed.routine == ("gemm",) and parsed.dtype == ("s", "d") and parsed.budget == 90
    assert parsed.effort == "quick" and parsed.dry_run and parsed.device == "h200" and parsed.json
    assert not parsed.resume and parsed.report is None and parsed.strategy is None
    assert cli.main(["tune", "--resume", "--strategy", "score-first", "--report", "folder"]) == 0
    assert calls[1].resume and calls[1].strategy == "score-first" and calls[1].report == "folder"


@pytest.mark.parametrize(("text", "seconds"), [("90", 90), ("90s", 90), ("10m", 600), ("0.5h", 1800)])
def test_durations(text, seconds):
    assert options.parse_duration(text) == seconds


@pytest.mark.parametrize("text", ["", "m", "0s", "-1m", "nan", "inf", "ten"])
def test_no_durations(text):
    with pytest.raises(argparse.ArgumentTypeError):
        options.parse_duration(text)


@pytest.mark.skipif(device.count() > 0, reason="there is a device")
def test_bench_without_a_device_says_what_is_missing(capsys):
    assert cli.main(["bench"]) == 2
    assert "pyblasgpu bench: backend 'cuda'" in capsys.readouterr().err


def test_bench_knows_more_routines_than_are_tuned():
    parsed = cli.parser().parse_args(["bench", "--routine", "syrk,her2k,gemmtr"])
    assert parsed.routine == ("syrk", "her2k", "gemmtr")
    assert cli.parser().parse_args(["bench"]).routine == options.ROUTINES
    assert {*options.ROUTINES, *options.OTHERS} == {
        "gemm",
        "gemm3m",
        "trmm",
        "trsm",
        *symmetric_cases.ROUTINES,
    }


def test_shapes():
    assert options.parse_shapes("8x16x32,1x1x9") == ((8, 16, 32), (1, 1, 9))
    assert options.parse_shapes("awkward") == "awkward"
    assert options.parse_batches("10000x16,7x2x3x4") == ((16, 16, 16, 10000), (2, 3, 4, 7))
