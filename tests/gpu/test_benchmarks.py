"""Benchmark scripts on a card with small problems, from options to their files."""

from __future__ import annotations

import json
from importlib import import_module
from typing import Any

import pytest
from benchmark_runs import FRAMEWORKS, RUNS

from pyblasgpu.gpu.events import Stopwatch

from .running import cupy
from .tensor_products import skip_without_hopper

LAPACK = {"RIGHT_HAND_SIDES": (1, 0), "BATCHES": ((8, 3),)}
CONTEST = {"SQUARES": ((3, 8),), "TALL": ((40, 4),), "SPECTRA": ((3, 8),), "ORDERS": (8,), "QR_ORDERS": (8,)}
MORE: tuple[tuple[str, str, dict[str, Any], str], ...] = (
    ("lapack", "--sizes 40 --letters sz --batches", LAPACK, "results"),
    ("level2", "--sizes 24 --letters sz", {"OBLONG": ((64, 8),)}, "results"),
    ("batched", "--letters sz --sizes 8", {}, "results"),
    ("contest", "--letters s", CONTEST, "results"),
    ("overhead", "", {"CALLS": 2, "LONG": 2}, "microseconds"),
    ("error_bounds", "--letters s", {"SIZES": {"s": (6,)}}, "worst"),
    FRAMEWORKS,
    ("host_small", "--sizes 32 --letters s", {}, "rows"),
)


@pytest.mark.slow
@pytest.mark.parametrize("name, options, constants, lists", [*RUNS, *MORE])
def test_a_script_from_options_to_its_file(name, options, constants, lists, monkeypatch, tmp_path):
    if name in ("batched", "contest", "frameworks"):
        pytest.importorskip("torch")
    if "gemm_" in name:
        skip_without_hopper()
    script = import_module(f"benchmarks.{name}")
    for key, value in constants.items():
        monkeypatch.setattr(script, key, value)
    assert (
        import_module("benchmarks.study").run(script.STUDY, [*options.split(), "--out", str(tmp_path)]) == 0
    )
    document = json.loads((tmp_path / f"{name}.json").read_text())
    assert all(document[each] for each in lists.split())


def test_a_stopwatch_measures_as_cupys_events_do():
    """On a stream of its own, and on the null stream; nothing enqueued takes next to nothing."""
    busy = cupy.zeros(1 << 27, cupy.uint8)
    for stream in (cupy.cuda.Stream.null, cupy.cuda.Stream(non_blocking=True)):
        watch, start, stop = Stopwatch(cupy.cuda.Device().id), cupy.cuda.Event(), cupy.cuda.Event()

        def run(stream=stream, start=start, stop=stop) -> None:
            with stream:
                start.record(stream)
                for _ in range(20):
                    busy.fill(1)
                stop.record(stream)

        taken = watch.seconds(run, stream.ptr)
        within = cupy.cuda.get_elapsed_time(start, stop) / 1e3
        assert 0 < within <= taken < 1.5 * within
        assert watch.seconds(lambda: None, stream.ptr) < 1e-4
