"""Compare the score and the strategies on recorded sweeps: ``python -m benchmarks.strategies [--sweeps ...]``

No device is needed. The first table says how well the score ranks what was measured. The second has what each
strategy would have found, and at what part of the timings, the third the same of each large search. The last
is what a run loses that ends before all candidates were tried. Searches of fewer than ten candidates are left
out.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from statistics import mean, median
from typing import Any, NamedTuple

import numpy as np
from rich.table import Table
from scipy.stats import spearmanr

from benchmarks.study import Namespace, Option, Row, Rows, Study, main, table
from pyblasgpu.gpu.device import Device, known, names
from pyblasgpu.tuning.results import Record
from pyblasgpu.tuning.search_problem import Problem, SearchProblem, Strategy
from pyblasgpu.tuning.strategies import in_turns, score_first
from pyblasgpu.tuning.sweep_file import read_sweep
from tuning.papers.replay import Outcome, Recording, recordings, replay
from tuning.papers.strategies import ALL_STRATEGIES, random, three_step

SWEEP = Path(__file__).resolve().parents[1] / "tuning" / "sweeps" / "nvidia_h200.jsonl.gz"
FEWEST = 10  # candidates of a search that says anything
MANY = 100  # those of a search in which a tenth of the timings is a choice
TOPS = (4, 8, 16, 32)
TRIED = (0.25, 0.5)  # of the candidates, when a run ends early

#: Those by name, the paper's three-step search, in which every candidate takes part, and eight a problem.
COMPARED: dict[str, Strategy] = {
    **ALL_STRATEGIES,
    "three-step, all": partial(three_step, share=1.0),
    "score-first, 8": partial(score_first, tiles=8, variants=0, share=0.0, rounds=1),
    "random, 8": partial(random, most=8),
}

Key = tuple[str, str, str]


class Ranking(NamedTuple):
    """How the score ranks what was measured at one problem.

    Attributes
    ----------
    candidates : int
    correlation : float
        Spearman's, of score and rate.
    spread : float
        Of the ratio of the two, in logarithms: half of them are within 0.67 of it.
    losses : tuple of float
        How much slower than the best is the fastest of the first `TOPS` by score.
    """

    candidates: int
    correlation: float
    spread: float
    losses: tuple[float, ...]


def load(sweeps: Iterable[Path]) -> dict[Key, Recording]:
    """The searches of the sweeps of one device that hold at least `FEWEST` candidates."""
    records: list[Record] = [record for sweep in sweeps for record in read_sweep(sweep)]
    devices = {record.device for record in records}
    if len(devices) != 1:
        raise ValueError(
            f"the sweeps hold records of {', '.join(sorted(devices)) or 'no device'}, not of one"
        )
    recorded = recordings(records, described(devices.pop(), records[0].arch))
    return {key: recorded[key] for key in sorted(recorded) if len(recorded[key].search.candidates) >= FEWEST}


def described(name: str, arch: str) -> Device:
    """The description of a device by the driver's name of it, else that of its architecture."""
    return next((device for device in map(known, names()) if device.name == name), known(arch))


def ranking(recording: Recording, problem: Problem) -> Ranking:
    """How the score ranks the candidates that were timed at `problem`."""
    seconds = {
        measurement.config: t
        for measurement, t in recording.seconds.items()
        if measurement.problem == problem
    }
    points = dict(zip(seconds, recording.search.scores(tuple(seconds), *problem), strict=True))
    ranked = sorted(seconds, key=points.__getitem__, reverse=True)
    best = min(seconds.values())
    correlation = spearmanr([points[c] for c in ranked], [1 / seconds[c] for c in ranked]).statistic
    losses = tuple(min(seconds[c] for c in ranked[:top]) / best - 1 for top in TOPS)
    ratios = [math.log(points[c] * seconds[c]) for c in ranked]
    middle = median(ratios)
    spread = median(abs(ratio - middle) for ratio in ratios) / 0.67
    return Ranking(len(seconds), float(correlation), spread, losses)


def rows(options: Namespace) -> Rows:
    """How the score ranks each problem."""
    for key, recording in options.recorded.items():
        for size, extents in recording.search.problems:
            case = dict(zip(("family", "dtype", "layout"), key, strict=True))
            case |= {"class": size, "extents": "x".join(map(str, extents))}
            yield {**case, **ranking(recording, (size, extents))._asdict()}


def facts(options: Namespace) -> Row:
    options.recorded = load(options.sweeps)  # for the rows and the tables
    return {"sweeps": [sweep.name for sweep in options.sweeps]}


def families(recorded: dict[Key, Recording]) -> dict[str, list[Recording]]:
    """The searches of each family."""
    found: dict[str, list[Recording]] = {}
    for (stem, *_), recording in recorded.items():
        found.setdefault(stem, []).append(recording)
    return found


def score_table(rows: Sequence[Row]) -> Table:
    """A row a problem, then the mean and the worst of each family."""
    lines: list[Sequence[Any]] = []
    for stem in dict.fromkeys(row["family"] for row in rows):
        of_family = [row for row in rows if row["family"] == stem]
        each = [Ranking(*(row[name] for name in Ranking._fields)) for row in of_family]
        names = ("family", "dtype", "layout", "class", "extents")
        lines += [
            (*(row[name] for name in names), *_cells(x)) for row, x in zip(of_family, each, strict=True)
        ]
        losses = list(zip(*(x.losses for x in each), strict=True))
        correlations, spreads = [x.correlation for x in each], [x.spread for x in each]
        total = sum(x.candidates for x in each)
        best = Ranking(total, mean(correlations), mean(spreads), tuple(map(mean, losses)))
        worst = Ranking(total, min(correlations), max(spreads), tuple(map(max, losses)))
        lines += [(stem, "", "", "mean", "", *_cells(best)), (stem, "", "", "worst", "", *_cells(worst))]
    heads = "family | dtype | layout | class | extents | candidates | rank correlation | spread, %"
    tops = "".join(f" | first {top}, %" for top in TOPS)
    return table("the score against what was measured", heads + tops, lines)


def _cells(row: Ranking) -> list[str]:
    return [str(row.candidates), f"{row.correlation:.2f}", *map(_percent, (row.spread, *row.losses))]


RESULT = "timings | of all, % | mean loss, % | worst, % | within 2 %, %"


def strategy_table(recorded: dict[Key, Recording]) -> Table:
    """A row a strategy and family."""
    lines = [
        (name, stem, *_summary([replay(recording, strategy) for recording in searches]))
        for name, strategy in COMPARED.items()
        for stem, searches in families(recorded).items()
    ]
    return table("strategies against exhaustive search", f"strategy | family | searches | {RESULT}", lines)


def search_table(recorded: dict[Key, Recording]) -> Table:
    """A row a strategy and search of at least `MANY` candidates."""
    lines = [
        (name, *key, len(recording.search.candidates), *_summary([replay(recording, strategy)])[1:])
        for name, strategy in COMPARED.items()
        for key, recording in recorded.items()
        if len(recording.search.candidates) >= MANY
    ]
    return table("large searches", f"strategy | family | dtype | layout | candidates | {RESULT}", lines)


def cut_short(recording: Recording, ordered: Sequence[Any], share: float) -> list[float]:
    """The loss at each problem of a run that tried this share of the candidates, in this order.

    Where none of them has a time it takes the slowest.
    """
    tried, losses = set(ordered[: max(round(share * len(ordered)), 1)]), []
    for problem in recording.search.problems:
        seconds = {
            measurement.config: t
            for measurement, t in recording.seconds.items()
            if measurement.problem == problem
        }
        if seconds:
            best = min((t for config, t in seconds.items() if config in tried), default=max(seconds.values()))
            losses.append(best / min(seconds.values()) - 1)
    return losses


def by_best_score(search: SearchProblem) -> list[Any]:
    """The candidates, those first that score best anywhere."""
    best = np.max([search.scores(search.candidates, *problem) for problem in search.problems], axis=0)
    return [search.candidates[i] for i in np.argsort(-best, kind="stable")]


def early_table(recorded: dict[Key, Recording]) -> Table:
    """A row a family and order."""
    lines = []
    for name, order in (("in turns", in_turns), ("by best score", by_best_score)):
        for stem, searches in families(recorded).items():
            ordered, cells = [order(recording.search) for recording in searches], []
            for share in TRIED:
                pairs = zip(searches, ordered, strict=True)
                losses = [loss for each, configs in pairs for loss in cut_short(each, configs, share)]
                cells += [_percent(mean(losses)), _percent(max(losses))]
            lines.append((name, stem, len(searches), *cells))
    columns = "".join(
        f" | {what} after {100 * share:.0f} %" for share in TRIED for what in ("mean loss, %", "worst, %")
    )
    return table("runs that end early", "order | family | searches" + columns, lines)


def _summary(outcomes: list[Outcome]) -> list[str]:
    losses = [loss for outcome in outcomes for loss in outcome.losses.values()]
    used, total = sum(outcome.used for outcome in outcomes), sum(outcome.total for outcome in outcomes)
    within = sum(loss <= 0.02 for loss in losses) / len(losses)
    shares = used / total, mean(losses), max(losses), within
    return [str(len(outcomes)), str(used), *map(_percent, shares)]


def _percent(value: float) -> str:
    return f"{100 * value:.1f}"


def summary(rows: list[Row], options: Namespace) -> Iterator[Table]:
    yield score_table(rows)
    for made in (strategy_table, search_table, early_table):
        yield made(options.recorded)


STUDY = Study(
    "strategies",
    __doc__,
    rows,
    {"sweeps": Option((SWEEP,), kind=Path, help="recorded sweeps of one device (%(default)s)")},
    facts,
    summary=summary,
    prints_rows=False,
)

if __name__ == "__main__":
    main(STUDY)
