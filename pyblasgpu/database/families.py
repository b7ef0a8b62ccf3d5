"""The kernel families that have tuned values. A file can name these and nothing else."""

from __future__ import annotations

from typing import Any

from ..kernels.registry import FAMILIES, FIXED, Family

__all__ = [
    "FAMILIES",
    "FIXED",
    "STOP_ROUTINES",
    "Family",
    "current_name",
    "families_of",
    "with_current_names",
    "with_current_text",
]


# Names in the files of versions before 0.1.0. The readers of tuned values and of sweeps put today's in their
# stead, so that what users have tuned still serves.
_RENAMED = {
    "gemm_tile": "gemm_simt",
    "SLICES": "SLICED_K",
    "LOADERS": "PRODUCER_WARPS",
    "SPLIT": "WARPS_PER_COLUMN_GROUP",
}


def current_name(name: str) -> str:
    """What a family, or a parameter, is called now that a file calls `name`."""
    return _RENAMED.get(name, name)


def with_current_names(values: dict[str, Any]) -> dict[str, Any]:
    """`values` under the names that families or parameters have now."""
    return {current_name(name): value for name, value in values.items()}


def with_current_text(content: bytes) -> bytes:
    """A whole file under these names."""
    for name, current in _RENAMED.items():
        content = content.replace(f'"{name}"'.encode(), f'"{current}"'.encode())
    return content


#: The recursive routines whose stop size is tuned.
STOP_ROUTINES = ("trmm", "trsm")


def families_of(routine: str, dtype: str | None = None) -> tuple[str, ...]:
    """The stems that `routine` may run, in `dtype` or in any."""
    return tuple(
        family.stem
        for family in FAMILIES.values()
        if family.routine == routine and (dtype is None or dtype in family.dtypes)
    )
