"""The benchmark of sizes between the tuned ones, without a device."""

from __future__ import annotations

import json
from itertools import pairwise
from types import SimpleNamespace

import fake_device
import pytest
from rich.console import Console

from benchmarks import cliffs, kernels
from pyblasgpu.bench import machine, progress
from pyblasgpu.errors import PyblasgpuError
from pyblasgpu.gpu.build.compile import Resources
from pyblasgpu.gpu.device import known
from pyblasgpu.tuning import measure
from pyblasgpu.types import DTYPES


def test_every_prefix_of_the_sizes_is_spread():
    order = cliffs.sizes()
    assert sorted(order) == [*range(1, 601), *range(697, 8193, 97)] and order[0] == 8166
    for count in (10, 50, 200):
        place = {n: i for i, n in enumerate(sorted(order))}
        taken = sorted(place[n] for n in order[:count])
        gaps = [b - a for a, b in pairwise(taken)]
        assert max(gaps) <= 2 * len(order) / count + 1
    assert cliffs.sizes(10)[0] == 8166 and len(cliffs.sizes(10)) == 68


def test_all_layouts_and_one_of_them_awkward():
    drawn = [list(cliffs.cases(number, 30 + number)) for number in range(4)]
    for each in drawn:
        assert [(c.layout, c.pad, c.shift) for c in each[:4]] == [(name, 0, 0) for name in cliffs.LAYOUTS]
        _, odd, misaligned = each[0], each[4], each[5]
        assert (odd.n + odd.pad) % 2 == 1 and odd.pad > 0 and odd.shift == 0
        assert (misaligned.n + misaligned.pad) % 4 == 0 and misaligned.shift == 1
    assert {each[4].layout for each in drawn} == {each[5].layout for each in drawn} == set(cliffs.LAYOUTS)


def test_a_sweep_within_its_budget_and_what_is_reported_of_it(monkeypatch, capsys):
    clock = iter(range(10**6))
    monkeypatch.setattr(progress, "time", SimpleNamespace(monotonic=lambda: next(clock)))

    def measure(dtype, case):
        return 1e-3, 2e-3 if case.n != 8166 else 5e-4

    series = cliffs.sweep(DTYPES["s"], 1, 20.5, measure)
    assert {(s["layout"], s["storage"]) for s in series} >= {(x, cliffs.STORAGES[0]) for x in cliffs.LAYOUTS}
    nn = next(s for s in series if (s["layout"], s["storage"]) == ("nn", cliffs.STORAGES[0]))
    assert nn["n"] == cliffs.sizes()[:20] and nn["ratio"][:3] == [0.5, 2.0, 2.0]
    assert "658 of 678 sizes untimed" in capsys.readouterr().err
    cliffs.show(series, Console(width=150), lambda dtype, case: f"kernel of {dtype} {case.n}")
    output = capsys.readouterr().out
    assert "0.500 sgemm nn 8166, as they come: kernel of s 8166" in output and "below 0.8" in output


class CountingTimer:
    """A clock that runs what it is given, and counts its passes."""

    def __init__(self, device, stream):
        self.passes = []

    def __call__(self, work, repeats):
        for call in work.calls:
            call()
        self.passes.append(repeats)
        return 1e-3


def test_both_libraries_get_the_same_operands(monkeypatch):
    seen = {"ours": [], "theirs": []}
    monkeypatch.setattr(measure, "memory", fake_device.HostMemory())
    monkeypatch.setattr(cliffs, "Timer", CountingTimer)
    monkeypatch.setattr(cliffs, "routine", lambda name: lambda *call: seen["ours"].append(call))
    monkeypatch.setattr(cliffs, "vendor", lambda name: lambda *call: seen["theirs"].append(call))
    machine = cliffs.Machine(known("h200"))
    for case in cliffs.cases(1, 33):
        assert machine.measure(DTYPES["d"], case) == (1e-3, 1e-3)
        _, a, b, _, c, _ = seen["ours"][-1]
        leads = [max(x.row_stride, x.col_stride) for x in (a, b, c)]
        assert leads == [33 + case.pad] * 3 and all(x.pointer % 16 == 8 * case.shift for x in (a, b, c))
        assert (a.row_stride == 1, b.row_stride == 1) == tuple(letter == "n" for letter in case.layout)
    assert seen["ours"] == seen["theirs"]
    machine.measure(DTYPES["z"], cliffs.Case(2100, "nn", cliffs.STORAGES[0]))
    assert machine.timer.passes[-2:] == [1, 1] and set(machine.timer.passes[:-2]) == {cliffs.REPEATS}
    machine.close()
    assert not measure.memory.held


def test_the_command_writes_what_it_found(monkeypatch, tmp_path, capsys):
    closed = []
    fake = SimpleNamespace(measure=lambda dtype, case: (2e-3, 1e-3), close=lambda: closed.append(True))
    for name, value in (
        ("current", lambda: known("h200")),
        ("load_cublas", lambda: None),
        ("Machine", lambda device: fake),
        ("compile_kernels", lambda *_: None),
    ):
        monkeypatch.setattr(cliffs, name, value)
    monkeypatch.setattr(
        machine, "describe", lambda *_: {"device": "NVIDIA H200", "driver": "580", "date": "2026-01-01T00:00"}
    )
    out = tmp_path / "found.json"
    cliffs.main(cliffs.parser().parse_args(["--dtype", "s,z", "--every", "60", "--out", str(out)]))
    document = json.loads(out.read_text())
    assert {series["dtype"] for series in document["series"]} == {"s", "z"} and closed == [True]
    assert {ratio for series in document["series"] for ratio in series["ratio"]} == {0.5}
    assert "0.500 sgemm" in capsys.readouterr().out


def test_compiling_only_touches_no_device(monkeypatch):
    names = []
    monkeypatch.setattr(cliffs, "compile_kernels", lambda dtype, device, every: names.append(device.name))
    cliffs.main(cliffs.parser().parse_args(["--dtype", "s", "--compile-only", "h200"]))
    assert names == ["NVIDIA H200"]


def test_an_unknown_dtype_is_refused(capsys):
    with pytest.raises(SystemExit):
        cliffs.parser().parse_args(["--dtype", "s,q"])
    assert "'q' is none of s, d, c, z" in capsys.readouterr().err


def test_a_kernel_that_does_not_compile_is_named(monkeypatch):
    report = Resources(64, 0, 0, 0, 0)
    monkeypatch.setattr(kernels, "compile_all", lambda jobs, cc: ((job, report) for job in jobs))
    cliffs.compile_kernels(DTYPES["s"], known("h200"), 100)
    monkeypatch.setattr(kernels, "compile_all", lambda jobs, cc: ((job, "line 1: nonsense") for job in jobs))
    with pytest.raises(PyblasgpuError, match=r"GemmSimt.*does not compile: line 1: nonsense"):
        cliffs.compile_kernels(DTYPES["s"], known("h200"), 100)


def test_a_plot_of_ratios(tmp_path):
    plot = pytest.importorskip("pyblasgpu.bench.plot", reason="needs matplotlib")
    series = cliffs.sweep(DTYPES["d"], 40, 1e9, lambda dtype, case: (1e-3, 1e-3))
    document = {"device": "NVIDIA H200", "driver": "580", "floor": 0.8, "series": series}
    svg = plot.draw_ratios(document, tmp_path / "plot.svg").read_text()
    assert all(f"dgemm, {storage}" in svg for storage in cliffs.STORAGES)
