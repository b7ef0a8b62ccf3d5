"""Asynchronous copies from global to shared memory: cp.async."""

from __future__ import annotations

from numba.cuda.extending import intrinsic

from .emit import I32, SHARED, VOID, asm, at, made_once, types

__all__ = ["commit_async", "copy_async", "wait_async"]


@made_once
def copy_async(size: int, policy: str = "cg"):
    """``copy(shared, i, pointer, j, valid)``: `size` bytes by cp.async; those past `valid` become 0.

    The cache `policy` is PTX's: "ca" caches in L1 and L2, "cg" in L2 alone. "cg" is for 16 bytes; smaller
    copies are "ca".
    """
    policy = policy if size == 16 else "ca"

    @intrinsic
    def copy(_, shared, i, pointer, j, valid):
        def codegen(context, builder, signature, arguments):
            target, i, source, j, valid = arguments
            text = f"cp.async.{policy}.shared.global [$0], [$1], {size}, $2;"
            target = at(builder, target, i)
            window = builder.addrspacecast(target, target.type.pointee.as_pointer(SHARED))
            operands = [builder.ptrtoint(window, I32), at(builder, source, j), valid]
            asm(builder, VOID, operands, text, "r,l,r,~{memory}")
            return context.get_dummy_value()

        return types.void(shared, i, pointer, j, types.int32), codegen

    return copy


@intrinsic
def commit_async(_):
    """Close this thread's current group of asynchronous copies."""

    def codegen(context, builder, signature, arguments):
        asm(builder, VOID, [], "cp.async.commit_group;", "~{memory}")
        return context.get_dummy_value()

    return types.void(), codegen


@made_once
def wait_async(pending: int):
    """``wait()``: until at most `pending` of this thread's groups are still under way."""

    @intrinsic
    def wait(_):
        def codegen(context, builder, signature, arguments):
            asm(builder, VOID, [], f"cp.async.wait_group {pending};", "~{memory}")
            return context.get_dummy_value()

        return types.void(), codegen

    return wait
