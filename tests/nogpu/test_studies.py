"""Studies of `benchmarks`: their options and what is kept of a run, and the counters of the device."""

from __future__ import annotations

import argparse
import io
import json

import pytest
from rich.console import Console

from benchmarks import counters
from benchmarks.study import Option, Study, attempt, means, parser, run
from pyblasgpu.bench import command as bench_command
from pyblasgpu.errors import BackendUnavailable, PyblasgpuError


def study_of(rows, **changes) -> Study:
    options = {
        "letters": "sd",
        "sizes": (8, 16),
        "routines": Option(("gemm", "gemm, packed"), ("gemm", "gemm, packed")),
        "tiles": Option((), kind=str),
        "is_quick": False,
        "device": None,
    }
    return Study("a_study", "About.", rows, options, lambda options: {"device": "x"}, **changes)


@pytest.mark.parametrize(
    ("words", "name", "value"),
    [
        ("--letters sd", "letters", ("s", "d")),
        ("--dtype d,z", "letters", ("d", "z")),
        ("--dtypes float32", "letters", ("s",)),
        ("--sizes 4 8", "sizes", (4, 8)),
        ("--orders 4,8 16", "sizes", (4, 8, 16)),
        ("--tiles gemm:4,8 trsm:4", "tiles", ("gemm:4,8", "trsm:4")),
        ("--is-quick", "is_quick", True),
        ("--budget 7", "seconds", 7.0),
        ("--device h200", "device", "h200"),
    ],
)
def test_options_of_a_study(words, name, value):
    assert getattr(parser(study_of(lambda options: ())).parse_args(words.split()), name) == value


def test_names_with_commas_and_names_that_are_none(capsys):
    options = parser(study_of(lambda options: ()))
    assert options.parse_args(["--routine", "gemm, packed", "gemm"]).routines == ("gemm, packed", "gemm")
    for wrong in (["--routines", "gemm,trsm"], ["--letters", "q"], ["--seconds", "0"], ["--sizes", "x"]):
        with pytest.raises(SystemExit):
            options.parse_args(wrong)
    assert "'trsm' is none of gemm, gemm, packed" in capsys.readouterr().err


def test_a_study_keeps_what_it_has(tmp_path, capsys):
    """A case that fails is a row, and the exit code; what ends the run leaves the rows before it."""

    def rows(options):
        yield attempt({"n": 1}, dict, {"seconds": 0.5})
        yield attempt({"n": 2}, lambda: {"seconds": 1 / 0})
        if options.is_quick:
            raise KeyboardInterrupt
        yield {"n": 3}

    kept = study_of(rows, summary=lambda rows, options: means([{"dtype": "d", "routine": "x", "ratio": 2.0}]))
    assert run(kept, ["--out", str(tmp_path)]) == 1
    written = json.loads((tmp_path / "a_study.json").read_text())
    assert written["device"] == "x" and [row["n"] for row in written["results"]] == [1, 2, 3]
    assert "ZeroDivisionError" in written["results"][1]["problem"]
    output = capsys.readouterr().out
    assert "{'n': 1, 'seconds': 0.5}" in output and "dx: geometric mean 2.000, least 2.000 of 1" in output
    with pytest.raises(KeyboardInterrupt):
        run(kept, ["--out", str(tmp_path / "cut.json"), "--is-quick"])
    assert [row["n"] for row in json.loads((tmp_path / "cut.json").read_text())["results"]] == [1, 2]
    capsys.readouterr()
    assert run(kept, ["--json", "--seconds", "1e-9"]) == 0  # out of time after the first
    assert [row["n"] for row in json.loads(capsys.readouterr().out)["results"]] == [1]


def test_kinds_of_rows(tmp_path):
    kinds = {"some": lambda options: [{"n": n} for n in options.sizes], "others": lambda options: [{"m": 1}]}
    assert run(study_of(kinds), ["--out", str(tmp_path), "--kinds", "others,some"]) == 0
    written = json.loads((tmp_path / "a_study.json").read_text())
    assert written == {"device": "x", "others": [{"m": 1}], "some": [{"n": 8}, {"n": 16}]}


# ------------------------------------------------------------------------------------------------ counters

PROFILED = """==PROF== Connected to process 7
"ID","Process ID","Kernel Name","dram__bytes_read.sum","gpu__time_duration.sum","smsp__issue.pct"
"","","","byte","nsecond","%"
"0","7","cupy_fill","9","9","9"
"1","7","a_call_begins","0","1,000","0"
"2","7","gemm","1,000","3000","80"
"3","7","split_k_reduce","500","1000","40"
"4","7","a_call_begins","0","1000","0"
"5","7","dgemm_kernel","2000.5","2000","50"
"""


def test_counters_are_those_of_a_call():
    metrics = ("gpu__time_duration.sum", "dram__bytes_read.sum", "smsp__issue.pct")
    ours, theirs = counters.calls(PROFILED.splitlines(), metrics)
    assert ours == {
        "kernels": 2,
        "gpu__time_duration.sum": 4000.0,
        "dram__bytes_read.sum": 1500.0,
        "smsp__issue.pct": 70.0,
    }
    assert theirs["kernels"] == 1 and theirs["dram__bytes_read.sum"] == 2000.5
    assert not list(counters.calls(PROFILED.splitlines()[:4], metrics)), "no call began"


def test_the_least_bytes_of_a_call():
    product, solve = bench_command.problems(("gemm", "trsm"), "d", ("NN", "LLNN"), (100,))
    assert counters.least_bytes(product) == 3 * 100 * 100 * 8
    assert counters.least_bytes(solve) == (5050 + 2 * 100 * 100) * 8


def test_counters_are_shown_in_multiples_of_the_least():
    counted = {"kernels": 3, counters.TIME: 5e3, counters.READ: 3e6, counters.WRITTEN: 1e6, counters.L2: 7e6}
    result = {
        "dtype": "d",
        "routine": "trsm",
        "variant": "LLNN",
        "n": 512,
        "of": "ours",
        "least_bytes": 2_000_000,
        "counted": counted,
    }
    (table,) = counters.summary([result], None)
    console = Console(width=170, file=io.StringIO())
    console.print(table)
    (row,) = [line for line in console.file.getvalue().splitlines() if "dtrsm LLNN" in line]
    cells = ["dtrsm LLNN", "512", "ours", "3", "5.00", "3.00", "1.00", "2.00", "7.00", "0.00", "0.00"]
    assert [cell.strip() for cell in row.split("│")[1:-1]] == cells


def test_without_a_profiler_counters_say_so(monkeypatch):
    monkeypatch.setattr(counters, "which", lambda name: None)
    with pytest.raises(BackendUnavailable, match="ncu"):
        counters.profile([], counters.METRICS)


def test_what_the_profiler_complains_about_is_passed_on(monkeypatch, tmp_path):
    fake = tmp_path / "ncu"
    fake.write_text("#!/bin/sh\necho unknown metric >&2\nexit 3\n")
    fake.chmod(0o700)
    monkeypatch.setattr(counters, "which", lambda name: str(fake))
    with pytest.raises(PyblasgpuError, match="unknown metric"):
        counters.profile([], counters.METRICS)


def test_counters_of_trmm_have_two_rivals():
    trmm, trsm = bench_command.problems(("trmm", "trsm"), "d", ("LLNN",), (100,))
    assert counters.sides_of(trmm, counters.SIDES) == ("ours", "cuBLAS", "out-of-place")
    assert counters.sides_of(trsm, counters.SIDES) == ("ours", "cuBLAS")


def test_counters_of_products_go_by_rasters():
    product, trmm = bench_command.problems(("gemm", "trmm"), "d", ("NN", "LLNN"), (100,))
    sides = counters.parse_sides("raster=1,ours,raster=16")
    assert counters.sides_of(product, sides) == sides and counters.sides_of(trmm, sides) == ("ours",)
    for wrong in ("raster=", "raster=x", "theirs"):
        with pytest.raises(argparse.ArgumentTypeError, match="is none of"):
            counters.parse_sides(wrong)
