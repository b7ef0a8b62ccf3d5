"""Views of arrays whose library makes no outputs: its arrays are immutable, or it imports none.

A routine that writes into copies of its arrays runs on the views, NumPy's or CuPy's. What it returns becomes
arrays of the library at the end.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..arguments import NUMBERS, Array
from ..frontend.arrays.any_array import Library, common_library
from ..frontend.arrays.libraries import CUPY
from ..frontend.arrays.streams import stream_of

__all__ = ["Views", "views_of"]


class Views(NamedTuple):
    """NumPy's or CuPy's views of arrays, of a library whose new arrays are no outputs.

    Attributes
    ----------
    library : Library
    originals : tuple of arrays
        The caller's.
    arrays : list of arrays
        Their views.
    stream : int or None
        On which the routine runs; None is CuPy's current one.
    """

    library: Library
    originals: tuple[Array, ...]
    arrays: list[Array]
    stream: int | None

    def delivered(self, results: Any) -> Any:
        """Return a routine's result for the views, one array or several, as the caller gets it."""
        if isinstance(results, tuple):
            return tuple(map(self.delivered, results))
        for original, view in zip(self.originals, self.arrays, strict=True):
            if results is view and not self.library.is_read_only(original):
                return original  # written in place
        return self.library.deliver(results, self.originals[0], self.stream)


def views_of(name: str, arrays: dict[str, Array], stream: Any = None) -> Views | None:
    """Views of the `arrays` of a routine that writes into copies of them; None where these will do.

    The routine runs on the caller's `stream`.
    """
    each = tuple(arrays.values())
    if isinstance(each[0], (np.ndarray, *NUMBERS)):
        return None
    library = common_library(name, tuple(arrays), each)
    if library.has_writable_copies(each[0]):
        return None
    if library.host or stream is None:
        return Views(library, each, list(map(library.view, each)), None)
    device = library.device(each[0])
    pointer = stream_of(device, stream, name)
    assert pointer is not None
    with CUPY.on(device, pointer):
        return Views(library, each, list(map(library.view, each)), pointer)
