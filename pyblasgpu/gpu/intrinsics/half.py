"""A float32 as a pair of FP16 numbers: rounding, packing, and the powers of two that scale it."""

from __future__ import annotations

from llvmlite import ir
from numba.cuda.extending import intrinsic

from .emit import I32, asm, types

__all__ = ["exponent", "half_pair", "power_of_two", "round_to_half"]

F32 = ir.FloatType()


@intrinsic
def round_to_half(_, x):
    """`x` rounded to FP16, as a float32: beyond 65504 it is infinite, below 2^-24 it may be zero."""

    def codegen(context, builder, signature, arguments):
        text = "{ .reg .b16 h; cvt.rn.f16.f32 h, $1; cvt.f32.f16 $0, h; }"
        return asm(builder, F32, list(arguments), text, "=f,f", effect=False)

    return types.float32(types.float32), codegen


@intrinsic
def half_pair(_, x, y):
    """A word of two FP16 numbers, `x` in its lower half, `y` in its upper one, as the bits of a float32."""

    def codegen(context, builder, signature, arguments):
        low, high = arguments
        word = asm(builder, I32, [high, low], "cvt.rn.f16x2.f32 $0, $1, $2;", "=r,f,f", effect=False)
        return builder.bitcast(word, F32)

    return types.float32(types.float32, types.float32), codegen


@intrinsic
def exponent(_, x):
    """The largest e with 2^e <= |x|; -127 of zero and of subnormal numbers, 128 of what is not finite."""

    def codegen(context, builder, signature, arguments):
        bits = builder.bitcast(arguments[0], I32)
        biased = builder.and_(builder.lshr(bits, ir.Constant(I32, 23)), ir.Constant(I32, 255))
        return builder.sub(biased, ir.Constant(I32, 127))

    return types.int32(types.float32), codegen


@intrinsic
def power_of_two(_, e):
    """2^e as a float32, -126 <= e <= 127."""

    def codegen(context, builder, signature, arguments):
        biased = builder.add(arguments[0], ir.Constant(I32, 127))
        return builder.bitcast(builder.shl(biased, ir.Constant(I32, 23)), F32)

    return types.float32(types.int32), codegen
