"""Kernels in the place of PyTorch's, for one key of its dispatcher: ours from a size on, PyTorch's else."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from contextlib import nullcontext
from typing import Any

import torch
from torch import _C, Tensor

from ..dispatch.overrides import set_math_mode
from ..torch.operators import computed, is_plain, is_recorded
from ..torch.tensors import TENSORS
from .call import Call
from .targets import FUNCTIONS, GRADIENTS, PRODUCTS, Target

__all__ = ["install"]

_log = logging.getLogger("pyblasgpu")


def install(key: str, deciding: list[Any], products: bool) -> Any:
    """Replace the kernels of a key; return the library whose end gives PyTorch's back.

    Parameters
    ----------
    key : {'CUDA', 'CPU'}
        The key of the dispatcher.
    deciding : list
        Holds the patch that decides calls, or None.
    products : bool
        Whether products are replaced, and nothing else.
    """
    library = torch.library.Library("aten", "IMPL")
    computing = {}

    def replace(op: Any, kernel: Any, key: str) -> Any:
        library.impl(op.name().partition("::")[2], kernel, key, with_keyset=True)
        return kernel

    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Warning only once for all operators")
            for name, target in (PRODUCTS if products else FUNCTIONS).items():
                for op in _overloads(name, key):
                    computing[op] = replace(op, _Kernel(op, key, target, deciding), key)
            for name, target in ({} if products else GRADIENTS).items():
                op, above = getattr(torch.ops.aten, name).default, f"Autograd{key}"
                replace(op, _Gradient(op, above, target, deciding, computing.get(op)), above)
    except BaseException:
        library._destroy()
        raise
    return library


def _overloads(name: str, key: str) -> Iterator[Any]:
    """The overloads of an operator that have a kernel of this key."""
    packet = getattr(torch.ops.aten, name)
    for overload in packet.overloads():
        op = getattr(packet, overload)
        if _C._dispatch_has_kernel_for_dispatch_key(op.name(), key) and "dtype" not in overload:
            yield op


class _Replacing:
    """A kernel in the place of that of `key`, which is kept.

    Parameters
    ----------
    op : torch._ops.OpOverload
        The overload.
    key : str
        The key of the dispatcher.
    target : Target
        The function of its calls.
    deciding : list
        Holds the patch that decides calls, or None.
    """

    def __init__(self, op: Any, key: str, target: Target, deciding: list[Any]) -> None:
        self._original = torch.library.get_kernel(op, key).call_boxed
        self._target, self._deciding = target, deciding
        arguments = op._schema.arguments
        written = [each for each in arguments if each.alias_info is not None and each.alias_info.is_write]
        self._is_in_place = bool(written) and not written[0].kwarg_only
        self._outs = () if self._is_in_place else tuple(each.name for each in written)

    def _call(self, patch: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Call | str:
        """The call of a row, or why there is none."""
        call = self._target.call(*args, **kwargs)
        if isinstance(call, str) or patch.takes(call.threshold or self._target.routine, call.size):
            return call
        return "small"


class _Kernel(_Replacing):
    """A kernel that computes."""

    def __call__(self, keyset: Any, *args: Any, **kwargs: Any) -> Any:
        (patch,) = self._deciding
        if patch is None:
            return self._original(keyset, *args, **kwargs)
        # stacks alone may have a size of another name
        if _are_below(patch.thresholds[self._target.routine], args):
            patch.count(self._target.routine, "small")
            return self._original(keyset, *args, **kwargs)
        inputs, outs = kwargs, [args[0]] if self._is_in_place else []
        if self._outs:
            inputs = {name: value for name, value in kwargs.items() if name not in self._outs}
            outs = [kwargs[name] for name in self._outs]
        call = self._call(patch, args, inputs)
        reason: str | None = call if isinstance(call, str) else None
        if reason is None:
            try:
                result = _computed(patch, call, outs)  # type: ignore[arg-type]
                reason = None if result is not None else "out"
            except (*patch.refusals, torch.OutOfMemoryError) as refusal:
                if isinstance(refusal, torch.linalg.LinAlgError):
                    raise
                _log.warning("%s stays with PyTorch: %s", self._target.routine, refusal)
                reason = "refused"
        patch.count(self._target.routine, reason)
        return result if reason is None else self._original(keyset, *args, **kwargs)


class _Gradient(_Replacing):
    """A kernel above those that compute, which records the operator of the table for gradients.

    Where nothing is to be recorded, as in backward, it calls `computing`, the kernel below, if there is one.
    The dispatcher would be on the way to it once more.
    """

    def __init__(self, op: Any, key: str, target: Target, deciding: list[Any], computing: Any) -> None:
        super().__init__(op, key, target, deciding)
        self._computing = computing

    def __call__(self, keyset: Any, *args: Any, **kwargs: Any) -> Any:
        (patch,) = self._deciding
        if patch is None:
            return self._original(keyset, *args, **kwargs)
        if not is_recorded(*args):
            if self._computing is not None and is_plain(keyset):
                with _C._AutoDispatchBelowAutograd():
                    return self._computing(keyset, *args, **kwargs)
        elif not _are_below(patch.thresholds[self._target.routine], args):
            call = self._call(patch, args, kwargs)
            if not isinstance(call, str) and call.checked is None:
                patch.count(self._target.routine)
                name = call.row.schema.partition("(")[0]
                return getattr(TENSORS, name)(*call.arguments)
        return self._original(keyset, *args, **kwargs)


def _are_below(least: float, args: tuple[Any, ...]) -> bool:
    """Whether no matrix has an extent of `least`: a call is never larger than its largest extent."""
    for value in args:
        if isinstance(value, Tensor):
            shape = value.shape
            if len(shape) > 2 or (shape and max(shape) >= least):
                return False
    return True


def _computed(patch: Any, call: Call, outs: list[Tensor]) -> Any:
    """Return the outputs of a call; None where those of the caller do not fit."""
    records = _C.is_grad_enabled()
    _C._set_grad_enabled(False)
    try:
        if patch.math_mode is None and not outs:
            result = computed(call.row, *call.arguments)
        else:
            with nullcontext() if patch.math_mode is None else set_math_mode(patch.math_mode):
                result = _computed_into(outs, call) if outs else computed(call.row, *call.arguments)
        if call.checked and result is not None:
            torch._linalg_check_errors(result[-1], call.checked, is_matrix=call.arguments[0].ndim == 2)
    finally:
        _C._set_grad_enabled(records)
    return result


def _computed_into(outs: list[Tensor], call: Call) -> Any:
    """Return the caller's tensors with the outputs of a call; None where they do not fit."""
    fresh = call.row.empty(*call.arguments)
    outputs = fresh if isinstance(fresh, tuple) else (fresh,)
    if not all(map(_fits, outs, outputs)):
        return None
    if _are_apart(outs, call.arguments) and all(map(_is_laid_out, outs, outputs)):
        outputs = tuple(outs)
    call.row.compute(outputs if isinstance(fresh, tuple) else outputs[0], *call.arguments)
    if outputs[0] is not outs[0]:
        for out, output in zip(outs, outputs, strict=True):
            _copied(output, out)
    return tuple(outs) if isinstance(fresh, tuple) else outs[0]


def _fits(out: Tensor, expected: Tensor) -> bool:
    """Whether results may be written to `out`, which may have no elements yet."""
    if out.dtype != expected.dtype or out.device != expected.device or out.is_conj() or out.is_neg():
        return False
    return out.shape == expected.shape or out.numel() == 0


def _are_apart(outs: list[Tensor], arguments: tuple[Any, ...]) -> bool:
    """Whether no output shares memory with an argument."""
    written = {out.untyped_storage().data_ptr() for out in outs}
    read = {each.untyped_storage().data_ptr() for each in arguments if isinstance(each, Tensor)}
    return not written & read


def _is_laid_out(out: Tensor, expected: Tensor) -> bool:
    """Whether routines may work in `out`: in tensors of other strides they leave no results."""
    return out.shape == expected.shape and out.stride() == expected.stride()


def _copied(result: Tensor, out: Tensor) -> None:
    """Copy a result to the caller's tensor; one without elements gets its shape and strides."""
    if out.shape != result.shape:
        out.resize_(result.shape).as_strided_(result.shape, result.stride())
    out.copy_(result)
