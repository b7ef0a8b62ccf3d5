"""A tuning run: which searches, in which order, until when; and the user's file of winners at its end."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from typing import Any, Protocol

from ..database import FAMILIES, STOP_ROUTINES, Document, sizes_of, tuned_at
from ..errors import PyblasgpuError
from ..gpu.compile import Resources
from ..gpu.device import Device
from . import overlay, select
from .bench import Failed, Job, Timed
from .build import Verdict, judge
from .health import Health
from .hunt import Hunt
from .interrupt import Interrupts
from .journal import Journal, Search
from .lab import TICK, Bencher, Lab
from .plan import plan
from .prune import Guidelines, persistent, tile_of
from .recheck import Compiling, Recheck, wait
from .store import merge, winners
from .strategies import (
    STRATEGIES,
    Place,
    Task,
    Times,
    Trial,
    beginning_with,
    ending_with_twins,
    task_of,
)
from .whole import STOPS, search_methods, search_solvers, search_stop, time_vendor, time_whole
from .worker import Lost

__all__ = ["STAGES", "Tuner", "Watcher"]

STAGES = ("kernels", "stop_sizes", "solvers", "methods")  # in the order in which they are tuned

BEST_TILES = {"quick": 3, "normal": 8}  # of each class in the first layout, tried before others in the others
NO_OTHERS = ("quick",)  # efforts that try no more than these
BEFORE = 0.05  # of the budget, after which no more is timed as it was before
SEEN = 2  # batches of the first layout, what serves and what is likeliest, after which others are begun
OTHERS = 0.5  # of the budget, after which they are begun whatever the first is at
KERNELS = 0.8  # of the budget; the rest is for whole routines and for the winners' second verification
SOLVERS = 0.9  # of the budget, after which no more are timed, so that methods are
LIKELIEST = {"quick": 2, "normal": 6}  # Configs of TRSM in one launch that are timed at a place
MOST_LIKELY = 8  # of other efforts
AHEAD = 1  # candidates a compiling process is given beyond the one it has
BETWEEN = 60.0  # seconds for an answer where products between leaves may have to be compiled first


class Watcher(Protocol):
    """Is told how a run goes."""

    def progress(self, done: int, wanted: int, journal: Journal, best: str) -> None: ...

    def say(self, text: str) -> None: ...


class Tuner:
    """One run on one device.

    Parameters
    ----------
    device : Device
    compilers : Compilers
    worker : Worker
        Whose body is a `Bench`.
    watcher : Watcher
    journal : Journal
    health : Health
    effort : str
        As in `space`.
    strategy : str
        One of `STRATEGIES`.
    budget : float or None
        Seconds after which nothing new is begun.
    curves : bool
        Whether whole routines are timed over n before and after.
    guidelines : callable
        Gives the guidelines of a family in a dtype; by default those of `prune.candidates`.
    planner : Executor, optional
        Makes the plans of searches (`plan`); by default a thread of this process.
    sizes : sequence of str, optional
        Size classes that are tuned. Default: all.
    stages : sequence of str, optional
        Those of `STAGES` that are gone through. Default: all.

    Attributes
    ----------
    untried : int
        Candidates that were wanted and for which there was no time.
    unbegun : int
        Searches for which there was none.
    """

    def __init__(
        self,
        device: Device,
        compilers: Compiling,
        worker: Bencher,
        watcher: Watcher,
        journal: Journal,
        health: Health,
        effort: str = "quick",
        strategy: str = "exhaustive",
        budget: float | None = None,
        curves: bool = False,
        guidelines: Callable[[str, str], Guidelines | None] = lambda stem, dtype: None,
        planner: Executor | None = None,
        sizes: Sequence[str] = (),
        stages: Sequence[str] = STAGES,
    ):
        self.device, self.journal, self.health = device, journal, health
        self._interrupts = Interrupts()
        self._lab = Lab(worker, journal, health, self._interrupts)
        self._compilers, self._worker, self._watcher = compilers, worker, watcher
        self._effort, self._strategy, self._curves = effort, STRATEGIES[strategy], curves
        self._guidelines, self._planner = guidelines, planner
        self._sizes, self._stages = sizes, stages
        self._begun, self._budget = time.monotonic(), budget or math.inf
        self._hunts: list[Hunt] = []
        self._compiling: dict[tuple[str, Any], Hunt] = {}
        self._ready: deque[tuple[Hunt, Any]] = deque()
        self._verdicts: dict[tuple[str, Any], Verdict] = {}
        self._running: tuple[Hunt, Any, list[Trial]] | None = None
        self._failed = False  # the candidate that is running
        self._verified: set[tuple[str, Any]] = set()
        self._recheck = Recheck(self._lab, journal, self._job, compilers)
        self._reference: tuple[Search, Trial] | None = None
        self._wanted = self._done = 0
        self.untried = self.unbegun = 0

    def run(self, searches: list[Search], recursive: list[str]) -> Document:
        """Search the families, then stop sizes, solvers and methods of the routines `recursive` with what was
        found.

        Interrupted, it ends with what was measured so far.

        Raises
        ------
        PyblasgpuError
            Where the device is lost for good; the records are kept.
        """
        try:
            with self._interrupts:
                return self._run(searches, recursive)
        except PyblasgpuError as lost:
            kept = f"what was measured is in {self.journal.path}, and --resume goes on with it"
            raise PyblasgpuError(f"{lost}; {kept}") from lost

    def _run(self, searches: list[Search], recursive: list[str]) -> Document:
        routines = dict.fromkeys((FAMILIES[stem].routine, dtype) for stem, dtype, _ in searches)
        try:
            if self._curves:
                # with a cold store of cubins most of it would be compilation, one kernel after the other
                time_whole(self._lab, routines, "before", lambda: self._late(BEFORE))
            for stage in STAGES:
                if stage in self._stages:
                    self._go_through(stage, searches, [pair for pair in routines if pair[0] in recursive])
        except KeyboardInterrupt:
            self._watcher.say("interrupted: what was measured so far decides")
            self._settle()
        found = self._save(searches)
        if not self._late():
            time_vendor(self._lab, found)
            if self._curves:
                time_whole(self._lab, routines, "after")
        return found

    def _go_through(self, stage: str, searches: list[Search], recursive: list[tuple[str, str]]) -> None:
        """One of `STAGES`."""
        if stage == "kernels":
            self._search_kernels(searches)
            return
        self._save(searches)  # whole routines run with what was found before
        if stage == "stop_sizes":
            for routine, dtype in recursive:
                search_stop(self._lab, routine, dtype, self.device, self._late)
        elif stage == "solvers":
            dtypes = [dtype for routine, dtype in recursive if routine == "trsm"]
            options = self.device, LIKELIEST.get(self._effort, MOST_LIKELY), self._compile_solvers
            self.untried += search_solvers(self._lab, dtypes, *options, lambda: self._late(SOLVERS))
        else:
            # SYR2K is of GEMM's kernels, and tuned with them, unless these are of some sizes alone
            products = [key for key in searches if FAMILIES[key[0]].routine == "gemm" and not self._sizes]
            pairs = dict.fromkeys([*recursive, *(("syr2k", dtype) for _, dtype, _ in products)])
            self.untried += search_methods(self._lab, pairs, self._late)

    def _compile_solvers(self, kernels: Collection[tuple[str, Any]]) -> None:
        """What is not compiled when it is late, the worker compiles when it comes to it."""
        for triangle, config in kernels:
            self._compilers.submit(triangle, config)
        wait(self._compilers, self._interrupts, lambda: self._late(SOLVERS))
        self._compilers.drop()

    def _late(self, share: float = 1.0) -> bool:
        return time.monotonic() - self._begun > share * self._budget

    # --------------------------------------------------------------------------------------- searches

    def _search_kernels(self, searches: list[Search]) -> None:
        """Each family in its first layout; then the others, what did best there before all else.

        Their plans are made meanwhile.
        """
        firsts = [key for key in searches if self._is_first(key, searches)]
        order = (*firsts, *(key for key in searches if key not in firsts))
        planner = self._planner or ThreadPoolExecutor(1)
        plans = {
            key: planner.submit(plan, key, self.device, self._effort, self._guidelines(*key[:2]), self._sizes)
            for key in order
        }
        ended: set[tuple[str, str]] = set()
        try:
            while (plans or self._hunts or self._recheck.pending) and not self._late(KERNELS):
                for key in [key for key, made in plans.items() if made.done()]:
                    if key in firsts or self._may_follow(key, ended):
                        configs, rivals = plans.pop(key).result()
                        self._begin(key, configs if key in firsts else self._promising(key, configs), rivals)
                self._step()
                for hunt in [hunt for hunt in self._hunts if hunt.ended]:
                    ended.add(hunt.key[:2])
                    self._hunts.remove(hunt)
                    self._recheck.begin(self._winners_of(hunt.key), self._verdicts)
        finally:
            self.unbegun = len(plans)
            for made in plans.values():
                made.cancel()
            if self._planner is None:
                planner.shutdown(wait=False)
        self._settle()

    def _is_first(self, key: Search, searches: list[Search]) -> bool:
        """Whether all candidates of a search are tried."""
        return self._effort == "exhaustive" or key == _first(key) or _first(key) not in searches

    def _may_follow(self, key: Search, ended: set[tuple[str, str]]) -> bool:
        """Whether the first layout has ended, or said enough for this one to begin."""
        if key[:2] in ended:
            return True
        seen = any(hunt.key == _first(key) and hunt.answered >= SEEN for hunt in self._hunts)
        return (seen or self._late(OTHERS)) and bool(self.journal.timed(_first(key)))

    def _begin(self, key: Search, configs: list[Any], rivals: Mapping[Place, float]) -> None:
        serving = overlay.serving(*key, self.device)
        self._recheck.trust(serving.values())
        configs = list(dict.fromkeys([*serving.values(), *configs]))
        task = task_of(key[0], tuple(configs), self.device, self._sizes)._replace(rivals=rivals)
        strategy = beginning_with(serving, self._strategy) if configs else _nothing
        self._hunts.append(Hunt(key, task, ending_with_twins(strategy, _cache_twin), self.journal))

    def _promising(self, key: Search, configs: list[Any]) -> list[Any]:
        """The candidates, those first whose tiles did best in the first layout: the best of every class, then
        the second best. A quick run tries no others, since layouts differ in their loads only.
        """
        stem, dtype, _ = key
        family, ranks = FAMILIES[stem], dict[tuple, int]()
        for size in sizes_of(stem):
            timed = [record for record in self.journal.timed(_first(key)) if record.size == size]
            timed = sorted(timed, key=lambda record: record.seconds)
            best = [family.config(dtype, record.layout, record.parameters) for record in timed]
            alike_once = list(dict.fromkeys(map(_past_l1, best)))
            for rank, config in enumerate(alike_once[: BEST_TILES[self._effort]]):
                tile = tile_of(config)
                ranks[tile] = min(rank, ranks.get(tile, rank))
        promising, others = list(configs), [] if self._effort in NO_OTHERS else configs
        if family.routine == "gemm":
            promising += [twin for config in configs for twin in persistent(config, self.device)]
        promising = [config for config in promising if tile_of(config) in ranks]
        promising.sort(key=lambda config: ranks[tile_of(config)])
        return list(dict.fromkeys([*promising, *others]))

    def _step(self) -> None:
        """Let something happen."""
        self._interrupts.heed()
        self._feed()
        idle = not (self._worker.busy or self._ready or self._recheck.ready)
        for (stem, config), report in self._compilers.finished(TICK if idle else 0.0):
            # a candidate, what a winner needs for its second verification, or both
            if (stem, config) in self._compiling:
                self._compiled(self._compiling.pop((stem, config)), config, report)
            self._recheck.compiled((stem, config))
        if self._worker.busy:
            self._answered(self._worker.receive(TICK))
        elif self._recheck.ready:
            self._recheck.verify_next()
        elif self._ready:
            if self._reference and self.health.wants_reference:
                self._time_reference()
            self._try(*self._ready.popleft())
        elif not self._compilers.pending:
            time.sleep(TICK / 10)

    def _feed(self) -> None:
        """Give the compilers work, a candidate of each search in turn."""
        room = self._compilers.workers * (1 + AHEAD) - self._compilers.pending
        while room > 0 and (hungry := [hunt for hunt in self._hunts if hunt.wanted]):
            for hunt in hungry:
                config = hunt.wanted.popleft()
                job = hunt.key[0], config
                self._wanted += 1
                if job in self._verdicts:
                    self._judge(hunt, config)
                    continue
                self._compiling[job] = hunt
                self._compilers.submit(*job)
                room -= 1

    def _compiled(self, hunt: Hunt, config: Any, report: Resources | str) -> None:
        self._verdicts[hunt.key[0], config] = judge(config, report, self.device)
        self._judge(hunt, config)

    def _judge(self, hunt: Hunt, config: Any) -> None:
        """Drop what the compiler's report speaks against."""
        verdict = self._verdicts[hunt.key[0], config]
        if verdict.outcome == "ok":
            self._ready.append((hunt, config))
            return
        self.journal.note(hunt.key, "", config, **verdict._asdict())
        self._count(hunt, config, verdict.outcome)

    def _count(self, hunt: Hunt, config: Any, outcome: str) -> None:
        """A candidate is done with."""
        self._done += 1
        self.journal.counts[outcome] += 1
        hunt.close(config, failed=outcome != "ok")
        about = f"{' '.join(hunt.key)}, best {self.journal.top(hunt.key):.1f} TFLOP/s"
        waiting = sum(len(hunt.wanted) for hunt in self._hunts)
        self._watcher.progress(self._done, self._wanted + waiting, self.journal, about)

    # -------------------------------------------------------------------------------------- candidates

    def _try(self, hunt: Hunt, config: Any) -> None:
        """Begin to verify a candidate and to time it."""
        key, trials = hunt.key, hunt.trials(config)
        places = tuple((t.extents, self.journal.best(key, t.size, t.extents)) for t in trials)
        verify = () if (key[0], config) in self._verified else ("aligned",)
        self._running, self._failed = (hunt, config, trials), False
        patience = BETWEEN if FAMILIES[key[0]].routine in STOP_ROUTINES else None
        self._worker.send(self._job(key, config, places, verify), patience)

    @staticmethod
    def _job(key: Search, config: Any, places: tuple = (), verify: tuple[str, ...] = ()) -> Job:
        """The routine, made to run `config`; a recursive one as a single leaf."""
        stem, dtype, layout = key
        routine = FAMILIES[stem].routine
        overrides: list[tuple[str, Any]] = [(stem, config)]
        if routine in STOP_ROUTINES:
            overrides.append((routine, STOPS[-1]))
        return Job(routine, dtype, layout, tuple(overrides), places, verify)

    def _answered(self, answer: Any) -> None:
        """Note what the worker says of the candidate that is running."""
        if answer is None or self._running is None:
            return
        hunt, config, trials = self._running
        if isinstance(answer, Timed):
            trial = trials[answer.place]
            self._lab.add_time(hunt.key, trial.size, FAMILIES[hunt.key[0]].parameters_of(config),
                               trial.extents, answer.seconds)  # fmt: skip
            hunt.measured(trial, answer.seconds)
        elif isinstance(answer, Failed | Lost):
            if not self._failed:
                self.journal.note(hunt.key, "", config, outcome=answer.outcome, detail=answer.detail,
                                  state=self.health.state())  # fmt: skip
                self._failed = True
                self._count(hunt, config, answer.outcome)
        elif not self._failed:
            self._verified.add((hunt.key[0], config))
            if self._reference is None:
                self._reference = hunt.key, max(trials, key=lambda trial: math.prod(trial.extents))
            self._count(hunt, config, "ok")
        if not self._worker.busy:
            self._running = None

    def _settle(self) -> None:
        """End the searches; the worker finishes what it is at."""
        while self._worker.busy:
            self._answered(self._worker.receive(TICK))
        self.untried += sum(hunt.stop() for hunt in self._hunts)
        self.untried += len(self._compiling) + len(self._ready)
        self._hunts.clear()
        for started in (self._compiling, self._ready, self._recheck):
            started.clear()
        self._compilers.drop()

    def _time_reference(self) -> None:
        """Time the first candidate that was right once more: a drift shows."""
        assert self._reference is not None
        key, trial = self._reference
        times, _ = self._lab.finish(self._job(key, trial.config, ((trial.extents, math.inf),)))
        for seconds in times:
            self.health.reference(seconds)
            self._lab.add_time(key, trial.size, FAMILIES[key[0]].parameters_of(trial.config),
                               trial.extents, seconds, "reference")  # fmt: skip

    # ------------------------------------------------------------------------------------------ winners

    def _save(self, searches: list[Search]) -> Document:
        """Put the winners of these searches into the user's file, once each is right at odd extents too.

        Those of others that a run resumes with were put there by the run that made them.
        """
        while True:
            records = [
                each for each in self.journal.records
                if each.stem not in FAMILIES or (each.stem, each.dtype, each.layout) in searches
            ]  # fmt: skip
            found = self._decided(winners(records, self.device.name))
            if self._recheck.all_right(found):
                break
        if found:
            merge(found)
            select.reload()
        return found

    def _winners_of(self, key: Search) -> Document:
        """Those of one search."""
        records = [each for each in self.journal.records if (each.stem, each.dtype, each.layout) == key]
        return self._decided(winners(records, self.device.name))

    def _decided(self, found: Document) -> Document:
        """`found` without the classes whose present kernel was not tried: there nothing is replaced."""
        serving = {key: overlay.serving(*key, self.device) for key in {key[:3] for key in found.entries}}
        for stem, dtype, layout, size in list(found.entries):
            key = stem, dtype, layout
            if size in serving[key] and not self._was_tried(key, serving[key][size], size):
                del found.entries[*key, size]
                found.stop_sizes.pop((FAMILIES[stem].routine, dtype, size), None)
        return found

    def _was_tried(self, key: Search, config: Any, size: str) -> bool:
        places = ((size, extents) for extents in tuned_at(key[0], size))
        times = (self.journal.seconds(key, config, *place) for place in places)
        return self.journal.is_out(key, config) or all(time is not None for time in times)


def _nothing(task: Task) -> Generator[list[Trial], Times, None]:
    """The strategy where there are no candidates."""
    yield from ()


def _cache_twin(config: Any) -> Any:
    """The same product with its copies through the L1 cache, or by it; None where there is no choice."""
    return config.by_cache(not config.through_l1) if hasattr(config, "by_cache") else None


def _past_l1(config: Any) -> Any:
    """Of two such twins the one whose copies pass by the cache."""
    twin = _cache_twin(config)
    return twin if twin and config.through_l1 else config


def _first(key: Search) -> Search:
    """The search of the same family and dtype in its first layout."""
    stem, dtype, _ = key
    return stem, dtype, FAMILIES[stem].layouts[0]
