"""The catalogue is closed: no call launches a kernel that it does not list."""

from __future__ import annotations

import os
from functools import cache
from itertools import product

import pytest
import random_calls

from pyblasgpu.dispatch import catalogue, choose
from pyblasgpu.gpu.device import known
from pyblasgpu.operands import Operand
from pyblasgpu.routines import launch_list
from pyblasgpu.routines.lapack import eigh_batched, eigh_divided
from pyblasgpu.types import DTYPES, Uplo

#: Random calls on the cards that are tuned; ``PYBLASGPU_CALLS=100000`` draws more.
CALLS = int(os.environ.get("PYBLASGPU_CALLS", "400"))

MOST = 927  # kernels of an architecture


@cache
def listed_for(name: str) -> frozenset:
    """The kernels that the catalogue lists for a device, by the packaged values alone."""
    return frozenset(catalogue.kernels(known(name)))


@pytest.fixture
def on(monkeypatch, tmp_path):
    """``on(name)`` describes the device on which all calls run, with the packaged values alone."""
    monkeypatch.setenv("PYBLASGPU_HOME", str(tmp_path))
    monkeypatch.setattr(launch_list, "cache", {})
    choose.reload()

    def take(name: str):
        device = known(name)
        random_calls.on(device, monkeypatch)
        return device

    yield take
    choose.reload()


@pytest.mark.parametrize(
    ("name", "count"), [("h200", CALLS), ("h100", CALLS // 3), ("a100", CALLS // 5), ("rtx4090", CALLS // 5)]
)
def test_no_call_launches_a_kernel_outside(on, name, count):
    on(name)
    listed = listed_for(name)
    for call in random_calls.calls(count, seed=len(name)):
        outside = [kernel for kernel in call.kernels if kernel not in listed]
        assert not outside, f"{call.what}: {outside[0].name} {outside[0].config} {outside[0].flags}"


@pytest.mark.parametrize("name", ["h200", "a100"])
def test_kernels_of_eigenvalues_are_listed(on, name, monkeypatch):
    """Kernels are those of all ways to them, for some matrices and for many."""
    on(name)
    monkeypatch.setattr(eigh_divided, "workspace_room", lambda device, most: most)
    listed = listed_for(name)
    for letter, n, batch, vectors in product("sz", (3, 50, 100, 700), (1, 300), (True, False)):
        dtype = DTYPES[letter]
        a = Operand(1 << 40, n, n, 1, n, dtype, False, batch, n * n)
        w = Operand(1 << 41, n, 1, 1, n, dtype, False, batch, n)
        info = Operand(1 << 42, 1, 1, 1, 1, dtype, False, batch, 1)
        launches = eigh_batched.launch_list(w, info, a, a, uplo=Uplo.LOWER, vectors=vectors)
        assert launches is not None
        assert not [entry.source for entry in launches.entries if entry.source not in listed]


def test_devices_of_an_architecture_share_a_catalogue(on):
    """So that one archive serves them."""
    on("h100")
    assert listed_for("h100") == listed_for("h200")


@pytest.mark.parametrize("name", ["h200", "a100", "rtx4090", "b200"])
def test_there_are_few(on, name):
    on(name)
    assert len(listed_for(name)) <= MOST
