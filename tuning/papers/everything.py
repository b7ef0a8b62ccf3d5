"""All papers' experiments in one process, in the order of what they are worth, within a time.

``python tuning/papers/everything.py [--plan short] [--seconds 8m] [--out FOLDER]``
``python tuning/papers/everything.py --build [--arch sm_90] [--kernels FOLDER]``

Kernels of all experiments are compiled on all cores meanwhile; what needs none is timed first. Each
experiment has its share of the time, and writes its tables when it ends; what it leaves goes to the next. A
run with the same folder goes on where one was cut short. ``--build`` compiles the same kernels without a
device, into the archive that `pyblasgpu build` makes.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
import traceback
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[2]))

from pyblasgpu.build import Progress, build
from pyblasgpu.gpu import device as devices
from pyblasgpu.gpu.device import Device
from pyblasgpu.options import parse_count, parse_duration
from pyblasgpu.terminal import guarded
from pyblasgpu.tuning.compile_pool import source_of
from tuning.papers import (
    atlas,
    cache_edge,
    kblas,
    kblas_figure9,
    kurzak_timed,
    li,
    matsumoto,
    plasma,
    reads,
    steinsland,
    three_products,
)
from tuning.papers.experiment import Experiment, Kernel, from_timings, on_device
from tuning.papers.study import Study, finish, folder_of, show_kernels

__all__ = ["PLANS", "OutOfTime", "Step", "kernels", "main", "run_steps"]


class Step(NamedTuple):
    """An experiment of a plan, its options, and its weight: seconds of the time that the plan is made for."""

    study: Study
    arguments: str
    seconds: float


#: By name, first what fills most of the tables in `docs/papers`.
PLANS = {
    "long": (
        Step(li.STUDY, "--dtype d,s", 35),
        Step(kblas.STUDY, "--dtype d,s", 80),
        Step(cache_edge.STUDY, "--dtype d,s", 30),
        Step(kurzak_timed.STUDY, "--layout nn", 95),
        Step(reads.STUDY, "--layout nn", 15),
        Step(three_products.STUDY, "--dtype c", 20),
        Step(steinsland.STUDY, "--layout nn,tn --most 8", 120),
        Step(matsumoto.STUDY, "--dtype d,s --most 60 --step 512", 60),
        Step(atlas.STUDY, "--routine trsm,trmm --most 3", 40),
        Step(plasma.STUDY, "--dtype d", 45),
        Step(kblas_figure9.STUDY, "--dtype d,s", 40),
    ),
    "short": (
        Step(li.STUDY, "--dtype d", 15),
        Step(kblas.STUDY, "--dtype d", 35),
        Step(cache_edge.STUDY, "--dtype d,s --sizes 4096,8192", 18),
        Step(kurzak_timed.STUDY, "--layout nn --most 40", 35),
        Step(steinsland.STUDY, "--dtype s,d --layout nn --most 8", 30),
        Step(matsumoto.STUDY, "--dtype d --most 30 --step 1024", 25),
        Step(atlas.STUDY, "--routine trsm --most 2 --orders 1024,4096", 15),
        Step(plasma.STUDY, "--dtype d --orders 1024,4096", 30),
    ),
}

Planned = list[tuple[Study, argparse.Namespace]]


def planned(steps: Sequence[Step], options: argparse.Namespace) -> Planned:
    """Each study with its options, and where its results go."""
    made: Planned = []
    for step in steps:
        arguments = step.arguments.split()
        if options.out is not None:
            arguments += ["--out", str(options.out)]
        made.append((step.study, step.study.parse(arguments)))
    return made


def kernels(studies: Planned, device: Device) -> Iterator[Kernel]:
    """All kernels, in the order in which they are needed."""
    for study, options in studies:
        yield from study.kernels(options, device)


def run_steps(run: Experiment, studies: Planned, weights: Sequence[float]) -> int:
    """Run them one after the other; returns how many failed, whose tracebacks are on stderr."""
    failed = 0
    for study, options in run.in_turn(studies, weights):
        begun = run.clock()
        try:
            finish(study, run, options)
        except Exception:
            failed += 1
            traceback.print_exc()
        print(f"{study.name}: {run.clock() - begun:.0f} s", file=sys.stderr)
    return failed


class OutOfTime(Exception):
    """The time for compiling is over."""


class _Until(Progress):
    """A bar that ends a build at a moment; what is compiled by then is written."""

    def __init__(self, until: float):
        super().__init__()
        self._until = until

    def step(self) -> None:
        super().step()
        if time.monotonic() > self._until:
            raise OutOfTime


def build_ahead(studies: Planned, device: Device, options: argparse.Namespace) -> int:
    """Put the kernels into the archive of the device's architecture; returns the exit code."""
    sources = [source_of(*kernel) for kernel in dict.fromkeys(kernels(studies, device))]
    until = time.monotonic() + (options.seconds or math.inf)
    try:
        with _Until(until) as watcher:
            built = build(sources, device.cc, options.kernels, options.jobs, watcher)
        print(f"{built.kernels} kernels, {built.compiled} compiled now: {built.path}")
    except OutOfTime:
        print("time is over; the rest can be built by another run")
    return 0


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a plan on the device that is here, or build its kernels; returns the exit code."""
    options = _parse(arguments)
    steps = PLANS[options.plan]
    studies = planned(steps, options)
    if options.dry_run:
        return show_kernels(studies)
    if options.build:
        device = devices.known(options.arch) if options.arch else devices.present(options.device)
        return build_ahead(studies, device, options)
    weights = [step.seconds for step in steps]
    if options.recorded:
        return min(run_steps(from_timings(folder_of(options)), studies, weights), 1)
    device = devices.present(options.device)
    with on_device(device, options.seconds, kernels(studies, device), options.out, wait=False) as run:
        return min(run_steps(run, studies, weights), 1)


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--plan", choices=PLANS, default="long", help="(%(default)s)")
    parser.add_argument("--device", help="number or name of the device (0)")
    parser.add_argument("--seconds", type=parse_duration, metavar="TIME", help="in all (that of the plan)")
    parser.add_argument("--out", type=Path, metavar="FOLDER", help="where results and timings go")
    parser.add_argument(
        "--recorded", action="store_true", help="tables of what was timed in --out; needs no device"
    )
    parser.add_argument("--build", action="store_true", help="compile the kernels ahead, and end")
    parser.add_argument("--arch", help="of --build: a device's or an architecture's name")
    parser.add_argument("--kernels", type=Path, metavar="FOLDER", help="of --build: where the archive goes")
    parser.add_argument("--jobs", type=parse_count, help="of --build: how many processes")
    parser.add_argument("--dry-run", action="store_true", help="count the kernels; needs no device")
    options = parser.parse_args(arguments)
    if options.seconds is None and not options.build:
        options.seconds = sum(step.seconds for step in PLANS[options.plan])
    return options


if __name__ == "__main__":
    sys.exit(guarded(["tuning/papers/everything.py"], main))
