"""PLASMA's pairs (NB, IB): what makes a pair that of a call, the pruning, and Table 3.1."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from fake_kernels import install, operand

from pyblasgpu.routines.lapack import geqrf, getrf, potrf
from pyblasgpu.routines.launch_list import BESIDE
from pyblasgpu.types import DTYPES, Uplo
from tuning.papers import plasma

D = DTYPES["d"]
MODULES = {"potrf": potrf, "getrf": getrf, "geqrf": geqrf}
PAIRS = [(name, *pair) for name in plasma.ROUTINES for pair in sorted(plasma.pairs(name))]


@pytest.mark.parametrize("routine, nb, ib", PAIRS)
def test_a_pair_is_that_of_the_launches(routine, nb, ib, monkeypatch, decide_by):
    """Factors are right whatever the pair; panels have IB columns, and blocks NB.

    So they do where the library takes Cholesky factors for panels of QR.
    """
    decide_by(cholesky_panel_min_rows=40)
    install(monkeypatch)
    monkeypatch.setitem(sys.modules, "cupy", np)
    n = max(nb + 40, 150)
    a = np.random.default_rng(n).uniform(-1, 1, (n, n))
    a = np.asfortranarray(a @ a.T / n + np.eye(n) if routine == "potrf" else a)
    factors, tau, info = a.copy(order="F"), np.zeros((n, 1)), np.zeros((1, 1))
    arrays = {"potrf": (info, factors), "getrf": (tau, info, factors), "geqrf": (tau, factors)}[routine]
    operands = [operand(each, D) for each in arrays]
    with plasma.in_force(plasma.ROUTINES[routine].overrides("d", nb, ib)):
        flags = {"uplo": Uplo.LOWER} if routine == "potrf" else {}
        launches = MODULES[routine].launch_list(*operands, **flags)
        launches.run([each.pointer for each in operands], 1.0, stream=0)
    rows = tau[:, 0].copy().view(np.int32)[::2] if routine == "getrf" else tau
    assert plasma.residual(routine, a, (factors, rows)) < 10 * n * np.finfo(float).eps
    launched = [entry.source for entry in launches.entries]
    panels = [each.config for each in launched if each.name in ("getrf_panel", "geqrf_panel")]
    assert {each.COLS for each in panels} == ({ib} if ib else set())
    if routine == "geqrf":  # the last block is whole, and has nothing on its right
        made = [each.name for each in launched].count("larft_leaf")
        assert n // nb - 1 <= made <= n // nb  # a block of few panels joins their T
    else:
        assert BESIDE in {entry.lane for entry in launches.entries}  # looks ahead, by blocks of NB


def test_wrong_factors_are_not_timed(monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", np)
    monkeypatch.setattr(plasma, "_function", lambda routine: lambda a: (a, range(len(a)), 0))
    monkeypatch.setattr(plasma, "_matrix", lambda *_: np.asfortranarray(np.ones((4, 4)) + 4 * np.eye(4)))
    for routine in plasma.ROUTINES:
        with pytest.raises(RuntimeError, match="wrong"):
            plasma.factor_rate(routine, "d", 4, 4, ())


STEPS = {(32, 8): 1.0, (32, 16): 2.0, (64, 8): 1.9, (64, 16): 1.5, (128, 8): 2.5, (128, 32): 2.4}
MADE = {
    "routine": "getrf",
    "dtype": "d",
    "orders": [512, 1024],
    "library": {"512": 9.0},
    "interchanged": {"512": 0.99},
    "steps": [{"nb": nb, "ib": ib, "tflops": rate} for (nb, ib), rate in STEPS.items()],
    "whole": [
        {"nb": 32, "ib": 16, "tflops": {"512": 5.0}},
        {"nb": 64, "ib": 8, "tflops": {"512": 6.0, "1024": 7.0}},
        {"nb": 128, "ib": 8, "tflops": {"512": 4.0}},
    ],
}


def test_the_first_stage_keeps_the_best_ib_of_a_faster_nb():
    assert plasma.pruned(STEPS) == [(32, 16), (128, 8)]
    (row,) = plasma.replay(MADE)  # at 1024 no pair that is kept was timed
    assert (row["PS"], row["PS pair"], row["ES"], row["ES pair"]) == (5.0, (32, 16), 6.0, (64, 8))
    assert row["overhead"] == pytest.approx(20.0) and (row["tried"], row["all"]) == (2, 3)
    columns = plasma.table([MADE], "a card").columns
    assert [next(iter(column.cells)) for column in columns][-3:] == ["2 of 3", "9.00", "99%"]
    kept = [*plasma.surface(MADE, "a card").columns[-1].cells]
    assert kept == ["yes", "", "yes"]
