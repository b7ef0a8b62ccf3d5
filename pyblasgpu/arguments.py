"""Flags and numbers as callers pass them: Python's, NumPy's, or arrays of one element of any library."""

from __future__ import annotations

from math import prod
from operator import index
from typing import Any, TypeAlias

import numpy as np

__all__ = [
    "NUMBERS",
    "Array",
    "Flag",
    "Number",
    "Stream",
    "array_of_numbers",
    "as_number",
    "enabled",
    "item",
    "shown",
]

#: Types in the signatures of implementations, which take whatever callers pass. Type checkers of calls read
#: the stubs instead, where these are types of `pyblasgpu.typing`.
Array: TypeAlias = Any
Number: TypeAlias = Any
Flag: TypeAlias = Any
Stream: TypeAlias = Any

#: Types of numbers and sequences of them, without a dtype of their own.
NUMBERS = (list, tuple, int, float, complex)

_TEXT = (str, bytes, bytearray)
_SHOWN = 60  # characters of a value in a message


def shown(value: Any) -> str:
    """`value` in a message: on one line and short, whatever its repr does."""
    try:
        text = " ".join(repr(value).split())
    except Exception:  # an int of thousands of digits has none, an array on a lost device neither
        text = f"<{type(value).__name__}>"
    return text if len(text) <= _SHOWN else text[: _SHOWN - 3] + "..."


def item(value: Any) -> Any:
    """The element of an array of one element, as a Python scalar; what is no array as it is.

    Raises
    ------
    TypeError
        For arrays of more or no elements, and for times and masked elements, which are no numbers.
    """
    if not hasattr(value, "item"):
        return value
    is_time = getattr(getattr(value, "dtype", None), "kind", "O") in "mM"
    # NumPy imports np.ma when it is named, which takes longer than a call
    is_masked = isinstance(value, np.ndarray) and isinstance(value, np.ma.MaskedArray)
    if is_time or is_masked or prod(getattr(value, "shape", ())) != 1:
        raise TypeError
    return value.item()


def enabled(value: Any, routine: str, argument: str) -> bool:
    """Whether a switch, a bool or an int, is on.

    Raises
    ------
    ValueError
        For anything else, a str among it.
    """
    try:
        return index(item(value)) != 0
    except TypeError:
        raise ValueError(f"{routine}: {argument}={shown(value)} is neither a bool nor an int") from None


def as_number(value: Any) -> float | complex:
    """The float or complex that `value`, or its only element, is; errors are those of Python."""
    while isinstance(value, (list, tuple)) and len(value) == 1:
        (value,) = value
    element = item(value)
    if isinstance(element, (complex, np.complexfloating)):  # whose float() drops the imaginary part
        return complex(element)
    if isinstance(element, _TEXT):
        raise TypeError
    try:
        return float(element)
    except TypeError:
        return complex(element)


def array_of_numbers(value: Any, routine: str, argument: str) -> np.ndarray:
    """Convert a number or nested sequences of numbers to an array; exact numbers become float64 or
    complex128.

    Raises
    ------
    TypeError, ValueError
        When elements are no numbers, or too large, or rows are of different lengths.
    """
    try:
        array = np.asarray(value)
        if array.dtype.kind != "O":
            return array
        return np.array([as_number(each) for each in array.flat]).reshape(array.shape)
    except (TypeError, ValueError, OverflowError) as error:
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(f"{routine}: {argument}={shown(value)} is no array of numbers: {error}") from None
