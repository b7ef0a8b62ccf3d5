"""The search of kernels: each family in its first layout, then in the others.

Candidates go from the compilers to the worker.
"""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol

from ..database import FAMILIES, Document, sizes_of
from ..dispatch import tuned_files
from ..dispatch.product_kinds import persistent
from ..gpu.build.compile import Resources
from ..gpu.device import Device
from .active_search import ActiveSearch
from .candidate_list import CandidateList, CandidateOptions, candidate_list
from .compile_pool import Verdict, judge
from .prune import tile_of
from .runner import TICK, Runner
from .search_problem import Measurement, SearchProblem, Strategy, Times, search_problem_of
from .strategies import beginning_with, ending_with_variants
from .sweep_log import SearchKey, SweepLog
from .verify_winners import CompilersLike, WinnerVerifier
from .worker import Lost
from .worker_bench import Failed, Job, Timing

__all__ = ["KernelSearch", "Watcher", "job_of", "promising"]

BEST_TILES = {"quick": 3, "normal": 8}  # of each class in the first layout, tried before others in the others
NO_OTHERS = ("quick",)  # efforts that try no more than these
SEEN = 2  # batches of the first layout, current Configs and the likeliest, after which others are begun
OTHERS = 0.5  # of the budget, after which they are begun whatever the first is at
KERNELS = 0.8  # of the budget; the rest is for whole routines and for the winners' second verification
AHEAD = 1  # candidates a compiling process is given beyond the one it has
LARGEST_STOP = 1024  # order up to which a recursive routine is a single leaf
BETWEEN = 60.0  # seconds for an answer where products between leaves may have to be compiled first


class Watcher(Protocol):
    """Shows the progress of a run."""

    def progress(self, done: int, wanted: int, log: SweepLog, best: str) -> None: ...

    def say(self, text: str) -> None: ...


class KernelSearch:
    """The search of all kernels of a run.

    Parameters
    ----------
    device : Device
    runner : Runner
    compilers : CompilersLike
    watcher : Watcher
    verifier : WinnerVerifier
        Verifier of the winners of a search when it has ended.
    winners_of : callable
        ``winners_of(key)``, those of a search.
    late : callable
        ``late(share)``, whether that share of the budget is spent.
    strategy : Strategy
    options : CandidateOptions

    Attributes
    ----------
    done : int
        Candidates that were dropped or timed.
    untried : int
        Candidates that were wanted and for which there was no time.
    unbegun : int
        Searches for which there was none.
    """

    def __init__(
        self,
        device: Device,
        runner: Runner,
        compilers: CompilersLike,
        watcher: Watcher,
        verifier: WinnerVerifier,
        winners_of: Callable[[SearchKey], Document],
        late: Callable[[float], bool],
        strategy: Strategy,
        options: CandidateOptions,
    ):
        self._device, self._runner, self._log = device, runner, runner.log
        self._compilers, self._watcher, self._verifier = compilers, watcher, verifier
        self._winners_of, self._late = winners_of, late
        self._strategy, self._options = strategy, options
        self._active: list[ActiveSearch] = []
        self._compiling: dict[tuple[str, Any], ActiveSearch] = {}
        self._ready: deque[tuple[ActiveSearch, Any]] = deque()
        self._verdicts: dict[tuple[str, Any], Verdict] = {}
        self._running: tuple[ActiveSearch, Any, list[Measurement]] | None = None
        self._failed = False  # the candidate that is running
        self._verified: set[tuple[str, Any]] = set()
        self._reference: tuple[SearchKey, Measurement] | None = None
        self._wanted = 0
        self.done = self.untried = self.unbegun = 0

    def run(self, searches: list[SearchKey]) -> None:
        """Each family in its first layout; then the others, what did best there before all else.

        Their lists of candidates are made meanwhile.
        """
        firsts = [key for key in searches if self._is_first(key, searches)]
        order = (*firsts, *(key for key in searches if key not in firsts))
        of = self._options
        executor = of.executor or ThreadPoolExecutor(1)
        lists = {
            key: executor.submit(
                candidate_list, key, self._device, of.effort, of.guidelines(*key[:2]), of.sizes
            )
            for key in order
        }
        ended: set[tuple[str, str]] = set()
        try:
            while (lists or self._active or self._verifier.pending) and not self._late(KERNELS):
                for key in [key for key, made in lists.items() if made.done()]:
                    if key in firsts or self._may_follow(key, ended):
                        self._begin(key, lists.pop(key).result(), all_candidates=key in firsts)
                self._step()
                for active in [active for active in self._active if active.ended]:
                    ended.add(active.key[:2])
                    self._active.remove(active)
                    self._verifier.begin(self._winners_of(active.key), self._verdicts)
        finally:
            self.unbegun = len(lists)
            for made in lists.values():
                made.cancel()
            if of.executor is None:
                executor.shutdown(wait=False)
        self.settle()

    def _is_first(self, key: SearchKey, searches: list[SearchKey]) -> bool:
        """Whether all candidates of a search are tried."""
        return self._options.effort == "exhaustive" or key == _first(key) or _first(key) not in searches

    def _may_follow(self, key: SearchKey, ended: set[tuple[str, str]]) -> bool:
        """Whether the first layout has ended, or has had its likeliest candidates timed."""
        if key[:2] in ended:
            return True
        seen = any(active.key == _first(key) and active.answered >= SEEN for active in self._active)
        return (seen or self._late(OTHERS)) and bool(self._log.timed(_first(key)))

    def _begin(self, key: SearchKey, candidates: CandidateList, all_candidates: bool) -> None:
        current = tuned_files.current_configs(*key, self._device)
        self._verifier.trust(current.values())
        configs = candidates.configs
        if not all_candidates:
            configs = promising(key, configs, self._log, self._device, self._options.effort)
        configs = list(dict.fromkeys([*current.values(), *configs]))
        search = search_problem_of(key[0], tuple(configs), self._device, self._options.sizes)
        search = search._replace(other_families_best=candidates.other_families_best)
        strategy = beginning_with(current, self._strategy) if configs else _nothing
        self._active.append(
            ActiveSearch(key, search, ending_with_variants(strategy, _cache_variant), self._log)
        )

    def _step(self) -> None:
        """Feed the compilers, take what they have compiled, and one answer of the worker."""
        self._runner.interrupts.check()
        self._feed()
        idle = not (self._runner.worker.busy or self._ready or self._verifier.ready)
        for (stem, config), report in self._compilers.finished(TICK if idle else 0.0):
            # a candidate, what a winner needs for its second verification, or both
            if (stem, config) in self._compiling:
                self._compiled(self._compiling.pop((stem, config)), config, report)
            self._verifier.compiled((stem, config))
        if self._runner.worker.busy:
            self._answered(self._runner.worker.receive(TICK))
        elif self._verifier.ready:
            self._verifier.verify_next()
        elif self._ready:
            if self._reference and self._runner.monitor.wants_reference:
                self._time_reference()
            self._try(*self._ready.popleft())
        elif not self._compilers.pending:
            time.sleep(TICK / 10)

    def _feed(self) -> None:
        """Give the compilers work, a candidate of each search in turn."""
        free_slots = self._compilers.workers * (1 + AHEAD) - self._compilers.pending
        while free_slots > 0 and (hungry := [active for active in self._active if active.wanted]):
            for active in hungry:
                config = active.wanted.popleft()
                job = active.key[0], config
                self._wanted += 1
                if job in self._verdicts:
                    self._judge(active, config)
                    continue
                self._compiling[job] = active
                self._compilers.submit(*job)
                free_slots -= 1

    def _compiled(self, active: ActiveSearch, config: Any, report: Resources | str) -> None:
        self._verdicts[active.key[0], config] = judge(config, report, self._device)
        self._judge(active, config)

    def _judge(self, active: ActiveSearch, config: Any) -> None:
        """Drop a candidate that spills, or of which no block fits."""
        verdict = self._verdicts[active.key[0], config]
        if verdict.outcome == "ok":
            self._ready.append((active, config))
            return
        self._log.note(active.key, "", config, **verdict._asdict())
        self._count(active, config, verdict.outcome)

    def _count(self, active: ActiveSearch, config: Any, outcome: str) -> None:
        """A candidate is done with."""
        self.done += 1
        self._log.counts[outcome] += 1
        active.close(config, failed=outcome != "ok")
        about = f"{' '.join(active.key)}, best {self._log.top(active.key):.1f} TFLOP/s"
        waiting = sum(len(active.wanted) for active in self._active)
        self._watcher.progress(self.done, self._wanted + waiting, self._log, about)

    # -------------------------------------------------------------------------------------- candidates

    def _try(self, active: ActiveSearch, config: Any) -> None:
        """Begin to verify a candidate and to time it."""
        key, measurements = active.key, active.measurements(config)
        problems = tuple((t.extents, self._log.best(key, t.size, t.extents)) for t in measurements)
        verify = () if (key[0], config) in self._verified else ("aligned",)
        self._running, self._failed = (active, config, measurements), False
        patience = BETWEEN if FAMILIES[key[0]].is_leaf else None
        self._runner.worker.send(job_of(key, config, problems, verify), patience)

    def _answered(self, answer: Any) -> None:
        """Log an answer of the worker on the candidate that is running."""
        if answer is None or self._running is None:
            return
        active, config, measurements = self._running
        if isinstance(answer, Timing):
            measurement = measurements[answer.number]
            self._runner.add_time(
                active.key,
                measurement.size,
                FAMILIES[active.key[0]].parameters_of(config),
                measurement.extents,
                answer.seconds,
            )
            active.measured(measurement, answer.seconds)
        elif isinstance(answer, Failed | Lost):
            if not self._failed:
                self._log.note(
                    active.key,
                    "",
                    config,
                    outcome=answer.outcome,
                    detail=answer.detail,
                    state=self._runner.monitor.state(),
                )
                self._failed = True
                self._count(active, config, answer.outcome)
        elif not self._failed:
            self._verified.add((active.key[0], config))
            if self._reference is None:
                self._reference = (
                    active.key,
                    max(measurements, key=lambda measurement: math.prod(measurement.extents)),
                )
            self._count(active, config, "ok")
        if not self._runner.worker.busy:
            self._running = None

    def settle(self) -> None:
        """End the searches; the worker finishes what it is at."""
        while self._runner.worker.busy:
            self._answered(self._runner.worker.receive(TICK))
        self.untried += sum(active.stop() for active in self._active)
        self.untried += len(self._compiling) + len(self._ready)
        self._active.clear()
        for started in (self._compiling, self._ready, self._verifier):
            started.clear()
        self._compilers.drop()

    def _time_reference(self) -> None:
        """Time the first verified candidate once more, which shows a drift."""
        assert self._reference is not None
        key, measurement = self._reference
        times, _ = self._runner.finish(job_of(key, measurement.config, ((measurement.extents, math.inf),)))
        for seconds in times:
            self._runner.monitor.reference(seconds)
            self._runner.add_time(
                key,
                measurement.size,
                FAMILIES[key[0]].parameters_of(measurement.config),
                measurement.extents,
                seconds,
                "reference",
            )


def job_of(key: SearchKey, config: Any, problems: tuple = (), verify: tuple[str, ...] = ()) -> Job:
    """The routine, made to run `config`; a recursive one as a single leaf."""
    stem, dtype, layout = key
    routine = FAMILIES[stem].routine
    overrides: list[tuple[str, Any]] = [(stem, config)]
    if FAMILIES[stem].is_leaf:
        overrides.append((routine, LARGEST_STOP))
    return Job(routine, dtype, layout, tuple(overrides), problems, verify)


def promising(key: SearchKey, configs: list[Any], log: SweepLog, device: Device, effort: str) -> list[Any]:
    """The candidates, those first whose tiles did best in the first layout.

    The best tile of every class is first, then the second best. A quick run tries no others, since layouts
    differ in their loads only.

    Parameters
    ----------
    key : SearchKey
    configs : list
        The candidates.
    log : SweepLog
        With the times of the first layout.
    device : Device
    effort : str
    """
    stem, dtype, _ = key
    family, ranks = FAMILIES[stem], dict[tuple, int]()
    for size in sizes_of(stem):
        timed = [record for record in log.timed(_first(key)) if record.size == size]
        timed = sorted(timed, key=lambda record: record.seconds)
        best = [family.config(dtype, record.layout, record.parameters) for record in timed]
        without_l1 = list(dict.fromkeys(map(_without_l1, best)))
        for rank, config in enumerate(without_l1[: BEST_TILES[effort]]):
            tile = tile_of(config)
            ranks[tile] = min(rank, ranks.get(tile, rank))
    chosen, others = list(configs), [] if effort in NO_OTHERS else configs
    if family.routine == "gemm":
        chosen += [each for config in configs for each in persistent(config, device)]
    chosen = [config for config in chosen if tile_of(config) in ranks]
    chosen.sort(key=lambda config: ranks[tile_of(config)])
    return list(dict.fromkeys([*chosen, *others]))


def _nothing(search: SearchProblem) -> Generator[list[Measurement], Times, None]:
    """The strategy where there are no candidates."""
    yield from ()


def _cache_variant(config: Any) -> Any:
    """The variant whose copies pass through the L1 cache, or bypass it; None where there is none."""
    return config.with_cache_policy(not config.through_l1) if hasattr(config, "with_cache_policy") else None


def _without_l1(config: Any) -> Any:
    """`config`, or its variant whose copies bypass the L1 cache."""
    variant = _cache_variant(config)
    return variant if variant and config.through_l1 else config


def _first(key: SearchKey) -> SearchKey:
    """The search of the same family and dtype in its first layout."""
    stem, dtype, _ = key
    return stem, dtype, FAMILIES[stem].layouts[0]
