"""The benchmarks page's tables of products on tensor cores, and their plot, from `benchmarks.gemm_tensor`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from vendor_tables import runs_of

__all__ = ["draw_gemm_tensor", "gemm_tensor_tables"]

LISTS = {
    "sgemm": "sgemm",
    "cgemm": "cgemm",
    "zgemm": "zgemm",
    "ranks": "sgemm",
    "dgemm": "dgemm",
    "shapes": "dgemm",
}
PRODUCTS = """
### Products on tensor cores

TFLOP/s of cuBLAS, of our FMAs (`mma.sync` of FP64), and with `method="tensor"`, packing included;
random normal data.

| routine | m × n × k | cuBLAS | FMAs | tensor cores | over cuBLAS | over FMAs | measured at |
|---|---|---|---|---|---|---|---|"""
ERRORS = """
The largest error of {} on several kinds of data, in units of u |A||B|.
FMAs' time over ours tells which data are served by {}.

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
                measurements[key] = name, case, run["commit"][:7]
    return list(measurements.values())


def _product(name: str, case: dict[str, Any], commit: str) -> str:
    extents = " × ".join(str(case[each]) for each in "mnk")
    rates = [f"{case[each]:.1f}" for each in ("cublas_tflops", "fma_tflops", "tflops")]
    cells = [LISTS[name], extents, *rates, f"{case['ratio']:.2f}", f"{case['ratio_to_fma']:.2f}", commit]
    return f"| {' | '.join(cells)} |"


def _error(case: dict[str, Any], commit: str, times: dict[int, float]) -> str:
    timed = case["n"] in times and "seconds" in case
    gain = f"{times[case['n']] / case['seconds']:.2f}" if timed else ""
    units = f"{case['cublas_units']:.3g}", f"{case['units']:.3g}"
    cells = [case["data"].replace("_", " "), str(case["n"]), *units, gain, commit]
    return f"| {' | '.join(cells)} |"


def draw_gemm_tensor(results: Path, device: str, peak: float, out: Path) -> None:
    """TFLOP/s of SGEMM over n: cuBLAS, ours by FMAs and on tensor cores, and the peak of FP32."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    cases = sorted((case for _, case, _ in newest(results, device, "sgemm")), key=lambda case: case["n"])
    orders = [case["n"] for case in cases]
    figure = Figure(figsize=(6.4, 3.2), layout="constrained", facecolor="white")
    axis = figure.subplots()
    lines = {
        "tflops": ('method="tensor"', "o-"),
        "fma_tflops": ("FMAs", "^-"),
        "cublas_tflops": ("cuBLAS", "s--"),
    }
    for name, (label, style) in lines.items():
        axis.plot(orders, [case[name] for case in cases], style, markersize=4, label=label)
    axis.axhline(peak, color="grey", linewidth=0.8, label=f"FP32 peak, {peak:.0f}")
    axis.set_xscale("log", base=2)
    axis.set_xticks(orders, [str(order) for order in orders], fontsize=8)
    axis.set_ylim(bottom=0)
    axis.set_xlabel("n")
    axis.set_ylabel("TFLOP/s")
    axis.grid(alpha=0.3)
    axis.legend(fontsize=8)
    axis.set_title(f"SGEMM, n × n × n, {device}", fontsize=11)
    commits = ", ".join(dict.fromkeys(commit for _, _, commit in newest(results, device, "sgemm")))
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": "pyblasgpu"}):
        figure.savefig(out, metadata={"Date": None, "Source": commits})
