"""Tables of whole machines: several cards, host memory, Dask, SciPy's programs, first calls, the closed list.

They are made from files of `benchmarks.several_cards`, `host_resident`, `dask_cards`, `programs`,
`first_call` and `catalogue_loss`. Of each case the newest measurement counts.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from readme_table import geometric_mean

from pyblasgpu.bench.machine import short_commit

__all__ = ["LISTS", "Rows", "card_rows", "closed_list", "host_rows", "machine_tables", "rate"]

FLOPS = {"gemm": 2, "trsm": 1, "trmm": 1, "syrk": 1, "potrf": 1 / 3}
PLACES = {"host": "on the host", "card": "on a card"}
#: Lists of `benchmarks.catalogue_loss`.
LISTS = {
    "squares": "squares of GEMM",
    "awkward": "awkward shapes of GEMM",
    "cliffs": "squares of any order and alignment",
    "trmm": "TRMM",
    "trsm": "TRSM",
    "level3": "symmetric and Hermitian products",
    "batches": "batches of products and triangles",
}
TIMED_ONCE = 15  # seconds of a call above which `benchmarks.host_problems` has no second one
LEAST = 0.93  # a case below it counts as slow


class Rows(NamedTuple):
    """Rows of files of one kind, each case once, and the commits that they are from."""

    rows: list[dict[str, Any]]
    commits: str


def _documents(results: Path, device: str, ending: str) -> list[tuple[str, str, dict[str, Any]]]:
    """Date, commit and contents of the files of a device whose names end so, oldest first."""
    found = []
    for path in results.glob(f"{_folder(device)}/*-{ending}.json"):
        document = json.loads(path.read_text(encoding="utf-8"))
        date = document.get("about", document).get("date", path.name[:10])
        commit = path.name[11:].split("-")[0]
        own = str(document.get("about", document).get("commit") or commit)
        found.append((str(date), commit if own.startswith(commit) else short_commit(own), document))
    return sorted(found, key=lambda each: each[:2])


def _folder(device: str) -> str:
    return device.lower().replace(" ", "-")


def rate(row: dict[str, Any], key: str) -> float:
    """TFLOP/s."""
    return float(FLOPS[row["routine"]] * row["n"] ** 3 / row[key] / 1e12)


def _newest(results: Path, device: str, ending: str, needs: set[str], case: tuple[str, ...]) -> Rows:
    """The rows that have all of `needs`; a newer one adds to an older one of its case, and wins."""
    rows: dict[tuple[Any, ...], dict[str, Any]] = {}
    commits: dict[str, None] = {}
    for _, commit, document in _documents(results, device, ending):
        for row in document["rows"]:
            if needs <= row.keys():
                key = tuple(row.get(name) for name in case)
                rows[key] = {**rows.get(key, {}), **row}
                commits[commit] = None
    return Rows(list(rows.values()), ", ".join(commits))


def host_rows(results: Path, device: str) -> Rows:
    """Matrices in page-locked host memory on one card."""
    return _newest(results, device, "host-resident", {"aim", "streamed"}, ("routine", "dtype", "n"))


def card_rows(results: Path, device: str) -> Rows:
    """Rows of several cards, and of arrays on the first card."""
    case = ("routine", "dtype", "n", "where", "cards")
    return _newest(results, device, "several-cards", {"speedup"}, case)


def closed_list(results: Path, device: str) -> tuple[dict[str, list[float]], str]:
    """Time of all Configs over time of the closed list, by list, and the commits."""
    cases: dict[tuple[Any, ...], tuple[str, float]] = {}
    commits: dict[str, None] = {}
    for ending in ("catalogue-loss", "batches-loss"):
        for _, commit, document in _documents(results, device, ending)[-1:]:
            for row in document.get("results", []):
                key = "list", "routine", "dtype", "flags", "extents", "pad", "shift", "batch"
                cases[tuple(str(row.get(name)) for name in key)] = row["list"], row["ratio"]
                commits[commit] = None
    lists: dict[str, list[float]] = {name: [] for name in LISTS}
    for name, ratio in cases.values():
        lists[name].append(ratio)
    return {name: ratios for name, ratios in lists.items() if ratios}, ", ".join(commits)


def machine_tables(results: Path, device: str) -> Iterator[str]:
    """The lines of the page for a device."""
    yield from _several_cards(*card_rows(results, device))
    yield from _host(*host_rows(results, device))
    yield from _dask(results, device)
    yield from _programs(results, device)
    yield from _first_calls(results, device)
    yield from _closed(*closed_list(results, device))


def _table(title: str, text: str, header: str, lines: list[str], commits: str) -> Iterator[str]:
    if lines:
        columns = header.count("|") - 1
        yield from ("", f"## {title}", "", text, "", header, "|---" * columns + "|", *lines)
        yield from ("", f"Measured at {commits}.")


def _several_cards(rows: list[dict[str, Any]], commits: str) -> Iterator[str]:
    """TFLOP/s of one card, and times it on several; a line a place, routine and order."""
    cases = {(row["where"], row["routine"], row["n"], row["dtype"], row["cards"]): row for row in rows}
    counts = sorted({row["cards"] for row in rows} - {1})
    lines = []
    places, routines = list(PLACES), list(FLOPS)
    found = {(places.index(w), -n, routines.index(r)) for w, r, n, *_ in cases if w in PLACES and r in FLOPS}
    for place, order, number in sorted(found):
        where, routine, n = places[place], routines[number], -order
        cells = []
        for dtype in "ds":
            one = cases.get((where, routine, n, dtype, 1))
            many = [cases.get((where, routine, n, dtype, count)) for count in counts]
            vendor = cases.get(("cublas", routine, n, dtype, 1)) if where == "host" else None
            cells.append(f"{rate(one, 'seconds'):.1f}" if one else "")
            cells += [f"{row['speedup']:.2f}" if row else "" for row in many]
            last = many[-1] if many else None
            counts_too = vendor and last and vendor["seconds"] <= TIMED_ONCE
            cells.append(f"{vendor['seconds'] / last['seconds']:.1f}" if counts_too else "")
        if any(cells):
            lines.append(f"| {routine.upper()} | {n} | {PLACES[where]} | {' | '.join(cells)} |")
    heads = [f"{dtype}: {head}" for dtype in "ds" for head in ("one card", *map(str, counts), "over cuBLAS")]
    text = (
        "TFLOP/s of one card, then times that rate on several. The last column of a dtype is\n"
        "the time of upload, cuBLAS on one card and download over that of all cards. Calls of over 4 s ran\n"
        f"twice, and the second counts. Calls of over {TIMED_ONCE} s ran once; those of cuBLAS are left out."
    )
    header = f"| routine | n | arrays | {' | '.join(heads)} |"
    yield from _table("Several cards", text, header, lines, commits)


def _host(rows: list[dict[str, Any]], commits: str) -> Iterator[str]:
    keys = ("streamed", "upload_cublas_download", "cublas_xt")
    lines = []
    for row in sorted(rows, key=lambda row: (row["routine"], row["dtype"], row["n"])):
        cells = " | ".join(f"{rate(row, key):.1f}" if key in row else "" for key in keys)
        lines.append(f"| {row['dtype']}{row['routine']} | {row['n']} | {cells} |")
    text = "TFLOP/s from page-locked host memory to page-locked host memory, transfers included."
    header = "| routine | n | pyblasgpu | upload, cuBLAS, download | cublasXt |"
    yield from _table("Host memory", text, header, lines, commits)


def _dask(results: Path, device: str) -> Iterator[str]:
    """Dask's workers as threads of one process, against one call with `devices=`."""
    found: dict[tuple[Any, ...], dict[str, Any]] = {}
    commits: dict[str, None] = {}
    for _, commit, document in _documents(results, device, "dask-cards"):
        n, chunk = document["about"]["n"], document["about"].get("chunk", "")
        for row in document["rows"]:
            case = {"n": n, "chunk": chunk, **row, "seconds": _counted(row)}
            case = {key: value[0] if isinstance(value, list) else value for key, value in case.items()}
            found[case["n"], case["routine"], case["chunk"], case["by"]] = case
            commits[commit] = None
    lines = []
    for n, routine, chunk in sorted({key[:3] for key in found}, key=lambda key: (-key[0], *key[1:])):
        by = {key[3]: row for key, row in found.items() if key[:3] == (n, routine, chunk)}
        names = ("dask, cupy", "dask, numpy", "engine")
        cells = " | ".join(f"{by[name]['seconds']:.3g}" if name in by else "" for name in names)
        lines.append(f"| {routine.upper()} | {n} | {chunk} | {cells} |")
    text = (
        "Seconds on four cards of one host, double precision: the median of calls after the first.\n"
        "Dask's workers are threads of one process. CuPy chunks are on the cards before and after a call.\n"
        "NumPy chunks and the matrices of `devices=` are in host memory, so their transfers are in the time."
    )
    header = "| routine | n | chunks | CuPy chunks | NumPy chunks | `devices=` |"
    yield from _table("Dask", text, header, lines, ", ".join(commits))


def _counted(row: dict[str, Any]) -> float:
    """The median of the calls after the first, where each one's time was kept."""
    each = row.get("each", [])
    return median(each[1:]) if len(each) > 1 else float(row["seconds"])


def _programs(results: Path, device: str) -> Iterator[str]:
    documents = _documents(results, device, "programs")
    for _, commit, document in documents[-1:]:
        lines = []
        for name, orders in document["seconds"].items():
            for n, row in sorted(orders.items(), key=lambda item: int(item[0])):
                times = " | ".join(_milliseconds(row[way]) for way in ("scipy", "patched"))
                lines.append(f"| {name} | {n} | {times} | {row['scipy'] / row['patched']:.1f} |")
        text = (
            "Milliseconds in double precision without and with [`patch_scipy`](../guide/scipy_programs.md),\n"
            "copies to the card and back included."
        )
        header = "| program or call | n | SciPy | patched | times faster |"
        yield from _table("Programs written for SciPy", text, header, lines, commit)


def _milliseconds(seconds: float) -> str:
    return f"{1e3 * seconds:.0f}" if seconds >= 0.1 else f"{1e3 * seconds:.3g}"


def _first_calls(results: Path, device: str) -> Iterator[str]:
    for _, commit, document in _documents(results, device, "first-call")[-1:]:
        named = ((name.replace("no archive", "without an archive"), row) for name, row in document.items())
        lines = [f"| {name} | {row['first']:.2f} |" for name, row in named]
        text = (
            "Seconds from the start of a process to its first result, import of CuPy and start of CUDA\n"
            "included. Without [an archive of kernels](../guide/first_call.md) the call compiles its kernels."
        )
        yield from _table("First calls", text, "| call | seconds |", lines, commit)


def _closed(lists: dict[str, list[float]], commits: str) -> Iterator[str]:
    lines = [
        f"| {LISTS[name]} | {len(ratios)} | {geometric_mean(ratios):.3f} | {min(ratios):.2f} "
        f"| {sum(ratio < LEAST for ratio in ratios)} |"
        for name, ratios in lists.items()
    ]
    text = (
        "Calls choose from a [closed list](../design/dispatch.md#the-catalogue) of kernels. The table has\n"
        "the time with all Configs that were ever tuned over the time with the closed list."
    )
    header = f"| calls | cases | geometric mean | least | below {LEAST} |"
    yield from _table("The closed list of kernels", text, header, lines, commits)
