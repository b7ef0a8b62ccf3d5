"""``rank_k_update``: a register tile of GEMM on a processor, straight-line in LLVM's vectors."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any, NamedTuple

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from .llvm_vectors import INT, REALS, Reals, loop

__all__ = ["rank_k_update"]


class _Tile(NamedTuple):
    """A register tile: `vectors` of `width` reals down, `columns` across, of numbers with `parts` reals."""

    real: str
    parts: int
    width: int
    vectors: int
    columns: int
    unroll: int

    @property
    def rows(self) -> int:
        """Reals of a column."""
        return self.vectors * self.width


@lru_cache
def rank_k_update(
    real: str, parts: int, width: int, vectors: int, columns: int, unroll: int
) -> Callable[..., None]:
    """``update(a, b, k, c, ldc, alpha, alpha_i, beta, beta_i)``: C := alpha A B + beta C of a register tile.

    A and B are packed: k after k, the column of A of `vectors` times `width` reals, the row of B of `columns`
    numbers. C has contiguous rows and `ldc` reals from a column to the next; without beta it is not read.
    A complex sum is kept as two: of products by real parts of B, and by imaginary ones.
    """
    tile = _Tile(real, parts, width, vectors, columns, unroll)

    @intrinsic
    def update(
        _: Any, a: Any, b: Any, k: Any, c: Any, ldc: Any, alpha: Any, alpha_i: Any, beta: Any, beta_i: Any
    ) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> None:
            a, b, k, c, ldc, *scalars = arguments
            reals = Reals(builder, real)
            sums = _zeroed(reals, tile)
            _multiply(reals, tile, sums, a, b, k)
            _write(reals, tile, sums, c, ldc, scalars)

        number = REALS[real]
        signature = types.void(*[types.intp] * 5, *[number] * 4)
        return signature, codegen

    return update


def _zeroed(reals: Reals, tile: _Tile) -> list[list[Any]]:
    """The sums, a variable each, which become registers: [column, part of B][vector]."""
    zero = ir.Constant(reals.kind(tile.width), [0.0] * tile.width)
    made = []
    for _ in range(tile.columns * tile.parts):
        column = [cgutils.alloca_once(reals.builder, zero.type) for _ in range(tile.vectors)]
        for variable in column:
            reals.builder.store(zero, variable)
        made.append(column)
    return made


def _multiply(reals: Reals, tile: _Tile, sums: list[list[Any]], a: Any, b: Any, k: Any) -> None:
    """sums += A B, `unroll` steps of k at a time, then what is left."""
    builder, unroll = reals.builder, ir.Constant(INT, tile.unroll)
    across = tile.columns * tile.parts

    def step(at_a: Any, at_b: Any) -> None:
        column = [reals.load(reals.at(at_a, v * tile.width), tile.width) for v in range(tile.vectors)]
        for j in range(across):
            factor = reals.spread(reals.load(reals.at(at_b, j)), tile.width)
            for v in range(tile.vectors):
                total = builder.load(sums[j][v])
                builder.store(reals.add_product(total, column[v], factor), sums[j][v])

    iterations = builder.sdiv(k, unroll)
    with loop(builder, iterations) as index:
        first = builder.mul(index, unroll)
        at_a = reals.at(a, builder.mul(first, ir.Constant(INT, tile.rows)))
        at_b = reals.at(b, builder.mul(first, ir.Constant(INT, across)))
        for each in range(tile.unroll):
            step(reals.at(at_a, each * tile.rows), reals.at(at_b, each * across))
    done = builder.mul(iterations, unroll)
    with loop(builder, builder.sub(k, done)) as index:
        here = builder.add(done, index)
        step(
            reals.at(a, builder.mul(here, ir.Constant(INT, tile.rows))),
            reals.at(b, builder.mul(here, ir.Constant(INT, across))),
        )


def _write(reals: Reals, tile: _Tile, sums: list[list[Any]], c: Any, ldc: Any, scalars: list[Any]) -> None:
    """C := alpha sums + beta C."""
    builder, width = reals.builder, tile.width
    alpha, alpha_i, beta, beta_i = scalars
    zero = ir.Constant(beta.type, 0.0)
    reads = builder.fcmp_unordered("!=", beta, zero)
    if tile.parts == 2:
        reads = builder.or_(reads, builder.fcmp_unordered("!=", beta_i, zero))

    def times(vector: Any, re: Any, im: Any) -> Any:
        """Each number of a vector times a scalar."""
        scaled = builder.fmul(vector, reals.spread(re, width))
        if tile.parts == 1:
            return scaled
        swapped = builder.fmul(reals.swap_pairs(vector, width), reals.pairs(-1.0, 1.0, width))
        return reals.add_product(scaled, swapped, reals.spread(im, width))

    def results() -> Iterator[tuple[Any, Any]]:
        for j in range(tile.columns):
            for v in range(tile.vectors):
                total = builder.load(sums[j * tile.parts][v])
                if tile.parts == 2:
                    other = reals.swap_pairs(builder.load(sums[2 * j + 1][v]), width)
                    total = reals.add_product(total, other, reals.pairs(-1.0, 1.0, width))
                offset = builder.add(builder.mul(ldc, ir.Constant(INT, j)), ir.Constant(INT, v * width))
                yield times(total, alpha, alpha_i), reals.at(c, offset)

    with builder.if_else(reads) as (updates, overwrites):
        with updates:
            for value, address in results():
                old = times(reals.load(address, width), beta, beta_i)
                reals.store(builder.fadd(value, old), address, width)
        with overwrites:
            for value, address in results():
                reals.store(value, address, width)
