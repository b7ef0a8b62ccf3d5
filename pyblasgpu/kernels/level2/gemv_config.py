"""The Config of `gemv`, and what its options are."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Self

from ...errors import require
from ...types import DTYPES
from ..common.kernel_config import require_warps
from .config import LOAD, WARP, VectorLoads

__all__ = ["AFTER", "ALL", "BEFORE", "Gemv"]

#: Terms of the sum of output o: all, those up to number o, those from it on.
ALL, BEFORE, AFTER = 0, 1, 2
UNDER_WAY = 8  # vectors of A that a thread loads at a time, where nothing was tuned
REGISTERS = 16  # of addresses, counters and predicates, besides what `registers` counts


def _is_power_of_2(number: int) -> bool:
    return number > 0 and number & (number - 1) == 0


@dataclass(frozen=True)
class Gemv(VectorLoads):
    """Config of `gemv`; DIM_R and MIN_STEPS are run-time options, and make no kernel of their own.

    Attributes
    ----------
    transposed : bool
        Whether neighbours in memory are terms of one sum, as where the matrix is row-major; else they belong
        to neighbouring outputs.
    WARPS : int
        Warps of a block.
    DIM_R : int
        Threads along the sums; the others are along the outputs.
    THR_O : int
        Outputs of a thread.
    THR_R : int
        Loads along the sum that a thread has under way for each output, or each vector of outputs.
    MIN_STEPS : int
        Steps along the sum that a slice has at least.
    """

    transposed: bool = False
    WARPS: int = 8
    DIM_R: int = 8
    THR_O: int = 4
    THR_R: int = 4
    MIN_STEPS: int = 1

    STEM: ClassVar[str] = "gemv"
    stages: ClassVar[int] = 1

    def __post_init__(self):
        super().__post_init__()
        require_warps(WARP=WARP, WARPS=self.WARPS)
        require(_is_power_of_2(self.WARPS), "warps", "WARPS is a power of two", WARPS=self.WARPS)
        require(
            _is_power_of_2(self.DIM_R) and self.threads >= self.DIM_R,
            "threads_along_sums",
            "DIM_R is a power of two and DIM_R <= 32 * WARPS",
            DIM_R=self.DIM_R,
            WARPS=self.WARPS,
        )
        require(_is_power_of_2(self.THR_O), "outputs", "THR_O is a power of two", THR_O=self.THR_O)
        require(self.THR_O % self.VEC_O == 0, "vectors", "THR_O % VEC == 0", THR_O=self.THR_O, VEC=self.VEC_O)
        require(
            self.THR_R > 0 and self.MIN_STEPS > 0,
            "steps",
            "THR_R > 0 and MIN_STEPS > 0",
            THR_R=self.THR_R,
            MIN_STEPS=self.MIN_STEPS,
        )

    @property
    def threads(self) -> int:
        return WARP * self.WARPS

    @property
    def min_blocks(self) -> int:
        """Blocks that a multiprocessor holds at least."""
        return max(512 // self.threads, 1)

    @property
    def DIM_O(self) -> int:
        """Threads along the outputs."""
        return self.threads // self.DIM_R

    @property
    def LOG_R(self) -> int:
        """The logarithm of DIM_R, as the kernel receives it."""
        return self.DIM_R.bit_length() - 1

    @property
    def VEC_O(self) -> int:
        """Outputs that a load serves."""
        return 1 if self.transposed else self.VEC

    @property
    def VEC_R(self) -> int:
        """Terms of a sum in a load."""
        return self.VEC if self.transposed else 1

    @property
    def BLK_O(self) -> int:
        """Outputs of a block."""
        return self.DIM_O * self.THR_O

    @property
    def BLK_M(self) -> int:
        """Rows of a tile, by the name that all families have."""
        return self.BLK_O

    @property
    def BLK_N(self) -> int:
        """Terms of a sum that a block adds at a time."""
        return self.STEP

    @property
    def STEP(self) -> int:
        """Terms of a sum that a block adds at a time."""
        return self.DIM_R * self.VEC_R * self.THR_R

    @property
    def registers(self) -> int:
        """An estimate: what a thread holds of A and x, and its sums."""
        reals = self.THR_R * (self.THR_O * self.VEC_R + self.VEC_R) + self.THR_O
        facts = self.dtype_facts
        return REGISTERS + reals * facts.reals_per_element * facts.real_size // 4

    @property
    def reuse(self) -> float:
        """FMAs for each element that is loaded: A is read once."""
        return 1.0

    @property
    def shared_bytes(self) -> int:
        """A sum of each output of each thread, at any DIM_R, and a word."""
        elements = max(self.threads * self.THR_O + self.WARPS, 2 * self.threads)
        return elements * self.dtype_facts.itemsize + LOAD

    @property
    def layout(self) -> str:
        """Layout, as the tuned values have it: 't' where A is transposed, else 'n'."""
        return "t" if self.transposed else "n"

    @property
    def kernel(self) -> Self:
        """Equal for the Configs that one kernel serves."""
        return replace(self, DIM_R=WARP, MIN_STEPS=1)

    @property
    def is_contiguous(self) -> bool:
        """Whether a load has neighbours in memory, at any number of loads."""
        return self.BYTES == LOAD

    @property
    def variants(self) -> tuple[Self, ...]:
        return self, self.fallbacks(self.dtype, self.transposed)[0]

    @classmethod
    def defaults(cls, dtype: str, transposed: bool) -> tuple[Self, ...]:
        """Return the Configs where nothing was tuned: one kernel, in all arrangements of its threads."""
        width = max(LOAD // DTYPES[dtype].itemsize, 1)
        outputs = 2 if transposed else min(4, 2 * width)
        loads = UNDER_WAY // (outputs if transposed else outputs // width)
        return cls(dtype, transposed=transposed, WARPS=16, THR_O=outputs, THR_R=loads).arrangements

    @classmethod
    def fallbacks(cls, dtype: str, transposed: bool) -> tuple[Self, ...]:
        """Return the Configs for operands that vectors do not fit, and for many small matrices: one kernel,
        of which a multiprocessor holds two blocks.
        """
        real_size = DTYPES[dtype].real_size
        outputs, loads = (2, 4 if dtype == "z" else 8) if transposed else (2 if dtype == "z" else 4, 4)
        return cls(dtype, real_size, transposed, THR_O=outputs, THR_R=loads).arrangements

    @property
    def arrangements(self) -> tuple[Self, ...]:
        """The Configs of the same kernel, its threads along outputs and sums in any way."""
        dims = (dim for dim in _DIMS[self.transposed] if dim <= self.threads)
        return tuple(replace(self, DIM_R=dim) for dim in dims)

    def grid(self, outputs: int) -> int:
        """Blocks for `outputs` outputs, and one slice."""
        return -(-outputs // self.BLK_O)

    def terms_per_slice(self, terms: int, slices: int) -> int:
        """A whole number of steps."""
        return -(-terms // (slices * self.STEP)) * self.STEP


#: Threads along the sums, by whether the matrix is transposed.
_DIMS = {False: (4, 8, 16, 32, 64, 128), True: (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)}
