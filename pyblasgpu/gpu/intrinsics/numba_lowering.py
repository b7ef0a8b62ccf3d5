"""Shortcuts through the lowering of numba-cuda: less LLVM for NVVM to read, and the same PTX in less time.

NVVM inlines a kernel's functions a thousand times before it simplifies them, so each instruction of a small
function counts. Numba keeps a copy of an array's structure in memory for each element that is read, a branch
for zero in each division by a constant, and a stack slot for each variable that blocks in a row share.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any

from llvmlite import ir as llvm


def _module(name: str) -> Any:
    """A module of numba-cuda, of which the type checker sees Numba's namesake."""
    return import_module(f"numba.cuda.{name}")


analysis, ir, callconv = _module("core.analysis"), _module("core.ir"), _module("core.callconv")
arrays, cgutils, numbers = _module("np.arrayobj"), _module("cgutils"), _module("cpython.numbers")
lowering, untyped_passes, types = _module("lowering"), _module("core.untyped_passes"), _module("types")

__all__ = ["lowering_shortcuts"]


def lowering_shortcuts() -> Iterator[tuple[Any, str, Any]]:
    """Yield the replacements: a class or module, a name in it, and the new value."""
    yield arrays, "make_array", _array_maker(arrays.make_array)
    yield cgutils, "get_item_pointer2", _without_steps(cgutils.get_item_pointer2)
    yield numbers, "_int_divmod_impl", _without_zero(numbers._int_divmod_impl)
    yield callconv.MinimalCallConv, "_get_return_status", _status
    yield lowering.Lower, "_find_singly_assigned_variable", _find_singly_assigned
    yield lowering.CUDALower, "storevar", _store_variable
    prune = untyped_passes.DeadBranchPrune
    yield prune, "run_pass", _joining_blocks(vars(prune)["run_pass"])


# ---------------------------------------------------------------------------------------------- arrays


class _ArrayValue:
    """Fields of an array's structure in registers, each extracted when it is read."""

    def __init__(self, context: Any, builder: Any, kind: Any, value: Any):
        self._position = context.data_model_manager[kind].get_field_position
        self._builder, self._value = builder, value

    def __getattr__(self, name: str) -> Any:
        return self._builder.extract_value(self._value, self._position(name))

    def _getvalue(self) -> Any:
        return self._value


def _array_maker(original: Callable) -> Callable:
    def make_array(kind):
        """A structure that is only read stays out of memory."""
        in_memory = original(kind)

        def make(context, builder, value=None, ref=None):
            if value is None or ref is not None or kind is not kind.as_array:
                return in_memory(context, builder, value=value, ref=ref)
            return _ArrayValue(context, builder, kind, value)

        return make

    return make_array


def _without_steps(original: Callable) -> Callable:
    def item_pointer(
        context, builder, data, shape, strides, layout, inds, wraparound=False, boundscheck=False
    ):
        """The index of a contiguous array of one dimension is the element's distance."""
        if len(shape) == len(inds) == 1 and layout in "CF" and not (wraparound or boundscheck):
            return builder.gep(data, inds)
        return original(context, builder, data, shape, strides, layout, inds, wraparound, boundscheck)

    return item_pointer


# --------------------------------------------------------------------------------------------- numbers


def _without_zero(original: Callable) -> Callable:
    def divmod_impl(context, builder, signature, operands, message):
        """Quotient and remainder by a constant that is not zero, without a branch for zero."""
        kind, by = signature.return_type, operands[1]
        if not (isinstance(kind, types.Integer) and isinstance(by, llvm.Constant) and by.constant):
            return original(context, builder, signature, operands, message)
        converted = [
            context.cast(builder, *each, kind) for each in zip(operands, signature.args, strict=True)
        ]
        slots = [cgutils.alloca_once(builder, value.type) for value in converted]
        for part, slot in zip(numbers.int_divmod(context, builder, kind, *converted), slots, strict=True):
            builder.store(part, slot)
        return slots

    return divmod_impl


def _status(_: Any, builder: Any, code: Any) -> Any:
    """Return the status of a call without the kinds of errors, which only a host reads."""
    is_value = builder.icmp_signed("==", code, callconv.RETCODE_OK)
    is_none = builder.icmp_signed("==", code, callconv.RETCODE_NONE)
    is_ok = builder.or_(is_value, is_none)
    unread = dict.fromkeys(("is_python_exc", "is_user_exc", "is_stop_iteration", "excinfoptr"))
    return callconv.Status(code=code, is_ok=is_ok, is_error=builder.not_(is_ok), is_none=is_none, **unread)


# --------------------------------------------------------------------------------- variables and blocks


def _find_singly_assigned(lower: Any) -> None:
    """Find the variables as `Lower` does, in one walk through the blocks instead of one for each variable.

    To take those of several blocks too gives other machine code.
    """
    use_defs = analysis.compute_use_defs(lower.func_ir.blocks)
    in_blocks = Counter(name for names in use_defs.defmap.values() for name in names)
    used_elsewhere = {name for names in use_defs.usemap.values() for name in names}
    assignments = Counter(
        statement.target.name
        for block in lower.blocks.values()
        for statement in block.body
        if isinstance(statement, ir.assign_types)
    )
    excluded = used_elsewhere | set(analysis.must_use_alloca(lower.func_ir.blocks))
    lower._singly_assigned_vars = {
        name for name, count in in_blocks.items() if count == assignments[name] == 1 and name not in excluded
    }
    lower._blk_local_varmap = {}


def _store_variable(lower: Any, value: Any, name: str, argidx: Any = None) -> None:
    """Without a look at the value before, of which nothing counts references."""
    lower._alloca_var(name, lower.typeof(name))
    if name in lower._singly_assigned_vars:
        lower._blk_local_varmap[name] = value
    else:
        lower.builder.store(value, lower.getvar(name))


def _joining_blocks(original: Callable) -> Callable:
    def run_pass(self, state) -> bool:
        """A branch that is pruned leaves blocks that follow one another: join them."""
        changed = original(self, state)
        return _join(state.func_ir.blocks) or changed

    return run_pass


def _join(blocks: dict[int, Any]) -> bool:
    """Join blocks with the one that alone leads to each; return whether some were joined."""
    ways = Counter(target for block in blocks.values() for target in block.body[-1].get_targets())
    before = len(blocks)
    for label in sorted(blocks):
        block = blocks.get(label)
        while block is not None and isinstance(block.body[-1], ir.Jump):
            target = block.body[-1].target
            if ways[target] != 1 or target <= label:
                break
            block.body = block.body[:-1] + blocks.pop(target).body
    return len(blocks) != before
