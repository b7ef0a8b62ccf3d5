"""Dry runs: what a person names, the guidelines as options, verdicts with numbers."""

from __future__ import annotations

import json
from dataclasses import replace
from types import SimpleNamespace

import pytest

from pyblasgpu import cli
from pyblasgpu.gpu.build.compile import Resources
from pyblasgpu.gpu.device import known
from pyblasgpu.model.score import cycles, score
from pyblasgpu.tuning import dryrun
from pyblasgpu.tuning.compile_pool import judge
from pyblasgpu.tuning.prune import EXHAUSTIVE_SCORE, Guidelines, candidates, defaults

H200 = known("h200")


def run(capsys, *arguments):
    assert cli.main(["tune", "--dry-run", "--json", *arguments]) == 0
    return json.loads(capsys.readouterr().out)


def test_a_routine_goes_by_its_name_with_or_without_the_dtype():
    assert dryrun.scope(("gemm",), ("s", "d")) == [("gemm", "s"), ("gemm", "d")]
    assert dryrun.scope(("sgemm", "dtrsm"), ("c",)) == [("gemm", "s"), ("trsm", "d")]
    assert dryrun.scope(("sgemm", "gemm"), ("s",)) == [("gemm", "s")]
    for name in ("hgemm", "sgem", "", "s"):
        with pytest.raises(ValueError, match=f"routine '{name}' is none of gemm, gemv, ger, trmm, trsm"):
            dryrun.scope((name,), ("s",))


def test_guidelines_of_the_command_prune_the_kernels_here_too(capsys):
    arguments = ["--device", "h200", "--routine", "sgemm", "--effort", "quick"]
    loose, strict = run(capsys, *arguments), run(capsys, *arguments, "--min-reuse", "4", "--min-blocks", "2")
    for before, after in zip(loose["funnels"], strict["funnels"], strict=True):
        assert after["left"] < before["left"] and after["candidates"] == before["candidates"]
    assert dryrun.guidelines(SimpleNamespace(min_reuse=4.0), Guidelines(threads=7)) == Guidelines(7, 1, 4.0)


def test_what_the_compiler_drops_is_told_with_its_numbers(capsys, monkeypatch):
    bad = Resources(registers=200, stack_bytes=64, spill_stores=8, spill_loads=16, shared_bytes=0)
    monkeypatch.setattr(dryrun, "compile_all", lambda jobs, cc: ((job, bad) for job in list(jobs)[:3]))
    dropped = run(capsys, *["--compile", "--device", "h200", "--routine", "strsm", "--effort", "quick"])[
        "dropped"
    ]
    assert len(dropped) == 3
    assert dropped[0]["rule"] == "spills" and dropped[0]["numbers"]["spill_bytes"] == 24
    assert dropped[0]["parameters"]["BLK"] > 0 and "spills=24" in dropped[0]["detail"]


def test_the_linkers_registers_replace_the_estimate():
    config = next(c for c in candidates("gemm_simt", "s", "nn", H200).left if c.threads == 256)
    good = Resources(registers=128, stack_bytes=0, spill_stores=0, spill_loads=0, shared_bytes=0)
    verdict = judge(config, good, H200)
    assert verdict.outcome == "ok" and verdict.numbers["blocks"] == 2 and verdict.numbers["threads"] == 512
    assert judge(config, replace(good, registers=129), H200).numbers["blocks"] == 1
    assert judge(config, good, H200, min_blocks=3).outcome == "blocks"
    assert judge(config, good, H200, min_threads=513).outcome == "threads"
    assert judge(config, "line 1: no", H200) == ("compile", "line 1: no", {})


def test_how_near_the_best_score_a_candidate_must_come():
    funnels = [
        candidates("trsm_fma", "d", "any", H200, "normal", Guidelines(reuse=0.6, score=part))
        for part in (0.5, 0.9)
    ]
    assert 0 < len(funnels[1].left) < len(funnels[0].left) and set(funnels[1].left) < set(funnels[0].left)
    for funnel in funnels:
        assert funnel.total == sum(funnel.removed.values()) + len(funnel.left)
    assert defaults("gemm_simt", "s", "exhaustive").score == EXHAUSTIVE_SCORE


def test_a_bound_on_registers_that_does_not_bind_is_not_tried_twice():
    funnel = candidates("gemm_simt", "s", "nn", H200, "quick")
    assert funnel.removed["same_code"] > 0
    bound = {c.registers for c in funnel.left if c.min_blocks > 1}
    assert bound and min(bound) > min(c.registers for c in funnel.left)


def test_dram_bounds_what_the_multiprocessors_promise():
    config = max(candidates("gemm_simt", "s", "nn", H200).left, key=lambda c: c.reuse)
    slow = replace(H200, dram_bytes=1.0)
    assert cycles("gemm_simt", config, (4096,) * 3, slow) == pytest.approx(
        max(cycles("gemm_simt", config, (4096,) * 3, H200), 4 * cycles_of_reads(config))
    )
    assert score("gemm_simt", config, (64, 64, 1), slow) < score("gemm_simt", config, (64, 64, 1), H200)


def cycles_of_reads(config):
    """Elements of C, and of what waves of it read of A and B, as one byte a cycle brings them."""
    at_once = H200.sm_count * score_blocks(config) * config.BLK_M * config.BLK_N
    return 4096**2 + max(2 * 4096**2, 4096**2 / at_once * 2 * at_once**0.5 * 4096)


def score_blocks(config):
    from pyblasgpu.model.occupancy import blocks_per_sm

    return blocks_per_sm(config, H200)


def test_a_family_and_a_layout_narrow_the_search(capsys):
    quick = "--device", "h200", "--effort", "quick"
    gemm = "--routine", "gemm", "--dtype", "s,d", "--family", "gemm_mma", "--layout", "tn,tt"
    document = run(capsys, *quick, *gemm)
    keys = {(row["family"], row["dtype"], row["layout"]) for row in document["funnels"]}
    assert keys == {("gemm_mma", "d", "tn"), ("gemm_mma", "d", "tt")}
    document = run(
        capsys,
        "--device",
        "h200",
        "--routine",
        "gemm,trsm",
        "--dtype",
        "d",
        "--effort",
        "quick",
        "--size",
        "few,many",
    )
    assert {row["family"] for row in document["funnels"]} == {"trsm_mma", "trsm_fma"}
    with pytest.raises(SystemExit):
        cli.main(["tune", "--dry-run", "--size", "enormous"])
    assert "'enormous' is none of slim_rows" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        cli.main(["tune", "--dry-run", "--family", "gemm_magic"])
    assert "'gemm_magic' is none of gemm_simt, gemm_mma" in capsys.readouterr().err
