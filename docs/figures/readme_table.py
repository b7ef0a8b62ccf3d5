"""README's table: geometric means and the least of the vendor's time over ours, by dtype, and the orders."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import exp, log
from pathlib import Path
from typing import NamedTuple

from contest_results import contest_cases
from gemm_tensor_tables import newest, over_3m
from vendor_tables import ratios

__all__ = ["Row", "geometric_mean", "mean_and_least", "readme_table"]

CONTESTS = {
    "reduced QR over PyTorch's, batches and tall matrices": "qr",
    "eigenvalues and eigenvectors over PyTorch's, batches": "eigh",
    "singular values and vectors over PyTorch's, batches": "svd",
}
LEAST_TENSOR = 4096  # from which order products on tensor cores count


class Row(NamedTuple):
    """What a line is made from.

    Attributes
    ----------
    label : str
        Without orders.
    device : str
    measured : list of (str, float, int)
        Dtype, ratio and order of each case.
    """

    label: str
    device: str
    measured: list[tuple[str, float, int]]


def geometric_mean(values: Iterable[float]) -> float:
    """The mean by which rates are compared."""
    logs = [log(value) for value in values]
    return exp(sum(logs) / len(logs))


def readme_table(rows: Iterable[Row], results: Path, device: str) -> str:
    """The table: `rows` of what `pyblasgpu bench` has timed, then what other benchmarks have on a device."""
    made = [row for row in (*rows, *_others(results, device)) if row.measured]
    cards = list(dict.fromkeys(row.device.removeprefix("NVIDIA ").split()[0] for row in made))
    head = f"| times the vendor's rate, {', '.join(cards)}: mean (least) | s | d | c | z |"
    text = [head, "|---|---|---|---|---|"]
    return "\n".join([*text, *map(_line, made)])


def _others(results: Path, device: str) -> Iterator[Row]:
    products = [
        (name[0], case["ratio"], case["n"])
        for name, case, _ in newest(results, device, "sgemm", "dgemm", "cgemm", "zgemm")
        if case["m"] == case["n"] == case["k"] >= LEAST_TENSOR
    ]
    yield Row('GEMM on tensor cores, `method="tensor"`', device, products)
    by_three = [(letter, ratio, n) for letter, n, ratio in over_3m(results, device) if n >= LEAST_TENSOR]
    yield Row("the same over cuBLAS's `gemm3m`", device, by_three)
    for label, routine in (("LU, `getrf`", "getrf"), ("Cholesky, `potrf`, lower", "potrf, lower")):
        cases = [case for case in ratios(results, device) if case.routine == routine]
        yield Row(label, device, [(case.dtype, case.ratio, case.order) for case in cases])
    for label, routine in CONTESTS.items():
        cases = contest_cases(results, device).items()
        yield Row(
            label, device, [(x.dtype, row["ratio"], x.n) for x, (row, _) in cases if x.routine == routine]
        )


def _line(row: Row) -> str:
    cells = " | ".join(_cell(ratio for dtype, ratio, _ in row.measured if dtype == x) for x in "sdcz")
    return f"| {row.label}, {_orders(row)} | {cells} |"


def _orders(row: Row) -> str:
    """The orders that means cover, by the dtypes that have the same ones."""
    covered: dict[str, list[str]] = {}
    for letter in sorted({dtype for dtype, *_ in row.measured}, key="sdcz".index):
        orders = sorted({order for dtype, _, order in row.measured if dtype == letter})
        link = " to " if len(orders) > 2 else " and "
        covered.setdefault(link.join(map(str, dict.fromkeys((orders[0], orders[-1])))), []).append(letter)
    first, *others = covered
    named = "; ".join(f"{', '.join(covered[orders])}: {orders}" for orders in others)
    return f"orders {first}" + (f" ({named})" if named else "")


def _cell(values: Iterable[float]) -> str:
    numbers = list(values)
    return mean_and_least(numbers) if numbers else ""


def mean_and_least(ratios: list[float]) -> str:
    """The geometric mean, and the least in brackets."""
    return f"{geometric_mean(ratios):.2f} ({min(ratios):.2f})"
