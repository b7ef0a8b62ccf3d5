"""The PTX of a kernel of each family: memory is touched after the wait, single precision stays single."""

from __future__ import annotations

import re
from dataclasses import replace

import chosen_kernels
import pytest
from chosen_kernels import configs_of, length, smallest

from pyblasgpu.database import FAMILIES, FIXED
from pyblasgpu.dispatch.product_kinds import fused_variant
from pyblasgpu.gpu.build.compile import KernelSource
from pyblasgpu.gpu.build.translate import to_ptx
from pyblasgpu.kernels.gemm import simt as gemm_simt
from pyblasgpu.kernels.gemm.simt import GemmSimt
from pyblasgpu.kernels.registry import family_of
from pyblasgpu.tuning.compile_pool import source_of
from pyblasgpu.types import Triangle

pytestmark = chosen_kernels.NEEDS_COMPILER

CC = (9, 0)
WAIT = "griddepcontrol.wait; griddepcontrol.launch_dependents;"
TOUCHES = r"(ld|st)\.global|cp\.async\.c[ag]"


def before_and_after_wait(source: KernelSource) -> tuple[str, str]:
    """The PTX of a kernel: what a thread can run before it waits for the grid dependency, and all else.

    A kernel with two ways for its operands waits in each of them.
    """
    lines = to_ptx(source, CC).partition(".entry")[2].splitlines()
    labels = {line.removesuffix(":"): i for i, line in enumerate(lines) if line.startswith("$")}
    waits = {i for i, line in enumerate(lines) if WAIT in line}
    early: set[int] = set()
    pending = [0]
    while pending:
        i = pending.pop()
        if i in waits or i in early or i >= len(lines):
            continue
        early.add(i)
        branch = re.search(r"(@\S+\s+)?bra(?:\.uni)?\s+(\$\w+);", lines[i])
        if branch:
            pending.append(labels[branch[2]])
        if not re.match(r"\s*(ret|exit);", lines[i]) and (not branch or branch[1]):  # not if predicated
            pending.append(i + 1)
    assert waits
    parts = ([line for i, line in enumerate(lines) if (i in early) is of] for of in (True, False))
    before, after = map("\n".join, parts)
    assert not re.search(r"\b(call|brx)\b", before)  # whose targets are not followed
    return before, after


@pytest.mark.parametrize(
    ("stem", "letter"), [(f.stem, f.dtypes[-1]) for f in (*FAMILIES.values(), *FIXED.values())]
)
def test_a_kernel_touches_memory_after_its_wait(stem, letter):
    """But for what it says it reads before; and no block ends before its wait."""
    source = smallest(stem, letter)
    before, after = before_and_after_wait(source)
    assert re.search(TOUCHES, after) and "ld.global.nc" not in after
    assert not re.search(TOUCHES.partition("|cp")[0] if source.reads_before_wait else TOUCHES, before)
    assert not re.search(r"\b(ret|exit);", before)


def test_the_read_only_path_knows_no_wait():
    """What it reads may be older than what the launch before has written: such a kernel waits for its end."""
    tile = GemmSimt(
        dtype="s",
        trans_a=False,
        trans_b=False,
        BLK_M=16,
        BLK_N=8,
        BLK_K=4,
        DIM_X=8,
        DIM_Y=4,
        DIM_XA=16,
        DIM_YA=2,
        DIM_XB=4,
        DIM_YB=8,
        UNROLL=2,
        share_a=False,
    )
    for read_only in (False, True):
        made = gemm_simt.source(replace(tile, read_only=read_only))
        assert made.reads_before_wait == ((0, 1) if read_only else ())
        assert ("ld.global.nc" in to_ptx(made, CC)) == read_only


@pytest.mark.parametrize(("stem", "letter"), [("gemm_simt", "s"), ("gemm_mma", "d")])
def test_a_persistent_kernel_touches_memory_after_its_wait(stem, letter):
    persistent = min((c for c in configs_of(stem, letter) if c.persistent), key=length)
    before, _ = before_and_after_wait(source_of(stem, persistent))
    assert not re.search(TOUCHES, before) and not re.search(r"\b(ret|exit);", before)


@pytest.mark.parametrize("solved", [False, True])
@pytest.mark.parametrize(("stem", "letter"), [("gemm_simt", "s"), ("gemm_simt", "c"), ("gemm_mma", "z")])
def test_a_kernel_in_place_touches_memory_after_its_wait(stem, letter, solved):
    """What it does with the diagonal, too, is of the type."""
    variants = (
        variant
        for config in configs_of(stem, letter)
        if (variant := fused_variant(config, Triangle.LOWER_LEFT))
    )
    chosen = min(variants, key=length)
    source = family_of(stem).source(chosen, conj=True, triangle=Triangle.LOWER_LEFT, solved=solved)
    before, after = before_and_after_wait(source)
    assert re.search(TOUCHES, after) and not re.search(TOUCHES, before)
    assert not re.search(r"\b(ret|exit);", before)
    assert letter == "z" or not set(re.findall(r"\S*\.f64\S*", before + after))


def test_cards_before_hopper_have_no_turns():
    assert "griddepcontrol" not in to_ptx(smallest("gemm_simt", "s"), (8, 0))


#: Families whose arithmetic is float64's in every dtype.
DOUBLE = ("determinant",)
SINGLE = [
    (f.stem, letter)
    for f in (*FAMILIES.values(), *FIXED.values())
    for letter in "sc"
    if letter in f.dtypes and f.stem not in DOUBLE
]


@pytest.mark.parametrize(("stem", "letter"), SINGLE)
def test_single_precision_has_no_double_arithmetic(stem, letter):
    """A Python number among float32 would turn the arithmetic around it into float64's."""
    source = smallest(stem, letter)
    ptx = to_ptx(source, CC)
    assert ".f32" in ptx or "p" not in source.parameters
    assert not set(re.findall(r"\S*\.f64\S*", ptx))


@pytest.mark.parametrize("stem", FIXED)
def test_a_fixed_kernel_that_copies_asynchronously_or_reduces_by_warps_needs_that(stem):
    """A kernel of these does not link for an older card; what is for Hopper alone may have neither."""
    letter = "s" if "s" in FIXED[stem].dtypes else FIXED[stem].dtypes[0]
    ptx, needs = to_ptx(smallest(stem, letter), (7, 5)), FIXED[stem].needs
    does = "cp.async" in ptx or "redux.sync" in ptx
    assert does == (needs >= (8, 0)) or needs >= (9, 0)
