"""LU factors by block columns: of host matrices on one card or several, of device arrays on several."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from ...tasks import cut, getrf
from ..arrays.streams import contexts
from ..engine_options import EngineOptions
from ..handle import watched
from .factor_call import FactorCall
from .lazy_routines import policy_at
from .tiled_call import engine_module, follow_stream, matrix_of, prepare_device_output, weights_of

__all__ = ["columns_of_block", "factor_by_columns"]

#: The fewest columns of a block column, and how many of these a card should hold.
FEWEST, HELD = 128, 6


def factor_by_columns(call: FactorCall, options: EngineOptions, source: Any) -> tuple[Any, np.ndarray, int]:
    """Run GETRF on the output of a call, which holds `source` at first; the factors, pivots and info.

    Pivots and info are in host memory.
    """
    engine = engine_module("run")
    assert call.device is not None
    devices = options.devices or (call.device,)
    limit = engine.memory_limit(devices, options.max_device_memory)
    m, n = call.out.shape
    policy = policy_at(call.device)
    columns = int(policy.tiled_lu_columns)
    block = columns_of_block(m, n, call.dtype.itemsize, limit, len(devices), columns)
    count = min(m, n)
    tasks = getrf(_cut(m, count, block), _cut(n, count, block))
    is_held = m * n * call.dtype.itemsize < limit * len(devices) / 2
    if len(devices) > 1 and is_held and len(tasks.grids["a"].cols) >= policy.tiled_lu_min_panels:
        tasks = engine_module("order").by_panels(tasks)
    tasks = engine_module("block_columns").by_columns(tasks)
    # an integer is the first four bytes of an element
    elements = np.zeros((count, 1), call.dtype.name)
    with contexts().current_context(call.device):
        matrices = {
            "a": matrix_of(call, "a", tasks.grids["a"], call.out, source),
            "piv": matrix_of(call, "piv", tasks.grids["piv"], elements),
        }
        follow_stream(call)
    owners = engine_module("placement").owners_of(tasks, weights_of(devices))
    plan = engine_module("schedule").Schedule(tasks, owners)
    stream = prepare = None
    if not call.library.host:
        stream = engine.CallerStream(call.device, call.stream)
        prepare = partial(prepare_device_output, call, source)
    call.note_write()
    with watched(call.name, options.progress) as report:
        controls = engine.Controls(progress=report)
        info = engine.run_tasks(plan, matrices, devices, limit, stream, (), controls, prepare=prepare)
    pivots = elements.view(np.int32)[:, 0].copy()
    pivots += np.arange(count, dtype=np.int32) // block * block  # a panel counts from its first row
    return call.delivered(), pivots, info


def columns_of_block(m: int, n: int, itemsize: int, limit: int, cards: int, columns: int) -> int:
    """The columns of a block column, at most `columns`, of an m by n matrix on cards of `limit` bytes."""
    block = columns
    while block > FEWEST and (m * block * itemsize * HELD > limit or n < 2 * cards * block):
        block //= 2
    return min(block, m, n)


def _cut(extent: int, count: int, block: int) -> tuple[int, ...]:
    """A dimension cut so that the tiles on the diagonal are square."""
    rest = extent - count
    return cut(count, block) + (cut(rest, block) if rest else ())
