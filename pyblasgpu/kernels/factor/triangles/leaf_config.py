"""Base of the Configs of the factorisations' leaves: a triangle in shared memory, a block a matrix."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

from ....errors import require
from ...common.kernel_config import KernelConfig, require_warps

__all__ = ["TriangleInShared"]

VECTOR = 16  # bytes of a load from shared memory


@dataclass(frozen=True)
class TriangleInShared(KernelConfig):
    """Config of a kernel that has a triangle in shared memory, by columns.

    Attributes
    ----------
    ORDER : int
        The largest order of the triangle.
    DIM : int
        Threads of a block.
    """

    ORDER: int = 64
    DIM: int = 128

    #: The orders that `specialize` chooses from.
    ORDERS: ClassVar[tuple[int, ...]] = (32, 64, 128)

    def __post_init__(self) -> None:
        require_warps(DIM=self.DIM)
        require(
            self.ORDER > 0 and self.ORDER % 8 == 0, "order", "ORDER > 0 and ORDER % 8 == 0", ORDER=self.ORDER
        )
        require(self.DIM >= self.ORDER, "thread_a_row", "DIM >= ORDER", DIM=self.DIM, ORDER=self.ORDER)

    @property
    def threads(self) -> int:
        return self.DIM

    @property
    def GROUPS(self) -> int:
        """Threads of a row."""
        return self.DIM // self.ORDER

    @property
    def vector(self) -> int:
        """Elements of a vector from shared memory."""
        return VECTOR // self.dtype_facts.itemsize

    @property
    def rows_below(self) -> int:
        """Rows below the triangle that a block has as well."""
        return 0

    @property
    def ld(self) -> int:
        """Elements from column to column: some more than a column, against bank conflicts."""
        return self.ORDER + self.rows_below + self.padding

    @property
    def padding(self) -> int:
        """Elements between columns, whole vectors."""
        return self.vector

    @property
    def shared_elements(self) -> int:
        return self.ORDER * self.ld

    @property
    def variants(self) -> tuple[Self, ...]:
        orders = {self.specialize(order) for order in self.ORDERS if order <= self.ORDER}
        return tuple(sorted(orders | {self}, key=lambda each: each.ORDER))

    def specialize(self, order: int) -> Self:
        """The Config for matrices of up to `order` rows: with a smaller ORDER where that is enough."""
        enough = [each for each in self.ORDERS if order <= each < self.ORDER]
        return self._with_order(enough[0]) if enough else self

    def fitting(self, shared_per_block: int) -> Self:
        """The Config for a device whose blocks have `shared_per_block` bytes of shared memory: with half the
        ORDER, and so on, where that is not enough.
        """
        config = self
        while config.shared_bytes > shared_per_block and config.ORDER % 16 == 0:
            config = config._with_order(config.ORDER // 2)
        return config

    def _with_order(self, order: int) -> Self:
        changes: dict[str, Any] = {"ORDER": order, "DIM": max(self.DIM * order // self.ORDER, order)}
        return replace(self, **changes)
