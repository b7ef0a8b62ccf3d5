"""Einstein's summation of two operands, as one batched matrix product."""

from __future__ import annotations

import re
from functools import lru_cache
from math import prod
from typing import Any, NamedTuple

import numpy as np

from ...arguments import Array, shown
from ...frontend.calls.call_cache import repeat
from ...frontend.engine_options import ambient_options
from ..keyword.repeated import replay
from .arrays import Arrays, Passed, gemm_of, stored, taken
from .docs import documented

__all__ = ["einsum"]

#: Subscripts of a product of two matrices.
_PRODUCT = re.compile("([A-Za-z]{2}),([A-Za-z]{2})->([A-Za-z]{2})")


@documented
def einsum(subscripts: str, a: Array, b: Array, /, out: Array = None) -> Array:
    """Product of two arrays summed by Einstein's convention, as `numpy.einsum`.

    Parameters
    ----------
    subscripts : str
        A letter for each axis of `a` and `b`, as ``"ij,jk->ik"``. An ellipsis is the axes that broadcast.
        Without ``->`` the result has the letters that occur once, in alphabetical order.
    a, b : array
        The operands.

    Returns
    -------
    array
        `out`, or a new array of the operands' library.

    Raises
    ------
    ValueError
        When the subscripts do not fit the operands, or are none.

    See Also
    --------
    tensordot : Sums over pairs of axes.

    Notes
    -----
    Axes that one operand alone has and the result lacks are summed first. Repeated ones are reduced to the
    diagonal. What remains is a product of stacks of matrices. Operands in an order of axes that no strides of
    a matrix describe are copied. NumPy's lists of subscripts, more operands than two and `optimize` are not
    taken.

    Examples
    --------
    >>> import numpy as np
    >>> from pyblasgpu import linalg
    >>> linalg.einsum("bij,bj->bi", np.ones((10, 2, 3)), np.ones((10, 3))).shape
    (10, 2)
    """
    key = ("linalg", "einsum", subscripts, type(subscripts))
    if out is None:
        done = repeat(key, (a, b)) if type(a) is not np.ndarray else _of_matrices(subscripts, a, b)
        if done is not None:
            return done
    arrays = taken("einsum", {"a": a, "b": b})
    terms = _parsed(subscripts, [len(each.shape) for each in arrays.each])
    with arrays.silent():
        result = arrays.returned(_contracted(arrays, terms, key, (a, b)))
        return result if out is None else stored("einsum", result, out, "safe")


def _of_matrices(subscripts: Any, a: Any, b: Any) -> Any:
    """Return the product of two NumPy matrices by SciPy's function; None where it is another sum, or needs
    checks.
    """
    if type(subscripts) is not str or type(b) is not np.ndarray or a.ndim != 2 or b.ndim != 2:
        return None
    turns = _turned(subscripts)
    if turns is None or ambient_options() is not None:
        return None
    factors = (a.T if turns[0] else a, b.T if turns[1] else b)
    product = replay(("gemm", "N", "N", None, str, str), factors, None, 1, 0, None, None)
    if product is None:
        return None
    return np.asarray(product, order="F").T if turns[2] else np.asarray(product, order="C")


@lru_cache(256)
def _turned(subscripts: str) -> tuple[bool, bool, bool] | None:
    """Whether the factors of a product of two matrices, and the product, are transposed; None for others."""
    found = _PRODUCT.fullmatch(subscripts.replace(" ", ""))
    if found is None:
        return None
    left, right, result = found.groups()
    inner = {*left} & {*right}
    if len({*left, *right}) != 3 or len(inner) != 1:
        return None
    row, col = ((set(term) - inner).pop() for term in (left, right))
    if result not in (row + col, col + row):
        return None
    return left[0] in inner, right[1] in inner, result == col + row


class _Terms(NamedTuple):
    """The axes of the operands and of the result; those of ellipses are numbers, from the last on."""

    left: tuple[Any, ...]
    right: tuple[Any, ...]
    result: tuple[Any, ...]


def _parsed(subscripts: Any, dimensions: list[int]) -> _Terms:
    if not isinstance(subscripts, str):
        raise TypeError(f"einsum: subscripts must be a str, not {shown(subscripts)}")
    text = subscripts.replace(" ", "")
    inputs, arrow, output = text.partition("->")
    for letter in inputs.replace("...", "").replace(",", "") + output.replace("...", ""):
        if not (letter.isalpha() and letter.isascii()):
            raise ValueError(
                f"einsum: invalid subscript {letter!r} in einsum subscripts string, subscripts must be "
                "letters"
            )
    terms = inputs.split(",")
    if len(terms) != 2:
        raise ValueError(f"einsum: {subscripts!r} is for {len(terms)} operands; two are given, and taken")
    left, right = (
        _axes(term, count, which) for which, (term, count) in enumerate(zip(terms, dimensions, strict=True))
    )
    ellipsis = max((_dots(term) for term in (left, right)), key=len)
    if arrow:
        result = _output_axes(output, ellipsis)
    else:
        letters = [axis for axis in (*left, *right) if isinstance(axis, str)]
        result = (*ellipsis, *sorted(axis for axis in set(letters) if letters.count(axis) == 1))
    for axis in result:
        if axis not in left and axis not in right:
            raise ValueError(
                f"einsum: einstein sum subscripts string included output subscript {axis!r} which never "
                "appeared in an input"
            )
        if result.count(axis) > 1:
            raise ValueError(
                f"einsum: einstein sum subscripts string includes output subscript {axis!r} multiple times"
            )
    return _Terms(left, right, result)


def _dots(term: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(axis for axis in term if not isinstance(axis, str))


def _axes(term: str, dimensions: int, which: int) -> tuple[Any, ...]:
    """The names of an operand's axes: letters, and numbers for those of an ellipsis, the last one 0."""
    before, dots, after = term.partition("...")
    hidden = dimensions - len(before) - len(after)
    if hidden < 0:
        raise ValueError(
            f"einsum: einstein sum subscripts string contains too many subscripts for operand {which}"
        )
    if hidden and not dots:
        raise ValueError(
            f"einsum: operand {which} has more dimensions than subscripts given in einstein sum, but no "
            "'...' ellipsis provided to broadcast the extra dimensions."
        )
    return (*before, *range(hidden - 1, -1, -1), *after)


def _output_axes(output: str, ellipsis: tuple[Any, ...]) -> tuple[Any, ...]:
    before, dots, after = output.partition("...")
    if ellipsis and not dots:
        raise ValueError(
            "einsum: output has more dimensions than subscripts given in einstein sum, but no '...' ellipsis "
            "provided to broadcast the extra dimensions."
        )
    return (*before, *(ellipsis if dots else ()), *after)


def _contracted(arrays: Arrays, terms: _Terms, key: tuple[Any, ...], given: tuple[Any, ...]) -> Any:
    xp = arrays.xp
    pairs = [
        _reduced(arrays, array, own, other, terms.result)
        for array, own, other in zip(
            arrays.each, (terms.left, terms.right), (terms.right, terms.left), strict=True
        )
    ]
    (x, left), (y, right) = pairs
    extents: dict[Any, int] = {}
    for array, axes in pairs:
        for axis, extent in zip(axes, array.shape, strict=True):
            known = extents.get(axis, 1)
            if known != extent and 1 not in (known, extent):
                raise ValueError(
                    f"einsum: operands of shapes {tuple(arrays.each[0].shape)} and "
                    f"{tuple(arrays.each[1].shape)} could not be broadcast together: {axis!r} has extents "
                    f"{known} and {extent}"
                )
            extents[axis] = extent if known == 1 else known
    batch = [axis for axis in terms.result if axis in left and axis in right]
    rows = [axis for axis in left if axis not in right]
    cols = [axis for axis in right if axis not in left]
    inner = [axis for axis in left if axis in right and axis not in batch]
    first = _stack(xp, x, left, (batch, rows, inner), extents)
    second = _stack(xp, y, right, (batch, inner, cols), extents)
    order = (*batch, *rows, *cols)
    passed, is_swapped = None, terms.result == (*batch, *cols, *rows) != order
    if is_swapped or terms.result == order:
        passed = Passed(key, given, tuple(extents[axis] for axis in terms.result))
    result = gemm_of("einsum", first, second, arrays.dtype, passed=passed, column_major=is_swapped or None)
    if is_swapped:
        result, order = xp.matrix_transpose(result), terms.result
    result = xp.reshape(result, tuple(extents[axis] for axis in order))
    return xp.permute_dims(result, tuple(order.index(axis) for axis in terms.result))


def _reduced(
    arrays: Arrays, array: Any, own: tuple[Any, ...], other: tuple[Any, ...], result: tuple[Any, ...]
) -> tuple[Any, tuple[Any, ...]]:
    """`array` with each axis once, and without those that neither `other` nor `result` has; its axes."""
    xp = arrays.xp
    for axis in dict.fromkeys(own):
        while own.count(axis) > 1:
            one = own.index(axis)
            two = own.index(axis, one + 1)
            if array.shape[one] != array.shape[two]:
                raise ValueError(
                    f"einsum: dimensions in a single operand for collapsing index {axis!r} don't match "
                    f"({array.shape[one]} != {array.shape[two]})"
                )
            rest = [index for index in range(len(own)) if index not in (one, two)]
            array = xp.linalg.diagonal(xp.permute_dims(array, (*rest, one, two)))
            own = (*(own[index] for index in rest), axis)
    summed = tuple(index for index, axis in enumerate(own) if axis not in other and axis not in result)
    if summed:
        array = xp.sum(arrays.cast(array), axis=summed)
        own = tuple(axis for index, axis in enumerate(own) if index not in summed)
    return array, own


def _stack(
    xp: Any, array: Any, axes: tuple[Any, ...], groups: tuple[list[Any], ...], extents: dict[Any, int]
) -> Any:
    """`array` as (batch axes, rows, columns), the `groups` of its axes.

    Axes of extent 1 are broadcast: by the product where they count matrices, else here.
    """
    batch, rows, cols = groups
    order = tuple(axes.index(axis) for axis in (*batch, *rows, *cols))
    array = xp.permute_dims(array, order)
    count = len(batch)
    wanted = (*array.shape[:count], *(extents[axis] for axis in (*rows, *cols)))
    if tuple(array.shape) != wanted:
        array = xp.broadcast_to(array, wanted)
    shape = (prod(wanted[count : count + len(rows)]), prod(wanted[count + len(rows) :]))
    return xp.reshape(array, (*wanted[:count], *shape))
