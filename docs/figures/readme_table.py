"""README's table: geometric means of the vendor's time over ours, by dtype."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import exp, log
from pathlib import Path
from typing import NamedTuple

from gemm_tensor_tables import newest
from vendor_tables import ratios

__all__ = ["Row", "geometric_mean", "readme_table"]

LEAST_TENSOR = 4096  # from which order products on tensor cores count


class Row(NamedTuple):
    """What a line is made from.

    Attributes
    ----------
    label : str
    device : str
    measured : list of (str, float, str)
        Dtype, ratio and commit of each case.
    """

    label: str
    device: str
    measured: list[tuple[str, float, str]]


def geometric_mean(values: Iterable[float]) -> float:
    """The mean by which rates are compared."""
    logs = [log(value) for value in values]
    return exp(sum(logs) / len(logs))


def readme_table(rows: Iterable[Row], results: Path, device: str) -> str:
    """The table: `rows` of what `pyblasgpu bench` has timed, then what other benchmarks have on a device."""
    made = [row for row in (*rows, *_others(results, device)) if row.measured]
    cards = list(dict.fromkeys(row.device.removeprefix("NVIDIA ").split()[0] for row in made))
    text = [f"| times the vendor's rate, {', '.join(cards)} | s | d | c | z |", "|---|---|---|---|---|"]
    return "\n".join([*text, *map(_line, made)])


def _others(results: Path, device: str) -> Iterator[Row]:
    products = [
        (name[0], case["ratio"], commit)
        for name, case, commit in newest(results, device, "sgemm", "dgemm", "cgemm", "zgemm")
        if case["m"] == case["n"] == case["k"] >= LEAST_TENSOR
    ]
    yield Row(f'GEMM on tensor cores, `method="tensor"`, orders from {LEAST_TENSOR}', device, products)
    for label, routine in (("LU, `getrf`", "getrf"), ("Cholesky, `potrf`, lower", "potrf, lower")):
        cases = [case for case in ratios(results, device) if case.routine == routine]
        orders = [case.order for case in cases] or [0]
        measured = [(case.dtype, case.ratio, case.commit) for case in cases]
        yield Row(f"{label}, orders to {max(orders)}", device, measured)


def _line(row: Row) -> str:
    cells = " | ".join(_cell(ratio for dtype, ratio, _ in row.measured if dtype == x) for x in "sdcz")
    return f"| {row.label} | {cells} |"


def _cell(values: Iterable[float]) -> str:
    numbers = list(values)
    return f"{geometric_mean(numbers):.2f}" if numbers else ""
