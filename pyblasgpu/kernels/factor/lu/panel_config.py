"""Config of `getrf_panel`: how many rows blocks and threads have, and which blocks are a cluster."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, Self

from ....errors import require
from ....gpu.workspace import FLAGS
from ...common.kernel_config import WARP, KernelConfig
from .cluster_exchange import reals_of_cluster, words_of_cluster
from .pivot_exchange import words_of_exchange
from .row_exchange import reals_of_search, words_of_search

if TYPE_CHECKING:
    from ....gpu.device import Device

__all__ = ["STEM", "GetrfPanel"]

STEM = "getrf_panel"
OTHER_REGISTERS = 64  # of a thread, besides those for its row
SMALL = 64  # rows of a matrix that is a panel whole
ROWS, TALL = 256, 512  # of a block, and where there would be too many of them
MOST_OF_CLUSTER = 16  # blocks
MANY = 132  # multiprocessors of a Hopper device that was seen to run clusters of 16
VECTORS = 4  # the fewest columns, whole vectors of all dtypes


@dataclass(frozen=True)
class GetrfPanel(KernelConfig):
    """Config of one `getrf_panel` kernel.

    Attributes
    ----------
    ROWS : int
        Rows of a block.
    COLS : int
        The most columns of a panel.
    DIRECT : int
        Blocks up to which each receives the rows of all candidates (`row_exchange`); 0: pivots are searched
        by labels (`pivot_exchange`).
    CLUSTER : int
        Blocks up to which those of a panel are a cluster (`cluster_exchange`), from compute capability 9.0
        on; 0: none.
    PER_THREAD : int
        Rows of a thread; two in clusters alone.
    """

    ROWS: int = ROWS
    COLS: int = 16
    DIRECT: int = 0
    CLUSTER: int = 0
    PER_THREAD: int = 1

    STEM: ClassVar[str] = STEM

    def __post_init__(self):
        require(
            self.ROWS % WARP == 0 and 32 <= self.ROWS <= 1024,
            "threads",
            "ROWS % 32 == 0 and 32 <= ROWS <= 1024",
            ROWS=self.ROWS,
        )
        require(
            self.PER_THREAD == 1 or (self.PER_THREAD == 2 and self.CLUSTER > 0 and self.ROWS % 64 == 0),
            "rows",
            "PER_THREAD == 1, or 2 where CLUSTER > 0 and ROWS % 64 == 0",
            PER_THREAD=self.PER_THREAD,
        )
        require(
            self.COLS % VECTORS == 0 and self.COLS > 0, "vectors", f"COLS % {VECTORS} == 0", COLS=self.COLS
        )
        # the threads of the first block have all rows of U
        require(
            self.threads >= self.COLS, "square", "COLS <= ROWS / PER_THREAD", COLS=self.COLS, ROWS=self.ROWS
        )
        require(0 <= self.DIRECT <= WARP, "candidates", "0 <= DIRECT <= 32", DIRECT=self.DIRECT)
        require(
            0 <= self.CLUSTER <= MOST_OF_CLUSTER,
            "cluster",
            f"0 <= CLUSTER <= {MOST_OF_CLUSTER}",
            CLUSTER=self.CLUSTER,
        )

    @property
    def threads(self) -> int:
        return self.ROWS // self.PER_THREAD

    @property
    def row_reals(self) -> int:
        """Reals of a row."""
        return self.COLS * self.dtype_facts.reals_per_element

    @property
    def registers(self) -> int:
        """Estimated 32-bit registers of a thread."""
        return self.PER_THREAD * self.row_words + OTHER_REGISTERS

    @property
    def results(self) -> int:
        """Reals of the results in shared memory, behind a row if pivots are searched by labels."""
        return self.COLS * self.ROWS * self.dtype_facts.reals_per_element

    @property
    def shared_reals(self) -> int:
        """The results; rows and sizes of candidates."""
        if self.CLUSTER:
            return self.results + reals_of_cluster(self)
        return self.results + (reals_of_search(self) if self.DIRECT else self.row_reals + WARP + 4)

    @property
    def words(self) -> int:
        """Int32 of shared memory before those that are no reals."""
        return self.shared_reals * self.dtype_facts.real_size // 4

    @property
    def shared_bytes(self) -> int:
        """Bytes of the shared reals, the candidates' labels, and the choice."""
        words = words_of_search(self) if self.DIRECT else WARP + 2
        if self.CLUSTER:
            words = words_of_cluster(self)
        return self.shared_reals * self.dtype_facts.real_size + (words + 2) * 4

    def specialize(self, rows: int, device: Device) -> Self:
        """The Config for matrices of `rows` rows: one block where that can be, or a cluster; where there
        would be more blocks than are resident, larger ones. Still more rows are not for this kernel: see
        `applies`.

        A row of a small matrix may have twice the registers. Before Hopper the compiler needs more of them.
        """
        config = self._on(device)
        if rows <= SMALL < self.ROWS:
            if device.cc < (9, 0):
                return replace(config, ROWS=2 * SMALL)
            columns, cluster = min(2 * self.COLS, SMALL), min(self.CLUSTER, 1)
            return replace(config, ROWS=SMALL, COLS=columns, CLUSTER=cluster, PER_THREAD=1)
        while SMALL < rows <= config.ROWS // 2:
            config = replace(config, ROWS=config.ROWS // 2, CLUSTER=min(config.CLUSTER, 1))
        return config if config.grid(rows) == 1 else config._of_several_blocks(rows, device)

    def _on(self, device: Device) -> Self:
        """Return the largest variant of the Config that the device can run."""
        if device.cc < (9, 0):
            height = ROWS if self.CLUSTER else min(self.ROWS, ROWS)
            return replace(self, ROWS=height, CLUSTER=0, PER_THREAD=1)
        most = (
            MOST_OF_CLUSTER if device.cc == (9, 0) and device.sm_count >= MANY else 8
        )  # which all devices have
        return replace(self, CLUSTER=min(self.CLUSTER, most))

    def _of_several_blocks(self, rows: int, device: Device) -> Self:
        config = self
        while config.CLUSTER and config.ROWS <= TALL:
            needed = config.of_kernel.shared_bytes
            if config.grid(rows) <= config.CLUSTER and needed <= device.shared_per_block:
                return config
            config = replace(config, ROWS=2 * config.ROWS)
        if self.CLUSTER > 1 and (self.row_words <= WARP or (self.dtype == "d" and self.COLS == WARP)):
            columns = self.COLS if self.row_words <= WARP else self.COLS // 2  # what registers have room for
            two = replace(self, ROWS=2 * TALL, COLS=columns, PER_THREAD=2)
            if two.grid(rows) <= two.CLUSTER and two.of_kernel.shared_bytes <= device.shared_per_block:
                return two
        if self.CLUSTER:
            free = [replace(self, ROWS=height, CLUSTER=0, PER_THREAD=1) for height in (TALL, ROWS)]
            return next((one for one in free if one.grid(rows) <= one.resident(device)), free[0])
        if self.grid(rows) > self.resident(device) and self.ROWS < TALL:
            columns = self.COLS if device.cc >= (9, 0) else max(self.COLS // 2, VECTORS)
            return replace(self, ROWS=TALL, COLS=columns)
        return self

    def applies(self, rows: int, device: Device) -> bool:
        """Whether all blocks of a panel of `rows` rows run at the same time, as they must."""
        return self.takes_batches(rows) or self.grid(rows) <= self.resident(device)

    def takes_batches(self, rows: int) -> bool:
        """Whether a launch may have several matrices of `rows` rows: no block waits but for its cluster."""
        return self.grid(rows) <= max(self.CLUSTER, 1)

    def resident(self, device: Device) -> int:
        """Blocks that a device runs at the same time, whatever registers the compiler takes, and that can
        send one another what they find.
        """
        registers = min(device.registers_per_block // self.threads // 8 * 8, device.max_registers_per_thread)
        blocks = device.occupancy(self.threads, registers, self.shared_bytes) * device.sm_count
        most, each = (
            FLAGS // 4 - words_of_exchange(self, 0),
            words_of_exchange(self, 1) - words_of_exchange(self, 0),
        )
        return min(blocks, most // each)

    @property
    def of_kernel(self) -> Self:
        """The Config of the kernel: it has room for the largest cluster, so that one serves clusters of all
        sizes.
        """
        return replace(self, CLUSTER=MOST_OF_CLUSTER) if self.CLUSTER > 1 else self

    def takes_outside_columns(self, rows: int) -> bool:
        """Whether a launch may apply its pivots to columns outside the panel: the blocks of a cluster wait
        for one another, and a lane has a row on top.
        """
        return bool(self.CLUSTER) and self.takes_batches(rows) and self.COLS <= WARP

    @property
    def row_words(self) -> int:
        """32-bit registers of a row."""
        return self.row_reals * self.dtype_facts.real_size // 4

    def grid(self, rows: int) -> int:
        """Blocks for a panel of `rows` rows."""
        return -(-rows // self.ROWS)
