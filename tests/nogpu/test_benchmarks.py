"""What of the benchmarks needs no device: the list of cases, the peaks, the plot."""

from __future__ import annotations

import argparse
import io
import json
import sys
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
from rich.console import Console

from benchmarks import counters, pivot_growth
from benchmarks.study import Option, Study, attempt, means, parser, run
from pyblasgpu import cli
from pyblasgpu.bench import command as bench_command
from pyblasgpu.bench import machine
from pyblasgpu.dispatch.choose import select
from pyblasgpu.errors import BackendUnavailable, PyblasgpuError
from pyblasgpu.gpu.device import known
from pyblasgpu.testing.clocks import medians_in_turn
from pyblasgpu.testing.problems import Arrays
from pyblasgpu.types import DTYPES


def test_cases_match_variants_to_routines():
    cases = list(bench_command.problems(("gemm", "trsm"), ("s", "z"), ("NN", "CT", "RUCU"), (64, 128)))
    names = [f"{case.dtype.letter}{case.routine} {case.variant} {case.case.n}" for case in cases]
    assert names == [
        "sgemm NN 64",
        "sgemm NN 128",
        "sgemm CT 64",
        "sgemm CT 128",
        "zgemm NN 64",
        "zgemm NN 128",
        "zgemm CT 64",
        "zgemm CT 128",
        "strsm RUCU 64",
        "strsm RUCU 128",
        "ztrsm RUCU 64",
        "ztrsm RUCU 128",
    ]


def test_each_routine_takes_its_own_variants():
    variants = ("NN", "LL", "LN", "LC", "LNN", "LLNN")
    routines = ("gemm", "symm", "herk", "syrk", "gemmtr", "trmm")
    actual = [
        f"{c.dtype.letter}{c.routine} {c.variant}"
        for c in bench_command.problems(routines, "dz", variants, (8,))
    ]
    assert actual == [
        "dgemm NN",
        "zgemm NN",
        "dsymm LL",
        "zsymm LL",
        "zherk LN",
        "zherk LC",
        "dsyrk LN",
        "dsyrk LC",
        "zsyrk LN",
        "dgemmtr LNN",
        "zgemmtr LNN",
        "dtrmm LLNN",
        "ztrmm LLNN",
    ]


def test_products_of_other_than_square_matrices():
    cases = [
        case.case for case in bench_command.products(("s", "d"), ("TN", "LLNN"), ((8, 16, 32), (5, 5, 5)))
    ]
    assert [(case.dtype.letter, case.m, case.n, case.k, case.trans_a.value) for case in cases] == [
        ("s", 8, 16, 32, "T"),
        ("s", 5, 5, 5, "T"),
        ("d", 8, 16, 32, "T"),
        ("d", 5, 5, 5, "T"),
    ]
    awkward = [case.case for case in bench_command.products(("s",), ("NN",), "awkward")]
    assert (64, 64, 65536) in [(case.m, case.n, case.k) for case in awkward] and len(awkward) == 9
    with pytest.raises(ValueError, match="shapes 'ugly' are none of awkward, lu, between, tail"):
        list(bench_command.products(("s",), ("NN",), "ugly"))


def test_triangles_with_few_right_hand_sides():
    arguments = ("trsm", "gemm", "trmm"), "d", ("LLNN", "RLNN", "NN"), (8, 16), (2, 3)
    cases = list(bench_command.triangles(*arguments))
    assert [(p.routine, p.variant, p.case.m, p.case.n) for p in cases[:6]] == [
        ("trmm", "LLNN", 8, 2),
        ("trmm", "LLNN", 8, 3),
        ("trmm", "LLNN", 16, 2),
        ("trmm", "LLNN", 16, 3),
        ("trmm", "RLNN", 2, 8),
        ("trmm", "RLNN", 3, 8),
    ]
    assert len(cases) == 16 and cases[0].flops == cases[4].flops == 8 * 8 * 2


def test_batches_of_products():
    """Column-major matrices, sampled errors that see one wrong element, and what of them is timed."""
    (problem,) = bench_command.products(("z",), ("TN",), ((3, 4, 5, 200),))
    x = problem.data()
    assert [array.shape for array in x] == [(200, 5, 3), (200, 5, 4), (200, 3, 4)]
    assert all(array.strides[-2] == 16 for array in x) and problem.flops == 8 * 3 * 4 * 5 * 200
    result = x.a.swapaxes(1, 2) @ x.b
    assert problem.error(x, result) <= 1
    for place in (0, 199):
        wrong = result.copy()
        wrong[place, 2, 3] += 1e-10
        assert problem.error(x, wrong) > 1
    assert bench_command.extents({"m": 16, "n": 16, "k": 16, "batch": (10000,)}) == "10000 of 16"


def test_batches_of_systems():
    """Batches are read as of products; with as many right-hand sides as rows, or others, on either side."""
    shapes = ((6, 6, 6, 200), (6, 2, 6, 9), (6, 2, 5, 9))
    cases = list(bench_command.stacks(("d",), ("LLNN", "RUTU", "NN"), shapes))
    assert [(case.variant, *case.data().out.shape) for case in cases] == [
        ("LLNN", 200, 6, 6),
        ("LLNN", 9, 6, 2),
        ("RUTU", 200, 6, 6),
        ("RUTU", 9, 2, 6),
    ]
    assert cases[1].flops == 9 * 6 * 6 * 2
    x = cases[1].data()
    assert x.a.strides[-2] == x.out.strides[-2] == 8
    result = np.linalg.solve(np.tril(x.a), x.out)
    assert cases[1].error(x, result) <= 1
    result[8, 5, 1] += 1e-10
    assert cases[1].error(x, result) > 1


def test_what_is_asked_for_in_batches():
    def cases(*words):
        options = cli.parser().parse_args(["bench", "--batched", "9x8", "--dtype", "d", *words])
        return [(case.routine, case.variant) for case in bench_command.requested(options)]

    assert cases() == [("gemm", "NN"), ("gemm", "TN"), ("trsm", "LLNN")]
    assert cases("--routine", "trsm") == [("trsm", "LLNN")]
    assert cases("--routine", "gemm", "--variants", "NN,LLNN") == [("gemm", "NN")]


def test_means_and_extents_of_results():
    records = [{"dtype": "s", "speedup": 2.0}, {"dtype": "s", "speedup": 0.5}, {"dtype": "d", "speedup": 1.5}]
    assert bench_command.mean_speedups([*records, {"dtype": "z"}]) == "s 1.000 (0.500), d 1.500 (1.500)"
    assert (
        bench_command.extents({"m": 64, "n": 64, "k": 64})
        == bench_command.extents({"m": 64, "n": 64})
        == "64"
    )
    assert bench_command.extents({"m": 64, "n": 16, "k": 8}) == "64 x 16 x 8"


class Turns:
    """One set of arrays, and a clock that runs each call once and takes so long by its place."""

    taken: tuple[float, ...] = (1e-3, 1e-3, 1e-3)

    def __init__(self, operands):
        self.sets = [operands]

    def seconds(self, call):
        return self.in_turn({"": call})[""]

    def in_turn(self, calls):
        for call in calls.values():
            call(self.sets[0])
        return dict(zip(calls, self.taken, strict=False))

    def result(self, call):
        return None


@pytest.fixture
def bench(monkeypatch):
    """Times a problem of the options with stand-ins: ``bench("trmm", "LLNN", ours)``."""
    monkeypatch.setitem(sys.modules, "pyblasgpu.bench.timing", SimpleNamespace(Rotation=Turns))
    monkeypatch.setitem(sys.modules, "cupy", SimpleNamespace(empty_like=lambda array: "elsewhere"))
    x = Arrays(np.eye(4), np.eye(4), np.eye(4))

    def bench(problem, cublas, ours=lambda *_: None, **options):
        for name, value in (
            ("data", lambda self: x),
            ("error", lambda *_: 0.5),
            ("explain", lambda self: []),
            ("ours", ours),
            ("ours_out_of_place", ours),
        ):
            monkeypatch.setattr(type(problem), name, value)
        return bench_command.measure(problem, cublas, **options)

    return bench


def test_a_product_packed_and_as_it_lies(bench):
    """Each way is timed as its name says."""
    seen = []
    (problem,) = bench_command.products(("s",), ("TN",), ((600, 500, 400),))

    def ours(*_):
        seen.append(select("gemm", DTYPES["s"], "tn", (600, 500, 400, 1), known("h200")))

    record = bench(problem, None, ours, packed=True)
    assert list(record["packed_tflops"]) == ["packed", "as they lie"]
    assert [choice.config.packed for choice in seen[1:]] == [True, False]
    assert "packed_tflops" not in bench(problem, None)
    assert list(bench(problem, None, ours, splits=(2, 4))["splits_tflops"]) == ["2", "4"]
    assert [choice.splits for choice in seen[-2:]] == [2, 4]


@pytest.mark.parametrize(
    "routine, variant, way", [("trmm", "LLNN", "out_of_place"), ("gemm3m", "NN", "four_products")]
)
@pytest.mark.parametrize("theirs", [(3e-3, 2e-3), (2e-3, 4e-3)])
def test_the_best_way_of_the_vendor_is_the_rival(bench, monkeypatch, routine, variant, way, theirs):
    """In turn with ours; a TRMM's result out of place goes into memory of its own, and B stays."""
    calls = []

    class Library:
        def __getattr__(self, name):
            return lambda *arguments: calls.append((name, arguments))

    apart = ("out_of_place_tflops",) if routine == "trmm" else ()
    taken = (1e-3, *(5e-3 for _ in apart), *theirs)
    monkeypatch.setattr(Turns, "taken", taken)
    (problem,) = bench_command.problems((routine,), "z", (variant,), (4,))
    record = bench(problem, Library())
    keys = "tflops", *apart, "cublas_tflops", f"cublas_{way}_tflops"
    rates = [record[key] * 1e12 / problem.flops for key in keys]
    assert [1 / rate for rate in rates] == pytest.approx(taken)
    assert record["speedup"] == pytest.approx(2.0) and record["cublas_seconds"] == theirs[0]
    (first, _), (second, arguments) = calls
    assert (first, second) == ((routine, "trmm") if routine == "trmm" else (routine, "gemm"))
    assert routine != "trmm" or arguments[-1] == "elsewhere"


def test_what_is_compared_has_its_rounds_in_turn():
    """Each after it was prepared; the first round is not counted."""
    order, ticks = [], iter((9.0, 9.0, 1.0, 5.0, 2.0, 6.0, 3.0, 7.0))

    def clock(run):
        run()
        return next(ticks)

    runs = {name: lambda name=name: order.append(name) for name in "ab"}
    assert medians_in_turn(runs, clock, lambda: order.append("-"), repeats=3) == {"a": 2.0, "b": 6.0}
    assert "".join(order) == "-a-b" * 4


@pytest.mark.parametrize("name", pivot_growth.SETS)
def test_factors_by_a_tournament(name):
    """One block proposes what partial pivoting takes; several agree on other pivots, of factors as good."""
    a = pivot_growth.SETS[name](40)
    found = [
        pivot_growth.factor(a, 4, choose)
        for choose in (
            pivot_growth.partial_pivots,
            partial(pivot_growth.tournament_pivots, rows=40),
            partial(pivot_growth.tournament_pivots, rows=8),
        )
    ]
    for factors, order, _ in found:
        product = (np.tril(factors, -1) + np.eye(40)) @ np.triu(factors)
        np.testing.assert_allclose(product, a[order], atol=1e-13 * abs(factors).max())
    orders = [order.tolist() for _, order, _ in found]
    assert all(sorted(order) == list(range(40)) for order in orders)
    if name not in ("wilkinson", "foster"):  # whose elements are equal, up to roundings
        assert orders[0] == orders[1] != orders[2]


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


def test_a_table_of_results(capsys):
    record = {
        "routine": "gemm",
        "dtype": "d",
        "variant": "NN",
        "m": 8,
        "n": 16,
        "k": 32,
        "tflops": 30.0,
        "error_over_bound": 0.1,
    }
    rivalled = record | {"cublas_tflops": 20.0, "speedup": 1.5, "splits_tflops": {"4": 7.25}}
    packed = record | {"packed_tflops": {"packed": 31.25, "as they lie": 29.5}}
    bench_command.show({"device": "NVIDIA H200", "results": [record, rivalled, packed]})
    text = capsys.readouterr().out
    assert "packed" in text and "31.25" in text and "29.50" in text
    assert (
        "geometric mean (least) of ours / the best of cuBLAS: d 1.500 (1.500)" in text
        and "7.25" in text
        and "nan" in text
    )


def test_an_exported_tree_within_a_checkout_is_not_that_commit(monkeypatch, tmp_path):
    monkeypatch.delenv("PYBLASGPU_COMMIT", raising=False)
    assert machine.commit() is not None or not (machine.ROOT / ".git").exists()
    for exported in (machine.ROOT / "tests", tmp_path):
        monkeypatch.setattr(machine, "ROOT", exported)
        assert machine.commit() is None


def test_the_commit_can_be_named(monkeypatch):
    monkeypatch.setenv("PYBLASGPU_COMMIT", "cafe123")
    assert machine.commit() == "cafe123"


def test_peak_of_an_h200(monkeypatch):
    monkeypatch.setattr(machine, "clocks", lambda: {"clocks.max.sm": "1980 MHz"})
    peaks = machine.peak(known("h200"))
    # the data sheet's 67, 34 and 67 TFLOP/s
    assert peaks == pytest.approx({"float32": 66.9, "float64": 33.5, "float64 tensor cores": 66.9}, abs=0.1)


def test_peak_is_left_out_where_the_clock_is_unknown(monkeypatch):
    monkeypatch.setattr(machine, "clocks", lambda: None)
    assert machine.peak(known("h200")) == {}


def test_a_plot_of_what_the_device_counted(tmp_path):
    """A line for each call and side, but none for a call whose bytes were not counted."""
    plot = pytest.importorskip("pyblasgpu.bench.plot", reason="needs matplotlib")

    def record(routine, n, of, **counted):
        return {"routine": routine, "variant": "LLNN", "dtype": "d", "n": n, "of": of, "counted": counted}

    traffic = {plot.READ: 3e6, plot.WRITTEN: 1e6}
    records = [record("trsm", n, of, **traffic) for n in (2048, 1024) for of in ("ours", "cuBLAS")]
    document = {"device": "X", "driver": "1.2", "results": [*records, record("trmm", 1024, "ours", other=1)]}
    svg = plot.drawing_of(document)(document, tmp_path / "plot.svg").read_text()
    assert "dtrsm LLNN, ours" in svg and "dtrsm LLNN, cuBLAS" in svg and "trmm" not in svg


def test_plot_has_a_panel_for_each_call(tmp_path):
    plot = pytest.importorskip("pyblasgpu.bench.plot", reason="needs matplotlib")
    results = [
        {
            "routine": routine,
            "dtype": "d",
            "variant": variant,
            "n": n,
            "tflops": n / 100,
            "cublas_tflops": n / 90,
        }
        for routine, variant in (("gemm", "NN"), ("trsm", "LLNN"))
        for n in (256, 512)
    ]
    document = {
        "device": "NVIDIA H200",
        "driver": "580",
        "peak_tflops": {"float64": 33.5},
        "results": results,
    }
    svg = plot.draw(document, tmp_path / "plot.svg").read_text()
    assert "dgemm NN" in svg and "dtrsm LLNN" in svg and "cuBLAS" in svg


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


# ------------------------------------------------------------------------------------------------- studies


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
