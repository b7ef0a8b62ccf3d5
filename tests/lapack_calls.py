"""Calls of `pyblasgpu.lapack` for right-hand sides of which there are none, and LAPACK's info of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from pyblasgpu import lapack
from pyblasgpu.types import DTYPES

__all__ = ["NAMES", "check_without_columns"]

NAMES = [letter + stem for letter in DTYPES for stem in ("trtrs", "posv", "gesv", "potrs", "getrs")]
PIVOTS = [0, 1, 2]
#: By routine: keywords of a call with diagonals 1, 0, 3, and info.
_CALLS: dict[str, list[tuple[dict[str, int], int]]] = {
    "trtrs": [({}, 2), ({"lower": 1}, 2), ({"trans": 2, "overwrite_b": 1}, 2), ({"unitdiag": 1}, 0)],
    "posv": [({}, 2), ({"lower": 1}, 2)],
    "gesv": [({}, 2), ({"overwrite_a": 1}, 2)],
    "potrs": [({}, 0)],
    "getrs": [({}, 0), ({"trans": 1}, 0)],
}


def check_without_columns(name: str, put: Callable[[np.ndarray], Any]) -> None:
    """Check info and shapes of one matrix and of a stack, placed by `put`."""
    letter, stem = name[0], name[1:]
    singular, regular = (np.diag([1, middle, 3]).astype(DTYPES[letter].name) for middle in (0, 2))
    stack = np.stack([regular, singular])
    for keywords, info in _CALLS[stem]:
        cases: list[Any] = [(singular, (), info), (regular, (), 0), (stack, (2,), [0, info])]
        cases += [(stack[:0], (0,), [])] + ([(singular, (2,), [info, info])] if stem == "trtrs" else [])
        for a, batch, infos in cases:
            pivots = {"piv": np.tile(PIVOTS, (*a.shape[:-2], 1))} if stem == "getrs" else {}
            b = put(np.zeros((*batch, 3, 0), a.dtype))
            *_, x, found = getattr(lapack, name)(put(np.array(a)), b=b, **keywords | pivots)
            assert tuple(x.shape) == (*batch, 3, 0), (name, keywords)
            found = found.get() if hasattr(found, "get") else found
            np.testing.assert_array_equal(found, infos, err_msg=f"{name} {keywords} {batch}")
