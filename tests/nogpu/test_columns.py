"""Searches that make many Configs: scores as a table, and copies where no rule tells Configs apart."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from pyblasgpu.database import FAMILIES, tuned_points
from pyblasgpu.dispatch.product_kinds import persistent
from pyblasgpu.errors import ConfigError
from pyblasgpu.gpu.device import known
from pyblasgpu.kernels.space import space
from pyblasgpu.model.occupancy import alike, demand
from pyblasgpu.model.score import score, scores
from pyblasgpu.tuning.configs import ConfigBuilder
from pyblasgpu.tuning.prune import best_few, candidates
from pyblasgpu.types import DTYPES

H200 = known("h200")
PRODUCTS = [stem for stem, family in FAMILIES.items() if family.routine == "gemm"]


def points(stem, dtype, layout, effort, count, seed=0):
    """Some parameters of a space, drawn at random, whatever rules they break."""
    rng, drawn = Random(seed), []
    axes = space(stem, DTYPES[dtype], layout, H200, effort)
    tiles = axes[0]({})
    for _ in range(count if tiles else 0):
        chosen = {}
        for at, axis in enumerate(axes):
            chosen |= rng.choice(tiles if at == 0 else axis(chosen))
        drawn.append(chosen)
    return drawn


@pytest.mark.parametrize("stem", FAMILIES)
@pytest.mark.parametrize("effort", ["quick", "exhaustive"])
def test_a_copied_config_is_what_its_rules_make(stem, effort):
    family, made, broken = FAMILIES[stem], 0, 0
    for dtype in family.dtypes:
        for layout in family.layouts:
            make = ConfigBuilder(stem, dtype, layout)
            for chosen in points(stem, dtype, layout, effort, 60):
                try:
                    config = family.config(dtype, layout, chosen)
                except ConfigError as problem:
                    with pytest.raises(ConfigError) as caught:
                        make(chosen)
                    assert caught.value.rule == problem.rule
                    broken += 1
                    continue
                copy = make(chosen)
                assert copy == config and hash(copy) == hash(config) and str(copy) == str(config)
                assert demand(copy) == (config.threads, config.registers, config.shared_bytes)
                remembered = {name: value for name, value in vars(copy).items() if not name.startswith("_")}
                assert remembered == {name: getattr(config, name) for name in remembered}
                made += 1
    assert made > 20


@pytest.mark.parametrize("stem", PRODUCTS)
def test_one_stands_for_those_that_differ_in_blocks_and_stages(stem):
    family, kinds = FAMILIES[stem], {}
    configs = candidates(stem, "d", "nn", H200, "normal").left
    for config in configs:
        parameters = {**family.parameters_of(config), "min_blocks": 1, "stages": min(config.stages, 2)}
        assert alike(config) == family.config("d", "nn", parameters)
        kinds.setdefault(alike(config), []).append(config)
    assert len(kinds) < len(configs)


@pytest.mark.parametrize("device", ["h200", "v100", "rtx4090", "fermi"])
@pytest.mark.parametrize("stem", FAMILIES)
def test_a_table_of_scores_is_that_of_each(stem, device):
    there, family = known(device), FAMILIES[stem]
    places = [extents for _, extents in tuned_points(stem)]
    for dtype in family.dtypes:
        configs = candidates(stem, dtype, family.layouts[-1], there).left
        if family.routine == "gemm":
            configs += [variant for config in configs for variant in persistent(config, there)]
        table = scores(configs, places, there)
        one = [[score(stem, config, extents, there) for extents in places] for config in configs]
        assert table.shape == (len(configs), len(places))
        # the powers of arrays round otherwise than those of numbers
        np.testing.assert_allclose(table, np.array(one).reshape(table.shape), rtol=1e-14, atol=0)


def test_families_may_be_mixed():
    configs = [c for stem in PRODUCTS for c in candidates(stem, "d", "nn", H200).left][::3]
    configs = [*configs[::2], *configs[1::2]]
    table = scores(configs, [(512, 512, 512)], H200)
    one = [score(config.STEM, config, (512, 512, 512), H200) for config in configs]
    np.testing.assert_allclose(table[:, 0], one, rtol=1e-14, atol=0)


def test_what_does_not_fit_has_no_score():
    few = known("sm_90")
    large = max(candidates("gemm_mma", "d", "nn", few).left, key=lambda config: config.shared_bytes)
    (points,) = scores([large], [(512, 512, 512), (64, 64, 64, 100)], known("rtx4090"))
    assert points.tolist() == [0.0, 0.0] and scores([], [(1, 1, 1)], few).shape == (0, 1)


@pytest.mark.parametrize("stem", PRODUCTS)
def test_the_best_few_are_those_of_a_sort(stem):
    configs = candidates(stem, "d", "tn", H200).left
    for extents in ((4096,) * 3, (64, 64, 64, 1000), (16, 4096, 4096)):
        ranked = sorted(dict.fromkeys(configs), key=lambda c: score(stem, c, extents, H200), reverse=True)
        blocks, expected = [], []
        for config in ranked:
            blocks.append((config.BLK_M, config.BLK_N))
            if blocks.count(blocks[-1]) <= 2:
                expected.append(config)
        assert best_few([*configs, *configs], extents, H200, most=7, alike=2) == expected[:7]
