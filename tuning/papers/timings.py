"""What experiments have timed, a line each in a file: one that was cut short goes on where it was."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pyblasgpu.tuning.worker_bench import Job

__all__ = ["FILE", "Timings"]

FILE = "timings.jsonl"  # in the folder of results


class Timings:
    """Rates and failures by job, those of a file first; of one device, and of one text of the kernels.

    Parameters
    ----------
    path : Path, optional
        The file; without one all is forgotten at the end.
    device, kernels : str
        What the rates belong to: the device's name, the digest of the kernels' text.
    """

    def __init__(self, path: Path | None = None, device: str = "", kernels: str = ""):
        self._path, self._on = path, {"device": device, "kernels": kernels}
        self._rates: dict[str, float] = {}
        self._failures: dict[str, str] = {}
        if path is not None and path.exists():
            for line in path.read_text().splitlines():
                self._take(line)

    @classmethod
    def last_of(cls, path: Path) -> Timings:
        """Timings of a file that belong to what its last line belongs to.

        Raises
        ------
        ValueError
            Where the file has no such line.
        OSError
            Where it cannot be read.
        """
        for line in reversed(path.read_text().splitlines()):
            try:
                facts = json.loads(line)
                return cls(path, facts["device"], facts["kernels"])
            except (ValueError, KeyError, TypeError):
                continue  # cut off
        raise ValueError(f"{path} holds no timings")

    @property
    def device(self) -> str:
        """The name of the device."""
        return self._on["device"]

    def __len__(self) -> int:
        return len(self._rates) + len(self._failures)

    def rate(self, job: Job, extents: tuple[int, ...], repeat: int = 0) -> float | None:
        """TFLOP/s, where they are known."""
        return self._rates.get(_key(_facts(job, extents, repeat)))

    def failure(self, job: Job) -> str | None:
        """Why a job has no rates, where that is known."""
        return self._failures.get(_key(_facts(job)))

    def record(self, job: Job, extents: tuple[int, ...], tflops: float, repeat: int = 0) -> None:
        """Keep a rate."""
        facts = _facts(job, extents, repeat)
        self._rates[_key(facts)] = tflops
        self._append({**facts, "tflops": tflops})

    def record_failure(self, job: Job, outcome: str) -> None:
        """Keep that a job fails."""
        facts = _facts(job)
        self._failures[_key(facts)] = outcome
        self._append({**facts, "outcome": outcome})

    def _take(self, line: str) -> None:
        """A line of the file; one that was cut off, or is of another device or text, counts for nothing."""
        try:
            facts = json.loads(line)
            on = {name: facts.pop(name) for name in self._on}
            rate, outcome = facts.pop("tflops", None), facts.pop("outcome", None)
        except (ValueError, KeyError, AttributeError):
            return
        if on != self._on:
            return
        if rate is not None:
            self._rates[_key(facts)] = rate
        elif outcome is not None:
            self._failures[_key(facts)] = outcome

    def _append(self, facts: dict[str, Any]) -> None:
        if self._path is not None:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with self._path.open("a") as file:
                file.write(json.dumps({**self._on, **facts}) + "\n")


def _facts(job: Job, extents: tuple[int, ...] = (), repeat: int = 0) -> dict[str, Any]:
    return {
        "routine": job.routine,
        "dtype": job.dtype,
        "layout": job.layout,
        "overrides": [[name, str(value)] for name, value in job.overrides],
        "vendor": job.vendor,
        "extents": list(extents),
        "repeat": repeat,
    }


def _key(facts: dict[str, Any]) -> str:
    return json.dumps(facts, sort_keys=True)
