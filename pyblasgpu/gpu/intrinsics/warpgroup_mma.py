"""Products by a warpgroup, four warps, on Hopper's tensor cores: wgmma of FP16, BF16 or INT8.

A group of instructions runs while the threads go on. Its accumulators hold nothing until
`warpgroup_results`, and the shared memory that it reads may be overwritten only after a wait.
"""

from __future__ import annotations

from llvmlite import ir
from numba.cuda.extending import intrinsic

from .emit import I32, asm, element_addresses, made_once, statement, types

__all__ = [
    "set_max_registers",
    "warpgroup_commit",
    "warpgroup_fence",
    "warpgroup_mma",
    "warpgroup_results",
    "warpgroup_wait",
]

I64 = ir.IntType(64)
#: A matrix descriptor but for its address: rows of 128 bytes, 128-byte swizzle, eight rows every 1024 bytes.
_DESCRIPTOR = 1 << 62 | (1024 >> 4) << 32 | 1 << 16


@intrinsic
def warpgroup_fence(_):
    """Before the first product of a group: accumulators that this thread has touched are ready."""
    return types.void(), statement("wgmma.fence.sync.aligned;")


@intrinsic
def warpgroup_commit(_):
    """Close the warpgroup's current group of products."""
    return types.void(), statement("wgmma.commit_group.sync.aligned;")


@made_once
def warpgroup_wait(pending: int):
    """``wait()``: until at most `pending` groups of this warpgroup are under way; for the memory they read.

    Accumulators are read after `warpgroup_results`.
    """

    @intrinsic
    def wait(_):
        return types.void(), statement(f"wgmma.wait_group.sync.aligned {pending};")

    return wait


@made_once
def set_max_registers(count: int, more: bool):
    """``set()``: the warpgroup's threads have `count` registers from here on, `more` or fewer than before."""
    way = "inc" if more else "dec"

    @intrinsic
    def set_them(_):
        return types.void(), statement(f"setmaxnreg.{way}.sync.aligned.u32 {count};")

    return set_them


@made_once
def warpgroup_mma(n: int, first: bool, integers: bool = False, bfloat: bool = False):
    """``multiply(acc, a, b)``: acc += A B by wgmma, m64 `n` k16; with `first` acc = A B.

    `a` and `b` are shared addresses of 16 k of 64 rows of A and of `n` columns of B. A row (column) has 128
    bytes, eight of them begin at a multiple of 1024; chunks of 16 bytes are swizzled: chunk c of row r is at
    c ^ (r % 8). Of `integers` there are 32 k in the same bytes: signed ones of a byte, summed in int32, which
    wraps around. With `bfloat` the numbers are BF16.

    Notes
    -----
    With warp w of the four, g = lane // 4 and t = lane % 4, ``acc[4j + v]`` is C[16w + g + 8(v // 2),
    8j + 2t + v % 2] (PTX ISA, register fragments of wgmma).
    """
    count, number = n // 2, "bf16" if bfloat else "f16"

    @intrinsic
    def multiply(_, acc, a, b):
        def codegen(context, builder, signature, arguments):
            slot = element_addresses(context, builder, signature, arguments)
            values = [] if first else [builder.load(slot(0, i)) for i in range(count)]
            descriptors = [_descriptor(builder, address) for address in arguments[1:]]
            results = ",".join(f"${i}" for i in range(count))
            a_at = count + len(values)
            shape, others = (
                (f"m64n{n}k32.s32.s8.s8", "")
                if integers
                else (f"m64n{n}k16.f32.{number}.{number}", ", 1, 1, 0, 0")
            )
            text = (
                f"wgmma.mma_async.sync.aligned.{shape} {{{results}}}, "
                f"${a_at}, ${a_at + 1}, {0 if first else 1}{others};"
            )
            tied = [str(i) for i in range(len(values))]
            _write(builder, slot, count, [*values, *descriptors], text, [*tied, "l", "l"])
            return context.get_dummy_value()

        return types.void(acc, types.int32, types.int32), codegen

    return multiply


@made_once
def warpgroup_results(count: int):
    """``results(acc)``: wait for all groups of this warpgroup; the `count` sums in `acc` are there then."""

    @intrinsic
    def results(_, acc):
        def codegen(context, builder, signature, arguments):
            slot = element_addresses(context, builder, signature, arguments)
            values = [builder.load(slot(0, i)) for i in range(count)]
            # tied operands: nothing else keeps what reads the sums behind the wait
            tied = [str(i) for i in range(count)]
            _write(builder, slot, count, values, "wgmma.wait_group.sync.aligned 0;", [*tied, "~{memory}"])
            return context.get_dummy_value()

        return types.void(acc), codegen

    return results


def _write(builder, slot, count, operands, text, constraints):
    """An instruction whose results are the first `count` reals, or int32, of the first argument."""
    element = slot(0, 0).type.pointee
    result = ir.LiteralStructType([element] * count)
    letter = "r" if element == I32 else "f"
    outputs = [f"={letter}"] * count
    value = asm(builder, result, operands, text, ",".join(outputs + constraints), convergent=True)
    for i in range(count):
        builder.store(builder.extract_value(value, i), slot(0, i))


def _descriptor(builder, address):
    wide = builder.zext(builder.lshr(address, ir.Constant(I32, 4)), I64)
    return builder.or_(wide, ir.Constant(I64, _DESCRIPTOR))
