"""Cases of benchmarks that need no device: calls of another checkout, and errors over their bounds."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

import pyblasgpu
from benchmarks import catalogue_loss, error_bounds
from pyblasgpu.types import DTYPES


def test_its_cases_are_calls_of_the_package():
    cases = [case for cases in catalogue_loss.LISTS.values() for case in cases()]
    counts = Counter(case["list"] for case in cases)
    assert counts["squares"] == 96 and set(counts) >= {"awkward", "cliffs", "trsm", "trmm", "level3"}
    assert all(callable(getattr(pyblasgpu, case["routine"])) for case in cases)
    assert [*catalogue_loss.cliffs()] == [*catalogue_loss.cliffs()], "the same in every run"


@pytest.mark.parametrize(("ratios", "code"), [((0.99, 1.0), 0), ((0.9, 1.2), 1), ((0.97, 0.98), 1)])
def test_a_list_that_loses_too_much_is_a_failure(ratios, code):
    case = next(catalogue_loss.squares())
    results = [{**case, "old": ratio, "new": 1.0, "ratio": ratio} for ratio in ratios]
    assert catalogue_loss.fails(results) == code
    assert "squares: 2 cases" in next(catalogue_loss.summary(results, None))


def test_a_call_that_fails_is_a_failure():
    results = [{**next(catalogue_loss.squares()), "problem": "old: out of memory"}]
    assert catalogue_loss.fails(results) and "out of memory" in next(catalogue_loss.summary(results, None))


@pytest.mark.filterwarnings("ignore:An ill-conditioned matrix")
@pytest.mark.parametrize("letter", DTYPES)
def test_every_routine_stays_within_its_bound(letter, monkeypatch):
    monkeypatch.setenv("PYBLASGPU_BACKEND", "cpu")
    monkeypatch.setattr(error_bounds, "SIZES", dict.fromkeys(DTYPES, (2, 20)))
    rows = list(error_bounds.measured(False, letter))
    hermitian = {"hemm", "herk", "her2k"} if letter in "cz" else set()
    assert len({row["routine"] for row in rows} - hermitian) == 19 + 7 + 5
    assert all(row["over"] <= 1 for row in rows)
    assert any(row["over"] > 0 for row in rows)


def test_an_error_without_a_bound_is_infinite():
    error, bound = np.array([0.0, 1e-20]), np.zeros(2)
    assert error_bounds.ratio(DTYPES["d"], "dot", error, bound) == float("inf")
    assert error_bounds.ratio(DTYPES["d"], "dot", error[:1], bound[:1]) == 0
