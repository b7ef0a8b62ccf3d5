"""Numbers that blocks send each other: each word goes with a tag that says it has arrived."""

from __future__ import annotations

from llvmlite import ir
from numba.cuda.extending import intrinsic

from .emit import I32, LETTER, VOID, asm, at, element_address, nbytes, types

__all__ = ["send_real", "try_receive_real"]

_SEND = {
    4: "{ .reg .b32 b; .reg .b64 m; mov.b32 b, $1; mov.b64 m, {b, $2}; st.relaxed.gpu.global.u64 [$0], m; }",
    8: "{ .reg .b32 x, y; .reg .b64 m, n; mov.b64 {x, y}, $1; mov.b64 m, {x, $2}; mov.b64 n, {y, $2}; "
    "st.relaxed.gpu.global.u64 [$0], m; st.relaxed.gpu.global.u64 [$0 + 8], n; }",
}
_RECEIVE = {
    4: "{ .reg .b32 b, t; .reg .b64 m; .reg .pred p; ld.relaxed.gpu.global.u64 m, [$2]; mov.b64 {b, t}, m; "
    "mov.b32 $0, b; setp.eq.u32 p, t, $3; selp.u32 $1, 1, 0, p; }",
    8: "{ .reg .b32 x, y, t, u; .reg .b64 m, n; .reg .pred p; ld.relaxed.gpu.global.u64 m, [$2]; "
    "ld.relaxed.gpu.global.u64 n, [$2 + 8]; mov.b64 {x, t}, m; mov.b64 {y, u}, n; mov.b64 $0, {x, y}; "
    "setp.eq.u32 p, t, $3; setp.eq.and.u32 p, u, $3, p; selp.u32 $1, 1, 0, p; }",
}


@intrinsic
def send_real(_, words, i, value, tag):
    """Send `value` to whoever receives number `i` of `words`; nothing else is ordered by it.

    `words` are int32 at multiples of 8 bytes, of which a float32 takes two and a float64 four. They are 0, or
    hold another tag.
    """
    size = nbytes(value)

    def codegen(context, builder, signature, arguments):
        words, i, value, tag = arguments
        there = at(builder, words, builder.mul(i, ir.Constant(i.type, size // 2)))
        asm(builder, VOID, [there, value, tag], _SEND[size], f"l,{LETTER[size]},r,~{{memory}}")
        return context.get_dummy_value()

    return types.void(words, i, value, types.int32), codegen


@intrinsic
def try_receive_real(_, local, k, words, i, tag):
    """Whether number `i` of `words` has arrived with this tag; ``local[k]`` is it then, and else nothing."""
    real = local.dtype
    size = nbytes(real)

    def codegen(context, builder, signature, arguments):
        local, k, words, i, tag = arguments
        there = at(builder, words, builder.mul(i, ir.Constant(i.type, size // 2)))
        result = ir.LiteralStructType([context.get_data_type(real), I32])
        both = asm(builder, result, [there, tag], _RECEIVE[size], f"=&{LETTER[size]},=&r,l,r,~{{memory}}")
        builder.store(
            builder.extract_value(both, 0), element_address(context, builder, signature.args[0], local, k, 0)
        )
        return builder.icmp_unsigned("!=", builder.extract_value(both, 1), ir.Constant(I32, 0))

    return types.boolean(local, k, words, i, types.int32), codegen
