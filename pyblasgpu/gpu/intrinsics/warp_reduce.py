"""Reductions over the lanes of a warp, and numbers that they tell each other."""

from __future__ import annotations

from numba.cuda.extending import intrinsic

from .emit import I32, LETTER, asm, nbytes, types

__all__ = ["NO_LABEL", "first_lane", "first_max_lane", "shuffle", "warp_first_max"]

#: What `warp_first_max` gives where no lane takes part.
NO_LABEL = 2**31 - 1

#: The lanes of the largest bits, in b: of a float32 in one word, of a float64 in two. What is no number
#: counts as -1, and a lane that takes no part as the lowest integer. One lane is what is likely.
_FLOAT32 = """{ .reg .pred p, q; .reg .s32 h, m, l; .reg .b32 b, c;
mov.b32 h, $1; setp.nan.f32 q, $1, $1; selp.s32 h, -1, h, q;
setp.ne.u32 p, $3, 0; selp.s32 h, h, 0x80000000, p;
redux.sync.max.s32 m, h, 0xffffffff; setp.eq.and.s32 p, h, m, p; vote.sync.ballot.b32 b, p, 0xffffffff;
popc.b32 c, b; setp.lt.u32 q, c, 2; @q bra FOUND;
LABELS
FOUND: RESULT }"""
_FLOAT64 = """{ .reg .pred p, q; .reg .s32 h, m, l; .reg .u32 w, v; .reg .b32 b, c;
mov.b64 {w, h}, $1; setp.nan.f64 q, $1, $1; selp.s32 h, -1, h, q; selp.u32 w, 0, w, q;
setp.ne.u32 p, $3, 0; selp.s32 h, h, 0x80000000, p;
redux.sync.max.s32 m, h, 0xffffffff; setp.eq.and.s32 p, h, m, p; vote.sync.ballot.b32 b, p, 0xffffffff;
popc.b32 c, b; setp.lt.u32 q, c, 2; @q bra FOUND;
selp.u32 w, w, 0, p; redux.sync.max.u32 v, w, 0xffffffff; setp.eq.and.u32 p, w, v, p;
LABELS
FOUND: RESULT }"""
_LABELS = """selp.s32 l, $2, 0x7fffffff, p; redux.sync.min.s32 m, l, 0xffffffff; setp.eq.and.s32 p, l, m, p;
vote.sync.ballot.b32 b, p, 0xffffffff;"""
_LANE = "neg.s32 $0, b; and.b32 c, b, $0; bfind.u32 $0, c;"
_LABEL = """neg.s32 $0, b; and.b32 c, b, $0; bfind.u32 c, c; shfl.sync.idx.b32 $0, $2, c, 0x1f, 0xffffffff;
setp.eq.u32 p, b, 0; selp.s32 $0, 0x7fffffff, $0, p;"""


def _first_max(result: str):
    """The code of a reduction that gives a label or a lane."""

    def codegen(context, builder, signature, arguments):
        size, label, ok = arguments
        length = nbytes(signature.args[0])
        text = (_FLOAT32 if length == 4 else _FLOAT64).replace("LABELS", _LABELS).replace("RESULT", result)
        given = [size, label, builder.zext(ok, I32)]
        return asm(builder, I32, given, text, f"=&r,{LETTER[length]},r,r", convergent=True)

    return codegen


@intrinsic
def warp_first_max(_, size, label, ok):
    """The lowest label of those whose `size` is the largest, among the lanes with `ok`; for all lanes.

    Sizes are not negative; NaN is less than any number. Labels are int32, at least 0 and below `NO_LABEL`.
    """
    return types.int32(size, types.int32, types.boolean), _first_max(_LABEL)


@intrinsic
def first_max_lane(_, size, label, ok):
    """The lane that has the label of `warp_first_max`, -1 where no lane has `ok`."""
    return types.int32(size, types.int32, types.boolean), _first_max(_LANE)


_SHUFFLE = "shfl.sync.idx.b32 {0}, {1}, $2, 0x1f, 0xffffffff;"
_SHUFFLE_32 = _SHUFFLE.format("$0", "$1")
_SHUFFLE_64 = (
    "{ .reg .b32 x, y; mov.b64 {x, y}, $1; "
    + _SHUFFLE.format("x", "x")
    + " "
    + _SHUFFLE.format("y", "y")
    + " mov.b64 $0, {x, y}; }"
)


@intrinsic
def shuffle(_, value, lane):
    """The `value` that another lane of the warp brings, an int32 or a real; all lanes take part."""

    def codegen(context, builder, signature, arguments):
        kind = signature.args[0]
        letter = "r" if kind == types.int32 else LETTER[nbytes(kind)]
        text = _SHUFFLE_64 if letter == "d" else _SHUFFLE_32
        return asm(builder, context.get_data_type(kind), arguments, text, f"={letter},{letter},r")

    return value(value, types.int32), codegen


@intrinsic
def first_lane(_, ok):
    """The first lane of the warp with `ok`, -1 where there is none; all lanes take part."""

    def codegen(context, builder, signature, arguments):
        text = (
            "{ .reg .pred p; .reg .b32 b; setp.ne.u32 p, $1, 0; vote.sync.ballot.b32 b, p, 0xffffffff; "
            "neg.s32 $0, b; and.b32 b, b, $0; bfind.u32 $0, b; }"
        )
        return asm(builder, I32, [builder.zext(arguments[0], I32)], text, "=&r,r")

    return types.int32(types.boolean), codegen
