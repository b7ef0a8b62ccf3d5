"""The benchmark of the choice between the tuned sizes, but for the device: comparison, tables."""

from __future__ import annotations

import json
import sys
from types import SimpleNamespace

import fake_device
import numpy as np
import pytest
from rich.console import Console

from benchmarks import alternatives, choice, kernels, study
from pyblasgpu.bench import command as bench_command
from pyblasgpu.bench import progress
from pyblasgpu.database import FAMILIES
from pyblasgpu.dispatch.choose import select, tuned_configs
from pyblasgpu.dispatch.overrides import KernelChoice
from pyblasgpu.errors import PyblasgpuError
from pyblasgpu.gpu.build.compile import Resources
from pyblasgpu.gpu.device import known, stand_ins
from pyblasgpu.model.score import score
from pyblasgpu.testing.problems import Arrays, Problem
from pyblasgpu.tuning import arenas
from pyblasgpu.tuning.prune import best_few, candidates
from pyblasgpu.types import DTYPES

H200, FERMI = known("h200"), known("fermi")
FINE, SPILLING = Resources(64, 0, 0, 0, 0), Resources(255, 0, 8, 8, 0)
SKINNY, SQUARE = (3000, 24, 3000), (1536, 1536, 1536)


def product(shape, letter="s", variant="NN"):
    return Problem.product(DTYPES[letter], variant, shape)


@pytest.fixture(scope="module")
def space():
    """A few candidates that no file has."""
    winners = tuned_configs("gemm", DTYPES["s"], "nn", H200)
    return [c for c in candidates("gemm_simt", "s", "nn", H200).left if c not in winners]


@pytest.fixture
def case(space, home):
    return alternatives.case_of(product(SKINNY), space, 3, (), H200)


# ------------------------------------------------------------------------------------------ the alternatives


def test_the_score_decides_at_the_extents_asked_for():
    """What a run of the tuner would time there, best first, and of no block of C more than a few."""
    there = candidates("gemm_simt", "s", "nn", FERMI, "normal", problems=[SKINNY]).left
    usual = candidates("gemm_simt", "s", "nn", FERMI, "normal").left

    def best(configs):
        return max(score("gemm_simt", config, SKINNY, FERMI) for config in configs)

    assert len(there) < len(usual) and best(there) >= best(usual)
    few = best_few(there, SKINNY, FERMI, most=6, alike=2)
    points = [score("gemm_simt", config, SKINNY, FERMI) for config in few]
    blocks = [(config.BLK_M, config.BLK_N) for config in few]
    assert len(few) == 6 and points == sorted(points, reverse=True) and points[0] == best(there)
    assert all(blocks.count(block) <= 2 for block in blocks)


def test_spaces_are_of_the_products_dtypes_and_layouts():
    problems = [product(SKINNY), product(SQUARE), product(SQUARE, "d", "TN")]
    spaces = alternatives.spaces(problems, FERMI)
    assert set(spaces) == {("s", "nn"), ("d", "tn")}
    assert (
        spaces["s", "nn"]
        == candidates("gemm_simt", "s", "nn", FERMI, "normal", problems=[SKINNY, SQUARE]).left
    )
    assert all((c.dtype, c.trans_a, c.trans_b) == ("d", True, False) for c in spaces["d", "tn"])


def test_alternatives_are_all_winners_and_the_best_of_the_space(space, home):
    for letter in "sd":
        case = alternatives.case_of(product(SQUARE, letter), space if letter == "s" else (), 3, (), H200)
        assert case.chosen == select("gemm", DTYPES[letter], "nn", (*SQUARE, 1), H200)
        runs = [(run.config, run.splits) for run in (case.chosen, *case.alternatives)]
        assert len(set(runs)) == len(runs)
        winners = tuned_configs("gemm", DTYPES[letter], "nn", H200)
        assert {config.STEM for config in winners} == {"gemm_simt" if letter == "s" else "gemm_mma"}
        assert {config for config, _ in runs} >= set(winners)
        others = dict.fromkeys(run.config for run in case.alternatives if run.config not in winners)
        assert list(others) == (best_few(space, SQUARE, H200, 3, alternatives.ALIKE) if letter == "s" else [])
        assert all(run.origin == alternatives.SPACE for run in case.alternatives if run.config in others)


def test_alternatives_are_what_any_family_named_would_run():
    winners = tuned_configs("gemm", DTYPES["s"], "nn", H200)
    assert all(isinstance(config, FAMILIES["gemm_simt"].config_class) for config in winners)
    assert tuned_configs("gemm_simt", DTYPES["s"], "nn", H200) == winners


def test_where_k_is_cut_alternatives_are_too(space, home, monkeypatch):
    config = space[0]
    monkeypatch.setattr(alternatives, "choice_of", lambda *_: KernelChoice(config, "a file", 6))
    case = alternatives.case_of(product(SKINNY), space, 2, (4,), H200)
    per_config = {}
    for alternative in case.alternatives:
        per_config.setdefault(alternative.config, []).append(alternative.splits)
    own = per_config.pop(config)
    assert own == [1, 4] and all(counts == [1, 6, 4] for counts in per_config.values())


def test_what_spills_is_dropped_but_not_what_was_tuned(monkeypatch, case, capsys):
    built = []

    def compiled(configs, device, what):
        built.extend(configs)
        return dict.fromkeys(configs, SPILLING)

    monkeypatch.setattr(alternatives, "compiled", compiled)
    (left,) = alternatives.compile_kernels([case], H200)
    assert left.alternatives == tuple(
        alternative for alternative in case.alternatives if alternative.origin != alternatives.SPACE
    )
    assert 0 < len(left.alternatives) < len(case.alternatives) and left.chosen == case.chosen
    output = capsys.readouterr().err
    assert f"{len(built)} kernels, 1 products, {len(case.alternatives)} alternatives" in output
    assert f"{len(case.alternatives) - len(left.alternatives)} alternatives are dropped" in output
    monkeypatch.setattr(alternatives, "compiled", lambda configs, *_: dict.fromkeys(configs, FINE))
    assert alternatives.compile_kernels([case], H200) == [case]


def test_a_winner_that_does_not_compile_is_named(monkeypatch, case):
    monkeypatch.setattr(
        alternatives, "compiled", lambda configs, *_: dict.fromkeys(configs, "line 1: nonsense")
    )
    with pytest.raises(PyblasgpuError, match=r"GemmSimt.*does not compile: line 1: nonsense"):
        alternatives.compile_kernels([case], H200)


# --------------------------------------------------------------------------------------------- measurement


class Stand:
    """Readings of each run by its place, the first of them possibly by chance; then the last for good."""

    def __init__(self, case, readings, error=0.5):
        runs = (case.chosen, *case.alternatives)
        self.left = {run: list(readings.get(place, (9.0,))) for place, run in enumerate(runs)}
        self.runs, self._error, self.checked = runs, error, []

    def seconds(self, run):
        left = self.left[run]
        return left.pop(0) if len(left) > 1 else left[0]

    def error(self, run):
        self.checked.append(run)
        return self._error


def test_the_loss_is_that_of_second_readings(case):
    """An alternative that was fast once by chance does not count; one that stays faster does."""
    stand = Stand(case, {0: (1.0, 1.2, 1.1), 1: (0.2, 1.5), 2: (0.95, 1.05, 1.0), 3: (8.0,)})
    record = choice.measure(case, stand)
    assert record["loss"] == pytest.approx(0.1) and record["best"] == choice.facts_of(stand.runs[2])
    flops = 2 * 3000 * 24 * 3000 / 1e12
    assert record["tflops"] == pytest.approx(flops / 1.1, abs=1e-4)
    assert record["best_tflops"] == pytest.approx(flops / 1.0, abs=1e-4)
    assert len(record["first_tflops"]) == len(stand.runs)
    assert record["first_tflops"][0]["tflops"] == pytest.approx(flops / 0.2, abs=1e-4)
    assert set(stand.checked) == {stand.runs[place] for place in (0, 1, 2, 3)}
    assert (record["m"], record["n"], record["k"], record["variant"]) == (3000, 24, 3000, "NN")
    rebuilt = FAMILIES["gemm_simt"].config("s", "nn", record["best"]["parameters"])
    assert rebuilt == stand.runs[2].config and record["best"]["splits"] == stand.runs[2].splits


def test_the_best_may_be_what_was_chosen(case):
    record = choice.measure(case, Stand(case, {0: (1.0,)}))
    assert record["loss"] == 0 and record["best"] == record["chosen"]
    alone = choice.measure(case._replace(alternatives=()), Stand(case._replace(alternatives=()), {0: (1.0,)}))
    assert alone["loss"] == 0


class Rotation:
    """Arrays that nobody looks at, and a clock that runs each call once."""

    def __init__(self, operands):
        self.sets, self.restored = [operands], 0

    def restore(self):
        self.restored += 1

    def seconds(self, call):
        call(self.sets[0])
        return 1.0


class Watched(Problem):
    """A product that notes what `select` says while it runs."""

    seen: list = []

    def data(self, seed=0):
        return Arrays(None, None, SimpleNamespace(get=lambda order: np.zeros(1)))

    def ours(self, x, backend):
        assert backend == "cuda"
        self.seen.append(select("gemm", self.dtype, "nn", (*alternatives.extents_of(self), 1), H200))

    def error(self, x, result):
        return 0.25


@pytest.mark.parametrize("clock", ["calls", "share"])
def test_a_rival_runs_its_config_and_its_splits(monkeypatch, case, clock):
    monkeypatch.setitem(sys.modules, "pyblasgpu.bench.timing", SimpleNamespace(Rotation=Rotation))
    problem = Watched("gemm", case.problem.case)
    problem.seen.clear()
    share = SimpleNamespace(seconds=lambda problem: problem.ours(None, "cuda") or 2.0)
    stand = choice.Stand(case._replace(problem=problem), share if clock == "share" else None)
    runs = (case.chosen, *case.alternatives)
    assert {stand.seconds(run) for run in runs} == {2.0 if clock == "share" else 1.0}
    assert [(seen.config, seen.splits) for seen in problem.seen] == [(run.config, run.splits) for run in runs]
    assert [seen.origin for seen in problem.seen] == [
        case.chosen.origin,
        *["override"] * len(case.alternatives),
    ]
    problem.seen.clear()
    assert (
        stand.error(case.alternatives[-1]) == 0.25 and problem.seen[0].config == case.alternatives[-1].config
    )
    assert stand.rotation.restored == 1


def test_the_devices_share_is_of_operands_that_lie_as_asked(monkeypatch):
    calls = []

    class Timer:
        def __init__(self, device, stream):
            pass

        def __call__(self, work):
            work.calls[0]()
            return 1e-3

    memory = fake_device.HostMemory()
    monkeypatch.setattr(arenas, "memory", memory)
    monkeypatch.setattr(choice, "Timer", Timer)
    monkeypatch.setattr(choice, "routine", lambda name: lambda *call: calls.append((name, *call)))
    share = choice.Share(H200)
    assert share.seconds(product((30, 20, 10), "d", "TN")) == 1e-3
    ((name, _, a, b, _, c, _),) = calls
    assert name == "gemm" and [(x.rows, x.cols) for x in (a, b, c)] == [(30, 10), (10, 20), (30, 20)]
    assert [x.row_stride == 1 for x in (a, b, c)] == [False, True, True] and a.dtype is DTYPES["d"]
    share.close()
    assert not memory.held


# ------------------------------------------------------------------------------------ tables and command


def records(case):
    slow = choice.measure(case, Stand(case, {0: (1.3,), 1: (1.0,)}))
    fine = choice.measure(case, Stand(case, {0: (1.0,)})) | {"dtype": "d"}
    return [slow, slow | {"loss": 0.05}, fine]


def test_summaries_by_dtype_and_of_all(case):
    summaries = choice.summaries(records(case))
    assert list(summaries) == ["s", "d", "all"]
    assert summaries["s"] == (2, pytest.approx(0.175), 0.3, 1) and summaries["d"] == (1, 0, 0, 0)
    assert summaries["all"] == (3, pytest.approx(0.35 / 3), 0.3, 1)


def test_the_table_names_both_kernels(case, capsys):
    for table in choice.summary(records(case), None):
        Console(width=study.WIDTH).print(table)
    output = capsys.readouterr().out
    assert "3000 x 24 x 3000" in output and "30.0!" in output and "beyond 10%" in output
    assert choice.short_name(case.chosen) in output and choice.short_name(case.alternatives[0]) in output
    assert case.alternatives[0].origin.rpartition(", ")[-1] in output and "chosen" in output


def parsed(*words):
    return study.parser(choice.STUDY).parse_args(words)


def test_default_shapes_are_none_of_the_tuned():
    problems = choice.problems_of(parsed())
    assert [p.dtype.letter for p in problems] == ["s"] * 10 + ["d"] * 10
    assert [alternatives.extents_of(p) for p in problems[:10]] == list(bench_command.SHAPES["between"])


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--variants", "NN,CN"), "'CN' is none of NN, NT, TN, TT"),
        (("--shapes", "8x8"), "'8x8' is no list of MxNxK"),
        (("--dtype", "s,q"), "'q' is none of s, d, c, z"),
    ],
)
def test_wrong_use_is_refused(words, message, capsys):
    with pytest.raises(SystemExit):
        parsed(*words)
    assert message in capsys.readouterr().err


def test_what_cannot_be_compared_is_refused():
    with pytest.raises(ValueError, match=r"shapes: \(1, 8, 8\) has a vector"):
        choice.problems_of(parsed("--shapes", "1x8x8"))
    with pytest.raises(ValueError, match="--top -1 is negative"):
        study.run(choice.STUDY, ["--top", "-1"])


@pytest.fixture
def command(monkeypatch, space, home):
    """The command without a device; `command.error` is what the results are wrong by."""
    state = SimpleNamespace(error=0.5, compiled=[])
    monkeypatch.setitem(stand_ins, 0, H200)
    monkeypatch.setattr(
        alternatives,
        "spaces",
        lambda problems, device: {
            (p.dtype.letter, alternatives.layout_of(p)): space if p.dtype.letter == "s" else ()
            for p in problems
        },
    )
    monkeypatch.setattr(
        alternatives,
        "compiled",
        lambda configs, *_: state.compiled.extend(configs) or dict.fromkeys(configs, FINE),
    )
    monkeypatch.setattr(choice, "Stand", lambda case, share: Stand(case, {0: (1.2,), 1: (1.0,)}, state.error))
    facts = {"device": "NVIDIA H200", "driver": "580", "date": "2026-01-01T00:00"}
    monkeypatch.setattr(kernels, "device_facts", lambda *_: facts)
    return state


def test_the_command_writes_what_it_found(command, tmp_path, capsys):
    out = tmp_path / "new" / "found.json"
    words = "--dtype", "s,d", "--shapes", "192x192x192,3000x24x3000", "--top", "2", "--out", str(out)
    assert study.run(choice.STUDY, words) == 0
    document = json.loads(out.read_text())
    done = [(record["dtype"], record["m"]) for record in document["results"]]
    assert done == [("s", 192), ("s", 3000), ("d", 192), ("d", 3000)]
    assert {r["loss"] for r in document["results"]} == {0.2}
    assert (document["limit"], document["top"], document["clock"]) == (0.1, 2, "calls")
    output = capsys.readouterr()
    assert "beyond 10%" in output.out and str(out) in output.err
    command.error = 1.5
    assert study.run(choice.STUDY, words) == 1


def test_a_budget_that_ends(command, tmp_path, monkeypatch, capsys):
    clock = iter(range(10**6))
    monkeypatch.setattr(progress, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    out = tmp_path / "found.json"
    study.run(choice.STUDY, ["--dtype", "s", "--budget", "3.5", "--out", str(out)])
    assert [r["m"] for r in json.loads(out.read_text())["results"]] == [192, 448, 640]
    assert "sgemm: 7 of 10 products untimed" in capsys.readouterr().err


def test_compiling_only_touches_no_device(command, monkeypatch, capsys):
    def touched(*_):
        raise AssertionError("the device was touched")

    for module, name in (
        (kernels, "device_facts"),
        (kernels, "current"),
        (choice, "Stand"),
        (choice, "Share"),
    ):
        monkeypatch.setattr(module, name, touched)
    words = ["--dtype", "s", "--shapes", "192x192x192", "--compile-only", "h200"]
    assert study.run(choice.STUDY, words) == 0
    assert command.compiled and len(set(command.compiled)) == len(command.compiled)
