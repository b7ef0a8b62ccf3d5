"""Conversion of arguments to Dask arrays of one dtype, and of lists of tasks to results."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import product
from typing import Any

import dask.array as da
import numpy as np
from dask.base import tokenize
from dask.highlevelgraph import HighLevelGraph

from ..arguments import Number
from ..frontend.arrays.any_array import number
from ..tasks import TaskList
from ..types import Trans, dtype_of
from .declared import as_declared
from .graph import TileLayer

__all__ = ["cut_like", "matrices", "op_chunks", "rechunked", "result", "scalars", "square"]


def matrices(routine: str, **arrays: Any) -> list[Any]:
    """The arrays that are not None as Dask matrices of their common dtype.

    Integers become float64, and float16 float32. Chunks are cast once, from what they are.
    """
    present = {name: da.asanyarray(array) for name, array in arrays.items() if array is not None}
    for name, array in present.items():
        if array.ndim != 2:
            raise ValueError(f"{routine}: {name} has shape {array.shape}; a matrix is needed")
        if any(np.isnan(extent) for extent in array.shape):
            raise ValueError(f"{routine}: {name} has chunks of unknown size; call its compute_chunk_sizes()")
    kinds = {array.dtype.kind for array in present.values()}
    least = np.float64 if kinds & set("iub") else np.float32
    dtype = np.result_type(least, *(array.dtype for array in present.values()))
    try:
        dtype_of(dtype)
    except TypeError:
        names = ", ".join(f"{name} is {array.dtype}" for name, array in present.items())
        raise TypeError(f"{routine}: {names}; none of the BLAS's dtypes holds that") from None
    typed = {
        name: array if array.dtype == dtype else as_declared(routine, name, array, dtype)
        for name, array in present.items()
    }
    return [typed.get(name) for name in arrays]


def scalars(routine: str, a: Any, c: Any, alpha: Number, beta: Number) -> tuple[Any, Any]:
    """`alpha` and `beta` as Python numbers that fit the dtype of `a`; ValueError where `beta` has no `c`."""
    dtype = dtype_of(a.dtype)
    alpha, beta = number(alpha, dtype, routine, "alpha"), number(beta, dtype, routine, "beta")
    if beta != 0 and c is None:
        raise ValueError(f"{routine}: beta={beta} needs c, the matrix that it scales")
    return alpha, beta


def op_chunks(a: Any, trans: Trans) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The chunks of op(a)."""
    rows, cols = a.chunks
    return (rows, cols) if trans is Trans.NO else (cols, rows)


def cut_like(
    routine: str, name: str, array: Any, rows: tuple[int, ...], cols: tuple[int, ...], trans: Trans = Trans.NO
) -> Any:
    """The argument `name` in chunks such that those of op(array) are `rows` by `cols`."""
    chunks = (rows, cols) if trans is Trans.NO else (cols, rows)
    if array.chunks == chunks:
        return array
    return rechunked(as_declared(routine, name, array, array.dtype), chunks)  # which would hide a wrong shape


def rechunked(array: Any, chunks: tuple[tuple[int, ...], ...]) -> Any:
    """`array` in other chunks; Dask leaves an array whose extents are all zero in the chunks that it has."""
    if any(array.shape):
        return array.rechunk(chunks)
    name = f"rechunk-empty-{tokenize(array.name, chunks)}"
    positions = product(*(range(len(extents)) for extents in chunks))
    layer = {(name, *position): (array.name, *(0 for _ in chunks)) for position in positions}
    return da.Array(HighLevelGraph.from_collections(name, layer, [array]), name, chunks, meta=array._meta)


def square(routine: str, name: str, array: Any) -> Any:
    """`array` with columns cut as its rows are; ValueError unless it is square."""
    if array.shape[0] != array.shape[1]:
        raise ValueError(f"{routine}: {name} has shape {array.shape}; a square matrix is needed")
    return cut_like(routine, name, array, array.chunks[0], array.chunks[0])


def result(
    routine: str,
    make_list: Callable[[], TaskList],
    output: str,
    sources: Mapping[str, Any],
    chunks: tuple[tuple[int, ...], tuple[int, ...]],
    by_columns: bool = False,
    blank: bool = False,
    caller: str = "",
) -> Any:
    """The array of the matrix `output` of a list of tasks on the arrays `sources`; see `TileLayer`.

    Errors name the routine `caller`, by default `routine`.
    """
    names = {matrix: array.name for matrix, array in sources.items()}
    meta = next(iter(sources.values()))._meta
    name = f"{routine}-{tokenize(routine, make_list, names, chunks)}"
    numblocks = (len(chunks[0]), len(chunks[1]))
    library = type(meta).__module__.partition(".")[0]
    layer = TileLayer(
        name, make_list, output, numblocks, names, library, meta.dtype, caller or routine, by_columns, blank
    )
    graph = HighLevelGraph.from_collections(name, layer, dependencies=list(sources.values()))
    return da.Array(graph, name, chunks, meta=meta)
