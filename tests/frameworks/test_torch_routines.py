"""Level 3 of `pyblasgpu.torch` on the calls that all ways to call a routine share."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from faces import as_new_array, check
from routine_cases import Case, every

import pyblasgpu.torch as ours


def as_tensor(array: np.ndarray) -> torch.Tensor:
    """A copy, with the strides of the array."""
    return torch.from_numpy(np.copy(array, order="K"))


def one_triangle(case: Case) -> np.ndarray:
    """The result of an update, zeros in the other triangle."""
    (result,) = case.results
    kept = np.tri(*result.shape, dtype=bool)
    return np.where(kept if case.given.get("lower") else kept.T, result, result.dtype.type(0))


@pytest.mark.parametrize("stem", ["gemm", "gemmtr", "syrk", "herk", "symm", "hemm", "trmm", "trsm"])
def test_results_are_those_of_the_reference(stem):
    """Results are new: C is an input where it is added to, and the other triangle of a result is zero."""
    cases = [case for case in every(stem) if "c" not in case.given or case.given.get("beta", 0) != 0]
    if cases[0].row.is_update:
        cases = [replace(case, results=(one_triangle(case),)) for case in cases]
    check(cases, lambda case, _: as_new_array(case, ours, as_tensor, lambda x: x.resolve_conj().numpy()))
