"""The table of operators: what a row says, and its registration with PyTorch's dispatcher.

A row allocates its outputs by one function, for real and for fake tensors: the strides that compilers are
promised are those of the results. Gradients, tangents and batches of a row are operators of the table again.
Calls on plain tensors of a device, under no mode and no transform, do without the dispatcher.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from operator import itemgetter
from types import SimpleNamespace
from typing import Any, ClassVar

import torch
from torch import _C, Tensor
from torch._functorch import eager_transforms
from torch._functorch.utils import enable_single_level_autograd_function
from torch.autograd import forward_ad
from torch.autograd.function import _SingleLevelFunction

from ..operators.row import CORE, Row
from .launched import Places, launched
from .served import is_watched
from .tensors import TENSORS

__all__ = ["TABLE", "Operator", "computed", "is_plain", "is_recorded", "register"]

LIBRARY = torch.library.Library("pyblasgpu", "DEF")
#: Keys below which nothing is but the computation.
_PLAIN = (_C.DispatchKey.CPU, _C.DispatchKey.CUDA)
_BELOW = _C._after_ADInplaceOrView_keyset
_TYPES = (Tensor, torch.nn.Parameter)
#: Each row by the name of its operator.
TABLE: dict[str, type[Operator]] = {}


class Operator(Row):
    """A row of the table, and how PyTorch's tensors are computed; its functions are static.

    Attributes
    ----------
    places : Places
        The places of its arguments, once it is registered.
    operands : tuple of str
        The order of inputs and outputs in its launch list, see `launches`; by default that of the schema.
    launches : callable or None
        ``launches(*args)`` returns ``prepare((alpha, beta), operands)``, whose launch list writes outputs;
        None where there is no such list.
    given : callable or None
        ``given(*args)`` returns the arguments with tensors as the launch list reads them.
    written : callable or None
        ``written(*args)`` returns the outputs that the launch list writes, where not those of `empty`.
    finish : callable or None
        ``finish(outputs, *args)`` completes outputs that the launch list has left; it may return others.
    at_once : callable or None
        ``at_once(s, *grads)`` returns what `backward` does, by one launch list and without derivatives of its
        own; None where there is no such list.
    """

    places: ClassVar[Places]
    operands: ClassVar[tuple[str, ...]] = ()
    launches: ClassVar[Callable[..., Any] | None] = None
    given: ClassVar[Callable[..., Any] | None] = None
    written: ClassVar[Callable[..., Any] | None] = None
    finish: ClassVar[Callable[..., Any] | None] = None
    at_once: ClassVar[Callable[..., Any] | None] = None

    @staticmethod
    def empty(*args: Any) -> Any:
        """Return new outputs: a tensor, or a tuple of them, without values."""
        raise NotImplementedError

    @staticmethod
    def compute(outputs: Any, *args: Any) -> None:
        """Fill the outputs by the library's routines."""
        raise NotImplementedError


def register(row: type[Operator]) -> Any:
    """Define the operator of a row; return a function that calls it, or does without the dispatcher."""
    name = row.schema.partition("(")[0]
    count = len(row.returns)
    LIBRARY.define(f"{row.schema} -> {'Tensor' if count == 1 else '(' + ', '.join(['Tensor'] * count) + ')'}")
    op = getattr(torch.ops.pyblasgpu, name).default
    row.places = Places.of(op._schema.arguments)
    function = _recorded(op, row)
    for key in ("CPU", "CUDA"):
        LIBRARY.impl(name, partial(computed, row), key)
    LIBRARY.impl(name, _differentiable(op, row, function), "Autograd", with_keyset=True)
    torch.library.register_fake(f"pyblasgpu::{name}", row.empty, lib=LIBRARY)
    torch.library.register_vmap(f"pyblasgpu::{name}", partial(_batched, op, row), lib=LIBRARY)
    TABLE[name] = row
    direct = _direct(op, row, function)
    setattr(TENSORS, name, direct)
    return direct


def computed(row: Any, *args: Any) -> Any:
    """Return the outputs of an operator, or of what has functions as a row has."""
    if args[0].is_cuda and (outputs := launched(row, args)) is not None:
        return outputs
    outputs = row.empty(*args)
    row.compute(outputs, *args)
    return outputs


def is_plain(keyset: Any) -> bool:
    """Whether a call that is at the key of gradients is computed next: no mode, transform or conjugation."""
    found: bool = (keyset & _BELOW).highestPriorityTypeId() in _PLAIN
    return found


def is_recorded(*args: Any) -> bool:
    """Whether gradients or tangents of a call are wanted, of one level of `torch.func` if there are any."""
    if (_C.is_grad_enabled() and _C._any_requires_grad(*args)) or forward_ad._current_level >= 0:
        return True
    # a graph of Dynamo's enters levels of tangents without the module that counts them
    recorded: bool = _C._are_functorch_transforms_active()
    return recorded


def _direct(op: Any, row: type[Operator], function: Any) -> Callable[..., Any]:
    """Return the function of an operator: itself, but for plain tensors of a device that nothing watches."""
    apply, is_traced = function.apply, torch.compiler.is_dynamo_compiling
    is_recording, wants_gradient = _C.is_grad_enabled, _C._any_requires_grad
    is_excluded, recording = _C._dispatch_tls_is_dispatch_key_excluded, _C.DispatchKey.AutogradCUDA
    tensors = row.places.tensors

    def direct(*args: Any) -> Any:
        if is_traced():
            if forward_ad._current_level >= 0 and not eager_transforms.JVP_NESTING:
                # a graph that enters a level of tangents itself leaves no sign of it at run time
                torch._dynamo.graph_break()
            return op(*args)
        if type(args[0]) not in _TYPES or not args[0].is_cuda or is_watched():
            return op(*args)
        if not is_recording() or not wants_gradient(*args):
            outputs = launched(row, args)
            return op(*args) if outputs is None else outputs
        for i in tensors:
            if args[i] is not None and type(args[i]) not in _TYPES:
                return op(*args)
        return op(*args) if is_excluded(recording) else apply(None, *args)

    return direct


def _differentiable(op: Any, row: type[Operator], function: Any) -> Callable[..., Any]:
    """Return the kernel above the computation, which records it where gradients or tangents are wanted."""
    after = _C._after_autograd_keyset

    def kernel(keyset: Any, *args: Any) -> Any:
        if is_recorded(*args):
            with enable_single_level_autograd_function():  # one level of torch.func at a time gets here
                return function.apply(keyset, *args)
        with _C._AutoDispatchBelowAutograd():
            if is_plain(keyset):
                return computed(row, *args)
            return op.redispatch(keyset & after, *args)

    return kernel


def _recorded(op: Any, row: type[Operator]) -> Any:
    """Return the node of the graph of an operator; it takes the keys of a call, None of an unwatched one."""
    names, tensors, *_ = row.places
    whole = (*names, *row.returns)
    constant = [whole.index(name) for name in row.constant]
    numbers = [i for i in range(len(names)) if i not in tensors]
    of_saved, of_others = _picking([whole.index(name) for name in row.saved]), _picking(numbers)
    others = of_others(names)
    after = _C._after_autograd_keyset

    def forward(ctx: Any, keyset: Any, *args: Any) -> Any:
        result = launched(row, args) if keyset is None else dispatched(keyset, *args)
        if result is None:
            with _C._AutoDispatchBelowAutograd():
                result = op(*args)
        values = (*args, *result) if isinstance(result, tuple) else (*args, result)
        kept = of_saved(values)
        ctx.others = of_others(args)
        ctx.save_for_backward(*kept)
        ctx.input_shapes = [args[i] if args[i] is None else args[i].shape for i in tensors]
        if keyset is not None:
            ctx.save_for_forward(*kept)
            ctx.shapes = [output.shape for output in values[len(args) :]]
        if constant:
            ctx.mark_non_differentiable(*[values[i] for i in constant])
        ctx.set_materialize_grads(False)
        return result

    def dispatched(keyset: Any, *args: Any) -> Any:
        if is_plain(keyset):
            with _C._AutoDispatchBelowAutograd():
                return computed(row, *args)
        with ExitStack() as stack:
            if _C._are_functorch_transforms_active():  # levels below record, too
                stack.enter_context(torch.enable_grad())
                stack.enter_context(forward_ad._set_fwd_grad_enabled(True))
            stack.enter_context(_C._AutoDispatchBelowAutograd())
            return op.redispatch(keyset & after, *args)

    def state(ctx: Any) -> SimpleNamespace:
        s = SimpleNamespace()
        s.__dict__.update(zip(row.saved, ctx.saved_tensors, strict=True))
        s.__dict__.update(zip(others, ctx.others, strict=True))
        return s

    def backward(ctx: Any, *grads: Any) -> Any:
        result: list[Any] = [None] * (len(names) + 1)
        if grads[0] is not None or any(grad is not None for grad in grads[1:]):
            s = state(ctx)
            s.needs = dict(zip(names, ctx.needs_input_grad[1:], strict=True))
            found = None
            if row.at_once is not None and type(grads[0]) is Tensor and grads[0].is_cuda:
                found = None if _C.is_grad_enabled() or is_watched() else row.at_once(s, *grads)
            if found is None:
                found = row.backward(TENSORS, s, *grads)
            each = found if isinstance(found, tuple) else (found,)
            for i, shape, grad in zip(tensors, ctx.input_shapes, each, strict=True):
                if isinstance(grad, Tensor):  # what broadcast is summed
                    result[i + 1] = grad if grad.shape == shape else grad.sum_to_size(shape)
        return tuple(result)

    def jvp(ctx: Any, _: Any, *tangents: Any) -> Any:
        s = state(ctx)
        with ExitStack() as stack:
            if _C._are_functorch_transforms_active():  # the formula is differentiated by levels below
                stack.enter_context(forward_ad._set_fwd_grad_enabled(True))
                for name in row.saved:
                    if isinstance(value := getattr(s, name), Tensor):
                        setattr(s, name, torch._VF._unpack_dual(value, level=0)[0])
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


def _picking(places: list[int]) -> Callable[[Any], tuple[Any, ...]]:
    """Return what takes the elements at places from a sequence."""
    if len(places) > 1:
        return itemgetter(*places)
    return lambda values: tuple([values[i] for i in places])


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
