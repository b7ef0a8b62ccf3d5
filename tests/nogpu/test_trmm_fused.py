"""How the fused TRMM is chosen, without a device."""

from __future__ import annotations

from dataclasses import replace

import fake_kernels
import numpy as np
import pytest
from fake_kernels import operand

from pyblasgpu.dispatch import choose, product_kinds
from pyblasgpu.dispatch.algorithms import trmm_algorithm
from pyblasgpu.dispatch.overrides import override, set_math_mode
from pyblasgpu.dispatch.product_kinds import fused_variant
from pyblasgpu.errors import BackendUnavailable, ConfigError
from pyblasgpu.gpu.device import known, stand_ins
from pyblasgpu.kernels.gemm.fused import tile_counts, tile_orders
from pyblasgpu.kernels.gemm.trmm_stack import TrmmStack
from pyblasgpu.model.score import in_place_cycles
from pyblasgpu.operands import Operand
from pyblasgpu.routines import launch_list
from pyblasgpu.routines.launch_list import LaunchList
from pyblasgpu.routines.level3 import symm, trmm, trmm_fused
from pyblasgpu.testing.reference import integers, read_part
from pyblasgpu.types import DTYPES, Diag, Side, Triangle, Uplo

H200 = known("h200")


@pytest.fixture(autouse=True)
def on_an_h200(monkeypatch):
    monkeypatch.setitem(stand_ins, 0, H200)


def dense(letter: str, rows: int, cols: int) -> Operand:
    return Operand(1 << 30, rows, cols, 1, rows, DTYPES[letter], batch_stride=rows * cols)


def planned(letter, order, others, side=Side.LEFT, uplo=Uplo.LOWER, **changes):
    dtype = DTYPES[letter]
    t, b = (
        dense(letter, order, order),
        dense(letter, *((order, others) if side is Side.LEFT else (others, order))),
    )
    if trmm_algorithm(dtype, order, others, 1, H200).name != "trmm_fused":
        return None
    return trmm_fused.plan(LaunchList(dtype, 0), t, b._replace(**changes), side, uplo)


@pytest.mark.parametrize("letter", DTYPES)
def test_squares_are_one_launch_but_for_leaves(letter):
    assert planned(letter, 64, 64) is None
    assert planned(letter, 1000, 1000) is not None


def test_the_triangle_of_each_variant():
    for side, uplo, triangle in (
        (Side.LEFT, Uplo.LOWER, Triangle.LOWER_LEFT),
        (Side.LEFT, Uplo.UPPER, Triangle.UPPER_LEFT),
        (Side.RIGHT, Uplo.LOWER, Triangle.LOWER_RIGHT),
        (Side.RIGHT, Uplo.UPPER, Triangle.UPPER_RIGHT),
    ):
        assert planned("d", 512, 300, side, uplo).operands.triangle == triangle
    # a row-major B is the transposed problem
    by_rows = planned("d", 512, 512, row_stride=512, col_stride=1)
    assert by_rows.operands.triangle == Triangle.UPPER_RIGHT


def test_what_takes_the_recursion():
    assert planned("d", 512, 512, batch=3) is None
    assert planned("d", 512, 512, row_stride=2, col_stride=1024) is None
    assert planned("d", 4096, 8) is None  # one column of tiles: most of the device would wait
    with override("trmm", 128):
        assert planned("d", 512, 512) is None
    with override("trmm_algorithm", "recursion"):
        assert planned("d", 512, 512) is None
    with override("trmm_algorithm", "trmm_fused"):
        assert planned("d", 4096, 8) is not None


@pytest.mark.parametrize("mode", [None, "tensor"])
@pytest.mark.parametrize("unit", Diag)
@pytest.mark.parametrize("letter", DTYPES)
def test_into_another_matrix_without_a_copy_where_the_layouts_agree(letter, unit, mode):
    def stems(out: Operand) -> list[str]:
        flags = {"side": Side.LEFT, "uplo": Uplo.LOWER, "diag": unit}
        operands = dense(letter, 1024, 1024), dense(letter, 1024, 1024), out
        with set_math_mode(mode):
            launches = trmm.launch_list(1.0, *operands, **flags)
        return [entry.source.name for entry in launches.entries]

    alike = dense(letter, 1024, 1024)._replace(col_stride=1032)
    by_rows = alike._replace(row_stride=1024, col_stride=1)
    # on tensor cores a unit diagonal is added as B
    adds = mode == "tensor" and letter == "s" and unit is Diag.UNIT
    assert ("copy_scaled" in stems(alike)) == adds
    assert stems(by_rows)[0] == "copy_scaled"


@pytest.mark.parametrize("order", ["CC", "CF", "FC", "FF"])
@pytest.mark.parametrize("side", Side)
@pytest.mark.parametrize("letter, unit", [("s", Diag.UNIT), ("c", Diag.NON_UNIT), ("z", Diag.UNIT)])
def test_launches_by_stand_ins(letter, unit, side, order, monkeypatch):
    """In place and into another matrix, of whose layouts `order` has the one of T and of the other two."""
    kernels, rng, dtype = fake_kernels.install(monkeypatch), np.random.default_rng(1), DTYPES[letter]
    t = integers(rng, (150, 150), dtype)
    seen = read_part(t, Uplo.LOWER, unit).conj()
    t[np.triu_indices(150, unit is not Diag.UNIT)] = np.nan
    b = integers(rng, (150, 70) if side is Side.LEFT else (70, 150), dtype)
    expected = 2 * (seen @ b if side is Side.LEFT else b @ seen)
    t, b = np.array(t, order=order[0]), np.array(b, order=order[1])
    out = np.full_like(b, np.nan)
    first, *others = (operand(each, dtype) for each in (t, b, out))
    flags = {"side": side, "uplo": Uplo.LOWER, "diag": unit}
    for operands, result in ((others, out), (others[:1], b)):
        launches = trmm.launch_list(2, first._replace(conj=dtype.is_complex), *operands, **flags)
        launches.run([first.pointer, *(each.pointer for each in operands)], 2, stream=0)
        np.testing.assert_array_equal(result, expected)
    stems = [name for name, _, _ in kernels.launches]
    assert stems == ["diagonal_blocks", "gemm_simt" if letter in "sc" else "gemm_mma"] * 2


STACKS = [
    # letter, side, order of T, order of B, uplo, op, unit, whether T is shared
    ("s", Side.LEFT, "F", "F", Uplo.LOWER, False, Diag.UNIT, False),
    ("d", Side.RIGHT, "F", "F", Uplo.UPPER, False, Diag.NON_UNIT, True),
    ("c", Side.LEFT, "C", "C", Uplo.UPPER, True, Diag.UNIT, False),
    ("z", Side.RIGHT, "C", "F", Uplo.LOWER, True, Diag.NON_UNIT, True),
    ("c", Side.RIGHT, "F", "C", Uplo.LOWER, True, Diag.NON_UNIT, False),
]


@pytest.mark.parametrize("letter, side, order_t, order_b, uplo, conj, unit, shared", STACKS)
def test_stacks_are_one_launch(letter, side, order_t, order_b, uplo, conj, unit, shared, monkeypatch):
    """In place and into another stack, and in portions where scratch is short."""
    kernels, rng, dtype = fake_kernels.install(monkeypatch), np.random.default_rng(1), DTYPES[letter]
    t = integers(rng, (1 if shared else 3, 150, 150), dtype)
    seen = read_part(t, uplo, unit)
    seen = seen.conj() if conj else seen
    lower = np.tri(150, k=-(unit is Diag.UNIT), dtype=bool)
    t[:, ~(lower if uplo is Uplo.LOWER else lower.T)] = np.nan
    b = integers(rng, (3, 150, 70) if side is Side.LEFT else (3, 70, 150), dtype)
    expected = 2 * (seen @ b if side is Side.LEFT else b @ seen)

    def stored(x, order):
        return (
            np.ascontiguousarray(x) if order == "C" else np.ascontiguousarray(x.swapaxes(1, 2)).swapaxes(1, 2)
        )

    t, b = stored(t, order_t), stored(b, order_b)
    out = stored(np.full_like(b, np.nan), order_b)
    first, *others = (operand(each, dtype) for each in (t, b, out))
    first = first._replace(conj=conj, batch=3, batch_stride=0 if shared else first.batch_stride)
    flags = {"side": side, "uplo": uplo, "diag": unit}
    for operands, result in ((others, out), (others[:1], b)):
        launches = trmm.launch_list(2, first, *operands, **flags)
        launches.run([first.pointer, *(each.pointer for each in operands)], 2, stream=0)
        np.testing.assert_array_equal(result, expected)
    copies = ["copy_scaled"] if conj or order_t != order_b else []
    assert [name for name, _, _ in kernels.launches] == [*copies, "diagonal_blocks", "trmm_stack"] * 2
    monkeypatch.setattr(symm.copies, "MOST_COPIED", 1 << 15)
    stored_again = stored(np.full_like(out, np.nan), order_b)
    launch_list.cache.clear()
    launches = trmm.launch_list(2, first, others[1], operand(stored_again, dtype), **flags)
    assert [entry.source.name for entry in launches.entries].count("trmm_stack") > 1
    launches.run([first.pointer, others[1].pointer, stored_again.ctypes.data], 2, stream=0)
    np.testing.assert_array_equal(stored_again, 2 * (seen @ out if side is Side.LEFT else out @ seen))
    b[...], kernels.launches[:] = expected, []
    with override("trmm_algorithm", "trmm_small"):  # by levels, but not in place
        for operands, result in ((others, out), (others[:1], b)):
            launches = trmm.launch_list(1, first, *operands, **flags)
            launches.run([first.pointer, *(each.pointer for each in operands)], 1, stream=0)
            np.testing.assert_array_equal(result, seen @ expected if side is Side.LEFT else expected @ seen)
    stems = [name for name, _, _ in kernels.launches]
    assert stems[0] == "trmm_small" and stems[-1] == "trmm_stack" and stems.count("trmm_small") == 1
    b[...] = expected
    with override("workspace", 0):
        launches = trmm.launch_list(1, first, *others[:1], **flags)
        launches.run([first.pointer, others[0].pointer], 1, stream=0)
    np.testing.assert_array_equal(b, seen @ expected if side is Side.LEFT else expected @ seen)
    assert launches.workspace_bytes == 0


@pytest.mark.parametrize(
    "letter, n, batch, tile",
    [("s", 1024, 32, 64), ("s", 1024, 4, 32), ("c", 1024, 32, 32), ("d", 512, 4, 64)],
)
def test_tiles_of_stacks_are_large_where_there_are_many(letter, n, batch, tile):
    t, b = dense(letter, n, n)._replace(batch=batch), dense(letter, n, n)._replace(batch=batch)
    launches = trmm.launch_list(1.0, t, b, side=Side.LEFT, uplo=Uplo.LOWER, diag=Diag.UNIT)
    assert tile == launches.entries[-1].source.config.BLK


def test_a_config_of_stacks_that_is_asked_for():
    t, b = dense("s", 150, 150)._replace(batch=3), dense("s", 150, 70)._replace(batch=3)
    with override("trmm_stack", TrmmStack("s", BLK=32)):
        launches = trmm.launch_list(1.0, t, b, side=Side.LEFT, uplo=Uplo.LOWER, diag=Diag.UNIT)
    assert launches.entries[-1].source.config.BLK == 32
    with pytest.raises(ConfigError, match="by columns"):
        TrmmStack("s", trans_a=True)
    with pytest.raises(ConfigError, match="MANY >= 0"):
        TrmmStack("s", MANY=-1)


@pytest.mark.parametrize("letter", "cz")
def test_a_lazily_conjugated_factor_into_another_matrix(letter, monkeypatch):
    fake_kernels.install(monkeypatch)
    rng, dtype = np.random.default_rng(1), DTYPES[letter]
    t, b = (np.asfortranarray(integers(rng, shape, dtype)) for shape in ((150, 150), (150, 70)))
    out = np.full_like(b, np.nan)
    operands = operand(t, dtype), operand(b, dtype, conj=True), operand(out, dtype)
    launches = trmm.launch_list(2, *operands, side=Side.LEFT, uplo=Uplo.LOWER, diag=Diag.NON_UNIT)
    launches.run([each.pointer for each in operands], 2, stream=0)
    np.testing.assert_array_equal(out, 2 * (np.tril(t) @ b.conj()))


@pytest.mark.parametrize("letter", DTYPES)
def test_no_more_workspace_than_triangular_routines_may_take(letter):
    job = planned(letter, 16384, 16384) or planned(letter, 1024, 1024)
    _, _, c, triangle = job.operands
    levels, strips = tile_counts(job.choice.config, triangle, c.rows, c.cols)
    bytes_taken = DTYPES[letter].itemsize * levels * (job.block**2 + strips)
    assert bytes_taken <= trmm_fused.most_workspace(c)


def test_work_in_levels():
    """A tile of the whole order takes longer than the mean one, and many tiles more than one."""
    chosen = choose.select(
        "gemm", DTYPES["d"], "nn", (4096, 4096, 4096), H200, region=Triangle.LOWER_LEFT
    ).config
    share, longest = in_place_cycles(chosen, (4096, 4096, 4096), H200, Triangle.LOWER_LEFT)
    fewer, same = in_place_cycles(chosen, (4096, 2048, 4096), H200, Triangle.LOWER_LEFT)
    assert longest < share and same == longest and fewer < 0.6 * share


def test_without_a_config_for_it_the_choice_says_so(monkeypatch, request):
    monkeypatch.setattr(product_kinds, "fused_variant", lambda config, triangle: None)

    def forget():
        product_kinds.variant_of.cache_clear()
        choose.reload()

    forget()
    request.addfinalizer(forget)
    with pytest.raises(BackendUnavailable, match="in place"):
        choose.select("gemm", DTYPES["d"], "nn", (999, 999, 999), H200, region=Triangle.LOWER_LEFT)
    assert planned("d", 999, 999) is None


def test_a_config_that_is_asked_for_and_cannot_takes_the_recursion():
    chosen = choose.select(
        "gemm", DTYPES["d"], "nn", (999, 999, 999), H200, region=Triangle.LOWER_LEFT
    ).config
    with override(chosen.STEM, replace(chosen, stages=1, prefetch=False, through_l1=False)):
        assert planned("d", 999, 999) is None
    with override(chosen.STEM, chosen):
        assert planned("d", 999, 999).choice.origin == "override"


def test_a_variant_takes_one_tile_a_block():
    chosen = choose.select("gemm", DTYPES["d"], "nn", (4096,) * 3, H200).config
    variant = fused_variant(chosen, Triangle.LOWER_LEFT)
    assert not variant.persistent and tile_orders(variant, Triangle.LOWER_LEFT) == (
        chosen.BLK_M,
        chosen.BLK_N,
    )
