"""TRSM with few right-hand sides as one launch: which calls are, its Config, its workspace of flags alone."""

from __future__ import annotations

from itertools import product

import fake_kernels
import numpy as np
import pytest

from pyblasgpu.api.explain import explain
from pyblasgpu.database.policy import reference
from pyblasgpu.dispatch.choose import select
from pyblasgpu.dispatch.overrides import override
from pyblasgpu.errors import ConfigError
from pyblasgpu.frontend.calls.call import launch_list_of, routine
from pyblasgpu.gpu.device import known, names
from pyblasgpu.kernels.trsv.kernel import Trsv
from pyblasgpu.types import DTYPES, Diag, Side, Uplo

D = DTYPES["d"]
trsm = routine("trsm")


MIN_TRSV_ORDER = int(reference().trsv_min_order)


@pytest.fixture
def kernels(monkeypatch):
    return fake_kernels.install(monkeypatch)


def launched(kernels, n=MIN_TRSV_ORDER + 1, r=1, batch_shape=(), b_order="F") -> list[str]:
    """The kernels of a call with unit vectors, which is computed exactly."""
    t = np.broadcast_to(np.eye(n), (*batch_shape, n, n)).copy()
    b = np.ones((*batch_shape, n, r), order=b_order)
    kernels.launches.clear()
    left, right = fake_kernels.operand(t, D), fake_kernels.operand(b, D)
    trsm(2, left, right, 0, side=Side.LEFT, uplo=Uplo.LOWER, diag=Diag.NON_UNIT)
    assert (b == 2).all() and not kernels.held
    return [name for name, *_ in kernels.launches]


@pytest.mark.parametrize("side, uplo, diag", list(product(Side, Uplo, Diag)))
@pytest.mark.parametrize("letter", "dz")
def test_every_variant_is_one_launch(kernels, letter, side, uplo, diag):
    """In place, and into another array, without a copy."""
    for out_order in (None, "C"):
        fake_kernels.check_trsm(letter, MIN_TRSV_ORDER + 44, 3, side, uplo, diag, out_order=out_order)
    assert [name for name, *_ in kernels.launches] == ["trsv"] * 2


@pytest.mark.parametrize(
    ("shape", "is_one"),
    [
        ({}, True),
        ({"r": 4}, True),
        ({"r": 5}, False),
        ({"n": MIN_TRSV_ORDER}, False),
        ({"n": 5000}, True),
        ({"batch_shape": (1,)}, True),
        ({"batch_shape": (2,)}, False),
        ({"b_order": "C", "r": 2}, True),
    ],
)
def test_which_calls_are(kernels, shape, is_one):
    assert (launched(kernels, **shape) == ["trsv"]) == is_one


def test_overrides_decide(kernels):
    with override("trsm_algorithm", "recursion"):
        assert "trsv" not in launched(kernels)
    with override("trsm", 128):
        assert "trsv" not in launched(kernels)
    with override("trsm_algorithm", "trsv"):
        assert launched(kernels, n=9) == ["trsv"]
        assert "trsv" not in launched(kernels, n=9, r=5)
        with override("trsm", 4), override("trsv", Trsv("d", ROWS=32)):
            assert launched(kernels, n=65) == ["trsv"]
            assert kernels.launches[0][1] == (3, 1, 1)


def test_the_workspace_is_flags_alone(kernels):
    t, b = np.eye(300), np.ones((300, 1))
    operands = fake_kernels.operand(t, D), fake_kernels.operand(b, D)
    launches = launch_list_of("trsm")(1, *operands, side=Side.LEFT, uplo=Uplo.LOWER, diag=Diag.NON_UNIT)
    assert launches.workspace_bytes == 0 and launches.uses_flags and launches.uses_workspace
    launched(kernels)
    assert kernels.sizes == [0]


def test_explain_names_it(kernels):
    algorithm, line, decisive = explain("trsm", "z", 1000, 2)
    origin = "packaged for NVIDIA H200"
    assert algorithm == ("algorithm", "trsv", f"{origin}, trsv_min_order") and line[0] == "trsv"
    assert "COLS=2" in line[1] and line[2] == "fixed"
    assert decisive == ("policy", "trsv_min_order: 256", origin)


def test_what_serves_without_an_override():
    """A thread has twice as many columns of doubles."""
    chosen = {letter: select("trsv", DTYPES[letter], "", (1000, 1), known("h200")) for letter in DTYPES}
    assert {letter: choice.config.DIM_K for letter, choice in chosen.items()} == {
        "s": 16,
        "d": 8,
        "c": 16,
        "z": 16,
    }
    assert {letter: choice.origin for letter, choice in chosen.items()} == {
        **dict.fromkeys("scz", "fixed"),
        "d": "packaged for NVIDIA H200",
    }


# ---------------------------------------------------------------------------------------------- its Config


@pytest.mark.parametrize("name", [name for name in names() if known(name).has_async_copy])
@pytest.mark.parametrize("letter", DTYPES)
def test_a_config_serves_every_device(letter, name):
    device = known(name)
    for columns, kept in zip((1, 2, 3, 4), (1, 2, 4, 4)):
        config = Trsv(letter).specialize(columns, device.shared_per_block)
        assert kept == config.COLS
        assert config.shared_bytes <= device.shared_per_block and config.ROWS >= 32
        assert config.registers <= device.registers_per_block // config.threads


def test_grids():
    assert [Trsv("d").grid(n) for n in (1, 128, 129, 8192)] == [1, 1, 2, 64]


@pytest.mark.parametrize(
    ("changes", "rule"),
    [
        ({"DIM_M": 64, "DIM_K": 32}, "row_threads"),
        ({"DIM_M": 8, "DIM_K": 8}, "row_threads"),
        ({"DIM_M": 1, "DIM_K": 8, "ROWS": 8}, "row_threads"),
        ({"ROWS": 0}, "tile"),
        ({"ROWS": 72}, "tile"),
        ({"ROWS": 16}, "tile"),
        ({"COLS": 3}, "columns"),
        ({"GROUP": 16}, "group"),
        ({"ROWS": 36, "DIM_M": 12, "DIM_K": 16}, "tile"),
        ({"ROWS": 12, "DIM_M": 12, "DIM_K": 8}, "tile"),
    ],
)
def test_rules(changes, rule):
    with pytest.raises(ConfigError) as caught:
        Trsv("d", **changes)
    assert caught.value.rule == rule
