"""Kernels compiled without a device: a sample of them spills nothing, and nothing compiles twice."""

from __future__ import annotations

import gc
import os
import re
import subprocess
import sys
from dataclasses import replace

import chosen_kernels
import pytest

from pyblasgpu.database import FAMILIES
from pyblasgpu.dispatch import catalogue
from pyblasgpu.gpu.build import compile, kernel_digest, kernel_text
from pyblasgpu.gpu.build.code_digest import code_of
from pyblasgpu.gpu.build.compile import CompileError, Resources, compile_here, compile_source
from pyblasgpu.gpu.build.link import link_ptx
from pyblasgpu.gpu.build.translate import to_ptx
from pyblasgpu.gpu.device import known
from pyblasgpu.kernels.copy import copy_scaled
from pyblasgpu.kernels.gemm.simt import GemmSimt
from pyblasgpu.tuning.compile_pool import complaint, source_of

pytestmark = chosen_kernels.NEEDS_COMPILER

CC = (9, 0)


@pytest.mark.parametrize("chosen", chosen_kernels.parameters(chosen_kernels.tightest()))
def test_the_tightest_config_of_a_family_keeps_everything_in_registers(chosen):
    """A sample of what `make check-kernels` compiles."""
    report = compile_here(chosen.source, chosen.device.cc).resources
    assert report.registers > 0
    assert (report.stack_bytes, report.spill_stores, report.spill_loads) == (0, 0, 0)
    assert complaint(chosen.config, report, chosen.device) == ("ok", "")


def test_the_sample_is_of_every_family_and_dtype():
    sample = chosen_kernels.tightest()
    expected = [(stem, letter) for stem, family in FAMILIES.items() for letter in family.dtypes]
    assert sorted((c.config.STEM, c.config.dtype) for c in sample) == sorted(expected)


def test_garbage_is_collected_afterwards():
    source = chosen_kernels.smallest(copy_scaled.STEM, "s")
    for enabled in (True, False):
        (gc.enable if enabled else gc.disable)()
        to_ptx(source, CC)
        assert gc.isenabled() == enabled
    gc.enable()


# ------------------------------------------------------------------------------------------------ the store

PROCESS = """
import sys
from pyblasgpu.dispatch import catalogue
from pyblasgpu.gpu.build import compile, kernel_digest, kernel_text
from pyblasgpu.kernels.copy import copy_scaled

if sys.argv[1] == "again":
    compile.compile_kernel = None
source = copy_scaled.source(copy_scaled.CopyScaled("s"))
found = compile.compile_source(source, (9, 0))
assert found is compile.compile_source(source, (9, 0))
print(len(found.cubin), found.entry, found.resources.registers)
"""


@pytest.fixture
def home(tmp_path):
    return {**os.environ, "PYBLASGPU_HOME": str(tmp_path)}


def process(home, *arguments) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, "-c", PROCESS, *arguments], env=home, text=True, capture_output=True, timeout=120
    )


def test_a_second_process_compiles_nothing(home):
    cold = process(home, "again")
    assert cold.returncode and "NoneType" in cold.stderr, "without a cubin it would compile"
    first, second = process(home, "first"), process(home, "again")
    assert (first.returncode, second.returncode) == (0, 0), second.stderr[-500:]
    assert first.stdout == second.stdout


SOURCE = copy_scaled.source(copy_scaled.CopyScaled("s"))


@pytest.mark.parametrize(
    "other",
    [
        copy_scaled.source(copy_scaled.CopyScaled("s", DIM_X=16)),
        copy_scaled.source(copy_scaled.CopyScaled("d")),
        copy_scaled.source(copy_scaled.CopyScaled("s", DIM_Y=4)),
        replace(SOURCE, threads=128),
        replace(SOURCE, min_blocks=2),
        replace(SOURCE, shared_bytes=64),
    ],
    ids=["flag", "dtype", "parameter", "threads", "min_blocks", "shared"],
)
def test_what_differs_has_another_key(other):
    assert compile.store_key(SOURCE, CC) != compile.store_key(other, CC)


def test_device_text_and_versions_are_in_the_key(monkeypatch):
    key = compile.store_key(SOURCE, CC)
    assert key == compile.store_key(SOURCE, CC) and re.fullmatch("[0-9a-f]{64}", key)
    keys = {key, compile.store_key(SOURCE, (8, 0))}
    monkeypatch.setattr(compile, "versions", lambda: {"numba": "another"})
    keys.add(compile.store_key(SOURCE, CC))
    monkeypatch.setattr(compile, "digest_of", lambda *modules: "another")
    keys.add(compile.store_key(SOURCE, CC))
    assert len(keys) == 4


# ------------------------------------------------------------------------------------------- report, errors


def test_the_report_is_read():
    log = """ptxas info    : 0 bytes gmem
ptxas info    : Function properties for kernel
    24 bytes stack frame, 16 bytes spill stores, 8 bytes spill loads
ptxas info    : Used 255 registers, used 1 barriers, 1024 bytes smem, 484 bytes cmem[0]"""
    assert compile.parse_link_log(log.replace("Used", "used")) == Resources(255, 24, 16, 8, 1024)


def test_a_tile_too_large_for_the_registers_is_noticed(home, monkeypatch):
    """What the tests above look for can be seen: 16 blocks of 128 threads leave 32 registers to each."""
    monkeypatch.setenv("PYBLASGPU_HOME", home["PYBLASGPU_HOME"])
    config = GemmSimt(
        dtype="s",
        trans_a=False,
        trans_b=False,
        BLK_M=32,
        BLK_N=64,
        BLK_K=4,
        DIM_X=8,
        DIM_Y=16,
        DIM_XA=32,
        DIM_YA=4,
        DIM_XB=4,
        DIM_YB=32,
        UNROLL=1,
        min_blocks=16,
    )
    report = compile_source(source_of("gemm_simt", config), CC).resources
    assert report.spill_stores and report.stack_bytes
    assert complaint(config, report, known("h200"))[0] == "spills"


def test_a_kernel_that_numba_refuses(home, monkeypatch):
    monkeypatch.setenv("PYBLASGPU_HOME", home["PYBLASGPU_HOME"])

    def broken(s, d, m, n, s_rs, s_cs, d_rs, d_cs, stride_s, stride_d, alpha, alpha_i):
        d[0] = no_such_name  # noqa: F821

    with pytest.raises(CompileError, match="copy_scaled: Numba cannot compile"):
        compile_source(replace(SOURCE, build=lambda: broken, threads=96), CC)


def test_a_text_that_the_linker_refuses():
    with pytest.raises(CompileError, match="linker refuses"):
        link_ptx(".version 8.0\n.target sm_90a\n.address_size 64\n.nonsense", CC)


def test_digests_cover_the_functions_that_kernels_are_made_of():
    """Of a kernel of each family that an H200 can need, and for a family of several modules of each."""
    sources = {(each.name, each.parts): each for each in catalogue.kernels(known("h200"))}
    for source in sources.values():
        text = kernel_text.python_text(source)
        modules = {name.replace("/", ".") for name in re.findall(r"pyblasgpu/([\w/]+)\.py:\d+\n", text)}
        modules |= {"gpu.backend", "gpu.build.translate", "gpu.build.link", "gpu.intrinsics.ptx"}
        covered = kernel_digest.covered(*source.modules)
        assert modules <= covered, f"{source.name} {source.parts}"
        if source.parts == ("pyblasgpu.kernels.gemm.mainloop",):
            assert "kernels.gemm.trmm_fused" not in covered
    assert len(sources) > 50


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ('"""A module."""\nx = 1\n\n\ndef f(a):\n    """Say."""\n    return a * 2  # why\n', True),
        ("x = 1\n#: x\ndef f(a): return (a\n * 2)", True),
        ("x = 1\ndef f(a): return a * 3", False),
        ("x = '1'\ndef f(a): return a * 2", False),
        ("x = 1\ndef f(b): return b * 2", False),
    ],
)
def test_a_digest_is_blind_to_comments_docstrings_and_layout(text, same):
    plain = b"x = 1\ndef f(a):\n    return a * 2"
    assert (code_of(text.encode()) == code_of(plain)) == same


def test_a_changed_kernel_changes_the_digests_of_those_that_import_it(monkeypatch):
    every = ("trsm.small", "trsm.body", "gemm.simt", "factor.lu.laswp")
    names = [f"pyblasgpu.kernels.{name}" for name in every]
    texts = kernel_digest.texts()

    def digests(changed, addition):
        kernel_digest.forget()
        monkeypatch.setattr(kernel_digest, "texts", lambda: {**texts, changed: texts[changed] + addition})
        return [kernel_digest.digest_of(name) for name in names]

    before = digests("kernels.trsm.small", b"# a remark\n")
    small = digests("kernels.trsm.small", b"another = 1\n")
    shared = digests("gpu.intrinsics.memory", b"another = 1\n")
    monkeypatch.undo()
    kernel_digest.forget()
    assert before == [kernel_digest.digest_of(name) for name in names]
    assert [x == y for x, y in zip(before, small, strict=True)] == [False, True, True, True]
    assert not set(before) & set(shared)
