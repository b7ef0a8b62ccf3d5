"""GEMV and GER are tuned: a whole run on a device that is played by NumPy, and what calls choose after it."""

from __future__ import annotations

from io import StringIO

import numpy as np
import pytest
from fake_routines import elements
from rich.console import Console
from tuner_stage import H200, Stage, flip_one, on, planned, read_back, tune

from pyblasgpu.database import FAMILIES, MATRIX_VECTOR_POINTS, size_class, sizes_of
from pyblasgpu.dispatch import choose, leaf
from pyblasgpu.dispatch.leaf import by_shape
from pyblasgpu.kernels.level2.gemv import Gemv
from pyblasgpu.tuning import measure, portfolio, report
from pyblasgpu.types import DTYPES

pytestmark = pytest.mark.usefixtures("home")


def test_points_are_square_tall_and_wide():
    assert {"256x256", "16384x16384", "200000x32", "256x65536"} <= set(MATRIX_VECTOR_POINTS)
    assert sizes_of("gemv") == sizes_of("ger") == tuple(MATRIX_VECTOR_POINTS)
    shapes = {(300, 280): "256x256", (9, 9): "256x256", (10**6, 20): "200000x32", (700, 30000): "1024x16384"}
    for extents, point in shapes.items():
        assert size_class("gemv", extents) == point == size_class("ger", (*extents, 3))


@pytest.mark.parametrize("layouts", [("n", "t"), ("t",)])
def test_a_run_finds_the_best_and_the_next_call_uses_it(stage, layouts):
    made, document = tune(on(stage), ("gemv",), layouts=layouts)
    assert {key[:3] for key in document.entries} == {("gemv", "s", layout) for layout in layouts}
    assert {size for *_, size in document.entries} == set(MATRIX_VECTOR_POINTS) and made.untried == 0
    assert set(made.log.counts) == {"ok"} and read_back(document).keys() == document.entries.keys()
    for layout in layouts:
        choice = choose.select("gemv", DTYPES["s"], layout, (1000, 1000, 1), H200)
        best = max(planned(("gemv", "s", layout)), key=Stage.rate)
        assert Stage.rate(choice.config) == Stage.rate(best) and choice.origin.startswith("tuned here")


def test_few_kernels_are_kept_with_their_threads_in_any_arrangement(stage):
    """Configs that differ in what a launch is told count as one."""
    _, document = tune(on(stage), ("gemv",), layouts=("n", "t"))
    configs = [
        FAMILIES[stem].config(dtype, layout, entry.parameters)
        for (stem, dtype, layout, _), entry in document.entries.items()
    ]
    assert len({config.kernel for config in configs}) <= 2 * portfolio.BUDGETS["gemv"]
    for layout in "nt":
        kept = {config.kernel for config in configs if config.layout == layout}
        for config in kept:
            assert {each.kernel for each in config.arrangements} == {config}
            assert {each.DIM_R for each in config.arrangements} > {32}


def test_ger_is_tuned(stage):
    _, document = tune(on(stage), ("ger",), dtypes=("d",))
    choice = choose.select("ger", DTYPES["d"], "", (1000, 1000, 1), H200)
    assert len(document.entries) == len(MATRIX_VECTOR_POINTS) and choice.origin.startswith("tuned here")


def test_a_wrong_result_ends_a_candidate(stage):
    broken = planned(("gemv", "s", "n"))[0]
    stage.broken = {broken: flip_one}
    made, _ = tune(on(stage), ("gemv",), layouts=("n",))
    parameters = broken.THR_O, broken.THR_R, broken.DIM_R
    outcomes = [
        record.outcome
        for record in made.log.records
        if tuple(record.parameters.get(name) for name in ("THR_O", "THR_R", "DIM_R")) == parameters
    ]
    assert outcomes == ["wrong"]


@pytest.mark.parametrize("letter", DTYPES)
@pytest.mark.parametrize("layout", "nt")
def test_without_tuned_values_the_shape_decides(letter, layout):
    """By the cost of few Configs, of at most two kernels."""
    for extents in ((1, 1), (256, 256), (1024, 1024), (200_000, 32), (32, 200_000), (8192, 8192)):
        choice = choose.select("gemv", DTYPES[letter], layout, (*extents, 1), H200)
        assert choice.origin == "computed" and choice.config.dtype == letter
        assert choice.config == by_shape("gemv", letter, layout, (*extents, 1), H200)
        assert choice.config in Gemv.defaults(letter, layout == "t")
    assert len({config.kernel for config in Gemv.defaults(letter, layout == "t")}) <= 2


@pytest.mark.parametrize("layout", "nt")
def test_what_is_timed_lies_as_asked(stage, layout):
    seen: list = []
    load = measure.Workload(0, 0)
    work = load.rotation(lambda *call: seen.append(call), "gemv", DTYPES["d"], layout, (9, 5))
    for call in work.calls:
        call()
    for _, a, x, _, y, _ in seen:
        assert (a.row_stride if layout == "n" else a.col_stride) == 1 and (a.rows, a.cols) == (9, 5)
        assert (x.rows, y.rows) == (5, 9) and elements(y).shape == (1, 9, 1)
    seen.clear()
    load.rotation(lambda *call: seen.append(call), "ger", DTYPES["z"], "any", (9, 5)).calls[0]()
    ((_, x, y, a, _),) = seen
    assert (x.rows, y.rows, a.rows, a.cols) == (9, 5, 9, 5) and np.isfinite(elements(a)).all()
    assert measure.flops("gemv", DTYPES["z"], (2, 3)) == 48


def test_the_kernels_that_files_name_serve_every_shape(monkeypatch):
    """In any arrangement of their threads; those that serve without files are not needed then."""
    filed = Gemv("d", DIM_R=64, THR_O=4, THR_R=2)
    monkeypatch.setattr(leaf.tuned_files, "current_configs", lambda *key: {"256x256": filed})
    configs = leaf.candidates("gemv", "d", "n", H200)
    assert {config.kernel for config in configs} == {filed.kernel} and filed in configs
    assert by_shape("gemv", "d", "n", (9000, 40), H200) in configs


def test_a_run_is_reported(stage, tmp_path):
    """The table of winners, with the form of the product, and curves of whole routines."""
    made, document = tune(on(stage), ("gemv", "ger"), layouts=("n", "t"), curves=True)
    text = StringIO()
    report.show(made.log.records, Console(file=text, width=200))
    assert "SGEMV" in text.getvalue() and "Aᵀ" in text.getvalue() and "SGER" in text.getvalue()
    assert len(report.rows(made.log.records)) == len(document.entries)
    for path in report.write(made.log.records, tmp_path):
        assert path.stat().st_size
