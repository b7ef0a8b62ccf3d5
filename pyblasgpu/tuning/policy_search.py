"""The values of the policy, measured: calls timed with one value after the other, winners twice."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

from ..database.policy import MAX_VALUE, Policy, Trial, is_by_dtype, merged, trials
from ..dispatch.leaf import runs
from ..dispatch.tuned_files import policy_of
from ..errors import BackendUnavailable
from ..gpu.device import Device
from .policy_strategies import PolicyCall, decision, is_better, loss
from .runner import Runner
from .worker_bench import Job

__all__ = ["LAYOUT", "PolicySearch", "wanted"]

LAYOUT = "policy"  # in the records, where those of kernels have theirs
PATIENCE = 300.0  # seconds for an answer: there may be kernels that nobody has compiled yet
FEW, ORDER = 8, 100  # columns for which triangles take other ways, and rows with which these are verified
#: Routines that are tuned; others are made of them, and measured where all of them are.
PARTS = {"gemm", "trmm", "trsm"}


def wanted(routines: Collection[str], dtypes: Collection[str]) -> dict[str, Trial]:
    """Return the trials of values that matter for what is tuned, in the dtypes that they share with it."""
    found = {}
    for name, trial in trials().items():
        needed = {trial.routine} if trial.routine in PARTS else PARTS
        kept = "".join(letter for letter in trial.dtypes if letter in dtypes)
        complete = kept == trial.dtypes or (is_by_dtype(name) and kept)
        if needed <= set(routines) and complete:
            found[name] = trial._replace(dtypes=kept)
    return found


class PolicySearch:
    """The search of the values of one device.

    Parameters
    ----------
    runner : Runner
    device : Device
    late : callable
        Whether nothing new is to be begun.
    say : callable
        Takes a line that shows what was measured.

    Attributes
    ----------
    values : dict
        Measured values, by name; of a value by dtype those of the dtypes that were measured.
    untimed : int
        Values for which there was no time.
    """

    def __init__(self, runner: Runner, device: Device, late: Callable[[], bool], say: Callable[[str], None]):
        self._runner, self._device, self._late, self._say = runner, device, late, say
        self._known = dict(_timed(runner))
        self.values: dict[str, Any] = {}
        self.untimed = 0

    def run(self, chosen: Mapping[str, Trial]) -> dict[str, Any]:
        """Measure the values one by one, each with those before it; returns `values`."""
        for name, trial in chosen.items():
            try:
                self._check(trial)
            except BackendUnavailable as obstacle:
                self._note(name, "", outcome="absent", detail=str(obstacle))
                continue
            for dtypes in list(trial.dtypes) if is_by_dtype(name) else [trial.dtypes]:
                if self._late():
                    self.untimed += 1
                    continue
                self._measure(name, trial, dtypes)
        return self.values

    def _check(self, trial: Trial) -> None:
        """Raise BackendUnavailable where the device cannot run what the trial compares."""
        if trial.needs and not runs(trial.needs, self._device):
            raise BackendUnavailable(f"{trial.needs} cannot run on {self._device.name}")

    def _measure(self, name: str, trial: Trial, dtypes: str) -> None:
        """Measure one value, of one dtype or of several together."""
        present = self._present(name, dtypes)
        steps = decision(trial, dtypes, present)
        batch = next(steps)
        while True:
            seconds = self._time(name, trial, batch)
            if seconds is None:
                self.untimed += 1
                return
            try:
                batch = steps.send(seconds)
            except StopIteration as ended:
                found = ended.value
                break
        if found is None:
            return
        if found != present and not self._holds(name, trial, dtypes, found, present):
            found = present
        if found != present or not is_by_dtype(name) or dtypes in getattr(self._policy(), name):
            self._decide(name, dtypes, found, present)

    def _decide(self, name: str, dtypes: str, value: Any, present: Any) -> None:
        """Keep a value, for the searches after it and for the file."""
        if not isinstance(value, dict):
            value = float(f"{value:.4g}") if value < 1 else int(value)
        if is_by_dtype(name):
            self.values[name] = {**self.values.get(name, {}), dtypes: value}
        else:
            self.values[name] = value
        self._note(name, dtypes[0], outcome="decided", detail=str(value))
        self._say(f"{name} ({', '.join(dtypes)}): {value}" + (f", was {present}" if value != present else ""))

    # ------------------------------------------------------------------------------------------- values

    def _policy(self) -> Policy:
        """The values that hold now: those that were measured, over those of the files."""
        return merged(policy_of(self._device), self.values)

    def _present(self, name: str, dtypes: str) -> Any:
        value = getattr(self._policy(), name)
        # a bound that is not there is one that is never reached
        return value.get(dtypes, MAX_VALUE) if is_by_dtype(name) else value

    def _put(self, name: str, trial: Trial, dtype: str, value: Any) -> tuple[tuple[str, Any], ...]:
        """The values of a job, by name: those so far, those of the trial, and the one that is tried."""
        policy = self._policy()
        if trial.by == "widths" and not isinstance(value, Mapping):
            value = {str(int(value)): 0} if value else {}
        meanwhile: dict[str, Any] = {}
        for other, each in (*trial.others, (name, value)):
            meanwhile[other] = {**getattr(policy, other), dtype: each} if is_by_dtype(other) else each
        return tuple(sorted({**{key: getattr(policy, key) for key in self.values}, **meanwhile}.items()))

    # -------------------------------------------------------------------------------------------- times

    def _time(self, name: str, trial: Trial, batch: Sequence[PolicyCall]) -> dict[PolicyCall, float] | None:
        """The seconds of calls, of a value and dtype by one job; None where it gets late."""
        seconds = {call: self._known[key] for call in batch if (key := _key(name, call)) in self._known}
        jobs: dict[tuple[str, float], list[PolicyCall]] = {}
        for call in batch:
            if call not in seconds:
                jobs.setdefault((call.dtype, call.value), []).append(call)
        for (dtype, value), calls in jobs.items():
            if self._late():
                return None
            policy = self._put(name, trial, dtype, value)
            for call, time in self._finish(name, trial, dtype, policy, calls).items():
                seconds[call] = time
                parameters = {"value": _whole(value)}
                self._runner.add_time(
                    (name, dtype, LAYOUT), _point(call), parameters, call.extents, time, routine=trial.routine
                )
        return seconds

    def _finish(
        self, name: str, trial: Trial, dtype: str, policy: Any, calls: Sequence[PolicyCall]
    ) -> dict[PolicyCall, float]:
        """Run calls with one policy; what fails is noted, and those after it are run for themselves."""
        seconds: dict[PolicyCall, float] = {}
        left = list(calls)
        while left:
            job = _job(trial, dtype, policy, [call.extents for call in left])
            times, failure = self._runner.finish(job, PATIENCE)
            seconds |= dict(zip(left, times, strict=False))
            if failure is None:
                break
            failed = left[min(len(times), len(left) - 1)]
            facts = {"outcome": failure.outcome, "detail": failure.detail, "extents": failed.extents}
            self._note(name, dtype, _point(failed), {"value": _whole(failed.value)}, **facts)
            if failure.outcome == "spoils":  # it is not known which call did
                return {}
            left = left[len(times) + 1 :]
        return seconds

    def _note(self, name: str, dtype: str, size: str = "", parameters: Any = None, **facts: Any) -> None:
        self._runner.log.add((name, dtype, LAYOUT), size, parameters or {}, **facts)

    # --------------------------------------------------------------------------------- verified again

    def _holds(self, name: str, trial: Trial, dtypes: str, found: Any, present: Any) -> bool:
        """Whether results are right with what was found, and it is faster when all is timed once more."""
        for dtype in dtypes:
            for value in _ways(trial, found):
                job = _job(trial, dtype, self._put(name, trial, dtype, value), [])
                _, failure = self._runner.finish(job._replace(verify=_verified(trial)), PATIENCE)
                if failure is not None:
                    detail = f"when it was verified: {failure.detail}"
                    self._note(name, dtype, "", outcome=failure.outcome, detail=detail)
                    return False
        times: dict[str, list[float]] = {"found": [], "present": []}
        for dtype in dtypes:
            calls = [PolicyCall(dtype, 0, extents) for extents in trial.points]
            both = {
                which: self._finish(name, trial, dtype, self._put(name, trial, dtype, value), calls)
                for which, value in (("found", found), ("present", present))
            }
            if self._late():
                return False
            for which, seconds in both.items():
                times[which] += [seconds.get(call, math.inf) for call in calls]
        return _is_faster(times["found"], times["present"])


def _is_faster(found: Sequence[float], present: Sequence[float]) -> bool:
    """Whether calls are faster with what was found, of those that ran at all."""
    pairs = [pair for pair in zip(found, present, strict=True) if min(pair) < math.inf]
    if not pairs:
        return False
    best = [min(pair) for pair in pairs]
    return is_better(loss([new for new, _ in pairs], best), loss([old for _, old in pairs], best))


def _ways(trial: Trial, found: Any) -> list[Any]:
    """The values with which small calls take the ways that were found: of widths each, in all orders."""
    if trial.by == "widths":
        return [int(width) for width, least in found.items() if least < MAX_VALUE]
    if trial.by in ("most", "below"):
        return [MAX_VALUE]
    return [0] if trial.by in ("least", "beyond") else [found]


def _verified(trial: Trial) -> tuple[str | tuple[int, int], ...]:
    """The extents at which results are verified: those of every kernel, and few columns where trials have."""
    columns = min(extents[-1] for extents in trial.points)
    is_of_few = trial.routine in ("trmm", "trsm") and columns <= FEW
    return ("aligned", "odd", (ORDER, columns)) if is_of_few else ("aligned", "odd")


def _job(trial: Trial, dtype: str, policy: Any, extents: Sequence[tuple[int, ...]]) -> Job:
    layout = "nn" if trial.routine == "gemm" else "any"
    problems = tuple((each, math.inf) for each in extents)
    changes = {"reload": True, "policy": policy, "on_host": trial.on_host}
    return Job(trial.routine, dtype, layout, trial.overrides, problems, **changes)


def _point(call: PolicyCall) -> str:
    return "x".join(map(str, call.extents))


def _whole(value: float) -> int:
    """A value as records have it, which hold integers: of seconds their picoseconds."""
    return round(value * 1e12) if 0 < value < 1 else int(value)


def _key(name: str, call: PolicyCall) -> tuple[str, str, int, tuple[int, ...]]:
    return name, call.dtype, _whole(call.value), call.extents


def _timed(runner: Runner) -> Iterator[tuple[tuple[str, str, int, tuple[int, ...]], float]]:
    """The calls that a run which is resumed has timed."""
    for record in runner.log.records:
        if record.layout == LAYOUT and record.outcome == "ok":
            yield (record.stem, record.dtype, record.parameters["value"], record.extents), record.seconds
