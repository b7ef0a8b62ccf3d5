"""Chunks checked against what their array declares, and cast to the dtype of a computation."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import dask.array as da
import numpy as np
from dask.base import tokenize
from dask.blockwise import blockwise
from dask.highlevelgraph import HighLevelGraph
from dask.layers import ArrayBlockIdDep, ArrayChunkShapeDep

__all__ = ["Declared", "as_declared"]


class Declared(NamedTuple):
    """A chunk of an argument, as its array declares it.

    Attributes
    ----------
    routine, argument : str
        The names in errors.
    dtype : numpy.dtype
        The dtype of the computation.
    position : (int, int)
        The row and column of the chunk, counted in chunks.
    shape : (int, int)
    """

    routine: str
    argument: str
    dtype: np.dtype[Any]
    position: tuple[int, int]
    shape: tuple[int, int]

    def check(self, chunk: Any) -> None:
        """Raise an error unless `chunk` has the declared shape, and a dtype that can be cast."""
        about = f"{self.routine}: chunk {self.position} of {self.argument}"
        given = getattr(chunk, "dtype", None)
        if not isinstance(given, np.dtype):
            raise TypeError(f"{about} is a {type(chunk).__name__}; an array of NumPy or CuPy is needed")
        if chunk.shape != self.shape:
            raise ValueError(f"{about} has shape {chunk.shape}; its array declares {self.shape}")
        if not np.can_cast(given, self.dtype, "same_kind"):
            raise TypeError(f"{about} has dtype {given}; the computation is in {self.dtype}")

    def cast(self, chunk: Any) -> Any:
        """`chunk` in the dtype of the computation; no copy if it has it."""
        return chunk if chunk.dtype == self.dtype else chunk.astype(self.dtype)

    def __call__(self, chunk: Any) -> Any:
        """`chunk`, checked and cast."""
        self.check(chunk)
        return self.cast(chunk)


def as_declared(routine: str, argument: str, array: Any, dtype: np.dtype[Any]) -> Any:
    """`array`, an argument of `routine`, with chunks that are checked, and cast to `dtype`."""
    name = f"{routine}-check-{tokenize(array.name, argument, dtype)}"
    declarations = ArrayBlockIdDep(array.chunks), "ij", ArrayChunkShapeDep(array.chunks), "ij"
    take = partial(_taken, routine, argument, dtype)
    layer = blockwise(
        take, name, "ij", array.name, "ij", *declarations, numblocks={array.name: array.numblocks}
    )
    graph = HighLevelGraph.from_collections(name, layer, dependencies=[array])
    return da.Array(graph, name, array.chunks, meta=array._meta.astype(dtype))


def _taken(
    routine: str,
    argument: str,
    dtype: np.dtype[Any],
    chunk: Any,
    position: tuple[int, int],
    shape: tuple[int, int],
) -> Any:
    """`chunk`, checked and cast."""
    return Declared(routine, argument, dtype, position, shape)(chunk)
