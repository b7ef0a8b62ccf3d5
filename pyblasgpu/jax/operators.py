"""Registration of the rows of the table with JAX: functions with tangents, and what transposes them."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from types import SimpleNamespace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.custom_derivatives import SymbolicZero

from ..operators.row import Row
from .arrays import ARRAYS, Turned, plain
from .linear import linear

__all__ = ["TABLE", "register"]


class _Operator(NamedTuple):
    """A row, the names of its arguments, which of them are arrays, and what computes it."""

    row: type[Row]
    names: tuple[str, ...]
    is_array: tuple[bool, ...]
    compute: Callable[..., Any]


#: The operators by their names.
TABLE: dict[str, _Operator] = {}


def register(row: type[Row]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorate the function that computes a row; the operator is an attribute of `ARRAYS`."""

    def registered(compute: Callable[..., Any]) -> Callable[..., Any]:
        name, _, listed = row.schema.rstrip(")").partition("(")
        arguments = [each.split() for each in listed.split(", ")]
        is_array = tuple(kind.startswith("Tensor") for kind, _ in arguments)
        TABLE[name] = _Operator(row, tuple(each for _, each in arguments), is_array, compute)
        operator = partial(_call, name)
        setattr(ARRAYS, name, operator)
        return operator

    return registered


def _call(name: str, *args: Any) -> Any:
    """Compute an operator; arrays among the arguments may be `Turned`, or None."""
    is_array = TABLE[name].is_array
    arrays = [arg for arg, array in zip(args, is_array, strict=True) if array]
    others = tuple(arg for arg, array in zip(args, is_array, strict=True) if not array)
    kinds = tuple(None if array is None else isinstance(array, Turned) for array in arrays)
    present = [array.array if isinstance(array, Turned) else array for array in arrays if array is not None]
    outputs = _differentiable(name, kinds, others, tuple(map(type, others)))(*present)
    return outputs if len(outputs) > 1 else outputs[0]


@cache
def _differentiable(name: str, kinds: tuple[bool | None, ...], others: Any, types: Any) -> Any:
    """Return the function of the arrays that are present, with its tangents.

    Parameters
    ----------
    name : str
    kinds : tuple of (bool or None)
        Whether each array is turned; None where it is None.
    others : tuple
        Arguments that are no arrays.
    types : tuple of type
        Their types: 1 and 1.0 are equal keys.
    """
    operator = TABLE[name]

    def arguments(present: Any) -> list[Any]:
        arrays, rest = iter(_dressed(present, kinds)), iter(others)
        return [next(arrays) if is_array else next(rest) for is_array in operator.is_array]

    @jax.custom_jvp
    def function(*present: Any) -> Any:
        found = operator.compute(ARRAYS, *arguments(present))
        return found if isinstance(found, tuple) else (found,)

    def rule(primals: Any, tangents: Any) -> Any:
        outputs = function(*primals)
        values = dict(zip(operator.names, arguments(primals), strict=True))
        return outputs, _tangents(operator, kinds, values, outputs, tangents)

    function.defjvp(rule, symbolic_zeros=True)
    return function


def _dressed(present: Any, kinds: Any) -> list[Any]:
    """Return all arrays: turned, and None, where they are."""
    left = iter(present)
    return [None if kind is None else Turned(next(left)) if kind else next(left) for kind in kinds]


def _tangents(operator: _Operator, kinds: Any, values: Any, outputs: Any, tangents: Any) -> Any:
    """Return the tangents of all outputs, by a linear map of those that are not zero."""
    row = operator.row
    arrays = [name for name, is_array in zip(operator.names, operator.is_array, strict=True) if is_array]
    given = iter(tangents)
    of_each = [None if kind is None else next(given) for kind in kinds]
    varied = [
        x is not None and not isinstance(x, SymbolicZero) and x.dtype != jax.dtypes.float0 for x in of_each
    ]
    if not any(varied):
        return tuple(map(_zero, outputs))
    values = {**values, **dict(zip(row.returns, outputs, strict=True))}
    others = {k: v for k, v in values.items() if v is None or not hasattr(v, "dtype")}
    turned = {name for name in row.saved if isinstance(values[name], Turned)}
    read = {name: values[name] for name in row.saved if name not in others}
    keep = [name not in row.constant for name in row.returns]

    def state(saved: Any) -> SimpleNamespace:
        each = zip(read, saved, strict=True)
        dressed = {name: Turned(x) if name in turned else x for name, x in each}
        return SimpleNamespace(**{**others, **dressed})

    def forward(*operands: Any) -> list[Any]:
        saved, moves = operands[: len(read)], iter(operands[len(read) :])
        full = [next(moves) if is_varied else None for is_varied in varied]
        full = [Turned(x) if kind and x is not None else x for x, kind in zip(full, kinds, strict=True)]
        found = row.jvp(ARRAYS, state(saved), *full)
        each = found if isinstance(found, tuple) else (found,)
        likes = [(output.shape, output.dtype) for output, kept in zip(outputs, keep, strict=True) if kept]
        moved = [x for x, kept in zip(each, keep, strict=True) if kept]
        return [_filled(x, *like) for x, like in zip(moved, likes, strict=True)]

    def back(*operands: Any) -> list[Any]:
        s, found = state(operands[: len(read)]), iter(operands[len(read) :])
        s.needs = dict(zip(arrays, varied, strict=True))
        # JAX's cotangents are conjugates of gradients
        grads = [next(found).conj() if kept else None for kept in keep]
        result = row.backward(ARRAYS, s, *grads)
        each = zip(result if isinstance(result, tuple) else (result,), varied, kinds, of_each, strict=True)
        return [_summed(x, kind, like).conj() for x, is_varied, kind, like in each if is_varied]

    bare = [x.array if isinstance(x, Turned) else x for x in read.values()]
    moved = iter(
        linear(forward, back, bare, [x for x, is_varied in zip(of_each, varied, strict=True) if is_varied])
    )
    return tuple(next(moved) if kept else _zero(x) for x, kept in zip(outputs, keep, strict=True))


def _zero(output: Any) -> Any:
    """Return the tangent of an output that has none."""
    return SymbolicZero(jax.typeof(output).to_tangent_aval())


def _filled(x: Any, shape: Any, dtype: Any) -> Any:
    """Return a tangent of the shape of its output, of an operand that broadcasts too."""
    return jnp.zeros(shape, dtype) if x is None else jnp.broadcast_to(plain(x), shape).astype(dtype)


def _summed(x: Any, is_turned: bool, like: Any) -> Any:
    """Return the gradient of an argument, summed over what broadcast; zero where there is none."""
    if x is None or x is False:
        return jnp.zeros(like.shape, like.dtype)
    x = plain(ARRAYS.adjoint(x) if is_turned else x)
    extra = x.ndim - like.ndim
    axes = [
        *range(extra),
        *[extra + i for i, n in enumerate(like.shape) if n == 1 and x.shape[extra + i] != 1],
    ]
    return x.sum(axes).reshape(like.shape).astype(like.dtype)
