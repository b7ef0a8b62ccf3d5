"""Figures in sentences of the papers' pages are those of the committed results."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

from tuning.papers.atlas import replay

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "docs" / "figures"))

import paper_tables  # noqa: E402 - the pages' own reading of counters

H200, H100 = "nvidia_h200", "nvidia_h100_80gb_hbm3"


def study(name: str, card: str = H200) -> dict[str, Any]:
    return json.loads((ROOT / "tuning/papers/results" / card / f"{name}.json").read_text())


def span(ratios: Iterable[float], digits: int = 1, falling: bool = False) -> str:
    """The least and the greatest."""
    ends = sorted(ratios, reverse=falling)
    return f"{ends[0]:.{digits}f} to {ends[-1]:.{digits}f}"


def percent(ratios: Iterable[float]) -> list[str]:
    return [f"{100 * ratio:.0f}" for ratio in ratios]


# --------------------------------------------------------------------------------------------------- KBLAS


def curve(dtype: str, figure: str, who: str) -> dict[int, float]:
    (row,) = (
        row
        for row in study("kblas")["results"]
        if (row["dtype"], row["figure"], row["who"]) == (dtype, figure, who)
    )
    return {int(n): rate for n, rate in row["tflops"].items()}


def over(dtype: str, figure: str, who: str, rival: str, rival_figure: str = "") -> dict[int, float]:
    mine, theirs = curve(dtype, figure, who), curve(dtype, rival_figure or figure, rival)
    return {n: mine[n] / theirs[n] for n in mine if n in theirs}


OURS, IN_PLACE, OUT_OF_PLACE = "this library", "cuBLAS, in place", "cuBLAS, out of place"


def kblas_figure1() -> Iterator[str]:
    d, s = (over(letter, "trmm", OUT_OF_PLACE, IN_PLACE) for letter in "ds")
    yield f"d: {d[512]:.0f} at 512, {d[2048]:.1f} at 2048, {d[8192]:.1f} at 8192; s: {span(s.values())}"


def kblas_figure5() -> Iterator[str]:
    d, s = (over(letter, "trmm", OURS, "GEMM") for letter in "ds")
    shares = [", ".join(percent(each[n] for n in (2048, 4096, 8192))) for each in (d, s)]
    yield f"at 2048, 4096, 8192 {shares[0]} % in d; {shares[1]} % in s"
    d, s = (over(letter, "trmm", OURS, OUT_OF_PLACE) for letter in "ds")
    small = [[ratio for n, ratio in each.items() if n <= 4096] for each in (d, s)]
    yield f"d: {span(small[0], 2)} to 4096, {d[8192]:.2f} at 8192"
    yield f"s: {max(small[1]):.1f} to {min(small[1]):.2f} to 4096, {s[8192]:.2f} at 8192"


def kblas_figure6() -> Iterator[str]:
    for text, rival in (("{} times, square; {} with 512 right-hand sides", "cuBLAS"),
                        ("ours is {} times as fast, square; {} with 512", "inverted blocks")):  # fmt: skip
        spans = (
            span(chain(*(over(letter, figure, OURS, rival).values() for letter in "ds")))
            for figure in ("trsm", "trsm 512")
        )
        yield text.format(*spans)


def kblas_traffic() -> Iterator[str]:
    shares = {}
    for run in paper_tables.traffic_runs():
        moved = paper_tables.moved(run)
        for letter in dict.fromkeys(key[0] for key in moved):
            mine, gemm = (sum(moved[letter, routine, "ours", 4096]) for routine in ("trmm", "gemm"))
            shares["H100" in run["device"], letter] = mine / gemm
    s, c, z = percent(shares[False, letter] for letter in "scz")
    there = percent(shares[True, letter] for letter in "sd")
    yield f"at 4096 {s}, {c} and {z} % of GEMM's in s, c and z"
    yield f"on an H100 {there[0]} % in s, {there[1]} % in d"


def kblas_more_bytes() -> Iterator[str]:
    ratios = []
    for run in paper_tables.traffic_runs():
        moved = paper_tables.moved(run)
        ratios += [
            sum(moved[letter, "trmm", "out-of-place", 4096]) / sum(moved[letter, "trmm", "ours", 4096])
            for letter in dict.fromkeys(key[0] for key in moved)
        ]
    yield f"cuBLAS's TRMM out of place moves {span(ratios)} times as many at 4096, on both cards"


def kblas_figure9() -> Iterator[str]:
    def ratios(letter: str, routine: str, least: int = 1024) -> list[float]:
        rows = study("kblas_figure9")["results"]
        return [
            r["ratio"] for r in rows if (r["dtype"], r["routine"]) == (letter, routine) and r["n"] >= least
        ]

    yield f"d {span(ratios('d', 'potri'))} times at 1024 to 8192, s {span(ratios('s', 'potri'))}"
    d, s = (span(ratios(letter, "potrs"), falling=True) for letter in "ds")
    yield f"POTRS {d} times (d), {s} (s) at 1024 to 8192"
    d, s = (span(ratios(letter, "posv", 2048), falling=True) for letter in "ds")
    yield f"POSV {d}, {s} from 2048 on"


# ------------------------------------------------------------------------- Kurzak, Matsumoto, Steinsland


def kurzak() -> Iterator[str]:
    rows = {row["dtype"]: row for row in study("kurzak")["results"]}
    best = {letter: max(row["tflops"]) for letter, row in rows.items()}
    yield f"0.641 to 0.650 | {best['s']:.1f}, H200 |"
    for letter, theirs in (("d", "0.303"), ("c", "0.778 to 0.792"), ("z", "0.304 to 0.308")):
        yield f"previously {theirs} | {best[letter]:.1f} |"
    yield f"less than a tenth | {100 * min(rows['s']['tflops']) / best['s']:.0f} %"
    s, z = percent(rows[letter]["paper"] / best[letter] for letter in "sz")
    yield f"The paper's kernels of SGEMM and ZGEMM reach {s} and {z} % of the winners"
    assert rows["c"]["paper"] == best["c"]  # "the CGEMM winner is still the paper's kernel"
    flat = [
        [rate for n, rate in rows[letter]["curve"].items() if int(n) >= least]
        for letter, least in (("d", 1024), ("c", 1024), ("z", 2048), ("s", 2048))
    ]
    rises = [max(rates) / min(rates) - 1 for rates in flat]
    assert max(rises[:3]) <= 0.05
    yield "within 5 % from 1024 on in d, c; from 2048 on in z"
    yield f"{100 * rises[3]:.0f} % between 2048 and 4096 in s"


def steinsland() -> Iterator[str]:
    rows = {(row["dtype"], row["layout"]): row for row in study("steinsland")["results"]}

    def rate(row: dict[str, Any], scheme: str, n: str) -> float:
        return ((row["schemes"][scheme].get("best") or {}).get(n) or {}).get("tflops", 0.0)

    best = rate(rows["s", "nn"], "shared, private", "4096")
    share = percent([best / rows["s", "nn"]["vendor"]["4096"]])[0]
    yield f"{best:.1f} TFLOP/s of the schemes at 4096 on an H200, {share} % of cuBLAS"
    for n, wins in (("256", "both shared"), ("1024", "shared, private"), ("4096", "shared, private")):
        for row in rows.values():
            assert max(row["schemes"], key=lambda scheme: rate(row, scheme, n)) == wins
    yield '"shared, private" from 1024 on; at 256 "both shared"'


def matsumoto() -> Iterator[str]:
    rows = {row["dtype"]: row for row in study("matsumoto")["results"]}
    d, s = rows["d"]["finalists"], rows["s"]["finalists"]
    whole = [sum(len(each["curve"]) == 32 for each in finalists) for finalists in (d, s)]
    counts = f"{whole[0]} (d) and {whole[1]} (s) of {len(d)} and {len(s)}"
    yield f"The time sufficed for {counts} finalists at all 32 orders"

    def unshared(finalists: list[dict[str, Any]], layout: str) -> float:
        return max(each["tflops"] for each in finalists if (each["shared"], each["layout"]) == ("-", layout))

    packed, lying = ([unshared(each, layout) for each in (s, d)] for layout in ("RBL, RBL", "as they lie"))
    yield (
        f"Packed as RBL such kernels make {packed[0]:.1f} TFLOP/s in s and {packed[1]:.1f} in d, "
        f"as operands lie {lying[0]:.1f} and {lying[1]:.1f}"
    )
    (row,) = (row for row in study("steinsland")["results"] if (row["dtype"], row["layout"]) == ("d", "tn"))
    best = row["schemes"]["both private"]["best"]["4096"]
    assert best["tile"].startswith("32x32")
    yield f"one of 32 × 32 on that card, which makes {best['tflops']:.2f} (TN)"


# --------------------------------------------------------------------------------------------- ATLAS, Li


def atlas() -> Iterator[str]:
    rows = {row["routine"]: row for row in study("atlas")["results"]}
    timed = {name: len(row["whole"]) for name, row in rows.items()}
    every = {
        name: len(row["stops"]) * len(row["leaves"]) * len(row["products"]) for name, row in rows.items()
    }
    assert timed["trmm"] == every["trmm"]
    overheads = [each["overhead"] for row in rows.values() for each in replay(row)]
    yield f"at most {max(overheads):.1f} % for DTRSM, DTRMM, DPOTRF and DGETRF"
    yield f"of DTRMM all {timed['trmm']}"
    yield (
        f"of DTRSM {timed['trsm']} of {every['trsm']}, of DPOTRF {timed['potrf']} of {every['potrf']}, "
        f"and of DGETRF {timed['getrf']} of {every['getrf']}"
    )


def li() -> Iterator[str]:
    rows = [row for row in study("li")["results"] if row["layout"] == "nn"]
    s = [row["ours"] / row["vendor"] for row in rows if row["dtype"] == "s" and row["extents"][0] >= 1536]
    d = [row["ours"] / row["vendor"] for row in rows if row["dtype"] == "d"]
    yield f"s: {span(s, 2)} of cuBLAS from 1536 on; d: {span(d, 2)} of it from 512 on"


def li_products() -> Iterator[str]:
    path = ROOT / "benchmarks/results/nvidia-h200/2026-11-26-63c07ea-gemm-reading-c.json"
    times = {row["product"]: row["microseconds"] for row in json.loads(path.read_text())["results"]}

    def ratio(layout: str, rank: int) -> float:
        each = times[f"d {layout} 8192x{8192 - rank}x{rank} beta 1"]
        return each["cublas"] / each["auto"]

    pairs = {rank: [f"{ratio(layout, rank):.2f}" for layout in ("nn", "nt")] for rank in (64, 128, 256)}
    yield f"{pairs[64][0]} (NN) and {pairs[64][1]} (NT) of cuBLAS's rate at rank 64"
    yield f"{' and '.join(pairs[128])} at rank 128, and {' and '.join(pairs[256])} at rank 256"
    each = [
        times[f"d {product} beta 0"] for product in ("nn 64x64x65536", "nn 8192x64x8192", "tn 3000x3000x3000")
    ]
    ours, theirs = ([row[name] for row in each] for name in ("auto", "cublas"))
    yield f"takes {ours[0]:.1f} and {theirs[0]:.1f}, 8192 × 64 × 8192 {ours[1]:.0f} and {theirs[1]:.0f}"
    yield f"TN of 3000 {ours[2]:.0f} and {theirs[2]:.0f}"


def li_lu() -> Iterator[str]:
    rows = {row["columns"]: row for row in study("li_lu")["results"]}
    yield f"{rows[64]['cublas_tflops']:.2f} (cuBLAS's GEMM) to {rows[64]['tflops']:.2f} TFLOP/s"
    yield f"with BS = 128 {rows[128]['cublas_tflops']:.2f} to {rows[128]['tflops']:.2f}"


def cache_edge() -> Iterator[str]:
    rows = {(row["dtype"], row["raster"]): row["tflops"] for row in study("cache_edge")["results"]}
    gains = [
        rows["d", raster][n] / rows["d", 8][n] - 1
        for raster in (1, 2, 4, 6, 12, 16, 32)
        for n in rows["d", 8]
    ]
    yield f"In d no raster is better than 8 by more than {100 * max(gains):.1f} %"


#: Sentences by the page that has them.
PAGES: dict[str, tuple[Callable[[], Iterator[str]], ...]] = {
    "kblas": (kblas_figure1, kblas_figure5, kblas_figure6, kblas_traffic, kblas_more_bytes, kblas_figure9),
    "kurzak": (kurzak,),
    "steinsland": (steinsland,),
    "matsumoto": (matsumoto,),
    "atlas": (atlas, li, li_products, li_lu, cache_edge),
}
SENTENCES = [pytest.param(page, made, id=made.__name__) for page, each in PAGES.items() for made in each]


@pytest.mark.parametrize("page, made", SENTENCES)
def test_sentences_have_the_figures_of_the_results(page, made):
    text = " ".join((ROOT / "docs" / "papers" / f"{page}.md").read_text().split())
    expected = list(made())
    assert expected and [sentence for sentence in expected if sentence not in text] == []
