"""The orders in which a launch list may run: those that keep its lanes, and what launches wait for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count

import numpy as np

from pyblasgpu.routines.launch_list import Launch


def in_order(launches: Sequence[Launch], choose: Callable[[], int]) -> list[Launch]:
    """The launches in an order that may be, all in one lane; `choose` says which lane goes on if both can."""
    left = [[number for number, each in enumerate(launches) if each.lane == lane] for lane in (0, 1)]
    done: set[int] = set()
    order = []
    while any(left):
        able = [lane for lane in (0, 1) if left[lane] and set(launches[left[lane][0]].after) <= done]
        assert able, "every lane waits"
        chosen = choose()
        number = left[chosen if chosen in able else able[0]].pop(0)
        done.add(number)
        order.append(launches[number]._replace(lane=0, after=()))
    return order


def extremes() -> list[Callable[[], int]]:
    """The call's lane runs first wherever it can, or the other one."""
    return [lambda: 0, lambda: 1]


def at_random(seed: int) -> Callable[[], int]:
    """Either lane, for runs of launches."""
    rng, numbers = np.random.default_rng(seed), count()
    lanes = np.repeat(rng.integers(0, 2, 4096), rng.integers(1, 6, 4096))
    return lambda: int(lanes[next(numbers) % len(lanes)])
