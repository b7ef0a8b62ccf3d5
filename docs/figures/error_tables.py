"""The table of the worst measured errors over their bounds, for the benchmarks page.

It is made from what `benchmarks.error_bounds` writes: a list ``worst`` of the newest run of a device.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from vendor_tables import runs_of

from pyblasgpu.bench.machine import short_commit

__all__ = ["error_table"]


def error_table(results: Path, device: str) -> Iterator[str]:
    """The lines of the page for a device: a table, or nothing."""
    runs = [run for run in runs_of(results, device) if "worst" in run]
    if not runs:
        return
    run = max(runs, key=lambda run: (run["date"], run["commit"]))
    yield from ("", "## Errors over their bounds", "")
    yield f"The worst of {run['checked']} cases: normal, uniform and graded data, orders from 5 to 1000."
    yield f"[The bounds](../numerics.md) hold up to 1. Measured at {short_commit(run['commit'])}"
    yield "(`python -m benchmarks.error_bounds`)."
    yield from ("", "| routine | error over bound | at |", "|---|---|---|")
    for row in run["worst"]:
        yield f"| {row['routine']} | {row['over']:.2f} | {row['dtype']}, n = {row['n']}, {row['data']} |"
