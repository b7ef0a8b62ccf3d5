"""Compare the score and the strategies on a recorded sweep: ``python -m benchmarks.strategies [SWEEP ...]``

No device is needed. The first table says how well the score ranks what was measured, the second what each
strategy would have found, and at what part of the timings, the third the same of each large search, the last
what a run loses that ends before all candidates were tried. Searches of fewer than ten candidates are left
out.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from statistics import mean, median
from typing import Any, NamedTuple

from rich.table import Table
from scipy.stats import spearmanr

from pyblasgpu.gpu.device import Device, known, names
from pyblasgpu.terminal import console, guarded
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
WIDTH = 170  # columns of a table that goes into a file or a pipe

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
    points = {config: recording.search.score(config, *problem) for config in seconds}
    ranked = sorted(seconds, key=points.__getitem__, reverse=True)
    best = min(seconds.values())
    correlation = spearmanr([points[c] for c in ranked], [1 / seconds[c] for c in ranked]).statistic
    losses = tuple(min(seconds[c] for c in ranked[:top]) / best - 1 for top in TOPS)
    ratios = [math.log(points[c] * seconds[c]) for c in ranked]
    middle = median(ratios)
    spread = median(abs(ratio - middle) for ratio in ratios) / 0.67
    return Ranking(len(seconds), float(correlation), spread, losses)


def score_table(recorded: dict[Key, Recording]) -> Table:
    """A row a problem, then the mean and the worst of each family."""
    tops = [f"first {top}, %" for top in TOPS]
    table = Table(
        "family",
        "dtype",
        "layout",
        "class",
        "extents",
        "candidates",
        "rank correlation",
        "spread, %",
        *tops,
        title="the score against what was measured",
    )
    for stem in dict.fromkeys(key[0] for key in recorded):
        rows = []
        for key, recording in recorded.items():
            for size, extents in recording.search.problems if key[0] == stem else ():
                rows.append(ranking(recording, (size, extents)))
                table.add_row(*key, size, "x".join(map(str, extents)), *_cells(rows[-1]))
        together = [list(column) for column in zip(*(row.losses for row in rows), strict=True)]
        correlations, spreads = [row.correlation for row in rows], [row.spread for row in rows]
        total = sum(row.candidates for row in rows)
        best = Ranking(total, mean(correlations), mean(spreads), tuple(map(mean, together)))
        worst = Ranking(total, min(correlations), max(spreads), tuple(map(max, together)))
        table.add_row(stem, "", "", "mean", "", *_cells(best), style="bold")
        table.add_row(stem, "", "", "worst", "", *_cells(worst), style="bold")
    return table


def _cells(row: Ranking) -> list[str]:
    losses = map(_percent, row.losses)
    return [str(row.candidates), f"{row.correlation:.2f}", _percent(row.spread), *losses]


def strategy_table(recorded: dict[Key, Recording]) -> Table:
    """A row a strategy and family."""
    table = Table(
        "strategy",
        "family",
        "searches",
        "timings",
        "of all, %",
        "mean loss, %",
        "worst, %",
        "within 2 %, %",
        title="strategies against exhaustive search",
    )
    for name, strategy in COMPARED.items():
        for stem in dict.fromkeys(key[0] for key in recorded):
            outcomes = [replay(recording, strategy) for key, recording in recorded.items() if key[0] == stem]
            table.add_row(name, stem, *_summary(outcomes))
    return table


def search_table(recorded: dict[Key, Recording]) -> Table:
    """A row a strategy and search of at least `MANY` candidates."""
    table = Table(
        "strategy",
        "family",
        "dtype",
        "layout",
        "candidates",
        "timings",
        "of all, %",
        "mean loss, %",
        "worst, %",
        "within 2 %, %",
        title="large searches",
    )
    for name, strategy in COMPARED.items():
        for key, recording in recorded.items():
            count = len(recording.search.candidates)
            if count >= MANY:
                table.add_row(name, *key, str(count), *_summary([replay(recording, strategy)])[1:])
    return table


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
    return sorted(
        search.candidates,
        key=lambda c: max(search.score(c, *problem) for problem in search.problems),
        reverse=True,
    )


def early_table(recorded: dict[Key, Recording]) -> Table:
    """A row a family and order."""
    columns = [
        f"{what} after {100 * share:.0f} %" for share in TRIED for what in ("mean loss, %", "worst, %")
    ]
    table = Table("order", "family", "searches", *columns, title="runs that end early")
    for name, order in (("in turns", in_turns), ("by best score", by_best_score)):
        for stem in dict.fromkeys(key[0] for key in recorded):
            searches = [recording for key, recording in recorded.items() if key[0] == stem]
            ordered = [order(recording.search) for recording in searches]
            cells = []
            for share in TRIED:
                pairs = zip(searches, ordered, strict=True)
                losses = [loss for each, configs in pairs for loss in cut_short(each, configs, share)]
                cells += [_percent(mean(losses)), _percent(max(losses))]
            table.add_row(name, stem, str(len(searches)), *cells)
    return table


def _summary(outcomes: list[Outcome]) -> list[str]:
    losses = [loss for outcome in outcomes for loss in outcome.losses.values()]
    used, total = sum(outcome.used for outcome in outcomes), sum(outcome.total for outcome in outcomes)
    within = sum(loss <= 0.02 for loss in losses) / len(losses)
    shares = used / total, mean(losses), max(losses), within
    return [str(len(outcomes)), str(used), *map(_percent, shares)]


def _percent(value: float) -> str:
    return f"{100 * value:.1f}"


def main(arguments: list[str] | None = None) -> int:
    """Print the tables; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sweeps", nargs="*", type=Path, default=[SWEEP], metavar="SWEEP")
    options = parser.parse_args(arguments)
    recorded = load(options.sweeps)
    page = console(WIDTH)
    for table in (score_table, strategy_table, search_table, early_table):
        page.print(table(recorded))
    return 0


if __name__ == "__main__":
    sys.exit(guarded(["benchmarks.strategies"], main))
