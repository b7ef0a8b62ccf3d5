"""``pyblasgpu tune --torch``: from which order on float64 systems are solved by factors in float32."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib import import_module
from typing import Any, Literal

from ..database.policy import MAX_VALUE
from ..gpu.transfers import memory_bytes
from ..linalg import solve
from ..testing.policies import deciding_by
from .scipy_thresholds import Call, Say, gains_of, threshold

__all__ = ["VALUES", "calls", "refined_orders"]

ORDERS = (512, 1024, 2048, 4096, 8192, 12288, 16384)
MIN_SPEEDUP = 1.05  # less is within what times of a call differ by
MATRICES = 8  # of an order that are to fit in free memory
Known = Literal["gen", "pos"]
#: The values that are measured, and what is known of a matrix to which one applies.
VALUES: dict[str, Known] = {"getrf_refined_min_order": "gen", "potrf_refined_min_order": "pos"}


def calls(n: int, device: str = "cuda") -> Iterator[tuple[str, Call]]:
    """The solutions of `VALUES` of order n with one right-hand side; each waits for the device."""
    torch: Any = import_module("torch")
    right = torch.randn(n, dtype=torch.float64).to(device)
    general = torch.randn(n, n, dtype=torch.float64, device=device)
    definite = general @ general.mT / n + torch.eye(n, dtype=torch.float64, device=device)
    for name, known in VALUES.items():
        matrix = definite if known == "pos" else general

        def call(matrix: Any = matrix, known: Known = known) -> None:
            solve(matrix, right, assume_a=known, method="tensor")
            if device == "cuda":
                torch.cuda.synchronize()

        yield name, call


def refined_orders(
    sizes: Sequence[int] = ORDERS, backend: str = "cuda", say: Say | None = None
) -> dict[str, float]:
    """The orders from which on refinement takes less time, as values of the policy.

    Parameters
    ----------
    sizes : sequence of int
        Orders of matrices; those that have no room are left out.
    backend : {'cuda', 'cpu'}
        Backend to which the matrices belong.
    say : callable, optional
        Called with a value's name, the order, and the seconds by factors in float64 and by refinement.
    """
    if backend == "cuda":
        most = memory_bytes(0).free // MATRICES
        sizes = [n for n in sizes if 8 * n * n <= most]
    with deciding_by(**dict.fromkeys(VALUES, MAX_VALUE)):
        gains = gains_of(
            dict.fromkeys(VALUES, 1),
            lambda n: calls(n, backend),
            lambda name: deciding_by(**{name: 0}),
            sizes,
            say,
        )
    return {name: min(threshold(gains[name], MIN_SPEEDUP), MAX_VALUE) for name in VALUES}
