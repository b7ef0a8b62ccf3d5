"""The innermost product of a family of GEMM kernels: what it adds to the body that they share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

__all__ = ["Product"]


@dataclass(frozen=True)
class Product:
    """A family's innermost product, for the mainloop.

    Attributes
    ----------
    load : device function
        ``load(step, ra, rb, shared, a, b, lda, ldb, t, rows, cols, depth)``: what thread `t` multiplies in
        a step, from the k-tiles in shared memory, or from A and B.
    update : device function
        ``update(acc, ra, rb)``: one step.
    unroll : int
        Steps that are unrolled where there is no prefetching.
    row, col : device function
        ``row(i, t)``, ``col(j, t)``: the place in the tile of the i-th row, the j-th column of thread `t`.
    fragment_a, fragment_b : int
        Reals of the register arrays `ra` and `rb`.
    run : int
        Rows that follow one another in every `run` rows of a thread.
    combine : device function, optional
        ``combine(0, acc)``: makes a thread's elements of its sums, where these are not they.
    """

    load: Callable
    update: Callable
    unroll: int
    row: Callable
    col: Callable
    fragment_a: int
    fragment_b: int
    run: int
    combine: Any = None
