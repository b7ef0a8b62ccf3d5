"""The site: public names are listed, what pages name exists, and what a script makes is up to date."""

from __future__ import annotations

import importlib
import re
import subprocess
import sys
from contextlib import nullcontext
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path

import documents
import numpy as np
import pytest

import pyblasgpu
from pyblasgpu import blas, errors, lapack, linalg
from pyblasgpu.gpu import device
from pyblasgpu.routine_table import routines

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGES = [page for page in documents.DOCUMENTS if DOCS in page.parents]
MODULES = [blas, lapack, linalg, *([pyblasgpu.dask] if find_spec("dask") else [])]
#: Modules that need a package of the same name.
OPTIONAL = ("dask", "torch", "jax")
NEEDS_DASK = "pyblasgpu.dask needs the extra dask"
NAMES = [
    *("blas", "lapack", "linalg"),
    pytest.param("dask", marks=pytest.mark.skipif(not find_spec("dask"), reason=NEEDS_DASK)),
]
#: What of `pyblasgpu.errors` is for its own modules.
HELPERS = {"lacking", "require"}


# ------------------------------------------------------------------------------------------------- names


def summarised(page: str) -> set[str]:
    """The names in the tables of functions of a page of the API."""
    tables = re.findall(r"\.\. autosummary::\n(.*?)```", (DOCS / "api" / page).read_text(), re.DOTALL)
    return {line.strip() for table in tables for line in table.splitlines() if re.match(r" +[a-zA-Z]", line)}


def test_every_public_name_is_in_the_reference():
    modules = {"__version__", "blas", "errors", "lapack", "linalg"}
    expected = set(pyblasgpu.__all__) - modules | set(errors.__all__) - HELPERS
    assert summarised("index.md") == expected


@pytest.mark.parametrize("name", NAMES)
def test_every_name_of_a_module_is_in_its_reference(name):
    assert summarised(f"{name}.md") == set(getattr(pyblasgpu, name).__all__)


def test_the_workspace_of_every_routine_with_kernels_is_named():
    page = (DOCS / "api" / "lapack.md").read_text()
    named = re.findall(r"^\| (`.*`) \|", page, re.MULTILINE)
    expected = {row.stem for row in routines("lapack") if row.is_explained}
    assert set(re.findall(r"`(\w+)`", " ".join(named))) == expected


@pytest.mark.parametrize("name", ["", *NAMES])
def test_dir_shows_public_names_alone(name):
    module = getattr(pyblasgpu, name) if name else pyblasgpu
    optional = set() if name else {each for each in OPTIONAL if find_spec(each)}
    assert dir(module) == sorted({*module.__all__, *optional})
    for each in dir(module):
        getattr(module, each)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(DOCS).as_posix())
def test_named_functions_exist(page):
    """`pyblasgpu.x.y` in a page can be imported."""
    names = set(re.findall(r"`pyblasgpu\.([a-z_.0-9A-Z]+)`", page.read_text()))
    lacking = {name for name in names if name.split(".")[0] in OPTIONAL and not find_spec(name.split(".")[0])}
    for name in names - lacking:
        resolved("pyblasgpu." + name)
    if lacking:
        pytest.skip(f"{', '.join(sorted(lacking))}: needs a package that is not installed")


def resolved(name: str):
    parts = name.split(".")
    for cut in range(len(parts), 0, -1):
        try:
            named = importlib.import_module(".".join(parts[:cut]))
        except ModuleNotFoundError:
            continue
        for part in parts[cut:]:
            named = getattr(named, part)
        return named
    raise ModuleNotFoundError(name)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(DOCS).as_posix())
def test_named_paths_exist(page):
    """`kernels/gemm/trsm_fused` and the like are files or folders of the package or of the repository."""
    text = page.read_text()
    paths = set(re.findall(r"`((?:[a-z_]+/)+(?:[a-z_0-9]+(?:\.[a-z]+)?)?)`", text))
    tops = {path.name for root in (ROOT, ROOT / "pyblasgpu") for path in root.iterdir() if path.is_dir()}
    missing = [path for path in paths if path.split("/")[0] in tops and not exists(path)]
    assert not missing


@pytest.fixture(scope="module")
def identifiers():
    """All words of the code."""
    files = [path for top in ("pyblasgpu", "benchmarks", "tuning") for path in (ROOT / top).rglob("*.py")]
    return {path.stem for path in files}.union(*(re.findall(r"\w+", path.read_text()) for path in files))


@pytest.mark.parametrize(
    "page", [*sorted(DOCS.glob("design/*.md")), DOCS / "architecture.md"], ids=lambda x: x.stem
)
def test_named_identifiers_are_in_the_code(page, identifiers):
    """`policy_value` and `CONSTANT` of a design page; names of other libraries are on other pages."""
    text = re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)
    named = re.findall(r"`([A-Za-z]+(?:_[A-Za-z0-9]+)+)`", text)
    assert set(named) <= identifiers


def exists(path: str) -> bool:
    bases = [ROOT / path, ROOT / "pyblasgpu" / path]
    return any(base.exists() or base.with_suffix(".py").exists() for base in bases)


@pytest.fixture(scope="module")
def linked_names():
    return extension("linked_names")


def extension(name: str):
    """A module of docs/extensions."""
    spec = spec_from_file_location(name, DOCS / "extensions" / f"{name}.py")
    module = module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def test_names_of_the_map_have_pages(linked_names):
    """Names are this library's, SciPy's and NumPy's: `blas.?gemm` in a column is a function that exists."""
    found, lost = set(), []
    for table in re.findall(r"((?:^\|.*\n)+)", (DOCS / "names.md").read_text(), re.MULTILINE):
        rows = [[cell.strip() for cell in re.split(r" \| ", row.strip("|"))] for row in table.splitlines()]
        headings = rows[0]
        for row in (row for row in rows[2:] if "trans_a" not in table):
            for heading, cell in zip(headings, row):
                module = ""
                for text in re.findall(r"`([^`]+)`", cell) if heading in linked_names.COLUMNS else ():
                    target = linked_names.target_of(text, heading, module)
                    module = target.rpartition(".")[0] if target else module
                    if heading in ("pyblasgpu", "SciPy", "SciPy, NumPy", "NumPy") and not text.endswith("="):
                        found.add(target) if target else lost.append((heading, text))
    assert not lost
    assert {"pyblasgpu.gemm", "scipy.linalg.blas.zhemm", "scipy.linalg.lapack.dpotrf"} < found
    for name in (name for name in found if not name.startswith("pyblasgpu.")):
        resolved(name)


@pytest.mark.parametrize(
    ("text", "heading", "target"),
    [
        ("pb.gemm(a, b)", "", "pyblasgpu.gemm"),
        ("pyblasgpu.linalg", "", None),
        ("numpy.matmul", "", "numpy.matmul"),
        ("scipy.linalg.blas.dgemm", "", "scipy.linalg.blas.dgemm"),
        ("scipy.linalg.no_such", "", None),
        ("gemm", "", None),
        ("solve_triangular", "CuPy", "cupyx.scipy.linalg.solve_triangular"),
        ("y += alpha * x", "CuPy", None),
    ],
)
def test_what_becomes_a_link(linked_names, text, heading, target):
    assert linked_names.target_of(text, heading) == target


def test_names_of_other_libraries_exist(linked_names):
    for library in ("numpy", "torch", "cupy", "cupyx", "dask"):
        if find_spec(library):
            for name in linked_names.documented(library):
                resolved(name)


def test_the_walk_of_a_call_names_what_exists():
    """Each step is a function, class or method of its module."""
    text = (DOCS / "design" / "a_call.md").read_text()
    steps = re.findall(r"^\| (\d+) \| .* \| `(\w+)` \| `([\w/]+)` \|$", text, re.MULTILINE)
    assert [int(number) for number, _, _ in steps] == list(range(1, len(steps) + 1)) and len(steps) > 10
    for _, name, module in steps:
        source = (ROOT / "pyblasgpu" / f"{module}.py").read_text()
        assert re.search(rf"^ *(?:def|class) {name}\b", source, re.MULTILINE), (module, name)


def test_the_places_of_a_routine_are_all_named():
    """LAUUM's in the package, but for POTRI's: at most five, and a number of the policy."""
    text = (DOCS / "design" / "adding_a_routine.md").read_text()
    package = ROOT / "pyblasgpu"
    places = {
        file.relative_to(package).with_suffix("").as_posix()
        for file in package.rglob("*.py")
        if re.search("lauum", file.read_text(), re.IGNORECASE)
    } - {"routines/lapack/potri", "api/lapack/cholesky"}
    assert not {place for place in places if f"`{place}`" not in text}
    kernel = {place for place in places if Path(place).parts[0] == "kernels"}
    assert len(places - kernel - {"database/policy"}) + 1 <= 5


#: Pages whose tables name the commits that they were measured at.
RECORDED = {DOCS / "benchmarks", DOCS / "papers"}


@pytest.mark.parametrize(
    "page",
    [*(page for page in PAGES if page.parent not in RECORDED), ROOT / "README.md", ROOT / "CHANGELOG.md"],
    ids=lambda page: page.relative_to(ROOT).as_posix(),
)
def test_commits_are_named_by_results_alone(page):
    """A page says what is; what was measured, and when, is in the tables that scripts make."""
    words = re.findall(r"\b[0-9a-f]{7,8}\b", page.read_text())
    assert not [word for word in words if re.search("[0-9]", word) and re.search("[a-f]", word)]


#: Words for which the field has its own: return, record, require, load, copy, is.
NOT_OF_THE_FIELD = re.compile(
    r"\b(tells?|told|telling|asks?|asked|asking|lies?|lying|comes?|came|coming|brings?|brought|bringing|"
    r"so many|beside|hunts?|twins?|stood|stands? (?:on|in|at|behind|between|beside))\b",
    re.IGNORECASE,
)


@pytest.mark.parametrize(
    "page",
    [page for page in documents.DOCUMENTS if page.parent not in RECORDED],
    ids=lambda page: page.relative_to(ROOT).as_posix(),
)
def test_words_are_the_field_s(page):
    lines = enumerate(page.read_text().splitlines(), 1)
    assert [(number, found[0]) for number, line in lines for found in NOT_OF_THE_FIELD.finditer(line)] == []


def test_every_page_is_in_a_table_of_contents():
    listed = set()
    for page in PAGES:
        for block in re.findall(r"```\{toctree\}\n(.*?)```", page.read_text(), re.DOTALL):
            entries = [line for line in block.splitlines() if line and not line.startswith(":")]
            names = [re.sub(r".*<(.*)>", r"\1", entry) for entry in entries]
            listed |= {(page.parent / f"{name}.md").resolve() for name in names}
    assert set(PAGES) - listed == {DOCS / "index.md"}


#: Pages whose calls run by tiles, on cards that are not there.
ON_FAKE_CARDS = {"docs/guide/large_matrices.md"}


@pytest.mark.parametrize("page", documents.with_code(), ids=lambda page: page.relative_to(ROOT).as_posix())
def test_code_runs_from_the_top_to_the_bottom(page, monkeypatch, request):
    """On the CPU backend or on fake cards. NumPy stands in for CuPy; `tests/gpu` runs all of it on CuPy."""
    if "import dask" in page.read_text():
        pytest.importorskip("dask", reason=NEEDS_DASK)
    for package in ("torch", "jax"):
        if f"import {package}\n" in page.read_text():
            pytest.importorskip(package)
    if page.relative_to(ROOT).as_posix() in ON_FAKE_CARDS:
        driver = request.getfixturevalue("fake_cards")()
    else:
        driver = None
        monkeypatch.setenv("PYBLASGPU_BACKEND", "cpu")
    monkeypatch.setitem(sys.modules, "cupy", np)
    skipped = documents.run(page, gpu=False)
    device.described_by_driver.cache_clear()  # `explain` has looked at a card that is not here
    assert driver is None or sum(driver.copied.values())
    if skipped and len(skipped) == len(list(documents.blocks(page))):
        pytest.skip(f"needs a GPU: {skipped[0]}")


NO_GPU = "<!-- needs a GPU: it says why -->\n```python\nx = 1\n```\n"


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("```python\nx = 1\n```\n\n```python\nassert x == 1\n```\n", None),
        ("```python\nassert x == 1\n```\n", NameError),
        ("<!-- needs a GPU: it says why -->\n```python\nassert x == 1\n```\n", None),
        (f"{2 * NO_GPU}```python\nassert x == 1\n```\n", NameError),
    ],
)
def test_a_name_that_no_block_makes_is_seen(tmp_path, text, error):
    page = tmp_path / "page.md"
    page.write_text(text)
    with pytest.raises(error) if error else nullcontext():
        documents.run(page, gpu=False)


# -------------------------------------------------------------------------------------------------- site


@pytest.mark.slow
@pytest.mark.skipif(
    not all(
        find_spec(name)
        for name in ("sphinx", "myst_parser", "numpydoc", "pydata_sphinx_theme", "sphinx_copybutton")
    ),
    reason="needs the extra docs, which `make docs` installs",
)
def test_the_site_builds_without_warnings(tmp_path):
    build = [sys.executable, "-m", "sphinx", "-W", "-q", "-b", "html", str(DOCS), str(tmp_path)]
    subprocess.run(build, check=True)
