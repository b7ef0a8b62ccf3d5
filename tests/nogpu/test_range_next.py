"""Loops over constant ranges on compute capability 10.0 and later: they count without a branch, and arrays of
a thread stay in registers."""

from __future__ import annotations

import re

import chosen_kernels
import pytest

from pyblasgpu.gpu import backend

if backend.why_unavailable() or backend.SIMULATED:
    pytest.skip("made for the compiler", allow_module_level=True)

from numba.cuda import types
from numba.cuda.compiler import compile_cuda

from pyblasgpu.gpu.build.translate import to_ptx
from pyblasgpu.gpu.intrinsics.range_next import counting_without_branch

BRANCH = re.compile(r'  br i1 %"[^"]+", label %"B\d+\.if", label %"B\d+\.endif"\n')
COUNT = 4


def constant(a, n):
    for i in range(COUNT):
        a[i] = n


def sum_of_constants(a, n):
    for i in range(1, COUNT + 1):
        a[i] = n


def beginning_anywhere(a, n):
    for i in range(n, COUNT):
        a[i] = n


def nested(a, n):
    for i in range(n):
        for j in range(COUNT):
            a[i * COUNT + j] = n


def nested_the_other_way(a, n):
    for i in range(0, 2 * COUNT, COUNT):
        for j in range(n):
            a[i + j] = n


def variable(a, n):
    for i in range(n):
        a[i] = n


def of_an_array(a, n):
    for each in a:
        a[0] += each


def modules(function) -> list[str]:
    """What Numba makes of the function, in LLVM's language."""
    arguments = types.Array(types.int64, 1, "C"), types.int64
    return [compile_cuda(function, None, arguments, cc=(8, 0)).library.get_llvm_str()]


def sent(ir: list[str], arch: str) -> list[str]:
    """What NVVM gets."""
    return counting_without_branch(lambda modules, **options: modules)(ir, arch=arch, opt=3)


@pytest.mark.parametrize(
    ("function", "before", "after"),
    [
        (constant, 1, 0),
        (sum_of_constants, 1, 0),
        (beginning_anywhere, 1, 0),
        (nested, 2, 1),
        (nested_the_other_way, 2, 1),
        (variable, 1, 1),
        (of_an_array, 1, 1),
    ],
)
def test_loops_over_constants_count_without_a_branch(function, before, after):
    ir = modules(function)
    assert len(BRANCH.findall(ir[0])) == before
    for arch in ("compute_100a", "compute_120"):
        (text,) = sent(ir, arch)
        assert len(BRANCH.findall(text)) == after
        assert len(text.splitlines()) == len(ir[0].splitlines())


@pytest.mark.parametrize("arch", ["compute_75", "compute_90a"])
def test_earlier_devices_get_what_numba_says(arch):
    ir = modules(nested)
    assert sent(ir, arch) == ir


@pytest.mark.parametrize(("stem", "letter"), [("trmm_leaf", "d"), ("gemv", "c"), ("getrf_small", "c")])
def test_arrays_of_a_thread_stay_in_registers(stem, letter):
    """A sample of what `make check-kernels` compiles: there are loops that LLVM left rolled."""
    assert ".local" not in to_ptx(chosen_kernels.smallest(stem, letter), (12, 0))
