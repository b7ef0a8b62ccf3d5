"""Tuned values of known devices: packaged JSON files, and one of the user's own.

A file holds data and nothing else. A user's is checked from end to end before any of it is used. One that
does not pass is set aside with a `DatabaseWarning`, and the next level serves. ``schema.json`` is the
published form of the files.
"""

from .document import (
    MAX_BYTES,
    SCHEMA,
    DatabaseError,
    Document,
    Entry,
    difference,
    dumps,
    parse,
    read,
    read_packaged,
)
from .families import (
    FAMILIES,
    FIXED,
    FUSED_STEMS,
    FUSED_TRSM,
    T_LAYOUTS,
    TUNED,
    Family,
    current_name,
    families_of,
    t_layout,
    with_current_names,
)
from .points import (
    MATRIX_VECTOR_POINTS,
    RECURSION,
    TRSM_FUSED,
    TRSM_POINTS,
    TRSM_SMALL,
    TRSM_SMALL_POINTS,
    algorithms_at,
    algorithms_of,
    max_fused_order,
    nearest_points,
    nearest_small_points,
)
from .sizes import BY_TIMES_ALONE, RHS_AT, is_batch, nearest, size_class, sizes_of, tuned_at, tuned_points

__all__ = [
    "BY_TIMES_ALONE",
    "FAMILIES",
    "FIXED",
    "FUSED_STEMS",
    "FUSED_TRSM",
    "MATRIX_VECTOR_POINTS",
    "MAX_BYTES",
    "RECURSION",
    "RHS_AT",
    "SCHEMA",
    "TRSM_FUSED",
    "TRSM_POINTS",
    "TRSM_SMALL",
    "TRSM_SMALL_POINTS",
    "TUNED",
    "T_LAYOUTS",
    "DatabaseError",
    "Document",
    "Entry",
    "Family",
    "algorithms_at",
    "algorithms_of",
    "current_name",
    "difference",
    "dumps",
    "families_of",
    "is_batch",
    "max_fused_order",
    "nearest",
    "nearest_points",
    "nearest_small_points",
    "parse",
    "tuned_points",
    "read",
    "read_packaged",
    "size_class",
    "sizes_of",
    "t_layout",
    "tuned_at",
    "with_current_names",
]
