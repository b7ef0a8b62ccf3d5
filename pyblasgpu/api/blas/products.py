"""Results of the size of a vector, as SciPy's wrappers return them: in y or x, in a copy, or in a new one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...arguments import Array, Flag, Number, enabled
from ...frontend.arrays.any_array import may_share_memory
from ...frontend.arrays.layouts import Layout
from ...frontend.arrays.vectors import Vector, column
from ...frontend.calls.call import Call
from ...types import Dtype
from ..array_views import views_of
from .vectors import VectorArgument, as_vector, clear_of, parts_of, target_of, unless_whole, whole

__all__ = ["Product", "in_vector"]


class Product:
    """A product of a matrix and a vector, its result in y or in a new vector.

    Parameters
    ----------
    name, dtype, x, y
        Name of the routine, its dtype and vectors.
    matrix : dict of str to array
        The matrix by its argument, with two dimensions.
    extents : (int, int)
        Elements of the result, and of the vector.
    offsets : tuple
        Offset and increment of x, and of y.
    overwrite : bool
        Whether `y` may hold the result.
    key, passed : tuple
        The key under which the call may be kept, and the matrix and the vector as they were passed.
    """

    def __init__(
        self,
        name: str,
        dtype: Dtype,
        matrix: dict[str, Array],
        x: Array,
        y: Array,
        extents: tuple[int, int],
        offsets: tuple[tuple[Any, Any], tuple[Any, Any]],
        overwrite: Flag,
        key: Any = None,
        passed: tuple[Array, ...] = (),
    ) -> None:
        self.key, self.passed = key, passed
        (self.m, self.n), (at_x, at_y) = extents, offsets
        self._views = None if y is None else views_of(name, {**matrix, "x": x, "y": y})
        if self._views is not None:
            *each, x, y = self._views.arrays
            matrix = dict(zip(matrix, each, strict=True))
        self.name, self.dtype, self.y, self.inputs = name, dtype, y, matrix
        self.overwrite = enabled(overwrite, name, "overwrite_y")
        self.x = as_vector(name, "x", x, dtype)
        self.of_x = parts_of(name, {"x": VectorArgument(self.x, *at_x)}, self.n)["x"]
        self.offset, self.increment = (whole(v, name, a) for v, a in zip(at_y, ("offy", "incy"), strict=True))

    def run(self, alpha: Number, beta: Number, multiply: Callable[..., Any]) -> Array:
        """``multiply(call, alpha, beta, a, x)`` runs it; `key` and the `source` of the output follow where it
        may be kept.
        """
        result = self._new(alpha, beta, multiply) if self.y is None else self._added(alpha, beta, multiply)
        return result if self._views is None else self._views.delivered(result)

    def _call(self, x: Array, out: Array, of_out: Vector | None) -> Call:
        vectors = {"x": unless_whole(self.of_x, self.x), "out": of_out}
        return Call(self.name, {**self.inputs, "x": x}, out, None, None, self.dtype, vectors=vectors)

    def _new(self, alpha: Number, beta: Number, multiply: Callable[..., Any]) -> Array:
        """The result in a new vector, zeros where it has no elements."""
        if self.increment == 0 or self.offset < 0:
            wrong = f"offy={self.offset} is negative" if self.increment else "incy is 0"
            raise ValueError(f"{self.name}: {wrong}")
        call = self._call(self.x, None, None)
        factor, _ = call.scalar("alpha", alpha), call.scalar("beta", beta)
        length = 1 + self.offset + (self.m - 1) * abs(self.increment) if self.m else self.offset
        call.set_output(None, (), length, 1)
        if length == self.m and self.increment > 0 and self.key is not None:
            call.views(self.passed)
            return multiply(call, factor, 0, *call.inputs, self.key)
        if length != self.m:
            multiply(call, 0, 0, *call.inputs)
        call.out = column(_flat(call.out), Vector(self.m, self.offset, self.increment))
        return multiply(call, factor, 0, *call.inputs)

    def _added(self, alpha: Number, beta: Number, multiply: Callable[..., Any]) -> Array:
        """The result in y, or in a copy of it. The BLAS leaves y where the matrix has no elements."""
        flat = as_vector(self.name, "y", self.y, self.dtype)
        part = parts_of(self.name, {"y": VectorArgument(flat, self.offset, self.increment)}, self.m)["y"]
        (matrix,) = self.inputs.values()
        overwrite = self.overwrite and not may_share_memory(matrix, flat)
        checked = self._call(self.x, None, None)
        factor, scale = checked.scalar("alpha", alpha), checked.scalar("beta", beta)
        of_y, has_all = unless_whole(part, flat), self.key is not None and flat is self.y
        if has_all and of_y is None and not (overwrite or checked.library.host or 0 in (self.m, self.n)):
            return self._added_to_copy(factor, scale, multiply)
        target = target_of(self.name, self.y, flat, self.dtype, overwrite)
        if 0 in (self.m, self.n):
            return target.array
        call = self._call(clear_of(self.name, self.x, target.vector, self.dtype), target.vector, of_y)
        call.set_output(target.vector, (), self.m, 1)
        if has_all and target.array is self.y:
            call.views(self.passed, self.y)
            return multiply(call, factor, scale, *call.inputs, self.key)
        multiply(call, factor, scale, *call.inputs)
        return target.array

    def _added_to_copy(self, factor: Any, scale: Any, multiply: Callable[..., Any]) -> Array:
        """The result in a copy of y, a whole vector of a device."""
        arrays = {**self.inputs, "x": self.x, "y": self.y}
        vectors = {"x": unless_whole(self.of_x, self.x), "y": None, "out": None}
        call = Call(self.name, arrays, None, None, None, self.dtype, vectors=vectors)
        call.set_output(None, (), self.m, 1)
        call.views((*self.passed, self.y))
        *factors, source = call.inputs
        return multiply(call, factor, scale, *factors, self.key, source)


def _flat(vector: Any) -> Any:
    """A column as an array of one dimension."""
    if isinstance(vector, Layout):
        return vector._replace(shape=vector.shape[:-1], strides=vector.strides[:-1])
    return vector[..., 0]


def in_vector(
    name: str,
    dtype: Dtype,
    matrix: dict[str, Array],
    order: int,
    x: Array,
    at_x: tuple[Any, Any],
    overwrite: Flag,
    run: Callable[..., Any],
    key: Any = None,
    passed: tuple[Array, ...] = (),
) -> Array:
    """Return ``run(call, a, x, in_place)``: in place, or in a copy of x; a whole x is not copied.

    Parameters
    ----------
    name, dtype, x
        Name of the routine, its dtype and vector.
    matrix : dict of str to array
        The triangle by its argument, with two dimensions.
    order : int
        Elements of the vector.
    at_x : tuple
        Offset and increment of x.
    overwrite : bool
        Whether `x` may hold the result.
    run : callable
        Called once, its output set; with `key` too where the call may be kept.
    key, passed : tuple
        See `Product`.
    """
    flat, may_overwrite = as_vector(name, "x", x, dtype), enabled(overwrite, name, "overwrite_x")
    part = parts_of(name, {"x": VectorArgument(flat, *at_x)}, order)["x"]
    if not may_overwrite and part == Vector(flat.shape[0]) and len(getattr(x, "shape", (1,))) == 1:
        vectors = {"x": None, "out": None}
        call = Call(name, {**matrix, "x": flat}, None, None, None, dtype, vectors=vectors)
        call.set_output(None, (), order, 1)
        if key is None:
            return run(call, *call.inputs, False)
        call.views(passed)
        return run(call, *call.inputs, False, key)
    if (views := views_of(name, {**matrix, "x": x})) is not None:
        *each, x = views.arrays
        matrix = dict(zip(matrix, each, strict=True))
        return views.delivered(in_vector(name, dtype, matrix, order, x, at_x, overwrite, run))
    (triangle,) = matrix.values()
    target = target_of(name, x, flat, dtype, may_overwrite and not may_share_memory(triangle, flat))
    of_x = unless_whole(part, flat)
    arrays, parts = {**matrix, "x": target.vector}, {"x": of_x, "out": of_x}
    call = Call(name, arrays, target.vector, None, None, dtype, vectors=parts)
    call.set_output(target.vector, (), order, 1)
    if key is not None and target.array is x:
        call.views(passed, x)
        run(call, *call.inputs, True, key)
    else:
        run(call, *call.inputs, True)
    return target.array
