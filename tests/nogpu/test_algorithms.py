"""Which algorithm TRSM, TRMM and SYR2K run: as asked, by rates of the nearest point, by rules; the search."""

from __future__ import annotations

from dataclasses import replace

import fake_kernels
import pytest

from pyblasgpu import database
from pyblasgpu.api.explain import explain
from pyblasgpu.database import (
    FAMILIES,
    RECURSION,
    TRSM_FUSED,
    TRSM_POINTS,
    TRSM_SMALL,
    TRSM_SMALL_POINTS,
    Document,
    algorithms_at,
    algorithms_of,
    max_fused_order,
    nearest_points,
    nearest_small_points,
)
from pyblasgpu.database.policy import reference
from pyblasgpu.dispatch import trsm_fused as dispatch_trsm_fused
from pyblasgpu.dispatch import tuned_files
from pyblasgpu.dispatch.algorithms import TRMM_FUSED, TRMM_SMALL, trmm_algorithm, trsm_algorithm
from pyblasgpu.dispatch.choose import reload, select
from pyblasgpu.dispatch.overrides import override, set_math_mode
from pyblasgpu.gpu.device import known, stand_ins
from pyblasgpu.operands import Operand
from pyblasgpu.routines.level3 import syr2k, trmm, trmm_fused, trsm
from pyblasgpu.testing.policies import deciding_by
from pyblasgpu.tuning.tuned_file_writer import save
from pyblasgpu.types import DTYPES, Diag, Side, Uplo

H200 = known("h200")
FLAGS = {"side": Side.LEFT, "uplo": Uplo.LOWER, "diag": Diag.NON_UNIT}
ROUTINES = {"trsm": trsm, "trmm": trmm}


def dense(rows: int, cols: int, letter: str = "s", batch: int = 1) -> Operand:
    return Operand(1 << 30, rows, cols, 1, rows, DTYPES[letter], False, batch, rows * cols)


@pytest.fixture(autouse=True)
def kernels(monkeypatch, filed):
    filed()
    return fake_kernels.install(monkeypatch)


@pytest.fixture
def filed(home, monkeypatch):
    """``filed({(dtype, point): fastest}, ...)``: such rates are in the user's file and the packaged one."""
    packaged = database.read(tuned_files.PACKAGED / "sm_90.json")
    monkeypatch.setattr(tuned_files, "PACKAGED", home / "packaged")

    def rates(fastest):
        return {
            (letter, point): {name: 2.0 if name == best else 1.0 for name in algorithms_of(point)}
            for (letter, point), best in (fastest or {}).items()
        }

    def put(own=None, others=None):
        files = Document(H200.name, trsm_rates=rates(own)), replace(packaged, trsm_rates=rates(others))
        for level, document in zip((tuned_files.levels(H200)[i] for i in (0, 2)), files, strict=True):
            level.path.parent.mkdir(parents=True, exist_ok=True)
            save(document, level.path)
        reload()

    return put


def algorithm(order, rhs, letter="s", batch=1):
    return trsm_algorithm(DTYPES[letter], order, rhs, batch, H200).name


def run_of(routine, order, rhs, letter="s", batch=1):
    """The algorithm that a call runs."""
    launches = ROUTINES[routine].launch_list(
        1, dense(order, order, letter, batch), dense(order, rhs, letter, batch), **FLAGS
    )
    return launches.choices[0].name


# ------------------------------------------------------------------------------------ one triangle of TRSM


def test_rates_decide_against_the_heuristic(filed):
    """By the nearest point that was timed, of the first file that has it; of its own dtype."""
    assert algorithm(2048, 512) == TRSM_FUSED and algorithm(256, 256) == RECURSION
    filed(
        {("s", "2048x2048"): RECURSION, ("d", "2048x512"): TRSM_FUSED},
        {("s", "256x256"): TRSM_FUSED, ("s", "2048x2048"): TRSM_FUSED},
    )
    assert algorithm(256, 256) == algorithm(256, 247) == TRSM_FUSED
    assert algorithm(2048, 512) == RECURSION and algorithm(2048, 512, "d") == TRSM_FUSED


@pytest.mark.parametrize("side", Side)
def test_right_hand_sides_are_rows_from_the_right(side, filed):
    filed({("s", "2048x512"): RECURSION, ("s", "2048x2048"): TRSM_FUSED})
    for rhs, expected in ((512, RECURSION), (2048, TRSM_FUSED)):
        b = dense(2048, rhs) if side is Side.LEFT else dense(rhs, 2048)
        launches = trsm.launch_list(1, dense(2048, 2048), b, **{**FLAGS, "side": side})
        assert launches.choices[0].name == expected


def test_a_point_says_nothing_of_what_is_far_away(filed):
    """So that a run that ended with the first few does not decide everywhere; nor of a triangle of a leaf."""
    filed({("s", "2048x2048"): RECURSION})
    assert algorithm(1024, 550) == RECURSION and algorithm(1024, 450) == TRSM_FUSED
    filed({("s", "256x256"): TRSM_FUSED})
    assert algorithm(65, 256) == TRSM_FUSED and algorithm(64, 256) == RECURSION


def test_every_point_is_its_own_nearest_one_and_most_shapes_have_one():
    for point, extents in TRSM_POINTS.items():
        assert nearest_points(*extents)[0] == point
    sizes = [2**i for i in range(8, 15)]
    assert all(nearest_points(n, n) for n in sizes)
    assert all(nearest_points(n, r) for n in sizes for r in (16, 32, 64, 128, 256, 512) if n > 256)
    assert nearest_points(256, 512)[0] == "256x256", "the order counts for more"
    assert not nearest_points(4096, 8) and not nearest_points(100, 16), "what is not like any of them"


@pytest.mark.parametrize("routine", ROUTINES)
def test_what_is_asked_for_goes_before_all_else(routine, filed):
    fused, leaf = f"{routine}_fused", select(routine, DTYPES["s"], "", (64, 64), H200).config
    filed({("s", point): TRSM_FUSED for point in TRSM_POINTS})
    for name, value in ((f"{routine}_algorithm", RECURSION), (routine, 64), (leaf.STEM, leaf)):
        with override(name, value):
            assert run_of(routine, 1024, 1024) == RECURSION
    filed({("s", point): RECURSION for point in TRSM_POINTS})
    with override(f"{routine}_algorithm", fused):
        assert run_of(routine, 1024, 1024) == fused
        with override(routine, 64):
            assert run_of(routine, 48, 48) == fused


def test_nothing_leads_into_what_cannot_run(filed, monkeypatch):
    filed({("s", point): TRSM_FUSED for point in TRSM_POINTS})
    assert all(run_of(routine, 1024, 1024) == f"{routine}_fused" for routine in ROUTINES)
    monkeypatch.setattr(trmm_fused, "most_workspace", lambda b: 1 << 16)
    monkeypatch.setattr(dispatch_trsm_fused, "FLAGS", 8)
    # of 1024 the Config is known
    assert all(run_of(routine, 1025, 1024) == RECURSION for routine in ROUTINES)


def test_the_recursion_may_end_in_fused_triangles(filed):
    """A file names the triangle of the nearest point; none is larger than there is."""
    filed({("s", "4096x4096"): f"{TRSM_FUSED}_2048", ("s", "1024x1024"): TRSM_FUSED})
    assert algorithm(4096, 4096) == algorithm(5000, 3000) == f"{TRSM_FUSED}_2048"
    assert algorithm(1024, 900) == TRSM_FUSED
    assert max_fused_order(f"{TRSM_FUSED}_2048", 4096) == 2048
    assert max_fused_order(f"{TRSM_FUSED}_2048", 1500) == max_fused_order(TRSM_FUSED, 1500) == 1500
    assert max_fused_order(RECURSION, 1500) == max_fused_order(TRSM_SMALL, 64) == 0


@pytest.mark.parametrize("routine", ROUTINES)
def test_products_on_tensor_cores(filed, routine):
    """TRMM is one, and TRSM's recursion ends early, where rows and right-hand sides are many enough; an
    override comes first.
    """
    policy, fused = reference(), f"{routine}_fused"
    sizes = [getattr(policy, f"tensor_{routine}_min_{size}")["s"] for size in ("order", "rhs", "elements")]
    min_order, min_rhs, min_elements, stop = *sizes, policy.tensor_stop
    small, large = (
        (f"trsm_fused_{stop // 2}", f"trsm_fused_{stop}") if routine == "trsm" else ("trmm_tensor",) * 2
    )
    n = max(min_order, int(min_elements**0.5) + 1)
    filed({("s", point): TRSM_FUSED for point in TRSM_POINTS})
    with set_math_mode("tensor"):
        assert run_of(routine, n, n) == small and run_of(routine, 8192, 8192) == large
        assert run_of(routine, min_order - 1, 2 * n) == fused
        assert run_of(routine, 4 * n, min_rhs - 1) == fused
        with override(f"{routine}_algorithm", fused):
            assert run_of(routine, n, n) == fused
    assert run_of(routine, n, n) == fused


@pytest.mark.parametrize("letter", "dz")
@pytest.mark.parametrize("routine", ROUTINES)
def test_triangles_in_double_precision_end_in_larger_ones(routine, letter):
    """From the sizes on that the policy has, on devices with the kernels."""
    sizes = {f"tensor_{routine}_min_{size}": {letter: 4096} for size in ("order", "rhs", "elements")}
    choose = {"trsm": trsm_algorithm, "trmm": trmm_algorithm}[routine]

    def chosen(order, device=H200):
        return choose(DTYPES[letter], order, 4096, 1, device).name

    expected = {"trsm": f"{TRSM_FUSED}_512", "trmm": "trmm_tensor"}[routine]
    with deciding_by(**sizes, tensor_stop_of_double=512):
        before = chosen(4096)
        with set_math_mode("tensor"):
            assert chosen(4096) == expected != before
            assert chosen(4095) == before and chosen(4096, known("a100")) != expected


def test_explain_tells_what_has_decided(filed, monkeypatch):
    monkeypatch.setitem(stand_ins, 0, H200)
    first, *others = explain("trsm", "s", 1024, 1024)
    decided = "packaged for NVIDIA H200, fused_trsm_max_elements"
    assert first == ("algorithm", TRSM_FUSED, decided)
    *others, last = (row for row in others if row[0] != "policy" or "max_elements" in row[1])
    assert last == ("policy", "fused_trsm_max_elements: 16777216", "packaged for NVIDIA H200")
    filed({}, {("s", "1024x1024"): TRSM_FUSED})
    origin = "packaged for sm_90, 1024x1024"
    assert explain("trsm", "s", 1024, 1024) == [("algorithm", TRSM_FUSED, origin), *others]
    filed({}, {("s", "1024x1024"): RECURSION})
    first, *others = explain("trsm", "s", 1024, 1024)
    assert first == ("algorithm", RECURSION, origin)
    with override("trsm_algorithm", RECURSION):
        assert explain("trsm", "s", 1024, 1024) == [("algorithm", RECURSION, "override"), *others]


# -------------------------------------------------------------------------------------------------- TRMM


@pytest.mark.parametrize("letter", DTYPES)
def test_trmm_is_fused_but_for_large_complex64_and_few_columns(letter):
    def fused(order, rhs):
        return trmm_algorithm(DTYPES[letter], order, rhs, 1, H200).name == TRMM_FUSED

    assert fused(65, 1) and fused(1024, 1) and fused(2048, 16) and not fused(64, 4096)
    assert not fused(1025, 15) and fused(2049, 16) == (letter != "c")
    assert fused(4096, 512) and fused(4096, 1024) and fused(4096, 1025) == (letter != "c")


@pytest.mark.parametrize("letter", DTYPES)
def test_stacks_are_fused_but_for_small_triangles_and_few_complex_columns(letter):
    def fused(order, rhs, batch):
        return trmm_algorithm(DTYPES[letter], order, rhs, batch, H200).name == TRMM_FUSED

    for order in (1, 32 if letter == "z" else 64):
        assert trmm_algorithm(DTYPES[letter], order, 32, 1000, H200).name == TRMM_SMALL
    for batch, letters in ((4, "cz"), (64, "c")):
        is_small = trmm_algorithm(DTYPES[letter], 512, 8, batch, H200, True).name == TRMM_SMALL
        assert is_small == (letter in letters)
    if letter == "z":
        assert fused(64, 32, 1000) and not fused(64, 31, 1000) and not fused(63, 64, 1000)
    assert fused(65, 17, 1000) and fused(512, 8, 4) and fused(512, 8, 64) == (letter in "sd")


# ------------------------------------------------------------------------------------------------- SYR2K


def products(n, k, letter="s", batch=1):
    """Return as how many products SYR2K runs."""
    launches = syr2k.launch_list(
        1, *[dense(n, k, letter, batch)] * 2, 0, dense(n, n, letter, batch), uplo=Uplo.LOWER
    )
    return {"symmetrize": 1, "two_products": 2}[launches.choices[0].name]


def test_syr2k_is_one_product_where_its_scratch_fits():
    assert products(1024, 1024) == products(1024, 8) == products(2048, 2048, "s", batch=2) == 1
    assert products(1400, 2048, "z") == 1 and products(2048, 2048, "z") == products(300, 300, "s", 99) == 2


def test_an_override_of_syr2k_comes_first():
    with override("syr2k_algorithm", "symmetrize"):
        assert products(2048, 2048, "z") == 1
    with override("syr2k_algorithm", "two_products"):
        assert products(1024, 100, "d") == products(1024, 900, "d") == 2


@pytest.mark.parametrize("routine", ["syr2k", "her2k"])
def test_explain_says_how_many_products(routine, monkeypatch):
    monkeypatch.setitem(stand_ins, 0, H200)
    first, *others = explain(routine, "c", 1024, 1024)
    assert first == ("algorithm", "symmetrize", "computed") and others


# --------------------------------------------------------------------------- batches and leaves of TRSM


def is_small(n, rhs, batch, letter="s"):
    return algorithm(n, rhs, letter, batch) == TRSM_SMALL == run_of("trsm", n, rhs, letter, batch)


def test_rates_say_whether_batches_are_of_small_triangles(filed):
    """Against the heuristic, as near as they reach, and of each dtype; one triangle tells of one."""
    assert is_small(64, 64, 1000) and is_small(128, 128, 1000) and not is_small(128, 128, 10)
    filed({("s", "128x128x1000"): RECURSION, ("s", "128x128x10"): TRSM_SMALL})
    assert not is_small(128, 128, 1000) and not is_small(100, 150, 700) and is_small(128, 128, 12)
    assert is_small(128, 128, 1000, "d") and is_small(16, 16, 10_000)
    filed({("s", "256x256"): RECURSION})
    assert is_small(128, 128, 1000)


def test_rates_say_whether_a_leaf_is_a_small_triangle(filed):
    assert is_small(32, 400, 1) and not is_small(64, 400, 1)
    filed({("s", "32x512x1"): RECURSION, ("s", "64x512x1"): TRSM_SMALL})
    assert not is_small(32, 400, 1) and is_small(64, 400, 1)
    assert not is_small(65, 400, 1), "it is no leaf, of which no batch tells"


def test_small_triangles_serve_very_many_right_hand_sides_of_one():
    """In float32, of two leaves at most."""
    least = int(reference().small_trsm_min_rhs["s"])
    assert is_small(65, least, 1) and is_small(128, 1_000_000, 1)
    for others in ((128, least - 1, 1), (129, least, 1), (128, 1_000_000, 1, "d"), (128, 1_000_000, 1, "c")):
        assert not is_small(*others)


def test_an_override_of_small_triangles_comes_first(filed):
    filed({("s", point): RECURSION for point in TRSM_SMALL_POINTS})
    assert not is_small(64, 64, 1000)
    with override("trsm_algorithm", TRSM_SMALL):
        assert is_small(64, 64, 1000) and is_small(512, 64, 10)
        assert run_of("trsm", 2048, 512) == TRSM_SMALL
    with override("trsm_algorithm", RECURSION):
        assert not is_small(16, 16, 10_000, "d")


@pytest.mark.parametrize("routine, letter", [("trsm", "s"), ("trsm", "z"), ("trmm", "d")])
def test_leaves_of_a_batch_go_by_all_of_its_columns(filed, routine, letter):
    """By the class of one triangle with as many, or, where these are many, by that of such batches."""
    packaged = database.read(tuned_files.PACKAGED / "sm_90.json")
    stem = "trmm_leaf" if routine == "trmm" else "trsm_fma"
    config = select(stem, DTYPES[letter], "", (64, 1), H200).config
    rows = {"few": 1, "many": 2, "batch64": 3, "batch128": 4}  # which `min_blocks` tells
    entries = {
        (stem, letter, "any", size): database.Entry(
            {**FAMILIES[stem].parameters_of(config), "min_blocks": rows[size]}, 1e5
        )
        for size in rows
    }
    save(replace(packaged, entries=entries, trsm_rates={}), tuned_files.PACKAGED / "sm_90.json")
    reload()

    def chosen(n: int, rhs: int, count: int) -> int:
        launches = ROUTINES[routine].launch_list(
            1, dense(n, n, letter, count), dense(n, rhs, letter, count), **FLAGS
        )
        (min_blocks,) = {each.config.min_blocks for each in launches.choices[1:] if stem == each.config.STEM}
        return min_blocks

    with override(f"{routine}_algorithm", RECURSION):
        assert chosen(64, 40, 1) == chosen(64, 2, 20) == rows["few"]
        assert chosen(64, 2000, 1) == chosen(64, 64, 33) == rows["many"]
        assert chosen(64, 64, 34) == chosen(64, 1, 2113) == rows["batch64"]
        if routine == "trsm":  # the leaves of TRMM have 64 rows
            assert chosen(128, 64, 67) == rows["batch128"]


def test_explain_says_how_batches_go(filed, monkeypatch):
    monkeypatch.setitem(stand_ins, 0, H200)
    first, *others = explain("trsm", "s", 128, 128, batch=1000)
    decided = "packaged for NVIDIA H200, small_trsm_max_order_of_batch"
    assert first == ("algorithm", TRSM_SMALL, decided)
    others = [row for row in others if row[0] != "policy"]
    filed({}, {("s", "128x128x1000"): TRSM_SMALL})
    origin = "packaged for sm_90, 128x128x1000"
    rows = [row for row in explain("trsm", "s", 128, 128, batch=1000) if row[0] != "policy"]
    assert rows == [("algorithm", TRSM_SMALL, origin), *others]


def test_every_small_point_is_its_own_nearest_one_and_most_batches_have_one():
    for point, extents in TRSM_SMALL_POINTS.items():
        assert nearest_small_points(*extents)[0] == point
        assert algorithms_at(point) == algorithms_of(point) == (TRSM_SMALL, RECURSION)
    sizes = (16, 32, 64, 128, 256)
    assert all(nearest_small_points(n, n, count) for n in sizes for count in (10, 100, 1000))
    assert nearest_small_points(64, 1, 200)[0] == "64x64x100", "a triangle of one column takes a warp's time"
    assert not nearest_small_points(2048, 2048, 3)


def test_points_at_which_fused_ends_are_timed():
    """Not with few right-hand sides, nor where nothing is left of the recursion."""
    everywhere = {TRSM_FUSED, RECURSION}
    ends = {point: set(algorithms_at(point)) - everywhere for point in TRSM_POINTS}
    assert ends["1024x1024"] == ends["1024x512"] == {f"{TRSM_FUSED}_512"}
    assert len(ends["8192x8192"]) == len(ends["3072x3072"]) == 3
    assert not any(ends[point] for point in ("512x512", "256x256", "8192x32"))
    assert all(everywhere <= set(algorithms_at(point)) <= set(algorithms_of(point)) for point in TRSM_POINTS)


# ------------------------------------------------------------------------------------------ from records

POINTS: dict[str, tuple[int, ...]] = {**TRSM_POINTS, **TRSM_SMALL_POINTS}
