"""The call of an operator of ATen that `patch_torch` serves, and its size."""

from __future__ import annotations

from typing import Any, NamedTuple

from torch import Tensor

__all__ = ["Call", "order_of", "size_of", "size_of_solution", "stacks_size"]


class Call(NamedTuple):
    """A call of a row.

    Attributes
    ----------
    size : float
        The order of a square problem with as many operations.
    row : type
        Functions that allocate the outputs and fill them, as a row of the table of operators.
    arguments : tuple
        The row's.
    checked : str or None
        The function that raises where info, the last output, is not 0.
    threshold : str or None
        The name of the size that decides, if it is not the function's.
    """

    size: float
    row: Any
    arguments: tuple[Any, ...]
    checked: str | None = None
    threshold: str | None = None


def size_of(*extents: Any) -> Any:
    """Return the order of a square problem whose work is the product of the extents."""
    work = 1.0
    for extent in extents:
        work = work * extent
    return work ** (1 / 3)


def size_of_solution(a: Tensor, b: Tensor) -> Any:
    """Return the size of a solution, at least the order: few columns take almost the time of many."""
    return max(a.shape[-1], size_of(a.shape[-1], *b.shape))


def order_of(a: Tensor) -> Any:
    """Return the size of a factorization."""
    return size_of(*a.shape, min(a.shape[-2:]))


def stacks_size(a: Tensor, kind: str, fewest: int = 2) -> str | None:
    """Return the name of the size from which on stacks of a kind are served; None for fewer matrices.

    PyTorch computes the matrices of a stack one after another.
    """
    return f"{kind}_stack" if a.ndim > 2 and a.shape[:-2].numel() >= fewest else None
