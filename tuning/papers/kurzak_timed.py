"""Kurzak et al.'s experiment: every variant of their pruned space timed on the device that is here.

``python tuning/papers/kurzak_timed.py [--dtype s,d] [--layout nn,nt,tt,tn] [--seconds 10m] [--out FOLDER]``

The kernels are the paper's Algorithm 1: `gemm_simt` with one stage, loads through registers, shared memory
skewed by one element, all loops but the outermost unrolled; each with plain loads and with those of the
read-only path, which stands for textures. The space is that of Algorithms 2 and 3 on the paper's card
(``--space fermi``) or on any other, under the guidelines of Table 1. It writes Table 2 (the winners, next to
the vendor and the peak), Figure 5 (variants of each type), the spread between slowest and fastest, Figure 6
(the winners over n), and section 8. That is the best kernel of each tile, as a small one gives more
parallelism, and at k = 64 and 32 the winner and the best of these. ``--tiles`` times section 8 alone, of
kernels that load by the read-only path, as all winners do.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[2]))

from rich.table import Table

from pyblasgpu.errors import ConfigError
from pyblasgpu.gpu.device import Device, known
from pyblasgpu.kernels.gemm.simt import STEM, GemmSimt
from pyblasgpu.options import parse_count, parse_sizes
from pyblasgpu.terminal import guarded
from pyblasgpu.tuning.prune import Guidelines
from pyblasgpu.types import DTYPES
from tuning.papers.experiment import Experiment, Extents, Kernel, Measured, Rows, share_of_peak
from tuning.papers.kurzak import LAYOUTS, TABLE_1, CodeVariant, variants, winner_of_table_2
from tuning.papers.study import Figure, Study, add_options, interleaved, names_in, run_study

__all__ = ["GUIDELINES", "STUDY", "config_of", "experiment", "main", "space", "table", "tiles"]

#: Table 1, with CGEMM's reuse as the formula gives it to the paper's winner: none has the printed 5.0.
GUIDELINES = {**TABLE_1, "c": Guidelines(threads=512, blocks=2, reuse=4.0)}
SIZE = 2048
CURVE = "128,256,512,1024,2048,4096"
RANKS, SMALL, TILES = (64, 32), "32×32", "section 8"  # which is of tiles and low ranks
SEED = 2011
SEARCH = 0.8  # of the time of a type: the search; the rest is for the winner over n


def config_of(letter: str, layout: str, variant: CodeVariant, texture: bool = False) -> GemmSimt:
    """The kernel of a variant: Algorithm 1, its stripes skewed by an element; loads by texture or not.

    Raises
    ------
    ConfigError
        Where lanes of a warp cannot be mapped to its thread grid.
    """
    v = variant
    lanes = next((x for x in (8, 4, 16, 2, 32, 1) if v.m_dim % x == 0 and v.n_dim % (32 // x) == 0), 8)
    return GemmSimt(
        dtype=letter,
        trans_a=layout[0] == "t",
        trans_b=layout[1] == "t",
        BLK_M=v.m_blk,
        BLK_N=v.n_blk,
        BLK_K=v.k_blk,
        DIM_X=v.m_dim,
        DIM_Y=v.n_dim,
        DIM_XA=v.m_dim_a,
        DIM_YA=v.n_dim_a,
        DIM_XB=v.m_dim_b,
        DIM_YB=v.n_dim_b,
        PAD_A=1,
        PAD_B=1,
        WARP_X=lanes,
        UNROLL=v.k_blk,
        read_only=texture,
    )


class Space(NamedTuple):
    """The variants of a GEMM that are timed, and how many there are."""

    configs: list[GemmSimt]
    variants: int
    refused: int


def space(letter: str, layout: str, card: Device, most: int | None) -> Space:
    """The kernels of the card's space, at most so many: the paper's winner, then the others in random order.

    So a time limit cuts off no corner.
    """
    found, refused, first = [], 0, winner_of_table_2(letter, layout)
    for variant in variants(DTYPES[letter], layout, card, GUIDELINES[letter]):
        try:
            found += [config_of(letter, layout, variant, texture) for texture in (False, True)]
        except ConfigError:
            refused += 1
    random.Random(SEED).shuffle(found)
    paper = [config_of(letter, layout, first, texture) for texture in (False, True)]
    found = list(dict.fromkeys([*(config for config in paper if config in found), *found]))
    return Space(found[:most], len(found) // 2 + refused, refused)


def experiment(
    run: Experiment, letter: str, layout: str, chosen: Space, size: int, curve: Sequence[int]
) -> dict[str, Any]:
    """The results of one GEMM, as JSON holds them."""
    at, problems = (size, size, size), [(n, n, n) for n in curve]
    vendor = _by_n(run.vendor(letter, layout, list(dict.fromkeys([*problems, at]))))
    with run.part(SEARCH):
        timed = list(run.times(STEM, layout, chosen.configs, [at]))
    good = sorted((each for each in timed if each.rates), key=lambda each: -each.rates[at])
    result: dict[str, Any] = {
        "dtype": letter,
        "layout": layout,
        "size": size,
        "variants": chosen.variants,
        "refused": chosen.refused,
        "outcomes": dict(Counter(each.outcome for each in timed)),
        "paper": next((round(each.rates[at], 3) for each in good if _is_papers(each.config, layout)), None),
        "tflops": [round(each.rates[at], 3) for each in good],
        "vendor": vendor,
    }
    if good:
        result["winner"] = asdict(good[0].config)
        result["share_of_peak"] = share_of_peak(run.device, letter, good[0].rates[at])
        result["curve"] = _by_n(run.timed(STEM, layout, good[0].config, problems, verify=False).rates)
        result |= section_8(run, layout, good, at)
    return result


def tiles(run: Experiment, letter: str, layout: str, chosen: Space, size: int) -> dict[str, Any]:
    """Section 8 alone, as JSON holds it."""
    at = (size, size, size)
    with run.part(SEARCH):
        timed = list(run.times(STEM, layout, _by_texture(chosen.configs), [at]))
    good = sorted((each for each in timed if each.rates), key=lambda each: -each.rates[at])
    row: dict[str, Any] = {"dtype": letter, "layout": layout, "figure": TILES, "size": size}
    return row | {"timed": len(good)} | (section_8(run, layout, good, at) if good else {})


def _by_texture(configs: Iterable[GemmSimt]) -> list[GemmSimt]:
    return [config for config in configs if config.read_only]


def section_8(run: Experiment, layout: str, good: Sequence[Measured], at: Extents) -> dict[str, Any]:
    """The rate of the best kernel of each tile, and at a low rank of the winner and of the best of these."""
    best: dict[str, Measured] = {}
    for each in good:  # the fastest first
        best.setdefault(_tile(each.config), each)
    low: dict[str, dict[str, Any]] = {}
    for rank in RANKS:
        problem = (*at[:2], rank)
        timed = {
            tile: run.timed(STEM, layout, each.config, [problem], verify=False).rates.get(problem)
            for tile, each in best.items()
        }
        rates = {tile: round(rate, 3) for tile, rate in timed.items() if rate is not None}
        if rates and (default := rates.get(_tile(good[0].config))) is not None:
            tuned = max(rates, key=lambda tile: rates[tile])
            low[str(rank)] = {"default": default, "tuned": rates[tuned], "tile": tuned}
    return {"tiles": {tile: round(each.rates[at], 3) for tile, each in best.items()}, "low_rank": low}


def _tile(config: GemmSimt) -> str:
    return f"{config.BLK_M}×{config.BLK_N}"


def _is_papers(config: GemmSimt, layout: str) -> bool:
    """Whether it is the paper's winner, with plain loads or the others."""
    paper = config_of(config.dtype, layout, winner_of_table_2(config.dtype, layout), config.read_only)
    return config == paper


def _by_n(rates: dict[tuple[int, ...], float]) -> dict[str, float]:
    return {str(extents[0]): round(rate, 3) for extents, rate in rates.items()}


def table(results: Rows, device: str) -> Table:
    """Table 2, a GEMM a row."""
    counts, shapes = ("GEMM", "variants", "timed"), ("tile", "threads", "for A", "for B", "texture")
    columns = (*counts, *shapes, "TFLOP/s", "peak", "paper's", "slowest", "cuBLAS")
    made = Table(*columns, title=f"The space of Kurzak et al., timed on {device}")
    for row in _of_table_2(results):
        start = [f"{row['dtype']}gemm {row['layout']}", str(row["variants"]), str(len(row["tflops"]))]
        if "winner" not in row:
            made.add_row(*start, *[""] * (len(columns) - len(start)))
            continue
        w, share = row["winner"], row["share_of_peak"]
        vendor = row["vendor"].get(str(row["size"]))
        made.add_row(
            *start,
            f"{w['BLK_M']}×{w['BLK_N']}×{w['BLK_K']}",
            f"{w['DIM_X']}×{w['DIM_Y']}",
            f"{w['DIM_XA']}×{w['DIM_YA']}",
            f"{w['DIM_XB']}×{w['DIM_YB']}",
            "yes" if w["read_only"] else "no",
            f"{row['tflops'][0]:.2f}",
            "" if share is None else f"{share:.0%}",
            "" if row["paper"] is None else f"{row['paper']:.2f}",
            f"{row['tflops'][-1]:.2f}",
            "" if vendor is None else f"{vendor:.2f}",
        )
    return made


def _of_table_2(results: Rows) -> Rows:
    return [row for row in results if row.get("figure") != TILES]


def low_table(results: Rows, device: str) -> Table:
    """Section 8: the tile of 32 × 32 against the winner's, and products of low rank."""
    ranks = (f"k = {rank}, {which}" for rank in RANKS for which in ("the winner", "the best", "its tile"))
    made = Table("GEMM", "tile", "TFLOP/s", SMALL, *ranks, title=f"Section 8 of Kurzak et al. on {device}")
    for row in results:
        if not row.get("tiles"):
            continue
        winner, rate = next(iter(row["tiles"].items()))
        small, cells = row["tiles"].get(SMALL), []
        for rank in map(str, RANKS):
            low = row["low_rank"].get(rank)
            cells += [f"{low['default']:.2f}", f"{low['tuned']:.2f}", low["tile"]] if low else [""] * 3
        shown = "" if small is None else f"{small:.2f} ({small / rate:.0%})"
        made.add_row(f"{row['dtype']}gemm {row['layout']}", winner, f"{rate:.2f}", shown, *cells)
    return made


def _curves(results: Rows) -> dict[str, list[tuple[float, float]]]:
    """Figure 6: the winners, and cuBLAS, over n."""
    found = {}
    for row in _of_table_2(results):
        for what, key in (("", "curve"), (" cuBLAS", "vendor")):
            points = sorted((float(n), rate) for n, rate in row.get(key, {}).items())
            found[f"{row['dtype']}gemm {row['layout']}{what}"] = points
    return found


def _spaces(options: argparse.Namespace) -> dict[tuple[str, str], Space]:
    """By dtype and layout; a layout of all types first."""
    pairs = [(letter, layout) for layout in options.layout for letter in options.dtype]
    return {pair: space(*pair, known(options.space), options.most) for pair in pairs}


def _kernels(options: argparse.Namespace, device: Device) -> Iterable[Kernel]:
    lists = [each.configs for each in _spaces(options).values()]
    if options.tiles:
        lists = [_by_texture(configs) for configs in lists]
    return ((STEM, config) for config in interleaved(lists))


def _collect(run: Experiment, options: argparse.Namespace) -> dict[str, Any]:
    spaces = _spaces(options)
    results = [
        tiles(run, *pair, spaces[pair], options.n)
        if options.tiles
        else experiment(run, *pair, spaces[pair], options.n, options.sizes)
        for pair in run.in_turn(list(spaces))
    ]
    return {"space": options.space, "results": results}


def _tables(made: dict[str, Any], options: argparse.Namespace) -> list[Table]:
    tables = table(made["results"], made["device"]), low_table(made["results"], made["device"])
    return [each for each in tables if each.row_count]


def _figures(made: dict[str, Any], options: argparse.Namespace) -> list[Figure]:
    return [Figure("kurzak_figure6", f"Figure 6 on {made['device']}", _curves(made["results"]))]


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--dtype", default=list(DTYPES), type=names_in(DTYPES), help="s,d,c,z; default: all")
    parser.add_argument("--layout", default=LAYOUTS, type=names_in(LAYOUTS), help="nn,nt,tn,tt; default: all")
    parser.add_argument("--space", default="fermi", help="the card whose space it is (%(default)s)")
    parser.add_argument(
        "--n", type=parse_count, default=SIZE, help="order at which they compete (%(default)s)"
    )
    parser.add_argument("--sizes", type=parse_sizes, default=CURVE, help="orders of Figure 6 (%(default)s)")
    parser.add_argument("--most", type=parse_count, metavar="N", help="size of a random sample of variants")
    parser.add_argument("--tiles", action="store_true", help="section 8 alone")
    add_options(parser, "10m")
    return parser.parse_args(arguments)


STUDY = Study("kurzak", _parse, _kernels, _collect, _tables, _figures)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the experiment on the device that is here; returns the exit code."""
    return run_study(STUDY, arguments)


if __name__ == "__main__":
    sys.exit(guarded(["tuning/papers/kurzak_timed.py"], main))
