"""Registration of the rows of the table with JAX: a primitive of all operators, with tangents and batches."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial
from types import SimpleNamespace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir

from ..operators.row import CORE, Row
from .arrays import ARRAYS, Turned, plain
from .launch import varying
from .linear import linear

__all__ = ["TABLE", "register"]


class _Operator(NamedTuple):
    """A row, the names of its arguments, which of them are arrays, and what computes it."""

    row: type[Row]
    names: tuple[str, ...]
    is_array: tuple[bool, ...]
    compute: Callable[..., Any]

    @property
    def arrays(self) -> list[str]:
        """The names of the arguments that are arrays."""
        return [name for name, is_array in zip(self.names, self.is_array, strict=True) if is_array]


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
    call = _Call(name, kinds, others, tuple(map(type, others)))
    outputs = operator_p.bind(*varying(*present), call=call)
    return tuple(outputs) if len(outputs) > 1 else outputs[0]


class _Call(NamedTuple):
    """A call of an operator but for its arrays.

    Attributes
    ----------
    name : str
    kinds : tuple of (bool or None)
        Whether each array is turned; None where it is None.
    others : tuple
        Arguments that are no arrays.
    types : tuple of type
        Their types: 1 and 1.0 are equal keys.
    """

    name: str
    kinds: tuple[bool | None, ...]
    others: tuple[Any, ...]
    types: tuple[type, ...]

    def arguments(self, present: Any) -> list[Any]:
        """Return all arguments."""
        arrays, rest = iter(_dressed(present, self.kinds)), iter(self.others)
        return [next(arrays) if is_array else next(rest) for is_array in TABLE[self.name].is_array]

    def compute(self, *present: Any) -> list[Any]:
        """Return the outputs."""
        found = TABLE[self.name].compute(ARRAYS, *self.arguments(present))
        return list(found) if isinstance(found, tuple) else [found]


# a primitive and no custom_jvp, whose rule JAX drops where it splits loops
operator_p = Primitive("pyblasgpu_operator")
operator_p.multiple_results = True
operator_p.def_impl(lambda *present, call: call.compute(*present))


@operator_p.def_abstract_eval
@lru_cache(maxsize=4096)
def _shapes(*avals: Any, call: _Call) -> Any:
    return jax.make_jaxpr(call.compute)(*avals).out_avals


mlir.register_lowering(
    operator_p, mlir.lower_fun(lambda *present, call: call.compute(*present), multiple_results=True)
)


def _differentiated(primals: Any, tangents: Any, *, call: _Call) -> Any:
    outputs = operator_p.bind(*varying(*primals), call=call)
    operator = TABLE[call.name]
    values = dict(zip(operator.names, call.arguments(primals), strict=True))
    return outputs, _tangents(operator, call.kinds, values, outputs, tangents)


def _batched(arrays: Any, dims: Any, *, call: _Call) -> Any:
    """Compute a batch of calls as one: the new dimension leads, and operands without it broadcast."""
    row, names = TABLE[call.name].row, TABLE[call.name].arrays
    cores = [CORE.get(name, 2) for name, kind in zip(names, call.kinds, strict=True) if kind is not None]
    ranks = [x.ndim - core - (dim is not None) for x, core, dim in zip(arrays, cores, dims, strict=True)]
    rank, moved = max(ranks), []
    for array, dim, own in zip(arrays, dims, ranks, strict=True):
        if dim is not None:
            first = jnp.moveaxis(array, dim, 0)
            array = first.reshape(first.shape[0], *[1] * (rank - own), *first.shape[1:])
        moved.append(array)
    outputs = list(operator_p.bind(*varying(*moved), call=call))
    out_dims: list[Any] = [0] * len(outputs)
    for i, name in enumerate(row.returns):
        if name in row.of_first:
            shape = outputs[i].shape
            if dims[0] is None:
                out_dims[i] = None
            else:
                outputs[i] = outputs[i].reshape(shape[0], *shape[1 + rank - ranks[0] :])
    return outputs, out_dims


def _transposed(cotangents: Any, *operands: Any, call: _Call) -> Any:
    """Transpose a call that is linear in some operands: there it is its own tangent."""
    operator, free = TABLE[call.name], [*map(ad.is_undefined_primal, operands)]
    row, avals = operator.row, [x.aval for x, is_free in zip(operands, free, strict=True) if is_free]
    values = [
        jnp.zeros(x.aval.shape, x.aval.dtype) if is_free else x
        for x, is_free in zip(operands, free, strict=True)
    ]
    if set(row.saved) & set(row.constant):  # factors, which depend on no operand that is free
        outputs = operator_p.bind(*varying(*values), call=call)
    else:
        outputs = [jnp.zeros(x.shape, x.dtype) for x in _shapes(*map(jax.typeof, values), call=call)]
    arguments = dict(zip(operator.names, call.arguments(values), strict=True))
    keep = [name not in row.constant for name in row.returns]

    def tangent(*moves: Any) -> list[Any]:
        left = iter(moves)
        each = [next(left) if is_free else _zero(x) for x, is_free in zip(values, free, strict=True)]
        found = _tangents(operator, call.kinds, arguments, outputs, each)
        return [x for x, kept in zip(found, keep, strict=True) if kept]

    given = [ad.instantiate_zeros(x) for x, kept in zip(cotangents, keep, strict=True) if kept]
    moved = iter(jax.linear_transpose(tangent, *avals)(given))
    return [next(moved) if is_free else None for is_free in free]


ad.primitive_jvps[operator_p] = _differentiated
ad.primitive_transposes[operator_p] = _transposed
batching.primitive_batchers[operator_p] = _batched


def _dressed(present: Any, kinds: Any) -> list[Any]:
    """Return all arrays: turned, and None, where they are."""
    left = iter(present)
    return [None if kind is None else Turned(next(left)) if kind else next(left) for kind in kinds]


def _tangents(operator: _Operator, kinds: Any, values: Any, outputs: Any, tangents: Any) -> Any:
    """Return the tangents of all outputs, by a linear map of those that are not zero."""
    row = operator.row
    given = iter(tangents)
    of_each: list[Any] = [None if kind is None else next(given) for kind in kinds]
    varied = [x is not None and not isinstance(x, ad.Zero) and x.dtype != jax.dtypes.float0 for x in of_each]
    if not any(varied):
        return tuple(map(_zero, outputs))
    values = {**values, **dict(zip(row.returns, outputs, strict=True))}
    others = {k: v for k, v in values.items() if v is None or not hasattr(v, "dtype")}
    turned = {name for name in row.saved if isinstance(values[name], Turned)}
    read = {name: values[name] for name in row.saved if name not in others}
    keep = [name not in row.constant for name in row.returns]
    likes = [(x.shape, x.dtype) for x, kept in zip(outputs, keep, strict=True) if kept]
    input_likes = [jax.typeof(x) if is_varied else None for x, is_varied in zip(of_each, varied, strict=True)]

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
        moved = [x for x, kept in zip(each, keep, strict=True) if kept]
        filled = [_filled(x, *like) for x, like in zip(moved, likes, strict=True)]
        return varying(*filled, *operands)[: len(filled)]

    def back(*operands: Any) -> list[Any]:
        s, found = state(operands[: len(read)]), iter(operands[len(read) :])
        s.needs = dict(zip(operator.arrays, varied, strict=True))
        # JAX's cotangents are conjugates of gradients
        moved = [next(found) if kept else None for kept in keep]
        grads = [None if x is None else x.conj() for x in moved]
        result = row.backward(ARRAYS, s, *grads)
        each = zip(result if isinstance(result, tuple) else (result,), kinds, input_likes, strict=True)
        summed = [_summed(x, kind, like).conj() for x, kind, like in each if like]
        return varying(*summed, *[x for x in operands if x is not None])[: len(summed)]

    bare = [x.array if isinstance(x, Turned) else x for x in read.values()]
    moved = iter(
        linear(forward, back, bare, [x for x, is_varied in zip(of_each, varied, strict=True) if is_varied])
    )
    return tuple(next(moved) if kept else _zero(x) for x, kept in zip(outputs, keep, strict=True))


def _zero(output: Any) -> Any:
    """Return the tangent of an output that has none."""
    return ad.Zero(jax.typeof(output).to_tangent_aval())


def _filled(x: Any, shape: Any, dtype: Any) -> Any:
    """Return a tangent of the shape of its output, of an operand that broadcasts too."""
    return jnp.zeros(shape, dtype) if x is None else jnp.broadcast_to(plain(x), shape).astype(dtype)


def _summed(x: Any, is_turned: bool | None, like: Any) -> Any:
    """Return the gradient of an argument, summed over what broadcast; zero where there is none."""
    shape, dtype = like.shape, like.dtype
    if x is None or x is False:
        return _placed(jnp.zeros(shape, dtype), like)
    x = plain(ARRAYS.adjoint(x) if is_turned else x)
    extra = x.ndim - len(shape)
    axes = [
        *range(extra),
        *[extra + i for i, n in enumerate(shape) if n == 1 and x.shape[extra + i] != 1],
    ]
    return _placed(x.sum(axes).reshape(shape).astype(dtype), like)


def _placed(x: Any, like: Any) -> Any:
    """Return an array that is spread over devices as one of the type `like`, where types say it."""
    wanted = like.sharding
    return x if jax.typeof(x).sharding.spec == wanted.spec else jax.sharding.reshard(x, wanted)
