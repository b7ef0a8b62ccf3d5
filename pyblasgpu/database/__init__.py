"""What the tuner found for known devices: JSON files here for everyone, and one of the user's own.

A file holds data and nothing else. A user's is checked from end to end before any of it is used, and one that
does not pass is set aside with a `DatabaseWarning` (the next level then serves). ``schema.json`` is the
published form of the files.
"""

from .document import MAX_BYTES, SCHEMA, DatabaseError, Document, Entry, dumps, parse, read, read_packaged
from .families import (
    FAMILIES,
    FIXED,
    STOP_ROUTINES,
    Family,
    current_name,
    families_of,
    with_current_names,
)
from .methods import (
    METHODS,
    METHODS_AT,
    RECURSION,
    SMALL,
    SMALL_AT,
    TWO,
    nearest_places,
    nearest_small,
    rows_at_once,
    switch_at,
    way_of,
    ways_at,
    ways_of,
)
from .sizes import RHS_AT, is_batch, nearest, places_of, rhs_class, size_class, sizes_of, tuned_at
from .solved import SOLVED, Solved, solved_as, solved_in

__all__ = [
    "FAMILIES", "FIXED", "MAX_BYTES", "METHODS", "METHODS_AT", "RECURSION", "RHS_AT", "SCHEMA",
    "SMALL", "SMALL_AT", "SOLVED", "STOP_ROUTINES", "TWO", "DatabaseError", "Document", "Entry", "Family",
    "Solved", "current_name", "dumps", "families_of", "is_batch", "nearest", "nearest_places",
    "nearest_small", "parse", "places_of", "read", "read_packaged", "rhs_class", "rows_at_once",
    "size_class", "sizes_of", "solved_as", "solved_in", "switch_at", "tuned_at", "way_of", "ways_at",
    "ways_of", "with_current_names",
]  # fmt: skip
