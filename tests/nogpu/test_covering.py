"""The covering sets of combinations that tests run."""

from __future__ import annotations

from itertools import combinations, product

import pytest
from covering import by_precision, by_turns, of_precision, pairs


@pytest.mark.parametrize(
    "counts", [(1, 1), (2, 3), (4, 2, 4), (9, 4, 2), (4, 9, 2), (2, 2, 2, 3, 3)], ids=str
)
def test_any_two_values_meet(counts):
    parameters = [[f"{number}{value}" for value in range(count)] for number, count in enumerate(counts)]
    chosen = pairs(*parameters)
    assert len(set(chosen)) == len(chosen) and set(chosen) <= set(product(*parameters))
    for first, second in combinations(range(len(counts)), 2):
        met = {(each[first], each[second]) for each in chosen}
        assert met == set(product(parameters[first], parameters[second]))


@pytest.mark.parametrize(("counts", "most"), [((4, 2, 4), 16), ((9, 4, 2), 36), ((2, 2, 2), 4)], ids=str)
def test_combinations_are_few(counts, most):
    assert len(pairs(*map(range, counts))) <= most


@pytest.mark.parametrize("counts", [(3, 3, 3), (36, 8, 3), (13, 8, 4)], ids=str)
def test_any_two_values_meet_by_turns(counts):
    chosen = by_turns(*(iter(range(count)) for count in counts))
    assert len(chosen) == counts[0] * counts[1]
    for first, second in combinations(range(3), 2):
        assert {(each[first], each[second]) for each in chosen} == set(
            product(range(counts[first]), range(counts[second]))
        )


@pytest.mark.parametrize("count", [0, 1, 2, 7, 40])
@pytest.mark.parametrize("single, double", ["sd", "cz"])
def test_each_case_is_of_one_precision(count, single, double):
    halves = [of_precision(letter, range(count)) for letter in (single, double)]
    assert sorted(halves[0] + halves[1]) == list(range(count)) and halves[0] == sorted(halves[0])
    assert len(halves[0]) - len(halves[1]) in (0, 1)


def test_all_combinations_are_real_and_complex():
    chosen = by_precision("ab", range(3))
    for letters in ("sd", "cz"):
        assert sorted(case for letter, *case in chosen if letter in letters) == [
            [x, y] for x in "ab" for y in range(3)
        ]
        assert {letter for letter, *_ in chosen} >= set(letters)
