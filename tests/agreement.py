"""Comparison of results that agree nearly always."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

__all__ = ["assert_agree"]


def assert_agree(
    result: Any, wanted: Any, what: Callable[[], str], *, rtol: float = 0, atol: float = 0
) -> None:
    """Assert what `numpy.testing.assert_allclose` does, which takes long; `what` returns the message."""
    if not np.array_equal(result, wanted, equal_nan=True):
        np.testing.assert_allclose(result, wanted, rtol=rtol, atol=atol, err_msg=what())
