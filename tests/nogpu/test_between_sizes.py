"""The choice on the recorded sweep: at the sizes that were tuned, and at each as if it had not been."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from statistics import mean, median

import pytest
from recorded import GEMM_WINNERS, seconds_of

from pyblasgpu.database import Document, Entry, families_of, sizes_of, tuned_at
from pyblasgpu.dispatch import choose as selecting
from pyblasgpu.dispatch import split_k, throughput_model, tuned_files
from pyblasgpu.dispatch.choose import select
from pyblasgpu.dispatch.operand_copies import match_alignment, misalignment_cost
from pyblasgpu.dispatch.overrides import override
from pyblasgpu.dispatch.product_kinds import PLAIN, TRMM_LEFT, Kind, configs_of, variant_of
from pyblasgpu.dispatch.throughput_model import LEFT, LOWER, config_name, timed_regions
from pyblasgpu.gpu.device import known
from pyblasgpu.tuning.results import winners
from pyblasgpu.tuning.sweep_file import read_sweep
from pyblasgpu.types import DTYPES, Region, Triangle

H200, NO = known("h200"), (False, False)
#: Classes of which all but what was timed first was timed by single calls, and with what a pass takes beside
#: them (`pyblasgpu.tuning.measure`, before 0699a61): as long as the calls themselves.
SHORT = ("tiny", "square128")


@pytest.fixture(scope="module")
def recorded():
    """The winners, and of each (dtype, layout, size class) the seconds of every Config."""
    records = read_sweep(GEMM_WINNERS)
    return winners(records, H200.name), seconds_of(records)


def losses(recorded, monkeypatch, hidden: bool) -> dict[tuple[str, str, str], float]:
    """At each size, how much longer the choice takes than the best, of k not in slices; its own class, and
    what others did there, `hidden`. Without those where the time of what is chosen is not known.
    """
    document, times = recorded
    monkeypatch.setattr(split_k, "slice_counts", lambda *_: ())
    # the recorded times are the device's alone
    monkeypatch.setattr(tuned_files, "policy_changes", [{"host_seconds": 0.0}])
    loss = {}
    for size in sizes_of("gemm_simt"):
        entries = dict(document.entries)
        if hidden:
            entries = {key: without(entry, size) for key, entry in entries.items() if key[3] != size}
        if hidden or not loss:  # else all sizes see the same entries, and share what is kept of them
            seen = Document(H200.name, entries)
            monkeypatch.setattr(tuned_files, "documents", lambda device, seen=seen: (("the sweep", seen),))
            forget()
        for (dtype, layout, at), seconds in times.items():
            if at == size:
                with override("packed", False):
                    extents = tuned_at("gemm_simt", size)[-1]
                    choice = select("gemm", DTYPES[dtype], layout, extents, H200)
                if choice.config in seconds:
                    loss[dtype, layout, at] = seconds[choice.config] / min(seconds.values()) - 1
    forget()
    return loss


def forget() -> None:
    selecting.choice_cache.clear()
    tuned_files.forget()


def without(entry: Entry, size: str) -> Entry:
    return replace(entry, elsewhere={at: rate for at, rate in entry.elsewhere.items() if at != size})


def hide(monkeypatch, ending: str) -> None:
    """Leave out the points of products with this ending."""
    others = []
    for origin, document in tuned_files.documents(H200):
        points = {key: rates for key, rates in document.products.items() if not key[-1].endswith(ending)}
        others.append((origin, replace(document, products=points)))
    monkeypatch.setattr(tuned_files, "documents", lambda device: tuple(others))


def test_fused_trmms_are_chosen_by_times_of_their_own(monkeypatch):
    """Those far from what was timed are not, and products are not."""
    places = [(order, cols, Triangle.LOWER_LEFT) for order, cols in ((1024, 512), (2048, 512), (8192, 8192))]
    places.append((2048, 512, Region.ALL))

    def chosen() -> list:
        forget()
        return [select("gemm", DTYPES["d"], "nn", (m, n, m), H200, NO, at).config for m, n, at in places]

    by_times = chosen()
    hide(monkeypatch, LEFT)
    by_products = chosen()
    forget()
    assert [one == other for one, other in zip(by_times, by_products, strict=True)] == [
        False,
        False,
        True,
        True,
    ]
    assert {(config.BLK_M, config.BLK_N) for config in by_times[:2]} == {(32, 64), (64, 64)}


@pytest.mark.parametrize(
    ("letter", "layout", "ending"),
    [*((letter, "nn", LEFT) for letter in "dz"), *product(DTYPES, ("nt", "tn"), [LOWER])],
)
def test_regions_that_were_timed_run_by_the_fastest_there(letter, layout, ending):
    """Of the Configs that have a kernel, to 2 %, whatever was timed near; but k may be in slices."""
    where = families_of("gemm", letter), letter, layout
    of_c = ending == LOWER
    kind, region = (Kind(PLAIN, True), Region.LOWER) if of_c else (Kind(TRMM_LEFT), Triangle.LOWER_LEFT)
    own = {
        config_name(variant_of(kind, each, H200) if of_c else each) for each in configs_of(kind, *where, H200)
    }
    slower, timed = [], timed_regions(*where, ending, H200)
    for extents, rates in timed.items():
        choice = select("gemm", DTYPES[letter], layout, extents, H200, NO, region, workspace_limit=32 << 20)
        is_known = choice.splits <= 1 and not any(choice.copied)
        if is_known and rates.get(config_name(choice.config), 0.0) < 0.98 * max(
            rates[name] for name in own & set(rates)
        ):
            slower.append((extents, config_name(choice.config)))
    assert timed and not slower


@pytest.mark.parametrize(("letter", "m", "n"), [("s", 8064, 128), ("z", 3072, 3072)])
def test_triangles_and_trapezoids_are_chosen_by_times_of_their_own(monkeypatch, letter, m, n):
    """Other products are not; of trapezoids lower ones are."""

    def chosen() -> list:
        forget()
        regions = Region.ALL, Region.LOWER, Region.HERMITIAN_UPPER
        return [select("gemm", DTYPES[letter], "nt", (m, n, n, 1), H200, NO, at).config for at in regions]

    by_times = chosen()
    hide(monkeypatch, LOWER)
    by_products = chosen()
    forget()
    assert [one == other for one, other in zip(by_times, by_products, strict=True)] == [True, False, m > n]


def test_a_winner_is_chosen_where_it_won(recorded, monkeypatch):
    lost = losses(recorded, monkeypatch, hidden=False).values()
    assert len(lost) >= 479  # what is chosen was timed, but for one
    assert mean(lost) < 0.002 and max(lost) < 0.05


@pytest.mark.slow
def test_an_untuned_class_has_others_to_stand_in(recorded, monkeypatch):
    """Neighbours of a square are a factor of 1.5 away here, twice as far as in use; those of skinny products
    and of batches up to 64 in one extent.
    """
    all_losses = losses(recorded, monkeypatch, hidden=True)
    lost = {key: loss for key, loss in all_losses.items() if key[2] not in SHORT}
    assert len(lost) > 300 and median(lost.values()) < 0.025
    alone = [loss for (*_, size), loss in lost.items() if not size.startswith("batch")]
    assert mean(alone) < 0.07 and sum(loss > 0.25 for loss in alone) <= 16
    squares = [loss for (*_, size), loss in lost.items() if len(set(tuned_at("gemm_simt", size)[-1])) == 1]
    assert len(squares) == 158 and mean(squares) < 0.05 and sum(loss > 0.1 for loss in squares) <= 24


def with_product(monkeypatch, point: str, splits: int = 1, rate: float = 60.0) -> tuple:
    """The extents of `point`, and a Config of small tiles for which a file has a `rate` there, in slices if
    so requested; all others have 10 TFLOP/s.
    """
    forget()
    extents = tuple(map(int, point.split("x")))
    before = select("gemm", DTYPES["s"], "nn", extents, H200).config
    configs = [each.config for each in throughput_model.measured("gemm_simt", "s", "nn", False, H200)]
    other = next(
        each
        for each in configs
        if each.BLK_M * each.BLK_N < 2048 and each != before and (splits == 1 or split_k.cuts_k(each))
    )
    rates = {throughput_model.config_name(each): 10.0 for each in configs if each != other}
    rates[throughput_model.config_name(other) + f"*{splits}" * (splits > 1)] = rate
    seen = Document(H200.name, products={("gemm_simt", "s", "nn", point): rates})
    documents = tuned_files.documents(H200)
    forget()
    monkeypatch.setattr(tuned_files, "documents", lambda device: (("the file", seen), *documents))
    return extents, other


def cycle_of(config, extents: tuple[int, ...], aligned: int = 32) -> float:
    model = throughput_model.measured_model(("gemm_simt",), "s", "nn", False, H200)
    number = [each.config for each in model.tuned].index(config)
    return float(model.at(extents, (aligned, aligned))[0][number])


def test_a_rate_between_the_classes_decides_there(monkeypatch):
    extents, other = with_product(monkeypatch, "1200x1200x1200")
    assert select("gemm", DTYPES["s"], "nn", extents, H200).config == other
    assert select("gemm", DTYPES["s"], "nn", (4096, 4096, 4096), H200).config != other
    forget()


def test_a_rate_of_misaligned_operands_is_one_of_those(monkeypatch):
    extents, other = with_product(monkeypatch, "1201x1201x1201")
    odd, aligned = cycle_of(other, extents, 4), (4, 4)
    assert odd < 0.9 * cycle_of(other, extents)
    variant = match_alignment(other, aligned)
    seconds = next(split_k.split_times(variant, odd, extents, H200)).seconds
    cost = misalignment_cost(variant, extents, aligned, H200)
    assert seconds * cost == pytest.approx(2e-12 * 1201**3 / 60.0, rel=0.1)
    forget()


def test_a_rate_of_slices_is_estimated_as_such(monkeypatch):
    extents, other = with_product(monkeypatch, "64x64x65536", splits=64, rate=20.0)
    seconds = next(split_k.split_times(other, cycle_of(other, extents), extents, H200, 64)).seconds
    assert seconds == pytest.approx(2e-12 * 64 * 64 * 65536 / 20.0, rel=0.01)
    forget()


def test_slices_fill_whole_waves():
    """25 tiles, of which 264 run at once: ten slices, or twenty-one in two waves."""
    assert {10, 21, 31, 42} <= set(split_k.slice_counts(25, 264)) and 1 not in split_k.slice_counts(200, 264)
