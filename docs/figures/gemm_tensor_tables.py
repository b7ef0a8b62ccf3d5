"""Tables of products on tensor cores, from `benchmarks.gemm_tensor` and `benchmarks.gemm_int8`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from vendor_tables import runs_of

from pyblasgpu.bench.machine import short_commit

__all__ = ["gemm_tensor_tables", "newest", "over_3m"]

LISTS = {
    "sgemm": "sgemm",
    "cgemm": "cgemm",
    "zgemm": "zgemm",
    "ranks": "sgemm",
    "dgemm": "dgemm",
    "shapes": "dgemm",
}
PRODUCTS = """
## Products on tensor cores

TFLOP/s of cuBLAS, of our FMAs (`mma.sync` of FP64), and with `method="tensor"`, packing included;
random normal data. The last ratio is to the rates that GEMMul8 has published for a GH200.

| routine | m × n × k | cuBLAS | FMAs | tensor cores | over cuBLAS | over FMAs | over GEMMul8 | measured at |
|---|---|---|---|---|---|---|---|---|"""
ERRORS = """
The largest error of {} on several kinds of data, in units of u |A||B|.
FMAs' time over ours shows which data are served by {}.

| data | n | cuBLAS | tensor cores | FMAs' time over ours | measured at |
|---|---|---|---|---|---|"""


def gemm_tensor_tables(results: Path, device: str) -> Iterator[str]:
    """The lines of the page for a device: two tables, or nothing."""
    products = newest(results, device, *LISTS)
    if products:
        yield from PRODUCTS.split("\n")
        yield from (_product(*each) for each in products)
    for letter, kind, number in (("s", "errors", "FP16 or BF16"), ("d", "int8_errors", "residues")):
        errors = newest(results, device, kind)
        if errors:
            yield from ERRORS.format(f"{letter}gemm", number).split("\n")
            times = {case["n"]: case["fma"] for name, case, _ in products if name == f"{letter}gemm"}
            yield from (_error(case, commit, times) for _, case, commit in errors)


def newest(results: Path, device: str, *names: str) -> list[tuple[str, dict[str, Any], str]]:
    """The newest measurement of each case of some lists, with the list's name and the commit."""
    measurements: dict[tuple[Any, ...], tuple[str, dict[str, Any], str]] = {}
    for run in sorted(runs_of(results, device), key=lambda run: run["date"]):
        for name in names:
            for case in run.get(name, []):
                key = name, case.get("data"), case.get("m"), case["n"], case.get("k")
                measurements[key] = name, case, short_commit(run["commit"])
    return list(measurements.values())


def over_3m(results: Path, device: str) -> list[tuple[str, int, float]]:
    """Dtype, order, and our rate on tensor cores over that of cuBLAS's `gemm3m`, also of another run."""
    theirs = {
        (record["dtype"], record["n"]): record["cublas_tflops"]
        for run in sorted(runs_of(results, device), key=lambda run: run["date"])
        for record in run.get("results", [])
        if record.get("routine") == "gemm3m" and record["variant"] == "NN"
    }
    ours = [(name[0], case) for name, case, _ in newest(results, device, "cgemm", "zgemm")]
    rivals = [case.get("cublas_3m_tflops", theirs.get((letter, case["n"]))) for letter, case in ours]
    return [
        (letter, case["n"], case["tflops"] / rival)
        for (letter, case), rival in zip(ours, rivals, strict=True)
        if rival
    ]


def _product(name: str, case: dict[str, Any], commit: str) -> str:
    extents = " × ".join(str(case[each]) for each in "mnk")
    rates = [f"{case[each]:.1f}" for each in ("cublas_tflops", "fma_tflops", "tflops")]
    if "cublas_3m_tflops" in case:
        rates[0] += f", by three products {case['cublas_3m_tflops']:.1f}"
    ratios = (case.get(each) for each in ("ratio", "ratio_to_fma", "ratio_to_published"))
    cells = [LISTS[name], extents, *rates, *(f"{each:.2f}" if each else "" for each in ratios), commit]
    return f"| {' | '.join(cells)} |"


def _error(case: dict[str, Any], commit: str, times: dict[int, float]) -> str:
    timed = case["n"] in times and "seconds" in case
    gain = f"{times[case['n']] / case['seconds']:.2f}" if timed else ""
    units = f"{case['cublas_units']:.3g}", f"{case['units']:.3g}"
    cells = [case["data"].replace("_", " "), str(case["n"]), *units, gain, commit]
    return f"| {' | '.join(cells)} |"
