"""The functions that a patch of modules replaces, and the sizes of their calls."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from ..types import DTYPES

__all__ = ["FEWEST", "TYPECODES", "Sizes", "Target", "argument", "cube_root"]

#: Letters of the dtypes by NumPy's characters.
TYPECODES = {np.dtype(dtype.name).char: letter for letter, dtype in DTYPES.items()}
#: The largest orders of stacks that are replaced: of eigenvectors those that were timed, of singular vectors
#: those for which all dtypes have a kernel.
HERMITIAN_ORDER, SINGULAR_ORDER = 512, 80
#: Matrices from which on a device's kernels of eigenvalues, a block a matrix, make up for their single pace.
FEWEST = 8
Size = Callable[[tuple[Any, ...], Mapping[str, Any]], float]


class Target(NamedTuple):
    """One function that is replaced.

    Attributes
    ----------
    name : str
        The key of its threshold.
    replaced : str
        The function that is replaced, as "module:function".
    original, ours : callable
        The library's function, and the one in its place.
    size : callable
        ``size(args, kwargs)`` is the size of a call, -1 if it is not for us.
    kind : type
        The class of the library's arrays.
    active : list of Patch
        The patches of the library that are on, the last one deciding.
    """

    name: str
    replaced: str
    original: Callable[..., Any]
    ours: Callable[..., Any]
    size: Size
    kind: type
    active: list[Any]


def argument(args: tuple[Any, ...], kwargs: Mapping[str, Any], position: int, name: str) -> Any:
    """An argument that is there, passed by position or by name."""
    return args[position] if len(args) > position else kwargs[name]


def cube_root(*extents: int) -> float:
    product = 1.0
    for extent in extents:
        product *= extent
    return float(product ** (1 / 3))


class Sizes:
    """Sizes of calls with arrays of one class.

    Parameters
    ----------
    kind : type
        The class itself: its subclasses have rules of their own.
    """

    def __init__(self, kind: type) -> None:
        self._kind: Any = kind

    def shape(self, array: Any) -> tuple[int, ...] | None:
        """The shape of an array of the class and one of the four dtypes; None of all else."""
        if type(array) is self._kind and array.dtype.char in TYPECODES:
            shape: tuple[int, ...] = array.shape
            return shape
        return None

    def order_of_a(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> float:
        """The size of factorizations: of many matrices, that of the one with as much work."""
        shape = self.shape(argument(args, kwargs, 0, "a"))
        if shape is None or len(shape) < 2:
            return -1
        return cube_root(*shape, min(shape[-2:]))

    def order_if_square(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> float:
        """Return the order of square matrices; NumPy refuses others."""
        shape = self.shape(argument(args, kwargs, 0, "a"))
        return -1 if shape is None or shape[-1:] != shape[-2:-1] else self.order_of_a(args, kwargs)

    def of_stacks(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> float:
        """The size of stacks of matrices of which there are kernels of singular values; -1 of all else."""
        shape = self.shape(argument(args, kwargs, 0, "a"))
        is_served = shape is not None and len(shape) > 2 and 0 < min(shape[-2:]) <= SINGULAR_ORDER
        return self.order_of_a(args, kwargs) if is_served else -1

    def of_square_stacks(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> float:
        """The size of stacks of square matrices of which there are kernels of eigenvalues; -1 of all else."""
        shape = self.shape(argument(args, kwargs, 0, "a"))
        is_served = shape is not None and len(shape) > 2 and 0 < shape[-1] <= HERMITIAN_ORDER
        return self.order_if_square(args, kwargs) if is_served else -1

    def solves(self, name: str) -> Size:
        """The size of solves with a factor, or with a pair whose first part is one."""

        def size(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> float:
            factor = argument(args, kwargs, 0, name)
            shape = self.shape(factor[0] if isinstance(factor, tuple) else factor)
            right = self.shape(argument(args, kwargs, 1, "b"))
            if shape is None or right is None or len(shape) < 2 or not right:
                return -1
            return cube_root(shape[-1], *right)

        return size

    def product(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> float:
        """The size of a product of matrices, or of stacks."""
        left, right = (self.shape(argument(args, kwargs, i, "ab"[i])) for i in range(2))
        if left is None or right is None or min(len(left), len(right)) < 2 or left[-1] != right[-2]:
            return -1
        stack = max(left[:-2], right[:-2], key=len)
        return cube_root(*stack, *left[-2:], right[-1])
