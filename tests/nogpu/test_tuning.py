"""The funnel, the formulas behind it, and what is made of a sweep."""

from __future__ import annotations

import json
import multiprocessing
import re
import time
from dataclasses import replace
from functools import partial
from multiprocessing import connection
from types import SimpleNamespace

import numpy as np
import pytest

from pyblasgpu import processes
from pyblasgpu.database import FAMILIES, Entry, families_of
from pyblasgpu.errors import ConfigError, DatabaseWarning
from pyblasgpu.gpu import backend
from pyblasgpu.gpu.compile import Resources, to_ptx
from pyblasgpu.gpu.device import known
from pyblasgpu.kernels.space import EFFORTS, space
from pyblasgpu.model import gemm as gemm_model
from pyblasgpu.model import score
from pyblasgpu.model.occupancy import check_device
from pyblasgpu.processes import Pool
from pyblasgpu.tuning import command as tune_command
from pyblasgpu.tuning import compile_pool, dryrun, measure, results, sweep_file
from pyblasgpu.tuning.prune import Guidelines, candidates
from pyblasgpu.tuning.results import Record, sound, winners
from pyblasgpu.types import DTYPES

H200, FERMI = known("h200"), known("fermi")
GOOD = Resources(registers=64, stack_bytes=0, spill_stores=0, spill_loads=0, shared_bytes=0)


pytestmark = pytest.mark.usefixtures("home")


# -------------------------------------------------------------------------------------------------- funnel


@pytest.mark.parametrize("effort", ["quick", "normal"])
@pytest.mark.parametrize(("stem", "dtype", "layout"), [("gemm_simt", "s", "nn"), ("gemm_simt", "z", "tt"),
                                                       ("trsm_fma", "d", "any")])  # fmt: skip
def test_the_funnel_adds_up_and_what_is_left_keeps_the_rules(stem, dtype, layout, effort):
    funnel = candidates(stem, dtype, layout, H200, effort)
    assert funnel.total + funnel.added == sum(funnel.removed.values()) + len(funnel.left)
    assert len(set(funnel.left)) == len(funnel.left) > 0
    for config in funnel.left:
        check_device(config, H200)
        assert config.dtype == dtype and getattr(config, "layout", layout) == layout


def test_quick_is_short_everywhere():
    for stem, family in FAMILIES.items():
        for dtype in family.dtypes:
            for layout in family.layouts:
                assert 9 <= len(candidates(stem, dtype, layout, H200).left) <= 115


def test_branches_are_counted_as_often_as_they_would_have_grown():
    """The total is the size of the whole product, whatever is cut off where."""

    def product(axes, chosen):
        if not axes:
            return 1
        return sum(product(axes[1:], {**chosen, **values}) for values in axes[0](chosen))

    axes = space("trsm_fma", DTYPES["d"], "any", H200, "normal")
    assert candidates("trsm_fma", "d", "any", H200, "normal").total == product(axes, {})


def test_guidelines_prune():
    loose = candidates("gemm_simt", "s", "nn", H200, guidelines=Guidelines(reuse=0))
    strict = candidates("gemm_simt", "s", "nn", H200, guidelines=Guidelines(threads=256, blocks=2, reuse=4))
    # the few persistent ones are chosen among what is left
    assert {c for c in strict.left if not c.persistent} < set(loose.left)
    assert {"reuse", "blocks"} <= set(strict.removed) and "reuse" not in loose.removed
    assert all(config.reuse >= 4 for config in strict.left)


def test_no_asynchronous_copies_where_there_are_none():
    assert all(config.stages == 1 for config in candidates("gemm_simt", "s", "nn", FERMI).left)
    assert "device_async" in candidates("trsm_fma", "s", "any", FERMI).removed
    config = next(c for c in candidates("gemm_simt", "s", "nn", H200).left if c.stages > 1)
    with pytest.raises(ConfigError, match="device_async"):
        check_device(config, FERMI)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("layout", FAMILIES["gemm_simt"].layouts)
def test_transposing_stores_meet_no_bank_twice(dtype, layout):
    """Neighbouring threads of a warp, in the phases in which shared memory serves them."""
    for config in candidates("gemm_simt", dtype, layout, H200).left:
        for stripe, fragment in ((config.stripe_a, config.VEC_M), (config.stripe_b, config.VEC_N)):
            if not stripe.k_major or stripe.vec > 1:
                continue
            line = 128 // DTYPES[dtype].itemsize
            lanes = [(t % stripe.dim_x) * stripe.lead + t // stripe.dim_x for t in range(min(line, 32))]
            ways = max(np.bincount([place % line for place in lanes]))
            # rows must hold whole fragments, which may keep rows further apart than the banks ask
            assert ways <= max(1, fragment * stripe.dim_x // line)


def test_an_unknown_effort_is_refused():
    assert EFFORTS == ("quick", "normal", "exhaustive")
    with pytest.raises(ValueError, match="effort 'lazy' is none of quick"):
        candidates("gemm_simt", "s", "nn", H200, "lazy")


def test_the_score_knows_waves_reuse_and_spills():
    left = candidates("gemm_simt", "s", "nn", H200).left
    big = next(c for c in left if (c.BLK_M, c.BLK_N, c.DIM_X, c.stages) == (128, 128, 16, 3))
    tiny = next(c for c in left if (c.BLK_M, c.BLK_N) == (32, 32))

    def at(config, n, device=H200):
        return score.score("gemm_simt", config, (n, n, n), device)

    assert at(big, 4096) > at(tiny, 4096) and at(tiny, 256) > at(big, 256)
    assert at(big, 128 * 132, H200) > at(big, 128 * 12)  # 144 tiles on 132 multiprocessors
    assert at(big, 4096, FERMI) < at(big, 4096)
    assert all(0 <= at(config, 2048) <= 1 for config in left)


def test_the_score_knows_what_a_step_costs():
    """Fragments that are not fetched ahead, vectors along k in one bank, small products on tensor cores, the
    way of persistent blocks.
    """

    def at(config, device=H200):
        return score.cycles(config.STEM, config, (4096, 4096, 4096), device)

    left = candidates("gemm_simt", "s", "tt", H200).left
    plain = next(c for c in left if c.prefetch and c.VEC_K == 1 and not c.persistent and c.threads == 256)
    assert at(replace(plain, prefetch=False)) > at(plain)
    walking = replace(plain, persistent=True, min_blocks=1)
    stripe = gemm_model.stripe_cycles
    assert stripe(walking, H200).issue > stripe(replace(plain, min_blocks=1), H200).issue
    kept = next(c for c in left if c.VEC_K > 1)
    banked = gemm_model.fma_step(kept, H200).slots / (kept.THR_M * kept.THR_N)
    assert 1.15 < banked < 1.6
    mma = next(c for c in candidates("gemm_mma", "d", "nn", H200).left if c.MMA_M == 16)
    small = replace(mma, MMA_M=8, MMA_K=4)
    assert at(small) > at(mma)
    assert at(small, known("a100")) == at(mma, known("a100"))


def test_the_score_knows_copies_that_go_astray():
    """Asynchronous ones, of columns that begin within sectors of memory, more in small tiles."""
    left = candidates("gemm_mma", "d", "tn", H200).left
    large = next(c for c in left if (c.BLK_M, c.BLK_N, c.MMA_M) == (128, 128, 16))
    small = next(c for c in left if (c.BLK_M, c.BLK_N, c.MMA_M) == (32, 32, 16))

    def longer(config, *sector_misaligned):
        there = partial(score.cycles, "gemm_mma", config, (4096, 4096, 4096), H200)
        return there(sector_misaligned=sector_misaligned) / there()

    assert 1 < longer(large, True, False) < longer(large, True, True) < longer(small, True, True) < 2
    assert longer(replace(large, stages=1, prefetch=False, persistent=False), True, True) == 1
    narrow = small.with_vector_width(1, 1)
    assert 1 < longer(narrow, True, True) < longer(small, True, True), "8 bytes a copy, not 16"
    for config in (small, narrow):
        assert longer(replace(config, through_l1=True), True, True) == longer(config, True, True)


def test_which_copies_may_pass_through_the_l1_cache():
    """Those of 16 bytes, which alone can pass by it; of doubles where columns are sector-misaligned."""
    for letter in "sd":
        left = candidates(families_of("gemm", letter)[-1], letter, "nn", H200).left
        config = next(
            c for c in left if 16 in (c.stripe_a.load_bytes, c.stripe_b.load_bytes) and c.stages > 1
        )
        through = config.with_cache_policy(True)
        assert through == replace(config, through_l1=True) and through.with_cache_policy(False) == config
        assert through.stripe_a.through_l1 and through.for_packed().stripe_b.through_l1
        assert config.with_vector_width(1, 1).with_cache_policy(True) is None
        assert config.with_vector_width(4, 4, sector_misaligned=True) == (
            through if letter == "d" else config
        )
        assert config.with_vector_width(1, 1, sector_misaligned=True) == config.with_vector_width(1, 1)
    one = replace(config, stages=1, prefetch=False, persistent=False)
    assert one.with_cache_policy(True) is None
    with pytest.raises(ConfigError, match=r"through_l1: through_l1 only with stages > 1.*stages=1"):
        replace(one, through_l1=True)


@pytest.mark.skipif(bool(backend.why_unavailable()), reason=str(backend.why_unavailable()))
@pytest.mark.parametrize("through_l1", [False, True])
def test_how_copies_are_asked_for(through_l1):
    small = next(c for c in candidates("gemm_mma", "d", "nn", H200, "quick").left if c.VEC_A == c.VEC_B == 2)
    ptx = to_ptx(compile_pool.source_of("gemm_mma", small.with_cache_policy(through_l1)), (9, 0))
    assert set(re.findall(r"cp\.async\.(c.)\.", ptx)) == ({"ca"} if through_l1 else {"cg"})


# ------------------------------------------------------------------------------------------------ compiler


@pytest.mark.parametrize(
    ("report", "rule"),
    [
        (GOOD, "ok"),
        ("line 1: syntax error", "compile"),
        (Resources(64, 0, 8, 0, 0), "spills"),
        (Resources(64, 256, 0, 0, 0), "stack"),
        (Resources(1024, 0, 0, 0, 0), "residence"),
    ],
)
def test_the_compilers_report_is_judged(report, rule):
    config = candidates("gemm_simt", "s", "nn", H200).left[0]
    assert compile_pool.complaint(config, report, H200)[0] == rule


@pytest.mark.slow
def test_candidates_compile_without_a_device():
    pytest.importorskip("numba.cuda")
    stem = "gemm_simt"
    config = next(c for c in candidates(stem, "s", "nn", H200).left if c.THR_M * c.THR_N == 8)
    (((_, compiled), report),) = compile_pool.compile_all([(stem, config)], H200.cc, workers=1)
    assert compiled == config and compile_pool.complaint(config, report, H200) == ("ok", "")
    assert config.registers < report.registers <= 255


def test_what_nobody_waits_for_is_ended():
    """The interpreter joins these processes at its exit."""
    before = multiprocessing.active_children()
    with Pool(time.sleep, workers=1) as pool:
        pool.submit(600)
        (process,) = [each for each in multiprocessing.active_children() if each not in before]
    assert connection.wait([process.sentinel], 60)  # not exitcode, which a thread of the pool reads, too


# ----------------------------------------------------------------------------------------------- dry run


def dry(**changes):
    options = {"routine": ("gemm", "trsm"), "dtype": ("s",), "effort": "quick", "json": False}
    return SimpleNamespace(**{**options, "dry_run": True, "device": "h200", "compile": False, **changes})


def test_a_dry_run_prints_the_funnel(capsys):
    assert tune_command.main(dry()) == 0
    text = capsys.readouterr().out
    assert "NVIDIA H200" in text and "occupancy" in text and text.count("gemm_simt") == 4
    assert text.count("trsm_fma") == 1


def test_a_dry_run_speaks_json(capsys):
    assert tune_command.main(dry(device="fermi", json=True, routine=("gemm",))) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["device"] == "Tesla S2050" and len(said["funnels"]) == 4
    for funnel in said["funnels"]:
        assert funnel["candidates"] == sum(funnel["removed"].values()) + funnel["left"]


def test_a_dry_run_can_compile(capsys, monkeypatch):
    bad = Resources(255, 64, 8, 8, 0)
    monkeypatch.setattr(dryrun, "compile_all", lambda jobs, cc: ((job, bad) for job in list(jobs)))
    assert tune_command.main(dry(compile=True, json=True)) == 0
    rows = json.loads(capsys.readouterr().out)["funnels"]
    assert rows and all(row["left"] == 0 and row["removed"]["spills"] for row in rows)


def test_an_unknown_device_is_refused():
    with pytest.raises(ValueError, match="voodoo"):
        tune_command.main(dry(device="voodoo"))
    with pytest.raises(ValueError, match="'h200' is no number"):
        tune_command.main(dry(dry_run=False), routine=print)


# ------------------------------------------------------------------------------------------------- winners


def record(blk_m, seconds, extents=(1, 1), device="NVIDIA H200", **changes):
    facts = {"arch": "sm_90", "stem": "trmm_leaf", "dtype": "s", "layout": "any", "size": "few", **changes}
    facts.update(parameters={"BLK_M": blk_m}, seconds=seconds, tflops=1 / seconds)
    return Record(device, extents=extents, **facts)


KEY = ("trmm_leaf", "s", "any", "few")


def test_the_fastest_wins_and_failures_do_not():
    records = [record(16, 2.0), record(32, 1.0), record(64, 0.5, outcome="error")]
    records += [record(8, 0.1), record(8, 0.1, outcome="wrong")]
    found = winners(records, "x")
    assert found.entries[KEY].parameters == {"BLK_M": 32} and found.entries[KEY].tflops == 1.0


def test_of_several_extents_the_mean_over_the_best_counts():
    records = [
        record(16, 1.0, (128, 1)),
        record(16, 4.0, (512, 1)),
        record(32, 1.2, (128, 1)),
        record(32, 3.0, (512, 1)),
        record(64, 0.1, (128, 1)),
    ]
    assert winners(records, "x").entries[KEY].parameters == {"BLK_M": 32}


def test_a_parameter_that_came_later_has_its_default():
    """What was recorded before `gemm_simt` had VEC_K is the same candidate as since."""
    family = FAMILIES["gemm_simt"]
    given = family.parameters_of(candidates("gemm_simt", "s", "nt", H200).left[0])
    facts = {"arch": "sm_90", "stem": "gemm_simt", "dtype": "s", "layout": "nt", "size": "large"}
    now = Record("NVIDIA H200", extents=(1, 1, 1), parameters=given, seconds=1.0, tflops=1.0, **facts)
    before = replace(now, parameters={name: x for name, x in given.items() if name != "VEC_K"})
    assert given["VEC_K"] == 1 and before.candidate == now.candidate
    assert not sound([before, replace(now, outcome="wrong")])


def test_records_of_a_parameter_that_is_gone_count_where_it_was_off(home):
    """As those of the time when `gemm_mma` had `turned`; where it was on, they are left out."""
    given = FAMILIES["gemm_mma"].parameters_of(candidates("gemm_mma", "d", "nn", H200).left[0])
    facts = {"arch": "sm_90", "dtype": "d", "layout": "nn", "size": "large", "seconds": 1.0}
    now = Record("NVIDIA H200", stem="gemm_mma", extents=(1, 1, 1), parameters=given, **facts)
    leaf = FAMILIES["trsm_mma"].parameters_of(candidates("trsm_mma", "d", "any", H200).left[0])
    whole = replace(now, stem="trsm", layout="any", parameters={"stop": 512, **leaf})
    vendor = replace(now, parameters={}, outcome="vendor")
    path = sweep_file.sweep_file("NVIDIA H200")
    for kept in (now, whole, vendor):
        for gone in ({"turned": False}, {"turned": 1}, {"turned": 0, "TURNS": 2}, {}):
            sweep_file.append(path, replace(kept, parameters={**kept.parameters, **gone}))
    assert sweep_file.read_sweep(path) == [now] * 2 + [whole] * 2 + [vendor] * 2


def test_a_leaf_that_was_best_within_its_routine_wins():
    """It was timed with orders at which the recursion ends, and needs a record of the leaf alone."""
    leaves = [
        FAMILIES["trsm_mma"].parameters_of(config)
        for config in candidates("trsm_mma", "d", "any", H200).left[:2]
    ]
    place = ("any", "many", (512, 2048))
    alone = [
        Record("x", "sm_90", "trsm_mma", "d", *place, leaf, seconds=seconds, tflops=1 / seconds)
        for leaf, seconds in zip(leaves, (1.0, 2.0), strict=True)
    ]
    within = [
        replace(
            record, stem="trsm", parameters={"stop": 128, **record.parameters}, seconds=3 - record.seconds
        )
        for record in alone
    ]
    key = "trsm_mma", "d", "any", "many"
    assert winners(alone, "x").entries[key].parameters == leaves[0]
    assert winners([*alone, *within], "x").entries[key] == Entry(leaves[1], 0.5)


def test_a_sweep_survives_being_cut_off(home):
    path = sweep_file.sweep_file("NVIDIA H200")
    for blk in (16, 32):
        sweep_file.append(path, record(blk, 1.0 / blk))
    with path.open("ab") as file:
        file.write(b'{"device": "NVIDIA H200", "ar')
    with pytest.warns(DatabaseWarning, match=f"{path.name}: 1 lines are no records"):
        assert sweep_file.read_sweep(path) == [record(16, 1 / 16), record(32, 1 / 32)]
    # the next record is not swallowed by the unfinished line
    sweep_file.append(path, record(64, 1.0))
    with pytest.warns(DatabaseWarning):
        assert sweep_file.read_sweep(path)[-1] == record(64, 1.0)


def test_cold_times_are_not_compared_with_warm_ones():
    records = [record(16, 1.0), record(32, 3.0, caches="cold"), record(64, 2.0, caches="cold")]
    assert winners(records, "x").entries[KEY].parameters == {"BLK_M": 64}
    assert winners(records[:1], "x").entries[KEY].parameters == {"BLK_M": 16}


@pytest.mark.parametrize("outcome", sorted(results.FATAL))
def test_a_candidate_that_once_failed_badly_never_wins(outcome):
    records = [record(16, 2.0), record(8, 0.1), record(8, 9.0, outcome=outcome)]
    assert winners(records, "x").entries[KEY].parameters == {"BLK_M": 16}


def test_winners_tell_what_they_did_in_other_classes():
    full = FAMILIES["gemm_simt"].parameters_of(candidates("gemm_simt", "s", "nn", H200).left[0])

    def record(size, stages, seconds, rate, outcome="ok"):
        parameters = {**full, "stages": stages}
        at = {"large": (4096,) * 3, "tiny": (256,) * 3}[size]
        return Record(
            "NVIDIA H200", "sm_90", "gemm_simt", "s", "nn", size, at, parameters, outcome, seconds, rate
        )

    records = [
        record("large", 2, 1.0, 50.0),
        record("large", 3, 2.0, 25.0),
        record("tiny", 3, 1.0, 4.0),
        record("tiny", 2, 2.0, 2.0),
    ]
    found = winners(records, H200.name).entries
    facts = {
        size: (entry.parameters["stages"], entry.tflops, entry.elsewhere)
        for (*_, size), entry in found.items()
    }
    assert facts == {"large": (2, 50.0, {"tiny": 2.0}), "tiny": (3, 4.0, {"large": 25.0})}


def test_operations_are_counted_as_the_field_does():
    assert measure.flops("gemm", DTYPES["d"], (2, 3, 5)) == 60
    assert measure.flops("gemm", DTYPES["z"], (2, 3, 5)) == 240
    assert measure.flops("gemm", DTYPES["s"], (2, 3, 5, 100)) == 6000
    assert measure.flops("trsm", DTYPES["s"], (4, 10)) == 160


def test_compilers_use_the_cores_that_were_granted(monkeypatch):
    monkeypatch.setattr(processes.os, "sched_getaffinity", lambda process: {3, 5, 7}, raising=False)
    assert processes.cores() == compile_pool.Compilers((9, 0)).workers == 3
    monkeypatch.delattr(processes.os, "sched_getaffinity")
    monkeypatch.setattr(processes.os, "cpu_count", lambda: None)
    assert processes.cores() == 1


@pytest.mark.parametrize("stem", ["trsm_mma", "trsm_fma"])
def test_a_whole_routine_names_the_family_of_its_leaf(stem):
    """Also where another family has all of its parameters, and more."""
    leaf = candidates(stem, "d", "any", H200, "quick").left[0]
    parameters = FAMILIES[stem].parameters_of(leaf)
    at = H200.name, "sm_90", "trsm", "d", "any", "few", (2048, 32)
    record = Record(*at, {"stop": 128, **parameters}, "ok", 1e-4, 1.0)
    assert record.kernel == (stem, "d", "any", parameters)
