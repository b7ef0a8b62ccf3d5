"""Products by a warp on the tensor cores, in float64."""

from __future__ import annotations

from llvmlite import ir
from numba.cuda.extending import intrinsic

from .emit import I32, architecture, asm, element_addresses, made_once, types
from .mma import elements_per_mma, joins_parts

__all__ = ["has_wide_mma", "warp_mma"]


@intrinsic
def has_wide_mma(_):
    """Whether the architecture has the instructions of sixteen rows: a constant, by which one branch goes."""

    def codegen(context, builder, signature, arguments):
        return builder.icmp_signed(">=", architecture(context, builder), ir.Constant(I32, 900))

    return types.boolean(), codegen


@made_once
def warp_mma(
    m: int,
    n: int,
    shape: tuple[int, int],
    reals_per_element: int,
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
    reals_per_element : int
        2 for complex operands: an instruction multiplies both parts at once where it can (`mma.joins_parts`);
        else there are four products of real and imaginary parts.
    three_m : bool
        Whether complex operands give three sums instead of the product's two parts: Re A Re B, Im A Im B and
        (Re A + Im A) (Re B + Im B), side by side in `acc`.
    conj_a, conj_b : bool
    depth : int
        Instructions along K.
    first : int
        Offset of the tile in `acc`.

    Notes
    -----
    With g = lane // 4 and t = lane % 4 a lane holds, of each group of eight rows of A, row g and columns
    t, t + 4, ... (``a[step, group]``); of each instruction's eight columns of B, column g and rows t, t + 4,
    ... (``b[step, column group]``); of C, column by column, the rows g, g + 8, ... of the columns 8j + 2t
    and 8j + 2t + 1. (PTX ISA, matrix fragments for mma with .f64 operands.) With both parts at once the
    instruction's rows g and g + 8 are the parts of a row, its columns t and t + 4 what the parts of B meet.
    """
    rows, steps = shape[0] // 8, shape[1] // 4
    rows_taken, depth_taken = elements_per_mma(shape, reals_per_element, three_m)
    groups, quarters, sums = (
        m * rows_taken // 8,
        depth * depth_taken // 4,
        3 if three_m else reals_per_element,
    )

    @intrinsic
    def update(_, acc, a, b):
        def codegen(context, builder, signature, arguments):
            slot = element_addresses(context, builder, signature, arguments)

            def fragment(which, count):
                """All its values, [part][step][index]."""
                return [
                    [
                        [
                            builder.load(slot(which, (s * count + i) * reals_per_element + part))
                            for i in range(count)
                        ]
                        for s in range(quarters)
                    ]
                    for part in range(reals_per_element)
                ]

            def negated(values):
                return [[_negated(builder, value) for value in step] for step in values]

            def added(values, others):
                return [list(map(builder.fadd, *steps)) for steps in zip(values, others, strict=True)]

            def part_of(part):
                """Return the function that locates a part of an element of C."""
                return lambda group, column: slot(0, first + (column * groups + group) * sums + part)

            def both_parts(row, column):
                """Locate an element of C whose parts are rows."""
                return part_of(row % 2)(row // 2, column)

            def multiply(target, left, right):
                """The accumulators at ``target(row of eight, column)`` += left right, over the whole tile."""
                for j in range(n):
                    for i in range(m):
                        targets = [target(i * rows + h, 2 * j + odd) for h in range(rows) for odd in range(2)]
                        for k in range(0, len(left), steps):
                            x = [left[s][i * rows + h] for s in range(k, k + steps) for h in range(rows)]
                            y = [right[s][j] for s in range(k, k + steps)]
                            _mma_f64(builder, shape, targets, x, y)

            left, right = fragment(1, groups), fragment(2, n)
            if reals_per_element == 1:
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
            elif joins_parts(shape, reals_per_element):
                # Re C, Im C = (re, im) Re B + (minus_im, plus_re) Im B
                minus_im = a_im if conj_b else negated(a_im)
                plus_re = negated(a_re) if conj_b else a_re
                with_re, with_im = map(_interleaved, a_re, a_im), map(_interleaved, minus_im, plus_re)
                multiply(both_parts, _interleaved(with_re, with_im), _interleaved(b_re, b_im))
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


def _interleaved(ones, others):
    """The items of both lists, one of each after the other."""
    return [item for pair in zip(ones, others, strict=True) for item in pair]


def _negated(builder, value):
    """``-value`` by its sign bit: an instruction of the integer units, not of those for float64."""
    bits64 = ir.IntType(64)
    bits = builder.xor(builder.bitcast(value, bits64), ir.Constant(bits64, 1 << 63))
    return builder.bitcast(bits, value.type)


def _mma_f64(builder, shape, targets, a, b):
    """One instruction: the values at `targets` += a b."""
    m, k = shape
    total = [builder.load(target) for target in targets]
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
    for i, target in enumerate(targets):
        builder.store(builder.extract_value(value, i), target)
