"""Tables of factors of the public contests' batches."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from contest_results import RIVALS, contest_cases
from readme_table import geometric_mean

__all__ = ["contest_tables"]

ROUTINES = {
    "geqrf": "`geqrf`",
    "tensor_geqrf": "`geqrf` on tensor cores",
    "large_geqrf": "`geqrf` of one matrix",
    "large_orgqr": "`orgqr`",
    "large_ormqr": "`ormqr`",
    "geqp3": "`geqp3`, and SciPy's",
    "qr": "reduced Q and R",
    "lstsq": "`lstsq`",
    "eigh": "`eigh`",
    "svd": "reduced `svd`",
    "cholesky": "Cholesky",
}
TEXT = """
## QR, eigenvalues and singular values

Batches of the public contests and tall matrices, of normal numbers, by this library and by `torch.linalg`.
Each cell is milliseconds of a call, ours / PyTorch's, and PyTorch's over ours. The mean is geometric.
Neither PyTorch nor cuSOLVER has `geqp3`, QR with pivots. Its rival is SciPy's on all cores, in host memory.
"""


def contest_tables(results: Path, device: str) -> Iterator[str]:
    """The lines of the page for a device: tables, or nothing."""
    newest = contest_cases(results, device)
    if not newest:
        return
    yield from TEXT.rstrip("\n").split("\n")
    dtypes = sorted({case.dtype for case in newest}, key="sdcz".index)
    for routine, name in ROUTINES.items():
        for is_tall in (False, True):
            cases = (case for case in newest if case.routine == routine and (case.m > case.n) == is_tall)
            if rows := {case[1:]: newest[case][0] for case in cases}:
                yield from ("", *_table(f"{name}, tall" if is_tall else name, rows, dtypes))
    commits = ", ".join(dict.fromkeys(commit for _, commit in newest.values()))
    yield from ("", f"Measured at {commits} (`python -m benchmarks.contest`).")


def _table(name: str, rows: dict[tuple[Any, ...], dict[str, Any]], dtypes: list[str]) -> Iterator[str]:
    """A line a shape, and means and least ratios."""
    yield f"| {name} | {' | '.join(dtypes)} |"
    yield "|---" * (len(dtypes) + 1) + "|"
    for count, m, n in dict.fromkeys(case[:3] for case in rows):
        mine = [rows.get((count, m, n, dtype)) for dtype in dtypes]
        yield f"| {count} of {m} × {n} | {' | '.join(map(_cell, mine))} |"
    ratios = [[row["ratio"] for case, row in rows.items() if case[3] == dtype] for dtype in dtypes]
    means = (f"**{geometric_mean(each):.2f}**, {min(each):.2f}" if each else "" for each in ratios)
    yield f"| mean, least | {' | '.join(means)} |"


def _cell(row: dict[str, Any] | None) -> str:
    if not row:
        return ""
    rival = next(row[name] for name in RIVALS if name in row)
    return f"{row['ours_ms']:.3g} / {rival:.3g}, **{row['ratio']:.2f}**"
