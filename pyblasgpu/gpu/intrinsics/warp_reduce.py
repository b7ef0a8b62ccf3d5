"""Reductions over the lanes of a warp, and exchanges between them."""

from __future__ import annotations

import re

from numba.cuda.extending import intrinsic

from .emit import I32, LETTER, asm, nbytes, types

__all__ = ["NO_LABEL", "first_lane", "first_max_lane", "group_first_max", "shuffle", "warp_first_max"]

#: Result of `warp_first_max` where no lane takes part.
NO_LABEL = 2**31 - 1

#: The lanes of the largest bits, in b: of a float32 in one word, of a float64 in two. What is no number
#: counts as the highest integer, and a lane that takes no part as the lowest. One lane is what is likely.
_FLOAT32 = """{ .reg .pred p, q; .reg .s32 h, m, l; .reg .b32 b, c;
mov.b32 h, $1; setp.nan.f32 q, $1, $1; selp.s32 h, 0x7fffffff, h, q;
setp.ne.u32 p, $3, 0; selp.s32 h, h, 0x80000000, p;
redux.sync.max.s32 m, h, 0xffffffff; setp.eq.and.s32 p, h, m, p; vote.sync.ballot.b32 b, p, 0xffffffff;
popc.b32 c, b; setp.lt.u32 q, c, 2; @q bra FOUND;
LABELS
FOUND: RESULT }"""
_FLOAT64 = """{ .reg .pred p, q; .reg .s32 h, m, l; .reg .u32 w, v; .reg .b32 b, c;
mov.b64 {w, h}, $1; setp.nan.f64 q, $1, $1; selp.s32 h, 0x7fffffff, h, q; selp.u32 w, 0, w, q;
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
        operands = [size, label, builder.zext(ok, I32)]
        return asm(builder, I32, operands, text, f"=&r,{LETTER[length]},r,r", convergent=True)

    return codegen


@intrinsic
def warp_first_max(_, size, label, ok):
    """The lowest label of those whose `size` is the largest, among the lanes with `ok`; for all lanes.

    Sizes are not negative; NaN is larger than any number. Labels are int32, at least 0 and below `NO_LABEL`.
    """
    return types.int32(size, types.int32, types.boolean), _first_max(_LABEL)


@intrinsic
def first_max_lane(_, size, label, ok):
    """The lane that has the label of `warp_first_max`, -1 where no lane has `ok`."""
    return types.int32(size, types.int32, types.boolean), _first_max(_LANE)


#: Start of the search in a group of 4, 8 or 16 neighbouring lanes, each with its mask of lanes in g.
_GROUP_START = """{ .reg .pred p, q; .reg .s32 h, o, m, l; .reg .b32 b, c, g, v, w;
mov.u32 c, %laneid; neg.s32 o, $4; and.b32 c, c, o;
mov.b32 g, 1; shl.b32 g, g, $4; sub.s32 g, g, 1; shl.b32 g, g, c;
BITS setp.ne.u32 p, $3, 0; selp.s32 h, h, 0x80000000, p;
mov.b32 m, h; ROUNDS(m, max.s32) setp.eq.and.s32 p, h, m, p;
vote.sync.ballot.b32 b, p, 0xffffffff; and.b32 b, b, g;
popc.b32 v, b; setp.lt.u32 q, v, 2; vote.sync.all.pred q, q, 0xffffffff; @q bra FOUND;
"""
_GROUP_END = """selp.s32 l, $2, 0x7fffffff, p; mov.b32 m, l; ROUNDS(m, min.s32) setp.eq.and.s32 p, l, m, p;
vote.sync.ballot.b32 b, p, 0xffffffff; and.b32 b, b, g;
FOUND: """
_GROUP_WORD = "selp.b32 w, w, 0, p; mov.b32 v, w; ROUNDS(v, max.u32) setp.eq.and.u32 p, w, v, p;\n"
_BITS_32 = "mov.b32 h, $1; setp.nan.f32 q, $1, $1; selp.s32 h, 0x7fffffff, h, q;"
_BITS_64 = "mov.b64 {w, h}, $1; setp.nan.f64 q, $1, $1; selp.s32 h, 0x7fffffff, h, q; selp.b32 w, 0, w, q;"


def _rounds(match: re.Match[str]) -> str:
    """A reduction of a register by exchanges with lanes at distance 1, 2, and 4 and 8 where the group has
    them.
    """
    register, operation = match.groups()
    text = ""
    for distance in (1, 2, 4, 8):
        needed = distance >= 4
        text += f"setp.gt.s32 q, $4, {distance}; " if needed else ""
        text += f"shfl.sync.bfly.b32 o, {register}, {distance}, 0x1f, 0xffffffff; "
        text += f"{'@q ' if needed else ''}{operation} {register}, {register}, o; "
    return text


@intrinsic
def group_first_max(_, size, label, ok, lanes):
    """Search like `warp_first_max` in a group of 4, 8 or 16 neighbouring lanes; all lanes of the warp take
    part.
    """

    def codegen(context, builder, signature, arguments):
        size, label, ok, lanes = arguments
        length = nbytes(signature.args[0])
        bits, word = (_BITS_32, "") if length == 4 else (_BITS_64, _GROUP_WORD)
        text = _GROUP_START.replace("BITS", bits) + word + _GROUP_END + _LABEL + " }"
        text = re.sub(r"ROUNDS\((\w), ([\w.]+)\)", _rounds, text)
        operands = [size, label, builder.zext(ok, I32), lanes]
        return asm(builder, I32, operands, text, f"=&r,{LETTER[length]},r,r,r", convergent=True)

    return types.int32(size, types.int32, types.boolean, types.int32), codegen


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
    """The `value` that another lane of the warp passes, an int32 or a real; all lanes take part."""

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
