"""Compilation of kernels for the processor: `njit`, and intrinsics that write LLVM's vectors.

An *address* is an integer; indices count reals. Imported when a kernel is built, as it imports Numba.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from llvmlite import binding, ir
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic

from .llvm_vectors import INT, REALS, Reals, loop
from .register_tile import rank_k_update

__all__ = [
    "add_row",
    "divide_row",
    "scale_row",
    "REALS",
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


def host_cpu() -> tuple[str, dict[str, bool]]:
    """LLVM's name of the processor, and its features."""
    return binding.get_host_cpu_name(), dict(binding.get_host_cpu_features())


@lru_cache
def load(real: str) -> Any:
    """``load(address, index)``: a real."""

    @intrinsic
    def load_real(_: Any, address: Any, index: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            reals = Reals(builder, real)
            return reals.load(reals.at(*arguments))

        return REALS[real](types.intp, types.intp), codegen

    return load_real


@lru_cache
def store(real: str) -> Any:
    """``store(address, index, value)``."""

    @intrinsic
    def store_real(_: Any, address: Any, index: Any, value: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            reals = Reals(builder, real)
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
            reals = Reals(builder, real)
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
            reals = Reals(builder, real)

            def row(address: Any, step: Any, i: int) -> Any:
                return reals.at(address, builder.mul(step, ir.Constant(INT, i)))

            rows = [reals.load(row(source, source_step, i), count * parts) for i in range(count)]
            for i, vector in enumerate(_transposed_rows(reals, rows, parts)):
                reals.store(vector, row(target, target_step, i), count * parts)

        return types.void(*[types.intp] * 4), codegen

    return run


def _transposed_rows(reals: Reals, rows: list[Any], parts: int) -> list[Any]:
    """Transpose by exchanging ever smaller halves of pairs of rows."""
    half = len(rows) // 2
    while half:
        for i in range(len(rows)):
            if not i & half:
                rows[i], rows[i + half] = _exchanged(reals, rows[i], rows[i + half], half, parts)
        half //= 2
    return rows


def _exchanged(reals: Reals, low: Any, high: Any, half: int, parts: int) -> tuple[Any, Any]:
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


@lru_cache
def add_row(real: str, parts: int, width: int, vectors: int) -> Any:
    """``add(target, source, re, im)``: ``target += (re + i im) source``, in `vectors` of `width` reals."""

    @intrinsic
    def add(_: Any, target: Any, source: Any, re: Any, im: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> None:
            target, source, re, im = arguments
            reals = Reals(builder, real)
            for v in range(vectors):
                x = reals.load(reals.at(source, v * width), width)
                old = reals.load(reals.at(target, v * width), width)
                new = reals.add_product(old, x, reals.spread(re, width))
                if parts == 2:
                    swapped = builder.fmul(reals.swap_pairs(x, width), reals.pairs(-1.0, 1.0, width))
                    new = reals.add_product(new, swapped, reals.spread(im, width))
                reals.store(new, reals.at(target, v * width), width)

        return types.void(types.intp, types.intp, REALS[real], REALS[real]), codegen

    return add


@lru_cache
def scale_row(real: str, parts: int, width: int, vectors: int) -> Any:
    """``scale(target, re, im)``: ``target *= re + i im``."""

    @intrinsic
    def scale(_: Any, target: Any, re: Any, im: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> None:
            target, re, im = arguments
            reals = Reals(builder, real)
            for v in range(vectors):
                x = reals.load(reals.at(target, v * width), width)
                new = builder.fmul(x, reals.spread(re, width))
                if parts == 2:
                    swapped = builder.fmul(reals.swap_pairs(x, width), reals.pairs(-1.0, 1.0, width))
                    new = reals.add_product(new, swapped, reals.spread(im, width))
                reals.store(new, reals.at(target, v * width), width)

        return types.void(types.intp, REALS[real], REALS[real]), codegen

    return scale


@lru_cache
def divide_row(real: str, width: int, vectors: int) -> Any:
    """``divide(target, divisor)``: each real by a real, truly."""

    @intrinsic
    def divide(_: Any, target: Any, divisor: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> None:
            target, divisor = arguments
            reals = Reals(builder, real)
            for v in range(vectors):
                at = reals.at(target, v * width)
                reals.store(builder.fdiv(reals.load(at, width), reals.spread(divisor, width)), at, width)

        return types.void(types.intp, REALS[real]), codegen

    return divide


@lru_cache
def fused_multiply_adds(real: str, width: int, chains: int) -> Any:
    """``run(rounds, x)``: `chains` independent FMAs of `width` reals in each round; return their sum."""

    @intrinsic
    def run(_: Any, iterations: Any, x: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            reals = Reals(builder, real)
            factor = reals.spread(arguments[1], width)
            sums = [cgutils.alloca_once(builder, factor.type) for _ in range(chains)]
            for variable in sums:
                builder.store(factor, variable)
            with loop(builder, arguments[0]):
                for variable in sums:
                    builder.store(reals.add_product(factor, builder.load(variable), factor), variable)
            total = builder.load(sums[0])
            for variable in sums[1:]:
                total = builder.fadd(total, builder.load(variable))
            return builder.extract_element(total, ir.Constant(ir.IntType(32), 0))

        return REALS[real](types.intp, REALS[real]), codegen

    return run
