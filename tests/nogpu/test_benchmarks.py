"""What of the benchmarks needs no device: the list of cases, the peaks, the plot."""

from __future__ import annotations

import pytest

from benchmarks import machine, run
from pyblasgpu.gpu.device import known


def test_cases_match_variants_to_routines():
    cases = list(run.problems(("gemm", "trsm"), ("s", "z"), ("NN", "CT", "RUCU"), (64, 128)))
    names = [f"{case.dtype.letter}{case.routine} {case.variant} {case.case.n}" for case in cases]
    assert names == [
        "sgemm NN 64", "sgemm NN 128", "sgemm CT 64", "sgemm CT 128",
        "zgemm NN 64", "zgemm NN 128", "zgemm CT 64", "zgemm CT 128",
        "strsm RUCU 64", "strsm RUCU 128", "ztrsm RUCU 64", "ztrsm RUCU 128",
    ]  # fmt: skip


def test_products_of_other_than_square_matrices():
    cases = [case.case for case in run.products(("s", "d"), ("TN", "LLNN"), ((8, 16, 32), (5, 5, 5)))]
    assert [(case.dtype.letter, case.m, case.n, case.k, case.trans_a.value) for case in cases] == [
        ("s", 8, 16, 32, "T"), ("s", 5, 5, 5, "T"), ("d", 8, 16, 32, "T"), ("d", 5, 5, 5, "T"),
    ]  # fmt: skip
    awkward = [case.case for case in run.products(("s",), ("NN",), "awkward")]
    assert (64, 64, 65536) in [(case.m, case.n, case.k) for case in awkward] and len(awkward) == 15
    with pytest.raises(ValueError, match="shapes 'ugly' are none of awkward"):
        list(run.products(("s",), ("NN",), "ugly"))


def test_batches_of_products():
    """Column-major matrices, sampled errors that see one wrong element, and what of them is timed."""
    (problem,) = run.products(("z",), ("TN",), ((3, 4, 5, 200),))
    x = problem.data()
    assert [array.shape for array in x] == [(200, 5, 3), (200, 5, 4), (200, 3, 4)]
    assert all(array.strides[-2] == 16 for array in x) and problem.flops == 8 * 3 * 4 * 5 * 200
    result = x.a.swapaxes(1, 2) @ x.b
    assert problem.error(x, result) <= 1
    for place in (0, 199):
        wrong = result.copy()
        wrong[place, 2, 3] += 1e-10
        assert problem.error(x, wrong) > 1
    assert run._extents({"m": 16, "n": 16, "k": 16, "batch": (10000,)}) == "10000 of 16"


def test_means_and_extents_of_results():
    records = [{"dtype": "s", "speedup": 2.0}, {"dtype": "s", "speedup": 0.5}, {"dtype": "d", "speedup": 1.5}]
    assert run._mean([*records, {"dtype": "z"}]) == "s 1.000, d 1.500"
    assert run._extents({"m": 64, "n": 64, "k": 64}) == run._extents({"m": 64, "n": 64}) == "64"
    assert run._extents({"m": 64, "n": 16, "k": 8}) == "64 x 16 x 8"


def test_a_table_of_results(capsys):
    record = {"routine": "gemm", "dtype": "d", "variant": "NN", "m": 8, "n": 16, "k": 32, "tflops": 30.0,
              "error_over_bound": 0.1}  # fmt: skip
    rivalled = record | {"cublas_tflops": 20.0, "speedup": 1.5, "splits_tflops": {"4": 7.25}}
    run._show({"device": "NVIDIA H200", "results": [record, rivalled]})
    text = capsys.readouterr().out
    assert "geometric mean of ours / cuBLAS: d 1.500" in text and "7.25" in text and "nan" in text


def test_peak_of_an_h200(monkeypatch):
    monkeypatch.setattr(machine, "clocks", lambda: {"clocks.max.sm": "1980 MHz"})
    peaks = machine.peak(known("h200"))
    # the data sheet's 67, 34 and 67 TFLOP/s
    assert peaks == pytest.approx({"float32": 66.9, "float64": 33.5, "float64 tensor cores": 66.9}, abs=0.1)


def test_peak_is_left_out_where_the_clock_is_unknown(monkeypatch):
    monkeypatch.setattr(machine, "clocks", lambda: None)
    assert machine.peak(known("h200")) == {}


def test_plot_has_a_panel_for_each_call(tmp_path):
    plot = pytest.importorskip("benchmarks.plot", reason="needs matplotlib")
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
