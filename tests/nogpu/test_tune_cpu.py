"""``pyblasgpu tune --device cpu`` and the benchmark of the processor, on small products."""

from __future__ import annotations

import json
import time
from itertools import count

import pytest

from benchmarks import cpu as benchmark
from benchmarks import study
from pyblasgpu import cli
from pyblasgpu.cpu.numba import level3 as numba_cpu
from pyblasgpu.cpu.numba import space, tuned_gemm
from pyblasgpu.cpu.numba.device import current
from pyblasgpu.tuning import cpu_search


@pytest.fixture(autouse=True)
def own_folder(monkeypatch, tmp_path):
    monkeypatch.setenv("PYBLASGPU_HOME", str(tmp_path))
    monkeypatch.setattr(cpu_search, "SIZES", dict.fromkeys("sdcz", 96))
    monkeypatch.setattr(cpu_search, "REPEATS", 1)
    # one register tile: each takes a compiler's seconds
    monkeypatch.setattr(space, "tiles", lambda letter, processor: [space.default(letter, processor)])
    tuned_gemm.forget()
    yield
    tuned_gemm.forget()


def test_a_run_writes_what_serves_then(capsys):
    assert cli.main(["tune", "--device", "cpu", "--dtype", "d", "--budget", "60s", "--json"]) == 0
    winner = json.loads(capsys.readouterr().out)["found"]["d"]
    config, origin = tuned_gemm.choose("d", current())
    assert origin.startswith("tuned here") and str(config) == winner["config"]
    assert winner["gflops"] > 0 and winner["peak"] > 0 and winner["timed"] > 10
    assert tuned_gemm.choose("s", current())[1] == "computed"
    assert cli.main(["tune", "--device", "CPU", "--dtype", "d", "--budget", "5s"]) == 0
    assert "dgemm" in capsys.readouterr().out


def test_a_budget_ends_a_search():
    ticks = count()
    result = cpu_search.search("d", current(), until=5, clock=lambda: next(ticks))
    assert 1 <= result.timed <= 5


def test_wrong_results_win_nothing(monkeypatch):
    start = space.default("d", current())
    multiply = numba_cpu.multiply

    def broken(config, *rest):
        multiply(config, *rest)
        if config != start:
            rest[-1][5, 5] += 1

    monkeypatch.setattr(numba_cpu, "multiply", broken)
    ticks = count()
    assert cpu_search.search("d", current(), until=30, clock=lambda: next(ticks)).config == start


def test_a_dry_run_counts(capsys):
    assert cli.main(["tune", "--device", "cpu", "--dry-run", "--dtype", "s"]) == 0
    counts = json.loads(capsys.readouterr().out)["candidates"]
    assert list(counts) == ["s"] and counts["s"]["blocks of each"] > 20


def test_the_benchmark_prints_and_writes(capsys, tmp_path):
    words = ["--dtype", "d", "--sizes", "40,70", "--repeats", "1", "--out", str(tmp_path)]
    assert study.run(benchmark.STUDY, words) == 0
    assert "dtrsm" in capsys.readouterr().out
    made = json.loads((tmp_path / "cpu.json").read_text())
    cases = [("gemm", layout) for layout in ("nn", "nt", "tn", "tt")] + [("trmm", "nn"), ("trsm", "nn")]
    measured = [(row["routine"], row["layout"], row["n"]) for row in made["results"]]
    assert measured == [(*case, n) for case in cases for n in (40, 70)]
    assert all(row["numba"] > 0 and row["scipy"] > 0 for row in made["results"])
    assert study.run(benchmark.STUDY, [*words, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["processor"] == current().name


def test_the_benchmark_takes_as_many_cores_as_are_named(monkeypatch, tmp_path):
    """Seconds are the clock's then, since other threads compute; the peak is that of all."""
    clocks = []
    monkeypatch.setenv("NUMBA_NUM_THREADS", "2")
    monkeypatch.setattr(benchmark, "measured_peak", lambda *_: 3.0)
    monkeypatch.setattr(benchmark, "seconds_of", lambda run, repeats, clock: clocks.append(clock) or 1e-6)
    words = ["--dtype", "d", "--routines", "gemm", "--layouts", "tt", "--sizes", "40", "--out", str(tmp_path)]
    assert study.run(benchmark.STUDY, words) == 0
    made = json.loads((tmp_path / "cpu.json").read_text())
    assert made["cores"] == 2 and made["results"][0]["peak"] == 6.0
    assert clocks == [time.perf_counter] * 2
