"""Whole routines in a tuning run: leaves, algorithms, cuBLAS, before and after."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from tuner_stage import FASTEST, H200, Stage, best_of, on, rate, tune

from pyblasgpu.database import RECURSION, TRSM_FUSED, Document, Entry, read
from pyblasgpu.dispatch import choose as selecting
from pyblasgpu.dispatch import tuned_files
from pyblasgpu.dispatch.algorithms import trsm_algorithm
from pyblasgpu.tuning import routine_search
from pyblasgpu.tuning.results import winners
from pyblasgpu.types import DTYPES

pytestmark = pytest.mark.usefixtures("home")


def test_the_best_leaf_wins(stage):
    _, document = tune(on(stage), ("trsm",), ("d",))
    best = best_of(("trsm_fma", "d", "any"))
    assert rate(document.entries["trsm_fma", "d", "any", "many"]) == Stage.rate(best)


def fastest(document) -> dict[str, str]:
    """Return the fastest algorithm of TRSM in d, by point."""
    return {at: max(rates, key=rates.__getitem__) for (_, at), rates in document.trsm_rates.items()}


@pytest.mark.parametrize("routines", [("trsm",), ("trmm", "trsm")])
def test_each_algorithm_of_trsm_where_it_is_faster(stage, routines):
    made, document = tune(on(stage), routines, ("d",))
    filed = read(tuned_files.user_file(H200.name), H200.name)
    assert fastest(document) == FASTEST and filed.trsm_rates.keys() == document.trsm_rates.keys()
    assert document.entries and made.untried == 0
    selecting.reload()
    for n, rhs, name in ((600, 20, RECURSION), (300, 300, TRSM_FUSED)):
        chosen = trsm_algorithm(DTYPES["d"], n, rhs, 1, H200)
        assert chosen.name == name and chosen.origin.startswith("tuned here")
    # nothing of it is timed again by a run that resumes this one
    again, _ = tune(on(stage), routines, ("d",), resume=True)
    assert len(again.log.records) == len(made.log.records)


def test_a_run_may_be_of_algorithms_alone(stage):
    _, before = tune(on(stage), ("trsm",), ("d",))
    made, document = tune(on(stage), ("trmm", "trsm"), ("d",), stages=("algorithms",))
    assert len(document.trsm_rates) == 3 == len(made.log.records) / 2
    assert not document.entries
    filed = read(tuned_files.user_file(H200.name), H200.name)
    assert filed.entries.keys() == before.entries.keys() and fastest(filed) == FASTEST
    # what there was no time for is told of
    made, document = tune(on(stage), ("trmm", "trsm"), ("d",), stages=("algorithms",), budget=1e-9)
    assert made.untried == 6 and not document


def test_batches_of_trmm_are_not_compared_with_cublas_which_has_none():
    sizes = ("few", "batch64")
    entries = {(stem, "s", "any", size): Entry({}) for stem in ("trsm_fma", "trmm_leaf") for size in sizes}
    timed = []
    runner = SimpleNamespace(
        finish=lambda job, patience: ([1.0], None),
        add_time=lambda key, size, *_: timed.append((key[0], size)),
    )
    routine_search.time_vendor(runner, Document(H200.name, entries))
    assert timed == [("trsm_fma", "few"), ("trsm_fma", "batch64"), ("trmm_leaf", "few")]


def test_before_and_after_are_timed_if_asked_for(stage):
    made, document = tune(on(stage), layouts=("nn",), curves=True)
    timed = [(r.outcome, r.extents[0]) for r in made.log.records if r.outcome in ("before", "after")]
    assert timed == [("before", 32), ("before", 64), ("after", 32), ("after", 64)]
    assert winners(made.log.records, H200.name).entries == document.entries
