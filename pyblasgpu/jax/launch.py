"""The primitive that calls a routine: its shapes, batches and lowering to the handler of XLA's interface."""

from __future__ import annotations

from functools import cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import Primitive
from jax.interpreters import batching, mlir

from ..types import DTYPES
from .description import Description, left_numbers
from .handler import CAPTURED_TARGET, TARGET, prepare

__all__ = ["LETTERS", "first_device", "launch", "may_be_captured", "varying"]

#: Letters of the dtypes that are served.
LETTERS = {np.dtype(dtype.name): letter for letter, dtype in DTYPES.items() if letter in "sdcz"}

launch_p = Primitive("pyblasgpu")
launch_p.multiple_results = True


def launch(
    stem: str,
    flags: dict[str, Any],
    inputs: tuple[Any, ...],
    *,
    scalars: tuple[Any, ...] = (),
    integers: tuple[Any, ...] = (),
    source: Any = None,
    extents: tuple[int, int] = (0, 0),
    counts: tuple[int, ...] = (),
) -> list[Any]:
    """Return the output of a routine, and the integers or factors of reflectors that it leaves.

    Parameters
    ----------
    stem : str
        The routine, of `routine_table`.
    flags : dict
        Flags of the BLAS, by their values, and switches.
    inputs : tuple of array
        Matrices of one dtype, or stacks; leading dimensions broadcast.
    scalars : tuple of number
    integers : tuple of array
        Integers that are read, of shape (..., count).
    source : array, optional
        Matrices that the output holds at first; leading dimensions are broadcast.
    extents : (int, int)
        Rows and columns of the output where there is no source.
    counts : tuple of int
        How many numbers of each kind a matrix leaves, of shape (..., count), for the row's first operands.
    """
    given = [each[..., None] for each in integers]
    arrays = [*given, *inputs]
    batch_shape = np.broadcast_shapes(*[each.shape[:-2] for each in (*arrays, *_present(source))])
    if source is not None:
        extents = source.shape[-2:]
        arrays.append(jnp.broadcast_to(source, (*batch_shape, *extents)))
    if 0 in (*batch_shape, *extents):
        dtype = arrays[-1].dtype
        left = left_numbers(stem, dtype, counts)
        numbers = [jnp.zeros((*batch_shape, count), kind) for count, kind in left]
        return [jnp.zeros((*batch_shape, *extents), dtype), *numbers]
    out, *numbers = launch_p.bind(
        *varying(*arrays),
        stem=stem,
        flags=tuple(flags.items()),
        scalars=scalars,
        given=len(given),
        extents=tuple(extents),
        counts=counts,
        is_updated=source is not None,
    )
    return [out, *numbers]


def _present(array: Any) -> list[Any]:
    return [] if array is None else [array]


def varying(*arrays: Any) -> list[Any]:
    """Return arrays that vary over the same axes of a mesh, as operands within `jax.shard_map` must."""
    axes = [_axes(jax.typeof(array)) for array in arrays]
    every = frozenset().union(*axes)
    missing = [tuple(sorted(every - has)) for has in axes]
    return [
        jax.lax.pcast(x, names, to="varying") if names else x
        for x, names in zip(arrays, missing, strict=True)
    ]


def _axes(aval: Any) -> frozenset[str]:
    """Return the axes of a mesh over which an array varies."""
    kind = getattr(aval, "manual_axis_type", None)  # JAX 0.10; before it and after it, the other
    axes: frozenset[str] = getattr(aval, "vma", frozenset()) if kind is None else kind.varying
    return axes


def _description(avals: Any, outs: Any, params: dict[str, Any]) -> Description:
    """Return the description of a call."""
    given, is_updated = params["given"], params["is_updated"]
    shapes = [tuple(aval.shape) for aval in avals]
    return Description(
        params["stem"],
        LETTERS[np.dtype(outs[0].dtype)],
        params["flags"],
        params["scalars"],
        tuple(shapes[:given]),
        tuple(shapes[given : len(shapes) - is_updated]),
        tuple(outs[0].shape),
        params["counts"],
        is_updated,
    )


@launch_p.def_abstract_eval
def _shapes(*avals: Any, **params: Any) -> list[Any]:
    batch_shape = np.broadcast_shapes(*[aval.shape[:-2] for aval in avals])
    dtype = avals[-1].dtype
    left = left_numbers(params["stem"], dtype, params["counts"])
    outs = [
        ((*batch_shape, *params["extents"]), dtype),
        *[((*batch_shape, count), kind) for count, kind in left],
    ]
    if _axes(avals[0]):  # results vary over the same axes
        model = jax.make_jaxpr(lambda x: [jnp.full(shape, x.ravel()[0], kind) for shape, kind in outs])
        found: list[Any] = model(avals[0]).out_avals
        return found
    return [jax.core.ShapedArray(*out) for out in outs]


@cache
def _compiled(params: tuple[tuple[str, Any], ...]) -> Any:
    return jax.jit(partial(launch_p.bind, **dict(params)))


@launch_p.def_impl
def _run(*arrays: Any, **params: Any) -> Any:
    with jax.disable_jit(False):  # a call is a program: outside of any there is no handler
        return _compiled(tuple(params.items()))(*arrays)


def _batched(arrays: Any, dims: Any, **params: Any) -> Any:
    """Compute a batch of calls as one: the new dimension leads, and operands without it broadcast."""
    ranks = [array.ndim - 2 - (dim is not None) for array, dim in zip(arrays, dims, strict=True)]
    rank, size = (
        max(ranks),
        next(x.shape[dim] for x, dim in zip(arrays, dims, strict=True) if dim is not None),
    )
    moved = []
    for array, dim, own in zip(arrays, dims, ranks, strict=True):
        if dim is not None:
            first = jnp.moveaxis(array, dim, 0)
            array = first.reshape(size, *[1] * (rank - own), *first.shape[1:])
        moved.append(array)
    if params["is_updated"]:
        batch_shape = np.broadcast_shapes(*[array.shape[:-2] for array in moved])
        moved[-1] = jnp.broadcast_to(moved[-1], (*batch_shape, *params["extents"]))
    outs = launch_p.bind(*moved, **params)
    return outs, [0] * len(outs)


batching.primitive_batchers[launch_p] = _batched


@cache
def first_device() -> int | None:
    """Return the number of a device to compile for; None where a program is lowered for another machine."""
    try:
        number: int = jax.local_devices(backend="cuda")[0].local_hardware_id
        return number
    except RuntimeError:
        return None


@cache
def may_be_captured() -> bool:
    """Whether programs run on the device they are prepared for: nothing is loaded while XLA captures."""
    return first_device() is not None and len(jax.local_devices(backend="cuda")) == 1


def _lowered(context: Any, *arrays: Any, on_device: bool = False, **params: Any) -> Any:
    """Lower to a call of the handler; an output that is updated has the memory of the last argument.

    The workspace is one more result for the only device here, so that XLA may capture calls in a graph;
    exported programs may run on another one.
    """
    text, outs = _description(context.avals_in, context.avals_out, params).text(), context.avals_out
    nbytes, target = prepare(text, first_device() if on_device else None), TARGET
    is_exported = context.module_context.lowering_parameters.for_export
    if on_device and not is_exported and may_be_captured():
        target = CAPTURED_TARGET
        if nbytes:
            room = jax.core.ShapedArray((nbytes,), np.dtype(np.uint8))
            context = context.replace(avals_out=[*outs, room])
    aliases = {len(arrays) - 1: 0} if params["is_updated"] else {}
    lower = jax.ffi.ffi_lowering(target, operand_output_aliases=aliases)
    return [*lower(context, *arrays, call=text)][: len(outs)]


mlir.register_lowering(launch_p, _lowered)
mlir.register_lowering(launch_p, partial(_lowered, on_device=True), platform="cuda")
