"""The choice at run time: always a Config that works, and from the right level of the database."""

from __future__ import annotations

import warnings
from dataclasses import replace
from functools import partial
from itertools import product

import pytest

from pyblasgpu.database import FAMILIES, Document, Entry, size_class, sizes_of
from pyblasgpu.dispatch import choose as selecting
from pyblasgpu.dispatch import gemm as dispatch_gemm
from pyblasgpu.dispatch import tuned_files
from pyblasgpu.dispatch.choose import select
from pyblasgpu.dispatch.leaf import stop_size
from pyblasgpu.dispatch.overrides import override
from pyblasgpu.dispatch.split_k import MOST_PARTIALS, partial_bytes, split_times
from pyblasgpu.dispatch.tuned_files import user_file
from pyblasgpu.dispatch.variants import three_m_variant
from pyblasgpu.errors import BackendUnavailable, DatabaseWarning
from pyblasgpu.gpu.device import known, names, simulated
from pyblasgpu.model.occupancy import check_device, has_register_slack
from pyblasgpu.model.score import cycles
from pyblasgpu.tuning.prune import candidates
from pyblasgpu.tuning.tuned_file_writer import merge, save
from pyblasgpu.types import DTYPES

H200 = known("h200")
UNKNOWN = replace(known("sm_90"), name="NVIDIA Mystery", cc=(13, 7), sm_count=7, shared_per_block=48 * 1024)
S, D, C, Z = (DTYPES[letter] for letter in "sdcz")
LARGE, SMALL, FEW_ROWS, FEW_COLS = (4096, 4096, 4096), (500, 600, 700), (8, 5000, 3), (5000, 8, 3)


@pytest.fixture(autouse=True)
def levels(monkeypatch, tmp_path):
    """An empty user's folder, and an empty folder for packaged files."""
    packaged = tmp_path / "packaged"
    packaged.mkdir()
    monkeypatch.setenv("PYBLASGPU_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(tuned_files, "PACKAGED", packaged)
    selecting.reload()
    yield packaged
    selecting.reload()


def config(**changes):
    """A Config that no formula comes up with."""
    base = select("gemm_simt", S, "nn", LARGE, H200).config
    return replace(base, BLK_M=32, BLK_N=32, DIM_X=8, DIM_Y=8, VEC_M=1, VEC_N=1, DIM_XA=8, DIM_YA=8, DIM_XB=8,
                   DIM_YB=8, VEC_A=1, VEC_B=1, BLK_K=8, UNROLL=8, PAD_A=0, PAD_B=0, **changes)  # fmt: skip


def document(device, found, size="large"):
    entry = Entry(FAMILIES["gemm_simt"].parameters_of(found))
    return Document(device, {("gemm_simt", "s", "nn", size): entry})


@pytest.mark.parametrize("device", [*map(known, names()), simulated(), UNKNOWN], ids=lambda it: it.name)
@pytest.mark.parametrize("dtype", DTYPES.values(), ids=DTYPES)
def test_every_device_gets_a_gemm_that_it_can_run(device, dtype):
    for layout in FAMILIES["gemm_simt"].layouts:
        for extents in (LARGE, SMALL, FEW_ROWS, FEW_COLS, (1, 1, 1)):
            choice = select("gemm_simt", dtype, layout, extents, device)
            check_device(choice.config, device)
            assert (choice.config.dtype, choice.config.layout) == (dtype.letter, layout)
            assert choice.origin == "computed"
    assert select("copy_scaled", dtype, "", (3, 5), device).origin == "fixed"


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
    assert large.BLK_M * large.BLK_N >= 128 * 128 > 4 * small.BLK_M * small.BLK_N
    assert large.reuse > small.reuse


@pytest.mark.parametrize(
    ("extents", "size"),
    [((16, 17, 9), "slim_rows"), ((99, 16, 9), "slim_cols"), ((17, 65, 9), "few_rows"),
     ((64, 65, 9), "few_rows"), ((65, 64, 9), "few_cols"), ((751, 750, 45), "outer"),
     ((751, 750, 46), "low_rank"), ((64, 64, 10**6), "tiny"),
     ((350, 350, 1), "tiny"), ((351, 350, 1), "small"), ((750, 750, 1), "small"),
     ((751, 750, 129), "middle"), ((751, 750, 128), "low_rank"), ((1450, 1450, 999), "middle"),
     ((1451, 1450, 999), "medium"), ((2900, 2900, 999), "medium"), ((2901, 2900, 999), "large"),
     ((100, 100, 5, 12), "tiny"), ((100, 100, 5, 13), "batch128"), ((200, 200, 500, 900), "large"),
     ((16, 16, 16, 10_000), "batch16"), ((16, 31, 9, 10_000), "batch32"), ((32, 32, 1, 10_000), "batch32"),
     ((64, 64, 999, 4000), "batch64"), ((64, 65, 9, 4000), "batch64"), ((128, 128, 128, 1000), "batch128"),
     ((182, 181, 999, 1000), "large"), ((16, 16, 16, 400), "tiny"), ((16, 16, 16, 1), "tiny")],
)  # fmt: skip
def test_size_classes_of_gemm(extents, size):
    assert size_class("gemm_simt", extents) == size


def test_size_classes_of_leaves():
    sizes = {1: "few", 64: "few", 65: "some", 1024: "some", 1025: "many", 2112: "many", 2113: "most"}
    for rhs, size in sizes.items():
        assert size_class("trsm_fma", (256, rhs)) == size_class("trmm_leaf", (256, rhs, 1)) == size
    assert set(sizes.values()) == set(sizes_of("trsm_fma", tuple(sizes.values())))


@pytest.mark.parametrize(
    "extents, size",
    [
        ((64, 64, 33), "many"), ((64, 64, 34), "batch64"), ((90, 1, 10_000), "batch64"),
        ((91, 64, 100), "batch128"), ((181, 500, 10), "batch128"), ((182, 500, 10), "batch256"),
        ((128, 64, 66), "most"), ((128, 64, 67), "batch128"), ((256, 256, 10), "most"),
        ((4096, 8, 8), "few"),
    ],
)  # fmt: skip
def test_size_classes_of_batches_of_leaves(extents, size):
    for stem in ("trsm_fma", "trsm_mma", "trmm_leaf"):
        assert size_class(stem, extents) == size


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


def test_an_override_serves_its_own_dtype_and_layout_only():
    found = config()
    with override("gemm_simt", found):
        assert select("gemm_simt", S, "nn", LARGE, H200).origin == "override"
        assert select("gemm_simt", S, "tn", LARGE, H200).origin == "computed"
        assert select("gemm_simt", DTYPES["d"], "nn", LARGE, H200).origin == "computed"


def test_an_override_decides_where_a_recursion_ends():
    assert {stop_size("trmm", letter) for letter in DTYPES} == {64}
    with override("trsm", 128), override("trsm", 32):
        assert stop_size("trsm", "s") == 32 and stop_size("trmm", "s") == 64


def leaves(device: str, **rates: float) -> Document:
    """What was tuned for many right-hand sides: a Config of each family, with its TFLOP/s."""
    found = {}
    for stem, rate in rates.items():
        config = candidates(stem, "d", "any", H200).left[0]
        found[stem, "d", "any", "many"] = Entry(FAMILIES[stem].parameters_of(config), rate)
    return Document(device, found)


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
    before, found = selecting.generation(), config()
    with override("gemm_simt", found):
        inside = selecting.generation()
        with override("trsm", 64):
            assert len({before, inside, selecting.generation()}) == 3
    assert selecting.generation() == before
    with override("gemm_simt", found):
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


# --------------------------------------------------------------- a product takes what should be fastest


def measured(device: str, *found: tuple) -> Document:
    """A document of (size class, Config, TFLOP/s)."""
    entries = {}
    for size, chosen, tflops in found:
        parameters = FAMILIES[chosen.STEM].parameters_of(chosen)
        entries[chosen.STEM, chosen.dtype, "nn", size] = Entry(parameters, tflops)
    return Document(device, entries)


def tiles(stem: str, dtype: str) -> tuple:
    """The largest and the smallest tile of the quick space."""
    ordinary = [config for config in candidates(stem, dtype, "nn", H200).left if not config.persistent]
    left = sorted(ordinary, key=lambda config: config.BLK_M * config.BLK_N)
    return left[-1], left[0]


def test_between_two_tuned_sizes_the_model_decides(levels):
    big, little = tiles("gemm_simt", "s")
    save(measured("NVIDIA H200", ("large", big, 50), ("tiny", little, 3)), levels / "nvidia_h200.json")
    selecting.reload()
    chosen = [select("gemm", S, "nn", (n, n, n), H200).config for n in (64, 256, 4096, 9000)]
    assert chosen == [little, little, big, big]
    order = {n: select("gemm", S, "nn", (n, n, n), H200).config == big for n in range(64, 4097, 64)}
    # in between it goes by how full the waves of either are
    assert not any(order[n] for n in order if n < 600) and all(order[n] for n in order if n > 2400)
    assert select("gemm", S, "nn", LARGE, H200).origin == "packaged for NVIDIA H200, class large"


def test_what_a_config_did_in_other_classes_counts(levels):
    big, little = tiles("gemm_simt", "s")
    found = measured("NVIDIA H200", ("large", big, 50), ("small", little, 9))
    medium = 2048, 2048, 2048

    def chosen():
        save(found, levels / "nvidia_h200.json")
        selecting.reload()
        return select("gemm", S, "nn", medium, H200)

    assert chosen().config == big and chosen().origin.endswith("class large")
    for (stem, *_, size), entry in list(found.entries.items()):
        rate = {"large": 5.0, "small": 30.0}[size]  # large: big; small: little
        found.entries[stem, "s", "nn", size] = Entry(entry.parameters, entry.tflops, {"medium": rate})
    assert chosen().config == little and chosen().origin.endswith("class small")


def test_operands_that_are_not_aligned_ask_for_tiles_that_load_less(levels):
    """Scalar loads cost a small tile, which loads more for each product, more than a large one."""
    big, little = tiles("gemm_simt", "s")
    found = measured("NVIDIA H200", ("large", big, 50), ("tiny", little, 3))
    save(found, levels / "nvidia_h200.json")
    selecting.reload()
    as_given = partial(select, "gemm_simt", S)  # without copies
    last = {
        bytes_: max(n for n in range(256, 4097, 64)
                    if as_given("nn", (n, n, n), H200, aligned=(bytes_, bytes_)).config == little)
        for bytes_ in (32, 8, 4)
    }  # fmt: skip
    assert last[32] > last[8] >= last[4]


def test_three_products_without_tuned_values():
    """By a computed variant, with registers to spare; what has no such kernel multiplies by four. (Variants
    of the packaged values are compiled by `make check-kernels`.)
    """
    for n in (64, 512, 2048, 8192):
        for layout in ("nn", "tn"):
            config = select("gemm", Z, layout, (n, n, n), H200, three_m=True).config
            assert config.three_m and has_register_slack(config, H200)
            assert not select("gemm", Z, layout, (n, n, n), H200).config.three_m
    assert select("gemm", C, "nn", (512, 512, 512), H200, three_m=True).config.STEM == "gemm_simt"
    assert three_m_variant(select("gemm", D, "nn", (512, 512, 512), H200).config, H200) is None


def test_an_override_gives_its_variant_too():
    config = next(
        c for c in candidates("gemm_mma", "z", "nn", H200, "quick").left if has_register_slack(c, H200)
    )
    with override("gemm_mma", config):
        assert select("gemm", Z, "nn", (512, 512, 512), H200, three_m=True).config == three_m_variant(
            config, H200
        )
        assert select("gemm", Z, "nn", (512, 512, 512), H200).config == config


def test_winners_of_batches_serve_one_product_where_they_were_timed_on_one(levels):
    big, little = tiles("gemm_simt", "s")
    found = measured("NVIDIA H200", ("large", big, 50), ("batch64", little, 9))
    key = "gemm_simt", "s", "nn", "batch64"
    for elsewhere, expected in (({}, big), ({"batch32": 8.0}, big), ({"tiny": 9.0}, little)):
        found.entries[key] = Entry(found.entries[key].parameters, 9, elsewhere)
        save(found, levels / "nvidia_h200.json")
        selecting.reload()
        assert select("gemm", S, "nn", (256, 256, 256), H200).config == expected
        assert set(selecting.tuned_configs("gemm", S, "nn", H200)) == {big, expected}


def test_what_lower_levels_say_of_the_same_config_counts_too(levels):
    """The user's own rates go before theirs; those of another Config are nothing to it."""
    big, little = tiles("gemm_simt", "s")
    key = "gemm_simt", "s", "nn", "large"
    for own, rates in (
        (big, {"tiny": 2.0, "small": 4.0, "middle": 5.0}),
        (little, {"tiny": 2.0, "small": 4.0}),
    ):
        packaged, mine = (
            measured("NVIDIA H200", ("large", big, 40)),
            measured("NVIDIA H200", ("large", own, 50)),
        )
        packaged.entries[key] = replace(packaged.entries[key], elsewhere={"tiny": 1.0, "middle": 5.0})
        mine.entries[key] = replace(mine.entries[key], elsewhere={"tiny": 2.0, "small": 4.0})
        save(packaged, levels / "nvidia_h200.json")
        merge(mine)
        selecting.reload()
        filed = tuned_files.of_class(*key, H200)
        assert (filed.config, filed.tflops, filed.elsewhere) == (own, 50, rates)


def test_the_family_that_was_measured_faster_serves(levels):
    units, cores = tiles("gemm_simt", "d")[0], tiles("gemm_mma", "d")[0]
    for mma, expected in ((50, cores), (10, units)):
        found = measured("NVIDIA H200", ("large", units, 25), ("large", cores, mma))
        save(found, levels / "nvidia_h200.json")
        selecting.reload()
        assert select("gemm", DTYPES["d"], "nn", LARGE, H200).config == expected
    with override("gemm_mma", cores):
        assert select("gemm", DTYPES["d"], "nn", LARGE, H200) == selecting.KernelChoice(cores, "override")


@pytest.mark.parametrize(
    ("device", "stem"),
    [("h200", "gemm_mma"), ("a100", "gemm_mma"), ("v100", "gemm_simt"), ("rtx4090", "gemm_simt")],
)
def test_without_measurements_double_goes_to_tensor_cores_that_are_worth_it(levels, device, stem):
    device = known(device)
    for dtype, expected in (("d", stem), ("z", stem), ("s", "gemm_simt"), ("c", "gemm_simt")):
        choice = select("gemm", DTYPES[dtype], "tn", LARGE, device)
        assert (choice.config.STEM, choice.origin) == (expected, "computed")
        check_device(choice.config, device)


def test_a_batch_of_small_products_is_no_small_product(levels):
    big, little = tiles("gemm_simt", "s")
    save(measured("NVIDIA H200", ("large", big, 50), ("tiny", little, 3)), levels / "nvidia_h200.json")
    selecting.reload()
    assert select("gemm", S, "nn", (256, 256, 256, 1), H200).config == little
    assert select("gemm", S, "nn", (256, 256, 256, 1000), H200).config == big


def test_a_tile_of_a_batch_holds_one_matrix(levels):
    """A matrix of 16 x 16 fills an eighth of a tile's side, however many matrices there are."""
    big, little = tiles("gemm_simt", "s")
    save(measured("NVIDIA H200", ("large", big, 50), ("tiny", little, 3)), levels / "nvidia_h200.json")
    selecting.reload()
    assert big.grid(16, 16) == little.grid(16, 16) == 1
    for n in (1, 16, 32):
        assert select("gemm", S, "nn", (n, n, n, 10_000), H200).config == little
    n = big.BLK_M
    whole, padded = (cycles("gemm_simt", big, (m, n, 512, 1000), H200) for m in (n, 16))
    assert whole == padded
    assert cycles("gemm_simt", big, (n, n, 512, 2000), H200) == pytest.approx(2 * whole, rel=0.1)
    assert cycles("gemm_simt", big, (n, n, 512, 1), H200) == cycles("gemm_simt", big, (n, n, 512), H200)


def test_leaves_of_a_batch_read_a_triangle_each():
    """As many blocks as single triangles of all their columns would have, and each matrix for itself."""
    leaf = select("trsm", S, "", (64, 64, 400), H200).config
    once, thousand = (cycles(leaf.STEM, leaf, (64, 64, count), H200) for count in (1, 1000))
    assert once == cycles(leaf.STEM, leaf, (64, 64), H200)
    assert thousand == cycles(leaf.STEM, leaf, (64, leaf.grid(64) * leaf.BLK_N * 1000), H200)
    assert cycles(leaf.STEM, leaf, (64, 1, 1000), H200) == cycles(
        leaf.STEM, leaf, (64, leaf.BLK_N, 1000), H200
    )


def test_a_batch_needs_its_operands_from_memory():
    """With so little work for each element, DRAM decides."""
    little = tiles("gemm_simt", "s")[1]
    found = cycles("gemm_simt", little, (16, 16, 1, 10**6), H200)
    assert found >= 10**6 * (2 * 16 + 16 * 16) * 4 / H200.dram_bytes


def test_what_was_tuned_on_batches_serves_batches_alone(levels):
    big, little = tiles("gemm_simt", "s")
    found = measured("NVIDIA H200", ("large", big, 20), ("batch16", little, 30))
    save(found, levels / "nvidia_h200.json")
    selecting.reload()
    batch = select("gemm", S, "nn", (16, 16, 16, 9999), H200)
    assert (batch.config, batch.origin) == (little, "packaged for NVIDIA H200, class batch16")
    for extents in ((16, 16, 16), (16, 16, 16, 1), LARGE):
        assert select("gemm", S, "nn", extents, H200).config == big


# --------------------------------------------------------------------------------------- k in chunks

LONG = (64, 64, 65536)


@pytest.mark.parametrize("device", [*map(known, ("h200", "a100", "v100")), UNKNOWN], ids=lambda it: it.name)
@pytest.mark.parametrize("dtype", DTYPES.values(), ids=DTYPES)
def test_a_long_k_is_cut_and_a_large_c_is_not(device, dtype):
    assert select("gemm", dtype, "nn", LONG, device).splits >= 8
    for n in (1, 100, 2048, 4096):
        assert select("gemm", dtype, "tn", (n, n, n), device).splits == 1
    assert select("gemm", dtype, "nn", (8192, 8192, 64), device).splits == 1


def test_large_tiles_of_a_panel_are_cut(levels):
    """With few blocks for the multiprocessors; with small tiles there may be enough of them."""
    big, _ = tiles("gemm_simt", "s")
    save(measured("NVIDIA H200", ("large", big, 50)), levels / "nvidia_h200.json")
    selecting.reload()
    for extents in (
        (8192, 16, 8192),
        (16, 8192, 8192),
        (6144, 64, 6080),
        (1024, 64, 960),
        (3000, 500, 20000),
    ):
        choice = select("gemm", S, "nn", extents, H200)
        m, n, k = extents
        assert choice.config == big and choice.splits > 1, extents
        assert (choice.splits + 1) * partial_bytes(m, n, S) <= MOST_PARTIALS
        assert k // choice.splits >= 128


def test_the_workspace_has_a_limit():
    for extents in (
        (2000, 2000, 100_000),
        (2900, 1400, 50_000),
        (64, 64, 65536),
        (1, 1, 10**6),
        (3, 70_000, 4096),
    ):
        for dtype in DTYPES.values():
            config = select("gemm_simt", dtype, "nn", extents, H200).config
            for found in split_times(config, 1e-9, extents, H200):
                assert (
                    found.splits == 1 or (found.splits + 1) * partial_bytes(*extents[:2], dtype) <= 32 << 20
                )


def test_what_chunks_leave_over_costs_a_launch(levels):
    """Of nearly equal products, the one that is cut evenly should be faster."""
    config = select("gemm_simt", S, "nn", LONG, H200).config
    even, odd = (next(split_times(config, 6e-10, (64, 64, k), H200, 32)).seconds for k in (65536, 65535))
    assert 2e-6 < odd - even < 8e-6


def test_a_batch_is_not_cut():
    assert select("gemm", S, "nn", (*LONG, 2), H200).splits == 1
    with override("splits", 4):
        assert select("gemm", S, "nn", (*LONG, 2), H200).splits == 1
        assert select("gemm", S, "nn", (*LONG, 1), H200).splits == 4


def test_chunks_can_be_forced_as_far_as_k_goes():
    with override("splits", 7):
        assert [select("gemm", S, "nn", (64, 64, k), H200).splits for k in (1, 4, 8, 27, 28, 9999)] == [
            1, 1, 2, 6, 7, 7,
        ]  # fmt: skip
        assert select("gemm", DTYPES["z"], "nn", (64, 64, 3), H200).splits == 3
    with override("splits", 1):
        assert select("gemm", S, "nn", LONG, H200).splits == 1
    assert select("gemm", S, "nn", LONG, H200).splits > 1


def test_a_forced_config_is_not_cut_unless_that_is_forced_too():
    found = config()
    with override("gemm_simt", found):
        assert select("gemm", S, "nn", LONG, H200) == selecting.KernelChoice(found, "override", 1)
        with override("splits", 5):
            assert select("gemm", S, "nn", LONG, H200) == selecting.KernelChoice(found, "override", 5)
        assert select("gemm", S, "nn", LONG, H200).splits == 1


def test_chunks_are_chosen_once(monkeypatch):
    first = select("gemm", S, "nn", LONG, H200)
    monkeypatch.setattr(dispatch_gemm, "split_times", None)
    assert select("gemm", S, "nn", LONG, H200) is first
