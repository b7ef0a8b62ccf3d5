"""The sizes of `patch_torch`: how they are found, kept and read."""

from __future__ import annotations

import json
from dataclasses import replace
from math import inf

import pytest
import torch

from pyblasgpu import cli
from pyblasgpu.database import policy
from pyblasgpu.database.policy import reference
from pyblasgpu.dispatch import choose, tuned_files
from pyblasgpu.gpu.device import known
from pyblasgpu.torch_patch.switch import TorchPatch, sizes_of
from pyblasgpu.tuning import refined_orders as refined
from pyblasgpu.tuning import scipy_thresholds
from pyblasgpu.tuning import torch_thresholds as tuning


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("PYBLASGPU_HOME", str(tmp_path))
    choose.reload()
    yield
    choose.reload()


def test_calls_are_timed_with_and_without_the_patch(monkeypatch):
    """Under the patch each is served: products in tensor mode."""
    served, seen = [], []
    count = TorchPatch.count
    monkeypatch.setattr(
        TorchPatch, "count", lambda self, *args: (served.append((*args, self.math_mode)), count(self, *args))
    )
    monkeypatch.setattr(tuning, "MIN_SPEEDUP", 1e9)
    values = tuning.thresholds((8, 16), "cpu", lambda *row: seen.append(row[:2]))
    assert set(values["replaced_min_size"]) == set(reference().replaced_min_size) == set(tuning.KINDS)
    assert set(sizes_of(policy.merged(reference(), values)).values()) == {inf}
    assert seen == [(kind, n) for n in (8, 16) for kind in tuning.KINDS]
    names = {"cholesky", "solve_triangular", "lu_factor", "inv", "geqrf", "eigh", "svd"}
    assert {name for name, *_, mode in served if mode is None} == names
    assert {name for name, *_, mode in served if mode == "tensor"} == {"mm"}
    assert all(reason is None for _, reason, _ in served)


def test_spectra_are_timed_where_there_are_kernels(monkeypatch):
    monkeypatch.setattr(tuning, "LARGEST", 2)
    kinds = ("eigh", "eigh_stack", "svd", "svd_stack")
    timed = {n: [kind for kind, _ in tuning.calls(n, "cpu") if kind in kinds] for n in (16, 64, 128)}
    assert timed == {16: [*kinds], 64: ["eigh", "svd"], 128: []}


def test_refinement_is_timed_beside_factors_in_float64(monkeypatch):
    """Each solution is timed with a bound that no order reaches, and with one that all do."""
    bounds = {name: [] for name in refined.VALUES}

    def solve(matrix, right, assume_a, method):
        name = "potrf_refined_min_order" if assume_a == "pos" else "getrf_refined_min_order"
        bounds[name].append(getattr(tuned_files.policy_of(known("h200")), name))

    monkeypatch.setattr(refined, "solve", solve)
    monkeypatch.setattr(refined, "MIN_SPEEDUP", 0)
    assert refined.refined_orders((8, 16), "cpu") == dict.fromkeys(refined.VALUES, 8)
    assert all(set(each) == {0, policy.MAX_VALUE} for each in bounds.values())
    monkeypatch.setattr(refined, "MIN_SPEEDUP", 1e9)
    assert refined.refined_orders((8,), "cpu") == dict.fromkeys(refined.VALUES, policy.MAX_VALUE)


def test_the_command_writes_the_file_of_the_device(monkeypatch, capsys):
    card = replace(known("h200"), ordinal=0)
    monkeypatch.setattr(scipy_thresholds, "present", lambda name: card)
    monkeypatch.setattr(
        tuning, "thresholds", lambda **_: {"replaced_min_size": {"lu": 77, "inverse": policy.MAX_VALUE}}
    )
    monkeypatch.setattr(tuning, "refined_orders", lambda **_: {"getrf_refined_min_order": 2048.0})
    assert cli.main(["tune", "--torch", "--json"]) == 0
    sizes = json.loads(capsys.readouterr().out)
    assert (sizes["lu_factor"], sizes["inv"], sizes["cholesky"]) == (77, None, 128)
    assert tuned_files.policy_of(card).replaced_min_size["lu"] == 77
    assert tuned_files.policy_of(card).getrf_refined_min_order == 2048
    assert tuned_files.policy_origin("replaced_min_size", card).startswith("measured here, ")


def test_without_pytorch_the_command_says_so(monkeypatch, capsys):
    monkeypatch.setitem(__import__("sys").modules, "torch", None)
    assert cli.main(["tune", "--torch"]) == 2
    assert "torch" in capsys.readouterr().err
    assert torch.__name__ == "torch"
