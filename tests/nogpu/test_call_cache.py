"""Cached calls: which launch list a repeated call takes, and when it must be checked anew."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from pyblasgpu.frontend.arrays.layouts import Layout, batches
from pyblasgpu.frontend.calls import call_cache
from pyblasgpu.frontend.calls.call_cache import CachedCall
from pyblasgpu.types import DTYPES

S = DTYPES["s"]
APART = [4096, 8192, 12288]


@pytest.fixture
def cached():
    """A call on three 8 x 8 matrices; what it prepares and runs is in its lists."""
    prepared, runs, state = [], [], SimpleNamespace(generation=0)

    def prepare(scalars, operands):
        prepared.append((scalars, [operand.pointer for operand in operands]))
        if scalars == (0, 1):
            return None
        number = len(prepared)

        def bound(alpha, beta):
            return lambda bases, stream: runs.append((number, bases, alpha, beta, stream))

        return SimpleNamespace(bound=bound)

    layouts = tuple(Layout(pointer, (8, 8), (8, 1), S, 0) for pointer in APART)
    made = CachedCall(layouts, next(batches(layouts)), prepare, lambda: state.generation)
    return SimpleNamespace(run=made.run, prepared=prepared, runs=runs, state=state, made=made)


def test_a_launch_list_is_prepared_once_and_run_with_what_is_given(cached):
    elsewhere = [pointer + 256 for pointer in APART]
    for pointers, alpha, beta, stream in (
        (APART, 1, 0, 7),
        (APART, 1, 0, 8),
        (elsewhere, 1, 0, 7),
        (elsewhere, 1.0, 0.0, 7),
        (APART, 1, 0, 7),
    ):
        assert cached.run(pointers, alpha, beta, stream)
        assert cached.runs.pop() == (1, pointers, alpha, beta, stream)
    assert len(cached.prepared) == 1


def test_a_batch_is_one_call_like_a_matrix():
    seen = []

    def prepare(scalars, operands):
        seen.extend(operands)

    stacks = (Layout(APART[0], (8, 8), (8, 1), S, 0), Layout(APART[1], (5, 8, 8), (64, 1, 8), S, 0))
    layouts = (*stacks, Layout(APART[2], (5, 8, 8), (64, 8, 1), S, 0))
    made = CachedCall(layouts, next(batches(layouts)), prepare, lambda: 0)
    assert made.run(APART, 1, 0, 0)
    assert [(x.pointer, x.batch, x.batch_stride) for x in seen] == [
        (APART[0], 5, 0),
        (APART[1], 5, 64),
        (APART[2], 5, 64),
    ]


def test_launch_lists_differ_by_what_they_depend_on(cached):
    shifted = [*APART[:2], APART[2] + 4]
    variants = [
        (APART, 1, 0),
        (APART, 2, 0),
        (APART, 0, 0),
        (APART, 1, 1),
        (APART, 1, 2.5),
        (shifted, 1, 0),
        [[pointer + 4 for pointer in APART], 1, 0],
    ]
    for _ in range(2):
        for number, (pointers, alpha, beta) in enumerate(variants, 1):
            assert cached.run(pointers, alpha, beta, 0)
            assert cached.runs.pop()[0] == number
    assert cached.run(APART, -3, 0, 0) and cached.runs.pop()[0] == 2
    assert len(cached.prepared) == len(variants)


def test_new_tuned_values_make_a_new_launch_list(cached):
    cached.run(APART, 1, 0, 0)
    cached.state.generation = 1
    cached.run(APART, 1, 0, 0)
    assert [number for number, *_ in cached.runs] == [1, 2]
    cached.state.generation = 0
    cached.run(APART, 1, 0, 0)
    assert cached.runs[-1][0] == 1


def test_no_work_is_work_done(cached):
    assert cached.run(APART, 0, 1, 0) and cached.run(APART, 0, 1, 0)
    assert not cached.runs


@pytest.mark.parametrize(
    "change",
    [
        {"pointers": [4096, 8192, 8196]},
        {"pointers": [4096, 4100, 4096]},
        {"pointers": [4096, 8192, 7940]},
        {"pointers": [4097, 8192, 12288]},
        {"pointers": [4096, 8192, 12290]},
        {"alpha": 1j},
        {"beta": True},
        {"alpha": "1"},
    ],
)
def test_what_needs_new_checks_runs_nothing(cached, change):
    assert cached.run(APART, 1, 0, 0)
    arguments = {"pointers": APART, "alpha": 1, "beta": 0, **change}
    assert not cached.run(**arguments, stream=0)
    assert len(cached.runs) == 1


def test_inputs_may_be_one_matrix(cached):
    assert cached.run([4096, 4096, 8192], 1, 0, 0)


def test_launch_lists_do_not_grow_for_ever(cached, monkeypatch):
    monkeypatch.setattr(call_cache, "MOST_VARIANTS", 3)
    for cached.state.generation in range(9):
        cached.run(APART, 1, 0, 0)
        assert 1 <= len(cached.made.variants) <= 3


def test_a_checked_call_runs_whatever_its_numbers(cached):
    """The first call of a kind: complex numbers are passed on, and the next call finds what was prepared."""
    cached.made.run_checked(APART, 2j, 0, 7)
    assert cached.run(APART, 3, 0, 8)
    assert cached.runs == [(1, APART, 2j, 0, 7), (1, APART, 3, 0, 8)]
    cached.made.run_checked(APART, 0, 1, 0)  # no work
    assert len(cached.runs) == 2
