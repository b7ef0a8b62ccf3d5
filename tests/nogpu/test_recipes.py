"""Recipes: which tape a repeated call takes, and when it must be checked anew."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from pyblasgpu.frontend import call_cache
from pyblasgpu.frontend.call_cache import Recipe
from pyblasgpu.frontend.layouts import Layout
from pyblasgpu.types import DTYPES

S = DTYPES["s"]
APART = [4096, 8192, 12288]


@pytest.fixture
def recipe():
    """A recipe of three 8 x 8 matrices; what it prepares and runs is in its lists."""
    prepared, runs, state = [], [], SimpleNamespace(generation=0)

    def prepare(scalars, operands):
        prepared.append((scalars, [operand.pointer for operand in operands]))
        if scalars == (0, 1):
            return None
        tape = len(prepared)

        def bound(alpha, beta):
            return lambda bases, stream: runs.append((tape, bases, alpha, beta, stream))

        return SimpleNamespace(bound=bound)

    layouts = tuple(Layout(pointer, (8, 8), (8, 1), S, 0) for pointer in APART)
    made = Recipe(layouts, prepare, lambda: state.generation)
    return SimpleNamespace(run=made.run, prepared=prepared, runs=runs, state=state, made=made)


def test_a_tape_is_prepared_once_and_run_with_what_is_given(recipe):
    elsewhere = [pointer + 256 for pointer in APART]
    for pointers, alpha, beta, stream in (
        (APART, 1, 0, 7), (APART, 1, 0, 8), (elsewhere, 1, 0, 7), (elsewhere, 1.0, 0.0, 7), (APART, 1, 0, 7),
    ):  # fmt: skip
        assert recipe.run(pointers, alpha, beta, stream)
        assert recipe.runs.pop() == (1, pointers, alpha, beta, stream)
    assert len(recipe.prepared) == 1


def test_a_batch_is_one_call_like_a_matrix():
    seen = []

    def prepare(scalars, operands):
        seen.extend(operands)

    stacks = (Layout(APART[0], (8, 8), (8, 1), S, 0), Layout(APART[1], (5, 8, 8), (64, 1, 8), S, 0))
    made = Recipe((*stacks, Layout(APART[2], (5, 8, 8), (64, 8, 1), S, 0)), prepare, lambda: 0)
    assert made.run(APART, 1, 0, 0)
    assert [(x.pointer, x.batch, x.batch_stride) for x in seen] == [
        (APART[0], 5, 0), (APART[1], 5, 64), (APART[2], 5, 64)
    ]  # fmt: skip


def test_tapes_differ_by_what_they_depend_on(recipe):
    shifted = [*APART[:2], APART[2] + 4]
    variants = [
        (APART, 1, 0), (APART, 2, 0), (APART, 0, 0), (APART, 1, 1), (APART, 1, 2.5), (shifted, 1, 0),
        [[pointer + 4 for pointer in APART], 1, 0],
    ]  # fmt: skip
    for _ in range(2):
        for number, (pointers, alpha, beta) in enumerate(variants, 1):
            assert recipe.run(pointers, alpha, beta, 0)
            assert recipe.runs.pop()[0] == number
    assert recipe.run(APART, -3, 0, 0) and recipe.runs.pop()[0] == 2
    assert len(recipe.prepared) == len(variants)


def test_new_tuned_values_make_a_new_tape(recipe):
    recipe.run(APART, 1, 0, 0)
    recipe.state.generation = 1
    recipe.run(APART, 1, 0, 0)
    assert [tape for tape, *_ in recipe.runs] == [1, 2]
    recipe.state.generation = 0
    recipe.run(APART, 1, 0, 0)
    assert recipe.runs[-1][0] == 1


def test_no_work_is_work_done(recipe):
    assert recipe.run(APART, 0, 1, 0) and recipe.run(APART, 0, 1, 0)
    assert not recipe.runs


@pytest.mark.parametrize(
    "change",
    [
        {"pointers": [4096, 8192, 8196]}, {"pointers": [4096, 4100, 4096]}, {"pointers": [4096, 8192, 7940]},
        {"pointers": [4097, 8192, 12288]}, {"pointers": [4096, 8192, 12290]}, {"alpha": 1j}, {"beta": True},
        {"alpha": "1"},
    ],
)  # fmt: skip
def test_what_needs_new_checks_runs_nothing(recipe, change):
    assert recipe.run(APART, 1, 0, 0)
    given = {"pointers": APART, "alpha": 1, "beta": 0, **change}
    assert not recipe.run(**given, stream=0)
    assert len(recipe.runs) == 1


def test_inputs_may_be_one_matrix(recipe):
    assert recipe.run([4096, 4096, 8192], 1, 0, 0)


def test_tapes_do_not_grow_for_ever(recipe, monkeypatch):
    monkeypatch.setattr(call_cache, "_VARIANTS", 3)
    for recipe.state.generation in range(9):
        recipe.run(APART, 1, 0, 0)
        assert 1 <= len(recipe.made._tapes) <= 3
