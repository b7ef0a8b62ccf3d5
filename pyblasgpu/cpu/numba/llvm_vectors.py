"""LLVM of kernels for the processor: reals at addresses, and vectors of them.

An *address* is an integer; indices count reals.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from llvmlite import ir
from numba import types
from numba.core import cgutils

__all__ = ["INT", "REALS", "Reals", "loop"]

REALS: dict[str, Any] = {"float32": types.float32, "float64": types.float64}
_LLVM = {"float32": ir.FloatType(), "float64": ir.DoubleType()}
_SIZE = {"float32": 4, "float64": 8}
INT = ir.IntType(64)
_FLAGS = ["contract"]  # a product and a sum may become one FMA


def _pointer(builder: Any, address: Any, kind: Any) -> Any:
    return builder.inttoptr(address, kind.as_pointer())


class Reals(NamedTuple):
    """Reals of one type at addresses, and vectors of them."""

    builder: Any
    real: str

    @property
    def size(self) -> int:
        return _SIZE[self.real]

    def at(self, address: Any, index: Any) -> Any:
        """The address of a real."""
        if isinstance(index, int):
            index = ir.Constant(INT, index)
        return self.builder.add(address, self.builder.mul(index, ir.Constant(INT, self.size)))

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


@contextmanager
def loop(builder: Any, count: Any) -> Iterator[Any]:
    with cgutils.for_range(builder, count, intp=INT) as loop:
        yield loop.index
