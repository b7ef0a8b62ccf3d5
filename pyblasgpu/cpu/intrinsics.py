"""How kernels for the processor compile: `njit`, and intrinsics that write LLVM's vectors.

An *address* is an integer; indices count reals. Imported when a kernel is built, as it imports Numba.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from llvmlite import binding, ir
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic

__all__ = [
    "REALS",
    "empty",
    "host_cpu",
    "copy_reals",
    "fused_multiply_adds",
    "load",
    "njit",
    "rank_k_update",
    "store",
    "transpose",
    "types",
]

REALS: dict[str, Any] = {"float32": types.float32, "float64": types.float64}
_LLVM = {"float32": ir.FloatType(), "float64": ir.DoubleType()}
_SIZE = {"float32": 4, "float64": 8}
empty = np.empty
_INT = ir.IntType(64)
_FLAGS = ["contract"]  # a product and a sum may become one FMA


def host_cpu() -> tuple[str, dict[str, bool]]:
    """LLVM's name of the processor, and its features."""
    return binding.get_host_cpu_name(), dict(binding.get_host_cpu_features())


def _pointer(builder: Any, address: Any, kind: Any) -> Any:
    return builder.inttoptr(address, kind.as_pointer())


class _Reals(NamedTuple):
    """Reals of one type at addresses, and vectors of them."""

    builder: Any
    real: str

    @property
    def size(self) -> int:
        return _SIZE[self.real]

    def at(self, address: Any, index: Any) -> Any:
        """The address of a real."""
        if isinstance(index, int):
            index = ir.Constant(_INT, index)
        return self.builder.add(address, self.builder.mul(index, ir.Constant(_INT, self.size)))

    def kind(self, width: int) -> Any:
        return _LLVM[self.real] if width == 1 else ir.VectorType(_LLVM[self.real], width)

    def load(self, address: Any, width: int = 1) -> Any:
        return self.builder.load(_pointer(self.builder, address, self.kind(width)), align=self.size)

    def store(self, value: Any, address: Any, width: int = 1) -> None:
        self.builder.store(value, _pointer(self.builder, address, self.kind(width)), align=self.size)

    def spread(self, value: Any, width: int) -> Any:
        """A vector with `value` in each lane."""
        kind, int32 = self.kind(width), ir.IntType(32)
        one = self.builder.insert_element(ir.Constant(kind, ir.Undefined), value, ir.Constant(int32, 0))
        lanes = ir.Constant(ir.VectorType(int32, width), [0] * width)
        return self.builder.shuffle_vector(one, ir.Constant(kind, ir.Undefined), lanes)

    def swap_pairs(self, vector: Any, width: int) -> Any:
        """Real and imaginary parts exchanged."""
        lanes = ir.Constant(ir.VectorType(ir.IntType(32), width), [lane ^ 1 for lane in range(width)])
        return self.builder.shuffle_vector(vector, ir.Constant(self.kind(width), ir.Undefined), lanes)

    def pairs(self, even: float, odd: float, width: int) -> Any:
        return ir.Constant(self.kind(width), [(even, odd)[lane % 2] for lane in range(width)])

    def add_product(self, total: Any, x: Any, y: Any) -> Any:
        return self.builder.fadd(total, self.builder.fmul(x, y, flags=_FLAGS), flags=_FLAGS)


@lru_cache
def load(real: str) -> Any:
    """``load(address, index)``: a real."""

    @intrinsic
    def load_real(_: Any, address: Any, index: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            reals = _Reals(builder, real)
            return reals.load(reals.at(*arguments))

        return REALS[real](types.intp, types.intp), codegen

    return load_real


@lru_cache
def store(real: str) -> Any:
    """``store(address, index, value)``."""

    @intrinsic
    def store_real(_: Any, address: Any, index: Any, value: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            reals = _Reals(builder, real)
            reals.store(arguments[2], reals.at(*arguments[:2]))

        return types.void(types.intp, types.intp, REALS[real]), codegen

    return store_real


@lru_cache
def copy_reals(real: str, count: int, width: int) -> Any:
    """``copy(target, source)``: `count` reals from address to address, by vectors of at most `width`."""
    steps = list(_widths(count, width))

    @intrinsic
    def copy(_: Any, target: Any, source: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            reals = _Reals(builder, real)
            target, source = arguments
            for first, lanes in steps:
                reals.store(reals.load(reals.at(source, first), lanes), reals.at(target, first), lanes)

        return types.void(types.intp, types.intp), codegen

    return copy


def _widths(count: int, width: int) -> Iterator[tuple[int, int]]:
    """(first, lanes) of the vectors that make up `count` reals."""
    first = 0
    while first < count:
        while width > count - first:
            width //= 2
        yield first, width
        first += width


@lru_cache
def transpose(real: str, parts: int, count: int) -> Any:
    """``transpose(target, target_step, source, source_step)``: `count` by `count` elements, rows to columns.

    Steps are in reals. Elements of two reals stay together.
    """

    @intrinsic
    def run(_: Any, target: Any, target_step: Any, source: Any, source_step: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> None:
            target, target_step, source, source_step = arguments
            reals = _Reals(builder, real)

            def row(address: Any, step: Any, i: int) -> Any:
                return reals.at(address, builder.mul(step, ir.Constant(_INT, i)))

            rows = [reals.load(row(source, source_step, i), count * parts) for i in range(count)]
            for i, vector in enumerate(_transposed_rows(reals, rows, parts)):
                reals.store(vector, row(target, target_step, i), count * parts)

        return types.void(*[types.intp] * 4), codegen

    return run


def _transposed_rows(reals: _Reals, rows: list[Any], parts: int) -> list[Any]:
    """By exchanging ever smaller halves of pairs of rows."""
    half = len(rows) // 2
    while half:
        for i in range(len(rows)):
            if not i & half:
                rows[i], rows[i + half] = _exchanged(reals, rows[i], rows[i + half], half, parts)
        half //= 2
    return rows


def _exchanged(reals: _Reals, low: Any, high: Any, half: int, parts: int) -> tuple[Any, Any]:
    """The odd groups of `half` elements of one row exchanged with the even ones of the other."""
    lanes = low.type.count
    kind = ir.VectorType(ir.IntType(32), lanes)
    first, second = [], []
    for lane in range(lanes):
        element, part = divmod(lane, parts)
        odd = element & half
        first.append(lanes + (element - half) * parts + part if odd else lane)
        second.append(lanes + lane if odd else (element + half) * parts + part)
    return tuple(reals.builder.shuffle_vector(low, high, ir.Constant(kind, each)) for each in (first, second))


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
            reals = _Reals(builder, real)
            sums = _zeroed(reals, tile)
            _multiply(reals, tile, sums, a, b, k)
            _write(reals, tile, sums, c, ldc, scalars)

        number = REALS[real]
        signature = types.void(*[types.intp] * 5, *[number] * 4)
        return signature, codegen

    return update


def _zeroed(reals: _Reals, tile: _Tile) -> list[list[Any]]:
    """The sums, a variable each, which become registers: [column, part of B][vector]."""
    zero = ir.Constant(reals.kind(tile.width), [0.0] * tile.width)
    made = []
    for _ in range(tile.columns * tile.parts):
        column = [cgutils.alloca_once(reals.builder, zero.type) for _ in range(tile.vectors)]
        for variable in column:
            reals.builder.store(zero, variable)
        made.append(column)
    return made


@contextmanager
def _loop(builder: Any, count: Any) -> Iterator[Any]:
    with cgutils.for_range(builder, count, intp=_INT) as loop:
        yield loop.index


def _multiply(reals: _Reals, tile: _Tile, sums: list[list[Any]], a: Any, b: Any, k: Any) -> None:
    """sums += A B, `unroll` steps of k at a time, then what is left."""
    builder, unroll = reals.builder, ir.Constant(_INT, tile.unroll)
    across = tile.columns * tile.parts

    def step(at_a: Any, at_b: Any) -> None:
        column = [reals.load(reals.at(at_a, v * tile.width), tile.width) for v in range(tile.vectors)]
        for j in range(across):
            factor = reals.spread(reals.load(reals.at(at_b, j)), tile.width)
            for v in range(tile.vectors):
                total = builder.load(sums[j][v])
                builder.store(reals.add_product(total, column[v], factor), sums[j][v])

    rounds = builder.sdiv(k, unroll)
    with _loop(builder, rounds) as index:
        first = builder.mul(index, unroll)
        at_a = reals.at(a, builder.mul(first, ir.Constant(_INT, tile.rows)))
        at_b = reals.at(b, builder.mul(first, ir.Constant(_INT, across)))
        for each in range(tile.unroll):
            step(reals.at(at_a, each * tile.rows), reals.at(at_b, each * across))
    done = builder.mul(rounds, unroll)
    with _loop(builder, builder.sub(k, done)) as index:
        here = builder.add(done, index)
        step(
            reals.at(a, builder.mul(here, ir.Constant(_INT, tile.rows))),
            reals.at(b, builder.mul(here, ir.Constant(_INT, across))),
        )


def _write(reals: _Reals, tile: _Tile, sums: list[list[Any]], c: Any, ldc: Any, scalars: list[Any]) -> None:
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
        turned = builder.fmul(reals.swap_pairs(vector, width), reals.pairs(-1.0, 1.0, width))
        return reals.add_product(scaled, turned, reals.spread(im, width))

    def results() -> Iterator[tuple[Any, Any]]:
        for j in range(tile.columns):
            for v in range(tile.vectors):
                total = builder.load(sums[j * tile.parts][v])
                if tile.parts == 2:
                    other = reals.swap_pairs(builder.load(sums[2 * j + 1][v]), width)
                    total = reals.add_product(total, other, reals.pairs(-1.0, 1.0, width))
                place = builder.add(builder.mul(ldc, ir.Constant(_INT, j)), ir.Constant(_INT, v * width))
                yield times(total, alpha, alpha_i), reals.at(c, place)

    with builder.if_else(reads) as (updates, overwrites):
        with updates:
            for value, address in results():
                old = times(reals.load(address, width), beta, beta_i)
                reals.store(builder.fadd(value, old), address, width)
        with overwrites:
            for value, address in results():
                reals.store(value, address, width)


@lru_cache
def fused_multiply_adds(real: str, width: int, chains: int) -> Any:
    """``run(rounds, x)``: `chains` independent FMAs of `width` reals in each round; what they come to."""

    @intrinsic
    def run(_: Any, rounds: Any, x: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            reals = _Reals(builder, real)
            factor = reals.spread(arguments[1], width)
            sums = [cgutils.alloca_once(builder, factor.type) for _ in range(chains)]
            for variable in sums:
                builder.store(factor, variable)
            with _loop(builder, arguments[0]):
                for variable in sums:
                    builder.store(reals.add_product(factor, builder.load(variable), factor), variable)
            total = builder.load(sums[0])
            for variable in sums[1:]:
                total = builder.fadd(total, builder.load(variable))
            return builder.extract_element(total, ir.Constant(ir.IntType(32), 0))

        return REALS[real](types.intp, REALS[real]), codegen

    return run
