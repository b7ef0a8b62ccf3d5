"""Tables of vectors, factorizations and solves against the vendor's, for the benchmarks page.

They are made from what `benchmarks.level1`, `benchmarks.level2`, `benchmarks.lapack` and `benchmarks.lu`
write, and `benchmarks.batched`. A file has a device, a date, a commit, and the records of one or more lists.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from math import exp, log
from pathlib import Path
from typing import Any, NamedTuple

from pyblasgpu.bench.machine import short_commit

__all__ = ["LARGE", "NAMES", "Ratio", "ratios", "runs_of", "vendor_tables"]

#: The lists that a file may have, and the routine of records that name none.
LISTS = {"results": "", "squares": "getrf", "solves": "", "batches": "getrf"}
NAMES = {"gemv_n": "gemv, not transposed", "gemv_t": "gemv, transposed"}


#: Ending of a routine that is compared with cuSOLVER's faster triangle.
FASTER_TRIANGLE = ", over cuSOLVER's faster triangle"
#: Extents at which routines that memory bounds are compared with a copy.
LARGE = (100_000_000, 16_384)


class Ratio(NamedTuple):
    """How many times faster than the vendor's a case is, and how fast against a copy; nan: not known."""

    routine: str
    dtype: str
    extents: tuple[int, ...]
    order: int
    ratio: float
    commit: str
    of_copy: float


def vendor_tables(results: Path, device: str) -> Iterator[str]:
    """The lines of the page for a device: a table, or nothing."""
    rows: dict[str, dict[str, list[Ratio]]] = {}
    for measured in ratios(results, device):
        rows.setdefault(measured.routine, {}).setdefault(measured.dtype, []).append(measured)
    if not rows:
        return
    yield from ("", "## Vectors, factorizations and solves", "")
    yield "The vendor's time over ours, on the device: the geometric mean over sizes, then the least."
    yield "Batches are compared with cuBLAS and cuSOLVER, and with PyTorch where it is named."
    yield from ("", "| routine | sizes | s | d | c | z | measured at |", "|---|---|---|---|---|---|---|")
    for routine, by_dtype in rows.items():
        cases = [case for of_dtype in by_dtype.values() for case in of_dtype]
        orders = [case.order for case in cases]
        sizes = f"{min(orders)} to {max(orders)}" if min(orders) < max(orders) else str(orders[0])
        cells = " | ".join(_cell(by_dtype.get(letter, [])) for letter in "sdcz")
        yield f"| {NAMES.get(routine, routine)} | {sizes} | {cells} | {_commits(cases)} |"
    yield from _beside_a_copy(rows)


def _beside_a_copy(rows: dict[str, dict[str, list[Ratio]]]) -> Iterator[str]:
    """The table of what memory bounds: bytes that have to move, over those that a copy moves in that time."""
    yield from ("", "## Memory bandwidth", "")
    yield "Bytes that a routine reads and writes, over those that a copy moves in the same time:"
    yield "vectors of 10⁸ elements, matrices of order 16384."
    yield from ("", "| routine | s | d | c | z | measured at |", "|---|---|---|---|---|---|")
    for routine, by_dtype in rows.items():
        large = {
            letter: case
            for letter, cases in by_dtype.items()
            for case in cases
            if case.of_copy == case.of_copy and case.order in LARGE and len(set(case.extents)) == 1
        }
        if large:
            cells = " | ".join(f"{large[x].of_copy:.2f}" if x in large else "" for x in "sdcz")
            yield f"| {NAMES.get(routine, routine)} | {cells} | {_commits(list(large.values()))} |"


def _commits(cases: list[Ratio]) -> str:
    return ", ".join(dict.fromkeys(case.commit for case in cases))


def _cell(cases: list[Ratio]) -> str:
    if not cases:
        return ""
    ratios = [case.ratio for case in cases]
    mean = exp(sum(map(log, ratios)) / len(ratios))
    return f"{mean:.2f}, {min(ratios):.2f}"


def ratios(results: Path, device: str) -> list[Ratio]:
    """Each case by its newest measurement."""
    newest: dict[tuple[Any, ...], Ratio] = {}
    for run in sorted(runs_of(results, device), key=lambda run: run["date"]):
        for name, routine in LISTS.items():
            for record in run.get(name, []):
                ratio = _ratio(record)
                name = record.get("routine") or record.get("operation") or routine
                # `pyblasgpu bench` has variants, and contests a table of their own
                if name and ratio > 0 and not {"variant", "torch_ms", "scipy_ms"} & record.keys():
                    case = _case(name, record, ratio, short_commit(run["commit"]))
                    newest[case[:3]] = case
                    if best := _over_faster_triangle(record, run):
                        other = case._replace(routine=f"{case.routine}{FASTER_TRIANGLE}", ratio=best)
                        newest[other[:3]] = other
    return list(newest.values())


def runs_of(results: Path, device: str) -> Iterator[dict[str, Any]]:
    """What a device has measured, besides `pyblasgpu bench`."""
    for path in sorted(results.glob("*/*.json")):
        run = json.loads(path.read_text(encoding="utf-8"))
        if isinstance(run, dict) and {"device", "date", "commit"} <= run.keys() and run["device"] == device:
            yield run


def _over_faster_triangle(record: dict[str, Any], run: dict[str, Any]) -> float:
    """cuSOLVER's time with the other triangle over ours, where that is the faster one of POTRF; else 0."""
    if record.get("routine") != "potrf" or "uplo" not in record or record.get("batch", 1) > 1:
        return 0.0
    case = [record[name] for name in ("routine", "letter", "n", "batch")]
    times = [
        each["cusolver_us"]
        for each in run["results"]
        if "uplo" in each and [each[name] for name in ("routine", "letter", "n", "batch")] == case
    ]
    best = min([*times, record.get("cusolver_other_triangle_us", record["cusolver_us"])])
    return float(best / record["ours_us"]) if best < record["cusolver_us"] else 0.0


def _ratio(record: dict[str, Any]) -> float:
    if record.get("routine") == "potrf" and "cusolver_us" in record:  # `ratio` may be to the other triangle
        return float(record["cusolver_us"] / record["ours_us"])
    if "cublas_seconds" in record:
        return float(record["cublas_seconds"] / record["seconds"])
    return float(record.get("ratio", record.get("speedup", "nan")))


def _case(name: str, record: dict[str, Any], ratio: float, commit: str) -> Ratio:
    if "uplo" in record and name == "potrf":
        name += f", {record['uplo'].lower()}"
    if "torch_us" in record:
        name += ", batched, PyTorch"
    elif record.get("batch", 1) > 1 or "count" in record:
        name += ", batched"
    elif name in ("potrs", "posv", "getrs"):
        name += ", one right-hand side" if record["columns"] == 1 else ", 32 to n right-hand sides"
    names = ("m", "n", "columns", "batch", "count")
    extents = tuple(record[each] for each in names if record.get(each))
    order = max(record.get("m", 0), record["n"])
    of_copy = record.get("copy_rate", record.get("of_copy_rate", float("nan")))
    return Ratio(name, record.get("dtype") or record["letter"], extents, order, ratio, commit, of_copy)
