"""Bulk copies from global to shared memory, and the mbarriers that complete with them (Hopper).

Blocks of a cluster reach one another's shared memory: an object has the same address in each. Barriers and
targets are named by *shared addresses*: int32, in bytes, as PTX counts them in ``.shared``.
"""

from __future__ import annotations

from llvmlite import ir
from numba.cuda.extending import intrinsic

from .emit import I32, LETTER, PTX_TYPE, SHARED, VOID, asm, at, made_once, nbytes, statement, types

__all__ = [
    "align_shared",
    "bulk_copy",
    "bulk_copy_multicast",
    "cluster_rank",
    "cluster_sync",
    "mbarrier_arrive",
    "mbarrier_arrive_at",
    "mbarrier_expect",
    "mbarrier_init",
    "mbarrier_init_fence",
    "mbarrier_wait",
    "shared_address",
    "store_async",
]


@made_once
def align_shared(unit: int):
    """``aligned(pointer)``: the pointer, moved on to the next multiple of `unit` bytes in shared memory."""

    @intrinsic
    def aligned(_, pointer):
        def codegen(context, builder, signature, arguments):
            (generic,) = arguments
            address = _window_address(builder, generic)
            missing = builder.and_(builder.neg(address), ir.Constant(I32, unit - 1))
            raw = builder.bitcast(generic, ir.IntType(8).as_pointer())
            return builder.bitcast(builder.gep(raw, [missing]), generic.type)

        return pointer(pointer), codegen

    return aligned


@intrinsic
def shared_address(_, pointer):
    """The shared address of what a pointer into shared memory points at."""

    def codegen(context, builder, signature, arguments):
        return _window_address(builder, arguments[0])

    return types.int32(pointer), codegen


def _window_address(builder, generic):
    window = builder.addrspacecast(generic, generic.type.pointee.as_pointer(SHARED))
    return builder.ptrtoint(window, I32)


@intrinsic
def mbarrier_init(_, barrier, count):
    """Make the mbarrier at a shared address, of 8 bytes: a phase of it is over after `count` arrivals."""
    code = statement("mbarrier.init.shared::cta.b64 [$0], $1;", "r,r")
    return types.void(types.int32, types.int32), code


@intrinsic
def mbarrier_init_fence(_):
    """Let bulk copies know the mbarriers that this thread has made; other threads know them by a barrier."""
    return types.void(), statement("fence.mbarrier_init.release.cluster; fence.proxy.async;")


@intrinsic
def mbarrier_arrive(_, barrier):
    """Arrive: who waits for the phase knows to be over what this thread has done."""
    return types.void(types.int32), statement("mbarrier.arrive.shared::cta.b64 _, [$0];", "r")


@intrinsic
def mbarrier_expect(_, barrier, nbytes):
    """Arrive, and have the phase wait for `nbytes` of bulk copies as well."""
    code = statement("mbarrier.arrive.expect_tx.shared::cta.b64 _, [$0], $1;", "r,r")
    return types.void(types.int32, types.int32), code


@intrinsic
def mbarrier_wait(_, barrier, parity):
    """Wait until the phase of this parity is over: the first one has 0. Before it, 1 is over already."""
    text = (
        "{ .reg .pred over; AGAIN: mbarrier.try_wait.parity.shared::cta.b64 over, [$0], $1; "
        "@over bra GONE; bra AGAIN; GONE: }"
    )
    return types.void(types.int32, types.int32), statement(text, "r,r")


def _copy(suffix: str, operands: str):
    """The code of a copy; `operands` follow the mbarrier."""
    text = f"cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes{suffix} [$0], [$1], $2, [$3]"

    def codegen(context, builder, signature, arguments):
        target, source, i, nbytes, barrier, *mask = arguments
        halves = [builder.trunc(each, ir.IntType(16)) for each in mask]
        values = [target, at(builder, source, i), nbytes, barrier, *halves]
        constraints = ["r", "l", "r", "r", *["h"] * len(mask), "~{memory}"]
        asm(builder, VOID, values, f"{text}{operands};", ",".join(constraints))
        return context.get_dummy_value()

    return codegen


@intrinsic
def bulk_copy(_, target, source, i, nbytes, barrier):
    """Begin to copy `nbytes` from ``source[i]`` on to a shared address.

    The mbarrier counts them on arrival. Addresses and `nbytes` are multiples of 16.
    """
    return types.void(types.int32, source, i, types.int32, types.int32), _copy("", "")


@intrinsic
def bulk_copy_multicast(_, target, source, i, nbytes, barrier, mask):
    """Copy like `bulk_copy` to all blocks of the cluster whose bit is in `mask`, with an mbarrier in each."""
    code = _copy(".multicast::cluster", ", $4")
    return types.void(types.int32, source, i, types.int32, types.int32, types.int32), code


@intrinsic
def mbarrier_arrive_at(_, barrier, rank):
    """Arrive at the mbarrier of the block with this rank in the cluster."""
    text = (
        "{ .reg .b32 there; mapa.shared::cluster.u32 there, $0, $1; "
        "mbarrier.arrive.shared::cluster.b64 _, [there]; }"
    )
    return types.void(types.int32, types.int32), statement(text, "r,r")


@intrinsic
def store_async(_, target, value, barrier, rank):
    """Begin to write a real or an int32 to a shared address of the block with this rank in the cluster.

    Its mbarrier counts the bytes on arrival.
    """
    is_word = value == types.int32
    kind, letter = ("s32", "r") if is_word else (PTX_TYPE[nbytes(value)], LETTER[nbytes(value)])
    text = (
        "{ .reg .b32 there, counts; mapa.shared::cluster.u32 there, $0, $3; "
        "mapa.shared::cluster.u32 counts, $2, $3; "
        f"st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.{kind} [there], $1, [counts]; }}"
    )

    def codegen(context, builder, signature, arguments):
        asm(builder, VOID, list(arguments), text, f"r,{letter},r,r,~{{memory}}")
        return context.get_dummy_value()

    return types.void(types.int32, value, types.int32, types.int32), codegen


@intrinsic
def cluster_rank(_):
    """The rank of this block in its cluster."""

    def codegen(context, builder, signature, arguments):
        return asm(builder, I32, [], "mov.u32 $0, %cluster_ctarank;", "=r", effect=False)

    return types.int32(), codegen


@intrinsic
def cluster_sync(_):
    """Wait for all threads of the cluster, which must all get here."""
    return types.void(), statement("barrier.cluster.arrive.release; barrier.cluster.wait.acquire;")
