"""A benchmark script: its options, the rows that it measures, and the file of its results.

A script is a `Study`: options with their defaults, and a function that yields a row of results for each case.
`main` parses, prints each row, keeps the file up to date, and ends when the time is up.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
import traceback
from argparse import Namespace
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import date
from pathlib import Path
from statistics import geometric_mean
from typing import Any, NamedTuple

from rich.table import Table

from pyblasgpu.bench import machine
from pyblasgpu.bench.command import RESULTS, require_device, slug
from pyblasgpu.errors import lacking
from pyblasgpu.gpu.device import current
from pyblasgpu.options import parse_dtypes, parse_seconds
from pyblasgpu.routine_table import ROUTINES
from pyblasgpu.terminal import console, guarded
from pyblasgpu.types import DTYPES

__all__ = [
    "WIDTH",
    "Namespace",
    "Option",
    "Row",
    "Rows",
    "Study",
    "attempt",
    "cubes",
    "cupy",
    "device_facts",
    "host_facts",
    "main",
    "means",
    "run",
]

try:
    import cupy
except ImportError:  # `device_facts` says so
    cupy = None

Row = dict[str, Any]
Rows = Iterator[Row]
WIDTH = 170  # columns of a table that goes into a file or a pipe
#: Other names of options.
ALIASES = {
    "kinds": ("--parts",),
    "letters": ("--dtype", "--dtypes"),
    "sizes": ("--orders",),
    "routines": ("--routine", "--operations"),
    "seconds": ("--budget",),
}


def cubes(routine: str) -> float:
    """Operations of a routine on real square matrices, as a multiple of the cube of their order; those of the
    factors alone of a solution by them.
    """
    row = ROUTINES[routine]
    if row.parts:
        return cubes(row.parts[0][0])
    numerator, denominator = row.fmas
    return 2 * numerator / denominator


class Option(NamedTuple):
    """An option of a script; what is no `Option` is the default of one.

    Attributes
    ----------
    default : object
        Its type is that of values; a tuple's option takes words, or several of them separated by commas.
    choices : collection of str
    kind : callable or None
        Makes a value, or a tuple of them, of a word, commas included; by default the type of the default.
    help : str
    """

    default: Any
    choices: Collection[str] = ()
    kind: Callable[[str], Any] | None = None
    help: str = "(%(default)s)"


def device_facts(options: Namespace, cublas: Any = None) -> Row:
    """The device and the code; raises where nothing can be timed."""
    require_device()
    return machine.describe(current(), cublas)


def host_facts() -> Row:
    """The date and the code, of what needs no device."""
    return {"device": "none", "date": date.today().isoformat(), "commit": machine.commit()}


def flat_document(facts: Row, lists: dict[str, list[Row]]) -> Row:
    """The facts, then the lists of rows by name."""
    return {**facts, **lists}


def has_problem(rows: Iterable[Row]) -> bool:
    return any("problem" in row for row in rows)


class Study(NamedTuple):
    """What a script is.

    Attributes
    ----------
    name : str
        Name of the script and of its file.
    about : str or None
        The script's docstring.
    rows : callable or mapping
        ``rows(options)`` yields a row for each case; several of them by kind add an option ``--kinds``.
    options : mapping
        Defaults of the script's options, or `Option`, by name.
    facts : callable
        ``facts(options)``: what holds for all rows; it may put into the options what rows need.
    key : str
        Name of the rows in the file; kinds have their own.
    document : callable
        ``document(facts, lists)``: what the file holds.
    summary : callable
        ``summary(rows, options)``: lines and tables to print at the end.
    seconds : float
        Default time after which no case is begun; a script with None has a budget of its own.
    fails : callable
        ``fails(rows)``: whether the exit code is 1.
    is_kept : bool
        Whether the file is one of `RESULTS` unless ``--out`` names one.
    folder : Path or None
        Where the file is otherwise; None: it is not written.
    is_plotted : bool
        Whether `pyblasgpu.bench.plot` draws the file.
    prints_rows : bool
    """

    name: str
    about: str | None
    rows: Callable[[Namespace], Iterable[Row]] | Mapping[str, Callable[[Namespace], Iterable[Row]]]
    options: Mapping[str, Any]
    facts: Callable[[Namespace], Row] = device_facts
    key: str = "results"
    document: Callable[[Row, dict[str, list[Row]]], Any] = flat_document
    summary: Callable[[list[Row], Namespace], Iterable[Any]] = lambda rows, options: ()
    seconds: float | None = math.inf
    fails: Callable[[list[Row]], bool] = has_problem
    is_kept: bool = False
    folder: Path | None = None
    is_plotted: bool = False
    prints_rows: bool = True


def main(study: Study) -> None:
    """Run a script by its command line, and exit."""
    sys.exit(guarded([f"benchmarks.{study.name}"], lambda: run(study)))


def run(study: Study, arguments: Sequence[str] | None = None) -> int:
    """Measure, print, and keep the file up to date; returns the exit code."""
    options, begun = parser(study).parse_args(arguments), time.monotonic()
    facts = study.facts(options)
    lists: dict[str, list[Row]] = {}
    path, written = _path(study, options, facts), 0.0
    try:
        for kind, row in _rows(study, options):
            lists.setdefault(kind, []).append(row)
            if study.prints_rows and not options.json:
                print(*[kind][: not callable(study.rows)], _rounded(row), flush=True)
            if time.monotonic() - written > 1:
                _write(path, study.document(facts, lists))
                written = time.monotonic()
            if study.seconds and time.monotonic() - begun > options.seconds:
                print("out of time", file=sys.stderr)
                break
    finally:  # a run that is cut short keeps what it has
        if lists:
            _write(path, study.document(facts, lists))
    rows = [row for of_kind in lists.values() for row in of_kind]
    if options.json:
        print(_text(study.document(facts, lists)), end="")
    else:
        for each in study.summary(rows, options) if rows else ():
            console(WIDTH).print(each, highlight=False)
    if path and rows:
        print(f"results in {path}", file=sys.stderr)
        if study.is_plotted:
            _plot(path)
    return int(study.fails(rows))


def _plot(path: Path) -> None:
    try:
        from pyblasgpu.bench import plot
    except ImportError as missing:
        print(f"no plot: {lacking(missing, 'plot')}", file=sys.stderr)
    else:
        plot.main([str(path)])


def _rows(study: Study, options: Namespace) -> Iterator[tuple[str, Row]]:
    """Rows with the names of their lists."""
    kinds = {study.key: study.rows} if callable(study.rows) else study.rows
    for name in kinds if callable(study.rows) else options.kinds:
        yield from ((name, row) for row in kinds[name](options))


def attempt(facts: Row, measure: Callable[..., Row], *arguments: Any) -> Row:
    """The row of a case; what goes wrong is in it, since the other cases are wanted all the same."""
    try:
        return {**facts, **measure(*arguments)}
    except Exception as problem:
        traceback.print_exc()
        return {**facts, "problem": repr(problem)[:300]}


def means(rows: Iterable[Row], key: str = "ratio", by: Sequence[str] = ("dtype", "routine")) -> Iterator[str]:
    """The geometric mean and the least of a ratio, by what rows are of."""
    groups: dict[str, list[float]] = {}
    for row in rows:
        if not math.isnan(row.get(key, math.nan)):
            groups.setdefault("".join(str(row[name]) for name in by), []).append(row[key])
    for name, ratios in groups.items():
        yield f"{name}: geometric mean {geometric_mean(ratios):.3f}, least {min(ratios):.3f} of {len(ratios)}"


def table(title: str, heads: str, lines: Iterable[Sequence[Any]]) -> Table:
    """A table with the columns that `heads` names, '|' between them; numbers with two decimals."""
    made = Table(*heads.split(" | "), title=title)
    for line in lines:
        made.add_row(*(f"{each:.2f}" if isinstance(each, float) else str(each) for each in line))
    return made


def _rounded(row: Row) -> Row:
    return {key: float(f"{x:.4g}") if isinstance(x, float) else x for key, x in row.items()}


def _path(study: Study, options: Namespace, facts: Row) -> Path | None:
    """The file: the one that ``--out`` names, or one in that folder."""
    if options.out is not None:
        return options.out if options.out.suffix == ".json" else options.out / f"{study.name}.json"
    if study.is_kept:
        return RESULTS / slug(facts["device"]) / f"{facts['date'][:10]}-{study.name}.json"
    return study.folder / f"{study.name}.json" if study.folder else None


def _write(path: Path | None, document: Any) -> None:
    if path:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(_text(document))


def _text(document: Any) -> str:
    """JSON, an element of its lists a line; what was not measured has no key, since JSON has no NaN."""
    if not isinstance(document, dict):
        return json.dumps(document, indent=1) + "\n"
    values = (
        "[\n" + ",\n".join(json.dumps(_measured(each)) for each in value) + "\n]"
        if isinstance(value, list)
        else json.dumps(value)
        for value in document.values()
    )
    pairs = (f"{json.dumps(key)}: {value}" for key, value in zip(document, values, strict=True))
    return "{" + ",\n".join(pairs) + "}\n"


def _measured(row: Any) -> Any:
    if not isinstance(row, dict):
        return row
    return {key: value for key, value in row.items() if not isinstance(value, float) or not math.isnan(value)}


def parser(study: Study) -> argparse.ArgumentParser:
    """The parser of a script's options, and of those of all scripts."""
    made = argparse.ArgumentParser(
        prog=f"python -m benchmarks.{study.name}",
        description=study.about,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    if not callable(study.rows):
        _add(made, "kinds", Option(tuple(study.rows), choices=tuple(study.rows)))
    for name, option in study.options.items():
        _add(made, name, option if isinstance(option, Option) else Option(option))
    if study.seconds:
        help_ = "no case is begun after these (%(default)s)"
        _add(made, "seconds", Option(study.seconds, kind=parse_seconds, help=help_))
    made.add_argument("--out", type=Path, help="folder or file for the results as JSON")
    made.add_argument("--json", action="store_true", help="print JSON, neither rows nor tables")
    return made


def _add(made: argparse.ArgumentParser, name: str, option: Option) -> None:
    names = f"--{name.replace('_', '-')}", *ALIASES.get(name, ())
    common: dict[str, Any] = {"dest": name, "default": option.default, "help": option.help}
    if name == "letters":
        common["default"] = tuple(option.default)
        made.add_argument(*names, type=_letters, **common)
    elif isinstance(option.default, bool):
        made.add_argument(*names, action="store_true", **common)
    elif isinstance(option.default, tuple):
        made.add_argument(*names, nargs="*", action=_Words, type=_words(option), **common)
    else:
        kind = option.kind or (str if option.default is None else type(option.default))
        made.add_argument(*names, type=kind, choices=option.choices or None, **common)


def _letters(text: str) -> tuple[str, ...]:
    """Letters of dtypes, with or without commas, or names of dtypes."""
    letters = text.replace(",", "")
    return parse_dtypes(",".join(letters) if set(letters.lower()) <= set(DTYPES) else text)


def _words(option: Option) -> Callable[[str], tuple[Any, ...]]:
    """Parses a word of a list."""

    def words(text: str) -> tuple[Any, ...]:
        if option.kind:
            value = option.kind(text)
            return value if isinstance(value, tuple) else (value,)
        each = (text,) if text in option.choices else tuple(text.split(","))
        for word in each:
            if option.choices and word not in option.choices:
                raise argparse.ArgumentTypeError(f"{word!r} is none of {', '.join(option.choices)}")
        return tuple(map(type(option.default[0]) if option.default else str, each))

    return words


class _Words(argparse.Action):
    """Words of an option together; what a word holds is parsed."""

    def __call__(self, parser: Any, namespace: Any, values: Any, option: Any = None) -> None:
        setattr(namespace, self.dest, tuple(each for word in values for each in word))
