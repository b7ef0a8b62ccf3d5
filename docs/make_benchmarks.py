"""Write the benchmarks page, README's table, and two plots from the committed results.

``python docs/make_benchmarks.py`` after new files in ``benchmarks/results``; the plots need Matplotlib.

Of each case (device, routine, dtype, variant, shape) the newest measurement counts. Cases are shown by kind:
'square', 'few' (TRSM and TRMM with few right-hand sides), 'batched' or 'shapes' (GEMM that is not square).
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parent))

from error_tables import error_table
from gemm_tensor_tables import draw_gemm_tensor, gemm_tensor_tables
from readme_table import Row, geometric_mean, readme_table
from tensor_tables import tensor_tables
from vendor_tables import vendor_tables

DOCS = Path(__file__).resolve().parent
ROOT = DOCS.parent
RESULTS = ROOT / "benchmarks" / "results"
PAGE, README, PLOT = DOCS / "benchmarks.md", ROOT / "README.md", DOCS / "images" / "trsm.svg"
PLOT_TENSOR, HOPPER = DOCS / "images" / "gemm_tensor.svg", "NVIDIA H200"
BEGIN, END = "<!-- made by docs/make_benchmarks.py -->", "<!-- end -->"

ROUTINES = ("gemm", "trsm", "trmm", "syrk", "herk", "syr2k", "her2k", "symm", "hemm", "gemmtr")
KINDS = {
    "square": "square matrices",
    "few": "few right-hand sides",
    "batched": "batches",
    "shapes": "skinny, long and odd shapes",
}
ORDERS = (256, 512, 1024, 2048, 3072, 4096, 8192)
TICKS = (256, 1024, 4096)


class Case(NamedTuple):
    """One measurement, and the run that it is from."""

    run: dict[str, Any]
    record: dict[str, Any]

    @property
    def ratio(self) -> float:
        """Our rate over cuBLAS's."""
        return self.record["tflops"] / self.record["cublas_tflops"]

    @property
    def shape(self) -> tuple[int, ...]:
        """m, n and k, of which a routine has two or three, then the extents of a batch."""
        extents = [self.record[name] for name in "mnk" if name in self.record]
        return (*extents, *self.record.get("batch", ()))


Groups = dict[tuple[str, str, str], list[Case]]


def kind_of(record: dict[str, Any]) -> str | None:
    """Under which heading a record stands; None: under none."""
    if record.get("batch"):
        return "batched"
    extents = {record[name] for name in "mnk" if name in record}
    if len(extents) == 1:
        return "square" if record["n"] in ORDERS else None
    if record["routine"] in ("trsm", "trmm"):
        return "few"
    return "shapes" if record["routine"] == "gemm" else None


def measured(results: Path = RESULTS) -> Groups:
    """The cases that count, by device, routine and kind."""
    newest: dict[tuple[str, str, str], dict[tuple, Case]] = {}
    for run in _runs(results):
        for record in run["results"]:
            kind = kind_of(record)
            if "cublas_tflops" in record and record["routine"] in ROUTINES and kind:
                case = Case(run, record)
                group = newest.setdefault((run["device"], record["routine"], kind), {})
                group[record["dtype"], record["variant"], case.shape] = case
    return {key: _shown(key, newest[key]) for key in sorted(newest, key=_order)}


def _runs(results: Path) -> list[dict[str, Any]]:
    """What `pyblasgpu bench` has written, oldest first."""
    runs = []
    for path in results.glob("*/*.json"):
        run = json.loads(path.read_text(encoding="utf-8"))
        records = run.get("results") if isinstance(run, dict) else None
        if records and {"routine", "variant", "n"} <= records[0].keys():
            runs.append(run)
    return sorted(runs, key=lambda run: run["date"])


def _shown(key: tuple[str, str, str], cases: dict[tuple, Case]) -> list[Case]:
    """All layouts of a square GEMM; of all else one variant, that of most cases."""
    if key[1:] == ("gemm", "square"):
        return list(cases.values())
    variants = [variant for _, variant, _ in cases]
    most = max(dict.fromkeys(variants), key=variants.count)
    return [case for (_, variant, _), case in cases.items() if variant == most]


def _order(key: tuple[str, str, str]) -> tuple:
    device, routine, kind = key
    return device, ROUTINES.index(routine), list(KINDS).index(kind)


def commits(cases: Iterable[Case]) -> str:
    """The commits that cases were measured at, each once."""
    return ", ".join(dict.fromkeys(case.run["commit"][:7] for case in cases))


# -------------------------------------------------------------------------------------------------- page


def page(groups: Groups) -> str:
    """The benchmarks page."""
    text = [
        "# Benchmarks",
        "",
        f"{BEGIN}",
        "",
        "Each cell is TFLOP/s of pyblasgpu / of cuBLAS, in one process on the same data with cold caches.",
        "The last column is the geometric mean of ours / cuBLAS over the line. [Measuring](measuring.md)",
        "says how. `pyblasgpu bench` measures the card that you have.",
        "",
        "The script takes the newest measurement of each case in `benchmarks/results`, and names its commit.",
    ]
    for device in dict.fromkeys(key[0] for key in groups):
        mine = {key: cases for key, cases in groups.items() if key[0] == device}
        runs = [case.run for cases in mine.values() for case in cases]
        newest = max(runs, key=lambda run: run["date"])
        text += ["", f"## {device}", "", _conditions(newest)]
        for (_, routine, kind), cases in mine.items():
            text += ["", f"### {routine.upper()}, {KINDS[kind]}", "", *_table(routine, kind, cases)]
            text += ["", f"Measured at {commits(cases)}."]
        text += [*gemm_tensor_tables(RESULTS, device), *tensor_tables(RESULTS, device)]
        text += [*vendor_tables(RESULTS, device), *error_table(RESULTS, device)]
    return "\n".join([*text, "", END, ""])


def _conditions(run: dict[str, Any]) -> str:
    version = run["cublas"]
    cublas = f"{version // 10000}.{version // 100 % 100}"
    return (
        f"{run['arch']}, {run['multiprocessors']} multiprocessors, driver {run['driver']}, cuBLAS {cublas}, "
        f"{run['clocks'].get('power.limit', '')} power limit; the newest run is of {run['date'][:10]}."
    )


def _table(routine: str, kind: str, cases: list[Case]) -> Iterator[str]:
    """Lines are dtypes and variants, columns are shapes; of many shapes the other way round."""
    shapes = sorted(dict.fromkeys(case.shape for case in cases), key=_by_size)
    lines = sorted({_call(case) for case in cases}, key=lambda call: ("sdcz".index(call[0]), call))
    cells = {(_call(case), case.shape): case for case in cases}
    if kind in ("batched", "shapes"):
        yield "| | " + " | ".join(lines) + " |"
        yield "|---" * (len(lines) + 1) + "|"
        for shape in shapes:
            row = " | ".join(_cell(cells.get((call, shape))) for call in lines)
            yield f"| {_shape(shape, kind)} | {row} |"
        means = (geometric_mean(case.ratio for case in cases if _call(case) == call) for call in lines)
        yield "| **mean** | " + " | ".join(f"**{mean:.2f}**" for mean in means) + " |"
        return
    yield "| | " + " | ".join(_shape(shape, kind) for shape in shapes) + " | mean |"
    yield "|---" * (len(shapes) + 2) + "|"
    for call in lines:
        mean = geometric_mean(case.ratio for case in cases if _call(case) == call)
        row = " | ".join(_cell(cells.get((call, shape))) for shape in shapes)
        yield f"| {call} | {row} | **{mean:.2f}** |"


def _call(case: Case) -> str:
    record = case.record
    variant = f" {record['variant']}" if record["routine"] == "gemm" else ""
    return f"{record['dtype']}{record['routine']}{variant}"


def _cell(case: Case | None) -> str:
    if case is None:
        return ""
    return " / ".join(f"{case.record[key]:.3g}" for key in ("tflops", "cublas_tflops"))


def _by_size(shape: tuple[int, ...]) -> tuple:
    return shape[1], shape[0], shape[2:]


def _shape(shape: tuple[int, ...], kind: str) -> str:
    if kind == "batched":
        return f"{shape[-1]} of {_shape(shape[:-1], 'square')}"
    if kind == "few":
        return f"{shape[0]} × {shape[1]}"
    return str(shape[0]) if len(set(shape)) == 1 else " × ".join(map(str, shape))


# ------------------------------------------------------------------------------------------------- README


def newest_device(groups: Groups, routine: str, kind: str) -> str:
    """The device of the newest run that has these cases."""
    dates = {
        key[0]: max(case.run["date"] for case in cases)
        for key, cases in groups.items()
        if key[1:] == (routine, kind)
    }
    return max(dates, key=dates.__getitem__)


def readme_rows(groups: Groups) -> Iterator[Row]:
    """README's rows of what `pyblasgpu bench` has timed."""
    rows = [
        ("GEMM, orders 2048 to 8192, all layouts", "gemm", "square", 2048, "cublas_tflops"),
        ("TRSM, orders 256 to 8192, as many right-hand sides", "trsm", "square", 0, "cublas_tflops"),
        ("TRMM in place, orders 256 to 8192, as many columns", "trmm", "square", 0, "cublas_tflops"),
        ("the same beside cuBLAS's TRMM out of place", "trmm", "square", 0, "cublas_out_of_place_tflops"),
        ("TRSM, batches of small triangles, orders 16 to 512", "trsm", "batched", 0, "cublas_tflops"),
    ]
    for label, routine, kind, least, rate in rows:
        device = newest_device(groups, routine, kind)
        records = [(case.record, case.run["commit"][:7]) for case in groups[device, routine, kind]]
        ratios = [
            (record["dtype"], record["tflops"] / record[rate], commit)
            for record, commit in records
            if rate in record and record["n"] >= least
        ]
        yield Row(label, device, ratios)


def with_table(readme: str, groups: Groups) -> str:
    """README with its table."""
    return between_markers(readme, readme_table(readme_rows(groups), RESULTS, HOPPER))


def between_markers(text: str, made: str) -> str:
    """`text` with `made` between the two markers."""
    before, rest = text.split(BEGIN, 1)
    return f"{before}{BEGIN}\n{made}\n{END}{rest.split(END, 1)[1]}"


# -------------------------------------------------------------------------------------------------- plot


def plotted(groups: Groups) -> list[Case]:
    """The cases of README's plot: TRSM of square matrices, on the device of the newest run."""
    return groups[newest_device(groups, "trsm", "square"), "trsm", "square"]


def draw(cases: list[Case], out: Path) -> None:
    """TFLOP/s over n, ours and cuBLAS's, a panel a dtype."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9.6, 2.7), layout="constrained", facecolor="white")
    panels = figure.subplots(1, 4, sharey=True)
    for letter, axis in zip("sdcz", panels, strict=True):
        mine = sorted((c.record for c in cases if c.record["dtype"] == letter), key=lambda r: r["n"])
        orders = [record["n"] for record in mine]
        axis.plot(orders, [record["tflops"] for record in mine], "o-", markersize=4, label="pyblasgpu")
        axis.plot(orders, [record["cublas_tflops"] for record in mine], "s--", markersize=4, label="cuBLAS")
        axis.set_xscale("log", base=2)
        axis.set_xticks(TICKS, [str(order) for order in TICKS])
        axis.set_title(f"{letter}trsm", fontsize=10)
        axis.set_xlabel("n")
        axis.grid(alpha=0.3)
    panels[0].set_ylim(bottom=0)  # shared: after all have drawn
    panels[0].set_ylabel("TFLOP/s")
    panels[0].legend(fontsize=8)
    run = cases[0].run
    figure.suptitle(f"TRSM, n × n with n right-hand sides, {run['device']}", fontsize=11)
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": "pyblasgpu"}):
        figure.savefig(out, metadata={"Date": None, "Source": commits(cases)})


def _peak(groups: Groups) -> float:
    """The peak of FP32 of the card of the second plot."""
    _, cases = next(each for each in groups.items() if each[0][0] == HOPPER)
    return float(cases[0].run["peak_tflops"]["float32"])


def main(arguments: list[str]) -> int:
    """Write all four; returns the exit code."""
    if arguments:
        raise SystemExit(__doc__)
    groups = measured()
    PAGE.write_text(page(groups), encoding="utf-8")
    README.write_text(with_table(README.read_text(encoding="utf-8"), groups), encoding="utf-8")
    PLOT.parent.mkdir(exist_ok=True)
    draw(plotted(groups), PLOT)
    draw_gemm_tensor(RESULTS, HOPPER, _peak(groups), PLOT_TENSOR)
    for path in (PAGE, README, PLOT, PLOT_TENSOR):
        print(path.relative_to(ROOT))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
