"""Complex products on FMA units by three real ones, timed with the library's own, which are of four.

``python tuning/papers/three_products.py [--dtype c,z] [--layout nn] [--seconds 1m] [--out FOLDER]``

MAGMA made such products of three real GEMMs, as Kurzak et al. say; here one kernel does, `gemm_simt_3m`. A
step has a quarter fewer FMAs, and a thread three sums an element, not two.
"""

from __future__ import annotations

import argparse
import itertools
import sys
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[2]))

from rich.table import Table

from pyblasgpu.errors import ConfigError
from pyblasgpu.gpu.device import Device
from pyblasgpu.kernels.gemm import simt, simt_three_m
from pyblasgpu.kernels.gemm.simt_three_m import GemmSimtThreeM
from pyblasgpu.kernels.gemm.space import deepened
from pyblasgpu.options import parse_sizes
from pyblasgpu.terminal import guarded
from pyblasgpu.types import DTYPES
from tuning.papers.experiment import Experiment, Extents, Kernel, Rows
from tuning.papers.kurzak import LAYOUTS
from tuning.papers.study import Figure, Study, add_options, names_in, run_study

__all__ = ["STUDY", "experiment", "main", "table", "tiles"]

SIZES = "256,512,1024,2048,4096,8192"
#: Tiles of complex64: rows and columns of a block, its grid of threads, and blocks of a multiprocessor.
TILES = (
    (96, 128, 16, 16, 1),
    (128, 96, 16, 16, 1),
    (128, 64, 16, 16, 1),
    (64, 64, 8, 16, 3),
    (128, 32, 32, 8, 2),
    (32, 32, 8, 8, 6),
)
DEPTHS = (8, 16)
_COMMON = {
    "stages": 2,
    "UNROLL": 8,
    "VEC_K": 1,
    "WARP_X": 8,
    "by_rows": True,
    "prefetch": True,
    "persistent": True,
    "share_a": True,
    "share_b": True,
}
_VECTOR = 16  # bytes of the widest load


def tiles(letter: str, layout: str) -> list[GemmSimtThreeM]:
    """The kernels that are timed: in complex128 with half the columns of a thread."""
    found, dtype = [], DTYPES[letter]
    trans_a, trans_b = (each == "t" for each in layout)
    common = {**_COMMON, **dict.fromkeys(("VEC_M", "VEC_N"), _VECTOR // dtype.itemsize)}
    for (blk_m, blk_n, x, y, blocks), depth in itertools.product(TILES, DEPTHS):
        cols = blk_n * DTYPES["c"].itemsize // dtype.itemsize
        given = {"BLK_M": blk_m, "BLK_N": cols, "DIM_X": x, "DIM_Y": y, "min_blocks": blocks}
        chosen = deepened(simt.STEM, dtype, layout, {**common, **given}, depth) | {"UNROLL": depth}
        with suppress(ConfigError):
            found.append(GemmSimtThreeM(dtype=letter, trans_a=trans_a, trans_b=trans_b, **chosen))
    return found


def experiment(run: Experiment, letter: str, layout: str, sizes: Sequence[int]) -> dict[str, Any]:
    """The rates of one GEMM, as JSON holds them."""
    problems: list[Extents] = [(n, n, n) for n in sizes]
    of_others = {"ours": run.ours(letter, layout, problems), "vendor": run.vendor(letter, layout, problems)}
    configs = tiles(letter, layout)
    compiled = configs if run.is_over else run.compiled(simt_three_m.STEM, configs)
    # an override names the family whose choice it takes the place of
    timed = [run.timed(simt.STEM, layout, config, problems) for config in compiled]
    return {
        "dtype": letter,
        "layout": layout,
        **{name: _by_n(rates) for name, rates in of_others.items()},
        "tiles": [
            {"config": asdict(each.config), "tflops": _by_n(each.rates)} for each in timed if each.rates
        ],
    }


def _by_n(rates: dict[Extents, float]) -> dict[str, float]:
    return {str(extents[0]): round(rate, 3) for extents, rate in rates.items()}


def table(results: Rows, device: str) -> Table:
    """An order a row: four products, the best of three, and its tile."""
    columns = ("GEMM", "n", "tiles", "four products", "three products", "tile", "cuBLAS")
    made = Table(*columns, title=f"Complex products by three real ones on {device}, TFLOP/s")
    for row in results:
        for n, four in row["ours"].items():
            best = max(row["tiles"], key=lambda tile: tile["tflops"].get(n, 0.0), default=None)
            if best is None or n not in best["tflops"]:
                continue
            c, vendor = best["config"], row["vendor"].get(n)
            made.add_row(
                f"{row['dtype']}gemm {row['layout']}",
                n,
                str(len(row["tiles"])),
                f"{four:.2f}",
                f"{best['tflops'][n]:.2f}",
                f"{c['BLK_M']}×{c['BLK_N']}×{c['BLK_K']}, {c['DIM_X']}×{c['DIM_Y']} threads",
                "" if vendor is None else f"{vendor:.2f}",
            )
    return made


def _pairs(options: argparse.Namespace) -> list[tuple[str, str]]:
    return [(letter, layout) for layout in options.layout for letter in options.dtype if letter in "cz"]


def _kernels(options: argparse.Namespace, device: Device) -> Iterable[Kernel]:
    for pair in _pairs(options):
        yield from ((simt_three_m.STEM, config) for config in tiles(*pair))


def _collect(run: Experiment, options: argparse.Namespace) -> dict[str, Any]:
    pairs = run.in_turn(_pairs(options))
    return {"results": [experiment(run, *pair, options.sizes) for pair in pairs]}


def _tables(made: dict[str, Any], options: argparse.Namespace) -> list[Table]:
    made_of = table(made["results"], made["device"])
    return [made_of] if made_of.row_count else []


def _figures(made: dict[str, Any], options: argparse.Namespace) -> list[Figure]:
    return []


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--dtype", default=["c"], type=names_in(DTYPES), help="c,z; default: c")
    parser.add_argument("--layout", default=["nn"], type=names_in(LAYOUTS), help="nn,nt,tn,tt; default: nn")
    parser.add_argument("--sizes", type=parse_sizes, default=SIZES, help="orders (%(default)s)")
    add_options(parser, "1m")
    return parser.parse_args(arguments)


STUDY = Study("three_products", _parse, _kernels, _collect, _tables, _figures)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the experiment on the device that is here; returns the exit code."""
    return run_study(STUDY, arguments)


if __name__ == "__main__":
    sys.exit(guarded(["tuning/papers/three_products.py"], main))
