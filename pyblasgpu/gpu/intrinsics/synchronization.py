"""Synchronization between blocks by flags, within a warp, and with the launch before."""

from __future__ import annotations

from llvmlite import ir
from numba.cuda.extending import intrinsic

from .emit import I32, VOID, architecture, asm, at, types

__all__ = [
    "atomic_add",
    "grid_dependency_wait",
    "load_acquire",
    "set_flag_release",
    "store_relaxed",
    "store_release",
    "sync_warp",
    "take_ticket",
    "try_take_flag",
]


@intrinsic
def set_flag_release(_, flags, i):
    """Set ``flags[i]``: a block that takes it reads what this thread knows to be written."""

    def codegen(context, builder, signature, arguments):
        asm(builder, VOID, [at(builder, *arguments)], "st.release.gpu.global.u32 [$0], 1;", "l,~{memory}")
        return context.get_dummy_value()

    return types.void(flags, i), codegen


@intrinsic
def try_take_flag(_, flags, i):
    """Whether ``flags[i]`` was set; it is not any more."""

    def codegen(context, builder, signature, arguments):
        text = (
            "{ .reg .pred p; ld.acquire.gpu.global.u32 $0, [$1]; setp.ne.u32 p, $0, 0; "
            "@p st.relaxed.gpu.global.u32 [$1], 0; }"
        )
        before = asm(builder, I32, [at(builder, *arguments)], text, "=&r,l,~{memory}")
        return builder.icmp_unsigned("!=", before, ir.Constant(I32, 0))

    return types.boolean(flags, i), codegen


@intrinsic
def atomic_add(_, flags, i, count):
    """Return the value of ``flags[i]`` before `count` is added to it; orders no other access."""

    def codegen(context, builder, signature, arguments):
        where, count = at(builder, *arguments[:2]), arguments[2]
        return asm(
            builder, I32, [where, count], "atom.relaxed.gpu.global.add.u32 $0, [$1], $2;", "=r,l,r,~{memory}"
        )

    return types.int32(flags, i, types.int32), codegen


@intrinsic
def take_ticket(_, flags, i):
    """Return the number of tickets of ``flags[i]`` taken before. What their takers knew to be written is read
    after it, and what this thread knows to be written is read by those that arrive later.
    """

    def codegen(context, builder, signature, arguments):
        text = "atom.acq_rel.gpu.global.add.u32 $0, [$1], 1;"
        return asm(builder, I32, [at(builder, *arguments)], text, "=r,l,~{memory}")

    return types.int32(flags, i), codegen


@intrinsic
def load_acquire(_, flags, i):
    """``flags[i]``; who finds a number reads what was known to the thread that released it."""

    def codegen(context, builder, signature, arguments):
        where = at(builder, *arguments)
        return asm(builder, I32, [where], "ld.acquire.gpu.global.u32 $0, [$1];", "=r,l,~{memory}")

    return types.int32(flags, i), codegen


def _flag_store(order: str):
    """The code of ``flags[i] = value`` for the whole device, 'release' or 'relaxed'."""

    def codegen(context, builder, signature, arguments):
        where, value = at(builder, *arguments[:2]), arguments[2]
        asm(builder, VOID, [where, value], f"st.{order}.gpu.global.u32 [$0], $1;", "l,r,~{memory}")
        return context.get_dummy_value()

    return codegen


@intrinsic
def store_release(_, flags, i, value):
    """``flags[i] = value``, for others to acquire, with all that this thread knows to be written."""
    return types.void(flags, i, types.int32), _flag_store("release")


@intrinsic
def store_relaxed(_, flags, i, value):
    """``flags[i] = value``, for others to acquire, which may then write what this block has read.

    Reads up to the last barrier are complete, so nothing must be waited for, as `store_release` waits: it
    publishes no writes.
    """
    return types.void(flags, i, types.int32), _flag_store("relaxed")


@intrinsic
def grid_dependency_wait(_):
    """Wait until the launches before this one on its stream are over; those after it may start to wait.

    What they wrote is seen from here on. Cards before Hopper start no launch before its turn.
    """

    def codegen(context, builder, signature, arguments):
        is_able = builder.icmp_signed(">=", architecture(context, builder), ir.Constant(I32, 900))
        with builder.if_then(is_able):
            text = "griddepcontrol.wait; griddepcontrol.launch_dependents;"
            asm(builder, VOID, [], text, "~{memory}")
        return context.get_dummy_value()

    return types.void(), codegen


@intrinsic
def sync_warp(_):
    """Wait for all lanes of the warp; what each wrote before, the others read after."""

    def codegen(context, builder, signature, arguments):
        asm(builder, VOID, [], "bar.warp.sync 0xffffffff;", "~{memory}")
        return context.get_dummy_value()

    return types.void(), codegen
