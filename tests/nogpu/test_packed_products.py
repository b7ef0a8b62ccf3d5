"""Products of packed operands but for the kernels: what is packed, when that is chosen, and what it takes."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import fake_kernels
import numpy as np
import pytest
from fake_kernels import operand

from pyblasgpu.database import FAMILIES, Document, Entry
from pyblasgpu.dispatch import choose as selecting
from pyblasgpu.dispatch import operand_copies, tuned_files
from pyblasgpu.dispatch.choose import select
from pyblasgpu.dispatch.overrides import override
from pyblasgpu.dispatch.split_k import STREAM_K
from pyblasgpu.frontend.calls.call import routine
from pyblasgpu.gpu.device import known
from pyblasgpu.kernels.copy.packing import CBL, RBL, ROW
from pyblasgpu.routines.level3.gemm import launch_list
from pyblasgpu.testing.reference import integers
from pyblasgpu.tuning.tuned_file_writer import save
from pyblasgpu.types import DTYPES
from tuning.papers import steinsland

H200, LAYOUTS, S = known("h200"), ("nn", "nt", "tn", "tt"), DTYPES["s"]
LARGE = (4096, 4096, 4096)

gemm = routine("gemm")


@pytest.fixture
def kernels(monkeypatch):
    return fake_kernels.install(monkeypatch)


# ------------------------------------------------------------------------------------------- the routine


def lies(values: np.ndarray, how: str) -> np.ndarray:
    """`values` (batch, rows, cols) by columns, by rows, with both strides more than 1, or backwards."""
    if how == "n":
        return values.swapaxes(1, 2).copy().swapaxes(1, 2)
    if how == "strided":
        values = np.repeat(np.repeat(values, 2, 1), 3, 2)[:, ::2, ::3]
    return values[:, ::-1].copy()[:, ::-1] if how == "backwards" else values


@pytest.mark.parametrize("letter", DTYPES)
@pytest.mark.parametrize("how_a, how_b", list(product(("n", "t", "strided", "backwards"), repeat=2)))
def test_however_operands_lie_the_same_kernels_run(kernels, letter, how_a, how_b):
    dtype, rng, conj = DTYPES[letter], np.random.default_rng(1), letter in "cz"
    a, b, c = (integers(rng, (2, *shape), dtype) for shape in ((300, 70), (70, 200), (300, 200)))
    out = lies(c, "n")
    with override("packed", True):
        gemm(
            2,
            operand(lies(a, how_a), dtype, conj),
            operand(lies(b, how_b), dtype),
            -1,
            operand(out, dtype),
            0,
        )
    assert np.array_equal(out, 2 * (a.conj() @ b) - c)
    names = [name for name, _, _ in kernels.launches]
    assert names[:2] == ["pack", "pack"] and names[2] in ("gemm_simt", "gemm_mma") and len(names) == 3


@pytest.mark.parametrize("trans", ["nn", "tn", "nt", "tt"])
@pytest.mark.parametrize(("of_a", "of_b"), list(product((ROW, CBL, RBL), repeat=2)))
def test_an_override_says_how_each_operand_is_packed(kernels, of_a, of_b, trans):
    """Also for a kernel with one stage, whose operands bypass shared memory or not."""
    rng, dtype = np.random.default_rng(7), DTYPES["d"]
    a, b = integers(rng, (70, 40), dtype), integers(rng, (40, 90), dtype)
    a, b = (np.asarray(x, order="CF"[how == "n"]) for x, how in zip((a, b), trans, strict=True))
    for scheme in ("shared, private", "A shared", "both private"):
        tile = steinsland.candidates(scheme, "d", "nt", H200)[0]
        out = np.zeros((70, 90), order="F")
        with override("gemm_simt", tile.packed_as(of_a, of_b)):
            gemm(1, operand(a, dtype), operand(b, dtype), 0, operand(out, dtype), 0)
        assert np.array_equal(out, a @ b)
        assert [name for name, _, _ in kernels.launches] == ["pack", "pack", "gemm_simt"]
        kernels.launches.clear()


def test_a_matrix_for_a_whole_batch_is_packed_once(kernels):
    rng, dtype = np.random.default_rng(2), DTYPES["d"]
    a, b = integers(rng, (60, 40), dtype), integers(rng, (500, 40, 30), dtype)
    out = np.zeros((500, 30, 60)).swapaxes(1, 2)
    repeated = operand(np.asfortranarray(a), dtype)._replace(batch=500)
    with override("packed", True):
        gemm(1, repeated, operand(b, dtype), 0, operand(out, dtype), 0)
        config = select("gemm", dtype, "nt", (60, 30, 40, 500), H200).config
    assert np.array_equal(out, a @ b)
    matrices = 1 if config.persistent else 500  # of a launch of the product
    assert [grid[2] for _, grid, _ in kernels.launches] == [1, 500, matrices]
    one_a, one_b = (p.size(extent, 40) * 8 for p, extent in zip(config.packings, (60, 30)))
    (size,) = kernels.sizes
    assert 0 <= size - (one_a + 500 * one_b) < 512


def test_a_c_by_rows_and_a_c_that_is_copied(kernels):
    rng, dtype = np.random.default_rng(3), DTYPES["z"]
    a, b, c = (integers(rng, shape, dtype) for shape in ((33, 21), (21, 50), (33, 50)))
    for out in (c.copy(), np.repeat(np.repeat(c, 2, 0), 2, 1)[::2, ::2]):
        with override("packed", True):
            gemm(1j, operand(a, dtype), operand(b, dtype, True), 2, operand(out, dtype), 0)
        assert np.array_equal(out, 1j * (a @ b.conj()) + 2 * c)


def test_nothing_is_packed_where_that_is_forbidden(kernels):
    rng, dtype = np.random.default_rng(4), DTYPES["s"]
    a, b = (integers(rng, (600, 600), dtype) for _ in "ab")
    out = np.empty((600, 600), np.float32, "F")
    strided = operand(np.repeat(np.repeat(a, 2, 0), 2, 1)[::2, ::2], dtype)
    with override("packed", False):
        gemm(1, strided, operand(b, dtype), 0, operand(out, dtype), 0)
    assert [name for name, _, _ in kernels.launches] == ["copy_scaled", "gemm_simt"]
    assert np.array_equal(out, a @ b)


def test_what_is_packed_needs_the_workspace_of_one_product(kernels):
    """Scratch of the operands is free again after the product."""
    a, c = np.empty((512, 512), np.float32), np.empty((512, 512), np.float32, "F")
    with override("packed", True), override("splits", 1):
        launches = launch_list(1, operand(a, S), operand(a, S), 0, operand(c, S))
        config = launches.choices[0].config
    assert config.packed
    assert launches.workspace_bytes == operand_copies.packed_bytes(config, (512, 512, 512))
    assert [choice.config for choice in launches.choices] == [config]


# -------------------------------------------------------------------------------------------- the choice


@pytest.fixture
def files(monkeypatch, decide_by, tmp_path):
    """``files(tflops)`` makes the only files say what layouts reach with tiles of 64 by 64, in s.

    Operands are packed as fast as they are copied, near DRAM's rate.
    """
    monkeypatch.setenv("PYBLASGPU_HOME", str(tmp_path / "home"))
    decide_by(packed_share=0.8, copied_share=dict.fromkeys("sdcz", 0.8))

    def say(**tflops) -> None:
        entries = {}
        for layout, reached in tflops.items():
            config = best[layout]
            entries["gemm_simt", "s", layout, "large"] = Entry(
                FAMILIES["gemm_simt"].parameters_of(config), reached
            )
        monkeypatch.setattr(tuned_files, "PACKAGED", tmp_path)
        save(Document("NVIDIA H200", entries), tmp_path / "nvidia_h200.json")
        selecting.reload()

    tile = {
        "BLK_M": 64,
        "BLK_N": 64,
        "BLK_K": 16,
        "DIM_X": 8,
        "DIM_Y": 16,
        "VEC_M": 4,
        "VEC_N": 4,
        "DIM_XA": 16,
        "DIM_YA": 8,
        "DIM_XB": 16,
        "DIM_YB": 8,
        "PAD_A": 4,
        "PAD_B": 4,
        "stages": 3,
        "prefetch": True,
    }
    best = {layout: FAMILIES["gemm_simt"].config("s", layout, tile) for layout in LAYOUTS}
    yield say
    monkeypatch.undo()
    selecting.reload()


def test_what_is_packed_is_no_parameter_of_a_file():
    for stem in ("gemm_simt", "gemm_mma"):
        assert "packed" not in FAMILIES[stem].parameters and "persistent" in FAMILIES[stem].parameters


def test_nothing_is_packed_but_by_name(files):
    """Also where the layout of packed operands is a quarter faster."""
    files(nt=50.0, tn=40.0, nn=49.5)
    for layout in LAYOUTS:
        assert not select("gemm", S, layout, LARGE, H200).config.packed
        with override("packed", True):
            assert select("gemm", S, layout, LARGE, H200).config.packed


def test_one_operand_is_copied_where_that_is_enough(files):
    files(nt=50.0, tn=46.0, nn=49.5)
    chosen = {layout: select("gemm", S, layout, LARGE, H200) for layout in ("nn", "nt", "tn")}
    assert {layout: choice.copied for layout, choice in chosen.items()} == {
        "nn": (False, False),
        "nt": (False, False),
        "tn": (True, False),
    }
    assert chosen["tn"].config == chosen["nn"].config
    for extents in ((512, 512, 512), (8192, 64, 8192), (4096, 32, 4096), (8, 8, 8, 4096)):
        assert select("gemm", S, "tn", extents, H200).copied == (False, False), "copying costs more"
    with override("packed", False):
        assert select("gemm", S, "tn", LARGE, H200).copied == (False, False)
    with override("layout", "tt"):
        assert select("gemm", S, "tn", LARGE, H200).copied == (False, True)


@pytest.mark.parametrize(
    ("letter", "n", "layouts"),
    [
        ("s", 4097, set(LAYOUTS)),
        ("d", 2047, set()),
        ("d", 4097, set(LAYOUTS)),
        ("c", 2047, set()),
        ("c", 4097, set(LAYOUTS)),
        ("z", 2049, set(LAYOUTS)),
        ("z", 4097, {"nt", "tn", "tt"}),
    ],
)
def test_columns_that_begin_within_sectors_are_copied_where_it_pays(letter, n, layouts):
    """By the packaged values."""
    dtype = DTYPES[letter]
    chosen = {
        layout: select("gemm", dtype, layout, (n, n, n), H200, aligned=(dtype.itemsize,) * 2)
        for layout in LAYOUTS
    }
    packed = {layout for layout, choice in chosen.items() if choice.config.packed}
    assert {layout for layout, choice in chosen.items() if any(choice.copied)} | packed == layouts
    assert not packed


def test_what_operands_are_copied_for():
    """All the ways but the given one; a copy to lie as before only where that mends where columns begin."""
    present = operand_copies.OperandLayouts("nt", (False, False), (32, 4))
    ways = list(operand_copies.other_layouts(present))
    assert len(set(ways)) == 5 and present not in ways
    assert {way[:2] for way in ways} == {
        ("nn", (False, True)),
        ("nt", (False, True)),
        ("tt", (True, False)),
        ("tn", (True, True)),
        ("tt", (True, True)),
    }
    assert all(way.aligned == (32, 32 if way.copied[1] else 4) for way in ways)
    must = operand_copies.OperandLayouts("nn", (True, False), (32, 32))
    assert {way[:2] for way in operand_copies.other_layouts(must)} == {
        ("tn", (True, False)),
        ("nt", (True, True)),
        ("tt", (True, True)),
    }
    assert operand_copies.with_layout(present, "nt") == present and operand_copies.with_layout(
        present, "tt"
    ).copied == (
        True,
        False,
    )


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("how_a, how_b", list(product(("n", "t", "strided"), repeat=2)))
def test_copies_to_any_layout(kernels, layout, how_a, how_b):
    dtype, rng = DTYPES["c"], np.random.default_rng(1)
    a, b, c = (integers(rng, (2, *shape), dtype) for shape in ((30, 70), (70, 20), (30, 20)))
    out = lies(c, "n")
    left, right = operand(lies(a, how_a), dtype, True), operand(lies(b, how_b), dtype)
    with override("layout", layout):
        gemm(2, left, right, -1, operand(out, dtype), 0)
    assert np.array_equal(out, 2 * (a.conj() @ b) - c)
    copies = [name for name, _, _ in kernels.launches].count("copy_scaled")
    assert copies == (how_a != layout[0]) + (how_b != layout[1])


def test_the_workspace_has_a_limit(files, monkeypatch):
    files(nn=50.0, tn=40.0)
    size = operand_copies.copied_bytes(LARGE, (True, False), S)
    for most, copied in ((size, True), (size - 1, False)):
        monkeypatch.setattr(operand_copies, "MOST_COPIED", most)
        selecting.reload()
        assert select("gemm", S, "tn", LARGE, H200).copied == (copied, False)


def test_operands_are_packed_where_nothing_was_measured(files):
    files()
    for layout in LAYOUTS:
        assert not select("gemm", DTYPES["d"], layout, LARGE, H200).config.packed
        with override("packed", True):
            assert select("gemm", DTYPES["d"], layout, LARGE, H200).config.packed
    with override("packed", True):  # Volta has no asynchronous copies
        assert not select("gemm", DTYPES["d"], "nn", LARGE, known("v100")).config.packed


@pytest.mark.parametrize("letter", DTYPES)
def test_one_kernel_serves_all_layouts(letter):
    with override("packed", True):
        configs = {select("gemm", DTYPES[letter], layout, LARGE, H200).config for layout in LAYOUTS}
    assert len(configs) == 1 and configs.pop().packed
    with override("packed", True), override("packed", False):
        assert not select("gemm", DTYPES[letter], "tn", LARGE, H200).config.packed


def test_a_forced_config_is_packed_if_that_is_forced_too():
    config = replace(select("gemm_simt", S, "tn", LARGE, H200).config, stages=3)
    with override("gemm_simt", config):
        assert select("gemm", S, "tn", LARGE, H200).config == config
        with override("packed", True):
            assert select("gemm", S, "tn", LARGE, H200).config == config.for_packed()
    with (
        override("gemm_simt", replace(config, stages=1, prefetch=False, persistent=False)),
        override("packed", True),
    ):
        assert not select("gemm", S, "tn", LARGE, H200).config.packed
    with override("gemm_simt", config.for_packed()):
        for layout in LAYOUTS:
            assert select("gemm", S, layout, LARGE, H200).config == config.for_packed()


def test_the_k_of_a_packed_product_is_not_cut():
    long = (64, 64, 65536)
    assert select("gemm", S, "tn", long, H200).splits > 1
    with override("packed", True):
        assert select("gemm", S, "tn", long, H200).splits in (1, STREAM_K)
        with override("splits", 5):
            choice = select("gemm", S, "tn", long, H200)
            assert choice.config.packed and choice.splits in (1, STREAM_K)
            with override("gemm_simt", choice.config):
                assert select("gemm", S, "tn", long, H200).splits == 1
    with override("splits", 5):
        choice = select("gemm", S, "tn", LARGE, H200)
        assert choice.splits == 5 and not choice.config.packed
