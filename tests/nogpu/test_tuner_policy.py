"""The values of the policy in a tuning run: strategies, and the whole stage on a device that NumPy plays."""

from __future__ import annotations

import os
import re
from collections import Counter
from functools import partial
from math import inf
from pathlib import Path

import fake_kernels
import pytest
from fake_routines import elements
from tuner_stage import H200, Stage, on, tune

from pyblasgpu import cli
from pyblasgpu.database import parse, read
from pyblasgpu.database.policy import MAX_VALUE, Policy, Trial, is_by_dtype, reference, trials
from pyblasgpu.dispatch import choose, tuned_files
from pyblasgpu.errors import PyblasgpuError
from pyblasgpu.frontend.calls.call import routine
from pyblasgpu.gpu.device import known
from pyblasgpu.tuning import policy_search, report, wisdom, worker_bench
from pyblasgpu.tuning.policy_search import wanted
from pyblasgpu.tuning.policy_strategies import decision, size_of, width_at
from pyblasgpu.tuning.session import STAGES, stages_of
from pyblasgpu.tuning.worker import Worker
from pyblasgpu.types import DTYPES

pytestmark = pytest.mark.usefixtures("home")

LETTERS = "".join(DTYPES)

# ------------------------------------------------------------------------------------------------ strategies


def decided(trial, present, seconds):
    """What a strategy finds where calls take ``seconds(call)``, None where they fail; and what it timed."""
    steps, asked, times = decision(trial, trial.dtypes, present), [], None
    try:
        while True:
            batch = next(steps) if times is None else steps.send(times)
            asked += batch
            known_times = {call: seconds(call) for call in batch}
            times = {call: time for call, time in known_times.items() if time is not None}
    except StopIteration as ended:
        return ended.value, asked


ORDERS = tuple((order, 1) for order in (16, 64, 256, 1024))
#: Whether a call of an order goes the one way with a bound.
TAKES = {
    "least": lambda order, bound: order >= bound,
    "most": lambda order, bound: order <= bound,
    "below": lambda order, bound: order < bound,
    "beyond": lambda order, bound: order > bound,
}


@pytest.mark.parametrize("by", TAKES)
@pytest.mark.parametrize("truth", [0, 64, 256, MAX_VALUE])
@pytest.mark.parametrize("present", [0, 64, 100, 1 << 20])
def test_a_bound_is_where_one_way_becomes_faster(by, truth, present):
    """Every call goes the way that is faster, and the present bound is kept where it does as well."""
    trial, takes = Trial(by, "trsm", ORDERS, dtypes="d"), TAKES[by]

    def seconds(call):
        order = call.extents[0]
        return 1.0 if takes(order, call.value) == takes(order, truth) else 1.5

    found, asked = decided(trial, present, seconds)
    assert all(takes(order, found) == takes(order, truth) for order, _ in ORDERS)
    if all(takes(order, present) == takes(order, truth) for order, _ in ORDERS):
        assert found == present
    assert len(asked) == 2 * len(ORDERS), "a call goes one way or the other"


def test_a_bound_is_by_all_calls_together():
    """One call that is slower beyond it, by little, moves nothing."""
    trial = Trial("least", "trsm", ORDERS, dtypes="d")
    slow = {(64, 1): 1.05, (256, 1): 0.5, (1024, 1): 0.5, (16, 1): 2.0}
    found, _ = decided(trial, 1 << 20, lambda call: slow[call.extents] if call.value == 0 else 1.0)
    assert found == 256
    noise = {at: 0.995 for at, _ in zip(ORDERS, ORDERS, strict=True)}
    assert decided(trial, 300, lambda call: noise[call.extents] if call.value == 0 else 1.0)[0] == 300


@pytest.mark.parametrize("failing", [0, MAX_VALUE])
def test_a_way_that_fails_is_not_taken(failing):
    """Where both ways of a call fail, the others decide; where all do, nothing is found."""
    trial = Trial("least", "trsm", ORDERS, dtypes="d")
    found, _ = decided(trial, 100, lambda call: None if call.value == failing else 1.0)
    assert TAKES["least"](16, found) == TAKES["least"](1024, found) == (failing == MAX_VALUE)
    found, _ = decided(
        trial, 100, lambda call: None if call.extents[0] < 100 else 1.0 + (call.value == MAX_VALUE)
    )
    assert found in (100, 256)
    assert decided(trial, 100, lambda call: None)[0] is None


@pytest.mark.parametrize(("by", "values", "best"), [("best", (0.5, 1.0, 2.0), 14e-6), ("one", (1, 2, 4), 4)])
def test_the_best_of_several_values(by, values, best):
    present = 7e-6 if by == "best" else 2
    trial = Trial(by, "gemm", ((8, 8, 8), (9, 9, 9)), values=values)
    found, asked = decided(trial, present, lambda call: 1 + abs(call.value - best) / best)
    assert found == pytest.approx(best)
    assert len(asked) == len(values) * 4, "two calls in two dtypes with each value"
    assert decided(trial, present, lambda call: 1.0)[0] == present
    assert decided(trial, present, lambda call: None if call.value == found else 1.0)[0] == present


WIDE = Trial("widths", "getrf", ((512,), (1024,), (2048,), (4096,)), values=(0, 128, 256), dtypes="sd")


@pytest.mark.parametrize(
    ("best", "steps"),
    [
        ((0, 128, 128, 256), {"128": 1024, "256": 4096}),
        ((128, 128, 256, 256), {"128": 512, "256": 2048}),
        ((0, 0, 0, 0), {"256": MAX_VALUE}),
        ((0, 0, 256, 256), {"256": 2048}),
    ],
)
def test_widths_grow_with_the_order(best, steps):
    wanted_at = dict(zip(WIDE.points, best, strict=True))
    found, asked = decided(WIDE, {"64": 1}, lambda call: 1 + (call.value != wanted_at[call.extents]))
    assert found == steps and len(asked) == 3 * 4 * 2
    assert tuple(width_at(found, order) for (order,) in WIDE.points) == best
    # the present steps are kept where they do as well, though they begin elsewhere
    same = {width: least - 1 for width, least in steps.items()}
    assert decided(WIDE, same, lambda call: 1 + (call.value != wanted_at[call.extents]))[0] == same


# ---------------------------------------------------------------------------------------------- descriptions


@pytest.mark.parametrize("name", trials())
def test_a_trial_can_decide_its_value(name):
    """Its calls are on both sides of the reference's value, or that is among its candidates."""
    trial, value = trials()[name], getattr(reference(), name)
    assert set(trial.dtypes) <= set(LETTERS) and trial.points
    if trial.by in ("best", "one", "widths"):
        assert len(set(trial.values)) > 1
        values = {"widths": lambda: {*map(int, value)}, "best": lambda: {1.0}}
        there = values.get(trial.by, lambda: {*value.values()} if is_by_dtype(name) else {value})()
        assert there <= set(trial.values)
        return
    bounds = [value.get(letter, MAX_VALUE) for letter in trial.dtypes] if is_by_dtype(name) else [value]
    sizes = [size_of(trial, at) for at in trial.points]
    assert len(set(sizes)) == len(sizes) > 1 and sizes == sorted(sizes)
    assert any(sizes[0] <= bound <= sizes[-1] for bound in bounds)


def test_what_is_measured_is_what_matters():
    """Split-K, ranges of fused kernels, widths, tensor cores, crossovers to the CPU, small batches."""
    expected = {
        *("launch_seconds", "sum_seconds", "fused_trsm_min_order", "fused_trmm_max_order", "trsv_min_order"),
        *("getrf_lookahead", "potrf_lookahead", "trsm_stop", "trmm_stop", "fp16_min_work", "int8_fma_rate"),
        *("tensor_trsm_min_order", "tensor_trmm_min_order", "host_min_order", "getrs_small_max_rhs"),
        "cholesky_panel_min_rows",
    }
    assert expected <= set(trials())
    for other in (other for trial in trials().values() for other, _ in trial.others):
        assert other in Policy.__dataclass_fields__


def test_the_guide_lists_what_is_measured():
    page = (Path(__file__).parents[2] / "docs" / "tuning.md").read_text()
    listed = re.findall(r"`(\w+)`", "\n".join(re.findall(r"^\| (`.*?) \|", page, re.MULTILINE)))
    assert {name for name in listed if name in Policy.__dataclass_fields__} == set(trials())


def test_a_narrowed_run_measures_what_it_tunes():
    assert set(wanted({"gemm", "trmm", "trsm"}, LETTERS)) == set(trials())
    only = wanted({"gemm"}, LETTERS)
    assert only and {trial.routine for trial in only.values()} == {"gemm"}
    some = wanted({"gemm", "trmm", "trsm"}, "d")
    assert some["trsm_stop"].dtypes == "d" and "launch_seconds" not in some and "fp16_min_work" not in some


def test_a_quick_run_measures_none():
    assert "policy" in stages_of("normal") and stages_of("exhaustive") == STAGES
    assert "policy" not in stages_of("quick")


# ----------------------------------------------------------------------------------------------- the stage

#: Values that are fastest, and small calls by which they are found.
TRUTH = {
    "sum_seconds": (8e-6, ((8, 8, 64), (8, 16, 64))),
    "trsv_min_order": (16, ((8, 1), (16, 1), (32, 1))),
    "trsm_stop": ({"s": 256, "d": 128}, ((8, 8),)),
    "getrs_small_max_rhs": (4, ((4, 1, 3), (4, 4, 3), (4, 8, 3))),
    "cholesky_panel_min_rows": (64, ((32, 8), (64, 8), (128, 8))),
    "getrf_lookahead": ({"128": 16, "256": 32}, ((8, 8), (16, 16), (32, 32))),
    "host_min_order": ({"s": 96, "d": 96}, ((64,) * 3, (96,) * 3)),
}


class PolicyStage(Stage):
    """Calls that take the longer, the farther a value of their routine is from what is true."""

    def __init__(self, monkeypatch):
        super().__init__(monkeypatch)
        self.monkeypatch, self.timed, self.slower = monkeypatch, Counter(), lambda policy: 1.0
        self.trials = {
            name: trials()[name]._replace(
                points=points, dtypes=trials()[name].dtypes.replace("c", "").replace("z", "")
            )
            for name, (_, points) in TRUTH.items()
        }
        monkeypatch.setattr(tuned_files, "policy_changes", [])  # the tests' own
        monkeypatch.setattr(policy_search, "trials", lambda: self.trials)
        monkeypatch.setattr(worker_bench, "host_seconds", partial(self.seconds, "host"))
        rotation = worker_bench.Workload.rotation

        def remember(load, routine, name, dtype, layout, extents):
            self.called = name, dtype, extents
            return rotation(load, routine, name, dtype, layout, extents)

        monkeypatch.setattr(worker_bench.Workload, "rotation", remember)

    def time(self, work, best=inf):
        work.restore(1)
        work.calls[-1]()
        return self.seconds(*self.called)

    def seconds(self, routine, dtype, extents):
        policy, product = tuned_files.policy_of(H200), 1e-3
        self.timed[routine] += 1
        for name, trial in self.trials.items():
            if routine == ("host" if trial.on_host else trial.routine):
                now, true = (self.side(name, trial, each, dtype.letter, extents) for each in (policy, None))
                product *= 1.0 if now == true else 1.5
        return product * self.slower(policy)

    @staticmethod
    def side(name, trial, policy, letter, extents):
        """Which way a call goes by a policy, or in truth."""
        value = TRUTH[name][0] if policy is None else getattr(policy, name)
        value = value[letter] if is_by_dtype(name) else value
        if trial.by == "widths":
            return width_at(value, extents[0])
        bound = TAKES.get(trial.by)
        return bound(size_of(trial, extents), value) if bound else round(value * 1e12)


@pytest.fixture
def policy_stage(stage, monkeypatch):
    yield PolicyStage(monkeypatch)
    choose.reload()


def run(stage, **options):
    options = {"dtypes": ("s", "d"), "stages": ("policy",), **options}
    return tune(options.pop("make", None) or on(stage), ("gemm", "trmm", "trsm"), **options)


def outcomes(made):
    return Counter(record.outcome for record in made.log.records)


def test_the_stage_measures_writes_and_explains(policy_stage, tmp_path):
    made, document = run(policy_stage)
    expected = {name: value for name, (value, _) in TRUTH.items()}
    assert document.policy == expected and not document.entries
    filed = read(tuned_files.user_file(H200.name), H200.name)
    assert filed.policy == document.policy
    assert set(outcomes(made)) == {"ok", "decided"} and made.untried == 0
    # calls decide by them, and say that they were measured
    own = tuned_files.policy_of(H200)
    assert own.trsm_stop == {**reference().trsm_stop, "s": 256, "d": 128} and own.sum_seconds == 8e-6
    assert tuned_files.policy_origin("trsv_min_order", H200).startswith("measured here, ")
    assert any("trsm_stop (d): 128, was 256" in line for line in made.watcher.messages)
    # what a kernel's report says of records is not disturbed
    assert report.rows(made.log.records) == []
    rows = report.as_json(made.log.records)["policy"]
    assert {"name": "trsv_min_order", "dtype": "s", "value": "16"} in rows
    page = report.write(made.log.records, tmp_path)[0].read_text()
    assert "trsm_stop of d: 128\n" in page


def test_wisdom_lists_exports_and_forgets_them(policy_stage, capsys):
    _, document = run(policy_stage)
    assert cli.main(["wisdom", "list"]) == 0
    assert "trsv_min_order" in capsys.readouterr().out
    assert parse(wisdom.export("h200").encode()).policy == document.policy
    file, left = tuned_files.user_file(H200.name), dict(document.policy)
    wisdom.forget("h200", dtypes=("d",))
    left |= {"trsm_stop": {"s": 256}, "host_min_order": {"s": 96}}
    assert read(file).policy == left
    wisdom.forget("h200", stems=("getrf", "gemm"))
    assert read(file).policy.keys() == left.keys() - {"getrf_lookahead", "sum_seconds", "host_min_order"}
    wisdom.forget("h200")
    assert not file.exists()


def test_a_run_that_is_resumed_times_nothing_twice(policy_stage):
    document = run(policy_stage)[1]
    before = sum(policy_stage.timed.values())
    tuned_files.user_file(H200.name).unlink()
    choose.reload()
    same = run(policy_stage, resume=True)[1]
    assert same.policy == document.policy
    confirmed = sum(2 * len(points) for _, points in TRUTH.values()) * 2
    assert sum(policy_stage.timed.values()) - before <= confirmed, "winners alone are timed again"


def test_a_second_run_keeps_what_the_first_found(policy_stage):
    run(policy_stage)
    made, document = run(policy_stage)
    assert document.policy == {name: value for name, (value, _) in TRUTH.items()}
    assert not [line for line in made.watcher.messages if ", was " in line]


def test_a_value_whose_results_are_wrong_is_not_taken(policy_stage):
    """Widths are verified on matrices that are wider."""
    plain = policy_stage.getrf

    def getrf(piv, info, a, stream):
        plain(piv, info, a, stream)
        if width_at(tuned_files.policy_of(H200).getrf_lookahead, a.rows) == 256:
            elements(a)[0, -1, 0] += 1

    policy_stage.getrf = getrf
    made, document = run(policy_stage)
    assert document.policy["getrf_lookahead"] == reference().getrf_lookahead
    wrong = [record for record in made.log.records if record.outcome == "wrong"]
    assert [record.stem for record in wrong] == ["getrf_lookahead"] and "residual" in wrong[0].detail
    assert document.policy["trsv_min_order"] == 16, "others are measured all the same"


def test_few_columns_are_verified_too(policy_stage):
    """The kernel of one column is none of those that serve many."""
    plain = policy_stage.trsm

    def trsm(alpha, t, b, stream, **flags):
        plain(alpha, t, b, stream, **flags)
        if tuned_files.policy_of(H200).trsv_min_order < t.rows and b.cols == 1:
            elements(b)[0, -1, 0] += 1

    policy_stage.trsm = trsm
    made, document = run(policy_stage)
    assert document.policy["trsv_min_order"] == reference().trsv_min_order
    assert {record.stem for record in made.log.records if record.outcome == "wrong"} == {"trsv_min_order"}


def test_a_value_that_wins_by_a_hiccup_is_not_taken(policy_stage):
    """Winners are timed again, next to the present value."""
    seen = Counter()

    def slower(policy):
        if policy.sum_seconds == reference().sum_seconds:
            return 1.0
        seen[policy.sum_seconds] += 1
        return 0.3 if seen[policy.sum_seconds] <= 4 and policy.sum_seconds < 4e-6 else 1.6

    policy_stage.slower = slower
    _, document = run(policy_stage)
    assert document.policy["sum_seconds"] == reference().sum_seconds


@pytest.mark.parametrize("mishap", ["error", "lost"])
def test_a_value_that_fails_is_a_record(policy_stage, mishap):
    plain = policy_stage.getrs

    def getrs(piv, lu, b, stream, **flags):
        if tuned_files.policy_of(H200).getrs_small_max_rhs >= b.cols == 4:
            policy_stage.memory.alive = mishap == "error"
            raise PyblasgpuError("refused")
        policy_stage.memory.alive = True
        plain(piv, lu, b, stream, **flags)

    def body():
        policy_stage.memory.alive = True
        return worker_bench.Bench(policy_stage.routine, 0)

    policy_stage.getrs = getrs
    made, document = run(policy_stage, make=body)
    failed = [record for record in made.log.records if record.outcome in ("error", "crash")]
    assert {(record.stem, record.size) for record in failed} == {("getrs_small_max_rhs", "4x4x3")}
    assert document.policy["getrs_small_max_rhs"] == 1 and document.policy["trsm_stop"]["d"] == 128
    # calls after it are timed all the same
    always = {"value": MAX_VALUE}
    assert any(r.outcome == "ok" and r.size == "4x8x3" and r.parameters == always for r in made.log.records)


def test_each_value_is_measured_with_those_before_it(policy_stage):
    policies = []

    def body():
        made = worker_bench.Bench(policy_stage.routine, 0)
        return lambda job: policies.append(dict(job.policy)) or made(job)

    run(policy_stage, make=body)
    first = next(i for i, policy in enumerate(policies) if "trsv_min_order" in policy)
    assert all(policy["sum_seconds"] == 8e-6 for policy in policies[first:] if policy)
    assert not any("trsv_min_order" in policy for policy in policies[:first])


def test_what_a_device_cannot_run_is_not_measured(policy_stage, monkeypatch):
    trial = trials()["fp16_min_work"]._replace(needs="gemm_wgmma", dtypes="s")
    policy_stage.trials = {"fp16_min_work": trial}
    monkeypatch.setattr("tuner_stage.H200", known("a100"))
    made, document = run(policy_stage)
    (record,) = made.log.records
    assert record.outcome == "absent" and "gemm_wgmma" in record.detail and not document


def test_without_time_nothing_is_decided(policy_stage):
    made, document = run(policy_stage, budget=1e-9)
    assert not document and made.untried == sum(
        len(trial.dtypes) if is_by_dtype(name) else 1 for name, trial in policy_stage.trials.items()
    )


def dies_at_widths(name):
    """A body whose process ends where LU has blocks of 256 columns."""

    def run(job):
        values = dict(job.policy)
        for number, _ in enumerate(job.problems):
            if values.get("getrf_lookahead") == {"256": 0}:
                os._exit(3)
            yield worker_bench.Timing(number, 1e-3 if values.get("getrf_lookahead") == {"128": 0} else 2e-3)

    return run


def test_a_worker_that_dies_is_replaced(policy_stage):
    """The process of its own; other values are compared."""
    policy_stage.trials = {"getrf_lookahead": policy_stage.trials["getrf_lookahead"]}
    with Worker(dies_at_widths, ("",)) as worker:
        made, document = run(policy_stage, worker=worker)
        assert worker.replaced > 1
    crashed = [record for record in made.log.records if record.outcome == "crash"]
    assert {record.parameters["value"] for record in crashed} == {256}
    assert document.policy["getrf_lookahead"] in ({"128": 8}, reference().getrf_lookahead)


# -------------------------------------------------------------------------------------------- launch lists


@pytest.fixture
def bench(stage, monkeypatch):
    """The body of the worker with the package's own launch lists, and a clock that runs a call once."""

    def once(work, best=inf):
        work.restore(1)
        work.calls[0]()
        return 1e-3

    fake_kernels.install(monkeypatch)
    monkeypatch.setattr(tuned_files, "policy_changes", [])
    monkeypatch.setattr(worker_bench, "Timer", lambda device, stream: once)
    yield worker_bench.Bench(routine, 0)
    choose.reload()


@pytest.mark.parametrize("name", sorted({trial.routine for trial in trials().values()}))
@pytest.mark.parametrize("letter", DTYPES)
def test_what_is_measured_runs_and_is_verified(bench, name, letter):
    """With each way that a value of the routine can be: results are right, and nothing else is written."""
    for entry, trial in trials().items():
        if trial.routine != name or trial.on_host or trial.needs:
            continue
        values = trial.values if trial.by == "widths" else (0, MAX_VALUE) if trial.by in TAKES else ()
        for value in values or [trial.values[0]]:
            forced = ({str(int(value)): 0} if value else {}) if trial.by == "widths" else value
            forced = dict.fromkeys(DTYPES, value) if is_by_dtype(entry) else forced
            extents = tuple(min(extent, 40) for extent in trial.points[0])
            verify = {"gemm": (), "trmm": ((40, 4),), "trsm": ((100, 1), (100, 8))}.get(name, ("odd",))
            layout = "nn" if name == "gemm" else "any"
            problems, policy = ((extents, inf),), ((entry, forced),)
            job = worker_bench.Job(name, letter, layout, trial.overrides, problems, verify, policy=policy)
            assert list(bench(job)) == [worker_bench.Timing(0, 1e-3)], (entry, value)
