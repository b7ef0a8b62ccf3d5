"""Batches of small matrices beside torch.linalg's: factors, solutions, inverses.

``python -m benchmarks.batched --out DIR [--letters sd] [--orders 4 8 ...] [--routines potrf ...]`` prints
microseconds of a call, medians of CUDA events, the L2 cache emptied before each. Both sides are called on the
same PyTorch tensors; neither waits for the device, which is kept busy until the host has enqueued the call.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from benchmarks.study import Namespace, Option, Row, Rows, Study, main, means
from pyblasgpu import lapack
from pyblasgpu.testing.clocks import device_clock, median_seconds
from pyblasgpu.types import DTYPES

try:
    import torch
except ImportError:  # `rows` says so
    torch = None

ROUTINES = ("potrf", "potrs", "getrf", "getrs", "gesv", "trtri", "trtri, unit")
ELEMENTS, MOST, LEAST = 1 << 22, 20_000, 64  # of a batch, and matrices of it
BUSY_CYCLES, FLUSH = 4_000_000, 128 << 20
UNIT_ORDERS = (16, 128)  # of the unit triangles that are inverted

Call = Callable[[], Any]


def matrices(letter: str, n: int, device: str) -> Any:
    """Symmetric, definite and well conditioned."""
    count = min(max(ELEMENTS // n**2, LEAST), MOST)
    torch.manual_seed(n)
    a = torch.rand((count, n, n), dtype=getattr(torch, DTYPES[letter].name), device=device) - 0.5
    return a @ a.mH / n + torch.eye(n, dtype=a.dtype, device=device)


def calls(routine: str, letter: str, a: Any) -> tuple[Call, Call]:
    """Ours and PyTorch's, on the batch `a`."""
    ours, n = getattr(lapack, letter + routine.split(",")[0]), a.shape[-1]
    right, solve = torch.ones_like(a[..., :4]), torch.linalg.solve_triangular
    if routine == "potrf":
        return lambda: ours(a, lower=1), lambda: torch.linalg.cholesky_ex(a)
    if routine == "potrs":
        factor = torch.linalg.cholesky(a)
        return lambda: ours(factor, right, lower=1), lambda: torch.cholesky_solve(right, factor)
    if routine == "getrf":
        return lambda: ours(a), lambda: torch.linalg.lu_factor_ex(a)
    if routine == "getrs":
        factors, (lu, pivots) = getattr(lapack, letter + "getrf")(a), torch.linalg.lu_factor(a)
        return lambda: ours(*factors[:2], right), lambda: torch.linalg.lu_solve(lu, pivots, right)
    if routine == "gesv":
        return lambda: ours(a, right), lambda: torch.linalg.solve_ex(a, right)
    unit, eye = routine.endswith("unit"), torch.eye(n, dtype=a.dtype, device=a.device)
    triangle = torch.linalg.cholesky(a).tril(-1) * n**-0.5 + eye
    return (
        lambda: ours(triangle, lower=1, unitdiag=int(unit)),
        lambda: solve(triangle, eye, upper=False, unitriangular=unit),
    )


def microseconds(call: Call, flush: Any) -> float:
    """Microseconds of one call on the device."""

    def prepare() -> None:
        flush.zero_()
        torch.cuda._sleep(BUSY_CYCLES)

    return 1e6 * median_seconds(call, device_clock(), prepare, untimed=2)


def difference(ours: Any, theirs: Any) -> float:
    """Largest difference of the lower triangles of both results, over the largest element."""
    x, y = ((each[0] if isinstance(each, tuple) else each).tril() for each in (ours, theirs))
    return float(abs(x - y).max() / abs(y).max())


def rows(options: Namespace) -> Rows:
    if torch is None:
        raise SystemExit("needs PyTorch")
    flush = torch.empty(FLUSH, dtype=torch.uint8, device="cuda")
    for letter in options.letters:
        for n in options.sizes:
            a = matrices(letter, n, "cuda")
            for routine in options.routines:
                if routine.endswith("unit") and not UNIT_ORDERS[0] <= n <= UNIT_ORDERS[1]:
                    continue
                ours, theirs = calls(routine, letter, a)
                row: Row = {"routine": routine, "dtype": letter, "n": n, "count": len(a)}
                if routine not in ("getrs", "gesv"):  # whose results are elsewhere, and tested
                    row["difference"] = difference(ours(), theirs())
                row["ours_us"], row["torch_us"] = (microseconds(call, flush) for call in (ours, theirs))
                yield {**row, "ratio": row["torch_us"] / row["ours_us"]}


STUDY = Study(
    "batched",
    __doc__,
    rows,
    {
        "letters": "sd",
        "sizes": (4, 8, 16, 32, 64, 128, 256),
        "routines": Option(ROUTINES, ROUTINES),
    },
    summary=lambda rows, options: means(rows),
    seconds=60,
)

if __name__ == "__main__":
    main(STUDY)
