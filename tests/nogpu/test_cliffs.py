"""The benchmark of sizes between the tuned ones, without a device."""

from __future__ import annotations

import json
from itertools import pairwise
from types import SimpleNamespace

import fake_device
import pytest

from benchmarks import cliffs, kernels, study
from pyblasgpu.bench import progress
from pyblasgpu.errors import PyblasgpuError
from pyblasgpu.gpu.build.compile import Resources
from pyblasgpu.gpu.device import known
from pyblasgpu.tuning import arenas
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


@pytest.fixture
def command(monkeypatch, tmp_path):
    """``command(*words)``: exit code and document; `seconds(case)` are ours and cuBLAS's."""
    made = SimpleNamespace(closed=[], out=tmp_path / "found.json", seconds=lambda case: (2e-3, 1e-3))
    here = SimpleNamespace(
        measure=lambda dtype, case: made.seconds(case), close=lambda: made.closed.append(True)
    )
    for name, value in (
        ("device_of", lambda options: known("h200")),
        ("load_cublas", lambda: None),
        ("Machine", lambda device: here),
        ("compile_kernels", lambda *_: None),
        ("described", lambda choice: "a kernel"),
    ):
        monkeypatch.setattr(cliffs, name, value)
    facts = {"device": "NVIDIA H200", "driver": "580", "date": "2026-01-01T00:00"}
    monkeypatch.setattr(kernels, "device_facts", lambda *_: facts)

    def run(*words):
        made.code = study.run(cliffs.STUDY, [*words, "--out", str(made.out)])
        return json.loads(made.out.read_text())

    made.run = run
    return made


def test_a_sweep_within_its_budget_and_what_is_reported_of_it(command, monkeypatch, capsys):
    clock = iter(range(10**6))
    monkeypatch.setattr(progress, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    command.seconds = lambda case: (1e-3, 2e-3 if case.n != 8166 else 5e-4)
    series = command.run("--dtype", "s", "--budget", "20.5")["series"]
    assert {(s["layout"], s["storage"]) for s in series} >= {(x, cliffs.STORAGES[0]) for x in cliffs.LAYOUTS}
    nn = next(s for s in series if (s["layout"], s["storage"]) == ("nn", cliffs.STORAGES[0]))
    assert nn["n"] == cliffs.sizes()[:20] and nn["ratio"][:3] == [0.5, 2.0, 2.0]
    output = capsys.readouterr()
    assert "658 of 678 sizes untimed" in output.err
    assert "0.500 sgemm nn 8166, as they come: a kernel" in output.out and "below 0.8" in output.out


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
    monkeypatch.setattr(arenas, "memory", fake_device.HostMemory())
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
    assert not arenas.memory.held


def test_the_command_writes_what_it_found(command, capsys):
    document = command.run("--dtype", "s,z", "--every", "60")
    assert {series["dtype"] for series in document["series"]} == {"s", "z"} and command.closed == [True]
    assert {ratio for series in document["series"] for ratio in series["ratio"]} == {0.5}
    assert (document["schema"], document["floor"], document["every"]) == (1, 0.8, 60)
    assert "0.500 sgemm" in capsys.readouterr().out and command.code == 0


def test_compiling_only_touches_no_device(monkeypatch):
    names = []
    monkeypatch.setattr(cliffs, "compile_kernels", lambda dtype, device, every: names.append(device.name))
    study.run(cliffs.STUDY, ["--dtype", "s", "--compile-only", "h200"])
    assert names == ["NVIDIA H200"]


def test_an_unknown_dtype_is_refused(capsys):
    with pytest.raises(SystemExit):
        study.run(cliffs.STUDY, ["--dtype", "s,q"])
    assert "'q' is none of s, d, c, z" in capsys.readouterr().err


def test_a_kernel_that_does_not_compile_is_named(monkeypatch):
    report = Resources(64, 0, 0, 0, 0)
    monkeypatch.setattr(kernels, "compile_all", lambda jobs, cc: ((job, report) for job in jobs))
    cliffs.compile_kernels(DTYPES["s"], known("h200"), 100)
    monkeypatch.setattr(kernels, "compile_all", lambda jobs, cc: ((job, "line 1: nonsense") for job in jobs))
    with pytest.raises(PyblasgpuError, match=r"GemmSimt.*does not compile: line 1: nonsense"):
        cliffs.compile_kernels(DTYPES["s"], known("h200"), 100)


def test_a_plot_of_ratios(command):
    pytest.importorskip("pyblasgpu.bench.plot", reason="needs matplotlib")
    command.run("--dtype", "d", "--every", "40")
    svg = command.out.with_suffix(".svg").read_text()
    assert all(f"dgemm, {storage}" in svg for storage in cliffs.STORAGES)
