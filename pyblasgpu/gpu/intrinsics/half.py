"""A float32 as FP16 or BF16 numbers: rounding, packing, and the powers of two that scale it."""

from __future__ import annotations

from llvmlite import ir
from numba.cuda.extending import intrinsic

from .emit import I32, asm, types

__all__ = [
    "bfloat_pair",
    "exponent",
    "half_pair",
    "lower_bfloat",
    "lower_half",
    "power_of_two",
    "upper_bfloat",
    "upper_half",
]

F32 = ir.FloatType()


@intrinsic
def half_pair(_, x, y):
    """A word of two FP16 numbers, `x` rounded in its lower half, `y` in its upper one, as the bits of a
    float32: beyond 65504 they are infinite, below 2^-24 they may be zero.
    """

    def codegen(context, builder, signature, arguments):
        low, high = arguments
        word = asm(builder, I32, [high, low], "cvt.rn.f16x2.f32 $0, $1, $2;", "=r,f,f", effect=False)
        return builder.bitcast(word, F32)

    return types.float32(types.float32, types.float32), codegen


def _half_of(upper: bool):
    chosen = "h" if upper else "l"

    def codegen(context, builder, signature, arguments):
        text = f"{{ .reg .b16 l, h; mov.b32 {{l, h}}, $1; cvt.f32.f16 $0, {chosen}; }}"
        return asm(builder, F32, [builder.bitcast(arguments[0], I32)], text, "=f,r", effect=False)

    return codegen


@intrinsic
def lower_half(_, pair):
    """The first number of a `half_pair`, as a float32."""
    return types.float32(types.float32), _half_of(False)


@intrinsic
def upper_half(_, pair):
    """The second number of a `half_pair`, as a float32."""
    return types.float32(types.float32), _half_of(True)


@intrinsic
def bfloat_pair(_, x, y):
    """A word of two BF16 numbers, `x` rounded in its lower half, `y` in its upper one, as the bits of a
    float32.
    """

    def codegen(context, builder, signature, arguments):
        low, high = arguments
        word = asm(builder, I32, [high, low], "cvt.rn.bf16x2.f32 $0, $1, $2;", "=r,f,f", effect=False)
        return builder.bitcast(word, F32)

    return types.float32(types.float32, types.float32), codegen


@intrinsic
def lower_bfloat(_, pair):
    """The first number of a `bfloat_pair`, as a float32."""

    def codegen(context, builder, signature, arguments):
        word = builder.bitcast(arguments[0], I32)
        return builder.bitcast(builder.shl(word, ir.Constant(I32, 16)), F32)

    return types.float32(types.float32), codegen


@intrinsic
def upper_bfloat(_, pair):
    """The second number of a `bfloat_pair`, as a float32."""

    def codegen(context, builder, signature, arguments):
        word = builder.bitcast(arguments[0], I32)
        return builder.bitcast(builder.and_(word, ir.Constant(I32, -65536)), F32)

    return types.float32(types.float32), codegen


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
