"""Li, Dongarra, Tomov's shapes: the products of a block LU, this library and cuBLAS, over its order.

``python tuning/papers/li.py [--dtype s,d] [--blocks 64,128] [--seconds 5m] [--out FOLDER]``

(N, N-BS, BS) updates the trailing matrix, (N, BS, BS) a panel by its triangle; the figure is the paper's 3.5.
``--sweep tuning/sweeps/nvidia_h200.jsonl.gz`` times the fastest kernels recorded near these shapes, too.
`pyblasgpu bench --shapes lu` times the same products with error bounds.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from itertools import chain
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[2]))

from rich.table import Table

from pyblasgpu.database import FAMILIES, families_of
from pyblasgpu.errors import ConfigError
from pyblasgpu.gpu.device import Device
from pyblasgpu.options import parse_count, parse_sizes
from pyblasgpu.terminal import guarded
from pyblasgpu.tuning.sweep_file import read_sweep
from pyblasgpu.types import DTYPES
from tuning.papers.experiment import Experiment, Extents, Kernel, Rows
from tuning.papers.study import Figure, Study, add_options, names_in, run_study

__all__ = ["SHAPES", "STUDY", "experiment", "main", "recorded", "table"]

#: What is multiplied at order n with blocks of bs.
SHAPES = {"N x N-BS x BS": lambda n, bs: (n, n - bs, bs), "N x BS x BS": lambda n, bs: (n, bs, bs)}
#: The class of sizes whose recorded kernels are timed at a shape.
NEAR = {"N x N-BS x BS": "low_rank", "N x BS x BS": "update_cols"}
ORDERS = ",".join(str(n) for n in range(512, 6145, 512))


@lru_cache
def recorded(sweep: Path | None, letter: str, layout: str, shape: str, most: int) -> list[Kernel]:
    """The fastest kernels of a sweep near a shape; none without a sweep."""
    records = [
        record
        for record in (_records(sweep) if sweep else [])
        if (record.dtype, record.layout, record.size) == (letter, layout, NEAR[shape])
        and record.stem in families_of("gemm", letter)
        and record.outcome == "ok"
    ]
    found: dict[Kernel, None] = {}
    for record in sorted(records, key=lambda record: -record.tflops):
        with suppress(ConfigError):
            found[record.stem, FAMILIES[record.stem].config(letter, layout, record.parameters)] = None
    return list(found)[:most]


_records = lru_cache(read_sweep)


def experiment(
    run: Experiment,
    letter: str,
    layout: str,
    orders: Sequence[int],
    block: int,
    others: Mapping[str, Sequence[Kernel]],
) -> Rows:
    """TFLOP/s of both libraries at each shape, as JSON holds them, and of the `others` by shape."""
    rows: Rows = []
    for name, extents_of in SHAPES.items():
        problems: list[Extents] = [extents_of(n, block) for n in orders if n > block]
        ours, theirs = run.ours(letter, layout, problems), run.vendor(letter, layout, problems)
        tried = {
            str(kernel[1]): run.ours(letter, layout, problems, "gemm", (kernel,))
            for kernel in others.get(name, ())
        }
        for extents in problems:
            row: dict[str, Any] = {"dtype": letter, "layout": layout, "shape": name, "block": block}
            row |= {"extents": list(extents), "ours": ours.get(extents), "vendor": theirs.get(extents)}
            if tried:
                row["others"] = {
                    config: rates[extents] for config, rates in tried.items() if extents in rates
                }
            rows += [row] if row["ours"] or row["vendor"] else []
    return rows


def table(rows: Rows, device: str) -> Table:
    """An order a row, a product a column: both libraries, and their ratio."""
    cells: dict[str, dict[int, str]] = {}
    for row in rows:
        n, bs = row["extents"][0], row["block"]
        product = f"{row['dtype']} {row['layout']} {row['shape'].replace('BS', str(bs))}"
        cells.setdefault(product, {})[n] = _cell(row["ours"], row["vendor"])
    made = Table("N", *cells, title=f"GEMM of a block LU on {device}: TFLOP/s / cuBLAS's (ratio)")
    for n in sorted({n for column in cells.values() for n in column}):
        made.add_row(str(n), *[column.get(n, "") for column in cells.values()])
    return made


def _cell(ours: float | None, vendor: float | None) -> str:
    both = " / ".join("-" if rate is None else f"{rate:.1f}" for rate in (ours, vendor))
    return f"{both} ({ours / vendor:.2f})" if ours and vendor else both


def _collect(run: Experiment, options: argparse.Namespace) -> dict[str, Any]:
    cases = [
        (letter, layout, block)
        for block in options.blocks
        for layout in options.layout
        for letter in options.dtype
    ]
    rows = [
        row
        for letter, layout, block in run.in_turn(cases)
        for row in experiment(run, letter, layout, options.orders, block, _others(options, letter, layout))
    ]
    return {"results": rows}


def _others(options: argparse.Namespace, letter: str, layout: str) -> dict[str, list[Kernel]]:
    return {shape: recorded(options.sweep, letter, layout, shape, options.most) for shape in SHAPES}


def _kernels(options: argparse.Namespace, device: Device) -> Iterable[Kernel]:
    for layout in options.layout:
        for letter in options.dtype:
            yield from chain.from_iterable(_others(options, letter, layout).values())


def _tables(made: dict[str, Any], options: argparse.Namespace) -> list[Table]:
    """A table a dtype."""
    rows, device = made["results"], made["device"]
    letters = dict.fromkeys(row["dtype"] for row in rows)
    return [table([row for row in rows if row["dtype"] == letter], device) for letter in letters]


def _figures(made: dict[str, Any], options: argparse.Namespace) -> list[Figure]:
    figures = []
    for letter in options.dtype:
        curves: dict[str, list[tuple[float, float]]] = {}
        for row in made["results"]:
            for who, key in (("", "ours"), (", cuBLAS", "vendor")):
                if row["dtype"] == letter and row[key]:
                    name = f"{row['shape']}, BS {row['block']}{who}"
                    curves.setdefault(name, []).append((row["extents"][0], row[key]))
        figures.append(
            Figure(f"li_{letter}gemm", f"{letter}gemm of a block LU on {made['device']}", dict(curves))
        )
    return figures


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--dtype", default=["s", "d"], type=names_in(DTYPES), help="(s,d)")
    parser.add_argument("--layout", default=["nn"], type=names_in(("nn", "nt", "tn", "tt")), help="(nn)")
    parser.add_argument("--blocks", type=parse_sizes, default="64,128", help="(%(default)s)")
    parser.add_argument("--orders", type=parse_sizes, default=ORDERS, metavar="N,N,...", help="(512 to 6144)")
    parser.add_argument("--sweep", type=Path, help="also time the fastest kernels of this recorded sweep")
    parser.add_argument("--most", type=parse_count, default=6, help="number of them a shape (%(default)s)")
    add_options(parser, "5m")
    return parser.parse_args(arguments)


STUDY = Study("li", _parse, _kernels, _collect, _tables, _figures)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the experiment on the device that is here; returns the exit code."""
    return run_study(STUDY, arguments)


if __name__ == "__main__":
    sys.exit(guarded(["tuning/papers/li.py"], main))
