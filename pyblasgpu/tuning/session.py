"""A tuning run: which searches, in which order, until when; and the user's file of winners at its end."""

from __future__ import annotations

import math
import time
from collections.abc import Collection, Sequence
from functools import partial
from typing import Any

from ..database import FAMILIES, Document, tuned_at
from ..dispatch import choose, tuned_files
from ..errors import PyblasgpuError
from ..gpu.device import Device
from . import portfolio
from .candidate_list import CandidateOptions
from .clock_monitor import ClockMonitor
from .policy_search import PolicySearch, wanted
from .results import winners
from .routine_search import search_algorithms, search_fused_trsm, time_routines, time_vendor
from .runner import Runner, WorkerLike
from .search import KernelSearch, Watcher, job_of
from .signals import Interrupts
from .strategies import STRATEGIES
from .sweep_log import SearchKey, SweepLog
from .tuned_file_writer import merge
from .verify_winners import CompilersLike, WinnerVerifier, wait

__all__ = ["STAGES", "Tuner", "stages_of"]

STAGES = ("kernels", "trsm_fused", "algorithms", "policy")  # in the order in which they are tuned
NOT_QUICK = ("policy",)  # stages that a quick run leaves out, unless they are named

BEFORE = 0.05  # of the budget, after which no more is timed as it was before
FUSED = 0.9  # of the budget, after which no more fused TRSMs are timed, so that algorithms are
POLICY = 0.18  # of the whole budget, which is kept for the values of the policy
LIKELIEST = {"quick": 2, "normal": 6}  # Configs of the fused TRSM that are timed at a point
MOST_LIKELY = 8  # of other efforts


class Tuner:
    """One run on one device.

    Parameters
    ----------
    device : Device
    compilers : Compilers
    worker : Worker
        Whose body is a `Bench`.
    watcher : Watcher
    log : SweepLog
    monitor : ClockMonitor
    options : CandidateOptions
    strategy : str
        One of `STRATEGIES`.
    budget : float or None
        Seconds after which nothing new is begun.
    curves : bool
        Whether whole routines are timed over n before and after.
    stages : sequence of str, optional
        Stages of `STAGES` to run. Default: those of `stages_of`.
    """

    def __init__(
        self,
        device: Device,
        compilers: CompilersLike,
        worker: WorkerLike,
        watcher: Watcher,
        log: SweepLog,
        monitor: ClockMonitor,
        options: CandidateOptions = CandidateOptions(),  # noqa: B008 (it is frozen)
        strategy: str = "exhaustive",
        budget: float | None = None,
        curves: bool = False,
        stages: Sequence[str] | None = None,
    ):
        self.device, self.log, self.monitor = device, log, monitor
        self._interrupts = Interrupts()
        self._runner = Runner(worker, log, monitor, self._interrupts)
        self._compilers, self.watcher = compilers, watcher
        self._effort = options.effort
        self._curves, self._stages = curves, stages or stages_of(options.effort)
        self._begun, self._all = time.monotonic(), budget or math.inf
        self._budget = self._all * (1 - POLICY) if "policy" in self._stages else self._all
        self._policy: dict[str, Any] = {}
        self._verifier = WinnerVerifier(self._runner, log, job_of, compilers)
        self._kernels = KernelSearch(
            device,
            self._runner,
            compilers,
            watcher,
            self._verifier,
            self._winners_of,
            self._late,
            STRATEGIES[strategy],
            options,
        )
        self._untimed = 0

    @property
    def untried(self) -> int:
        """Candidates that were wanted and for which there was no time."""
        return self._kernels.untried + self._untimed

    @property
    def done(self) -> int:
        """Candidates that were dropped or timed."""
        return self._kernels.done

    @property
    def unbegun(self) -> int:
        """Searches for which there was none."""
        return self._kernels.unbegun

    def run(self, searches: list[SearchKey]) -> Document:
        """Search the families, then fused TRSMs and the algorithms of TRSM with the winners.

        Interrupted, it ends with what was measured so far.

        Raises
        ------
        PyblasgpuError
            Where the device is lost for good; the records are kept.
        """
        try:
            with self._interrupts:
                return self._run(searches)
        except PyblasgpuError as lost:
            kept = f"what was measured is in {self.log.path}, and --resume goes on with it"
            raise PyblasgpuError(f"{lost}; {kept}") from lost

    def _run(self, searches: list[SearchKey]) -> Document:
        routines = routines_of(searches)
        trsm_dtypes = [dtype for routine, dtype in routines if routine == "trsm"]
        try:
            if self._curves:
                # with a cold store of cubins most of it would be compilation, one kernel after the other
                time_routines(self._runner, routines, "before", lambda: self._late(BEFORE))
            for stage in STAGES:
                if stage in self._stages:
                    self._go_through(stage, searches, trsm_dtypes)
        except KeyboardInterrupt:
            self.watcher.say("interrupted: what was measured so far decides")
            self._kernels.settle()
        document = self._save(searches)
        if not self._over():
            time_vendor(self._runner, document)
            if self._curves:
                time_routines(self._runner, routines, "after")
        return document

    def _go_through(self, stage: str, searches: list[SearchKey], trsm_dtypes: list[str]) -> None:
        """One of `STAGES`."""
        if stage == "kernels":
            self._kernels.run(searches)
            return
        self._save(searches)  # whole routines run with what was found before
        if stage == "trsm_fused":
            options = self.device, LIKELIEST.get(self._effort, MOST_LIKELY), self._compile_fused
            late = partial(self._late, FUSED)
            self._untimed += search_fused_trsm(self._runner, trsm_dtypes, *options, late)
        elif stage == "algorithms":
            self._untimed += search_algorithms(self._runner, trsm_dtypes, self._late)
        else:
            self._measure_policy(searches)

    def _measure_policy(self, searches: list[SearchKey]) -> None:
        pairs = routines_of(searches)
        search = PolicySearch(self._runner, self.device, self._over, self.watcher.say)
        self._policy = search.values  # an interrupt leaves those that were measured
        search.run(wanted({routine for routine, _ in pairs}, {dtype for _, dtype in pairs}))
        self._untimed += search.untimed

    def _compile_fused(self, kernels: Collection[tuple[str, Any]]) -> None:
        """Compile `kernels` until it is late; the worker compiles the others when they are due."""
        for triangle, config in kernels:
            self._compilers.submit(triangle, config)
        wait(self._compilers, self._interrupts, lambda: self._late(FUSED))
        self._compilers.drop()

    def _late(self, share: float = 1.0) -> bool:
        return time.monotonic() - self._begun > share * self._budget

    def _over(self) -> bool:
        return time.monotonic() - self._begun > self._all

    # ------------------------------------------------------------------------------------------ winners

    def _save(self, searches: list[SearchKey]) -> Document:
        """Put the winners of these searches into the user's file, of few Configs (`portfolio`), once each is
        right at odd extents too.

        Those of others that a run resumes with were put there by the run that made them.
        """
        while True:
            records = [
                each
                for each in self.log.records
                if each.stem not in FAMILIES or (each.stem, each.dtype, each.layout) in searches
            ]
            few = portfolio.reduced(records, portfolio.chosen(records))
            document = self.decided(winners(few, self.device.name))
            if self._verifier.all_right(document):
                break
        document.policy = dict(self._policy)
        if document:
            merge(document)
            choose.reload()
        return document

    def _winners_of(self, key: SearchKey) -> Document:
        """Return the winners of one search."""
        records = [each for each in self.log.records if (each.stem, each.dtype, each.layout) == key]
        return self.decided(winners(records, self.device.name))

    def decided(self, document: Document) -> Document:
        """`document` without the classes whose present kernel was not tried: there nothing is replaced."""
        searched = [key for key in document.entries if key[0] in FAMILIES]
        current = {
            key: tuned_files.current_configs(*key, self.device) for key in {key[:3] for key in searched}
        }
        for stem, dtype, layout, size in searched:
            key = stem, dtype, layout
            if size in current[key] and not self._was_tried(key, current[key][size], size):
                del document.entries[*key, size]
        return document

    def _was_tried(self, key: SearchKey, config: Any, size: str) -> bool:
        problems = ((size, extents) for extents in tuned_at(key[0], size))
        times = (self.log.seconds(key, config, *problem) for problem in problems)
        return self.log.is_out(key, config) or all(time is not None for time in times)


def routines_of(searches: list[SearchKey]) -> dict[tuple[str, str], None]:
    """Return the routines and dtypes that are tuned."""
    return dict.fromkeys((FAMILIES[stem].routine, dtype) for stem, dtype, _ in searches)


def stages_of(effort: str) -> tuple[str, ...]:
    """Return the stages of a run that names none."""
    return tuple(stage for stage in STAGES if effort != "quick" or stage not in NOT_QUICK)
