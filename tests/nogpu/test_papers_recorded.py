"""What recorded sweeps answer to the papers: winners by algorithm, and the two stages replayed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pyblasgpu.tuning.results import Record
from tuning.papers import recorded

CARD = "a card"


def record(stem, size, extents, parameters, tflops, dtype="d", run="one"):
    return Record(CARD, "sm_90", stem, dtype, "any", size, extents, parameters, "ok", 1 / tflops, tflops,
                  toolchain=run, caches="cold")  # fmt: skip


def leaf(number, **others):
    return {"BLK_M": number, **others}


ALONE = [
    record("trmm_leaf", "many", (order, 2048), leaf(n), rate)
    for order in (128, 512)
    for n, rate in ((1, 9.0), (2, 8.0), (3, 7.0), (4, 6.0))
]
WHOLE = [record("trmm", "many", (2048, 2048), leaf(n, stop=128), 10.0 + n) for n in (1, 2, 3, 4)]
OTHER_RUN = [record("trmm", "many", (2048, 2048), leaf(4, stop=64), 99.0, run="two")]
TRSM = [
    record("trsm", "512x512", (512, 512), {"recursion": 1}, 3.0),
    record("trsm", "512x512", (512, 512), {"trsm_fused": 1}, 4.0),
    record("trsm", "16x16x10000", (16, 16, 10_000), {"recursion": 1}, 1.0),
    record("trsm", "16x16x10000", (16, 16, 10_000), {"trsm_small": 1}, 2.0),
]


def test_two_stages_on_one_run():
    """Leaf 4, the best within the routine, is the worst by itself."""
    (result,) = recorded.replays([*ALONE, *WHOLE, *OTHER_RUN], CARD)
    assert (result.dtype, result.rhs, result.pruned, result.exhaustive) == ("d", 2048, 13.0, 14.0)
    assert (result.tried, result.all) == (3, 4) and result.overhead == pytest.approx(100 / 13)
    assert not recorded.replays([*ALONE, *WHOLE], CARD, keep=4)  # nothing is left out
    assert not recorded.replays(WHOLE, CARD) and not recorded.replays(ALONE, "another")


def test_algorithms_of_a_device():
    rates = recorded.algorithms(TRSM, CARD)
    assert rates["d", "512x512"] == {"recursion": 3.0, "trsm_fused": 4.0}
    assert not recorded.algorithms(TRSM, "another")


def test_winners_that_strict_guidelines_leave_out():
    """A tile of 2 by 2 elements a thread has little reuse."""
    grids = {"DIM_X": 16, "DIM_Y": 16, "DIM_XA": 32, "DIM_YA": 8, "DIM_XB": 8, "DIM_YB": 32}
    shape = {"BLK_K": 8, "UNROLL": 8, "stages": 1} | grids
    tiles = {size: shape | {"BLK_M": size, "BLK_N": size} for size in (32, 64, 128)}
    times = {32: 3.0, 64: 2.0, 128: 1.0}
    products = [record("gemm_simt", "tiny", (256,) * 3, tiles[n], x) for n, x in times.items()]
    products.append(record("gemm_simt", "large", (4096,) * 3, tiles[64], 1.0))
    at = [replace(each, device="NVIDIA H200", layout="nn") for each in products]
    (row,) = recorded.obeyed(at, "NVIDIA H200")
    assert row == {"dtype": "d", "problems": 2, "lacks": {"reuse": 1}, "times": [1.5]}
    shown = recorded.obeyed_table([row], "a card")
    assert [next(iter(column.cells)) for column in shown.columns][1:3] == ["2", "1"]
    assert not recorded.obeyed(at, "another")


def test_the_tables(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(recorded, "read_sweep", lambda path: [*ALONE, *WHOLE, *TRSM])
    assert recorded.main(["a sweep"]) == 0
    text = capsys.readouterr().out
    assert "trsm_small" in text and "16x16x10000" in text and "7.7 %" in text
    assert recorded.main(["a sweep", "--counts"]) == 0
    assert "512x512" not in capsys.readouterr().out
