"""Every routine by SciPy's names, in keyword style and by `linalg`, on a device, with one reference."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest
from faces import LINALG, by_keyword, by_linalg, by_scipys_name, check, forms
from routine_cases import BLAS, LAPACK, every

from pyblasgpu import blas, lapack
from pyblasgpu.routine_table import ROUTINES

from .running import CuPy, cupy


class Device(CuPy):
    """Arrays of CuPy with the strides of NumPy's."""

    options: dict = {}

    @staticmethod
    def put(array: np.ndarray):
        if not array.size:
            return cupy.asarray(array)
        steps = [(extent - 1) * stride for extent, stride in zip(array.shape, array.strides, strict=True)]
        before, behind = -sum(min(step, 0) for step in steps), sum(max(step, 0) for step in steps)
        memory = (ctypes.c_char * (before + behind + array.itemsize)).from_address(array.ctypes.data - before)
        start = cupy.asarray(np.frombuffer(memory, np.uint8)).data + before
        return cupy.ndarray(array.shape, array.dtype, start, array.strides)


@pytest.mark.parametrize(("stem", "form"), [(stem, form) for stem in BLAS for form in forms(stem)])
def test_keyword_functions(stem, form):
    check(every(stem), lambda case, number: by_keyword(case, Device, form, number))


@pytest.mark.parametrize("stem", [stem for stem, row in ROUTINES.items() if row.is_explained])
def test_scipys_names(stem):
    module = lapack if stem in LAPACK else blas
    cases = [case for case in every(stem) if hasattr(module, case.name)]
    check(cases, lambda case, number: by_scipys_name(case, module, Device, number))


@pytest.mark.parametrize("stem", LINALG)
def test_functions_of_linalg(stem):
    check(every(stem), lambda case, number: by_linalg(case, Device, number))
