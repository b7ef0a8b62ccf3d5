"""Tables of PyTorch's and JAX's programs by this library, from results of `benchmarks.frameworks`.

Of each case the newest measurement counts.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from readme_table import geometric_mean
from vendor_tables import runs_of

from pyblasgpu.bench.machine import short_commit

__all__ = ["WAYS", "Measured", "framework_rows", "framework_tables"]

STEP_PARTS = ("steps", "jax", "gpytorch", "botorch", "stacks")
PARTS = (*STEP_PARTS, "operators", "gradients", "first")
LIBRARIES = {
    "torch": "PyTorch",
    "jax": "JAX",
    "gpytorch": "GPyTorch",
    "botorch fit": "BoTorch's fit",
    "botorch samples": "BoTorch's posterior samples",
}
#: Ways of a step, as the tables name them.
WAYS = {
    "inv_quad_logdet": "`inv_quad_logdet`",
    "operators": "`cholesky`, `solve_triangular`",
    "patched": "`patch_torch`",
}
CASE = ("part", "by", "way", "call", "recorded", "dtype", "n", "count")
STEPS = """
## PyTorch and JAX

A step of a Gaussian process's training: the likelihood and its gradient.
The covariance is given; of GPyTorch's steps the points are.
Each cell is the framework's own time over ours, until the device has finished. The mean is geometric.
"""


class Measured(NamedTuple):
    """Rows of parts, each case once, and the commits that they are from."""

    rows: dict[str, list[dict[str, Any]]]
    commits: str


def framework_rows(results: Path, device: str) -> Measured:
    """What a device has measured."""
    newest: dict[tuple[Any, ...], tuple[dict[str, Any], str]] = {}
    for run in sorted(runs_of(results, device), key=lambda run: run["date"]):
        if "frameworks" in run:
            for row in (row for part in PARTS for row in run.get(part, [])):
                if "ratio" in row or "first" in row:
                    newest[tuple(row.get(key) for key in CASE)] = row, short_commit(run["commit"])
    rows: dict[str, list[dict[str, Any]]] = {}
    for row, _ in newest.values():
        rows.setdefault(row["part"], []).append(row)
    return Measured(rows, ", ".join(dict.fromkeys(commit for _, commit in newest.values())))


def framework_tables(results: Path, device: str) -> Iterator[str]:
    """The lines of the page for a device: tables, or nothing."""
    rows, commits = framework_rows(results, device)
    if not rows:
        return
    yield from STEPS.rstrip("\n").split("\n")
    for part in STEP_PARTS:
        if part in rows:
            yield from ("", *_over_sizes(rows[part]))
    yield from _operators([*rows.get("operators", []), *rows.get("gradients", [])])
    yield from _first(rows.get("first", []))
    yield from ("", f"Measured at {commits} (`python -m benchmarks.frameworks`).")


def _over_sizes(rows: list[dict[str, Any]]) -> Iterator[str]:
    """A line a way and dtype, a column a size."""
    sizes = sorted({(row["n"], row.get("count", 0)) for row in rows})
    heads = [f"{count} of {n}" if count else str(n) for n, count in sizes]
    yield f"| program | by | | {' | '.join(heads)} | mean |"
    yield "|---" * (len(sizes) + 4) + "|"
    cells = {(row["by"], row["way"], row["dtype"], row["n"], row.get("count", 0)): row for row in rows}
    for by, way, dtype in dict.fromkeys(key[:3] for key in cells):
        mine = [cells.get((by, way, dtype, *size)) for size in sizes]
        mean = geometric_mean(row["ratio"] for row in mine if row)
        each = " | ".join(f"{row['ratio']:.2f}" if row else "" for row in mine)
        yield f"| {LIBRARIES[by]} | {WAYS[way]} | {dtype} | {each} | **{mean:.2f}** |"


def _operators(rows: list[dict[str, Any]]) -> Iterator[str]:
    """Microseconds of one call, ours and PyTorch's."""
    if not rows:
        return
    yield from ("", "Host time of one call of order 64 in µs, ours / PyTorch's:", "")
    hows = {False: "", True: ", recorded for gradients", None: " and its gradients"}
    cells = {(row["call"], row["dtype"], row.get("recorded")): row for row in rows}
    heads = sorted(
        {key[1:] for key in cells}, key=lambda head: (list(hows).index(head[1]), "sdcz".index(head[0]))
    )
    names = [f"{dtype}{hows[recorded]}" for dtype, recorded in heads]
    yield f"| operator | {' | '.join(names)} |"
    yield "|---" * (len(heads) + 1) + "|"
    for call in dict.fromkeys(key[0] for key in cells):
        mine = [cells.get((call, *head)) for head in heads]
        each = " | ".join(f"{row['ours_us']:.0f} / {row['own_us']:.0f}" if row else "" for row in mine)
        yield f"| {call} | {each} |"


def _first(rows: list[dict[str, Any]]) -> Iterator[str]:
    if not rows:
        return
    yield from ("", f"Seconds from the start of a process to its first step of order {rows[0]['n']}:", "")
    yield from ("| program | by | first | second |", "|---|---|---|---|")
    for row in rows:
        way = WAYS.get(row["way"], "its own functions")
        yield f"| {LIBRARIES[row['by']]} | {way} | {row['first']:.1f} | {row['second']:.4f} |"
