"""What is made of the records of a sweep: winners, what records of older versions count for."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pyblasgpu.database import FAMILIES, Entry
from pyblasgpu.errors import DatabaseWarning
from pyblasgpu.gpu.device import known
from pyblasgpu.tuning import results, sweep_file
from pyblasgpu.tuning.prune import candidates
from pyblasgpu.tuning.results import Record, sound, winners

pytestmark = pytest.mark.usefixtures("home")

H200, FERMI = known("h200"), known("fermi")


def record(blk_m, seconds, extents=(1, 1), device="NVIDIA H200", **changes):
    facts = {"arch": "sm_90", "stem": "trmm_leaf", "dtype": "s", "layout": "any", "size": "few", **changes}
    facts.update(parameters={"BLK_M": blk_m}, seconds=seconds, tflops=1 / seconds)
    return Record(device, extents=extents, **facts)


KEY = ("trmm_leaf", "s", "any", "few")


def test_the_fastest_wins_and_failures_do_not():
    records = [record(16, 2.0), record(32, 1.0), record(64, 0.5, outcome="error")]
    records += [record(8, 0.1), record(8, 0.1, outcome="wrong")]
    document = winners(records, "x")
    assert document.entries[KEY].parameters == {"BLK_M": 32} and document.entries[KEY].tflops == 1.0


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
    parameters = family.parameters_of(candidates("gemm_simt", "s", "nt", H200).left[0])
    facts = {"arch": "sm_90", "stem": "gemm_simt", "dtype": "s", "layout": "nt", "size": "large"}
    now = Record("NVIDIA H200", extents=(1, 1, 1), parameters=parameters, seconds=1.0, tflops=1.0, **facts)
    before = replace(now, parameters={name: x for name, x in parameters.items() if name != "VEC_K"})
    assert parameters["VEC_K"] == 1 and before.candidate == now.candidate
    assert not sound([before, replace(now, outcome="wrong")])


def test_records_of_a_parameter_that_is_gone_count_where_it_was_off(home):
    """Records are of the time when `gemm_mma` had `turned`; where it was on, they are left out."""
    parameters = FAMILIES["gemm_mma"].parameters_of(candidates("gemm_mma", "d", "nn", H200).left[0])
    facts = {"arch": "sm_90", "dtype": "d", "layout": "nn", "size": "large", "seconds": 1.0}
    now = Record("NVIDIA H200", stem="gemm_mma", extents=(1, 1, 1), parameters=parameters, **facts)
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
    entries = winners(records, H200.name).entries
    facts = {
        size: (entry.parameters["stages"], entry.tflops, entry.elsewhere)
        for (*_, size), entry in entries.items()
    }
    assert facts == {"large": (2, 50.0, {"tiny": 2.0}), "tiny": (3, 4.0, {"large": 25.0})}


@pytest.mark.parametrize("stem", ["trsm_mma", "trsm_fma"])
def test_a_whole_routine_names_the_family_of_its_leaf(stem):
    """Also where another family has all of its parameters, and more."""
    leaf = candidates(stem, "d", "any", H200, "quick").left[0]
    parameters = FAMILIES[stem].parameters_of(leaf)
    at = H200.name, "sm_90", "trsm", "d", "any", "few", (2048, 32)
    record = Record(*at, {"stop": 128, **parameters}, "ok", 1e-4, 1.0)
    assert record.kernel == (stem, "d", "any", parameters)
