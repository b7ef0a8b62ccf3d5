"""A family of one file: registered, simulated, chosen, tuned dry and explained; nothing else names it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
import pytest

from pyblasgpu import cli, explain
from pyblasgpu.database import families_of
from pyblasgpu.dispatch.choose import select
from pyblasgpu.dispatch.overrides import override
from pyblasgpu.errors import require
from pyblasgpu.gpu.backend import cuda, ptx
from pyblasgpu.gpu.build.compile import KernelSource
from pyblasgpu.gpu.device import known
from pyblasgpu.kernels.common.options import UNIT, options_of
from pyblasgpu.kernels.registry import FAMILIES, Axes, Family, register
from pyblasgpu.kernels.trmm.leaf import PARAMETERS
from pyblasgpu.testing.reference import fenced, integers
from pyblasgpu.types import DTYPES

from .launching import run, strides

H200 = known("h200")
STEM = "toy_leaf"


@dataclass(frozen=True)
class ToyLeaf:
    """Config of a leaf of TRMM: each of DIM threads multiplies one column of B."""

    dtype: str
    DIM: int = 64
    stages: int = 1
    min_blocks: int = 1

    STEM: ClassVar[str] = STEM
    ORDER: ClassVar[int] = 64
    registers: ClassVar[int] = 16
    shared_bytes: ClassVar[int] = 0
    reuse: ClassVar[float] = 1.0

    def __post_init__(self):
        require(self.DIM % 32 == 0, "whole_warps", "DIM % 32 == 0", DIM=self.DIM)

    @cached_property
    def dtype_facts(self):
        return DTYPES[self.dtype]

    @property
    def threads(self):
        return self.DIM

    @property
    def BLK_M(self):
        return self.ORDER

    @property
    def BLK_N(self):
        return self.DIM

    def grid(self, columns):
        return -(-columns // self.DIM)


def source(config, conj=False, t_by_rows=False):
    return KernelSource.of(config, PARAMETERS, lambda: build(config))


def build(config):
    DIM, real = config.DIM, ptx.REALS[config.dtype_facts.real]
    read, store = ptx.load_global(1, False), ptx.store_global_vector(1)

    def toy_leaf(
        t, b, c, n, cols, options, t_rs, t_cs, b_rs, b_cs, c_rs, c_cs, stride_t, stride_b, stride_c, alpha,
        alpha_i,
    ):  # fmt: skip
        unit = options & UNIT != 0
        col = cuda.blockIdx.x * DIM + cuda.threadIdx.x
        x, y, total = cuda.local.array(1, real), cuda.local.array(1, real), cuda.local.array(1, real)
        for back in range(n):  # from below, so that what a row needs is still there
            i = n - 1 - back
            total[0] = real(0)
            for k in range(i + 1):
                x[0] = real(1)
                read(x, 0, t, i * t_rs + k * t_cs, (col < cols) & (k < i or not unit))
                if unit and k == i:
                    x[0] = real(1)
                read(y, 0, b, k * b_rs + col * b_cs, col < cols)
                total[0] += x[0] * y[0]
            total[0] *= alpha
            store(c, i * c_rs + col * c_cs, total, 0, col < cols)

    return toy_leaf


def space(dtype, layout, device, effort):
    return [lambda chosen: [{"DIM": dim} for dim in (48, 64, 128)], lambda chosen: [{"min_blocks": 1}]]


def cost(config, extents, device):
    """Cycles: smaller blocks fill the device sooner."""
    order, rhs, *_ = extents
    return order**2 * (1 + config.DIM / 1024) + rhs


@pytest.fixture(autouse=True)
def toy():
    family = Family(
        STEM,
        __name__,
        "ToyLeaf",
        "trmm",
        dtypes=("s", "d"),
        space_name=f"{__name__}:space",
        axes=Axes(tile=(("DIM",),)),
        cost=cost,
    )
    yield register(family)
    del FAMILIES[STEM]


@pytest.mark.parametrize("unit", [False, True])
@pytest.mark.parametrize("letter", "sd")
def test_it_multiplies(toy, letter, unit):
    rng, dtype = np.random.default_rng(3), DTYPES[letter]
    t, x = integers(rng, (21, 21), dtype), integers(rng, (21, 70), dtype)
    meant = np.tril(t, -1) + (np.eye(21) if unit else np.diag(t.diagonal()))
    t[np.triu_indices(21, 0 if unit else 1)] = np.nan
    b, unharmed = fenced(x, "F")
    config = toy.config(letter, "", {"DIM": 32})
    kernel = toy.source(config)
    run(
        kernel,
        config.grid(70),
        (t, b, b),
        (21, 70, options_of(unit=unit), *strides(t), *strides(b), *strides(b), 0, 0, 0),
        (2.0,),
    )
    assert np.array_equal(b, 2 * meant @ x) and unharmed()


def test_it_is_chosen():
    assert families_of("trmm", "d") == ("trmm_leaf", STEM) and STEM not in families_of("trmm", "z")
    choice = select(STEM, DTYPES["d"], "", (64, 512), H200)
    assert choice.config == ToyLeaf("d", 64) and choice.origin == "computed"
    with override(STEM, ToyLeaf("d", 128)):
        assert select("trmm", DTYPES["d"], "", (64, 512), H200).config == ToyLeaf("d", 128)


def test_it_is_tuned_dry(capsys):
    arguments = ["--routine", "dtrmm", "--family", STEM, "--device", "h200", "--json"]
    assert cli.main(["tune", "--dry-run", *arguments]) == 0
    (search,) = json.loads(capsys.readouterr().out)["funnels"]
    assert (search["family"], search["dtype"]) == (STEM, "d")
    assert search["removed"]["whole_warps"] == 1 and search["left"] == 2


def test_it_is_explained():
    with override(STEM, ToyLeaf("d", 128)):
        launches = explain("trmm", "d", 64, 512)
    assert (STEM, repr(ToyLeaf("d", 128)), "override") in launches
