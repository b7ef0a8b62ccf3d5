"""Results of `benchmarks.contest`; of each case the newest measurement counts."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from vendor_tables import runs_of

from pyblasgpu.bench.machine import short_commit

__all__ = ["RIVALS", "contest_cases"]

#: What has the rival's milliseconds: PyTorch's, or SciPy's of what PyTorch lacks.
RIVALS = ("torch_ms", "scipy_ms")


class Case(NamedTuple):
    routine: str
    count: int
    m: int
    n: int
    dtype: str


def contest_cases(results: Path, device: str) -> dict[Case, tuple[dict[str, Any], str]]:
    """What a device has measured, each case once, and the commit."""
    newest: dict[Case, tuple[dict[str, Any], str]] = {}
    for run in sorted(runs_of(results, device), key=lambda run: run["date"]):
        for row in run.get("results", []):
            if any(name in row for name in RIVALS) and "problem" not in row:
                case = Case(row["routine"], row["count"], row["m"], row["n"], row["dtype"])
                newest[case] = row, short_commit(run["commit"])
    return newest
