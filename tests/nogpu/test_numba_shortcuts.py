"""Shortcuts through numba-cuda's compiler: the same PTX, and nothing is left replaced."""

from __future__ import annotations

import re
from importlib import metadata
from typing import Any

import chosen_kernels
import pytest

from pyblasgpu.gpu import backend
from pyblasgpu.gpu.build import translate

if backend.why_unavailable() or backend.SIMULATED:
    pytest.skip("made for the compiler", allow_module_level=True)

from numba.cuda import codegen

from pyblasgpu.gpu.intrinsics import device_functions, numba_shortcuts

CC = (9, 0)


def ptx_of(source) -> str:
    """Without comments, and without the numbers that tell compilations apart."""
    text = translate.to_ptx(source, CC)
    return re.sub(r"//.*|_Z\w+|(?<=_cudapy_smem_)\d+", "", text)


def replaced() -> list:
    """What stands now where a shortcut may."""
    from numba.cuda import compiler
    from numba.cuda.core import postproc, targetconfig
    from numba.cuda.np import arrayobj

    return [
        compiler.CUDACompiler,
        postproc.PostProcessor.run,
        targetconfig.TargetConfig.__eq__,
        arrayobj.make_array,
    ]


def test_the_release_is_the_one_that_they_know():
    assert metadata.version("numba-cuda").startswith(numba_shortcuts.KNOWN_RELEASE)


@pytest.fixture
def slots(monkeypatch) -> list[int]:
    """How many places on the stack each text has that NVVM reads."""
    nvvm: Any = vars(codegen)["nvvm"]
    counts: list[int] = []
    compile_ir = nvvm.compile_ir

    def counted(modules, **options):
        counts.append(sum(module.count(" = alloca ") for module in modules))
        return compile_ir(modules, **options)

    monkeypatch.setattr(nvvm, "compile_ir", counted)
    return counts


@pytest.mark.parametrize(
    ("stem", "letter"),
    [("symmetrize", "z"), ("pack", "s"), ("split_k_reduce", "d"), ("trmm_leaf", "d"), ("trsm_small", "c")],
)
def test_the_ptx_is_the_same(monkeypatch, slots, stem, letter):
    """NVVM reads less: elements of arrays and variables of blocks in a row take no slots on the stack."""
    source = chosen_kernels.smallest(stem, letter)
    device_functions.shared.cache_clear()  # they hold what they were lowered to
    short = ptx_of(source)
    monkeypatch.setattr(numba_shortcuts, "KNOWN_RELEASE", "another")
    device_functions.shared.cache_clear()
    assert ptx_of(source) == short
    if stem == "trsm_small":
        assert slots[0] < 0.6 * slots[1]


def test_nothing_stays_replaced(monkeypatch):
    before = replaced()
    with pytest.raises(ZeroDivisionError), numba_shortcuts.shortened():
        assert replaced() != before
        raise ZeroDivisionError
    assert replaced() == before
    monkeypatch.setattr(numba_shortcuts, "KNOWN_RELEASE", "another")
    with numba_shortcuts.shortened():
        assert replaced() == before
