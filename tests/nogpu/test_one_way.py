"""Kernels of large complex tiles that copy by vectors alone: other operands run a kernel of their own."""

from __future__ import annotations

import pytest
import random_calls

from pyblasgpu.dispatch import catalogue
from pyblasgpu.gpu.device import known
from pyblasgpu.operands import Operand
from pyblasgpu.routines.level3 import gemm
from pyblasgpu.types import DTYPES

C, H200, N = DTYPES["c"], known("h200"), 4096


def matrix(shift: int = 0, lead: int = N, batch: int = 1, gap: int = 0) -> Operand:
    start = (1 << 30) + shift * C.itemsize
    return Operand(start, N, N, 1, lead, C, batch=batch, batch_stride=lead * N + gap if batch > 1 else 0)


def kernel(a: Operand, b: Operand, c: Operand):
    launches = gemm.launch_list(1, a, b, 0, c)
    return next(entry.source for entry in launches.entries if entry.source.config.STEM == "gemm_simt")


@pytest.fixture(autouse=True)
def on_h200(monkeypatch):
    random_calls.on(H200, monkeypatch)


def test_aligned_operands_run_the_config_that_was_chosen():
    assert kernel(matrix(), matrix(), matrix()).config.needs_alignment


@pytest.mark.parametrize(
    "how", [{"shift": 1}, {"lead": N + 1}, {"batch": 2, "gap": 1}], ids=["address", "lead", "batch"]
)
def test_others_run_the_variant_of_single_elements(how):
    plain = {key: how[key] for key in how if key == "batch"}
    source = kernel(matrix(**how), matrix(**plain), matrix(**plain))
    assert not source.config.needs_alignment
    assert source in set(catalogue.kernels(H200))


def test_the_operand_that_comes_by_elements_may_lie_anywhere():
    assert kernel(matrix(), matrix(shift=1), matrix()).config.needs_alignment


def test_both_kernels_are_listed():
    listed = {source.config for source in catalogue.kernels(H200)}
    aligned = [config for config in listed if getattr(config, "needs_alignment", False)]
    assert aligned and all(config.scalar_variant in listed for config in aligned)
