"""``pyblasgpu tune`` and ``pyblasgpu report``: the funnel, a run with its progress, and what it found."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from .. import build, terminal
from ..dispatch import catalogue
from ..dispatch.tuned_files import user_file
from ..errors import PyblasgpuError
from ..frontend.calls import call
from ..gpu import device as devices
from ..gpu.build.compile import is_built_ahead
from ..gpu.device import Device
from ..gpu.nvml import Sensor
from ..processes import background_pool
from . import cpu_search, dryrun, report, scipy_thresholds, torch_thresholds
from .candidate_list import CandidateOptions
from .clock_monitor import ClockMonitor
from .compile_pool import Compilers
from .prune import defaults
from .results import Record
from .session import Tuner
from .sweep_file import read_sweep, sweep_file
from .sweep_log import SweepLog
from .worker import Worker
from .worker_bench import Bench

__all__ = ["main", "show_report"]

WIDTH = 170  # columns of a table that goes into a file or a pipe
#: Seconds that an effort may take by default.
BUDGETS = {"quick": 140.0, "normal": 1020.0}
LIST_PROCESSES = 2  # processes that make the lists of candidates


def main(options: Any, routine: Callable[[str], Callable] = call.routine) -> int:
    """Tune, or in a dry run show the funnel; returns the exit code.

    Parameters
    ----------
    options : object
        With the attributes ``routine`` and ``dtype`` (names, as of `dryrun.scope`), ``effort``, ``strategy``
        (or None), ``budget`` (seconds or None), ``resume``, ``report`` (a folder or None), ``dry_run``,
        ``device`` (a number or name, in a dry run also of one that is not here; 'cpu'; or None), ``json``,
        ``compile`` (of a dry run). Optional are ``scipy`` and ``torch`` (time a patch alone), guidelines,
        ``family``, ``layout`` and ``size``, as of `dryrun.show`. So is ``stage``, those of `tuner.STAGES` to
        go through (None: all).
    routine : callable
        Gives the function of a routine by name.

    Raises
    ------
    BackendUnavailable
        Where there is no device to tune.
    ValueError
        For an unknown device.
    """
    if getattr(options, "scipy", False):
        return scipy_thresholds.main(options)
    if getattr(options, "torch", False):
        return torch_thresholds.main(options)
    if options.device == "cpu":
        return cpu_search.main(options)
    if options.dry_run:
        dryrun.show(options)
        return 0
    if options.compile:
        raise ValueError("--compile is of a dry run: add --dry-run")
    return tune_device(options, devices.present(options.device), routine)


def tune_device(options: Any, device: Device, routine: Callable) -> int:
    """Tune `device` as `options` request; return the exit status."""
    searches = dryrun.searches_of(options)
    log = SweepLog(device, options.effort, options.resume)
    monitor = ClockMonitor(Sensor(device.ordinal))
    budget = options.budget or BUDGETS.get(options.effort)
    strategy = options.strategy or ("exhaustive" if options.effort == "exhaustive" else "likely")
    with (
        Compilers(device.cc) as compilers,
        background_pool(LIST_PROCESSES) as executor,
        Worker(Bench, (routine, device.ordinal)) as worker,
        _Progress(budget) as watcher,
    ):
        candidates = CandidateOptions(
            options.effort,
            dryrun.sizes(options),
            lambda stem, dtype: dryrun.guidelines(options, defaults(stem, dtype, options.effort)),
            executor,
        )
        tuner = Tuner(
            device,
            compilers,
            worker,
            watcher,
            log,
            monitor,
            candidates,
            strategy,
            budget,
            curves=options.report is not None,
            stages=getattr(options, "stage", None),
        )
        document = tuner.run(searches)
        if tuner.untried or tuner.unbegun:
            left = f"{tuner.untried} candidates untried and {tuner.unbegun} searches not begun"
            watcher.say(f"the run ended with {left}; --resume goes on with them")
        if worker.replaced:
            watcher.say(f"the process that runs candidates was replaced {worker.replaced} times")
        for complaint_ in monitor.complaints():
            watcher.say(f"doubtful: {complaint_}")
    if document:
        _build_ahead(device)
    _show(log.records, options)
    if not options.json and document:
        terminal.console(WIDTH).print(f"written to {user_file(device.name)}", soft_wrap=True)
    return 0 if document else 1


def _build_ahead(device: Device) -> None:
    """Put the kernels that calls need now, which no archive has, into the one of this user; where that fails,
    calls compile them.
    """
    with build.Progress() as watcher:
        try:
            wanted = [each for each in catalogue.kernels(device) if not is_built_ahead(each, device.cc)]
            if wanted:
                build.build(wanted, device.cc, watcher=watcher)
        except (PyblasgpuError, OSError) as problem:
            watcher.say(f"the kernels that were chosen are not built ahead: {problem}")


def show_report(options: Any) -> int:
    """Report on recorded sweeps; returns the exit code.

    Parameters
    ----------
    options : object
        With the attributes ``sweeps`` (files; none means that of this machine's device), ``report`` (a
        folder or None), ``json``.

    Raises
    ------
    BackendUnavailable
        Where no file is given and there is no device.
    ValueError
        Where a file holds no records, or cannot be read.
    """
    paths = [Path(sweep) for sweep in options.sweeps] or [sweep_file(devices.current().name)]
    records: dict[str, list[Record]] = {}
    for path in paths:
        try:
            document = read_sweep(path)
        except OSError as problem:
            raise ValueError(f"the sweep {path} cannot be read: {problem}") from problem
        for record in document:
            records.setdefault(record.device, []).append(record)
    if not records:
        raise ValueError(f"there are no records in {', '.join(map(str, paths))}")
    if len(records) > 1:
        raise ValueError(f"the records are of several devices: {', '.join(records)}")
    (mine,) = records.values()
    _show(mine, options)
    return 0


def _show(records: list[Record], options: Any) -> None:
    if options.json:
        print(json.dumps(report.as_json(records), indent=2))
    else:
        report.show(records, terminal.console(WIDTH))
    if options.report is not None:
        for path in report.write(records, Path(options.report)):
            print(path, file=sys.stderr)
        reason = report.why_no_plots()
        if reason:
            print(f"no plots: {reason}", file=sys.stderr)


class _Progress(terminal.ProgressBar):
    """Progress of a run on stderr: the best so far, time left, candidates by outcome."""

    def __init__(self, budget: float | None):
        super().__init__("{task.fields[counts]}")
        limit = f" (at most {budget:.0f} s)" if budget else ""
        self._task = self.bar.add_task(f"measuring{limit}", total=None, counts="")

    def progress(self, done: int, wanted: int, log: SweepLog, best: str) -> None:
        """Candidates done of those known to be wanted; the log counts outcomes."""
        counts = ", ".join(f"{outcome} {count}" for outcome, count in log.counts.most_common())
        self.bar.update(self._task, completed=done, total=wanted, description=best, counts=counts)
