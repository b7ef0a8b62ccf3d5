"""Steinsland's experiment: the best kernel of each blocking scheme, by size, on the device that is here.

``python tuning/papers/steinsland.py [--dtype s,d] [--layout nn,tn] [--seconds 10m] [--out FOLDER]``

A scheme says which operands pass through shared memory, and whether a thread computes one element or a
register tile. For each scheme the script times a random sample of tiles, with and without padding. Private
operands go by blocks along k of two sizes. Stripes along k are transposed on the way to shared memory or
kept, and loads from global memory take the read-only path or not. The two kernels of Appendix A are first.
The cost model rules nothing out; what needs more registers than a thread has is left out.
"""

from __future__ import annotations

import argparse
import itertools
import random
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[2]))

from rich.table import Table

from pyblasgpu.database import FAMILIES
from pyblasgpu.errors import ConfigError
from pyblasgpu.gpu.device import Device
from pyblasgpu.kernels.gemm.simt import STEM, GemmSimt
from pyblasgpu.kernels.gemm.space import deepened
from pyblasgpu.model.occupancy import check_device
from pyblasgpu.options import parse_count, parse_sizes
from pyblasgpu.terminal import guarded
from pyblasgpu.types import DTYPES, Dtype
from tuning.papers.experiment import Experiment, Kernel, Measured, Rows
from tuning.papers.kept import as_stored
from tuning.papers.study import Figure, Study, add_options, interleaved, names_in, run_study

__all__ = ["SCHEMES", "STUDY", "appendix_a", "candidates", "experiment", "main", "scheme_of", "table"]

SEED = 2016
#: Scheme -> whether A, B are shared, and whether a thread computes a register tile.
SCHEMES = {
    "none": (False, False, False),
    "both shared": (True, True, False),
    "A shared": (True, False, True),
    "B shared": (False, True, True),
    "both private": (False, False, True),
    "shared, private": (True, True, True),
}
_GRIDS = ((8, 8), (16, 8), (8, 16), (16, 16), (32, 8))
_TILES = ((2, 2), (4, 4), (4, 8), (8, 4), (8, 8), (6, 6))
_DEPTHS = (8, 16)
_VECTOR = 16  # bytes of the widest load
ADDRESSES = 48  # registers of a thread besides its tile, some more than there are
_PLAIN = {"UNROLL": 2, "stages": 1, "VEC_M": 1, "VEC_N": 1, "VEC_K": 1}
#: The kernels of Appendix A, by scheme: of AMD's card and of NVIDIA's. Theirs are by rows; this is the same
#: by columns, so that A and B, M and N change places.
APPENDIX_A = {
    "B shared": (
        {"BLK_M": 64, "BLK_N": 16, "DIM_X": 64, "DIM_Y": 1, "WARP_X": 32, "UNROLL": 4},
        16,
    ),
    "none": ({"BLK_M": 8, "BLK_N": 8, "DIM_X": 8, "DIM_Y": 8, "WARP_X": 8}, 2),
}


def candidates(scheme: str, letter: str, layout: str, device: Device) -> list[GemmSimt]:
    """All kernels of a scheme that the rules and the device leave, each once, in random order after that of
    Appendix A.
    """
    found: dict[GemmSimt, None] = {}
    most = device.max_registers_per_thread - ADDRESSES
    for keeps, parameters in _parameters(scheme, DTYPES[letter], layout):
        try:
            config = FAMILIES[STEM].config(letter, layout, parameters)
            if keeps and config.VEC_K == 1:
                config = as_stored(config)
            check_device(config, device)
        except ConfigError:
            continue
        if config.registers <= most:
            found[config] = None
    shuffled = list(found)
    random.Random(SEED).shuffle(shuffled)
    first = appendix_a(scheme, letter, layout)
    return shuffled if first is None else [first, *(config for config in shuffled if config != first)]


def appendix_a(scheme: str, letter: str, layout: str) -> GemmSimt | None:
    """The thesis's kernel of this scheme, if it has one."""
    if scheme not in APPENDIX_A:
        return None
    tile, depth = APPENDIX_A[scheme]
    share_a, share_b, _ = SCHEMES[scheme]
    given = {**_PLAIN, **tile, "share_a": share_a, "share_b": share_b}
    chosen = deepened(STEM, DTYPES[letter], layout, given, depth)
    padding = {"PAD_A": 0, "PAD_B": chosen["VEC_B"] if share_b else 0}  # by a load
    config: GemmSimt = FAMILIES[STEM].config(letter, layout, chosen | padding | {"UNROLL": given["UNROLL"]})
    return config


def _parameters(scheme: str, dtype: Dtype, layout: str) -> Iterator[tuple[bool, dict[str, Any]]]:
    """Parameters, and whether stripes along k are kept."""
    share_a, share_b, tiled = SCHEMES[scheme]
    shared = share_a or share_b
    along = {"A": share_a and layout[0] == "t", "B": share_b and layout[1] == "n"}
    for (x, y), (thr_m, thr_n), depth in itertools.product(_GRIDS, _TILES if tiled else ((1, 1),), _DEPTHS):
        tile = {"DIM_X": x, "DIM_Y": y, "BLK_M": x * thr_m, "BLK_N": y * thr_n, "UNROLL": depth, "stages": 1}
        tile |= {"share_a": share_a, "share_b": share_b, "WARP_X": 8}
        keeps = (False, True) if any(along.values()) else (False,)
        blocks = (depth,) if (share_a and share_b) or not tiled else along_k(dtype, depth)
        for kept, padded, read_only, block in itertools.product(
            keeps, (True, False) if shared else (False,), (False, True), blocks
        ):
            fragments = _fragments(dtype, along, thr_m, thr_n, kept, share_a and share_b)
            chosen = deepened(STEM, dtype, layout, {**tile, **fragments}, depth)
            of_kept = along if kept and chosen["VEC_K"] == 1 else {}
            chosen |= _padding(chosen, padded, of_kept)
            yield kept, chosen | {"read_only": read_only, "UNROLL": block}


def along_k(dtype: Dtype, depth: int) -> tuple[int, int]:
    """The register blocks along k of a private operand; of complex128 more than four elements would spill."""
    return (2, 4) if dtype.itemsize == _VECTOR else (4, depth)


def _fragments(
    dtype: Dtype, along: Mapping[str, bool], thr_m: int, thr_n: int, kept: bool, shares_both: bool
) -> dict[str, int]:
    """By how many elements a thread reads a stripe; one that is kept along k is read along k, by several
    elements where both operands are shared.
    """
    most = _VECTOR // dtype.itemsize

    def widest(extent: int) -> int:
        return max(width for width in (1, 2, 4) if width <= most and extent % width == 0)

    return {
        "VEC_M": 1 if kept and along["A"] else widest(thr_m),
        "VEC_N": 1 if kept and along["B"] else widest(thr_n),
        "VEC_K": most if kept and shares_both else 1,
    }


def _padding(chosen: dict[str, Any], padded: bool, kept: Mapping[str, bool]) -> dict[str, int]:
    """What is added to a row of each stripe: what meets no bank twice, or nothing.

    A stripe that is `kept` and read by single elements has a load more: its rows are odd numbers of loads.
    """
    if not padded:
        return {"PAD_A": 0, "PAD_B": 0}
    least = {"A": max(chosen["VEC_M"], chosen["VEC_K"]), "B": max(chosen["VEC_N"], chosen["VEC_K"])}
    found = {f"PAD_{name}": chosen.get(f"PAD_{name}") or least[name] for name in "AB"}
    return found | {f"PAD_{name}": chosen.get(f"VEC_{name}", 1) for name in "AB" if kept.get(name)}


def experiment(
    run: Experiment, letter: str, layout: str, sizes: Sequence[int], most: int | None
) -> dict[str, Any]:
    """The best of each scheme at each size, and what the library and cuBLAS do there, as JSON holds them."""
    problems = [(n, n, n) for n in sizes]
    ours, vendor = (of(letter, layout, problems) for of in (run.ours, run.vendor))
    found = {scheme: candidates(scheme, letter, layout, run.device) for scheme in SCHEMES}
    configs = interleaved(each[:most] for each in found.values())
    timed: dict[str, list[Measured]] = {scheme: [] for scheme in SCHEMES}
    for each in run.times(STEM, layout, configs, problems):
        timed[scheme_of(each.config)].append(each)
    return {
        "dtype": letter,
        "layout": layout,
        "schemes": {
            scheme: {
                "candidates": len(found[scheme]),
                "outcomes": dict(Counter(each.outcome for each in of_scheme)),
                "best": {str(n): _best(of_scheme, (n, n, n)) for n in sizes},
            }
            for scheme, of_scheme in timed.items()
        },
        "appendix_a": {
            scheme: {str(m): round(rate, 3) for (m, _, _), rate in each.rates.items()}
            for scheme, of_scheme in timed.items()
            for each in of_scheme
            if each.rates and each.config == appendix_a(scheme, letter, layout)
        },
        "ours": {str(m): rate for (m, _, _), rate in ours.items()},
        "vendor": {str(m): rate for (m, _, _), rate in vendor.items()},
    }


def scheme_of(config: GemmSimt) -> str:
    """The scheme of a kernel."""
    facts = (*config.shares, config.THR_M * config.THR_N > 1)
    return next(scheme for scheme, its_facts in SCHEMES.items() if its_facts == facts)


def _best(timed: list[Measured], extents: tuple[int, ...]) -> dict[str, Any] | None:
    good = [each for each in timed if extents in each.rates]
    if not good:
        return None
    best = max(good, key=lambda each: each.rates[extents])
    config = best.config
    return {
        "tflops": round(best.rates[extents], 3),
        "tile": f"{config.BLK_M}x{config.BLK_N}x{config.BLK_K}",
        "threads": f"{config.DIM_X}x{config.DIM_Y}",
        "padding": [config.PAD_A, config.PAD_B],
        "kept": config.keeps_k_major,
        "read_only": config.read_only,
    }


def table(results: Rows, device: str) -> Table:
    """A scheme a row, a size a column: TFLOP/s."""
    sizes = list(
        dict.fromkeys(n for row in results for found in row["schemes"].values() for n in found["best"])
    )
    made = Table("GEMM", "scheme", "timed", *sizes, "best at the largest", title=f"Schemes on {device}")
    for row in results:
        name = f"{row['dtype']}gemm {row['layout']}"
        for scheme, found in row["schemes"].items():
            best = [found["best"].get(n) for n in sizes]
            made.add_row(
                name,
                scheme,
                str(found["outcomes"].get("ok", 0)),
                *["" if each is None else f"{each['tflops']:.2f}" for each in best],
                _described(list(found["best"].values())[-1]),
            )
            name = ""
        for scheme, rates_of in row.get("appendix_a", {}).items():
            rates = ["" if n not in rates_of else f"{rates_of[n]:.2f}" for n in sizes]
            made.add_row("", f"Appendix A's of {scheme!r}", "", *rates, "")
        for what, key in (("this library", "ours"), ("cuBLAS", "vendor")):
            rates = [row[key].get(n) for n in sizes]
            made.add_row("", what, "", *["" if rate is None else f"{rate:.2f}" for rate in rates], "")
    return made


def _described(best: dict[str, Any] | None) -> str:
    if best is None:
        return ""
    padding = "padded" if any(best["padding"]) else "not padded"
    lies = "kept along k" if best["kept"] else "transposed on load"
    return f"{best['tile']}, {best['threads']} threads, {padding}, {lies}{', read-only' * best['read_only']}"


def _pairs(options: argparse.Namespace) -> list[tuple[str, str]]:
    return [(letter, layout) for layout in options.layout for letter in options.dtype]


def _kernels(options: argparse.Namespace, device: Device) -> Iterable[Kernel]:
    """Kernels of one type and layout after the other, of each the schemes in turn, as they are timed."""
    for pair in _pairs(options):
        lists = (candidates(scheme, *pair, device)[: options.most] for scheme in SCHEMES)
        yield from ((STEM, config) for config in interleaved(lists))


def _collect(run: Experiment, options: argparse.Namespace) -> dict[str, Any]:
    pairs = _pairs(options)
    in_turn = run.in_turn(pairs, [DTYPES[letter].itemsize for letter, _ in pairs])
    return {"results": [experiment(run, *pair, options.sizes, options.most) for pair in in_turn]}


def _tables(made: dict[str, Any], options: argparse.Namespace) -> list[Table]:
    return [table(made["results"], made["device"])]


def _figures(made: dict[str, Any], options: argparse.Namespace) -> list[Figure]:
    """A figure a type and layout, of the last sample."""
    figures = {}
    for row in made["results"]:
        curves = {
            scheme: [(float(n), best["tflops"]) for n, best in found["best"].items() if best]
            for scheme, found in row["schemes"].items()
        }
        name = f"{row['dtype']}gemm_{row['layout']}"
        figures[name] = Figure(f"steinsland_{name}", f"Schemes of {name} on {made['device']}", curves)
    return list(figures.values())


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--dtype", default=list(DTYPES), type=names_in(DTYPES), help="s,d,c,z; default: all")
    parser.add_argument(
        "--layout", default=["nn", "tn"], type=names_in(("nn", "nt", "tn", "tt")), help="(nn,tn)"
    )
    parser.add_argument("--sizes", type=parse_sizes, default="256,1024,4096", help="orders (%(default)s)")
    parser.add_argument("--most", type=parse_count, metavar="N", help="number of kernels of each scheme")
    add_options(parser, "30m")
    return parser.parse_args(arguments)


STUDY = Study("steinsland", _parse, _kernels, _collect, _tables, _figures)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the experiment on the device that is here; returns the exit code."""
    return run_study(STUDY, arguments)


if __name__ == "__main__":
    sys.exit(guarded(["tuning/papers/steinsland.py"], main))
