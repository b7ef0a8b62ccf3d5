"""Candidates that are wrong, raise, or take the device or the process down."""

from __future__ import annotations

import ctypes
from types import SimpleNamespace

import fake_worker
import pytest
from fake_worker import GOOD, Compilers
from tuner_stage import H200, Inline, Stage, flip_one, on, outcomes, planned, rate, tune

from pyblasgpu.database import FAMILIES
from pyblasgpu.dispatch import tuned_files
from pyblasgpu.errors import PyblasgpuError
from pyblasgpu.gpu.build.compile import Resources
from pyblasgpu.tuning import candidate_list as planning
from pyblasgpu.tuning import sweep_file, worker_bench
from pyblasgpu.tuning.results import winners
from pyblasgpu.tuning.sweep_log import SweepLog
from pyblasgpu.tuning.worker import Worker

pytestmark = pytest.mark.usefixtures("home")


def write_past(odd, out):
    ctypes.c_char.from_address(out.ctypes.data - 1).value = b"\0"


def only_at_odd(odd, out):
    if odd:
        flip_one(odd, out)


@pytest.mark.parametrize("how", [flip_one, write_past, only_at_odd])
def test_a_candidate_that_is_wrong_never_wins(stage, how):
    fastest = max(planning.candidates("gemm_simt", "s", "nn", H200, "quick").left, key=Stage.rate)
    stage.broken = {fastest: how}
    made, document = tune(on(stage), layouts=("nn",))
    parameters = FAMILIES["gemm_simt"].parameters_of(fastest)
    assert document.entries and all(entry.parameters != parameters for entry in document.entries.values())
    assert "wrong" in outcomes(made, fastest)
    # nor when the packaged values are computed from the sweep
    assert winners(sweep_file.read_sweep(made.log.path), H200.name).entries == document.entries


def test_a_winner_that_cannot_run_at_odd_extents_is_out_and_the_run_ends(stage):
    """Not only if it is wrong there."""

    def refuse(odd, out):
        if odd:
            raise PyblasgpuError("launch refused")

    fastest = max(planning.candidates("gemm_simt", "s", "nn", H200, "quick").left, key=Stage.rate)
    stage.broken = {fastest: refuse}
    made, document = tune(on(stage), layouts=("nn",))
    parameters = FAMILIES["gemm_simt"].parameters_of(fastest)
    assert document.entries and all(entry.parameters != parameters for entry in document.entries.values())
    assert "error" in outcomes(made, fastest)


def test_winners_are_verified_again_while_other_searches_go_on(stage):
    """At the end of a run, when its budget is spent, hundreds of kernels would be left to compile."""
    jobs = []

    def body():
        made = worker_bench.Bench(stage.routine, 0)
        return lambda job: jobs.append((job.layout, job.verify)) or made(job)

    _, document = tune(body, layouts=("nn", "tn"))
    odd = [number for number, (_, verify) in enumerate(jobs) if verify == ("odd",)]
    timed = [number for number, (layout, verify) in enumerate(jobs) if layout == "tn" and verify != ("odd",)]
    assert odd[0] < timed[0] and len(document.entries) > 2
    winning = {
        (layout, *sorted(entry.parameters.items())) for (_, _, layout, _), entry in document.entries.items()
    }
    assert len(odd) == len(winning)  # each once


def test_a_candidate_that_writes_around_its_operands_is_noticed(stage):
    """At the sizes at which it is timed, where verification did not run it."""

    def write_far(odd, out):
        if out.shape[1:] == (256, 256):
            ctypes.memset(stage.c_arena().address - 1, 0, 1)

    fastest = max(planning.candidates("gemm_simt", "s", "nn", H200, "quick").left, key=Stage.rate)
    stage.broken = {fastest: write_far}
    body = worker_bench.Bench(stage.routine, 0)
    stage.c_arena = lambda: body.workload.arenas["C", "s"]
    made, document = tune(lambda: body, layouts=("nn",))
    assert "spoils" in outcomes(made, fastest)
    assert all(
        e.parameters != FAMILIES["gemm_simt"].parameters_of(fastest) for e in document.entries.values()
    )


def test_a_candidate_that_raises_is_recorded_and_the_run_goes_on(stage):
    def fail(odd, out):
        raise PyblasgpuError("launch refused")

    fastest = max(planning.candidates("gemm_simt", "s", "nn", H200, "quick").left, key=Stage.rate)
    stage.broken = {fastest: fail}
    made, document = tune(on(stage), layouts=("nn",))
    failed = [r for r in made.log.records if r.outcome == "error"]
    assert [record.detail for record in failed] == ["launch refused"] and document.entries


def test_a_candidate_that_takes_the_device_down_is_out_and_the_worker_replaced(stage):
    def lose(odd, out):
        stage.memory.alive = False
        raise PyblasgpuError("illegal address")

    def fresh():
        stage.memory.alive = True
        return worker_bench.Bench(stage.routine, 0)

    bad = planning.candidates("gemm_simt", "s", "nn", H200, "quick").left[1]
    stage.broken = {bad: lose}
    worker = Inline(fresh)
    made, document = tune(None, layouts=("nn",), worker=worker)
    assert outcomes(made, bad) == {"crash"} and worker.replaced == 1
    assert len(made.log.counts) == 2 and document.entries


def test_a_device_that_is_lost_for_good_ends_the_run_and_the_records_are_kept(stage):
    def lose(odd, out):
        stage.memory.alive = False
        raise PyblasgpuError("illegal address")

    made = []

    def once():
        if made:
            raise PyblasgpuError("the worker cannot start")
        made.append(True)
        return worker_bench.Bench(stage.routine, 0)

    stage.broken = {planned(("gemm_simt", "s", "nn"))[1]: lose}
    with pytest.raises(PyblasgpuError, match=r"cannot start; what was measured is in .*--resume"):
        tune(once, layouts=("nn",))
    assert SweepLog(H200, "quick", resume=True).counts.total() == 0
    assert {"ok", "crash"} <= {r.outcome for r in SweepLog(H200, "quick", resume=True).records}


def test_what_the_compiler_speaks_against_is_not_run(stage):
    spilling = Resources(255, 0, 8, 8, 0)
    left = planning.candidates("gemm_simt", "s", "nn", H200, "quick").left
    compilers = Compilers(lambda stem, config: spilling if config == left[0] else GOOD)
    made, _ = tune(on(stage), layouts=("nn",), compilers=compilers)
    assert outcomes(made, left[0]) == {"spills"} and made.log.counts["spills"] == 1
    (dropped,) = [record for record in made.log.records if record.outcome == "spills"]
    assert dropped.numbers["spill_bytes"] == 16 and dropped.numbers["registers"] == 255


@pytest.mark.parametrize("mishap", ["exit", "hang", "wrong", "spoils"])
def test_a_mishap_in_the_process_is_marked_and_the_sweep_goes_on(mishap, monkeypatch):
    every = planning.candidates
    monkeypatch.setattr(planning, "candidates", lambda *key: SimpleNamespace(left=every(*key).left[::8]))
    monkeypatch.setattr(tuned_files, "current_configs", lambda *key: {})
    left = planning.candidates("gemm_simt", "s", "nn", H200, "quick").left
    bad = max(left, key=Stage.rate)
    tile = (bad.BLK_M, bad.BLK_N)
    with Worker(fake_worker.device, ({tile: mishap},), patience=1.0) as worker:
        made, document = tune(None, layouts=("nn",), worker=worker)
    outcome = {"exit": "crash", "hang": "hang"}.get(mishap, mishap)
    assert outcomes(made, bad) == {"ok", outcome}
    good = max(Stage.rate(c) for c in left if tile != (c.BLK_M, c.BLK_N))
    assert rate(document.entries["gemm_simt", "s", "nn", "large"]) == good
    mishaps = sum(tile == (c.BLK_M, c.BLK_N) for c in left)
    assert worker.replaced == (mishaps if mishap in ("exit", "hang") else 0)
    timed = made.log.timed(("gemm_simt", "s", "nn"))
    variants = {str(record.parameters) for record in timed if record.parameters["through_l1"]}
    assert variants and made.log.counts == {"ok": len(left) - mishaps + len(variants), outcome: mishaps}
