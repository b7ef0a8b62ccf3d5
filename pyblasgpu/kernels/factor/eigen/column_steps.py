"""Steps of `jacobi_columns`: rotations of pairs of columns that a warp, or a part of one, has in registers.

A lane has some rows of all columns. Columns are kept with a factor each. So a rotation takes two fused
multiplications an element, in place (Anda and Park, *Fast plane rotations with dynamic scaling*, 1994). Of
a x and b y with the tangent t, x becomes x - t (b/a) y. Then y becomes y + t (a/b)/(1 + t t) x. Factors are
a c and b/c then, c the cosine. Of complex columns t has the phase of their product, and x takes the conjugate
of t.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ....gpu.backend import device_function, in_order, ptx, unrolled
from ....types import Dtype
from ..cholesky.inverse_root import inverse_root
from .halves import halver
from .svd_columns import negligible

__all__ = ["STATES", "STEPS", "Held", "beginner", "column_mover", "columns_of", "state_mover", "unscaler"]

#: Reals that a lane keeps of each column of its pair: the squared norm, the factor, and its inverse.
STATES = 3
#: Reals for the step of a pair in shared memory.
STEPS = 2
#: Factors of squares of numbers that are about one, so that they do not vanish, by bytes of a real.
UP = {4: 2.0**40, 8: 1.0}
#: Cosines of columns, and tangents of rotations, up to which a sweep is the last one: their products are
#: roundings, of some hundred columns.
MILD = {4: 3e-5, 8: 1e-9}
NEVER = 4  # a tolerance that no product of columns exceeds


@dataclass(frozen=True)
class Held:
    """Elements that a lane has in registers: rows of A and of V of `pairs` pairs of columns. All rows of
    them are in `lanes` lanes.
    """

    pairs: int
    lanes: int
    rows: int
    vector_rows: int
    reals: int = 1

    @property
    def each(self) -> int:
        """Reals of a column that a lane has, `reals` an element."""
        return (self.rows + self.vector_rows) * self.reals

    @property
    def sums(self) -> int:
        """Reals of the products of all pairs."""
        return self.pairs * self.reals


@dataclass(frozen=True)
class Turn:
    """Which columns are pairs: the second ones of `group` neighbouring pairs are `turn` pairs further."""

    group: int = 1
    turn: int = 0


def dotter(held: Held, which: Turn = Turn()) -> Callable:
    """``dots(acc, x, y, lane)``: products x^H y of the columns of all pairs; ``acc[0]`` that of pair
    ``lane % pairs``, and its imaginary part behind it.
    """
    EACH, ROWS, shuffle, int32 = held.each, held.rows, ptx.shuffle, ptx.types.int32
    REST, TURN, REALS, COMPLEX = which.group - 1, which.turn, held.reals, held.reals == 2

    @device_function
    def multiply(k, acc, x, y):
        at, of = k * EACH, ((k & ~REST) | ((k + TURN) & REST)) * EACH
        total = x[at] * y[of]
        if COMPLEX:
            total += x[at + 1] * y[of + 1]
            cross = x[at] * y[of + 1] - x[at + 1] * y[of]
        for row in range(1, ROWS):
            i, j = at + row * REALS, of + row * REALS
            total += x[i] * y[j]
            if COMPLEX:
                total += x[i + 1] * y[j + 1]
                cross = cross + x[i] * y[j + 1] - x[i + 1] * y[j]
        acc[k * REALS] = total
        if COMPLEX:
            acc[k * 2 + 1] = cross

    def adding(distance: int) -> Callable:
        @device_function
        def add(k, acc, lane):
            for part in range(REALS):
                acc[part] += shuffle(acc[part], int32(lane ^ distance))

        return add

    halves = [1 << i for i in reversed(range(held.pairs.bit_length() - 1))]
    distances = [held.pairs << i for i in range((held.lanes // held.pairs).bit_length() - 1)]
    every = unrolled(held.pairs, multiply)
    combine = in_order([*(halver(half * REALS, half) for half in halves), *map(adding, distances)])

    @device_function
    def dots(acc, x, y, lane):
        every(0, acc, x, y)
        combine(0, acc, lane)

    return dots


def beginner(facts: Dtype, held: Held) -> Callable:
    """``begin(acc, x, y, mine, theirs, lane)``: squared norms and factors of one, of the columns of the pair
    of a lane.
    """
    dots, real = dotter(held), ptx.REALS[facts.real]

    @device_function
    def begin(acc, x, y, mine, theirs, lane):
        dots(acc, x, x, lane)
        mine[0] = acc[0]
        dots(acc, y, y, lane)
        theirs[0] = acc[0]
        for part in range(1, STATES):
            mine[part], theirs[part] = real(1), real(1)

    return begin


def turner(facts: Dtype) -> tuple[Callable, Callable]:
    """``angle(seen, mine, theirs, re, im, tolerance)``: parts of the tangent of the rotation for a product
    of two columns, 0 where it is at most the root of `tolerance` times their norms; ``seen[0]`` becomes 1 if
    it is not `MILD`. ``turn(mine, theirs, t, t_im, re, im)``: norms and factors of both columns after it.
    """
    real, UNDER, SCALE, SMALL = (
        ptx.REALS[facts.real],
        negligible(facts),
        UP[facts.real_size],
        MILD[facts.real_size],
    )
    approximate, (_, inverse, _) = ptx.inverse_root_approximation, inverse_root(facts)
    COMPLEX = facts.is_complex

    @device_function
    def angle(seen, mine, theirs, re, im, tolerance):
        t, t_im = real(0), real(0)
        g, g_im = re * real(SCALE), im * real(SCALE)
        p, q = mine[0] * real(SCALE), theirs[0] * real(SCALE)
        size = g * g
        if COMPLEX:
            size += g_im * g_im
        if (mine[0] > real(UNDER)) & (theirs[0] > real(UNDER)) & (size > tolerance * (p * q)):
            d, twice = q - p, g + g
            square = d * d + twice * twice
            if COMPLEX:
                square += real(4) * (g_im * g_im)
            r = approximate(abs(d) + square * approximate(square))
            t = twice * r * r
            is_large = (t > real(SMALL)) | (t < real(-SMALL))
            if COMPLEX:
                t_im = (g_im + g_im) * r * r
                is_large = is_large | (t_im > real(SMALL)) | (t_im < real(-SMALL))
            if (size > real(SMALL * SMALL) * (p * q)) | is_large:
                seen[0] = real(1)
            t = -t if d < real(0) else t
            if COMPLEX:
                t_im = -t_im if d < real(0) else t_im
        return t, t_im

    @device_function
    def turn(mine, theirs, t, t_im, re, im):
        gain, w = t * re, t * t + real(1)
        if COMPLEX:
            gain, w = gain + t_im * im, t_im * t_im + w
        mine[0], theirs[0] = mine[0] - gain, theirs[0] + gain
        c = inverse(w)
        s = c * w
        mine[1], mine[2] = mine[1] * c, mine[2] * s
        theirs[1], theirs[2] = theirs[1] * s, theirs[2] * c

    return angle, turn


def adder(held: Held, which: Turn, subtracts: bool) -> Callable:
    """``add(0, acc, x, y, steps)``: to each second column the first one of its pair times the number in
    `steps`; if it `subtracts`, from each first column the second one times its conjugate.
    """
    EACH, REST, TURN, REALS, COMPLEX = held.each, which.group - 1, which.turn, held.reals, held.reals == 2
    load, PAIRS = ptx.load_shared(2), 2 // held.reals

    @device_function
    def add(k, acc, x, y, steps):
        load(acc, 0, steps, k * 2)
        for number in range(PAIRS):
            pair = k * PAIRS + number
            of = ((pair & ~REST) | ((pair + TURN) & REST)) * EACH
            for row in range(0, EACH, REALS):
                i, j = pair * EACH + row, of + row
                if COMPLEX:
                    if subtracts:
                        x[i] = x[i] - acc[0] * y[j] - acc[1] * y[j + 1]
                        x[i + 1] = x[i + 1] - acc[0] * y[j + 1] + acc[1] * y[j]
                    else:
                        y[j] = y[j] + acc[0] * x[i] - acc[1] * x[i + 1]
                        y[j + 1] = y[j + 1] + acc[0] * x[i + 1] + acc[1] * x[i]
                elif subtracts:
                    x[i] -= acc[number] * y[j]
                else:
                    y[j] += acc[number] * x[i]

    return unrolled(held.pairs // PAIRS, add)


def stepper(facts: Dtype, held: Held, which: Turn) -> Callable:
    """``step(seen, acc, x, y, mine, theirs, steps, is_left, tolerance, lane)``: a rotation of each pair, if
    `is_left`. ``seen[0]`` becomes 1 where that of the lane's pair is not `MILD`. What the lane has of second
    columns goes to the pair before.
    """
    PAIRS, LANES, REST, REALS = held.pairs, held.lanes, which.group - 1, held.reals
    int32, offset, first_lane, sync_warp = ptx.types.int32, ptx.offset, ptx.first_lane, ptx.sync_warp
    shuffle, real, SUMS, COMPLEX = ptx.shuffle, ptx.REALS[facts.real], held.sums, held.reals == 2
    dots, (angle, turn) = dotter(held, which), turner(facts)
    lessen, add = (adder(held, which, subtracts) for subtracts in (True, False))

    @device_function
    def step(seen, acc, x, y, mine, theirs, steps, is_left, tolerance, lane):
        dots(acc, x, y, lane)
        at = (lane & (PAIRS - 1)) * REALS
        product, product_im, is_first = acc[0] * mine[1] * theirs[1], real(0), (lane & (LANES - 1)) < PAIRS
        if COMPLEX:
            product_im = acc[1] * mine[1] * theirs[1]
        t, t_im = angle(seen, mine, theirs, product, product_im, tolerance if is_left else real(NEVER))
        if is_first:
            steps[at] = t * theirs[1] * mine[2]
            if COMPLEX:
                steps[at + 1] = t_im * theirs[1] * mine[2]
        sync_warp()
        if first_lane((t != real(0)) | (t_im != real(0)) if COMPLEX else t != real(0)) >= 0:
            lessen(0, acc, x, y, steps)
            turn(mine, theirs, t, t_im, product, product_im)
            if is_first:
                steps[SUMS + at] = t * mine[1] * theirs[2]
                if COMPLEX:
                    steps[SUMS + at + 1] = t_im * mine[1] * theirs[2]
            sync_warp()
            add(0, acc, x, y, offset(steps, SUMS))
        if REST > 0:
            source = int32((lane & ~REST) | ((lane + 1) & REST))
            for part in range(STATES):
                theirs[part] = shuffle(theirs[part], source)

    return step


def shifter(held: Held, group: int, count: int) -> Callable:
    """``shift(kept, y)``: the second columns of `group` neighbouring pairs, each to `count` pairs before."""
    EACH, REST = held.each, group - 1

    @device_function
    def take(k, kept, y):
        for row in range(EACH):
            kept[k * EACH + row] = y[k * EACH + row]

    @device_function
    def give(k, kept, y):
        of = ((k & ~REST) | ((k + count) & REST)) * EACH
        for row in range(EACH):
            y[k * EACH + row] = kept[of + row]

    take_all, give_all = unrolled(held.pairs, take), unrolled(held.pairs, give)

    @device_function
    def shift(kept, y):
        take_all(0, kept, y)
        give_all(0, kept, y)

    return shift


def swapper(held: Held, half: int) -> Callable:
    """``swap(0, x, y)``: first columns of the upper half of each 2 `half` pairs, and second ones of the lower
    half.
    """
    EACH = held.each

    @device_function
    def swap_one(k, x, y, base):
        for row in range(EACH):
            at, of = (base + half + k) * EACH + row, (base + k) * EACH + row
            x[at], y[of] = y[of], x[at]

    one_group = unrolled(half, swap_one)

    @device_function
    def swap_group(k, x, y):
        one_group(0, x, y, k * 2 * half)

    return unrolled(held.pairs // (2 * half), swap_group)


def columns_of(facts: Dtype, held: Held, unroll: int) -> tuple[Callable, Callable, Callable]:
    """``cross(seen, acc, x, y, kept, mine, theirs, steps, is_left, tolerance, lane)``: a rotation of each
    first column with each second one; ``inner(0, n, ...)``: of each two first ones and each two second ones
    then; ``restore(0, x, y)``: columns where they were before. `unroll` steps are one after the other in the
    code; `kept` is a local array like `y`.
    """
    int32, shuffle, select = ptx.types.int32, ptx.shuffle, ptx.select

    def crossing(group: int) -> Callable:
        count = min(unroll, group)
        steps_all = in_order([stepper(facts, held, Turn(group, turn)) for turn in range(count)])
        shift = shifter(held, group, count)

        @device_function
        def cross(seen, acc, x, y, kept, mine, theirs, steps, is_left, tolerance, lane):
            number = int32(0)
            while number < group:
                steps_all(seen, acc, x, y, mine, theirs, steps, is_left, tolerance, lane)
                if count < group:
                    shift(kept, y)
                number = int32(number + count)

        return cross

    def level(half: int) -> Callable:
        swap, cross = swapper(held, half), crossing(half)

        @device_function
        def run(k, n, seen, acc, x, y, kept, mine, theirs, steps, is_left, tolerance, lane):
            swap(0, x, y)
            is_upper = (lane & half) != 0
            for part in range(STATES):
                other = shuffle(select(is_upper, mine[part], theirs[part]), int32(lane ^ half))
                mine[part] = select(is_upper, other, mine[part])
                theirs[part] = select(is_upper, theirs[part], other)
            if n > half:
                cross(seen, acc, x, y, kept, mine, theirs, steps, is_left, tolerance, lane)

        return run

    halves = [1 << i for i in reversed(range(held.pairs.bit_length() - 1))]
    inner = in_order([level(half) for half in halves])
    restore = in_order([swapper(held, half) for half in reversed(halves)])
    return crossing(held.pairs), inner, restore


def unscaler(held: Held) -> Callable:
    """``unscale(acc, x, y, mine, theirs, steps, lane)``: columns times their factors."""
    EACH, PAIRS, LANES = held.each, held.pairs, held.lanes
    int32, sync_warp, load, store = ptx.types.int32, ptx.sync_warp, ptx.load_shared(2), ptx.store_shared(2)

    @device_function
    def unscale_one(k, acc, x, y, steps):
        load(acc, 0, steps, k * 2)
        for row in range(EACH):
            x[k * EACH + row] *= acc[0]
            y[k * EACH + row] *= acc[1]

    unscale_all = unrolled(PAIRS, unscale_one)

    @device_function
    def unscale(acc, x, y, mine, theirs, steps, lane):
        sync_warp()
        if (lane & (LANES - 1)) < PAIRS:
            acc[0], acc[1] = mine[1], theirs[1]
            store(steps, int32((lane & (PAIRS - 1)) * 2), acc, 0)
        sync_warp()
        unscale_all(0, acc, x, y, steps)
        sync_warp()

    return unscale


def state_mover(held: Held) -> tuple[Callable, Callable]:
    """``load(mine, theirs, states, first, second, lane)``: norm and factors of a lane's pair, of columns from
    `first` and from `second` on; ``store(...)`` back.
    """
    PAIRS, int32 = held.pairs, ptx.types.int32

    @device_function
    def load(mine, theirs, states, first, second, lane):
        pair = int32(lane & (PAIRS - 1))
        for part in range(STATES):
            mine[part] = states[(first + pair) * STATES + part]
            theirs[part] = states[(second + pair) * STATES + part]

    @device_function
    def store(mine, theirs, states, first, second, lane):
        if lane < PAIRS:
            for part in range(STATES):
                states[(first + lane) * STATES + part] = mine[part]
                states[(second + lane) * STATES + part] = theirs[part]

    return load, store


def column_mover(facts: Dtype, held: Held, ld: int, plane: int) -> tuple[Callable, Callable]:
    """``load(0, x, y, s, first, second, n, m, lane)``: the columns from `first` on to x and from `second` on
    to y; ``store(0, ...)`` back. Columns in shared memory are `ld` elements apart, with V below A, and
    imaginary parts `plane` reals behind the real ones.
    """
    real, int32, LANES, EACH, ROWS, REALS = (
        ptx.REALS[facts.real],
        ptx.types.int32,
        held.lanes,
        held.each,
        held.rows,
        held.reals,
    )
    HELD, COMPLEX = held.rows + held.vector_rows, held.reals == 2

    @device_function
    def place(row, n, m, lane):
        i = int32(lane + (row if row < ROWS else row - ROWS) * LANES)
        return i if row < ROWS else int32(m + i), i < (m if row < ROWS else n)

    @device_function
    def load_one(k, x, y, s, first, second, n, m, lane):
        for row in range(HELD):
            i, is_there = place(row, n, m, lane)
            at = k * EACH + row * REALS
            x[at] = s[(first + k) * ld + i] if is_there and first + k < n else real(0)
            y[at] = s[(second + k) * ld + i] if is_there and second + k < n else real(0)
            if COMPLEX:
                x[at + 1] = s[(first + k) * ld + i + plane] if is_there and first + k < n else real(0)
                y[at + 1] = s[(second + k) * ld + i + plane] if is_there and second + k < n else real(0)

    @device_function
    def store_one(k, x, y, s, first, second, n, m, lane):
        for row in range(HELD):
            i, is_there = place(row, n, m, lane)
            at = k * EACH + row * REALS
            if is_there and first + k < n:
                s[(first + k) * ld + i] = x[at]
                if COMPLEX:
                    s[(first + k) * ld + i + plane] = x[at + 1]
            if is_there and second + k < n:
                s[(second + k) * ld + i] = y[at]
                if COMPLEX:
                    s[(second + k) * ld + i + plane] = y[at + 1]

    return unrolled(held.pairs, load_one), unrolled(held.pairs, store_one)
