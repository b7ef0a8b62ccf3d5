"""What the functions of `blas` carry beside their code: names, docstrings, SciPy's attributes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..types import Dtype

__all__ = ["dressed", "name_of", "types_of"]


def name_of(stem: str, dtype: Dtype | None) -> str:
    """The name of a routine for a dtype, or for that of the arrays."""
    return stem if dtype is None else dtype.letter + stem


def types_of(dtype: Dtype | None) -> str:
    """What the summary of a docstring says about dtypes."""
    return ", in the dtype that the arrays have together" if dtype is None else f", in {dtype.name}"


def dressed(
    function: Any, name: str, dtype: Dtype | None, doc: str, module: str = "blas", integers: str = "int64"
) -> Callable[..., Any]:
    """`function` as users find it, and with the attributes of SciPy's; `integers` are those that it takes."""
    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    function.__module__ = function.module_name = f"pyblasgpu.{module}"  # where users find it
    if dtype is not None:
        function.typecode = function.prefix = dtype.letter
        function.dtype, function.int_dtype = np.dtype(dtype.name), np.dtype(integers)
    finished: Callable[..., Any] = function
    return finished
