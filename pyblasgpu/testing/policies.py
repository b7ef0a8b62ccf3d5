"""Other numbers for dispatch to decide by, in tests and benchmarks."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ..dispatch import choose, tuned_files

__all__ = ["deciding_by"]


@contextmanager
def deciding_by(**values: Any) -> Iterator[None]:
    """Within the block, in all threads, dispatch decides by these values of `database.policy.Policy`.

    Parameters
    ----------
    **values : number or dict
        Values by name; a dict replaces all of a mapping.

    Yields
    ------
    None
        The previous values are restored at the end of the block.
    """
    tuned_files.policy_changes.append(values)
    choose.reload()
    try:
        yield
    finally:
        tuned_files.policy_changes.remove(values)
        choose.reload()
