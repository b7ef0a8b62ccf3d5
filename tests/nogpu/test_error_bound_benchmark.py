"""The benchmark of errors over their bounds, on the CPU backend with small orders."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks import error_bounds
from pyblasgpu.types import DTYPES


@pytest.fixture(autouse=True)
def on_the_cpu(monkeypatch):
    monkeypatch.setenv("PYBLASGPU_BACKEND", "cpu")


@pytest.mark.filterwarnings("ignore:An ill-conditioned matrix")
@pytest.mark.parametrize("letter", DTYPES)
def test_every_routine_stays_within_its_bound(letter, monkeypatch):
    monkeypatch.setattr(error_bounds, "SIZES", dict.fromkeys(DTYPES, (2, 20)))
    rows = list(error_bounds.measured(False, letter))
    hermitian = {"hemm", "herk", "her2k"} if letter in "cz" else set()
    assert len({row["routine"] for row in rows} - hermitian) == 19 + 7
    assert all(row["over"] <= 1 for row in rows)
    assert any(row["over"] > 0 for row in rows)


def test_an_error_without_a_bound_is_infinite():
    error, bound = np.array([0.0, 1e-20]), np.zeros(2)
    assert error_bounds.ratio(DTYPES["d"], "dot", error, bound) == float("inf")
    assert error_bounds.ratio(DTYPES["d"], "dot", error[:1], bound[:1]) == 0
