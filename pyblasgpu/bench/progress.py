"""Going through many cases: a bar on stderr, and an end when the time is up."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import TypeVar

from rich.progress import track

from pyblasgpu.terminal import console

Item = TypeVar("Item")


def bar(items: Iterable[Item], what: str, total: int) -> Iterable[Item]:
    """`items`, with a bar that goes when they end."""
    return track(items, what, total, console=console(stderr=True), transient=True)


def within(budget: float, items: Sequence[Item], what: str, kind: str) -> Iterator[Item]:
    """Yield `items` until `budget` seconds have passed; print the number of the remaining ones to stderr."""
    begun = time.monotonic()
    for number, item in enumerate(bar(items, f"timing {what}", len(items))):
        if time.monotonic() - begun > budget:
            print(f"{what}: {len(items) - number} of {len(items)} {kind} untimed", file=sys.stderr)
            return
        yield item
