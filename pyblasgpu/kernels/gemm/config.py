"""Base of all GEMM Configs: tile, loads, pipeline, layouts of the operands; and their rules."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Self

from ...errors import require
from ...types import Region
from ..common.kernel_config import KernelConfig
from ..common.smem_tile import RUN, SmemTile
from ..common.tile_schedule import tile_count
from ..copy.packing import CBL, LAYOUTS, ROW, Packing

__all__ = ["GemmConfig"]

LOADS_IN_FLIGHT = 16  # loads of a thread that are under way at a time, when partial tiles are added up
REGISTERS, MAX_REGISTERS = 65536, 255  # of 32 bits, of a multiprocessor, and of a thread


@dataclass(frozen=True, kw_only=True)
class GemmConfig(KernelConfig):
    """Base of every GEMM kernel's Config.

    Attributes
    ----------
    trans_a, trans_b : bool
        Whether A is contiguous along k (else m), B along n (else k).
    BLK_M, BLK_N, BLK_K : int
        Tile of C, depth of a k-tile.
    DIM_XA, DIM_YA, DIM_XB, DIM_YB : int
        The threads of a block when they load A, B: along the contiguous dimension, along the other.
    VEC_A, VEC_B : int
        Elements of one global load.
    PAD_A, PAD_B : int
        Elements added to a row of the k-tile in shared memory, against bank conflicts.
    stages : int
        1: the next k-tile is staged through registers (Algorithm 1 of Kurzak et al.). More: the number of
        stages in shared memory, filled by cp.async.
    prefetch : bool
        Whether what a step multiplies is read from shared memory during the step before, also from one
        k-tile to the next; this takes a second set of registers.
    min_blocks : int
        Blocks a multiprocessor must be able to hold: bounds the registers of a thread.
    persistent : bool
        Whether a launch has only the resident blocks, which share all tiles (`tile_schedule`), and load
        k-tiles of one while they multiply those of another.
    through_l1 : bool
        Whether asynchronous copies of 16 bytes pass through the L1 cache, where a sector that two of them
        share need not be loaded twice.
    packed : bool
        Whether A and B are packed (`packing.Packing`) in the layout of k-tiles in shared memory, or by rows:
        nothing is left to transpose, to conjugate, or to mask but C.
    packing_a, packing_b : int
        Layouts of packed operands: ROW, CBL or RBL of `packing`.
    SLICES_K : int
        Groups of a block's threads that share the k of each k-tile; a group has sums of the whole tile of C,
        and the first adds up those of all (`slice_sums`).
    """

    trans_a: bool
    trans_b: bool
    BLK_M: int
    BLK_N: int
    BLK_K: int
    DIM_XA: int
    DIM_YA: int
    DIM_XB: int
    DIM_YB: int
    VEC_A: int = 1
    VEC_B: int = 1
    PAD_A: int = 0
    PAD_B: int = 0
    stages: int = 1
    prefetch: bool = False
    min_blocks: int = 1
    persistent: bool = False
    through_l1: bool = False
    packed: bool = False
    packing_a: int = CBL
    packing_b: int = CBL
    SLICES_K: int = 1

    #: Bytes that are added to a row of a packed k-tile, so that its reads meet no bank twice.
    PACKED_PAD: ClassVar[int] = 0

    @property
    def keeps_k_major(self) -> bool:
        """Whether a k-tile that is contiguous along k stays so in shared memory."""
        return False

    @property
    def shares(self) -> tuple[bool, bool]:
        """Whether A, B pass through shared memory."""
        return True, True

    @property
    def loads_read_only(self) -> bool:
        """Whether loads into shared memory take the read-only path."""
        return False

    @property
    def prefetches_c(self) -> bool:
        """Whether the kernel prefetches tiles of C into L2, where its options say so: it updates factors."""
        return self.persistent and self.dtype in "sd" and not self.trans_a

    @property
    def threads(self) -> int:
        """Threads of a block."""
        raise NotImplementedError

    @property
    def slice_threads(self) -> int:
        """Threads of a block that share a slice of k."""
        return self.threads // self.SLICES_K

    @property
    def steps(self) -> int:
        """Steps in which a k-tile is multiplied, by each slice of its k."""
        raise NotImplementedError

    @property
    def THR_M(self) -> int:
        """Rows of the tile that a thread holds."""
        raise NotImplementedError

    @property
    def THR_N(self) -> int:
        """Columns of the tile that a thread holds."""
        raise NotImplementedError

    @property
    def registers(self) -> int:
        """Estimated 32-bit registers of a thread."""
        raise NotImplementedError

    @property
    def sums(self) -> int:
        """Reals that a thread adds up."""
        return self.THR_M * self.THR_N * self.dtype_facts.reals_per_element

    @property
    def has_many_sums(self) -> bool:
        """Whether they fill half of a thread's registers."""
        return 2 * self._sum_registers > MAX_REGISTERS

    @property
    def has_few_registers(self) -> bool:
        """Whether they fill half of what the blocks of a multiprocessor leave a thread, which is not all."""
        return 2 * self._sum_registers >= self.thread_registers < MAX_REGISTERS

    @property
    def thread_registers(self) -> int:
        """Registers that the blocks of a multiprocessor leave a thread."""
        return REGISTERS // (self.threads * self.min_blocks)

    @property
    def serves_any_region(self) -> bool:
        """Whether one kernel computes all of C or a triangle: blocks have a tile each, and registers are left
        for masks.
        """
        return not (self.persistent or self.has_few_registers or self.has_many_sums)

    @property
    def is_full(self) -> bool:
        """Whether registers and the order of the loop are for one way to load alone: those of a persistent
        block whose waits no other of the multiprocessor covers, and those of many sums.
        """
        return self.min_blocks == 1 if self.persistent else self.has_many_sums

    @property
    def needs_alignment(self) -> bool:
        """Whether the kernel copies by vectors alone, and operands that are not aligned for them take the
        `scalar_variant`.

        One operand is loaded by single elements in any case, sums fill the registers, and the addresses of a
        second way would spoil the order of FMAs of complex numbers: by 12 % of the time.
        """
        is_mixed = min(self.VEC_A, self.VEC_B) == 1 < max(self.VEC_A, self.VEC_B)
        return is_mixed and self.persistent and self.dtype == "c" and self.has_many_sums

    @property
    def _sum_registers(self) -> int:
        return self.sums * self.dtype_facts.real_size // 4

    def check_smem_tile(self, name: str) -> None:
        """Raise `ConfigError` where the threads cannot load the k-tile of operand `name`."""
        smem_tile = self.smem_tile_a if name == "A" else self.smem_tile_b
        smem_tile.check(name, self.threads, asynchronous=self.stages > 1)

    def check_pipeline(self) -> None:
        """Raise `ConfigError` where `stages`, `prefetch` or `SLICES_K` do not fit the rest."""
        require(self.stages >= 1, "stages", "stages >= 1", stages=self.stages)
        require(
            self.SLICES_K == 1 or (self.SLICES_K > 1 and self.stages > 1 and not self.packed),
            "slices_k",
            "SLICES_K >= 1, and 1 unless stages > 1 and not packed",
            SLICES_K=self.SLICES_K,
            stages=self.stages,
            packed=self.packed,
        )
        require(
            self.stages == 1 or all(self.shares),
            "async_is_shared",
            "stages == 1 or (share_a and share_b)",
            stages=self.stages,
            share_a=self.shares[0],
            share_b=self.shares[1],
        )
        require(
            not self.prefetch or (self.stages > 1 and self.steps % 2 == 0),
            "prefetch",
            "prefetch only with stages > 1 and an even number of steps",
            stages=self.stages,
            steps=self.steps,
        )
        require(
            not self.persistent or self.stages > 1,
            "persistent",
            "persistent only with stages > 1",
            persistent=self.persistent,
            stages=self.stages,
        )
        require(
            not self.through_l1 or self.stages > 1,
            "through_l1",
            "through_l1 only with stages > 1",
            through_l1=self.through_l1,
            stages=self.stages,
        )
        require(
            not self.packed or self.layout == "nt",
            "packed",
            "packed only with not trans_a and trans_b",
            packed=self.packed,
            trans_a=self.trans_a,
            trans_b=self.trans_b,
        )
        for name, smem_tile in (("A", self.smem_tile_a), ("B", self.smem_tile_b)):
            require(
                smem_tile.packing in range(len(LAYOUTS)),
                "packing",
                f"packing of {name} in (0, 1, 2)",
                packing=smem_tile.packing,
            )
            if self.packed:
                smem_tile.check_packed(name)

    @cached_property
    def smem_tile_a(self) -> SmemTile:
        shape = self.BLK_M, self.BLK_K, self.DIM_XA, self.DIM_YA, self.VEC_A, self.PAD_A
        return SmemTile(
            self.dtype_facts,
            *shape,
            self.trans_a,
            self.keeps_k_major,
            self.packed,
            self.through_l1,
            self.loads_read_only,
            self.packing_a,
        )

    @cached_property
    def smem_tile_b(self) -> SmemTile:
        shape = self.BLK_N, self.BLK_K, self.DIM_XB, self.DIM_YB, self.VEC_B, self.PAD_B
        order = not self.trans_b, self.keeps_k_major, self.packed, self.through_l1, self.loads_read_only
        return SmemTile(self.dtype_facts, *shape, *order, self.packing_b)

    @property
    def layout(self) -> str:
        return ("t" if self.trans_a else "n") + ("t" if self.trans_b else "n")

    @property
    def reads_before_wait(self) -> tuple[int, ...]:
        """Operands, A or B, that the kernel may read early, as `KernelSource.reads_before_wait`."""
        return ()

    @property
    def offset_b(self) -> int:
        """Reals of a stage before the k-tile of B."""
        return self.smem_tile_a.reals * self.shares[0]

    @property
    def stage_reals(self) -> int:
        """Reals of the k-tiles of A and B that pass through shared memory together."""
        return self.offset_b + self.smem_tile_b.reals * self.shares[1]

    @property
    def slice_reals(self) -> int:
        """Reals of shared memory by which slices of k are added up."""
        return (self.SLICES_K - 1) * self.slice_threads * self.sums

    @property
    def shared_bytes(self) -> int:
        """Shared memory of a block; a persistent one loads k-tiles while slices are added up."""
        stages, slices = self.stages * self.stage_reals, self.slice_reals
        return (stages + slices if self.persistent else max(stages, slices)) * self.dtype_facts.real_size

    @property
    def staged_elements(self) -> int:
        """Elements that a thread holds while k-tiles are staged through registers."""
        if self.stages > 1:
            return 0
        share_a, share_b = self.shares
        return (self.BLK_M * share_a + self.BLK_N * share_b) * self.BLK_K // self.threads

    @property
    def fixup_loads(self) -> tuple[int, int]:
        """Loads of a thread in flight when partial tiles are added up: of one tile, and tiles."""
        reals = self.THR_M * self.THR_N * self.dtype_facts.reals_per_element
        group = next(count for count in range(min(reals, LOADS_IN_FLIGHT), 0, -1) if reals % count == 0)
        return group, max(LOADS_IN_FLIGHT // reals, 1)

    def for_alignment(self, a: int, b: int) -> Self:
        """This Config where A, B can be loaded by vectors of `a`, `b` elements, else its `scalar_variant`."""
        return self if a >= self.VEC_A and b >= self.VEC_B else self.scalar_variant

    @property
    def scalar_variant(self) -> Self:
        """Config with global loads of single elements, which serve operands of any alignment.

        Elements of 16 bytes pass through the L1 cache; for smaller ones that makes no difference.
        """
        one = replace(self, VEC_A=1, VEC_B=1, through_l1=False)
        return one.with_cache_policy(True) or one

    def with_cache_policy(self, through_l1: bool) -> Self | None:
        """Return the Config with copies that do or do not pass `through_l1`; None where none of them can."""
        k_tiles = self.smem_tile_a, self.smem_tile_b
        if self.stages == 1 or all(smem_tile.load_bytes != RUN for smem_tile in k_tiles):
            return None
        return replace(self, through_l1=through_l1)

    def for_packed(self) -> Self:
        """Return the Config for packed operands; raises `ConfigError` where a rule is broken."""
        if self.packed:
            return self
        require(self.stages > 1, "packed", "stages > 1", stages=self.stages)
        size = self.dtype_facts.itemsize
        loads = {"DIM_X": self.threads, "DIM_Y": 1, "VEC_": RUN // size, "PAD_": self.PACKED_PAD // size}
        changes: dict[str, Any] = {f"{what}{name}": x for what, x in loads.items() for name in "AB"}
        return replace(self, packed=True, trans_a=False, trans_b=True, **changes)

    def packed_as(self, a: int, b: int) -> Self:
        """Return the Config for operands packed as ROW, CBL or RBL each, also where they do not pass through
        shared memory; raises `ConfigError` where a rule is broken. The Config's layout must be 'nt'.
        """
        return replace(self, packed=True, packing_a=a, packing_b=b)

    @cached_property
    def packings(self) -> tuple[Packing, Packing]:
        """Packing of A and B, the latter transposed, for a Config that is `packed`."""
        a, b = (
            Packing(
                LAYOUTS[smem_tile.packing],
                smem_tile.blk,
                smem_tile.depth,
                smem_tile.pad * (smem_tile.packing != ROW),
            )
            for smem_tile in (self.smem_tile_a, self.smem_tile_b)
        )
        return a, b

    def grid(self, m: int, n: int, region: Region = Region.ALL) -> int:
        """Tiles of an m-by-n C, or of a region of it: blocks along x of an ordinary kernel."""
        return tile_count(self.BLK_M, self.BLK_N, m, n, region)
