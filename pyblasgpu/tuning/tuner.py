"""The search of a tuning run: compile, verify, time, and put the winners into the user's file."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from itertools import chain, product, zip_longest
from typing import Any

from rich.progress import Progress

from ..database import FAMILIES, RHS_AT, STOP_ROUTINES, Document, sizes_of, tuned_at
from ..errors import PyblasgpuError
from ..gpu import memory
from ..gpu.device import Device
from ..types import DTYPES
from . import select
from .build import compile_all, complaint
from .measure import Timer, Workload, flops
from .prune import candidates, tile_of
from .store import Record, append, merge, sweep_file, winners
from .verify import WrongResult, verify

__all__ = ["ROUTINES", "STEMS", "Search", "Tuner"]

STREAM = 0  # the legacy default stream
STEMS = {"gemm": "gemm_tile", "trmm": "trmm_leaf", "trsm": "trsm_leaf"}
ROUTINES = {stem: routine for routine, stem in STEMS.items()}
STOPS = (64, 128, 256, 512, 1024)
STOP_ORDER = 2048  # of the triangle on which stop sizes are compared
BEST_TILES = 3  # of each class in the first layout, tried in the others

#: (family, dtype, layout), what is searched separately.
Search = tuple[str, str, str]


class Tuner:
    """One run on one device.

    Parameters
    ----------
    device : Device
    routine : callable
        Gives the function of a routine by name.
    effort : str
        As in `space`.
    budget : float or None
        Seconds after which nothing new is begun.
    progress : rich.progress.Progress
    """

    def __init__(
        self,
        device: Device,
        routine: Callable[[str], Callable],
        effort: str,
        budget: float | None,
        progress: Progress,
    ):
        memory.use(device.ordinal)
        self.device, self.routine, self.effort, self.progress = device, routine, effort, progress
        self.records: list[Record] = []
        self.sweep = sweep_file(device.name)
        self.timer, self.workload = Timer(STREAM), Workload(device.ordinal, STREAM)
        self._deadline = time.monotonic() + (budget or math.inf)
        self._best: dict[tuple, float] = {}
        self._right_at_odd: set[Any] = set()

    def run(self, searches: list[Search], recursive: list[str]) -> Document:
        """Search the families, then the stop sizes of the routines `recursive` with what was found.

        Interrupted, it ends with what was measured so far.
        """
        try:
            if self.effort == "exhaustive":
                self._search({key: self._candidates(key) for key in searches})
            else:
                first = [key for key in searches if key[2] == FAMILIES[key[0]].layouts[0]]
                self._search({key: self._candidates(key) for key in first})
                self._search({key: self._promising(key) for key in searches if key not in first})
            self._save()
            for routine in recursive:
                for dtype in dict.fromkeys(dtype for stem, dtype, _ in searches if stem == STEMS[routine]):
                    self._search_stop(routine, dtype)
        except KeyboardInterrupt:
            self.progress.console.print("interrupted: what was measured so far decides")
        finally:
            self.workload.release()
        return self._save()

    def _candidates(self, key: Search) -> list[Any]:
        return candidates(*key, self.device, self.effort).left

    def _promising(self, key: Search) -> list[Any]:
        """Candidates whose tiles did best in the first layout: layouts differ in their loads only."""
        stem, dtype, _ = key
        family = FAMILIES[stem]
        first, tiles = (stem, dtype, family.layouts[0]), set()
        for size in sizes_of(stem):
            timed = [record for record in self._timed(first) if record.size == size]
            for record in sorted(timed, key=lambda record: record.seconds)[:BEST_TILES]:
                tiles.add(tile_of(family.config(dtype, record.layout, record.parameters)))
        return [config for config in self._candidates(key) if tile_of(config) in tiles]

    def _timed(self, key: Search) -> list[Record]:
        return [r for r in self.records if r.outcome == "ok" and (r.stem, r.dtype, r.layout) == key]

    def _search(self, pools: dict[Search, list[Any]]) -> None:
        """Compile all candidates; meanwhile verify and time those that the compiler's report leaves."""
        rounds = zip_longest(*([(key, config) for config in configs] for key, configs in pools.items()))
        keys = {(key[0], config): key for key, config in filter(None, chain.from_iterable(rounds))}
        task = self.progress.add_task("timing", total=len(keys))
        for (stem, config), report in compile_all(keys, self.device.cc):
            key = keys[stem, config]
            outcome, detail = complaint(config, report, self.device)
            if self._late():
                break
            if outcome == "ok":
                self._try(key, config)
            else:
                self._note(key, "", config, outcome=outcome, detail=detail)
            best = max((record.tflops for record in self._timed(key)), default=0.0)
            so_far = f"{' '.join(key)}, best {best:.1f} TFLOP/s"
            self.progress.update(task, advance=1, description=so_far)

    def _late(self) -> bool:
        return time.monotonic() > self._deadline

    def _try(self, key: Search, config: Any) -> None:
        """Verify a candidate and time it in every size class."""
        stem, dtype, layout = key
        name = ROUTINES[stem]
        routine, facts = self.routine(name), DTYPES[dtype]
        try:
            with _preferred(stem, config):
                verify(routine, name, facts, layout, self.device.ordinal, STREAM)
                for size in sizes_of(stem):
                    for extents in tuned_at(stem, size):
                        call = self.workload.call(routine, name, facts, layout, extents)
                        place = (*key, size, extents)
                        best = self._best.get(place, math.inf)
                        seconds = self.timer(call, best)
                        self._best[place] = min(seconds, best)
                        rate = flops(name, facts, extents) / seconds / 1e12
                        self._note(key, size, config, extents=extents, seconds=seconds, tflops=rate)
        except (PyblasgpuError, MemoryError) as problem:
            outcome = "wrong" if isinstance(problem, WrongResult) else "error"
            self._note(key, "", config, outcome=outcome, detail=str(problem))
            self._require_alive(problem)

    def _require_alive(self, problem: Exception) -> None:
        """After some errors nothing runs any more in this process: say so once instead of on and on."""
        try:
            memory.synchronize(STREAM)
        except PyblasgpuError as lost:
            raise PyblasgpuError(
                f"the device does not answer after: {problem}; what was measured is in {self.sweep}"
            ) from lost

    def _search_stop(self, routine: str, dtype: str) -> None:
        """Time the whole routine for every stop size, with the Configs that were just found."""
        facts, function = DTYPES[dtype], self.routine(routine)
        timing = self.progress.add_task(f"stop size {dtype}{routine}", total=len(STOPS) * len(RHS_AT))
        for (size, rhs), stop in product(RHS_AT.items(), STOPS):
            if self._late():
                return
            key, extents = (routine, dtype, "any"), (STOP_ORDER, rhs)
            with select.override(routine, stop):
                seconds = self.timer(self.workload.call(function, routine, facts, "any", extents))
            rate = flops(routine, facts, extents) / seconds / 1e12
            self._add(key, size, {"stop": stop}, extents=extents, seconds=seconds, tflops=rate)
            self.progress.advance(timing)

    def _note(self, key: Search, size: str, config: Any, **facts: Any) -> None:
        self._add(key, size, FAMILIES[key[0]].parameters_of(config), **facts)

    def _add(self, key: Search, size: str, parameters: dict[str, int], **facts: Any) -> None:
        record = Record(self.device.name, self.device.arch, *key, size, parameters=parameters, **facts)
        self.records.append(record)
        append(self.sweep, record)

    def _save(self) -> Document:
        """Put the winners into the user's file, once each is right at odd extents too."""
        found = winners(self.records, self.device.name)
        while wrong := self._wrong_at_odd(found):
            for key, config in wrong.items():
                self._note(key, "", config, outcome="wrong", detail="at odd extents")
            found = winners(self.records, self.device.name)
        merge(found)
        select.reload()
        return found

    def _wrong_at_odd(self, found: Document) -> dict[Search, Any]:
        """A winner of each search that fails where operands are unaligned, which takes kernels of its own."""
        fresh = {}
        for (stem, dtype, layout, _), entry in found.entries.items():
            config = FAMILIES[stem].config(dtype, layout, entry.parameters)
            if config not in self._right_at_odd:
                fresh[config] = (stem, dtype, layout)
        for _ in compile_all([(key[0], _scalar(config)) for config, key in fresh.items()], self.device.cc):
            pass  # they are in the store of cubins now
        wrong = {}
        for config, key in fresh.items():
            stem, dtype, layout = key
            name = ROUTINES[stem]
            try:
                with _preferred(stem, config):
                    routine, facts = self.routine(name), DTYPES[dtype]
                    verify(routine, name, facts, layout, self.device.ordinal, STREAM, "odd")
                self._right_at_odd.add(config)
            except WrongResult:
                wrong[key] = config
        return wrong


def _scalar(config: Any) -> Any:
    """The Config that runs where operands are unaligned."""
    return config.unaligned(True, True) if hasattr(config, "unaligned") else config


@contextmanager
def _preferred(stem: str, config: Any) -> Iterator[None]:
    """Make the routine run `config`; a recursive one as a single leaf."""
    with ExitStack() as held:
        held.enter_context(select.override(stem, config))
        if ROUTINES[stem] in STOP_ROUTINES:
            held.enter_context(select.override(ROUTINES[stem], STOPS[-1]))
        yield
