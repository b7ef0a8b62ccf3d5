"""Intrinsics that compute on register tiles, straight-line."""

from __future__ import annotations

from llvmlite import ir
from numba.cuda.extending import intrinsic

from .emit import I32, at, element_address, element_addresses, load_volatile, made_once, nbytes, types

__all__ = [
    "axpy_column",
    "eliminate_row",
    "fill",
    "products_by_elements",
    "products_by_rows",
    "rank1_update",
    "shifted_update",
]


@made_once
def rank1_update(
    m: int,
    n: int,
    reals_per_element: int,
    conj_a: bool = False,
    conj_b: bool = False,
    by_rows: bool = False,
    at_a: tuple[int, int] = (0, 1),
    at_b: tuple[int, int] = (0, 1),
):
    """``update(acc, a, b)``: acc[:, j] += a * b[j] over an m-by-n register tile, straight-line.

    `reals_per_element` is 1 for real tiles, 2 for complex ones, whose real and imaginary parts are
    neighbours; `acc` is column-major. `by_rows` decides in which order (see `products_by_rows`); the result
    is the same to the last bit. `at_a`, `at_b` are the first elements of the arrays, and how far the next
    ones are. Written as an intrinsic because a Python loop nest of this size is unrolled only by the
    compiler's leave, and one that is not puts the accumulators into local memory.
    """
    plus = (True, not conj_b), (not conj_a, conj_a != conj_b)  # [part of a][part of b]: whether it is added
    order = (products_by_rows if by_rows else products_by_elements)(m, n, reals_per_element)

    def indices(count: int, first: int, step: int) -> list[int]:
        return [
            (first + i * step) * reals_per_element + part
            for i in range(count)
            for part in range(reals_per_element)
        ]

    @intrinsic
    def update(_, acc, a, b):
        def codegen(context, builder, signature, arguments):
            slot = element_addresses(context, builder, signature, arguments)

            column = [builder.load(slot(1, index)) for index in indices(m, *at_a)]
            row = [builder.load(slot(2, index)) for index in indices(n, *at_b)]
            for i, part_a, j, part_b in order:
                x, y = column[i * reals_per_element + part_a], row[j * reals_per_element + part_b]
                product = builder.fmul(x, y, flags=["contract"])
                target = slot(0, (j * m + i) * reals_per_element + (part_a ^ part_b))
                combine = builder.fadd if plus[part_a][part_b] else builder.fsub
                builder.store(combine(builder.load(target), product, flags=["contract"]), target)
            return context.get_dummy_value()

        return types.void(acc, a, b), codegen

    return update


def products_by_elements(m: int, n: int, reals_per_element: int) -> list[tuple[int, int, int, int]]:
    """The products of a tile as (row, part of a, column, part of b): one element of it after the other."""
    each = ((1, 1), (1, 0), (0, 0), (0, 1)) if reals_per_element == 2 else ((0, 0),)
    return [(i, part_a, j, part_b) for j in range(n) for i in range(m) for part_a, part_b in each]


def products_by_rows(m: int, n: int, reals_per_element: int) -> list[tuple[int, int, int, int]]:
    """Return the order of products by rows: all of one real of `a` before the next, back and forth along the
    row.

    An FMA reads three registers. Two are read in a cycle, one with an even number and one with an odd number;
    one that the instruction before has read in the same place need not be read again (Huerta et al.,
    Analyzing modern NVIDIA GPU cores, 2025, on Ampere). In this order nearly every FMA shares its real of `a`
    with its neighbours, and the compiler can give the other two an even and an odd number.

    Vectors put real parts, of sums too, in even registers and imaginary ones in odd. Imaginary parts of `a`
    are first: they multiply a register in the other bank than the sum, whose new value goes to the other
    bank, where the real part of `a` wants it. The other way round, the compiler must turn all sums over
    before the loop, and at times it does not: a third of the FMAs then wait (CGEMM 47 instead of 53 TFLOP/s).
    """
    order = []
    for i in range(m):
        for part_a in reversed(range(reals_per_element)):
            # first the real part of each sum: all sums are rounded as `products_by_elements` has it
            for target in range(reals_per_element):
                columns = range(n) if target == 0 else reversed(range(n))
                order += [(i, part_a, j, part_a ^ target) for j in columns]
    return order


@made_once
def shifted_update(
    m: int,
    n: int,
    depth: int,
    reals_per_element: int,
    conj_a: bool,
    sources: tuple[int, ...],
    targets: tuple[int, ...],
    first: int = 0,
):
    """``update(acc, a, b)``: element (i, j) of A B, of m rows and n columns, goes into `acc`; straight-line.

    It is added to the element at ``sources[i*n + j]``, and the sum is at ``targets[i*n + j]``: indices of
    reals, each read before any is written. `a` holds A by rows, of `depth` elements each; `b` holds rows of n
    elements, of which B begins with the row `first`. Products of one element of A follow one another, those
    of one sum are far apart: no FMA waits for another.
    """
    plus = (True, True), (not conj_a, conj_a)  # [part of a][part of b]: whether it is added
    order = sorted(products_by_rows(m, n, reals_per_element), key=lambda product: product[1])

    @intrinsic
    def update(_, acc, a, b):
        def codegen(context, builder, signature, arguments):
            slot = element_addresses(context, builder, signature, arguments)

            sums = [
                [builder.load(slot(0, index + part)) for part in range(reals_per_element)]
                for index in sources
            ]
            for k in range(depth):
                for i, part_a, j, part_b in order:
                    x = builder.load(slot(1, (i * depth + k) * reals_per_element + part_a))
                    y = builder.load(slot(2, ((first + k) * n + j) * reals_per_element + part_b))
                    combine = builder.fadd if plus[part_a][part_b] else builder.fsub
                    total, part = sums[i * n + j], part_a ^ part_b
                    product = builder.fmul(x, y, flags=["contract"])
                    total[part] = combine(total[part], product, flags=["contract"])
            for index, total in zip(targets, sums, strict=True):
                for part in range(reals_per_element):
                    builder.store(total[part], slot(0, index + part))
            return context.get_dummy_value()

        return types.void(acc, a, b), codegen

    return update


@made_once
def axpy_column(
    n: int, j: int, reals_per_element: int, conj: bool, sign: int, width: int = 1, ld: int | None = None
):
    """``spread(column, pointer)``: column[i] += sign * T[i, j] * column[j] for all i > j, straight-line.

    `pointer` is the n-by-n matrix T in shared memory, its columns `ld` elements apart, or n. The loads are
    volatile: their order is the program's, which keeps the compiler from holding all of T in registers. They
    load `width` reals each, aligned.
    """
    ld = ld or n

    @intrinsic
    def spread(_, column, pointer):
        real = column.dtype

        def codegen(context, builder, signature, arguments):
            local, matrix = arguments
            zero = ir.Constant(I32, 0)

            def slot(i, part):
                return element_address(
                    context, builder, signature.args[0], local, zero, i * reals_per_element + part
                )

            def entries(index):
                address = at(builder, matrix, ir.Constant(I32, index))
                return load_volatile(builder, address, nbytes(real), width)

            def add(address, x, y, positive):
                product = builder.fmul(x, y, flags=["contract"])
                combine = builder.fadd if positive else builder.fsub
                builder.store(combine(builder.load(address), product, flags=["contract"]), address)

            x = [builder.load(slot(j, part)) for part in range(reals_per_element)]
            plus = sign > 0
            start = (
                (j * ld + j + 1) * reals_per_element // width * width
            )  # no later than the first that is needed
            loaded: list = []
            for i in range(j + 1, n):
                stop = (j * ld + i + 1) * reals_per_element
                while start + len(loaded) < stop:
                    loaded += entries(start + len(loaded))
                t = loaded[stop - reals_per_element - start : stop - start]
                add(slot(i, 0), t[0], x[0], plus)
                if reals_per_element == 2:
                    add(slot(i, 0), t[1], x[1], plus == conj)
                    add(slot(i, 1), t[0], x[1], plus)
                    add(slot(i, 1), t[1], x[0], plus != conj)
            return context.get_dummy_value()

        return types.void(column, pointer), codegen

    return spread


@made_once
def eliminate_row(n: int, reals_per_element: int, width: int):
    """``eliminate(row, factor, pointer)``: row[k] = row[k+1] - factor * pivot[k] for k < n, straight-line.

    `pointer` is the pivot row in shared memory. It is read in order, `width` reals at a time, as in
    `axpy_column`.
    """

    @intrinsic
    def eliminate(_, row, factor, pointer):
        def codegen(context, builder, signature, arguments):
            pivot = arguments[2]
            slot = element_addresses(context, builder, signature, arguments)
            real_size = nbytes(signature.args[0].dtype)
            f = [builder.load(slot(1, part)) for part in range(reals_per_element)]

            def minus(value, x, y, negative=True):
                product = builder.fmul(x, y, flags=["contract"])
                combine = builder.fsub if negative else builder.fadd
                return combine(value, product, flags=["contract"])

            for start in range(0, n * reals_per_element, width):
                address = at(builder, pivot, ir.Constant(I32, start))
                loaded = load_volatile(builder, address, real_size, width)
                for at_ in range(0, width, reals_per_element):
                    k, u = start + at_, loaded[at_ : at_ + reals_per_element]
                    following = [
                        builder.load(slot(0, k + reals_per_element + part))
                        for part in range(reals_per_element)
                    ]
                    re = minus(following[0], f[0], u[0])
                    if reals_per_element == 2:
                        re = minus(re, f[1], u[1], negative=False)
                        im = minus(minus(following[1], f[0], u[1]), f[1], u[0])
                        builder.store(im, slot(0, k + 1))
                    builder.store(re, slot(0, k))
            return context.get_dummy_value()

        return types.void(row, factor, pointer), codegen

    return eliminate


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
