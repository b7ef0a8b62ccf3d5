"""Functions of one matrix, as SciPy has them, on stacks of NumPy arrays."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np

from .level3 import broadcast_matrices, indices

__all__ = ["over_stacks", "scipys_linalg"]


def over_stacks(run: Callable[..., tuple[Any, ...]], *stacks: np.ndarray) -> tuple[Any, ...]:
    """Results of ``run(*matrices)``, stacked along leading dimensions, which broadcast; None stays None.

    Results of one matrix are as they are. Those of an empty stack are shaped by the results for identities.

    Raises
    ------
    ValueError
        When leading dimensions do not broadcast, or results of several matrices have other shapes.
    """
    if max([stack.ndim for stack in stacks]) <= 2:
        return run(*stacks)
    batch = np.broadcast_shapes(*(stack.shape[:-2] for stack in stacks))
    stacks = broadcast_matrices(batch, *stacks)
    found = [run(*(stack[index] for stack in stacks)) for index in indices(batch)]
    is_empty = not found
    if is_empty:
        found = [run(*(np.eye(*stack.shape[-2:], dtype=stack.dtype) for stack in stacks))]
    return tuple(
        None if each[0] is None else _stacked(each, batch, is_empty) for each in zip(*found, strict=True)
    )


def _stacked(results: tuple[Any, ...], batch: tuple[int, ...], is_empty: bool) -> np.ndarray:
    """The results of all matrices of a stack in one array."""
    first = np.asarray(results[0])
    if is_empty:
        return np.zeros((*batch, *first.shape), first.dtype)
    shapes = {np.shape(each) for each in results}
    if len(shapes) > 1:
        listed = ", ".join(map(str, sorted(shapes)))
        raise ValueError(f"results of the matrices of the stack have the shapes {listed}: pass one at a time")
    return np.stack(results).reshape(*batch, *first.shape)


@cache
def scipys_linalg(name: str) -> Callable[..., Any]:
    """SciPy's function of `scipy.linalg`."""
    function: Callable[..., Any] = getattr(import_module("scipy.linalg"), name)  # slow to import
    return function
