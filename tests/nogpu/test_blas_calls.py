"""All functions of `pyblasgpu.blas` on host arrays beside the reference BLAS."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg.blas
from blas_calls import EMPTY, FACTORS, NAMES, PLACES, check, check_reference, draw, placed, rng_of

#: Those that SciPy computes for all arguments: its GBMV refuses some extents, its CSPR and ZSPR leave x.
REFERENCES = [
    name
    for name in NAMES
    if hasattr(scipy.linalg.blas, name) and not name.endswith("gbmv") and name not in ("cspr", "zspr")
]


@pytest.fixture(autouse=True)
def on_the_cpu(monkeypatch):
    monkeypatch.setenv("PYBLASGPU_BACKEND", "cpu")


@pytest.mark.parametrize("name", NAMES)
def test_empty_extents(name):
    """What the BLAS leaves alone, scales, and makes zero, for all factors."""
    rng = rng_of(name)
    for extents in EMPTY:
        for alpha in FACTORS:
            for beta in FACTORS:
                factors = {"alpha": alpha, "beta": beta, "a": alpha}
                given = draw(rng, name, extents)
                given |= {key: value for key, value in factors.items() if np.ndim(given.get(key, [])) == 0}
                check(name, given, np.copy)


@pytest.mark.parametrize("name", NAMES)
def test_random_calls(name):
    """Small extents, so that the edges are frequent; increments, offsets, flags, defaults of n."""
    rng = rng_of(name)
    for _ in range(40):
        how = PLACES[rng.integers(len(PLACES))]
        extents = tuple(rng.integers(0, 7, 3).tolist())
        check(name, draw(rng, name, extents), lambda array, how=how: placed(array, how))


@pytest.mark.parametrize("name", REFERENCES)
def test_the_reference_is_scipys(name):
    rng = rng_of(name)
    for _ in range(40):
        check_reference(name, draw(rng, name, tuple(rng.integers(1, 7, 3).tolist())))
