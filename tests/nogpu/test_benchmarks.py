"""What of `pyblasgpu bench` needs no device: the list of cases, the peaks, the plot."""

from __future__ import annotations

import sys
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest

from benchmarks import pivot_growth
from pyblasgpu import cli
from pyblasgpu.bench import command as bench_command
from pyblasgpu.bench import machine
from pyblasgpu.dispatch.choose import select
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
