"""Many Configs of a family as one, so that a formula of one computes for all: its attributes are columns.

A column is an array of (Configs, 1); extents that are a row, (1, problems), make a table of it, and extents
that are columns a problem for each. The formulas use operators, and for what has none the functions here,
which take plain numbers too.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import hypot
from typing import Any

import numpy as np

from ..kernels.common.tile_schedule import tile_count
from ..types import Region

__all__ = ["Columns", "both", "larger", "pick", "smaller", "up"]


class Columns:
    """Configs of one family and dtype, persistent all or none.

    Parameters
    ----------
    configs : sequence
        At least one.
    resident : array
        A column: the blocks of each that a multiprocessor holds, not 0.
    numbers : sequence of int, optional
        The Config of each row of a column, by its number; by default each Config has one row.
    """

    def __init__(self, configs: Sequence[Any], resident: np.ndarray, numbers: Sequence[int] | None = None):
        self.configs, self.numbers, one = configs, numbers, configs[0]
        self.resident = self.rows(resident)
        self.STEM, self.dtype_facts, self.persistent = one.STEM, one.dtype_facts, one.persistent

    def __getattr__(self, name: str) -> Any:
        column = self.rows(np.array([[getattr(config, name)] for config in self.configs]))
        setattr(self, name, column)
        return column

    def rows(self, values: np.ndarray) -> np.ndarray:
        """The rows of a column, or of a table, of `values` of each Config."""
        return values if self.numbers is None else values[np.asarray(self.numbers)]

    @property
    def fixup_loads(self) -> tuple[np.ndarray, np.ndarray]:
        """`GemmConfig.fixup_loads` of each."""
        loads, together = self.rows(np.array([config.fixup_loads for config in self.configs])).T[:, :, None]
        return loads, together

    def grid(self, m: Any, n: Any, region: Region = Region.ALL) -> Any:
        """Tiles of C, as of a Config."""
        return tile_count(self.BLK_M, self.BLK_N, m, n, region)


def larger(x: Any, y: Any) -> Any:
    """The larger of two."""
    return np.maximum(x, y) if isinstance(x, np.ndarray) or isinstance(y, np.ndarray) else max(x, y)


def smaller(x: Any, y: Any) -> Any:
    """The smaller of two."""
    return np.minimum(x, y) if isinstance(x, np.ndarray) or isinstance(y, np.ndarray) else min(x, y)


def both(x: Any, y: Any) -> Any:
    """The root of the sum of their squares."""
    return np.hypot(x, y) if isinstance(x, np.ndarray) or isinstance(y, np.ndarray) else hypot(x, y)


def pick(condition: Any, x: Any, y: Any) -> Any:
    """`x` where `condition` holds, else `y`."""
    return np.where(condition, x, y) if isinstance(condition, np.ndarray) else x if condition else y


def up(x: Any) -> Any:
    """The next whole number."""
    return -(-x // 1)
