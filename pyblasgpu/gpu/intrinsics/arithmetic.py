"""Intrinsics that compute, on register tiles and on single numbers."""

from __future__ import annotations

from llvmlite import ir
from numba.cuda.extending import intrinsic

from .emit import I32, LETTER, PTX_TYPE, asm, at, element_address, load_volatile, made_once, nbytes, types
from .mma import joins_parts, taken

__all__ = [
    "divide", "fill", "fma", "quotient", "rank1_update", "select", "shifted_update", "spread_column",
    "warp_multiply",
]  # fmt: skip


@made_once
def rank1_update(
    m: int, n: int, parts: int, conj_a: bool = False, conj_b: bool = False, by_rows: bool = False,
    at_a: tuple[int, int] = (0, 1), at_b: tuple[int, int] = (0, 1),
):  # fmt: skip
    """``update(acc, a, b)``: acc[:, j] += a * b[j] over an m-by-n register tile, straight-line.

    `parts` is 1 for real tiles, 2 for complex ones (real and imaginary part side by side); `acc` is
    column-major. `by_rows` decides in which order (see `_by_rows`); the result is the same to the last bit.
    `at_a`, `at_b` tell which element of the arrays comes first, and how far the next ones are.
    Written as an intrinsic because a Python loop nest of this size is unrolled only by the compiler's
    leave, and one that is not puts the accumulators into local memory.
    """
    plus = (True, not conj_b), (not conj_a, conj_a != conj_b)  # [part of a][part of b]: whether it is added
    order = (_by_rows if by_rows else _by_elements)(m, n, parts)

    def places(count: int, first: int, step: int) -> list[int]:
        return [(first + i * step) * parts + part for i in range(count) for part in range(parts)]

    @intrinsic
    def update(_, acc, a, b):
        def codegen(context, builder, signature, arguments):
            slot = _slots(context, builder, signature, arguments)

            column = [builder.load(slot(1, place)) for place in places(m, *at_a)]
            row = [builder.load(slot(2, place)) for place in places(n, *at_b)]
            for i, part_a, j, part_b in order:
                x, y = column[i * parts + part_a], row[j * parts + part_b]
                product = builder.fmul(x, y, flags=["contract"])
                target = slot(0, (j * m + i) * parts + (part_a ^ part_b))
                combine = builder.fadd if plus[part_a][part_b] else builder.fsub
                builder.store(combine(builder.load(target), product, flags=["contract"]), target)
            return context.get_dummy_value()

        return types.void(acc, a, b), codegen

    return update


def _by_elements(m: int, n: int, parts: int) -> list[tuple[int, int, int, int]]:
    """The products of a tile as (row, part of a, column, part of b): one element of it after the other."""
    each = ((1, 1), (1, 0), (0, 0), (0, 1)) if parts == 2 else ((0, 0),)
    return [(i, part_a, j, part_b) for j in range(n) for i in range(m) for part_a, part_b in each]


def _by_rows(m: int, n: int, parts: int) -> list[tuple[int, int, int, int]]:
    """The same, all products of one real of `a` before those of the next, back and forth along the row.

    An FMA reads three registers. Two come in a cycle, one with an even number and one with an odd number;
    one that the instruction before has read in the same place need not come again (Huerta et al., Analyzing
    modern NVIDIA GPU cores, 2025, on Ampere). In this order nearly every FMA shares its real of `a` with its
    neighbours, and the compiler can give the other two an even and an odd number.

    Vectors put real parts, of sums too, in even registers and imaginary ones in odd. Imaginary parts of `a`
    come first: they multiply what lies in the other bank than the sum, whose new value goes to the other
    bank, where the real part of `a` wants it. The other way round, the compiler must turn all sums over
    before the loop, and at times it does not: a third of the FMAs then wait (CGEMM 47 instead of 53 TFLOP/s).
    """
    found = []
    for i in range(m):
        for part_a in reversed(range(parts)):
            # first the real part of each sum: all sums are rounded as `_by_elements` has it
            for target in range(parts):
                columns = range(n) if target == 0 else reversed(range(n))
                found += [(i, part_a, j, part_a ^ target) for j in columns]
    return found


def _slots(context, builder, signature, arguments):
    """``slot(which, at)``: the address of a real of one of the arrays that an intrinsic is called with."""
    zero = ir.Constant(I32, 0)

    def slot(which, at):
        return element_address(context, builder, signature.args[which], arguments[which], zero, at)

    return slot


@made_once
def shifted_update(
    m: int, n: int, depth: int, parts: int, conj_a: bool, sources: tuple[int, ...], targets: tuple[int, ...],
    first: int = 0,
):  # fmt: skip
    """``update(acc, a, b)``: element (i, j) of A B, of m rows and n columns, goes into `acc`; straight-line.

    It is added to the element at ``sources[i*n + j]``, and the sum lies at ``targets[i*n + j]``: places of
    reals, each read before any is written. `a` holds A by rows, of `depth` elements each; `b` holds rows of n
    elements, of which B begins with the row `first`. Products of one element of A follow one another, those
    of one sum are far apart: no FMA waits for another.
    """
    plus = (True, True), (not conj_a, conj_a)  # [part of a][part of b]: whether it is added
    order = sorted(_by_rows(m, n, parts), key=lambda product: product[1])

    @intrinsic
    def update(_, acc, a, b):
        def codegen(context, builder, signature, arguments):
            slot = _slots(context, builder, signature, arguments)

            sums = [[builder.load(slot(0, place + part)) for part in range(parts)] for place in sources]
            for k in range(depth):
                for i, part_a, j, part_b in order:
                    x = builder.load(slot(1, (i * depth + k) * parts + part_a))
                    y = builder.load(slot(2, ((first + k) * n + j) * parts + part_b))
                    combine = builder.fadd if plus[part_a][part_b] else builder.fsub
                    total, part = sums[i * n + j], part_a ^ part_b
                    product = builder.fmul(x, y, flags=["contract"])
                    total[part] = combine(total[part], product, flags=["contract"])
            for place, total in zip(targets, sums, strict=True):
                for part in range(parts):
                    builder.store(total[part], slot(0, place + part))
            return context.get_dummy_value()

        return types.void(acc, a, b), codegen

    return update


@made_once
def warp_multiply(
    m: int,
    n: int,
    shape: tuple[int, int],
    parts: int,
    conj_a: bool = False,
    conj_b: bool = False,
    depth: int = 1,
    first: int = 0,
    three_m: bool = False,
):
    """``update(acc, a, b)``: acc += A B by a warp on the tensor cores, in float64; straight-line.

    Parameters
    ----------
    m, n : int
        Instructions along M, N.
    shape : (int, int)
        M and K of an instruction, one of `mma.SHAPES`; its N is 8.
    parts : int
        2 for complex operands: an instruction multiplies both parts at once where it can (`mma.joins_parts`);
        else there are four products of real and imaginary parts.
    three_m : bool
        Of complex operands three sums instead of the product's two parts: Re A Re B, Im A Im B and
        (Re A + Im A) (Re B + Im B), side by side in `acc`.
    conj_a, conj_b : bool
    depth : int
        Instructions along K.
    first : int
        Where in `acc` the tile begins.

    Notes
    -----
    With g = lane // 4 and t = lane % 4 a lane holds, of each group of eight rows of A, row g and columns
    t, t + 4, ... (``a[step, group]``); of each instruction's eight columns of B, column g and rows t, t + 4,
    ... (``b[step, column group]``); of C, column by column, the rows g, g + 8, ... of the columns 8j + 2t
    and 8j + 2t + 1. (PTX ISA, matrix fragments for mma with .f64 operands.) With both parts at once the
    instruction's rows g and g + 8 are the parts of a row, its columns t and t + 4 what the parts of B meet.
    """
    rows, steps = shape[0] // 8, shape[1] // 4
    rows_taken, depth_taken = taken(shape, parts, three_m)
    groups, quarters, sums = m * rows_taken // 8, depth * depth_taken // 4, 3 if three_m else parts

    @intrinsic
    def update(_, acc, a, b):
        def codegen(context, builder, signature, arguments):
            slot = _slots(context, builder, signature, arguments)

            def fragment(which, count):
                """All its values, [part][step][index]."""
                return [
                    [
                        [builder.load(slot(which, (s * count + i) * parts + part)) for i in range(count)]
                        for s in range(quarters)
                    ]
                    for part in range(parts)
                ]

            def negated(values):
                return [[_negated(builder, value) for value in step] for step in values]

            def added(values, others):
                return [list(map(builder.fadd, *steps)) for steps in zip(values, others, strict=True)]

            def part_of(part):
                """Where a part of an element of C is."""
                return lambda group, column: slot(0, first + (column * groups + group) * sums + part)

            def both_parts(row, column):
                """Where it is if parts are rows."""
                return part_of(row % 2)(row // 2, column)

            def multiply(place, left, right):
                """The accumulators at ``place(row of eight, column)`` += left right, over the whole tile."""
                for j in range(n):
                    for i in range(m):
                        places = [place(i * rows + h, 2 * j + odd) for h in range(rows) for odd in range(2)]
                        for k in range(0, len(left), steps):
                            x = [left[s][i * rows + h] for s in range(k, k + steps) for h in range(rows)]
                            y = [right[s][j] for s in range(k, k + steps)]
                            _mma_f64(builder, shape, places, x, y)

            left, right = fragment(1, groups), fragment(2, n)
            if parts == 1:
                multiply(part_of(0), left[0], right[0])
                return context.get_dummy_value()
            # (a + ib)(c + id); a conjugate turns the sign of its imaginary part
            (a_re, a_im), (b_re, b_im) = left, right
            a_im = negated(a_im) if conj_a else a_im
            if three_m:
                b_im = negated(b_im) if conj_b else b_im
                multiply(part_of(0), a_re, b_re)
                multiply(part_of(1), a_im, b_im)
                multiply(part_of(2), added(a_re, a_im), added(b_re, b_im))
            elif joins_parts(shape, parts):
                # Re C, Im C = (re, im) Re B + (minus_im, plus_re) Im B
                minus_im = a_im if conj_b else negated(a_im)
                plus_re = negated(a_re) if conj_b else a_re
                with_re, with_im = map(_in_turn, a_re, a_im), map(_in_turn, minus_im, plus_re)
                multiply(both_parts, _in_turn(with_re, with_im), _in_turn(b_re, b_im))
            else:
                minus_im = b_im if conj_b else negated(b_im)
                plus_im = negated(b_im) if conj_b else b_im
                multiply(part_of(0), a_re, b_re)
                multiply(part_of(1), a_re, plus_im)
                multiply(part_of(0), a_im, minus_im)
                multiply(part_of(1), a_im, b_re)
            return context.get_dummy_value()

        return types.void(acc, a, b), codegen

    return update


def _in_turn(ones, others):
    """The items of both lists, one of each after the other."""
    return [item for pair in zip(ones, others, strict=True) for item in pair]


def _negated(builder, value):
    """``-value`` by its sign bit: an instruction of the integer units, not of those for float64."""
    whole = ir.IntType(64)
    bits = builder.xor(builder.bitcast(value, whole), ir.Constant(whole, 1 << 63))
    return builder.bitcast(bits, value.type)


def _mma_f64(builder, shape, places, a, b):
    """One instruction: the values at `places` += a b."""
    m, k = shape
    total = [builder.load(place) for place in places]
    count, element = len(total), total[0].type

    def registers(first, many):
        return "{" + ",".join(f"${i}" for i in range(first, first + many)) + "}"

    groups = [(0, count), (count, len(a)), (count + len(a), len(b)), (0, count)]
    operands = ", ".join(registers(*group) for group in groups)
    text = f"mma.sync.aligned.m{m}n8k{k}.row.col.f64.f64.f64.f64 {operands};"
    tied = [str(i) for i in range(count)]
    constraints = ",".join(["=d"] * count + ["d"] * (len(a) + len(b)) + tied)
    result = ir.LiteralStructType([element] * count)
    value = asm(builder, result, [*a, *b, *total], text, constraints, effect=False)
    for i, place in enumerate(places):
        builder.store(builder.extract_value(value, i), place)


@made_once
def fill(count: int):
    """``set(local, value)``: the first `count` elements of a local array."""

    @intrinsic
    def set_all(_, local, value):
        def codegen(context, builder, signature, arguments):
            zero = ir.Constant(I32, 0)
            for lane in range(count):
                slot = element_address(context, builder, signature.args[0], arguments[0], zero, lane)
                builder.store(arguments[1], slot)
            return context.get_dummy_value()

        return types.void(local, local.dtype), codegen

    return set_all


@made_once
def spread_column(n: int, j: int, parts: int, conj: bool, sign: int, width: int = 1, lead: int | None = None):
    """``spread(column, pointer)``: column[i] += sign * T[i, j] * column[j] for all i > j, straight-line.

    `pointer` is the n-by-n matrix T in shared memory, its columns `lead` elements apart, or n. The loads are
    volatile: their order is the program's, which keeps the compiler from holding all of T in registers. They
    bring `width` reals each, aligned.
    """
    lead = lead or n

    @intrinsic
    def spread(_, column, pointer):
        real = column.dtype

        def codegen(context, builder, signature, arguments):
            local, matrix = arguments
            zero = ir.Constant(I32, 0)

            def slot(i, part):
                return element_address(context, builder, signature.args[0], local, zero, i * parts + part)

            def entries(place):
                address = at(builder, matrix, ir.Constant(I32, place))
                return load_volatile(builder, address, nbytes(real), width)

            def add(address, x, y, positive):
                product = builder.fmul(x, y, flags=["contract"])
                combine = builder.fadd if positive else builder.fsub
                builder.store(combine(builder.load(address), product, flags=["contract"]), address)

            x = [builder.load(slot(j, part)) for part in range(parts)]
            plus = sign > 0
            start = (j * lead + j + 1) * parts // width * width  # no later than the first that is needed
            loaded: list = []
            for i in range(j + 1, n):
                stop = (j * lead + i + 1) * parts
                while start + len(loaded) < stop:
                    loaded += entries(start + len(loaded))
                t = loaded[stop - parts - start : stop - start]
                add(slot(i, 0), t[0], x[0], plus)
                if parts == 2:
                    add(slot(i, 0), t[1], x[1], plus == conj)
                    add(slot(i, 1), t[0], x[1], plus)
                    add(slot(i, 1), t[1], x[0], plus != conj)
            return context.get_dummy_value()

        return types.void(column, pointer), codegen

    return spread


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
def quotient(_, x, y):
    """``x // y`` of int32 that are not negative: Python's own is of int64, and a call of a function."""

    def codegen(context, builder, signature, arguments):
        return builder.udiv(*arguments)

    return types.int32(types.int32, types.int32), codegen
