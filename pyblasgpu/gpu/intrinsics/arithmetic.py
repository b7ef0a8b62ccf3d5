"""Intrinsics that compute on single numbers."""

from __future__ import annotations

from llvmlite import ir
from numba.cuda.extending import intrinsic

from .emit import LETTER, PTX_TYPE, asm, nbytes, types

__all__ = ["divide", "fma", "inverse_root_approximation", "opaque", "quotient", "select", "square_root"]


@intrinsic
def fma(_, x, y, z):
    """``x*y + z`` with one rounding, whatever the compiler would do."""

    def codegen(context, builder, signature, arguments):
        kind, letter = PTX_TYPE[nbytes(signature.args[0])], LETTER[nbytes(signature.args[0])]
        result = context.get_data_type(signature.args[0])
        text = f"fma.rn.{kind} $0, $1, $2, $3;"
        return asm(builder, result, arguments, text, f"={letter},{letter},{letter},{letter}", effect=False)

    return z(z, z, z), codegen


@intrinsic
def select(_, ok, x, y):
    """`x` where `ok`, else `y`, without a branch, for which registers would have to have addresses."""

    def codegen(context, builder, signature, arguments):
        return builder.select(*arguments)

    return x(types.boolean, x, x), codegen


@intrinsic
def divide(_, x, y):
    """``x / y`` as IEEE 754 has it: by zero it gives inf or NaN."""

    def codegen(context, builder, signature, arguments):
        return builder.fdiv(*arguments)

    return y(y, y), codegen


@intrinsic
def inverse_root_approximation(_, x):
    """``1 / sqrt(x)`` to some 20 bits: one instruction.

    Subnormal numbers count as zero. Of float64 the lower half of `x` is not looked at.
    """

    def codegen(context, builder, signature, arguments):
        size = nbytes(x)
        text = f"rsqrt.approx.ftz.{PTX_TYPE[size]} $0, $1;"
        result, letter = context.get_data_type(x), LETTER[size]
        return asm(builder, result, arguments, text, f"={letter},{letter}", effect=False)

    return x(x), codegen


@intrinsic
def square_root(_, x):
    """The square root of `x`, rounded as IEEE 754 has it."""

    def codegen(context, builder, signature, arguments):
        size = nbytes(signature.args[0])
        result, letter = context.get_data_type(signature.args[0]), LETTER[size]
        text = f"sqrt.rn.{PTX_TYPE[size]} $0, $1;"
        return asm(builder, result, arguments, text, f"={letter},{letter}", effect=False)

    return x(x), codegen


@intrinsic
def quotient(_, x, y):
    """``x // y`` of int32 that are not negative: Python's own is of int64, and a call of a function."""

    def codegen(context, builder, signature, arguments):
        return builder.udiv(*arguments)

    return types.int32(types.int32, types.int32), codegen


@intrinsic
def opaque(_, value):
    """The integer `value`, as one that the compiler has not seen: what is made of it is not made before."""
    width = value.bitwidth

    def codegen(context, builder, signature, arguments):
        letter = {32: "r", 64: "l"}[width]
        return asm(
            builder, ir.IntType(width), list(arguments), f"mov.b{width} $0, $1;", f"={letter},{letter}"
        )

    return value(value), codegen
