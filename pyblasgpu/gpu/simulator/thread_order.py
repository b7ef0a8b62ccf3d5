"""The order in which threads and blocks run: random, from a seed."""

from __future__ import annotations

import random as _random

__all__ = ["gives_way", "random", "reseed"]

random = _random.Random(0)


def reseed(seed: int) -> None:
    """Choose the order of threads and blocks anew."""
    random.seed(seed)


def gives_way() -> bool:
    """Whether a block lets others run, as chance has it."""
    return random.random() < 0.5
