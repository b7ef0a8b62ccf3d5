"""Every card that is described: a call picks no kernel that the card cannot run; the oldest that serves."""

from __future__ import annotations

import logging
import re
from dataclasses import replace
from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest
from fake_device import Array

import pyblasgpu
from pyblasgpu import backend_status, info
from pyblasgpu.database import FIXED
from pyblasgpu.dispatch.choose import select
from pyblasgpu.errors import BackendUnavailable
from pyblasgpu.gpu import device, launch
from pyblasgpu.gpu.device import OLDEST, known, names, stand_ins
from pyblasgpu.kernels import compile_ahead
from pyblasgpu.operands import Operand
from pyblasgpu.routines.launch_list import cached_launch_list
from pyblasgpu.routines.level3 import gemm, gemmtr, symm, syr2k, syrk, trmm, trsm
from pyblasgpu.routines.level3.triangle_update import TriangleUpdate
from pyblasgpu.types import DTYPES, Diag, Side, Uplo

ONE = np.eye(8)
#: One of those that are described alike; the name of a family is that of its first card.
CARDS = {known(name): name for name in reversed(names())}
ALL = [pytest.param(card, id=name) for card, name in CARDS.items()]
#: (order, right-hand sides, batch): small, few columns, batches, beyond a leaf.
TRIANGLES = [(8, 3, 1), (32, 32, 1), (700, 1, 1), (1000, 4, 1), (16, 8, 500), (100, 20, 300), (900, 700, 1)]


@pytest.fixture
def sources(monkeypatch):
    """``sources(device, emit, operands, options)``: the kernels of a call on that device."""
    monkeypatch.setattr("pyblasgpu.routines.launch_list.cache", {})
    loaded = []

    def load(source, ordinal):
        loaded.append(source)
        return SimpleNamespace(launch=None)

    monkeypatch.setattr(compile_ahead, "ensure_compiled", lambda sources, ordinal: None)
    monkeypatch.setattr(launch, "kernel", load)

    def of(card, emit, operands, options):
        monkeypatch.setitem(stand_ins, operands[0].device, card)
        loaded.clear()
        cached_launch_list(emit, operands, options).bound(1.5, 0.5)
        return list(loaded)

    return of


def dense(dtype, rows, cols, batch=1) -> Operand:
    return Operand(0, rows, cols, 1, rows, dtype, False, batch, rows * cols)


def calls(dtype):
    """(emit, operands, options) of a few calls of each routine."""
    for (n, r, batch), side in product(TRIANGLES, Side):
        b = dense(dtype, n, r, batch) if side is Side.LEFT else dense(dtype, r, n, batch)
        for emit in (trmm.emit, trsm.emit):
            yield emit, (dense(dtype, n, n, batch), b), (side, Uplo.LOWER, Diag.NON_UNIT)
    for m, n, k, batch in ((5, 3, 9, 1), (65, 33, 300, 1), (40, 40, 40, 200), (1500, 1200, 800, 1)):
        operands = dense(dtype, m, k, batch), dense(dtype, k, n, batch), dense(dtype, m, n, batch)
        yield gemm.emit, operands, (True, False)
    square = dense(dtype, 300, 300)
    triangle = TriangleUpdate(Uplo.LOWER, False, is_new_output=False, overwrite=True)
    yield symm.emit, (square,) * 3, (Side.LEFT, Uplo.LOWER, False, True)
    yield syrk.emit, (square,) * 2, (triangle,)
    yield syr2k.emit, (square,) * 3, (triangle,)
    yield gemmtr.emit, (square,) * 3, (triangle,)


def needed(config) -> tuple[int, int]:
    """Compute capability from which on a kernel of this Config runs."""
    fixed = FIXED[config.STEM].needs if config.STEM in FIXED else (0, 0)
    by_stages = (8, 0) if getattr(config, "stages", 1) > 1 else (0, 0)
    return max(fixed, by_stages, getattr(config, "needs", (0, 0)))


@pytest.mark.parametrize("letter", "sz")
@pytest.mark.parametrize("card", ALL)
def test_every_kernel_that_a_call_picks_runs_there(sources, card, letter):
    for emit, operands, options in calls(DTYPES[letter]):
        try:
            kernels = sources(card, emit, operands, options)
        except BackendUnavailable as reason:
            assert card.cc < OLDEST and card.name in str(reason)
            continue
        for source in kernels:
            message = f"{emit.__module__} of {operands[-1].layout}: {source.config}"
            assert source.threads <= card.max_threads_per_block, message
            assert source.shared_bytes <= card.shared_per_block, message
            assert card.cc >= needed(source.config), message


@pytest.mark.parametrize("stem", FIXED)
@pytest.mark.parametrize("card", ["h100", "a100", "t4"])
def test_a_fixed_config_is_checked_against_the_device(card, stem):
    family, device = FIXED[stem], known(card)
    key = stem, DTYPES[family.dtypes[-1]], "", (100, 1), device
    if family.needs <= device.cc and family.only in (None, device.cc):
        is_packaged = family.dtypes[-1] in family.packaged
        assert select(*key).origin == ("packaged for NVIDIA H200" if is_packaged else "fixed")
    else:
        message = re.escape(f"{stem}: no Config can run on {device.name} ({device.arch})")
        with pytest.raises(BackendUnavailable, match=message):
            select(*key)


# ------------------------------------------------------------------------------------------- the oldest card

TOLD = r"device 0, Tesla T4, has compute capability 7\.5; 8\.0 or higher is needed"


@pytest.fixture
def old(driver, monkeypatch):
    """Device 0 is older than what serves, device 1 is not."""
    monkeypatch.delenv("PYBLASGPU_BACKEND", raising=False)
    driver.cards[0] = known("t4")
    return driver


def test_an_older_card_leaves_host_arrays_to_the_cpu(old, caplog):
    with caplog.at_level(logging.INFO, "pyblasgpu"):
        for _ in range(2):
            assert (pyblasgpu.gemm(ONE, ONE) == ONE).all()
    (emit,) = caplog.records
    assert re.search(TOLD, emit.message)
    assert backend_status().backend == "cpu" and re.fullmatch(TOLD, backend_status().reason)
    with pytest.raises(BackendUnavailable, match=TOLD):
        pyblasgpu.gemm(ONE, ONE, backend="cuda")
    assert not old.launches and old.stack == []


def test_the_device_that_is_current_counts(old):
    old.begin(1)
    assert backend_status().backend == "cuda"
    pyblasgpu.gemm(ONE, ONE)
    assert {ordinal for ordinal, _ in old.launches} == {1}
    old.begin(0)
    assert backend_status().backend == "cpu"


@pytest.mark.parametrize("call", ["gemm", "trmm", "trsm", "symm", "plan_gemm", "explain"])
def test_device_arrays_on_an_older_card_say_so(old, call):
    a = Array(ONE)
    calls = {
        "plan_gemm": lambda: pyblasgpu.plan_gemm(a, a, Array(ONE.copy())),
        "explain": lambda: pyblasgpu.explain("trsm", "d", 100, 3),
    }
    for _ in range(2):
        with pytest.raises(BackendUnavailable, match=TOLD):
            calls.get(call, lambda: getattr(pyblasgpu, call)(a, a, out=Array(ONE.copy())))()
    assert not old.launches


def test_info_lists_an_older_card(old):
    first, second = info.collect()["devices"]
    assert re.fullmatch(f"cannot be used: {TOLD}", first["name"]) and second["arch"] == "sm_90"


def test_a_card_newer_than_all_that_are_described(driver):
    """It is taken for the last one that is."""
    driver.cards[0] = replace(known("sm_120"), name="Next", cc=(13, 0))
    newest = device.current(0)
    assert newest.arch == "sm_130" and newest.has_async_copy
    assert newest.lanes_float32 == known("sm_120").lanes_float32
    assert pyblasgpu.explain("trsm", "s", 700, 700) and backend_status().backend == "cuda"
