"""The Configs of `gemv_n` and `gemv_t`, and what their flags are."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Self

from ...errors import require
from .config import LOAD, VectorLoads, require_threads

__all__ = ["AFTER", "ALL", "BEFORE", "CONJ_A", "CONJ_X", "UNIT", "Gemv", "GemvN", "GemvT"]

#: Which terms of the sum of output o there are: all, those up to number o, those from it on.
ALL, BEFORE, AFTER = 0, 1, 2
#: Bits of the flags.
CONJ_A, CONJ_X, UNIT = 1, 2, 4

MORE_LOADS = 2  # times as many loads of single reals as of vectors
MANY_TILES = 16  # from which on blocks need not be made smaller for their number


@dataclass(frozen=True)
class Gemv(VectorLoads):
    """Config of one kernel.

    Attributes
    ----------
    DIM_O, DIM_R : int
        Threads along the outputs, and along the sums.
    THR_O : int
        Outputs of a thread.
    THR_R : int
        Loads along the sum that a thread has under way for each output, or each vector of outputs.
    MIN_STEPS : int
        Steps along the sum that a slice has at least.
    """

    DIM_O: int = 32
    DIM_R: int = 8
    THR_O: int = 4
    THR_R: int = 4
    MIN_STEPS: int = 1

    STEM: ClassVar[str]
    BY_OUTPUT: ClassVar[bool]  # whether neighbours in memory belong to neighbouring outputs

    def __post_init__(self):
        super().__post_init__()
        require_threads(self.threads, DIM_O=self.DIM_O, DIM_R=self.DIM_R)
        require(
            self.DIM_R > 0 and self.DIM_R & (self.DIM_R - 1) == 0,
            "tree",
            "DIM_R is a power of two",
            DIM_R=self.DIM_R,
        )
        require(self.THR_O % self.VEC_O == 0, "vectors", "THR_O % VEC == 0", THR_O=self.THR_O, VEC=self.VEC_O)
        require(self.THR_R > 0 and self.MIN_STEPS > 0, "steps", "THR_R > 0 and MIN_STEPS > 0",
                THR_R=self.THR_R, MIN_STEPS=self.MIN_STEPS)  # fmt: skip

    @property
    def threads(self) -> int:
        return self.DIM_O * self.DIM_R

    @property
    def VEC_O(self) -> int:
        """Outputs that a load serves."""
        return self.VEC if self.BY_OUTPUT else 1

    @property
    def VEC_R(self) -> int:
        """Terms of a sum that a load brings."""
        return 1 if self.BY_OUTPUT else self.VEC

    @property
    def BLK_O(self) -> int:
        """Outputs of a block."""
        return self.DIM_O * self.THR_O

    @property
    def STEP(self) -> int:
        """Terms of a sum that a block adds at a time."""
        return self.DIM_R * self.VEC_R * self.THR_R

    @property
    def shared_bytes(self) -> int:
        """A sum of each output of each thread, and a word."""
        return self.DIM_R * (self.BLK_O | 1) * self.dtype_facts.itemsize + 16

    def with_alignment(self, alignment: int) -> Self:
        """As that of `VectorLoads`, with as many elements under way, as far as there are registers."""
        config = super().with_alignment(alignment)
        return replace(config, THR_R=self.THR_R * min(self.VEC_R // config.VEC_R, MORE_LOADS))

    @property
    def is_contiguous(self) -> bool:
        """Whether what a load brings has neighbours in memory, at any number of loads."""
        return self.BYTES == LOAD

    def serving(self, outputs: int, terms: int) -> Self:
        """That one of `forms` which keeps most threads busy."""
        raise NotImplementedError

    def forms(self) -> tuple[Self, ...]:
        """The Config, and how it looks for few outputs, short sums, and both."""
        raise NotImplementedError

    def tiles(self, outputs: int) -> int:
        """Blocks for so many outputs, and one slice."""
        return -(-outputs // self.BLK_O)

    def terms_per_slice(self, terms: int, slices: int) -> int:
        """A whole number of steps."""
        return -(-terms // (slices * self.STEP)) * self.STEP


@dataclass(frozen=True)
class GemvN(Gemv):
    """Config of `gemv_n`; see `Gemv`."""

    STEM: ClassVar[str] = "gemv_n"
    BY_OUTPUT: ClassVar[bool] = True

    def serving(self, outputs: int, terms: int) -> Self:
        _, few, fewer, short, small = self.forms()
        if outputs <= fewer.BLK_O:
            return small if terms <= 4 * small.STEP else fewer
        if outputs <= MANY_TILES * few.BLK_O:
            return few
        return short if terms <= 4 * short.STEP else self

    def forms(self) -> tuple[Self, ...]:
        few = replace(self, DIM_O=self.DIM_O // 2, DIM_R=self.DIM_R * 2)
        fewer = replace(self, DIM_O=self.DIM_O // 4, DIM_R=self.DIM_R * 4)
        short = replace(self, DIM_R=self.DIM_R // 2)
        return self, few, fewer, short, replace(fewer, DIM_R=fewer.DIM_R // 8)


@dataclass(frozen=True)
class GemvT(Gemv):
    """Config of `gemv_t`; see `Gemv`."""

    DIM_O: int = 8
    DIM_R: int = 32
    THR_O: int = 2
    THR_R: int = 4
    MIN_STEPS: int = 4

    STEM: ClassVar[str] = "gemv_t"
    BY_OUTPUT: ClassVar[bool] = False

    def serving(self, outputs: int, terms: int) -> Self:
        _, short, shorter, small = self.forms()
        if outputs < MANY_TILES * MANY_TILES * self.BLK_O:
            return small if terms <= 2 * small.STEP else self
        if terms < short.STEP:
            return shorter
        return short if terms < 4 * self.STEP else self

    def forms(self) -> tuple[Self, ...]:
        short = replace(self, THR_O=self.THR_O * 2, THR_R=self.THR_R // 2)
        shorter = replace(short, DIM_O=short.DIM_O * 8, DIM_R=short.DIM_R // 8)
        return self, short, shorter, replace(self, DIM_R=self.DIM_R // 8)
