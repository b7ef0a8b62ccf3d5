"""Devices, shapes, Configs and documents for the tests of the choice at run time."""

from __future__ import annotations

from dataclasses import replace

from pyblasgpu.database import FAMILIES, Document, Entry
from pyblasgpu.dispatch.choose import select
from pyblasgpu.gpu.device import known
from pyblasgpu.tuning.prune import candidates
from pyblasgpu.types import DTYPES

H200 = known("h200")
UNKNOWN = replace(known("sm_90"), name="NVIDIA Mystery", cc=(13, 7), sm_count=7, shared_per_block=48 * 1024)
S, D, C, Z = (DTYPES[letter] for letter in "sdcz")
LARGE, SMALL, FEW_ROWS, FEW_COLS = (4096, 4096, 4096), (500, 600, 700), (8, 5000, 3), (5000, 8, 3)


def config(**changes):
    """A Config that no formula comes up with."""
    base = select("gemm_simt", S, "nn", LARGE, H200).config
    return replace(base, BLK_M=32, BLK_N=32, DIM_X=8, DIM_Y=8, VEC_M=1, VEC_N=1, DIM_XA=8, DIM_YA=8, DIM_XB=8,
                   DIM_YB=8, VEC_A=1, VEC_B=1, BLK_K=8, UNROLL=8, PAD_A=0, PAD_B=0, **changes)  # fmt: skip


def document(device, chosen, size="large"):
    entry = Entry(FAMILIES["gemm_simt"].parameters_of(chosen))
    return Document(device, {("gemm_simt", "s", "nn", size): entry})


def measured(device: str, *rows: tuple) -> Document:
    """A document of (size class, Config, TFLOP/s)."""
    entries = {}
    for size, chosen, tflops in rows:
        parameters = FAMILIES[chosen.STEM].parameters_of(chosen)
        entries[chosen.STEM, chosen.dtype, "nn", size] = Entry(parameters, tflops)
    return Document(device, entries)


def tiles(stem: str, dtype: str) -> tuple:
    """The largest and the smallest tile of the quick space."""
    ordinary = [config for config in candidates(stem, dtype, "nn", H200).left if not config.persistent]
    left = sorted(ordinary, key=lambda config: config.BLK_M * config.BLK_N)
    return left[-1], left[0]
