"""A product takes the Config that should be fastest: by rates, by the model between them."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from types import SimpleNamespace

import pytest
from select_cases import (
    H200,
    LARGE,
    C,
    D,
    S,
    Z,
    measured,
    tiles,
)

from pyblasgpu.database import Entry
from pyblasgpu.dispatch import choose as selecting
from pyblasgpu.dispatch import portfolio, tuned_files
from pyblasgpu.dispatch.choose import select
from pyblasgpu.dispatch.gemm import fetching_code
from pyblasgpu.dispatch.overrides import override
from pyblasgpu.dispatch.product_kinds import GemmProblem, three_m_variant
from pyblasgpu.dispatch.tuned_files import policy_of
from pyblasgpu.gpu.device import known
from pyblasgpu.model.occupancy import check_device, has_register_slack
from pyblasgpu.model.score import cycles
from pyblasgpu.tuning.prune import candidates
from pyblasgpu.tuning.tuned_file_writer import merge, save
from pyblasgpu.types import DTYPES, Region

pytestmark = pytest.mark.usefixtures("levels")


def test_without_tuned_values_asynchronous_copies_serve(levels, monkeypatch):
    """One kernel serves operands of any alignment; others do where there are no such Configs."""
    space = candidates("gemm_simt", "d", "nn", H200, "quick").left
    several = next(c for c in space if c.stages > 1 and has_register_slack(c, H200))
    one = replace(several, stages=1, prefetch=False, through_l1=False)
    for configs, expected in (([one, several], [several]), ([one], [one])):
        monkeypatch.setattr(portfolio, "quick_configs", lambda *_, configs=configs: iter(configs))
        best = portfolio.best_by_model.__wrapped__("gemm_simt", "d", "nn", H200)
        assert list(best.rates) == expected


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
    document = measured("NVIDIA H200", ("large", big, 50), ("small", little, 9))
    medium = 2048, 2048, 2048

    def chosen():
        save(document, levels / "nvidia_h200.json")
        selecting.reload()
        return select("gemm", S, "nn", medium, H200)

    assert chosen().config == big and chosen().origin.endswith("class large")
    for (stem, *_, size), entry in list(document.entries.items()):
        rate = {"large": 5.0, "small": 30.0}[size]  # large: big; small: little
        document.entries[stem, "s", "nn", size] = Entry(entry.parameters, entry.tflops, {"medium": rate})
    assert chosen().config == little and chosen().origin.endswith("class small")


def test_operands_that_are_not_aligned_ask_for_tiles_that_load_less(levels):
    """Scalar loads cost a small tile, which loads more for each product, more than a large one."""
    big, little = tiles("gemm_simt", "s")
    document = measured("NVIDIA H200", ("large", big, 50), ("tiny", little, 3))
    save(document, levels / "nvidia_h200.json")
    selecting.reload()
    as_given = partial(select, "gemm_simt", S)  # without copies
    last = {
        bytes_: max(
            n
            for n in range(256, 4097, 64)
            if as_given("nn", (n, n, n), H200, aligned=(bytes_, bytes_)).config == little
        )
        for bytes_ in (32, 8, 4)
    }
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
    actual = measured("NVIDIA H200", ("large", big, 50), ("batch64", little, 9))
    key = "gemm_simt", "s", "nn", "batch64"
    for elsewhere, expected in (({}, big), ({"batch32": 8.0}, big), ({"tiny": 9.0}, little)):
        actual.entries[key] = Entry(actual.entries[key].parameters, 9, elsewhere)
        save(actual, levels / "nvidia_h200.json")
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
        actual = measured("NVIDIA H200", ("large", units, 25), ("large", cores, mma))
        save(actual, levels / "nvidia_h200.json")
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
    """Blocks are as many as single triangles of all their columns would have, and each matrix for itself."""
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
    estimate = cycles("gemm_simt", little, (16, 16, 1, 10**6), H200)
    assert estimate >= 10**6 * (2 * 16 + 16 * 16) * 4 / H200.dram_bytes


def test_a_batch_waits_for_much_code():
    """Of s, d and c, whose kernels load in two ways; and no single product, nor one triangle."""
    extents, waits, no = (48, 48, 48, 1000), policy_of(H200).long_code_seconds, (False, False)
    for dtype, sums, expected in ((S, 64, waits), (S, 16, 0), (D, 64, waits), (D, 32, 0), (Z, 64, 0)):
        config = SimpleNamespace(sums=sums, STEM="gemm_mma" if dtype in (D, Z) else "gemm_simt")
        of = partial(GemmProblem, (config.STEM,), dtype, "nn")
        rest = None, no, False, (16, 16), no, False, None
        for each, seconds in (
            ((extents, Region.ALL), expected),
            ((extents, Region.LOWER), 0),
            ((extents[:3], Region.ALL), 0),
        ):
            assert fetching_code(config, of(*each, *rest), H200) == seconds


def test_what_was_tuned_on_batches_serves_batches_alone(levels):
    big, little = tiles("gemm_simt", "s")
    document = measured("NVIDIA H200", ("large", big, 20), ("batch16", little, 30))
    save(document, levels / "nvidia_h200.json")
    selecting.reload()
    batch = select("gemm", S, "nn", (16, 16, 16, 9999), H200)
    assert (batch.config, batch.origin) == (little, "packaged for NVIDIA H200, class batch16")
    for extents in ((16, 16, 16), (16, 16, 16, 1), LARGE):
        assert select("gemm", S, "nn", extents, H200).config == big
