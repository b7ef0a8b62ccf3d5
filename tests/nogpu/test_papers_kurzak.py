"""The generator of Kurzak et al. against the paper's own figures (Tables 1 and 2, section 6.1)."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import pytest

from pyblasgpu.gpu.device import known
from pyblasgpu.tuning.prune import Guidelines, candidates, defaults
from pyblasgpu.types import DTYPES
from tuning.papers import kurzak
from tuning.papers.kurzak import LAYOUTS, TABLE_1, Formulas, count, variants, winner_of_table_2

FERMI = known("fermi")
PAGE = " ".join((Path(__file__).parents[2] / "docs" / "papers" / "kurzak.md").read_text().split())
NONE = Guidelines(threads=0, blocks=1, reuse=0.0)


def test_without_guidelines_there_are_slightly_more_than_a_million():
    funnel = count(DTYPES["s"], "nn", FERMI, NONE)
    assert 1_000_000 < funnel.left < 1_200_000
    assert f"| {funnel.left:,} on the same description |" in PAGE
    assert funnel.total == sum(funnel.removed.values()) + funnel.left


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_the_winners_of_table_2_are_in_the_pruned_space(dtype, layout):
    """CGEMM's at the reuse that the formula gives it: Table 1 asks for 5.0, which it does not have."""
    guidelines = TABLE_1[dtype] if dtype != "c" else Guidelines(512, 2, 4.0)
    pruned = list(variants(DTYPES[dtype], layout, FERMI, guidelines))
    assert winner_of_table_2(dtype, layout) in pruned
    assert len(pruned) == len(set(pruned)) == count(DTYPES[dtype], layout, FERMI, guidelines).left
    assert 50 <= len(pruned) <= 450  # figure 5: slightly below one hundred to slightly above four hundred


def test_cgemms_guideline_is_more_than_its_winner_has():
    tile = winner_of_table_2("c", "nn")
    assert DTYPES["c"].reuse(tile.m_blk // tile.m_dim, tile.n_blk // tile.n_dim) == 4.0 < TABLE_1["c"].reuse
    assert count(DTYPES["c"], "nn", FERMI, TABLE_1["c"]).left == 0


def test_a_missing_bracket_explains_cgemm():
    """With 4mn/(2m+n) the winner, 4 by 4 elements a thread, has 5.33: 5.0 keeps it, 6.0 does not."""

    def left(letter, reuse):
        formulas = Formulas(unbracketed=True)
        funnels = kurzak.counts(DTYPES[letter], ("nn",), FERMI, Guidelines(512, 2, reuse), formulas)
        return funnels["nn"].left

    assert left("c", 5.0) > left("c", 5.34) >= left("c", 6.0)
    assert left("s", 3.0) == count(DTYPES["s"], "nn", FERMI, TABLE_1["s"]).left  # of complex types alone


def test_a_register_that_is_left_over_explains_six_combinations():
    """At 6.0 "only 6 combinations, which do not include the fastest performing one"."""

    def left(registers):
        device, guidelines = replace(FERMI, registers_per_block=registers), Guidelines(512, 2, 6.0)
        found = kurzak.variants(DTYPES["c"], "nn", device, guidelines, Formulas(True, True))
        return {variant[:5] for variant in found}

    all_of_them, one_less = left(FERMI.registers_per_block), left(FERMI.registers_per_block - 1)
    assert (len(all_of_them), len(one_less)) == (8, 6) and one_less < all_of_them
    assert winner_of_table_2("c", "nn")[:5] not in all_of_them


def test_stripes_that_count_once_explain_figure_5():
    """16 versions of 86 to 317 variants, "roughly three thousand cases"; at 6.0 few of CGEMM are left."""

    def left(letter, guidelines):
        formulas = Formulas(unbracketed=True, stripes_once=True)
        return kurzak.counts(DTYPES[letter], ("nn",), FERMI, guidelines, formulas)["nn"].left

    each = [left(letter, TABLE_1[letter]) for letter in DTYPES]
    assert each == [86, 192, 317, 257] and left("c", Guidelines(512, 2, 6.0)) == 12
    printed = {letter: count(DTYPES[letter], "nn", FERMI, TABLE_1[letter]).left for letter in DTYPES}
    names = ", ".join(f"{letter} {number}" for letter, number in printed.items())
    misprints = f"{', '.join(map(str, each))}, and {4 * sum(each)} in 16 versions"
    assert f"as printed {names}; by two misprints {misprints}" in PAGE
    kept = [number for number in printed.values() if number]  # and of CGEMM 66 at the reuse of its winner
    assert f"The printed formulas leave {min(kept)} to {max(kept)} variants" in PAGE
    assert f"Then {min(each)} to {max(each)} variants are left, in 16 versions {4 * sum(each)}" in PAGE


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("letter", DTYPES)
def test_the_tuners_space_on_fermi_holds_the_winners(letter, layout):
    """Tile and grid, at normal effort: neither the rule of registers nor the score removes one."""
    winner = winner_of_table_2(letter, layout)
    guidelines = defaults("gemm_simt", letter, "normal")
    configs = candidates("gemm_simt", letter, layout, FERMI, "normal", guidelines).left
    assert winner[:5] in {(c.BLK_M, c.BLK_N, c.BLK_K, c.DIM_X, c.DIM_Y) for c in configs}


def test_reuse_by_its_formula():
    assert DTYPES["s"].reuse(6, 6) == DTYPES["d"].reuse(6, 6) == 3.0
    assert DTYPES["c"].reuse(4, 4) == 4.0  # four FMAs for the two parts of each element
    assert DTYPES["z"].reuse(3, 2) == pytest.approx(2.4)


def test_every_variant_keeps_the_constraints_of_algorithm_3():
    """Written out once more, for a single variant at a time, with the stripes as they lie in memory."""
    size, guidelines = 8, TABLE_1["d"]
    for v in variants(DTYPES["d"], "tn", FERMI, guidelines):
        threads, m_thr, n_thr = v.m_dim * v.n_dim, v.m_blk // v.m_dim, v.n_blk // v.n_dim
        assert threads <= 1024 and threads % 32 == 0
        assert v.m_dim_a * v.n_dim_a == v.m_dim_b * v.n_dim_b == threads
        assert v.k_blk % v.m_dim_a == 0 and v.m_blk % v.n_dim_a == 0
        assert v.k_blk % v.m_dim_b == 0 and v.n_blk % v.n_dim_b == 0
        shared = ((v.m_blk + 1) * v.k_blk + (v.k_blk + 1) * v.n_blk) * size
        stripes = v.m_blk * v.k_blk + v.k_blk * v.n_blk
        registers = ((m_thr * n_thr + m_thr + n_thr) * threads + stripes) * size // 4
        for needed, available in ((shared, 49152), (registers, 32768)):
            blocks = min(available // needed, 8, 48 * 32 // threads)
            assert blocks >= guidelines.blocks and blocks * threads >= guidelines.threads
        assert DTYPES["d"].reuse(m_thr, n_thr) >= guidelines.reuse


def test_a_guideline_and_a_larger_device_change_the_space():
    strict, loose = Guidelines(512, 2, 3.0), Guidelines(512, 2, 2.0)
    assert count(DTYPES["s"], "nn", FERMI, strict).left < count(DTYPES["s"], "nn", FERMI, loose).left
    kepler = known("kepler")
    assert count(DTYPES["s"], "nn", kepler, strict).left > count(DTYPES["s"], "nn", FERMI, strict).left


@pytest.mark.parametrize(
    "family", ["fermi", "kepler", "maxwell", "volta", "ampere", "ada", "hopper", "blackwell"]
)
def test_every_family_of_devices_is_described(family):
    device = known(family)
    assert device.dram_bytes > 0 and device.l2_bytes > 0
    assert device.fma_lanes(DTYPES["c"]) == device.lanes_float32 >= device.fma_lanes(DTYPES["z"])
    assert count(DTYPES["d"], "nn", device, TABLE_1["d"]).left > 0


def test_the_rates_of_a_device_give_its_peaks():
    """Data sheets: 67 and 33.5 TFLOP/s of an H200, 4.8 TB/s; 9.7 of an A100 in double precision."""
    h200, a100 = known("h200"), known("a100")
    assert math.isclose(h200.sm_count * h200.lanes_float32 * 2 * 1.98e9, 67e12, rel_tol=0.01)
    assert math.isclose(h200.dram_bytes * 1.98e9, 4.8e12, rel_tol=0.03)
    assert math.isclose(a100.sm_count * a100.lanes_float64 * 2 * 1.41e9, 9.7e12, rel_tol=0.01)


# --------------------------------------------------------------------------------------------- the script


def test_the_script_shows_the_papers_million(capsys):
    arguments = ["--json", "--device", "fermi", "--dtype", "s"]
    assert kurzak.main([*arguments, "--min-threads", "0", "--min-blocks", "1", "--min-reuse", "0"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["device"] == "Tesla S2050"
    assert {row["layout"] for row in document["kurzak"]} == {"nn", "nt", "tn", "tt"}
    for row in document["kurzak"]:
        assert row["dtype"] == "s" and 1_000_000 < row["left"] < 1_200_000
        assert row["candidates"] == sum(row["removed"].values()) + row["left"]
    assert kurzak.main(arguments) == 0
    assert all(row["left"] < 100 for row in json.loads(capsys.readouterr().out)["kurzak"])


def test_the_table_names_every_rule_in_its_order(capsys):
    assert kurzak.main(["--device", "fermi", "--dtype", "d"]) == 0
    text = capsys.readouterr().out
    rules = ("candidates", "max_threads", "whole_warps", "stripe_a", "shared", "registers", "reuse", "left")
    assert [text.index(f"│ {rule}") for rule in rules] == sorted(text.index(f"│ {rule}") for rule in rules)


def test_the_script_refuses_what_it_does_not_know(capsys):
    for option, value in (("--dtype", "h"), ("--layout", "nn,xy")):
        with pytest.raises(SystemExit):
            kurzak.main([option, value])
        assert "is none of" in capsys.readouterr().err
    with pytest.raises(ValueError, match="voodoo"):
        kurzak.main(["--device", "voodoo"])
