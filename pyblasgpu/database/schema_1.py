"""Files of schema 1, which versions before 0.1.0 wrote, as files of today."""

from __future__ import annotations

from typing import Any

from .families import with_current_names

__all__ = ["from_schema_1"]

#: The layouts of T by their old names.
_T_LAYOUTS = {
    "left_by_columns": "left_colmajor",
    "left_by_rows": "left_rowmajor",
    "right_by_columns": "right_colmajor",
    "right_by_rows": "right_rowmajor",
}
_FUSED = {"gemm_simt": "trsm_fused_simt", "gemm_mma": "trsm_fused_mma"}
_DROPPED = ("trsm_leaf",)  # families that are no more


def from_schema_1(raw: dict[str, Any], schema: int) -> dict[str, Any]:
    """`raw` of schema 1 with today's names, and as one of `schema`.

    Stop sizes are constants now. Methods were kept without rates, so they do not compare with those of
    others.
    """
    entries = {
        stem: value
        for stem, value in with_current_names(raw.get("entries", {})).items()
        if stem not in _DROPPED
    }
    for stem, dtypes in with_current_names(raw.get("solver", {})).items():
        entries[_FUSED[stem]] = {
            dtype: {_T_LAYOUTS[layout]: points for layout, points in layouts.items()}
            for dtype, layouts in dtypes.items()
        }
    others = {
        key: value for key, value in raw.items() if key not in ("entries", "stop_size", "method", "solver")
    }
    return {**others, "schema": schema, "entries": entries}
