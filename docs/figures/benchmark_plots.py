"""The plots of the benchmarks page: ours solid, the vendor's dashed, legends outside."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from bench_cases import OUT_OF_PLACE, VENDOR, Case, Groups, commits
from framework_tables import framework_rows
from gemm_tensor_tables import newest
from machine_tables import LISTS, card_rows, closed_list, host_rows, rate
from tensor_tables import newest_level3
from vendor_tables import LARGE, NAMES, Ratio, ratios

from pyblasgpu.bench import style

__all__ = ["PLOTS", "Drawn", "headline"]

PANEL, WIDE = (3.4, 2.6), (3.4, 3.4)  # in inches; wide: one row of panels
DTYPES = {"s": "float32", "d": "float64", "c": "complex64", "z": "complex128"}
TENSOR = {"color": style.COLOURS[2], "linestyle": "-", "marker": "D"}


class Drawn(NamedTuple):
    """A figure, and the commits whose results it shows."""

    figure: Any
    source: str


def _line(axis: Any, points: Iterable[tuple[float, float]], label: str, look: dict[str, Any]) -> None:
    points = sorted(points)
    if points:
        axis.plot(*zip(*points, strict=True), label=label, markersize=style.SIZE, **look)


def _over_n(axis: Any, title: str, orders: Iterable[int], unit: str = "TFLOP/s", most: int = 5) -> None:
    """Title, ticks and labels; a row of panels with one axis of rates has its name once."""
    style.over_n(axis, orders, most)
    axis.set_title(title, fontsize=11)
    axis.set_xlabel("n")
    if axis.get_subplotspec().is_first_col():
        axis.set_ylabel(unit)


def _squares(groups: Groups, device: str, routine: str, variant: str | None = None) -> list[Case]:
    cases = groups.get((device, routine, "square"), [])
    return [case for case in cases if variant in (None, case.record["variant"])]


# ---------------------------------------------------------------------------------- of `pyblasgpu bench`


def headline(groups: Groups, device: str) -> Drawn:
    """TRSM in one row of panels, for README."""
    return _rates(_squares(groups, device, "trsm"), f"TRSM, n × n with n right-hand sides, {device}", 1)


def _gemm(groups: Groups, results: Path, device: str) -> Drawn:
    return _rates(_squares(groups, device, "gemm", "NN"), f"GEMM, n × n × n, {device}")


def _trsm(groups: Groups, results: Path, device: str) -> Drawn:
    return _rates(_squares(groups, device, "trsm"), f"TRSM, n × n with n right-hand sides, {device}")


def _trmm(groups: Groups, results: Path, device: str) -> Drawn:
    return _rates(_squares(groups, device, "trmm"), f"TRMM, n × n with n columns, {device}")


def _rates(cases: list[Case], title: str, rows: int = 2) -> Drawn:
    """TFLOP/s over n, a panel a dtype."""
    panel, most = (PANEL, 5) if rows == 2 else ((2.5, 2.8), 3)
    figure, axes = style.canvas(rows, 4 // rows, panel, sharey=True)
    in_place = any(OUT_OF_PLACE in case.record for case in cases)
    lines = (
        ("tflops", "pyblasgpu, in place" if in_place else "pyblasgpu", style.OURS),
        (VENDOR, "cuBLAS, in place" if in_place else "cuBLAS", style.VENDOR),
        (OUT_OF_PLACE, "cuBLAS, out of place", style.OUT_OF_PLACE),
    )
    for axis, (letter, name) in zip(axes.flat, DTYPES.items(), strict=True):
        records = [case.record for case in cases if case.record["dtype"] == letter]
        for key, label, look in lines:
            _line(axis, [(record["n"], record[key]) for record in records if key in record], label, look)
        _over_n(axis, name, (record["n"] for record in records), most=most)
    return _drawn(figure, title, commits(cases))


def _symmetric(groups: Groups, results: Path, device: str) -> Drawn:
    """A colour a routine, cuBLAS dashed."""
    figure, axes = style.canvas(2, 2, PANEL, sharey=True)
    routines = ("syrk", "syr2k", "symm")
    shown = {routine: _squares(groups, device, routine) for routine in routines}
    for axis, (letter, name) in zip(axes.flat, DTYPES.items(), strict=True):
        orders: set[int] = set()
        for number, (routine, cases) in enumerate(shown.items()):
            records = [case.record for case in cases if case.record["dtype"] == letter]
            for key, label in (("tflops", routine.upper()), (VENDOR, f"{routine.upper()}, cuBLAS")):
                points = [(record["n"], record[key]) for record in records]
                _line(axis, points, label, style.with_dash(number, label))
            orders |= {record["n"] for record in records}
        _over_n(axis, name, orders)
    title = f"SYRK, SYR2K and SYMM, n × n, {device}"
    return _drawn(figure, title, commits(case for cases in shown.values() for case in cases), 3)


# ------------------------------------------------------------------------------------------ tensor cores


def _gemm_tensor(groups: Groups, results: Path, device: str) -> Drawn:
    """TFLOP/s of squares with `method="tensor"`, by FMAs and of cuBLAS."""
    figure, axes = style.canvas(2, 2, PANEL)
    lines = (
        ("tflops", 'method="tensor"', TENSOR),
        ("fma_tflops", "default", style.OURS),
        ("cublas_tflops", "cuBLAS", style.VENDOR),
    )
    found: dict[str, None] = {}
    for axis, (letter, name) in zip(axes.flat, DTYPES.items(), strict=True):
        measured = [each for each in newest(results, device, f"{letter}gemm") if _is_square(each[1])]
        for key, label, look in lines:
            _line(axis, [(case["n"], case[key]) for _, case, _ in measured], label, look)
        _over_n(axis, name, (case["n"] for _, case, _ in measured))
        found |= dict.fromkeys(commit for *_, commit in measured)
    return _drawn(figure, f"GEMM on tensor cores, n × n × n, {device}", ", ".join(found))


def _is_square(case: dict[str, Any]) -> bool:
    return case["m"] == case["n"] == case["k"]


def _tensor_level3(groups: Groups, results: Path, device: str) -> Drawn:
    """Times the vendor's rate, a line a routine."""
    figure, axes = style.canvas(1, 1, (6.8, 3.8))
    axis, measured = axes[0][0], newest_level3(results, device)
    routines = ("syrk", "symm", "trmm", "trsm", "potrf", "getrf")
    for number, routine in enumerate(routines):
        points = [(case["n"], case["ratio"]) for case, _ in measured if case["routine"] == routine]
        _line(axis, points, routine.upper(), style.with_dash(number, routine))
    _vendor_line(axis, "cuBLAS and cuSOLVER")
    _over_n(axis, "", (case["n"] for case, _ in measured), "times the vendor's rate")
    source = ", ".join(dict.fromkeys(commit for _, commit in measured))
    return _drawn(figure, f'float32 with set_math_mode("tensor"), {device}', source)


def _vendor_line(axis: Any, label: str) -> None:
    axis.axhline(1, color=style.VENDOR["color"], linestyle="--", label=label)


# -------------------------------------------------------------------------- factorizations and vectors


def _factors(groups: Groups, results: Path, device: str) -> Drawn:
    """cuSOLVER's time over ours."""
    names = {"getrf": "GETRF", "potrf, lower": "POTRF, lower", "potrf, upper": "POTRF, upper"}
    measured = ratios(results, device)
    return _ratio_panels(measured, names, "cuSOLVER", f"LU and Cholesky factors, n × n, {device}", DTYPES)


def _batches(groups: Groups, results: Path, device: str) -> Drawn:
    """PyTorch's time over ours."""
    measured = [case for case in ratios(results, device) if case.routine.endswith(", batched, PyTorch")]
    routines = sorted({case.routine for case in measured if "unit" not in case.routine})
    names = {routine: routine.split(",")[0].upper() for routine in routines}
    chosen = {letter: DTYPES[letter] for letter in "sd"}
    return _ratio_panels(measured, names, "PyTorch", f"Batches of n × n matrices, {device}", chosen)


def _ratio_panels(
    measured: list[Ratio], names: dict[str, str], vendor: str, title: str, dtypes: dict[str, str]
) -> Drawn:
    """The vendor's time over ours, a panel a dtype and a line a routine."""
    figure, axes = style.canvas(len(dtypes) // 2, 2, PANEL if len(dtypes) > 2 else WIDE, sharey=True)
    shown = [case for case in measured if case.routine in names and case.dtype in dtypes]
    for axis, (letter, name) in zip(axes.flat, dtypes.items(), strict=True):
        mine = [case for case in shown if case.dtype == letter]
        for number, (routine, label) in enumerate(names.items()):
            points = [(case.order, case.ratio) for case in mine if case.routine == routine]
            _line(axis, points, label, style.with_dash(number, label))
        _vendor_line(axis, vendor)
        _over_n(axis, name, (case.order for case in mine), f"time of {vendor} / ours")
        if vendor == "PyTorch":
            axis.set_yscale("log", base=2)
            axis.set_yticks([0.5, 1, 2, 4, 8, 16], ["½", "1", "2", "4", "8", "16"])
    return _drawn(figure, title, ", ".join(dict.fromkeys(case.commit for case in shown)))


def _frameworks(groups: Groups, results: Path, device: str) -> Drawn:
    """The frameworks' own time over ours, a panel a dtype and a line a way."""
    rows, source = framework_rows(results, device)
    mine = [row for part in ("steps", "jax") for row in rows.get(part, [])]
    names = {"inv_quad_logdet": "inv_quad_logdet", "operators": "plain operators", "patched": "patch_torch"}
    ways = list(dict.fromkeys((row["by"], row["way"]) for row in mine))
    figure, axes = style.canvas(1, 2, WIDE, sharey=True)
    for axis, letter in zip(axes[0], "sd", strict=True):
        for number, (by, way) in enumerate(ways):
            here = [row for row in mine if (row["by"], row["way"], row["dtype"]) == (by, way, letter)]
            label = f"JAX, {names[way]}" if by == "jax" else names[way]
            _line(axis, [(row["n"], row["ratio"]) for row in here], label, style.with_dash(number, label))
        _vendor_line(axis, "PyTorch and JAX alone")
        _over_n(axis, DTYPES[letter], (row["n"] for row in mine), "their time / ours")
    return _drawn(figure, f"A step of a Gaussian process, {device}", source, 3)


def _bandwidth(groups: Groups, results: Path, device: str) -> Drawn:
    """Bytes that have to move over those that a copy moves in the same time: a row a routine."""
    shown = [
        case
        for case in ratios(results, device)
        if case.of_copy == case.of_copy and case.order in LARGE and len(set(case.extents)) == 1
    ]
    routines = list(dict.fromkeys(case.routine for case in shown))[::-1]
    figure, axes = style.canvas(1, 1, (6.8, 0.25 * len(routines) + 1.4))
    axis = axes[0][0]
    for number, (letter, name) in enumerate(DTYPES.items()):
        points = [(case.of_copy, routines.index(case.routine)) for case in shown if case.dtype == letter]
        look = {"marker": "os^D"[number], "color": style.COLOURS[(0, 2, 3, 4)[number]]}
        axis.plot(*zip(*points, strict=True), label=name, linestyle="", markersize=6, **look)
    axis.axvline(1, color=style.VENDOR["color"], linestyle="--", label="a copy")
    axis.set_yticks(range(len(routines)), [_capitals(NAMES.get(name, name)) for name in routines])
    axis.set_xlabel("bytes per second over those of a copy")
    source = ", ".join(dict.fromkeys(case.commit for case in shown))
    axis.set_ylim(-0.7, len(routines) - 0.3)
    return _drawn(figure, f"Memory bandwidth of Levels 1 and 2, {device}", source, 3, zero=False)


def _capitals(name: str) -> str:
    routine, comma, rest = name.partition(",")
    return routine.upper() + comma + rest


# ---------------------------------------------------------------------------------------- whole machines


def _host(groups: Groups, results: Path, device: str) -> Drawn:
    """TFLOP/s over n, transfers included."""
    rows, source = host_rows(results, device)
    lines = (
        ("streamed", "pyblasgpu", style.OURS),
        ("upload_cublas_download", "upload, cuBLAS, download", style.VENDOR),
        ("cublas_xt", "cublasXt", style.OUT_OF_PLACE),
    )
    figure, axes = style.canvas(3, 2, PANEL)
    for line, routine in zip(axes, ("gemm", "trsm", "trmm"), strict=True):
        for axis, letter in zip(line, "sd", strict=True):
            mine = [row for row in rows if (row["routine"], row["dtype"]) == (routine, letter)]
            for key, label, look in lines:
                _line(axis, [(row["n"], rate(row, key)) for row in mine if key in row], label, look)
            _over_n(axis, f"{routine.upper()}, {DTYPES[letter]}", (row["n"] for row in mine))
    return _drawn(figure, f"Page-locked host memory to host memory, {device}", source)


def _cards(groups: Groups, results: Path, device: str) -> Drawn:
    """Times the rate of one card on four, over n, a line a routine."""
    rows, source = card_rows(results, device)
    cards = max(row["cards"] for row in rows)
    mine = [row for row in rows if row["where"] == "host" and row["cards"] == cards]
    figure, axes = style.canvas(1, 2, WIDE, sharey=True)
    for axis, letter in zip(axes[0], "sd", strict=True):
        for number, routine in enumerate(("gemm", "trsm", "trmm", "syrk", "potrf")):
            here = [row for row in mine if (row["routine"], row["dtype"]) == (routine, letter)]
            points = [(row["n"], row["speedup"]) for row in here]
            _line(axis, points, routine.upper(), style.with_dash(number, routine))
        axis.axhline(cards, color="0.6", linestyle=":", label=f"{cards} times one card")
        _over_n(axis, DTYPES[letter], (row["n"] for row in mine), "times one card")
    return _drawn(figure, f"{cards} cards, matrices in host memory, {device}", source, 3)


def _closed(groups: Groups, results: Path, device: str) -> Drawn:
    """The share of cases whose ratio is at most x, a line a list."""
    lists, source = closed_list(results, device)
    figure, axes = style.canvas(1, 1, (6.8, 3.8))
    axis = axes[0][0]
    for number, (name, values) in enumerate(lists.items()):
        shares = [(position + 1) / len(values) for position in range(len(values))]
        axis.step(sorted(values), shares, where="post", label=LISTS[name], color=style.COLOURS[number])
    axis.axvline(1, color="0.6", linestyle=":")
    axis.set_xlim(0.8, 1.2)
    axis.set_ylim(0, 1)
    axis.set_xlabel("time with all Configs / time with the closed list")
    axis.set_ylabel("share of the cases at or below")
    return _drawn(figure, f"The closed list of kernels, {device}", source, 2)


def _drawn(figure: Any, title: str, source: str, columns: int = 4, zero: bool = True) -> Drawn:
    figure.suptitle(title, fontsize=12)
    if zero and not any(axis.get_yscale() == "log" for axis in figure.axes):
        style.from_zero(figure)
    style.legend(figure, columns)
    return Drawn(figure, source)


#: What draws each plot of the page, by the name of its file.
PLOTS = {
    "gemm": _gemm,
    "trsm": _trsm,
    "trmm": _trmm,
    "symmetric": _symmetric,
    "gemm_tensor": _gemm_tensor,
    "tensor_level3": _tensor_level3,
    "factors": _factors,
    "batches": _batches,
    "frameworks": _frameworks,
    "bandwidth": _bandwidth,
    "host_memory": _host,
    "several_cards": _cards,
    "closed_list": _closed,
}
