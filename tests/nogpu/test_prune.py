"""The funnel: which candidates are left, and which copies they may ask for."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

from pyblasgpu.database import FAMILIES, families_of
from pyblasgpu.errors import ConfigError
from pyblasgpu.gpu import backend
from pyblasgpu.gpu.build.translate import to_ptx
from pyblasgpu.gpu.device import known
from pyblasgpu.kernels.space import EFFORTS, space
from pyblasgpu.model.occupancy import check_device
from pyblasgpu.tuning import compile_pool
from pyblasgpu.tuning.prune import Guidelines, candidates
from pyblasgpu.types import DTYPES

H200, FERMI = known("h200"), known("fermi")


pytestmark = pytest.mark.usefixtures("home")


# -------------------------------------------------------------------------------------------------- funnel


@pytest.mark.parametrize("effort", ["quick", "normal"])
@pytest.mark.parametrize(
    ("stem", "dtype", "layout"),
    [("gemm_simt", "s", "nn"), ("gemm_simt", "z", "tt"), ("trsm_fma", "d", "any")],
)
def test_the_funnel_adds_up_and_what_is_left_keeps_the_rules(stem, dtype, layout, effort):
    funnel = candidates(stem, dtype, layout, H200, effort)
    assert funnel.total + funnel.added == sum(funnel.removed.values()) + len(funnel.left)
    assert len(set(funnel.left)) == len(funnel.left) > 0
    for config in funnel.left:
        check_device(config, H200)
        assert config.dtype == dtype and getattr(config, "layout", layout) == layout


def test_quick_is_short_everywhere():
    for stem, family in FAMILIES.items():
        for dtype in family.dtypes:
            for layout in family.layouts:
                assert 9 <= len(candidates(stem, dtype, layout, H200).left) <= 115


def test_branches_are_counted_as_often_as_they_would_have_grown():
    """The total is the size of the whole product, whatever is cut off where."""

    def product(axes, chosen):
        if not axes:
            return 1
        return sum(product(axes[1:], {**chosen, **values}) for values in axes[0](chosen))

    axes = space("trsm_fma", DTYPES["d"], "any", H200, "normal")
    assert candidates("trsm_fma", "d", "any", H200, "normal").total == product(axes, {})


def test_guidelines_prune():
    loose = candidates("gemm_simt", "s", "nn", H200, guidelines=Guidelines(reuse=0))
    strict = candidates("gemm_simt", "s", "nn", H200, guidelines=Guidelines(threads=256, blocks=2, reuse=4))
    # the few persistent ones are chosen among what is left
    assert {c for c in strict.left if not c.persistent} < set(loose.left)
    assert {"reuse", "blocks"} <= set(strict.removed) and "reuse" not in loose.removed
    assert all(config.reuse >= 4 for config in strict.left)


def test_no_asynchronous_copies_where_there_are_none():
    assert all(config.stages == 1 for config in candidates("gemm_simt", "s", "nn", FERMI).left)
    assert "device_async" in candidates("trsm_fma", "s", "any", FERMI).removed
    config = next(c for c in candidates("gemm_simt", "s", "nn", H200).left if c.stages > 1)
    with pytest.raises(ConfigError, match="device_async"):
        check_device(config, FERMI)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("layout", FAMILIES["gemm_simt"].layouts)
def test_transposing_stores_meet_no_bank_twice(dtype, layout):
    """Neighbouring threads of a warp, in the phases in which shared memory serves them."""
    for config in candidates("gemm_simt", dtype, layout, H200).left:
        for k_tile, fragment in ((config.smem_tile_a, config.VEC_M), (config.smem_tile_b, config.VEC_N)):
            if not k_tile.k_major or k_tile.vec > 1:
                continue
            line = 128 // DTYPES[dtype].itemsize
            lanes = [(t % k_tile.dim_x) * k_tile.ld + t // k_tile.dim_x for t in range(min(line, 32))]
            ways = max(np.bincount([place % line for place in lanes]))
            # rows must hold whole fragments, which may keep rows further apart than the banks ask
            assert ways <= max(1, fragment * k_tile.dim_x // line)


def test_an_unknown_effort_is_refused():
    assert EFFORTS == ("quick", "normal", "exhaustive")
    with pytest.raises(ValueError, match="effort 'lazy' is none of quick"):
        candidates("gemm_simt", "s", "nn", H200, "lazy")


def test_which_copies_may_pass_through_the_l1_cache():
    """Copies of 16 bytes alone can pass by it."""
    for letter in "sd":
        left = candidates(families_of("gemm", letter)[-1], letter, "nn", H200).left
        config = next(
            c for c in left if 16 in (c.smem_tile_a.load_bytes, c.smem_tile_b.load_bytes) and c.stages > 1
        )
        through = config.with_cache_policy(True)
        assert through == replace(config, through_l1=True) and through.with_cache_policy(False) == config
        assert through.smem_tile_a.through_l1 and through.for_packed().smem_tile_b.through_l1
        assert config.scalar_variant.with_cache_policy(True) is None
    one = replace(config, stages=1, prefetch=False, persistent=False)
    assert one.with_cache_policy(True) is None
    with pytest.raises(ConfigError, match=r"through_l1: through_l1 only with stages > 1.*stages=1"):
        replace(one, through_l1=True)


@pytest.mark.parametrize("letter", "sdcz")
def test_a_config_has_its_full_vectors_or_scalar_loads(letter):
    """Nothing between; scalar loads of 16 bytes pass through the L1 cache."""
    space = candidates(families_of("gemm", letter)[-1], letter, "nt", H200).left
    config = max((c for c in space if c.stages > 1 and not c.through_l1), key=lambda c: c.VEC_A * c.VEC_B)
    scalar = config.scalar_variant
    assert (scalar.VEC_A, scalar.VEC_B, scalar.through_l1) == (1, 1, letter == "z")
    assert scalar.scalar_variant == scalar
    assert config.for_alignment(config.VEC_A, config.VEC_B) is config
    if config.VEC_B > 1:
        assert config.for_alignment(config.VEC_A, config.VEC_B // 2) == scalar


@pytest.mark.skipif(bool(backend.why_unavailable()), reason=str(backend.why_unavailable()))
@pytest.mark.parametrize("through_l1", [False, True])
def test_how_copies_are_asked_for(through_l1):
    """By 16 bytes as the Config says; by less, for what is not aligned, always through the L1 cache."""
    wide = [c for c in candidates("gemm_mma", "d", "nn", H200, "quick").left if c.VEC_A == c.VEC_B == 2]
    small = min(wide, key=lambda c: c.WARP_M * c.WARP_N * c.BLK_K)  # compiles soonest
    ptx = to_ptx(compile_pool.source_of("gemm_mma", small.with_cache_policy(through_l1)), (9, 0))
    copies = set(re.findall(r"cp\.async\.(c.)\.\S* [^;]*, (\d+), ", ptx))
    assert copies == {("ca" if through_l1 else "cg", "16"), ("ca", "8")}
