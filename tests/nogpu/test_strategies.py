"""Strategies on recorded and on made-up sweeps, and the score against what was measured."""

from __future__ import annotations

import math
from functools import partial

import pytest
from recorded import EXHAUSTIVE, QUICK
from synthetic_sweep import synthetic

from benchmarks import strategies as compared
from benchmarks import study
from pyblasgpu.gpu.device import known
from pyblasgpu.tuning.prune import Guidelines
from pyblasgpu.tuning.results import Record
from pyblasgpu.tuning.search_problem import Axes, Measurement, SearchProblem
from pyblasgpu.tuning.strategies import LIKELY, OTHER_FAMILY, ending_with_variants, in_turns, score_first
from pyblasgpu.tuning.sweep_file import read_sweep
from tuning.papers.replay import Recording, recordings, replay
from tuning.papers.strategies import ALL_STRATEGIES, random, three_step

H200 = known("h200")
PROBLEMS = (("small", (1, 1)), ("large", (9, 9)))


@pytest.fixture(scope="module")
def recorded():
    return compared.load([QUICK])


@pytest.fixture(scope="module")
def exhaustive():
    return compared.load([EXHAUSTIVE])


def made_up(count=40, score=lambda config, size, extents: 1.0):
    """Integers for candidates; the larger the faster, at either problem."""
    seconds = {Measurement(c, *problem): 1.0 / (c + 1) for c in range(count) for problem in PROBLEMS}

    def scores(configs, *problem):
        return [score(config, *problem) for config in configs]

    return Recording(SearchProblem(tuple(range(count)), PROBLEMS, scores), seconds)


# ------------------------------------------------------------------------------------------- on made-up times


def test_problems_take_turns():
    """However little the best at one problem promises by comparison."""

    def scores(configs, size, extents):
        return [0.9 - config / 100 if size == "large" else (config % 7) / 100 for config in configs]

    ordered = in_turns(SearchProblem(tuple(range(20)), PROBLEMS, scores))
    assert ordered[:4] == [6, 0, 13, 1] and sorted(ordered) == list(range(20))


@pytest.mark.parametrize("strategy", ALL_STRATEGIES.values(), ids=ALL_STRATEGIES)
def test_a_strategy_asks_once_and_only_for_what_there_is(strategy):
    recording, requested = made_up(), []
    steps = strategy(recording.search)
    batch = next(steps)
    with pytest.raises(StopIteration):
        while True:
            requested += batch
            batch = steps.send({measurement: recording.seconds[measurement] for measurement in batch})
    assert len(requested) == len(set(requested)) and set(requested) <= set(recording.seconds)


@pytest.mark.parametrize("strategy", ALL_STRATEGIES.values(), ids=ALL_STRATEGIES)
def test_a_strategy_survives_failures_and_an_empty_answer(strategy):
    recording = made_up()
    failing = recording._replace(
        seconds={t: s for t, s in recording.seconds.items() if t.config % 3 and t.size == "large"}
    )
    assert replay(failing, strategy).used > 0
    assert replay(recording._replace(seconds={Measurement(0, *PROBLEMS[0]): 1.0}), strategy).total == 1


def test_variants_of_the_fastest_come_last():
    """Variants are tried where a parameter has some, without those that were timed."""
    recording, batches = made_up(10), []
    ask = [
        [Measurement(c, *PROBLEMS[0]) for c in (3, 7, 5)],
        [Measurement(c, *PROBLEMS[1]) for c in (8, -8, 2)],
    ]

    def strategy(search):
        for batch in ask:  # noqa: UP028 (a list takes no answers)
            yield batch

    steps = ending_with_variants(strategy, lambda config: None if config == 5 else -config)(recording.search)
    batch = next(steps)
    with pytest.raises(StopIteration):
        while True:
            batches.append(batch)
            batch = steps.send({measurement: 1.0 / abs(measurement.config) for measurement in batch})
    assert batches[:2] == ask
    assert batches[2] == [Measurement(-7, *PROBLEMS[0])]  # 5 has none, both of 8 are known


@pytest.mark.parametrize("name", ["line", "three-step", "score-first"])
def test_a_perfect_score_is_used_at_once(name):
    recording = made_up(2000, lambda config, size, extents: config + 1.0)
    outcome = replay(recording, ALL_STRATEGIES[name])
    assert outcome.worst == 0
    assert outcome.share < 0.3 or name == "line"  # without axes every candidate is on the line


def test_exhaustive_is_exhaustive():
    outcome = replay(made_up(), ALL_STRATEGIES["exhaustive"])
    assert (outcome.used, outcome.total, outcome.worst, outcome.share) == (80, 80, 0.0, 1.0)


def test_random_goes_by_its_seed():
    recording = made_up(500)
    first, again, other = (next(random(recording.search, most=5, seed=seed)) for seed in (1, 1, 2))
    assert first == again != other and len({measurement.config for measurement in first}) == 5


def test_the_line_search_moves_along_one_group_at_a_time():
    """From the best score on: a row, a column, and in the second round the new row, which brings nothing."""

    class Point(tuple):
        i = property(lambda self: self[0])
        j = property(lambda self: self[1])

    points = tuple(Point((i, j)) for i in range(10) for j in range(10))
    problem = ("any", (1,))
    seconds = {Measurement(p, *problem): 1.0 + (p.i - 7) ** 2 + (p.j - 3) ** 2 for p in points}
    axes = Axes(tile=(("i",), ("j",)))
    search = SearchProblem(points, (problem,), lambda points, *_: [-p.i - p.j for p in points], axes)
    outcome = replay(Recording(search, seconds), ALL_STRATEGIES["line"])
    assert outcome.worst == 0 and outcome.used == 10 + 9 + 9


def test_three_steps_keep_fifty_of_many():
    recording = made_up(2000)
    batches = three_step(recording.search, keep=50)
    first = next(batches)
    assert len(first) == 4000  # there are but two sizes
    with pytest.raises(StopIteration):  # and the third step has nothing left to ask
        batches.send({measurement: recording.seconds[measurement] for measurement in first})


def test_what_a_tile_did_at_one_problem_counts_at_the_others():
    """The score prefers the even on one problem, the odd on the other; in truth the larger is the faster."""
    recording = made_up(
        40, lambda config, size, extents: 1.0 if (config % 2 == 0) == (size == "small") else 0.9
    )
    steps = score_first(recording.search, tiles=5, share=1.0)
    first = next(steps)
    assert [t.config for t in first if t.size == "large"] == [1, 3, 5, 7, 9]
    second = steps.send({measurement: recording.seconds[measurement] for measurement in first})
    assert [t.config for t in second if t.size == "large"] == [8, 6, 4, 11, 13]


# ------------------------------------------------------------------------------------- on the recorded sweep


@pytest.mark.parametrize(("stem", "spread"), [("gemm_simt", 0.14), ("gemm_mma", 0.21)])
def test_the_score_ranks_what_was_measured(recorded, stem, spread):
    """Bounds of the rank correlation and of what the best 16 by score lose."""
    rows = [
        compared.ranking(recording, problem)
        for key, recording in recorded.items()
        if key[0] == stem
        for problem in recording.search.problems
    ]
    losses = [row.losses[compared.TOPS.index(16)] for row in rows]
    assert sum(row.correlation for row in rows) / len(rows) > 0.83
    assert max(losses) < 0.1 and sum(losses) / len(losses) < 0.005
    assert sum(row.spread for row in rows) / len(rows) < spread


@pytest.mark.parametrize("dtype", "sdcz")
@pytest.mark.parametrize(
    ("name", "mean", "worst"), [("score-first", 0.013, 0.04), ("three-step", 0.023, 0.105)]
)
def test_a_tenth_of_an_exhaustive_search_finds_what_it_found(exhaustive, name, mean, worst, dtype):
    """Means are over all 8 problems; the worst problem is further behind."""
    recording = exhaustive["gemm_simt", dtype, "nn"]
    assert len(recording.search.candidates) > 200
    outcome = replay(recording, ALL_STRATEGIES[name])
    assert outcome.share <= 0.1 and outcome.mean <= mean and outcome.worst <= worst


@pytest.mark.parametrize("sweep", ["recorded", "exhaustive"])
def test_what_is_likely_holds_every_winner(sweep, request):
    """At a third fewer timings, and those that are left out are the slow ones."""
    outcomes = [replay(r, ALL_STRATEGIES["likely"]) for r in request.getfixturevalue(sweep).values()]
    assert max(outcome.worst for outcome in outcomes) == 0
    assert sum(outcome.used for outcome in outcomes) < 0.75 * sum(outcome.total for outcome in outcomes)


def test_where_all_that_is_likely_fails_the_rest_is_tried():
    recording = made_up(score=lambda config, size, extents: 1.0 if config > 30 else 0.1)
    steps = ALL_STRATEGIES["likely"](recording.search)
    batch = next(steps)
    assert {measurement.config for measurement in batch} == {*range(31, 40)}
    rest = steps.send({measurement: 1.0 for measurement in batch if measurement.size == "small"})
    assert {measurement.config for measurement in rest} == {*range(31)} and {
        measurement.size for measurement in rest
    } == {"large"}


def test_what_another_family_does_better_is_not_tried():
    recording = made_up(score=lambda config, size, extents: config / 40)
    small, large = PROBLEMS
    steps = ALL_STRATEGIES["likely"](
        recording.search._replace(other_families_best={small: 1 / OTHER_FAMILY, large: 0.5 / OTHER_FAMILY})
    )
    batch, least = next(steps), 40
    for part in LIKELY:
        most, least = least, math.ceil(part * 39)
        requested = {(measurement.config, measurement.size) for measurement in batch}
        assert requested == {(config, "large") for config in range(least, most)}
        if least > 20:
            batch = steps.send(dict.fromkeys(batch, 1.0))
    with pytest.raises(StopIteration):
        steps.send(dict.fromkeys(batch, 1.0))


@pytest.mark.parametrize(
    ("name", "worst", "share"), [("score-first", 0.07, 0.9), ("three-step", 0.22, 0.8), ("line", 0.08, 0.8)]
)
def test_strategies_on_short_lists(recorded, name, worst, share):
    """A tenth of the quick space's 10 to 72 candidates is no search."""
    outcomes = [replay(r, ALL_STRATEGIES[name]) for r in recorded.values() if len(r.search.candidates) < 100]
    assert max(outcome.worst for outcome in outcomes) <= worst
    assert sum(o.used for o in outcomes) / sum(o.total for o in outcomes) <= share


@pytest.mark.parametrize("stem", ["gemm_simt", "gemm_mma", "trmm_leaf"])
def test_a_run_that_ends_early_has_had_the_likely_winners(recorded, stem):
    searches = [recording for key, recording in recorded.items() if key[0] == stem]

    def loss(order):
        losses = [compared.cut_short(each, order(each.search), 0.5) for each in searches]
        return sum(map(sum, losses)) / sum(map(len, losses))

    assert loss(in_turns) < 0.025 and 3 * loss(in_turns) < loss(compared.by_best_score)


def test_eight_timings_by_score_beat_eight_at_random(recorded):
    def losses(strategy):
        outcomes = [replay(recording, strategy) for recording in recorded.values()]
        return sum(outcome.mean for outcome in outcomes) / len(outcomes)

    by_score = losses(partial(score_first, tiles=8, variants=0, share=0.0, rounds=1))
    assert by_score < 0.005 and 15 * by_score < losses(partial(random, most=8))


def test_of_repeated_timings_the_shortest_counts_and_failures_do_not():
    good = next(r for r in read_sweep(QUICK) if r.stem == "gemm_simt" and r.outcome == "ok")
    slower = Record(**{**vars(good), "seconds": 2 * good.seconds})
    failed = Record(**{**vars(good), "seconds": 0.0, "outcome": "wrong"})
    broken = Record(**{**vars(good), "parameters": {**good.parameters, "BLK_M": 7}})
    (recording,) = recordings([slower, good, failed, broken], H200).values()
    assert list(recording.seconds.values()) == [good.seconds]
    assert recording.search.problems == ((good.size, good.extents),)


def test_times_with_warm_and_with_cold_caches_are_not_mixed():
    cold = next(r for r in read_sweep(QUICK) if r.stem == "gemm_simt" and r.outcome == "ok")
    warm = Record(**{**vars(cold), "seconds": cold.seconds / 2, "caches": "warm"})
    (recording,) = recordings([warm, cold], H200).values()
    assert list(recording.seconds.values()) == [cold.seconds]


def test_the_comparison_prints_its_tables(capsys):
    assert study.run(compared.STUDY, ["--sweeps", str(QUICK)]) == 0
    text = capsys.readouterr().out
    assert "rank correlation" in text and "score-first" in text and "three-step, all" in text
    assert "large searches" in text


def test_sweeps_of_several_devices_are_refused(tmp_path):
    with pytest.raises(ValueError, match="no device"):
        (tmp_path / "empty.jsonl").touch()
        compared.load([tmp_path / "empty.jsonl"])


# ---------------------------------------------------------------------------------------- on a large sweep


@pytest.mark.slow
@pytest.mark.parametrize(("dtype", "seed", "reuse", "likely"), [("d", 2, 1.0, 0.95), ("z", 0, 1.5, 0.97)])
def test_a_tenth_of_the_timings_is_enough(dtype, seed, reuse, likely):
    """More than a thousand candidates of a model (see `synthetic_sweep`), on average over the problems."""
    recording = synthetic("gemm_simt", dtype, "nn", H200, seed, Guidelines(reuse=reuse, score=likely))
    assert len(recording.search.candidates) > 1000
    for name, most in (("score-first", 0.01), ("three-step", 0.055)):
        outcome = replay(recording, ALL_STRATEGIES[name])
        assert outcome.share <= 0.1 and outcome.mean <= most
    by_chance = replay(recording, ALL_STRATEGIES["random"])
    assert by_chance.mean > 0.05
