"""The functions of `pyblasgpu.blas` in the simulator beside the reference BLAS."""

from __future__ import annotations

import numpy as np
import pytest
from blas_calls import ON_DEVICE, calls_of, check, placed
from reference_blas import stem_of

from .test_routines import small_kernels

SMALL = [(1, 2, 3), (5, 3, 2), (4, 6, 5)]
#: Where arrays are, by turns; those of the last call are in each place.
PLACES = ("F", "reversed")


@pytest.mark.filterwarnings("ignore:invalid value encountered in cast")  # new indices are NaN
@pytest.mark.parametrize("name", ON_DEVICE)
def test_device_arrays(name, on_device):
    """By small kernels: those that are chosen compute with host arrays."""
    calls = calls_of(name, *SMALL)
    with small_kernels(stem_of(name)[0]):
        for number, given in enumerate(calls):
            for how in PLACES if given is calls[-1] else PLACES[number % 2 :][:1]:
                check(
                    name, given, lambda array, how=how: on_device(placed(array, how)), lambda each: each.host
                )


@pytest.mark.parametrize("name", ON_DEVICE)
def test_host_arrays(name, monkeypatch):
    """Extents of 0 are those of device arrays."""
    monkeypatch.setenv("PYBLASGPU_BACKEND", "sim")
    check(name, calls_of(name, (4, 6, 5))[-1], np.copy)
