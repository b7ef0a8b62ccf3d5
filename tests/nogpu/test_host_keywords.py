"""Keyword functions on NumPy arrays that SciPy takes as they are: the results of the checked calls."""

from __future__ import annotations

import inspect
import zlib
from typing import Any

import numpy as np
import pytest
from direct_calls import entered, outcome, same_outcome

import pyblasgpu
from pyblasgpu.routine_table import routines
from pyblasgpu.types import DTYPES

FLAGS = ("trans", "trans_a", "trans_b", "side", "lower", "unit_diag", "conj")
NAMES = [routine.stem for routine in routines("level1", "level2", "level3") if routine.stem != "rotm"]


def flag(rng: np.random.Generator, name: str) -> Any:
    if name.startswith("trans"):
        return rng.choice(["N", "T", "C"])
    return rng.choice(["L", "R"]) if name == "side" else bool(rng.integers(2))


def array(rng: np.random.Generator, dtype: np.dtype, shape: tuple[int, ...], special: bool) -> np.ndarray:
    """Elements near 1, in any order in memory."""
    values = rng.uniform(-1, 1, shape) + (2 * np.eye(*shape) if len(shape) == 2 else 0)
    values = values + 0.5j * rng.uniform(-1, 1, shape) if dtype.kind == "c" else values
    how = rng.integers(5)
    if how == 4:
        spread = np.zeros([2 * extent for extent in shape], dtype, order=str(rng.choice(["C", "F"])))
        made = spread[(slice(None, None, 2),) * len(shape)]
        made[...] = values
    else:
        made = np.array(values, dtype, order="CFCF"[how])
    if special and rng.random() < 0.5:
        made[tuple(rng.integers(extent) for extent in shape)] = rng.choice([np.nan, np.inf, 0])
    if rng.random() < 0.05:
        made.flags.writeable = False
    return made


def arguments(rng: np.random.Generator, name: str) -> dict[str, Any]:
    """Arguments of a keyword function, most of which fit one another."""
    parameters = inspect.signature(getattr(pyblasgpu, name)).parameters
    dtype = np.dtype(DTYPES[str(rng.choice(list("sdcz")))].name)
    n, other = (int(extent) for extent in rng.integers(1, 5, 2))
    special = rng.random() < 0.3
    given: dict[str, Any] = {}
    for key in parameters:
        if key in ("a", "b", "x", "y"):
            m = other if rng.random() < 0.1 else n
            shape = (m,) if key in "xy" else (n, m)
            given[key] = array(rng, dtype, shape, special)
        elif key in ("alpha", "beta") and (key not in given and rng.random() < 0.5):
            given[key] = rng.choice([0.0, 1.0, 0.5, -2.0]).item() * (1j if rng.random() < 0.1 else 1)
        elif key in ("c", "s"):
            given[key] = rng.choice([0.0, 1.0, 0.5, np.inf]).item() * (1j if rng.random() < 0.1 else 1)
        elif key in FLAGS and rng.random() < 0.5:
            given[key] = flag(rng, key)
    if name == "scal":
        given.setdefault("alpha", 2.0)
    if name == "rot" and rng.random() < 0.6:
        given["out"] = given["x"], given["y"] if rng.random() < 0.9 else given["x"]
    elif name not in ("rot", "swap") and rng.random() < 0.4:
        last = [each for each in given.values() if isinstance(each, np.ndarray)][-1]
        is_vector = "x" in given and name not in ("ger", "syr", "syr2", "her", "her2")
        shape = (n,) if is_vector else (n, n)
        given["out"] = last if rng.random() < 0.4 else array(rng, dtype, shape, special)
    return given


@pytest.mark.parametrize("name", NAMES)
def test_results_are_those_of_checked_calls(name):
    """A stream that is named has a call on host arrays checked."""
    rng = np.random.default_rng(zlib.crc32(name.encode()))
    function = getattr(pyblasgpu, name)
    for _ in range(200):
        given = arguments(rng, name)
        direct, checked = (outcome(function, {**given, **how}) for how in ({}, {"stream": 0}))
        same_outcome(direct, checked, given)


A, X = np.asfortranarray(np.eye(4) + 1), np.arange(4.0)
CALLS = {
    "gemm": (A, A),
    "symm": (A, A),
    "syrk": (A,),
    "syr2k": (A, A),
    "trmm": (A, A),
    "trsm": (A, A),
    "gemv": (A, X),
    "symv": (A, X),
    "trmv": (A, X),
    "trsv": (A, X),
    "ger": (X, X),
    "syr": (X,),
    "dot": (X, X),
    "nrm2": (X,),
    "asum": (X,),
    "iamax": (X,),
    "axpy": (X, X),
    "swap": (X, X + 1),
    "rot": (X, X, 0.6, 0.8),
    "her": (X + 1j,),
    "her2": (X + 1j, X + 0j),
}


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("name", CALLS)
def test_a_call_enters_few_functions(name, order):
    arguments = [np.array(x, order=order) if isinstance(x, np.ndarray) else x for x in CALLS[name]]
    modules, functions = entered(lambda: getattr(pyblasgpu, name)(*arguments))
    assert len(modules) <= 10 and functions <= 30, (modules, functions)
