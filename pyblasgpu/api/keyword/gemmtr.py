"""GEMMTR on any arrays, in keyword style: a product of which one triangle is computed; see `level3`."""

from __future__ import annotations

from typing import Any

from ...arguments import Array, Flag, Number, Stream
from ...frontend.calls.call import Call
from ...frontend.calls.engine_call import run_routine
from ...routine_table import ROUTINES
from ...types import Trans, Uplo
from ..docstrings import KEYWORD, UPDATE, documenting
from .level3 import common_batch_shape, parse_beta
from .rank_k import held_at_first
from .repeated import replay

__all__ = ["gemmtr", "triangular_product"]


@documenting(UPDATE, KEYWORD)
def gemmtr(
    a: Array,
    b: Array,
    *,
    alpha: Number = 1,
    beta: Number = 0,
    lower: Flag = False,
    trans_a: Flag = "N",
    trans_b: Flag = "N",
    out: Array = None,
    stream: Stream = None,
    backend: str | None = None,
) -> Array:
    """General product of which one triangle is computed: ``alpha op(a) op(b) + beta out``.

    Parameters
    ----------
    a : array, shape (..., n, k), or (..., k, n) if transposed
        The left factor.
    b : array, shape (..., k, n), or (..., n, k) if transposed
        The right factor.
    out : array, shape (..., n, n), optional

    Returns
    -------
    array, shape (..., n, n)

    See Also
    --------
    gemm : All of the product.

    Notes
    -----
    The error bound is that of `gemm`. The name is that of the reference BLAS since LAPACK 3.12.1;
    elsewhere the routine is called gemmt.

    Examples
    --------
    >>> import numpy as np, pyblasgpu
    >>> pyblasgpu.gemmtr(np.array([[1.0], [2.0]]), np.array([[3.0, 4.0]]), lower=True)
    array([[3., 0.],
           [6., 8.]])
    """
    key = ("gemmtr", lower, trans_a, trans_b, type(lower), type(trans_a), type(trans_b))
    done = replay(key, (a, b), out, alpha, beta, stream, backend)
    if done is not None:
        return done
    call = Call("gemmtr", {"a": a, "b": b}, out, stream, backend)
    return triangular_product(call, alpha, beta, out, lower, trans_a, trans_b, key=key)


# What follows is shared with blas, which prepares the Call in its own way.


def triangular_product(
    call: Call,
    alpha: Number,
    beta: Number,
    out: Array,
    lower: Flag,
    trans_a: Flag,
    trans_b: Flag,
    source: Any = None,
    column_major: bool | None = None,
    key: Any = None,
) -> Any:
    """Check and run GEMMTR; see `symmetric` for the parameters."""
    name, uplo = call.name, Uplo.parse(lower, call.name, "lower")
    trans_a, trans_b = Trans.parse(trans_a, name, "trans_a"), Trans.parse(trans_b, name, "trans_b")
    alpha, beta = call.scalar("alpha", alpha), parse_beta(call, beta, out, source)
    a, b = call.inputs[:2]
    n, k = a.shape[-2:] if trans_a is Trans.NO else a.shape[:-3:-1]
    inner, cols = b.shape[-2:] if trans_b is Trans.NO else b.shape[:-3:-1]
    if (inner, cols) != (k, n):
        raise ValueError(
            f"{name}: op(a) is {n} by {k} and op(b) {inner} by {cols}, not {k} by {n} "
            f"(a has shape {tuple(a.shape)}, b {tuple(b.shape)})"
        )
    call.set_output(out, common_batch_shape(name, a, b), n, n, column_major)
    call.check_overlap()
    is_new_output, source = held_at_first(call, out, source, n)
    flags = {"uplo": uplo, "trans_a": trans_a, "trans_b": trans_b, "is_new_output": is_new_output}
    return run_routine(call, ROUTINES["gemmtr"], (a, b), (alpha, beta), flags, source, key)
