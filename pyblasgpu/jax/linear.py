"""The primitive of linear maps: tangents by one formula, their transpose by another.

A map reads arrays, on which it may depend in any way, and is linear in others. Its derivatives are those of
its formula, and it may be transposed and mapped again and again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir

from .launch import varying

__all__ = ["linear"]

linear_p = Primitive("pyblasgpu_linear")
linear_p.multiple_results = True


def linear(forward: Callable[..., Any], transposed: Callable[..., Any], read: Any, arrays: Any) -> list[Any]:
    """Return ``forward(*read, *arrays)``, a list, which is linear in `arrays`.

    Parameters
    ----------
    forward : callable
    transposed : callable
        ``transposed(*read, *cotangents)`` returns those of `arrays`, with their shapes. Cotangents that are
        zero are None.
    read, arrays : sequence of array
    """
    operands = varying(*read, *arrays)
    found: list[Any] = linear_p.bind(*operands, forward=forward, transposed=transposed, count=len(read))
    return found


@linear_p.def_impl
def _run(*operands: Any, forward: Any, transposed: Any, count: int) -> Any:
    return forward(*operands)


@linear_p.def_abstract_eval
def _shapes(*avals: Any, forward: Any, transposed: Any, count: int) -> Any:
    return jax.make_jaxpr(forward)(*avals).out_avals


mlir.register_lowering(
    linear_p,
    mlir.lower_fun(lambda *operands, forward, transposed, count: forward(*operands), multiple_results=True),
)


def _differentiated(primals: Any, tangents: Any, *, forward: Any, transposed: Any, count: int) -> Any:
    places = [i for i, tangent in enumerate(tangents) if type(tangent) is not ad.Zero]
    if all(i >= count for i in places):
        given = [ad.instantiate_zeros(tangent) for tangent in tangents[count:]]
        found = linear(forward, transposed, primals[:count], primals[count:])
        return found, linear(forward, transposed, primals[:count], given)

    def of_some(*values: Any) -> Any:
        operands = list(primals)
        for i, value in zip(places, values, strict=True):
            operands[i] = value
        return forward(*operands)

    return jax.jvp(of_some, [primals[i] for i in places], [tangents[i] for i in places])


def _transposed(cotangents: Any, *operands: Any, forward: Any, transposed: Any, count: int) -> Any:
    present = [type(cotangent) is not ad.Zero for cotangent in cotangents]
    if not any(present):
        return [None] * count + [ad.Zero(operand.aval) for operand in operands[count:]]
    given = [cotangent for cotangent, here in zip(cotangents, present, strict=True) if here]
    if all(present):
        return [None] * count + linear(transposed, forward, operands[:count], given)

    def back(*values: Any) -> Any:
        left = iter(values[count:])
        return transposed(*values[:count], *[next(left) if here else None for here in present])

    def again(*values: Any) -> Any:
        return [x for x, here in zip(forward(*values), present, strict=True) if here]

    return [None] * count + linear(back, again, operands[:count], given)


def _batched(operands: Any, dims: Any, *, forward: Any, transposed: Any, count: int) -> Any:
    """Map both formulas; of a linear operand without the dimension the cotangent is summed over it."""
    read = [None if dim is None else dim for dim in dims[:count]]
    outs = jax.eval_shape(jax.vmap(forward, in_axes=tuple(dims), out_axes=0), *operands)

    def back(*values: Any) -> Any:
        axes = (*read, *[0] * len(outs))
        found = jax.vmap(transposed, in_axes=axes, out_axes=0)(*values)
        return [
            x.sum(0) if dim is None else jnp.moveaxis(x, 0, dim)
            for x, dim in zip(found, dims[count:], strict=True)
        ]

    mapped = jax.vmap(forward, in_axes=tuple(dims), out_axes=0)
    found = linear(mapped, back, operands[:count], operands[count:])
    return found, [0] * len(found)


ad.primitive_jvps[linear_p] = _differentiated
ad.primitive_transposes[linear_p] = _transposed
batching.primitive_batchers[linear_p] = _batched
