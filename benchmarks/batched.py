"""Batches compared with torch.linalg's: factors, solutions, inverses, products by triangles, rank-k updates.

``python -m benchmarks.batched --out DIR [--letters sd] [--sizes 4 8 ...] [--routines potrf ...]`` prints
microseconds of a call, medians of CUDA events, all ways in turn, the L2 cache emptied before each. Both sides
are called on the same PyTorch tensors; neither waits for the device, which is kept busy until the host has
enqueued the call. The ratio is over the faster one of PyTorch's call and, of few large matrices, its calls
one by one, which are cuSOLVER's.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pyblasgpu
from benchmarks.study import Namespace, Option, Row, Rows, Study, main, means
from pyblasgpu import lapack, linalg
from pyblasgpu.testing.clocks import device_clock, medians_in_turn
from pyblasgpu.types import DTYPES

try:
    import torch
except ImportError:  # `rows` says so
    torch = None

ROUTINES = (
    *("potrf", "potrs", "getrf", "getrs", "gesv", "trtri", "trtri, unit"),
    *("inv", "posv", "potri", "sytrf", "trmm", "trsm", "syrk"),
)
ELEMENTS, MOST, LEAST = 1 << 22, 20_000, 64  # of a batch, and matrices of it up to order `MIDDLE`
MIDDLE, LARGE_ELEMENTS = 256, 1 << 25
ONE_BY_ONE = 16  # matrices of the orders beyond `MIDDLE` that are also factored one by one
BUSY_CYCLES, FLUSH = 4_000_000, 128 << 20
UNIT_ORDERS = (16, 128)  # of the unit triangles that are inverted
REPEATS = 5
OURS, TORCH, LOOP = "ours_us", "torch_us", "one_by_one_us"

Call = Callable[[], Any]


def matrices(letter: str, n: int, device: str) -> Any:
    """Symmetric, definite and well conditioned."""
    count = min(max(ELEMENTS // n**2, LEAST), MOST) if n <= MIDDLE else max(LARGE_ELEMENTS // n**2, 1)
    torch.manual_seed(n)
    a = torch.rand((count, n, n), dtype=getattr(torch, DTYPES[letter].name), device=device) - 0.5
    return a @ a.mH / n + torch.eye(n, dtype=a.dtype, device=device)


def calls(routine: str, letter: str, a: Any) -> dict[str, Call]:
    """Ours and PyTorch's, on the batch `a`."""
    name, *_ = routine.split(",")
    ours = getattr(lapack, letter + name, None) or getattr(pyblasgpu, name, None) or getattr(linalg, name)
    right, solve, torch_linalg = torch.ones_like(a[..., :4]), torch.linalg.solve_triangular, torch.linalg
    if routine == "potrf":
        return {OURS: partial(ours, a, lower=1), **one_by_one(torch_linalg.cholesky_ex, a)}
    if routine == "posv":
        return {
            OURS: partial(ours, a, right, lower=1),
            TORCH: lambda: torch.cholesky_solve(right, torch_linalg.cholesky_ex(a)[0]),
        }
    if routine == "sytrf":
        return {OURS: partial(ours, a, lower=1), TORCH: partial(torch_linalg.ldl_factor_ex, a)}
    if routine in ("potrs", "potri"):
        factor = torch_linalg.cholesky(a)
        if routine == "potri":
            return {OURS: partial(ours, factor, lower=1), TORCH: partial(torch.cholesky_inverse, factor)}
        return {
            OURS: partial(ours, factor, right, lower=1),
            TORCH: partial(torch.cholesky_solve, right, factor),
        }
    if routine == "getrs":
        factors, (lu, pivots) = getattr(lapack, letter + "getrf")(a), torch_linalg.lu_factor(a)
        return {
            OURS: partial(ours, *factors[:2], right),
            TORCH: partial(torch_linalg.lu_solve, lu, pivots, right),
        }
    if routine in ("getrf", "inv"):
        return {
            OURS: partial(ours, a),
            # as ours, `inv` reads whether a matrix is singular
            **one_by_one(torch_linalg.lu_factor_ex if routine == "getrf" else torch_linalg.inv, a),
        }
    if routine == "gesv":
        return {OURS: partial(ours, a, right), **one_by_one(torch_linalg.solve_ex, a, right)}
    if routine == "trmm":
        return {OURS: partial(ours, a, a, lower=True), TORCH: lambda: a.tril() @ a}
    if routine == "syrk":
        return {OURS: partial(ours, a, lower=True), TORCH: lambda: a @ a.mT}
    if routine == "trsm":
        return {OURS: partial(ours, a, a, lower=True), TORCH: partial(solve, a, a, upper=False)}
    unit, eye = routine.endswith("unit"), torch.eye(a.shape[-1], dtype=a.dtype, device=a.device)
    triangle = torch_linalg.cholesky(a).tril(-1) * a.shape[-1] ** -0.5 + eye
    return {
        OURS: partial(ours, triangle, lower=1, unitdiag=int(unit)),
        TORCH: partial(solve, triangle, eye, upper=False, unitriangular=unit),
    }


def one_by_one(call: Callable[..., Any], *stacks: Any) -> dict[str, Call]:
    """PyTorch's call for stacks, and of few large matrices its calls for each."""
    ways: dict[str, Call] = {TORCH: partial(call, *stacks)}
    if stacks[0].shape[-1] > MIDDLE and len(stacks[0]) <= ONE_BY_ONE:
        ways[LOOP] = lambda: [call(*each) for each in zip(*stacks, strict=True)]
    return ways


def microseconds(ways: dict[str, Call], flush: Any) -> dict[str, float]:
    """Microseconds of one call on the device, each way in turn."""

    def prepare() -> None:
        flush.zero_()
        torch.cuda._sleep(BUSY_CYCLES)

    times = medians_in_turn(ways, device_clock(), prepare, REPEATS, untimed=2)
    return {name: 1e6 * seconds for name, seconds in times.items()}


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
                ways = calls(routine, letter, a)
                row: Row = {"routine": routine, "dtype": letter, "n": n, "count": len(a)}
                if routine not in ("getrs", "gesv", "posv", "sytrf"):  # other results, or elsewhere; tested
                    row["difference"] = difference(ways[OURS](), ways[TORCH]())
                times = microseconds(ways, flush)
                best = min(each for name, each in times.items() if name != OURS)
                yield {**row, **times, "ratio": best / times[OURS]}


STUDY = Study(
    "batched",
    __doc__,
    rows,
    {
        "letters": "sd",
        "sizes": (4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048),
        "routines": Option(ROUTINES, ROUTINES),
    },
    summary=lambda rows, options: means(rows),
    seconds=120,
)

if __name__ == "__main__":
    main(STUDY)
