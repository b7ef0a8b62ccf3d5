"""Many Configs of a family as one, so that a formula of one computes for all: its attributes are columns.

A column is an array of (Configs, 1); extents that are a row, (1, problems), make a table of it. The formulas
use operators, and for what has none the functions here, which take plain numbers too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..kernels.common.tile_schedule import tile_count
from ..types import Region

__all__ = ["Columns", "larger", "pick", "smaller", "up"]


class Columns:
    """Configs of one family and dtype, persistent all or none.

    Parameters
    ----------
    configs : sequence
        At least one.
    resident : array
        A column: the blocks of each that a multiprocessor holds, not 0.
    """

    def __init__(self, configs: Sequence[Any], resident: np.ndarray):
        self.configs, self.resident, one = configs, resident, configs[0]
        self.STEM, self.dtype_facts, self.persistent = one.STEM, one.dtype_facts, one.persistent

    def __getattr__(self, name: str) -> Any:
        column = np.array([[getattr(config, name)] for config in self.configs])
        setattr(self, name, column)
        return column

    @property
    def fixup_loads(self) -> tuple[np.ndarray, np.ndarray]:
        """`GemmConfig.fixup_loads` of each."""
        loads, together = np.array([config.fixup_loads for config in self.configs]).T[:, :, None]
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


def pick(condition: Any, x: Any, y: Any) -> Any:
    """`x` where `condition` holds, else `y`."""
    return np.where(condition, x, y) if isinstance(condition, np.ndarray) else x if condition else y


def up(x: Any) -> Any:
    """The next whole number."""
    return -(-x // 1)
