"""Tables of the papers' pages from files that are no study's own: benchmarks, counters, the processor, LU."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from rich.table import Table

from benchmarks.l1_size import detected
from pyblasgpu.bench.machine import short_commit
from pyblasgpu.types import DTYPES
from tuning.papers import kblas_figure7, recorded

__all__ = ["FILES", "NOTHING", "markdown", "moved", "traffic_runs"]

ROOT = Path(__file__).resolve().parents[2]
BENCHMARKS = ROOT / "benchmarks" / "results"
STUDIES = ROOT / "tuning" / "papers" / "results"
NOTHING = "Nothing is recorded yet."
READ, WRITTEN, L2 = "dram__bytes_read.sum", "dram__bytes_write.sum", "lts__t_bytes.sum"
#: Rows of the traffic: routine and side, and what the page calls them.
SIDES = {
    ("trmm", "ours"): "TRMM, this library",
    ("trmm", "cuBLAS"): "TRMM, cuBLAS in place",
    ("trmm", "out-of-place"): "TRMM, cuBLAS out of place",
    ("trsm", "ours"): "TRSM, this library",
    ("trsm", "cuBLAS"): "TRSM, cuBLAS",
    ("gemm", "ours"): "GEMM, this library",
    ("gemm", "cuBLAS"): "GEMM, cuBLAS",
}
#: Ratios of the sums of both directions.
SHARES = {
    "TRMM of GEMM, this library": (("trmm", "ours"), ("gemm", "ours")),
    "TRSM of GEMM, this library": (("trsm", "ours"), ("gemm", "ours")),
    "cuBLAS's TRMM out of place of ours": (("trmm", "out-of-place"), ("trmm", "ours")),
}


def markdown_rows(heads: Iterable[Any], rows: Iterable[Iterable[Any]]) -> Iterator[str]:
    """The lines of a table."""
    names = list(map(str, heads))
    yield f"| {' | '.join(names)} |"
    yield "|---" * len(names) + "|"
    yield from (f"| {' | '.join(map(str, row))} |" for row in rows)


def markdown(table: Table) -> Iterator[str]:
    """The lines of a table that a script prints."""
    rows = zip(*(column.cells for column in table.columns), strict=True)
    yield from markdown_rows((column.header for column in table.columns), rows)


def generations() -> Iterator[str]:
    """KBLAS's Figure 7: of each call the newest measurement, and the commits of a row."""
    documents = (json.loads(path.read_text()) for path in sorted(BENCHMARKS.glob("*/*.json")))
    made = kblas_figure7.table(kblas_figure7.rates(documents), list(DTYPES))
    yield from ("", f"{made.title}:", "", *markdown(made), "")


def traffic_runs() -> list[dict[str, Any]]:
    """What counted the traffic of TRMM and GEMM, a device each, the newest last."""
    runs = (json.loads(path.read_text()) for path in BENCHMARKS.glob("*/*-counters.json"))
    return sorted(runs, key=lambda run: str(run["date"]))


def moved(run: dict[str, Any]) -> dict[tuple[str, str, str, int], tuple[float, float]]:
    """Bytes that DRAM reads and writes, by dtype, routine, side and order."""
    return {
        (row["dtype"], row["routine"], row["of"], row["n"]): (row["counted"][READ], row["counted"][WRITTEN])
        for row in run["results"]
    }


def traffic() -> Iterator[str]:
    """KBLAS's Figures 2 and 4."""
    for run in traffic_runs():
        each = moved(run)
        orders, letters = (list(dict.fromkeys(key[at] for key in each)) for at in (3, 0))
        yield from ("", f"MB read + written, {run['device']}, at {run['commit'][:7]}:", "")
        rows: list[list[str]] = []
        for letter in letters:
            for side, label in SIDES.items():
                cells = [_apart(each.get((letter, *side, n))) for n in orders]
                rows += [[letter, label, *cells]] if any(cells) else []
            for label, pair in SHARES.items():
                cells = [_ratio(*(each.get((letter, *side, n)) for side in pair)) for n in orders]
                rows += [[letter, label, *cells]] if any(cells) else []
        yield from markdown_rows(("", "", *orders), rows)
    yield ""


def _apart(counted: tuple[float, float] | None) -> str:
    return " + ".join(map(_megabytes, counted)) if counted else ""


def _ratio(left: tuple[float, float] | None, right: tuple[float, float] | None) -> str:
    return f"{sum(left) / sum(right):.2f}" if left and right else ""


def _megabytes(count: float) -> str:
    megabytes = count / 1e6
    return f"{megabytes:.1f}" if megabytes < 10 else f"{megabytes:.0f}"


def rasters() -> Iterator[str]:
    """GB of a product by raster: what DRAM reads, and what passes L2."""
    for path in sorted(BENCHMARKS.glob("*/*-counters-raster.json")):
        run = json.loads(path.read_text())
        counted = {(row["dtype"], row["of"]): row["counted"] for row in run["results"]}
        letters, sides = (list(dict.fromkeys(key[at] for key in counted)) for at in (0, 1))
        yield from ("", f"{run['device']}, at {run['commit'][:7]}:", "")
        rows = [
            [f"{letter}gemm, {label}", *(f"{counted[letter, side][name] / 1e9:.1f}" for side in sides)]
            for letter in letters
            for label, name in (("DRAM", READ), ("L2", L2))
        ]
        yield from markdown_rows(("", *(side.removeprefix("raster=") for side in sides)), rows)
    yield ""


def processor() -> Iterator[str]:
    """The kernels of processors: shares of the peak, and ratios to OpenBLAS."""
    for path in sorted(STUDIES.glob("*/cpu.json")):
        made = json.loads(path.read_text())
        results, cores = made["results"], made["cores"]
        cells = {(f"{row['dtype']}{row['routine']}{_operation(row)}", row["n"]): row for row in results}
        calls, orders = (list(dict.fromkeys(key[at] for key in cells)) for at in (0, 1))
        rows = (
            [call, *(_share(cells[call, n]) if (call, n) in cells else "" for n in orders)] for call in calls
        )
        of = f"{made['processor']}, {'one core' if cores == 1 else f'{cores} cores'}"
        yield from ("", f"{of}, at {short_commit(made['commit'])}:" if "commit" in made else f"{of}:")
        yield from ("", *markdown_rows(("routine", *(f"n = {n}" for n in orders)), rows))
    yield ""


def _operation(row: dict[str, Any]) -> str:
    return f" {row['layout'].upper()}" if row.get("layout", "nn") != "nn" else ""


def _share(row: dict[str, Any]) -> str:
    return f"{row['numba'] / row['peak']:.2f}, {row['numba'] / row['scipy']:.2f}"


def block_lu() -> Iterator[str]:
    """Li's block LU with each library's products."""
    runs = (json.loads(path.read_text()) for path in STUDIES.glob("*/li_lu.json"))
    rows = [
        [
            f"{row['dtype']} {row['n']}",
            row["columns"],
            run["device"],
            *(f"{row[name]:.1f}" for name in ("ms", "cublas_ms")),
            *(f"{row[name]:.2f}" for name in ("tflops", "cublas_tflops")),
            short_commit(run["commit"]),
        ]
        for run in sorted(runs, key=lambda run: run["device"], reverse=True)
        for row in run["results"]
    ]
    heads = "order | BS | card | ms, our products | cuBLAS's | TFLOP/s, our products | cuBLAS's | measured at"
    yield from ("", *markdown_rows(heads.split(" | "), rows), "")


def variants() -> Iterator[str]:
    """Each variant of TRMM, TRSM and SYMM against the GEMM of as many operations of the same run."""
    paths = sorted(BENCHMARKS.glob("*/*-variants.json"))
    yield from () if paths else ("", NOTHING)
    for path in paths:
        run = json.loads(path.read_text())
        cells = {
            (row["dtype"], row["routine"], row["variant"], row["n"]): row["tflops"] for row in run["results"]
        }
        columns = list(dict.fromkeys((letter, n) for letter, _, _, n in cells))
        calls = dict.fromkeys((routine, variant) for _, routine, variant, _ in cells if routine != "gemm")
        rows = [
            [routine.upper(), variant, *(_beside_gemm(cells, routine, variant, *each) for each in columns)]
            for routine, variant in calls
        ]
        gemm = (f"{cells[letter, 'gemm', 'NN', n]:.1f}" for letter, n in columns)
        yield from ("", f"TFLOP/s, and of GEMM's, {run['device']}, at {short_commit(run['commit'])}:", "")
        heads = (f"{letter} {n}" for letter, n in columns)
        yield from markdown_rows(("", "variant", *heads), [["GEMM", "NN", *gemm], *rows])
    yield ""


def _beside_gemm(
    cells: dict[tuple[str, str, str, int], float], routine: str, variant: str, letter: str, n: int
) -> str:
    rate = cells.get((letter, routine, variant, n))
    return "" if rate is None else f"{rate:.1f} ({rate / cells[letter, 'gemm', 'NN', n]:.0%})"


def l1_size() -> Iterator[str]:
    """ATLAS's search for the size of L1: cycles of a load by footprint."""
    paths = sorted(BENCHMARKS.glob("*/*-l1-size.json"))
    yield from () if paths else ("", NOTHING)
    for path in paths:
        run = json.loads(path.read_text())
        cycles = {row["kib"]: row["cycles"] for row in run["results"]}
        found = f"{detected(cycles)} KiB found, {run['shared_kib']} KiB of shared memory by the driver"
        yield from ("", f"{run['device']}, at {short_commit(run['commit'])}: {found}.", "")
        yield from markdown_rows(("KiB", *cycles), [["cycles", *(f"{each:.0f}" for each in cycles.values())]])
    yield ""


def host_share() -> Iterator[str]:
    """Li's host, which takes the last columns of a product: milliseconds, and times as fast as without it."""
    paths = sorted(BENCHMARKS.glob("*/*-host-share.json"))
    yield from () if paths else ("", NOTHING)
    for path in paths:
        run = json.loads(path.read_text())
        ms = {(row["dtype"], row["n"], row["columns"]): row["ms"] for row in run["results"]}
        products, columns = dict.fromkeys(key[:2] for key in ms), list(dict.fromkeys(key[2] for key in ms))
        rows = [
            [f"{letter} {n}", *(_of_alone(ms, letter, n, count) for count in columns)]
            for letter, n in products
        ]
        yield from ("", f"ms by columns of the host, {run['device']}, at {short_commit(run['commit'])}:", "")
        yield from markdown_rows(("product", *columns), rows)
    yield ""


def _of_alone(ms: dict[tuple[str, int, int], float], letter: str, n: int, columns: int) -> str:
    spent = ms.get((letter, n, columns))
    return "" if spent is None else f"{spent:.2f} ({ms[letter, n, 0] / spent:.2f})"


def scheme_winners() -> Iterator[str]:
    """Steinsland's question: the scheme that is the fastest by order, and its rate, a device each."""
    for path in sorted(STUDIES.glob("*/steinsland.json")):
        run = json.loads(path.read_text())
        orders = sorted({n for row in run["results"] for n in row["ours"]}, key=int)
        rows = [[_sample(row), *(_winner(row["schemes"], n) for n in orders)] for row in run["results"]]
        yield from ("", f"{run['device']}, TFLOP/s by order:", "")
        yield from markdown_rows(("GEMM", *orders), rows)
    yield ""


def _sample(row: dict[str, Any]) -> str:
    """A product, and which sample of its kernels was timed, if there are several."""
    return ", ".join((f"{row['dtype']}gemm {row['layout']}", *filter(None, [row.get("figure")])))


def _winner(schemes: dict[str, Any], n: str) -> str:
    rates = {name: (each["best"].get(n) or {}).get("tflops", 0.0) for name, each in schemes.items()}
    best = max(rates, key=lambda name: rates[name])
    return f"{best} {rates[best]:.1f}" if rates[best] else ""


def _recorded() -> list[dict[str, Any]]:
    """What recorded sweeps answer, a device each."""
    return [json.loads(path.read_text()) for path in sorted(STUDIES.glob(f"*/{recorded.NAME}.json"))]


def recorded_trsm() -> Iterator[str]:
    """KBLAS: the number of recorded problems at which each algorithm of TRSM is the fastest."""
    for made in _recorded():
        rates = {(row["dtype"], row["problem"]): row["tflops"] for row in made["trsm"]}
        table = recorded.counts_table(rates, made["device"])
        yield from ("", f"{table.title}:", "", *markdown(table))
    yield ""


def recorded_guidelines() -> Iterator[str]:
    """Kurzak et al.: the fastest recorded kernels that the guidelines of Table 1 leave out."""
    for made in _recorded():
        if made["guidelines"]:
            table = recorded.obeyed_table(made["guidelines"], made["device"])
            yield from ("", f"{table.title}:", "", *markdown(table))
    yield ""


def recorded_trmm() -> Iterator[str]:
    """PLASMA: the two stages on recorded pairs of TRMM."""
    for made in _recorded():
        found = [recorded.Replay(**row) for row in made["trmm"]]
        if found:
            table = recorded.replays_table(found, made["device"])
            yield from ("", f"{table.title}:", "", *markdown(table))
    yield ""


#: Tables by the name that a page's marker has.
FILES = {
    "kblas_figure7": generations,
    "kblas_traffic": traffic,
    "rasters": rasters,
    "processor": processor,
    "li_lu": block_lu,
    "scheme_winners": scheme_winners,
    "variants": variants,
    "l1_size": l1_size,
    "host_share": host_share,
    "recorded_trsm": recorded_trsm,
    "recorded_trmm": recorded_trmm,
    "recorded_guidelines": recorded_guidelines,
}
