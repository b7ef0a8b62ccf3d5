"""Other numbers for dispatch to decide by, in tests and benchmarks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from functools import partial
from typing import Any

from ..database.policy import Policy
from ..dispatch import choose, tuned_files
from ..settings import Setting

__all__ = ["deciding_by"]


def deciding_by(**values: Any) -> Setting:
    """Let dispatch decide by these values of `database.policy.Policy` from now on, in all threads.

    Parameters
    ----------
    **values : number or dict
        Values by name; a dict replaces all of a mapping.

    Returns
    -------
    Setting
        As a context manager it restores the previous values at the end of its block.

    Raises
    ------
    ValueError
        For a name that the policy does not have.
    """
    known = [field.name for field in fields(Policy)]
    unknown = [name for name in values if name not in known]
    if unknown:
        raise ValueError(f"deciding_by: {', '.join(unknown)} is none of {', '.join(known)}")
    return Setting("deciding_by", partial(_change, values))


def _change(values: dict[str, Any]) -> Callable[[], None]:
    """Add values to the changes; return the function that takes them out."""
    change = dict(values)
    tuned_files.policy_changes.append(change)
    choose.reload()

    def restore() -> None:
        tuned_files.policy_changes[:] = [each for each in tuned_files.policy_changes if each is not change]
        choose.reload()

    return restore
