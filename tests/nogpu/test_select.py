"""The choice at run time: always a Config that works, and from the right level of the database."""

from __future__ import annotations

import warnings
from dataclasses import replace
from itertools import product

import pytest
from select_cases import (
    FEW_COLS,
    FEW_ROWS,
    H200,
    LARGE,
    SMALL,
    UNKNOWN,
    S,
    config,
    document,
)

from pyblasgpu.database import FAMILIES, Document, Entry
from pyblasgpu.dispatch import choose as selecting
from pyblasgpu.dispatch.choose import select
from pyblasgpu.dispatch.leaf import stop_size
from pyblasgpu.dispatch.overrides import active, override
from pyblasgpu.dispatch.tuned_files import user_file
from pyblasgpu.errors import BackendUnavailable, DatabaseWarning
from pyblasgpu.gpu.device import known, names, simulated
from pyblasgpu.model.occupancy import check_device
from pyblasgpu.tuning.prune import candidates
from pyblasgpu.tuning.tuned_file_writer import merge, save
from pyblasgpu.types import DTYPES

pytestmark = pytest.mark.usefixtures("levels")


@pytest.mark.parametrize("device", [*map(known, names()), simulated(), UNKNOWN], ids=lambda it: it.name)
@pytest.mark.parametrize("dtype", DTYPES.values(), ids=DTYPES)
def test_every_device_gets_a_gemm_that_it_can_run(device, dtype):
    for layout in FAMILIES["gemm_simt"].layouts:
        for extents in (LARGE, SMALL, FEW_ROWS, FEW_COLS, (1, 1, 1)):
            choice = select("gemm_simt", dtype, layout, extents, device)
            check_device(choice.config, device)
            assert (choice.config.dtype, choice.config.layout) == (dtype.letter, layout)
            assert choice.origin == "computed"
    assert select("symv_sum", dtype, "", (3, 5), device).origin == "fixed"


@pytest.mark.parametrize("dtype", DTYPES.values(), ids=DTYPES)
def test_every_device_gets_leaves_that_it_can_run(dtype):
    for device in (H200, known("a100"), known("rtx4090"), UNKNOWN):
        for stem, rhs in (("trsm_fma", 1), ("trmm_leaf", 100), ("trsm_fma", 10_000)):
            check_device(select(stem, dtype, "", (256, rhs), device).config, device)


def test_a_family_that_the_device_cannot_run_says_so():
    with pytest.raises(BackendUnavailable, match="trsm_fma: no Config can run on Tesla S2050"):
        select("trsm_fma", S, "", (64, 64), known("fermi"))


def test_computed_tiles_follow_the_shape():
    large, small = (select("gemm_simt", S, "nn", extents, H200).config for extents in (LARGE, SMALL))
    assert large.BLK_M * large.BLK_N >= 128 * 128 >= 4 * small.BLK_M * small.BLK_N
    assert large.reuse > small.reuse


def test_the_levels_overlay_each_other(levels):
    chosen = [config(min_blocks=blocks) for blocks in (1, 2, 3)]

    def now():
        selecting.reload()
        return select("gemm_simt", S, "nn", LARGE, H200)

    save(document("sm_90", chosen[0]), levels / "sm_90.json")
    assert now() == selecting.KernelChoice(chosen[0], "packaged for sm_90")
    save(document("NVIDIA H200", chosen[1]), levels / "nvidia_h200.json")
    assert now() == selecting.KernelChoice(chosen[1], "packaged for NVIDIA H200")
    merge(document("NVIDIA H200", chosen[2]))
    assert now().config == chosen[2] and str(user_file("NVIDIA H200")) in now().origin
    with override("gemm_simt", chosen[0]):
        assert now() == selecting.KernelChoice(chosen[0], "override")
    assert now().config == chosen[2]


def test_another_device_of_the_architecture_gets_its_values(levels):
    save(document("sm_90", config()), levels / "sm_90.json")
    selecting.reload()
    assert select("gemm_simt", S, "nn", LARGE, known("h100")).origin == "packaged for sm_90"
    assert select("gemm_simt", S, "nn", LARGE, known("a100")).origin == "computed"


def test_the_nearest_class_serves_but_an_exact_one_of_a_lower_level_wins(levels):
    small, large = config(min_blocks=1), config(min_blocks=2)
    merge(document("NVIDIA H200", large))
    selecting.reload()
    choice = select("gemm_simt", S, "nn", SMALL, H200)
    assert choice.config == large and choice.origin.endswith(", class large")
    save(document("sm_90", small, "small"), levels / "sm_90.json")
    selecting.reload()
    choice = select("gemm_simt", S, "nn", SMALL, H200)
    assert (choice.config, choice.origin) == (small, "packaged for sm_90")


@pytest.mark.parametrize("damage", ["", "{", '{"schema": 7}', '{"schema": 1, "device": "NVIDIA A100"}'])
def test_a_damaged_file_is_named_once_and_the_next_level_serves(levels, damage):
    save(document("sm_90", config()), levels / "sm_90.json")
    (levels / "nvidia_h200.json").write_text(damage)
    selecting.reload()
    with pytest.warns(DatabaseWarning, match=r"nvidia_h200\.json"):
        assert select("gemm_simt", S, "nn", LARGE, H200).origin == "packaged for sm_90"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        select("gemm_simt", S, "nn", LARGE, H200)
        select("gemm_simt", S, "nn", SMALL, H200)


def test_what_breaks_a_rule_or_the_device_is_passed_over(levels):
    broken = document("NVIDIA H200", config())
    entry = broken.entries["gemm_simt", "s", "nn", "large"]
    entry.parameters["BLK_M"] = 33
    save(broken, levels / "nvidia_h200.json")
    greedy = config(stages=64)
    assert greedy.shared_bytes <= H200.shared_per_block < 2 * greedy.shared_bytes
    save(document("sm_90", replace(greedy, stages=128)), levels / "sm_90.json")
    selecting.reload()
    with pytest.warns(DatabaseWarning) as raised:
        assert select("gemm_simt", S, "nn", LARGE, H200).origin == "computed"
    assert ["tile_m" in str(raised[0].message), "device_shared" in str(raised[1].message)] == [True, True]


def test_an_override_that_nothing_asks_for_is_refused():
    with pytest.raises(ValueError, match=r"override: name='gemm_sim' is none of .*gemm_simt"):
        override("gemm_sim", 1).__enter__()


def test_an_override_serves_its_own_dtype_and_layout_only():
    forced = config()
    with override("gemm_simt", forced):
        assert select("gemm_simt", S, "nn", LARGE, H200).origin == "override"
        assert select("gemm_simt", S, "tn", LARGE, H200).origin == "computed"
        assert select("gemm_simt", DTYPES["d"], "nn", LARGE, H200).origin == "computed"


@pytest.mark.parametrize("order", [1, -1])
def test_overrides_of_a_family_serve_a_dtype_and_a_layout_each(order):
    """All at once, and they end in any order."""
    cases = [("s", "nn"), ("s", "tn"), ("d", "nn")]

    def chosen():
        return [select("gemm_simt", DTYPES[letter], layout, LARGE, H200) for letter, layout in cases]

    def overridden() -> list[bool]:
        return [each.origin == "override" for each in chosen()]

    settings = [override("gemm_simt", each.config) for each in chosen()]
    assert overridden() == [True] * 3
    with override("gemm_simt", None):
        assert overridden() == [False] * 3
    expected = [True] * 3
    for number in range(3)[::order]:
        assert overridden() == expected
        with settings[number]:
            pass
        expected[number] = False
    assert overridden() == [False] * 3 and active() == ()


def test_an_override_decides_where_a_recursion_ends():
    assert {stop_size("trmm", letter, H200) for letter in DTYPES} == {64}
    with override("trsm", 128), override("trsm", 32):
        assert stop_size("trsm", "s", H200) == 32 and stop_size("trmm", "s", H200) == 64


def leaves(device: str, **rates: float) -> Document:
    """What was tuned for many right-hand sides: a Config of each family, with its TFLOP/s."""
    entries = {}
    for stem, rate in rates.items():
        config = candidates(stem, "d", "any", H200).left[0]
        entries[stem, "d", "any", "many"] = Entry(FAMILIES[stem].parameters_of(config), rate)
    return Document(device, entries)


@pytest.mark.parametrize("faster", ["trsm_mma", "trsm_fma"])
def test_the_leaf_that_was_measured_faster_serves(levels, faster):
    rates = {"trsm_mma": 3.0, "trsm_fma": 2.0, faster: 5.0}
    save(leaves("NVIDIA H200", **rates), levels / "nvidia_h200.json")
    selecting.reload()
    for rhs in (2000, 100):  # of the class, and of one that has none
        stem = select("trsm", DTYPES["d"], "", (256, rhs), H200).config.STEM
        assert stem == faster
    with override("trsm_fma", select("trsm_fma", DTYPES["d"], "", (256, 9), H200).config):
        assert select("trsm", DTYPES["d"], "", (256, 2000), H200).config.STEM == "trsm_fma"


def test_without_measurements_a_leaf_goes_by_tensor_cores_where_they_are(levels):
    for device, dtype in product(map(known, ("h200", "a100", "rtx4090")), DTYPES.values()):
        has_mma = device.has_double_mma and dtype.letter in "dz"
        stem = select("trsm", dtype, "", (256, 512), device).config.STEM
        assert stem == ("trsm_mma" if has_mma else "trsm_fma")


def test_the_generation_tells_when_answers_may_change():
    before, forced = selecting.generation(), config()
    with override("gemm_simt", forced):
        inside = selecting.generation()
        with override("trsm", 64):
            assert len({before, inside, selecting.generation()}) == 3
    assert selecting.generation() == before
    with override("gemm_simt", forced):
        assert selecting.generation() == inside
    selecting.reload()
    assert selecting.generation() != before


def test_a_second_choice_is_a_lookup(monkeypatch):
    first = select("gemm_simt", S, "nn", LARGE, H200)
    leaf = select("trsm_fma", S, "", (64, 5000), H200)
    monkeypatch.setattr(selecting, "fastest", None)
    monkeypatch.setattr(selecting, "of_class", None)
    assert select("gemm_simt", S, "nn", LARGE, H200) is first
    assert select("trsm_fma", S, "", (64, 6000), H200) is leaf
