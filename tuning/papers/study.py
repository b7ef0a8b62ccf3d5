"""A paper's script: options, what is compiled ahead, what is timed, tables and figures."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any, NamedTuple

from rich.table import Table

from pyblasgpu.bench.machine import commit
from pyblasgpu.errors import BackendUnavailable, lacking
from pyblasgpu.gpu import device as devices
from pyblasgpu.gpu.device import Device
from pyblasgpu.options import parse_duration
from pyblasgpu.terminal import console
from tuning.papers.experiment import Experiment, Kernel, from_timings, on_device

__all__ = [
    "Figure",
    "Study",
    "add_options",
    "draw",
    "finish",
    "folder_of",
    "interleaved",
    "names_in",
    "report",
    "run_study",
]

WIDTH = 150
DESCRIBED = "h100"  # for --dry-run where no device is here


class Figure(NamedTuple):
    """Curves by name, over n or what the labels say."""

    name: str
    title: str
    curves: Mapping[str, Sequence[tuple[float, float]]]
    labels: tuple[str, str] = ("n", "TFLOP/s")


class Study(NamedTuple):
    """What a script is.

    Attributes
    ----------
    name : str
        Of the files of its results.
    parse : callable
        ``parse(arguments)``, its options; `add_options` gives those that all have.
    kernels : callable
        ``kernels(options, device)``: what it times, the most important first.
    collect : callable
        ``collect(run, options)``: the results as JSON holds them, under ``results``; as far as time goes.
    tables, figures : callable
        ``tables(made, options)``, ``figures(made, options)``: of what was collected.
    """

    name: str
    parse: Callable[[Sequence[str] | None], argparse.Namespace]
    kernels: Callable[[argparse.Namespace, Device], Iterable[Kernel]]
    collect: Callable[[Experiment, argparse.Namespace], dict[str, Any]]
    tables: Callable[[dict[str, Any], argparse.Namespace], list[Table]]
    figures: Callable[[dict[str, Any], argparse.Namespace], list[Figure]]


def run_study(study: Study, arguments: Sequence[str] | None = None) -> int:
    """Run a study on the device that is here, and report; returns the exit code."""
    options = study.parse(arguments)
    if options.dry_run:
        return show_kernels([(study, options)])
    if options.recorded:
        finish(study, from_timings(folder_of(options)), options)
        return 0
    device = devices.present(options.device)
    with on_device(device, options.seconds, study.kernels(options, device), options.out) as run:
        finish(study, run, options)
    return 0


def finish(study: Study, run: Experiment, options: argparse.Namespace) -> None:
    """Collect, and report."""
    made = study.collect(run, options)
    run_of = {"paper": study.name, "device": run.device.name, "date": date.today().isoformat()}
    report(study, {**run_of, "commit": commit(), **made}, options)


def folder_of(options: argparse.Namespace) -> Path:
    """The folder of --out; a `ValueError` where there is none."""
    if options.out is None:
        raise ValueError("--recorded reads the timings in a folder: --out names it")
    folder: Path = options.out
    return folder


def show_kernels(planned: Sequence[tuple[Study, argparse.Namespace]]) -> int:
    """How many kernels each study has compiled, without a device; returns the exit code."""
    for study, options in planned:
        device = _device_for_show(options.device)
        count = len(dict.fromkeys(study.kernels(options, device)))
        print(f"{study.name}: {count} kernels on {device.name}")
    return 0


def _device_for_show(name: str | None) -> Device:
    try:
        return devices.present(name)
    except (BackendUnavailable, ValueError):
        return devices.known(name or DESCRIBED)


def report(study: Study, made: dict[str, Any], options: argparse.Namespace) -> None:
    """Print, and write to the folder that is named: JSON, tables, figures."""
    page = console(WIDTH)
    with page.capture() as captured:
        page.print(*study.tables(made, options))
    print(json.dumps(made, indent=2) if options.json else captured.get(), end="")
    if options.out is None:
        return
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / f"{study.name}.json").write_text(json.dumps(made, indent=1) + "\n")
    (options.out / f"{study.name}.txt").write_text(captured.get())
    for figure in study.figures(made, options):
        draw(options.out, figure)


def draw(folder: Path, drawn: Figure) -> None:
    """``name.svg``: a line for each curve; where Matplotlib lacks, a line on stderr says so."""
    curves = {label: points for label, points in drawn.curves.items() if points}
    if not curves:
        return
    try:
        from pyblasgpu.bench import style
    except ImportError as missing:
        print(f"no figure: {lacking(missing, 'plot')}", file=sys.stderr)
        return
    canvas, axes = style.canvas(1, 1, (6.8, 4.5))
    # what is compared has one colour
    compared = [label.removesuffix("cuBLAS").rstrip(", ") for label in curves]
    numbers = {label: number for number, label in enumerate(dict.fromkeys(compared))}
    for (label, points), of in zip(curves.items(), compared, strict=True):
        axes[0][0].plot(*zip(*points, strict=True), label=label, **style.with_dash(numbers[of], label))
    axes[0][0].set(title=drawn.title, xlabel=drawn.labels[0], ylabel=drawn.labels[1], ylim=(0, None))
    style.legend(canvas, 3 if max(map(len, curves)) < 20 else 2)
    style.save(canvas, folder / f"{drawn.name}.svg")


def add_options(parser: argparse.ArgumentParser, seconds: str) -> None:
    """The options of every study: where it runs, for how long, and where results go."""
    parser.add_argument("--device", help="number or name of the device (0)")
    parser.add_argument(
        "--seconds", type=parse_duration, default=seconds, metavar="TIME", help="(%(default)s)"
    )
    parser.add_argument(
        "--out",
        type=Path,
        metavar="FOLDER",
        help="also write JSON, table, figure and timings there; what was timed there is not timed again",
    )
    parser.add_argument(
        "--recorded", action="store_true", help="tables of what was timed there; needs no device"
    )
    parser.add_argument("--json", action="store_true", help="print JSON, not a table")
    parser.add_argument("--dry-run", action="store_true", help="count the kernels; needs no device")


def names_in(known: Iterable[str]) -> Callable[[str], list[str]]:
    """Parses names that are separated by commas."""

    def parse(text: str) -> list[str]:
        names = text.split(",")
        for name in names:
            if name not in known:
                raise argparse.ArgumentTypeError(f"{name!r} is none of {', '.join(known)}")
        return names

    return parse


def interleaved(lists: Iterable[Iterable[Any]]) -> list[Any]:
    """The first of each list, then the second of each, and so on; each once."""
    found: dict[Any, None] = {}
    iterators = [iter(each) for each in lists]
    while iterators:
        for iterator in list(iterators):
            try:
                found[next(iterator)] = None
            except StopIteration:
                iterators.remove(iterator)
    return list(found)
