"""The sizes of `patch_scipy`: how they are found, kept and read."""

from __future__ import annotations

import json
from dataclasses import replace
from math import inf
from types import SimpleNamespace

import pytest
import scipy.linalg

from pyblasgpu import cli, patch_scipy
from pyblasgpu.database import Document, policy
from pyblasgpu.database.policy import reference
from pyblasgpu.dispatch import choose, tuned_files
from pyblasgpu.gpu.device import known, stand_ins
from pyblasgpu.routine_table import ROUTINES
from pyblasgpu.scipy_patch import switch
from pyblasgpu.scipy_patch.thresholds import sizes_of
from pyblasgpu.tuning import scipy_thresholds as tuning
from pyblasgpu.tuning.tuned_file_writer import merge


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("PYBLASGPU_HOME", str(tmp_path))
    choose.reload()
    yield tmp_path
    choose.reload()


@pytest.mark.parametrize(
    ("gains", "expected"),
    [
        ({128: 0.5, 256: 1.5, 512: 2}, 256),
        ({128: 2, 256: 1, 512: 2}, 512),
        ({128: 2, 256: 1.3}, inf),
        ({}, inf),
    ],
)
def test_a_threshold_holds_for_all_larger_sizes(gains, expected):
    assert tuning.threshold(gains) == expected


def test_every_size_has_a_call_that_is_timed():
    functions = [name for _, names, _ in tuning.TIMED.values() for name in names]
    kinds = [name for *_, names in tuning.TIMED.values() for name in names]
    assert sorted(functions) == sorted(reference().routed_function_min_size)
    assert sorted(kinds) == sorted(reference().routed_min_size)
    assert {routine.crossover for routine in ROUTINES.values()} - {""} == set(kinds)
    assert [name for name, _ in tuning.calls(8)] == list(tuning.TIMED)


def test_calls_are_timed_with_and_without_the_patch(monkeypatch):
    """The CPU backend is no faster, so nothing is ever sent there."""
    monkeypatch.setattr(tuning, "MIN_SPEEDUP", 1e9)
    seen = []
    values = tuning.thresholds((8, 16), "cpu", lambda *row: seen.append(row[:2]))
    never = sizes_of(policy.merged(reference(), values))
    assert never == dict.fromkeys(sizes_of(reference()), inf)
    assert seen == [(k, n) for n in (8, 16) for k in tuning.TIMED]
    assert type(scipy.linalg.blas.dgemm).__name__ == "fortran"


def test_what_is_slow_is_not_timed_at_larger_sizes(monkeypatch):
    monkeypatch.setattr(tuning, "SECONDS", 0)
    monkeypatch.setattr(tuning, "MIN_SPEEDUP", 0)
    sizes = sizes_of(policy.merged(reference(), tuning.thresholds((8, 16), "cpu")))
    assert sizes["gemm"] == sizes["syrk"] == 8 and sizes["cho_solve"] == sizes["potrs"] == 4


def save(device, **sizes):
    """Keep sizes of functions, and of routines of a kind, in the user's file of a device."""
    of_kinds = {name: size for name, size in sizes.items() if name in reference().routed_min_size}
    others = {name: size for name, size in sizes.items() if name not in of_kinds}
    values = {"routed_min_size": of_kinds, "routed_function_min_size": others}
    return merge(Document(device, policy={name: value for name, value in values.items() if value}))


def test_functions_that_nobody_knows_are_left_out():
    policy_of_file = policy.merged(reference(), {"routed_function_min_size": {"pinv": 7, "inv": 5}})
    assert sizes_of(policy_of_file) == {**sizes_of(reference()), "inv": 5}


def test_a_patch_takes_the_sizes_of_its_device(monkeypatch):
    card = known("h200")
    save(card.name, product=99, inv=98)
    monkeypatch.setitem(stand_ins, 0, card)
    monkeypatch.setattr(switch, "status_in", lambda backend, name: SimpleNamespace(backend=backend))
    with patch_scipy(backend="cuda") as patch:
        products = {routine.stem: 99 for routine in ROUTINES.values() if routine.crossover == "product"}
        assert patch.thresholds == {**sizes_of(reference()), **products, "inv": 98}
    with patch_scipy(backend="cuda", thresholds={"gemm": 3}) as patch:
        assert (patch.thresholds["gemm"], patch.thresholds["inv"]) == (3, 98)
    with patch_scipy(backend="cpu") as patch:
        assert patch.thresholds == sizes_of(reference())


def test_the_command_writes_the_file_of_the_device(monkeypatch, capsys):
    card = replace(known("h200"), ordinal=0)
    monkeypatch.setattr(tuning, "present", lambda name: card)
    found = {"routed_min_size": {"product": 77.0}, "routed_function_min_size": {"inv": policy.MAX_VALUE}}
    monkeypatch.setattr(tuning, "thresholds", lambda **options: found)
    assert cli.main(["tune", "--scipy", "--json"]) == 0
    sizes = json.loads(capsys.readouterr().out)
    assert (sizes["gemm"], sizes["trmm"], sizes["inv"], sizes["lu"]) == (77, 77, None, 768)
    own = tuned_files.policy_of(card)
    assert own.routed_min_size == {**reference().routed_min_size, "product": 77}
    assert tuned_files.policy_origin("routed_min_size", card).startswith("measured here, ")
    assert cli.main(["tune", "--scipy"]) == 0
    assert f"written to {tuned_files.user_file(card.name)}" in capsys.readouterr().out
