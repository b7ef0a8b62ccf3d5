"""Functions of JAX's arrays that the formulas of the table use, and transposes that are flags."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp

from ..operators.arrays import Arrays

__all__ = ["ARRAYS", "Turned", "plain"]


class Turned:
    """The conjugate transpose of `array`, which is not computed: a routine takes it by a flag.

    Attributes
    ----------
    array : jax.Array
    """

    __slots__ = ("array",)

    def __init__(self, array: Any) -> None:
        self.array = array

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the transpose."""
        *batch, rows, cols = self.array.shape
        return (*batch, cols, rows)

    @property
    def dtype(self) -> Any:
        """The dtype of the array."""
        return self.array.dtype

    @property
    def mT(self) -> Any:
        """The array itself, conjugated."""
        return self.array.conj()

    def conj(self) -> Any:
        """Return the transpose."""
        return self.array.mT

    def plain(self) -> Any:
        """Return the transpose as an array."""
        return self.array.mT.conj()

    def __add__(self, other: Any) -> Any:
        return self.plain() + plain(other)

    def __radd__(self, other: Any) -> Any:
        return other + self.plain()

    def __rsub__(self, other: Any) -> Any:
        return other - self.plain()

    def __rmul__(self, other: Any) -> Any:
        return other * self.plain()

    def __neg__(self) -> Any:
        return -self.plain()


def plain(x: Any) -> Any:
    """Return an array; what is none stays."""
    return x.plain() if isinstance(x, Turned) else x


class JaxArrays(Arrays):
    """JAX's functions, and the operators of the table as attributes."""

    def tril(self, x: Any, k: int = 0) -> Any:
        return jnp.tril(plain(x), k)

    def triu(self, x: Any, k: int = 0) -> Any:
        return jnp.triu(plain(x), k)

    def diagonal(self, x: Any) -> Any:
        return jnp.diagonal(plain(x), axis1=-2, axis2=-1)

    def embedded(self, diagonal: Any) -> Any:
        return jnp.where(jnp.eye(diagonal.shape[-1], dtype=bool), diagonal[..., None], 0)

    def concatenated(self, arrays: Any, axis: int) -> Any:
        return jnp.concatenate([plain(each) for each in arrays], axis)

    def zeros(self, shape: Any, like: Any) -> Any:
        return jnp.zeros(shape, jnp.finfo(like.dtype).dtype)

    def converted(self, x: Any, like: Any) -> Any:
        return x.astype(like.dtype)

    def is_complex(self, x: Any) -> bool:
        return jnp.issubdtype(x.dtype, jnp.complexfloating)

    def adjoint(self, x: Any) -> Any:
        return x.array if isinstance(x, Turned) else Turned(x)


ARRAYS = JaxArrays()
