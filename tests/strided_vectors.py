"""Vectors in memory that is NaN around them, and tells who wrote there."""

from __future__ import annotations

import numpy as np

__all__ = ["Strided"]


class Strided:
    """Vectors with an increment, in memory of their own.

    Parameters
    ----------
    values : numpy.ndarray
        Of shape (n,), or (batch, n).
    increment : int
        Elements from one to the next; a negative one runs backwards.
    shift : int
        Reals before the first element from an aligned address.

    Attributes
    ----------
    view : numpy.ndarray
        The vectors, of the shape of `values`.
    increment, batch_stride : int
        In elements.
    """

    def __init__(self, values: np.ndarray, increment: int = 1, shift: int = 0):
        stack, size = np.atleast_2d(values), values.itemsize
        batch, n = stack.shape
        span = (n - 1) * abs(increment) + 1
        self.increment, self.batch_stride = increment, -(-(span + 1) // 4) * 4
        raw = np.full((batch * self.batch_stride + 4) * size + 64, 0xFF, np.uint8)
        start = -raw.ctypes.data % 64 + shift * stack.real.itemsize
        count = (raw.size - start) // size
        memory = raw[start : start + count * size].view(values.dtype)
        first = 0 if increment > 0 else span - 1
        positions = first + increment * np.arange(n) + self.batch_stride * np.arange(batch)[:, None]
        memory[positions] = stack
        strides = self.batch_stride * size, increment * size
        view = np.lib.stride_tricks.as_strided(memory[first:], stack.shape, strides)
        self.view = view.reshape(values.shape) if batch == 1 else view
        assert np.shares_memory(self.view, raw)
        bytes_of = (start + positions[..., None] * size + np.arange(size)).ravel()
        self._others = np.delete(np.arange(raw.size), bytes_of)
        self._raw = raw

    def unharmed(self) -> bool:
        """Whether nothing but the vectors was written."""
        return bool((self._raw[self._others] == 0xFF).all())
