"""The table of a ragged batch: a problem is a row of words and one of reals, and a block has one problem.

Memory is read as words of int32, the lower half of a long integer first. A row of a table of host memory is
made by NumPy with the same offsets.
"""

from __future__ import annotations

from ...gpu.backend import cuda, device_function, ptx, unrolled

__all__ = ["ROW_WORDS", "row_reader", "long_integer"]

ROW_WORDS = 20  # of int32: five loads of 16 bytes


def long_integer():
    """``value(words, i)``: the integer of 64 bits whose halves are words i and i + 1."""
    int64 = ptx.types.int64

    @device_function
    def value(words, i):
        return int64(words[i]) & int64(0xFFFFFFFF) | int64(words[i + 1]) << int64(32)

    return value


def row_reader():
    """``read(words, problems, owners)``: the row of this block's problem; it returns the problem's number."""
    int32, int64 = ptx.types.int32, ptx.types.int64
    read_word, read_four = ptx.load_global(1, False), ptx.load_global(4, False)

    @device_function
    def read_part(i, words, problems, row):
        read_four(words, i * 4, problems, row + i * 4, True)

    read_all = unrolled(ROW_WORDS // 4, read_part)

    @device_function
    def read(words, problems, owners):
        owner = cuda.local.array(1, int32)
        read_word(owner, 0, owners, int64(cuda.blockIdx.x), True)
        read_all(0, words, problems, int64(owner[0]) * ROW_WORDS)
        return owner[0]

    return read
