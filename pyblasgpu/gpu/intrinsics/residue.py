"""Integers as bytes of residues, and back; the exponent of a float64, and powers of two."""

from __future__ import annotations

from llvmlite import ir
from numba.cuda.extending import intrinsic

from .emit import I32, asm, types

__all__ = [
    "byte_as_fraction",
    "double_exponent",
    "double_power_of_two",
    "low_bytes",
    "low_word",
    "multiply_high",
]

F64, I64 = ir.DoubleType(), ir.IntType(64)


@intrinsic
def double_exponent(_, x):
    """The largest e with 2^e <= |x|; -1023 of zero and of subnormal numbers, 1024 of what is not finite."""

    def codegen(context, builder, signature, arguments):
        bits = builder.bitcast(arguments[0], I64)
        biased = builder.and_(builder.lshr(bits, ir.Constant(I64, 52)), ir.Constant(I64, 2047))
        return builder.sub(builder.trunc(biased, I32), ir.Constant(I32, 1023))

    return types.int32(types.float64), codegen


@intrinsic
def double_power_of_two(_, e):
    """2^e as a float64, -1022 <= e <= 1023."""

    def codegen(context, builder, signature, arguments):
        biased = builder.add(arguments[0], ir.Constant(I32, 1023))
        return builder.bitcast(builder.shl(builder.zext(biased, I64), ir.Constant(I64, 52)), F64)

    return types.float64(types.int32), codegen


@intrinsic
def low_bytes(_, x, y, z, w):
    """A word of the lowest bytes of four float64 or int32, that of `x` in its lowest byte."""
    is_word = x != types.float64

    def codegen(context, builder, signature, arguments):
        words = ["$1", "$2", "$3", "$4"] if is_word else ["a", "b", "c", "d"]
        moves = "" if is_word else "".join(f"mov.b64 {{{x}, u}}, ${i + 1}; " for i, x in enumerate("abcd"))
        first, second, third, fourth = words
        text = (
            f"{{ .reg .b32 a, b, c, d, u; {moves}prmt.b32 a, {first}, {second}, 0x0040; "
            f"prmt.b32 c, {third}, {fourth}, 0x0040; prmt.b32 $0, a, c, 0x5410; }}"
        )
        letter = "r" if is_word else "d"
        return asm(builder, I32, list(arguments), text, ",".join(["=r", *letter * 4]), effect=False)

    kind = types.int32 if is_word else types.float64
    return types.int32(kind, kind, kind, kind), codegen


@intrinsic
def byte_as_fraction(_, word, i):
    """``1 + b / 256`` as a float64, b byte `i` of a word, from 0 to 255."""

    def codegen(context, builder, signature, arguments):
        word, i = arguments
        bits = builder.lshr(word, builder.shl(i, ir.Constant(I32, 3)))
        byte = builder.shl(builder.and_(bits, ir.Constant(I32, 255)), ir.Constant(I32, 12))
        upper = builder.zext(builder.or_(byte, ir.Constant(I32, 1023 << 20)), I64)
        return builder.bitcast(builder.shl(upper, ir.Constant(I64, 32)), F64)

    return types.float64(types.int32, types.int32), codegen


@intrinsic
def low_word(_, x):
    """The lower half of the bits of a float64."""

    def codegen(context, builder, signature, arguments):
        return builder.trunc(builder.bitcast(arguments[0], I64), I32)

    return types.int32(types.float64), codegen


@intrinsic
def multiply_high(_, x, y):
    """The upper half of the product of two int32."""

    def codegen(context, builder, signature, arguments):
        return asm(builder, I32, list(arguments), "mul.hi.s32 $0, $1, $2;", "=r,r,r", effect=False)

    return types.int32(types.int32, types.int32), codegen
