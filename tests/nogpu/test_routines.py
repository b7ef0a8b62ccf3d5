"""Every routine by every way to call it, with one reference: the results, and what must stay as it was."""

from __future__ import annotations

import ast

import fake_device
import fake_kernels
import fake_plans
import memory_spaces
import numpy as np
import pytest
import scipy.linalg
from faces import LINALG, aligned, as_new_array, by_keyword, by_linalg, by_plan, by_scipys_name, check, forms
from fake_cards_install import holds_nothing
from fake_level1 import LEVEL1
from import_graph import PACKAGE
from patched import nothing_is_left_behind, taken  # noqa: F401 - the fixture
from routine_cases import BLAS, LAPACK, blas_cases, every, lapack_cases

import pyblasgpu
from pyblasgpu import blas, lapack
from pyblasgpu.api.explain import sources_of
from pyblasgpu.api.keyword import vector_calls, vector_pairs
from pyblasgpu.routine_table import ROUTINES
from pyblasgpu.types import DTYPES

#: The routines that are called in each way; those of `blas` and `lapack` are all of their groups.
WAYS = {
    "keyword": " ".join(BLAS),
    "plan": "gemm trmm trsm",
    "linalg": "gemm trsm dot gemv ger potrf potrs posv trtrs getrf getrs gesv geqrf",
    "explain": " ".join(stem for stem in ROUTINES if stem != "rotm"),
    "patch": "gemm trmm trsm symm hemm syrk herk syr2k her2k potrf potrs posv potri trtri trtrs lauum getrf "
    "getrs gesv getri geqrf orgqr ormqr",
    "tiles": "gemm trmm trsm symm hemm syrk herk potrf potrs",
    "dask": "gemm trmm trsm syrk herk",
    "torch": "gemm trmm trsm symm hemm syrk herk gemmtr",
    "jax": "gemm",
}


def public_names(package: str) -> set[str]:
    """``__all__`` of a package of frameworks, which may not be installed."""
    text = (PACKAGE / package / "__init__.py").read_text()
    assigned = [node for node in ast.parse(text).body if isinstance(node, ast.Assign)]
    (names,) = (node.value for node in assigned if ast.unparse(node.targets[0]) == "__all__")
    return set(ast.literal_eval(names))


def test_the_ways_to_call_a_routine():
    """A routine that is new, or that is called in a new way, has a line here and is compared below."""
    names = {name: public_names(name) for name in ("dask", "torch", "jax")}
    for stem, row in ROUTINES.items():
        found = {
            "keyword": stem in pyblasgpu.__all__,
            "plan": f"plan_{stem}" in pyblasgpu.__all__,
            "linalg": stem in LINALG,
            "explain": row.is_explained,
            "patch": bool(row.crossover),
            "tiles": bool(row.tasks),
            **{way: stem in public for way, public in names.items()},
        }
        module = lapack if row.group == "lapack" else blas
        assert all(hasattr(module, name) for letter in row.letters for name in row.scipys(letter))
        assert found == {way: stem in stems.split() for way, stems in WAYS.items()}, stem


def is_plain(case) -> bool:
    """Whether a call has the flags of `explain`, and neither a factor nor an extent of 0."""
    given = case.given
    names = ("trans", "trans_a", "trans_b", "side", "diag", "unitdiag", "clean")
    flags = [given.get(name, 0) for name in names]
    is_written = case.row.group == "lapack" or case.row.stem == "trmv" or case.row.output.name in given
    is_there = is_written and case.least_extent > 0 and given.get("lower", 1) == 1
    return is_there and {*flags} <= {0, "L", "N"} and all(given.get(name, 1) for name in ("alpha", "beta"))


@pytest.fixture
def kernels(fake, monkeypatch):
    """The package's own launch lists on a fake device; NumPy computes what their kernels do."""
    for module in (vector_calls, vector_pairs):
        monkeypatch.setattr(module, "routine_module", lambda name: LEVEL1)
    return fake_kernels.install_below(monkeypatch)


KEYWORD_CALLS = [
    (stem, space, form)
    for stem in BLAS
    for space in (memory_spaces.Host, memory_spaces.Staged, memory_spaces.Device)
    for form in (forms(stem)[:1] if space is memory_spaces.Staged else forms(stem))
]


@pytest.mark.parametrize(("stem", "space", "form"), KEYWORD_CALLS)
def test_keyword_functions(kernels, fake, stem, space, form):
    check(every(stem), lambda case, number: by_keyword(case, space, form, number))
    assert not fake[1].held


@pytest.fixture
def backend(request, monkeypatch):
    monkeypatch.setenv("PYBLASGPU_BACKEND", "cpu")


@pytest.mark.parametrize("stem", LAPACK)
def test_scipys_names_of_lapack(backend, stem):
    check(every(stem), lambda case, number: by_scipys_name(case, lapack, memory_spaces.Host, number))


#: Routines whose kernels have no stand-in.
WITHOUT_STAND_INS = ("gesdd", "syevd")
ON_DEVICE = [stem for stem, row in ROUTINES.items() if row.is_explained and stem not in WITHOUT_STAND_INS]


@pytest.mark.parametrize("stem", ON_DEVICE)
def test_scipys_names_on_a_device(kernels, stem):
    module = lapack if stem in LAPACK else blas
    cases = [case for case in every(stem) if hasattr(module, case.name)]
    check(cases, lambda case, number: by_scipys_name(case, module, memory_spaces.Device, number))


EXPLAINED = [
    (stem, letter)
    for stem in ON_DEVICE
    for letter in "dz"
    if (row := ROUTINES[stem]).launches and row.group != "level1" and letter in row.letters
]


@pytest.mark.parametrize(("stem", "letter"), EXPLAINED)
def test_explain_names_the_kernels_that_run(kernels, stem, letter):
    """But for copies of what a call must not overwrite."""
    module = lapack if stem in LAPACK else blas
    cases = blas_cases(stem, letter, (96, 40, 56)) if stem in BLAS else lapack_cases(stem, letter)
    case = [case for case in cases if is_plain(case)][-1]
    given = {
        key: fake_device.Array(aligned(value, "F")) if isinstance(value, np.ndarray) else value
        for key, value in case.given.items()
    }
    getattr(module, case.name)(**given)
    rows = pyblasgpu.explain(stem, letter, *case.extents, device="h200")
    names = {source.name for source in sources_of(stem, letter, *case.extents, device="h200")[1]}
    assert {what for what, value, _ in rows if "dtype=" in value} <= names
    launched = {name for name, *_ in kernels.launches}
    assert names <= launched <= names | {"copy_scaled"}


@pytest.mark.parametrize("space", [memory_spaces.Host, memory_spaces.Device])
@pytest.mark.parametrize("stem", LINALG)
def test_functions_of_linalg(kernels, monkeypatch, stem, space):
    monkeypatch.setenv("PYBLASGPU_BACKEND", "cpu")
    check(every(stem), lambda case, number: by_linalg(case, space, number))


@pytest.fixture
def plans(monkeypatch):
    with fake_plans.installed(monkeypatch):
        yield


@pytest.mark.parametrize("stem", WAYS["plan"].split())
def test_plans(plans, stem):
    check(every(stem), lambda case, number: by_plan(case, memory_spaces.Device, number))


@pytest.mark.parametrize("stem", WAYS["patch"].split())
def test_names_that_are_patched(stem):
    """Each call is counted, and is ours."""
    module = getattr(scipy.linalg, "lapack" if stem in LAPACK else "blas")
    cases = [case for case in every(stem) if hasattr(module, case.name) and case.least_extent]
    with taken() as patch:
        check(cases, lambda case, number: by_scipys_name(case, module, memory_spaces.Host, number))
        assert patch.calls == {stem: len(cases)}


@pytest.mark.parametrize("which", range(3), ids=["all", "two", "little memory"])
@pytest.mark.parametrize("stem", [stem for stem in BLAS if ROUTINES[stem].tasks])
def test_tiles_on_several_cards(fake_cards, small_tiles, stem, which):
    driver = fake_cards()
    cases = [case for letter in DTYPES for case in blas_cases(stem, letter, (19, 27, 13))]
    tiled = [case for case in cases if case.given["alpha"] != 0 and case.least_extent > 8]

    def run(case, number):
        memory = {"max_device_memory": max(3100, 625 * case.dtype.itemsize)}
        options = ({"devices": "all"}, {"devices": [3, 1]}, memory)[which]
        return by_keyword(case, memory_spaces.Host, "new", number, backend=None, **options)

    check(tiled[which::12], run)
    assert holds_nothing(driver) and sum(driver.copied.values())


@pytest.mark.parametrize("devices", ["all", [3, 1]], ids=str)
@pytest.mark.parametrize("stem", ["potrf", "potrs", "getrf"])
def test_factors_on_several_cards(fake_cards, small_tiles, stem, devices):
    driver = fake_cards()
    tiled = [case for case in every(stem) if case.least_extent == 9 or stem == "getrf"]
    with pyblasgpu.use_devices(devices):
        check(tiled, lambda case, number: by_scipys_name(case, lapack, memory_spaces.Host, number))
    assert holds_nothing(driver) and sum(driver.copied.values())


@pytest.mark.parametrize("stem", WAYS["dask"].split())
def test_dask(stem):
    pytest.importorskip("dask")
    import dask
    import dask.array as da

    import pyblasgpu.dask as ours

    rng = np.random.default_rng(3)

    def chunked(array):
        """Ragged chunks, some of them empty."""
        cuts = [np.diff([0, *np.sort(rng.integers(0, n + 1, 2)), n]) for n in array.shape]
        return da.from_array(array, chunks=tuple(tuple(map(int, each)) for each in cuts))

    with dask.config.set(scheduler="sync"):
        check(every(stem)[::3], lambda case, _: as_new_array(case, ours, chunked, np.asarray))
