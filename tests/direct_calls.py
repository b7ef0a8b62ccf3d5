"""Calls that go to SciPy's functions, compared with those that are checked, and what they enter."""

from __future__ import annotations

from typing import Any

import numpy as np
from agreement import assert_agree
from walk import profile

__all__ = ["close", "entered", "outcome", "same_outcome"]


def outcome(function: Any, given: dict[str, Any]) -> tuple[Any, list[np.ndarray]]:
    """The results of a call, or its error, and its arrays afterwards."""
    copies: dict[int, Any] = {}

    def copied(value: Any) -> Any:
        if type(value) is tuple:
            return tuple(map(copied, value))
        is_array = type(value) is np.ndarray
        return copies.setdefault(id(value), np.copy(value, order="K")) if is_array else value

    mine = {name: copied(value) for name, value in given.items()}
    for name, value in given.items():
        if type(value) is np.ndarray:
            mine[name].flags.writeable = value.flags.writeable
    arrays = [value for value in mine.values() if type(value) is np.ndarray]
    try:
        result = function(**mine)
    except Exception as error:
        return error, arrays
    results = result if isinstance(result, tuple) else (result,)
    return [(each, [array is each for array in arrays]) for each in results], arrays


def close(one: Any, other: Any, given: Any) -> None:
    assert np.shape(one) == np.shape(other) and np.result_type(one) == np.result_type(other), given
    if isinstance(one, np.ndarray) and one.size > 1:
        assert one.strides == other.strides, given
    eps = np.finfo(one.dtype).eps if np.result_type(one).kind in "fc" and hasattr(one, "dtype") else 1e-15
    assert_agree(one, other, given.__str__, rtol=200 * eps, atol=200 * eps)


def entered(call: Any) -> tuple[set[str], int]:
    """The modules of the package that a call enters, once it is known, and how many of its functions."""
    call()
    modules: list[str] = []

    def note(frame: Any, event: str, argument: Any) -> None:
        if event == "call" and (name := frame.f_globals.get("__name__", "")).startswith("pyblasgpu"):
            modules.append(name)

    profile(call, note)
    return {*modules}, len(modules)


def same_outcome(direct: Any, checked: Any, given: dict[str, Any]) -> None:
    """Check two results of `outcome`: values, order in memory, what was overwritten, or the errors."""
    (results, after), (expected, after_expected) = direct, checked
    if isinstance(expected, Exception):
        assert (type(results), str(results)) == (type(expected), str(expected)), given
    else:
        assert not isinstance(results, Exception), (given, results)
        for (one, at_one), (other, at_other) in zip(results, expected, strict=True):
            assert type(one) is type(other) and at_one == at_other, given
            close(one, other, given)
    for one, other in zip(after, after_expected, strict=True):
        close(one, other, given)
