"""Kernels compiled without a device: a sample of them spills nothing, and nothing compiles twice."""

from __future__ import annotations

import ast
import gc
import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import chosen_kernels
import pytest

import pyblasgpu
from pyblasgpu.database import FAMILIES
from pyblasgpu.gpu import compile
from pyblasgpu.gpu.compile import CompileError, Resources, compile_here, compile_source, to_ptx
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
from pyblasgpu.gpu import compile
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
    monkeypatch.setattr(compile, "source_digest", lambda: "another")
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
        BLK_N=32,
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
        compile.link_ptx(".version 8.0\n.target sm_90a\n.address_size 64\n.nonsense", CC)


def test_machine_code_is_kept_by_all_the_text_that_it_comes_from():
    """What kernels and intrinsics import of this package decides it, too, but for what no PTX is made of."""
    texts = compile.source_files()
    package = Path(pyblasgpu.__file__).parent
    imported = set()
    for file in texts:
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.ImportFrom) and node.level:
                folder = file.parents[node.level - 1].joinpath(*(node.module or "").split("."))
                imported |= {folder / f"{alias.name}.py" for alias in node.names} | {
                    folder.with_suffix(".py")
                }
    imported = {file for file in imported if file.is_file() and file.is_relative_to(package / "gpu")}
    assert {file.stem for file in imported} >= {"backend", "compile", "mma"}
    told_apart = {"archive", "device", "driver", "garbage", "kernel_store", "workspace"}
    told_apart |= {"intrinsics"}  # the simulator's
    assert {file for file in imported if file.stem not in told_apart} <= set(texts)
