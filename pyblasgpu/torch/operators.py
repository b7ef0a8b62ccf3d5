"""The table of operators: what a row says, and its registration with PyTorch's dispatcher.

A row allocates its outputs by one function, for real and for fake tensors: the strides that compilers are
promised are those of the results. Gradients, tangents and batches of a row are operators of the table again.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from types import SimpleNamespace
from typing import Any

import torch
from torch import _C, Tensor
from torch._functorch.utils import enable_single_level_autograd_function
from torch.autograd import forward_ad
from torch.autograd.function import _SingleLevelFunction

from ..operators.row import CORE, Row
from .tensors import TENSORS

__all__ = ["TABLE", "Operator", "register"]

LIBRARY = torch.library.Library("pyblasgpu", "DEF")
#: Keys below which nothing is but the computation.
_PLAIN = (_C.DispatchKey.CPU, _C.DispatchKey.CUDA)
#: Each row by the name of its operator.
TABLE: dict[str, type[Operator]] = {}


class Operator(Row):
    """A row of the table, and how PyTorch's tensors are computed; its functions are static."""

    @staticmethod
    def empty(*args: Any) -> Any:
        """Return new outputs: a tensor, or a tuple of them, without values."""
        raise NotImplementedError

    @staticmethod
    def compute(outputs: Any, *args: Any) -> None:
        """Fill the outputs by the library's routines."""
        raise NotImplementedError


def register(row: type[Operator]) -> Any:
    """Define the operator of a row; return it."""
    name = row.schema.partition("(")[0]
    count = len(row.returns)
    LIBRARY.define(f"{row.schema} -> {'Tensor' if count == 1 else '(' + ', '.join(['Tensor'] * count) + ')'}")
    op = getattr(torch.ops.pyblasgpu, name).default
    for key in ("CPU", "CUDA"):
        LIBRARY.impl(name, partial(_computed, row), key)
    LIBRARY.impl(name, _differentiable(op, row), "Autograd", with_keyset=True)
    torch.library.register_fake(f"pyblasgpu::{name}", row.empty, lib=LIBRARY)
    torch.library.register_vmap(f"pyblasgpu::{name}", partial(_batched, op, row), lib=LIBRARY)
    TABLE[name] = row
    setattr(TENSORS, name, op)
    return op


def _computed(row: type[Operator], *args: Any) -> Any:
    outputs = row.empty(*args)
    row.compute(outputs, *args)
    return outputs


def _differentiable(op: Any, row: type[Operator]) -> Callable[..., Any]:
    """Return the kernel above the computation, which records it where gradients or tangents are wanted."""
    function = _recorded(op, row)
    after, below = _C._after_autograd_keyset, _C._after_ADInplaceOrView_keyset

    def kernel(keyset: Any, *args: Any) -> Any:
        is_recorded = _C.is_grad_enabled() and _C._any_requires_grad(*args)
        if is_recorded or forward_ad._current_level >= 0:
            with enable_single_level_autograd_function():  # one level of torch.func at a time gets here
                return function.apply(keyset, *args)
        with _C._AutoDispatchBelowAutograd():
            if (keyset & below).highestPriorityTypeId() in _PLAIN:  # no mode, transform or lazy conjugation
                return _computed(row, *args)
            return op.redispatch(keyset & after, *args)

    return kernel


def _recorded(op: Any, row: type[Operator]) -> Any:
    """Return the node of the graph of an operator."""
    arguments = op._schema.arguments
    names = [argument.name for argument in arguments]
    tensors = [i for i, argument in enumerate(arguments) if "Tensor" in str(argument.type)]
    after, below = _C._after_autograd_keyset, _C._after_ADInplaceOrView_keyset

    def computed(keyset: Any, *args: Any) -> Any:
        if (keyset & below).highestPriorityTypeId() in _PLAIN:
            with _C._AutoDispatchBelowAutograd():
                return _computed(row, *args)
        with ExitStack() as stack:
            if _C._are_functorch_transforms_active():  # levels below record, too
                stack.enter_context(torch.enable_grad())
                stack.enter_context(forward_ad._set_fwd_grad_enabled(True))
            stack.enter_context(_C._AutoDispatchBelowAutograd())
            return op.redispatch(keyset & after, *args)

    def forward(ctx: Any, keyset: Any, *args: Any) -> Any:
        result = computed(keyset, *args)
        outputs = result if isinstance(result, tuple) else (result,)
        values = dict(zip((*names, *row.returns), (*args, *outputs), strict=True))
        ctx.others = {name: value for name, value in values.items() if not isinstance(value, Tensor)}
        saved = [values[name] for name in row.saved]
        ctx.save_for_backward(*saved)
        ctx.save_for_forward(*saved)
        ctx.shapes = [output.shape for output in outputs]
        ctx.input_shapes = [value.shape if isinstance(value, Tensor) else None for value in args]
        ctx.mark_non_differentiable(*[values[name] for name in row.constant])
        ctx.set_materialize_grads(False)
        return result

    def state(ctx: Any) -> SimpleNamespace:
        return SimpleNamespace(**{**ctx.others, **dict(zip(row.saved, ctx.saved_tensors, strict=True))})

    def backward(ctx: Any, *grads: Any) -> Any:
        result: list[Any] = [None] * (len(names) + 1)
        if any(grad is not None for grad in grads):
            s = state(ctx)
            s.needs = dict(zip(names, ctx.needs_input_grad[1:], strict=True))
            found = row.backward(TENSORS, s, *grads)
            for i, grad in zip(tensors, found if isinstance(found, tuple) else (found,), strict=True):
                if isinstance(grad, Tensor):  # what broadcast is summed
                    shape = ctx.input_shapes[i]
                    result[i + 1] = grad if grad.shape == shape else grad.sum_to_size(shape)
        return tuple(result)

    def jvp(ctx: Any, _: Any, *tangents: Any) -> Any:
        s = state(ctx)
        with ExitStack() as stack:
            if _C._are_functorch_transforms_active():  # the formula is differentiated by levels below
                stack.enter_context(forward_ad._set_fwd_grad_enabled(True))
                for name in row.saved:
                    if isinstance(value := getattr(s, name), Tensor):
                        setattr(s, name, forward_ad.unpack_dual(value).primal)
            found = row.jvp(TENSORS, s, *[tangents[i] for i in tensors])
        each = found if isinstance(found, tuple) else (found,)
        # of an operand that broadcasts the tangent does, too
        full = [
            tangent if tangent is None else tangent.expand(x)
            for tangent, x in zip(each, ctx.shapes, strict=True)
        ]
        return tuple(full) if len(full) > 1 else full[0]

    members = {"forward": forward, "backward": backward, "jvp": jvp}
    static = {name: staticmethod(member) for name, member in members.items()}
    return type(row.__name__, (_SingleLevelFunction,), static)


def _batched(op: Any, row: type[Operator], info: Any, dims: Any, *args: Any) -> Any:
    """Compute a batch of calls as one: the new dimension leads, and operands without it broadcast."""
    names = [argument.name for argument in op._schema.arguments]
    # dimensions of each tensor that are a batch already
    ranks = [
        arg.ndim - CORE.get(name, 2) - (dim is not None) if isinstance(arg, Tensor) else 0
        for name, dim, arg in zip(names, dims, args, strict=True)
    ]
    rank = max(ranks)
    moved = list(args)
    for i, (dim, arg) in enumerate(zip(dims, args, strict=True)):
        if dim is not None:
            first = arg.movedim(dim, 0)
            moved[i] = first.reshape(first.shape[0], *[1] * (rank - ranks[i]), *first.shape[1:])
    result = op(*moved)
    outputs = list(result) if isinstance(result, tuple) else [result]
    out_dims: list[int | None] = [0] * len(outputs)
    for i, name in enumerate(row.returns):
        if name in row.of_first:
            if dims[0] is None:
                out_dims[i] = None
            else:
                shape = outputs[i].shape
                outputs[i] = outputs[i].reshape(shape[0], *shape[1 + rank - ranks[0] :])
    return (tuple(outputs), tuple(out_dims)) if isinstance(result, tuple) else (outputs[0], out_dims[0])
