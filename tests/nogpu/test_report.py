"""What is made of a recorded sweep, without a device: tables, plots, files."""

from __future__ import annotations

import json
import sys
from collections import Counter
from dataclasses import replace
from types import SimpleNamespace

import pytest
from fake_device import described
from recorded import QUICK
from rich.console import Console

from pyblasgpu import cli
from pyblasgpu.gpu import device
from pyblasgpu.tuning import command as tune_command
from pyblasgpu.tuning import report, results, sweep_file
from pyblasgpu.tuning.results import Record

GRIDS = {
    "BLK_M": 64,
    "BLK_N": 32,
    "BLK_K": 8,
    "DIM_X": 8,
    "DIM_Y": 8,
    "DIM_XA": 32,
    "DIM_YA": 2,
    "DIM_XB": 16,
    "DIM_YB": 4,
    "stages": 3,
}


def record(stages, tflops, **changes):
    facts = {
        "stem": "gemm_simt",
        "dtype": "c",
        "layout": "nt",
        "size": "large",
        "extents": (4096, 4096, 4096),
        **changes,
    }
    return Record(
        "NVIDIA H200",
        "sm_90",
        parameters={**GRIDS, "stages": stages},
        seconds=1 / tflops,
        tflops=tflops,
        **facts,
    )


FEW = [
    record(3, 40.0),
    record(4, 50.0),
    record(1, 20.0),
    record(2, 90.0),
    record(2, 90.0, outcome="wrong"),
    replace(record(0, 55.0, outcome="vendor"), parameters={}),
]


def test_a_row_is_that_of_the_winner_beside_the_vendor():
    (row,) = report.rows(FEW)
    assert row.parameters["stages"] == 4 and row.tflops == 50.0 and row.vendor == 55.0
    assert row.tried == 3 and row.median == 40.0 and row.extents == (4096, 4096, 4096)


def test_every_candidate_is_counted_once_and_a_failure_is_the_last_word():
    assert report.funnel(FEW) == {"gemm_simt": Counter(ok=3, wrong=1)}


def test_the_table_is_that_of_kurzak():
    console = Console(width=170, record=True, file=open("/dev/null", "w"))  # noqa: SIM115
    report.show(FEW, console)
    text = console.export_text()
    for cell in ("CGEMM", "ABᵀ", "64×32×8", "8×8", "32×2", "16×4", "50", "55", "large (4096×4096×4096)"):
        assert cell in text
    assert "gemm_simt: 4 candidates: ok 3, wrong 1" in text


def test_a_report_is_written_to_a_folder(tmp_path):
    names = {path.name for path in report.write(FEW, tmp_path / "new")}
    assert {"report.md", "report.json"} <= names
    page = (tmp_path / "new" / "report.md").read_text()
    assert "| CGEMM | ABᵀ | gemm_simt |" in page
    data = json.loads((tmp_path / "new" / "report.json").read_text())
    assert data["winners"][0]["tflops"] == 50.0 and data["candidates"] == {"gemm_simt": {"ok": 3, "wrong": 1}}


def test_without_matplotlib_there_are_no_plots(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyblasgpu.tuning.plots", None)
    monkeypatch.delattr("pyblasgpu.tuning.plots", raising=False)
    assert {path.suffix for path in report.write(FEW, tmp_path)} == {".md", ".json"}


def test_plots_of_distribution_parameters_and_sizes(tmp_path):
    plots = pytest.importorskip("pyblasgpu.tuning.plots", exc_type=ImportError)
    whole = [
        Record("x", "sm_90", "gemm", "s", "nn", "", (n, n, n), {}, outcome, 1e-3, float(n))
        for n in (256, 512)
        for outcome in ("before", "after")
    ]
    paths = plots.draw([*FEW, *whole], tmp_path)
    assert [path.name for path in paths] == ["distribution.svg", "parameters_gemm_simt.svg", "over_n.svg"]
    effects = paths[1].read_text()
    assert ">stages<" in effects and ">BLK_M<" not in effects  # which does not vary
    assert ">before<" in paths[2].read_text() and ">after<" in paths[2].read_text()
    assert plots.draw([], tmp_path) == []
    again = plots.draw(FEW, tmp_path / ".")
    assert again[0].read_bytes() == paths[0].read_bytes()  # a diff shows what has changed, and nothing else


def test_the_recorded_sweep_is_reported_on(capsys):
    assert cli.main(["report", str(QUICK)]) == 0
    text = capsys.readouterr().out
    assert "NVIDIA H200: the fastest kernels" in text and text.count("SGEMM") >= 16
    assert cli.main(["report", "--json", str(QUICK)]) == 0
    summary = json.loads(capsys.readouterr().out)
    document = results.winners(sweep_file.read_sweep(QUICK), "NVIDIA H200")
    assert len(summary["winners"]) == len(document.entries)
    for row in summary["winners"]:
        entry = document.entries[row["stem"], row["dtype"], row["layout"], row["size"]]
        assert row["parameters"] == entry.parameters


def test_what_cannot_be_reported_on_is_reported(tmp_path, capsys):
    empty, other = tmp_path / "empty.jsonl", tmp_path / "other.jsonl"
    empty.touch()
    for one in (FEW[0], replace(FEW[0], device="NVIDIA A100")):
        sweep_file.append(other, one)
    for path, problem in (
        (tmp_path / "absent", "cannot be read"),
        (empty, "no records"),
        (other, "several devices: NVIDIA H200, NVIDIA A100"),
    ):
        assert cli.main(["report", str(path)]) == 2
        assert problem in capsys.readouterr().err


@pytest.mark.skipif(device.count() > 0, reason="there is a device")
def test_the_sweep_of_no_device_is_asked_for(capsys):
    assert cli.main(["report"]) == 2
    assert "pyblasgpu report:" in capsys.readouterr().err


def test_the_sweep_of_the_device_here_is_the_default(monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("PYBLASGPU_HOME", str(tmp_path))
    described(monkeypatch, device.known("h200"))
    sweep_file.append(sweep_file.sweep_file("NVIDIA H200"), FEW[0])
    assert tune_command.show_report(SimpleNamespace(sweeps=[], report=None, json=False)) == 0
    assert "CGEMM" in capsys.readouterr().out
