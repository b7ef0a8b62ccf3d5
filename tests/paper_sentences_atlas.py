"""Sentences of the page on ATLAS, PLASMA and Li with the figures that the committed results give them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import chain

from paper_results import ROOT, newest, paper_tables, span, study

from tuning.papers import plasma, recorded
from tuning.papers.atlas import replay


def atlas() -> Iterator[str]:
    rows = {f"{row['dtype'].upper()}{row['routine'].upper()}": row for row in study("atlas")["results"]}
    timed = {name: len(row["whole"]) for name, row in rows.items()}
    assert timed == {
        name: len(row["stops"]) * len(row["leaves"]) * len(row["products"]) for name, row in rows.items()
    }
    d, s = ([timed[f"{letter}{name}"] for name in ("TRMM", "TRSM")] for letter in "DS")
    yield f"{d[0]} of DTRMM, {d[1]} of DTRSM, {s[0]} of STRMM and {s[1]} of STRSM"
    overheads = {name: [each["overhead"] for each in replay(row)] for name, row in rows.items()}
    others = {f"{row['dtype']}{row['routine']}": row for row in study("plasma")["results"]}
    for name, row in others.items():
        overheads[name] = [each["overhead"] for each in plasma.replay(row)]
        assert len(overheads[name]) == 3 and all(len(each["tflops"]) == 3 for each in row["whole"])
    qr = [f"{max(overheads.pop(f'{letter}geqrf')):.1f} % in {letter}" for letter in "ds"]
    most = max(chain(*overheads.values()))
    yield f"at most {most:.1f} % for TRSM, TRMM, Cholesky and LU in d and s; QR at most {' and '.join(qr)}"
    pairs = [len(others[f"d{name}"]["whole"]) for name in ("potrf", "getrf", "geqrf")]
    yield f"all pairs: {pairs[0]} of Cholesky, {pairs[1]} of LU, {pairs[2]} of QR"


def surfaces() -> Iterator[str]:
    rows = {f"{row['dtype']}{row['routine']}": row for row in study("plasma")["results"]}
    kept = {
        name[1:]: {(each["tried"], each["all"]) for each in plasma.replay(row)} for name, row in rows.items()
    }
    assert kept["potrf"] == {(4, 4)}
    ((lu, of_lu),), ((qr, of_qr),) = kept["getrf"], kept["geqrf"]
    yield f"The first stage keeps all pairs of Cholesky, {lu} of {of_lu} of LU and {qr} of {of_qr} of QR"
    for letter in "ds":
        for nb in plasma.ROUTINES["getrf"].outer:
            of_nb = [each for each in rows[f"{letter}getrf"]["whole"] if each["nb"] == nb]
            assert {max(of_nb, key=lambda each: each["tflops"][n])["ib"] for n in of_nb[0]["tflops"]} == {32}
    yield "In LU an IB of 32 is the best of every NB and order"
    steps = {(each["nb"], each["ib"]): each["tflops"] for each in rows["sgeqrf"]["steps"]}
    assert plasma.pruned(steps)[-1] == (128, 32) and steps[128, 32] / steps[128, 16] < 1.03
    assert {row["ES pair"] for row in plasma.replay(rows["sgeqrf"])} == {(128, 16)}
    yield "factors are faster with NB = 128 and IB = 16"


def atlas_recorded() -> Iterator[str]:
    overheads = [recorded.Replay(**row).overhead for row in study("recorded")["trmm"]]
    yield f"{min(overheads):.0f} to {max(overheads):.0f} % on sweeps of TRMM"


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
    yield f"TN of 3000 takes {ours[2]:.0f} and {theirs[2]:.0f}"
    assert all(row["auto"] / min(v for k, v in row.items() if k != "cublas") < 1.02 for row in each)
    yield "Of the Configs in that file none is faster there by 2 %"


def low_rank() -> Iterator[str]:
    path = ROOT / "benchmarks/results/nvidia-h200/2026-11-26-71882b5-dgemm-low-rank.json"
    times = {row["product"]: row["microseconds"] for row in json.loads(path.read_text())["results"]}
    shapes = [(n, n - rank, rank) for n in (4096, 8192) for rank in (64, 128)]
    each = [times[f"d {m}x{n}x{k} beta 0"] for m, n, k in shapes]
    tiles = "64x96", "128", "128x64"
    best, *others = ([row["cublas"] / row[tile] for row in each] for tile in tiles)
    yield f"At 4096 and 8192 it makes {span(best, 2)} of cuBLAS's rate at ranks 64 and 128"
    yield f"Tiles of 128 × 128 and 128 × 64 make {span([*others[0], *others[1]], 2)} of it"
    most = max(abs(row[tile] / row[f"{tile}v"] - 1) for row in each for tile in tiles)
    yield f"Stores of vectors change each by at most {most:.0%}".replace("%", " %")


def li_lu() -> Iterator[str]:
    rows = {row["columns"]: row for row in study("li_lu")["results"]}
    yield f"{rows[64]['cublas_tflops']:.2f} (cuBLAS's GEMM) to {rows[64]['tflops']:.2f} TFLOP/s"
    yield f"In a block LU of 6144, at 30 TFLOP/s, the products are some {2 / 3 * 6144**3 / 3e10:.0f} ms"
    yield f"with BS = 128 {rows[128]['cublas_tflops']:.2f} to {rows[128]['tflops']:.2f}"


def host_share() -> Iterator[str]:
    rows = newest("host-share")["results"]
    alone = {row["n"]: row["ms"] for row in rows if not row["columns"]}
    assert all(row["ms"] > alone[row["n"]] for row in rows if row["columns"] == 1)
    yield "a single column already makes the call slower"


def cache_edge() -> Iterator[str]:
    rows = {(row["dtype"], row["raster"]): row["tflops"] for row in study("cache_edge")["results"]}
    gains = [
        rows["d", raster][n] / rows["d", 8][n] - 1
        for raster in (1, 2, 4, 6, 12, 16, 32)
        for n in rows["d", 8]
    ]
    yield f"In d no raster is better than 8 by more than {100 * max(gains):.1f} %"
    alike = [max(abs(rows[x, 0][n] / rows[x, 8][n] - 1) for n in rows[x, 8]) for x in "sd"]
    yield f"differ: by {100 * alike[0]:.1f} % in s, and by {100 * alike[1]:.1f} % in d"
    middle = [rows["s", raster]["8192"] for raster in (6, 8, 12, 16)]
    spread, slower = max(middle) / min(middle) - 1, 1 - rows["s", 1]["8192"] / rows["s", 8]["8192"]
    assert spread < 1e-3
    yield f"within 0.1 % of each other in s, and 1 is {100 * slower:.0f} % slower than 8"


def raster_traffic() -> Iterator[str]:
    (path,) = (ROOT / "benchmarks/results").glob("*/*-counters-raster.json")
    counted = {(row["dtype"], row["of"]): row["counted"] for row in json.loads(path.read_text())["results"]}
    read = counted["d", "raster=1"][paper_tables.READ]
    rates = {(row["dtype"], row["raster"]): row["tflops"] for row in study("cache_edge")["results"]}
    took = 2 * 8192**3 / rates["d", 1]["8192"] / 1e12
    yield f"even {read / 1e9:.1f} GB in {1e3 * took:.1f} ms are {read / took / 1e12:.1f} TB/s"
    yield "and DRAM gives 4.8"  # the data sheet, `test_the_rates_of_a_device_give_its_peaks`
    sizes = [3 * 8192**2 * size / 1e9 for size in (8, 4)]
    yield f"The three matrices have {sizes[0]:.1f} GB in d and {sizes[1]:.1f} GB in s"
