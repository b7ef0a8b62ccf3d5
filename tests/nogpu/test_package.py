"""What is published: version, description, links, and the files of the archive of sources."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tarfile
from configparser import ConfigParser
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

import pyblasgpu

ROOT = Path(__file__).resolve().parents[2]
SETUP = ConfigParser()
SETUP.read(ROOT / "setup.cfg")
CHANGELOG = (ROOT / "CHANGELOG.md").read_text()


def tracked() -> list[str]:
    """The files of the checkout."""
    if not (ROOT / ".git").exists():
        pytest.skip("needs a checkout of git")
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True)
    return [name for name in listed.stdout.split("\0") if name and (ROOT / name).exists()]


# ----------------------------------------------------------------------------------------------- version


def test_the_changelog_names_the_version():
    """A development version is that of Unreleased; a released one has a section of its own, the newest."""
    newest, *_ = re.findall(r"^## \[(.*?)\]", CHANGELOG, re.MULTILINE)
    base, _, development = pyblasgpu.__version__.partition(".dev")
    if development:
        unreleased = CHANGELOG.split("## [Unreleased]", 1)[1].split("\n### ", 1)[0]
        assert newest == "Unreleased" and base in re.findall(r"\d+\.\d+\.\d+", unreleased)
    else:
        released = [
            name for name in re.findall(r"^## \[(.*?)\]", CHANGELOG, re.MULTILINE) if name[0].isdigit()
        ]
        assert released[0] == base
    assert re.search(rf"^version: {re.escape(base)}$", (ROOT / "CITATION.cff").read_text(), re.MULTILINE)


def test_the_changelog_has_four_groups():
    for section in CHANGELOG.split("\n## ")[1:]:
        assert re.findall(r"^### (.*)", section, re.MULTILINE) == ["Added", "Changed", "Fixed", "Removed"]
        entries = [line for line in section.splitlines() if line.startswith("- ")]
        assert entries and "\n  " not in section  # an entry is a line


def test_the_description_names_what_is_there():
    description = SETUP["metadata"]["description"]
    assert len(description) < 150
    for name in ("Levels 1 to 3", "Cholesky", "LU", "NumPy", "CuPy", "PyTorch", "JAX", "Numba", "Dask"):
        assert name in description


# ---------------------------------------------------------------------------------------------- archive


@pytest.fixture(scope="module")
def sdist(tmp_path_factory):
    """The names in the archive of sources of a copy of the checkout, where a site was built and tests ran."""
    copy, out = tmp_path_factory.mktemp("checkout"), tmp_path_factory.mktemp("dist")
    for name in tracked():
        (copy / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, copy / name)
    for made in (
        "docs/_build/html/index.html",
        "docs/gallery/index.rst",
        "docs/api/generated/pyblasgpu.gemm.rst",
    ):
        (copy / made).parent.mkdir(parents=True)
        (copy / made).touch()
    (copy / "tests" / "__pycache__").mkdir()
    (copy / "tests" / "__pycache__" / "recorded.cpython-313.pyc").touch()
    program = "import sys, setuptools.build_meta as backend; backend.build_sdist(sys.argv[1])"
    subprocess.run([sys.executable, "-c", program, str(out)], cwd=copy, check=True, capture_output=True)
    (path,) = out.glob("*.tar.gz")
    with tarfile.open(path) as archive:
        return {member.name.split("/", 1)[1] for member in archive if member.isfile()}


def test_the_archive_of_sources_is_the_checkout(sdist):
    made = {name for name in sdist if name.startswith("pyblasgpu.egg-info/")} | {"PKG-INFO"}
    assert sdist - made == set(tracked())


@pytest.mark.parametrize(
    "name",
    [
        "CHANGELOG.md",
        "docs/index.md",
        "examples/whitening.py",
        "tests/nogpu/test_package.py",
        "tuning/tune.py",
    ],
)
def test_the_archive_of_sources_holds(sdist, name):
    assert name in sdist


# ----------------------------------------------------------------------------------------------- README


README = (ROOT / "README.md").read_text()
SOURCE = SETUP["metadata"]["project_urls"].split("Source = ")[1].splitlines()[0]
RAW = SOURCE.replace("github.com", "raw.githubusercontent.com")


def targets(text: str) -> list[str]:
    """What links and pictures of a text lead to, inline or by a reference."""
    return re.findall(r"\]\(([^)]+)\)", text) + re.findall(r"^\[[^\]]+\]: (\S+)", text, re.MULTILINE)


def test_links_of_the_readme_hold_on_a_package_index():
    """It shows README alone: each link is a full URL, and into this repository by setup.cfg's Source."""
    links = targets(README)
    assert len(links) > 10
    inside = re.compile(rf"(?:{re.escape(SOURCE)}/(?:blob|tree)|{re.escape(RAW)})/(?:main/)?([^#]*)")
    for link in links:
        assert "://" in link, link
        match = inside.match(link)
        if match:
            assert (ROOT / match[1]).exists(), link
        else:
            assert not link.startswith((SOURCE + "/", RAW)), link


def test_each_public_name_has_a_module():
    """Type checkers read the stub; `test_typing` compares it with the functions."""
    assert all(getattr(pyblasgpu, name) is not None for name in pyblasgpu.__all__)
    with pytest.raises(AttributeError, match="'pyblasgpu' has no attribute 'gemmm'"):
        _ = pyblasgpu.gemmm


def test_what_type_checkers_read_is_in_a_wheel():
    parser = ConfigParser()
    parser.read(ROOT / "setup.cfg")
    patterns = parser["options.package_data"]["pyblasgpu"].split(", ")
    read = [path.name for path in (ROOT / "pyblasgpu").iterdir() if path.suffix in (".pyi", ".typed")]
    assert len(read) == 5 and all(any(map(Path(name).match, patterns)) for name in read)


# --------------------------------------------------------------------------------------------- frameworks


@pytest.mark.parametrize(
    ("required", "versions", "requirement"),
    [
        (["filelock"], ["2.9.0"], "torch"),
        (
            ['nvidia-cudnn-cu13==9; platform_system == "Linux"'],
            ["2.9.0", "2.8.1+cpu", "2.8.0"],
            "torch==2.8.1+cpu",
        ),
        (["cuda-toolkit==13"], ["2.9.0", "2.8.0"], None),
    ],
)
@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere no build of PyTorch has CUDA")
def test_pytorch_is_installed_for_the_processor_or_not_at_all(required, versions, requirement):
    assert _frameworks().processor_build(required, versions) == requirement


def _frameworks():
    spec = spec_from_file_location("frameworks", ROOT / "tools" / "frameworks.py")
    frameworks = module_from_spec(spec)
    spec.loader.exec_module(frameworks)
    return frameworks


def test_programs_that_tests_run_are_installed_beside_pytorch():
    """Where they cannot be had, `make test-frameworks` says so and why, each by itself."""
    named = {re.split(r"[<>=]", each)[0] for each in _frameworks().programs()}
    tested = (ROOT / "tests" / "nogpu" / "test_programs.py").read_text()
    modules = set(re.findall(r'importorskip\("(\w+)', tested))
    assert {{"scikit-learn": "sklearn"}.get(name, name) for name in named} == modules


def test_what_is_skipped_for_want_of_a_framework_runs_beside_them():
    """A library that a test names in a variable is one that `make test-frameworks` installs."""
    skips = re.compile(r"importorskip\((?:\w+[\[)]|\"(?:torch|jax|array_api_strict|sklearn))")
    makefile = (ROOT / "Makefile").read_text()
    listed = set(re.findall(r"\w+\.py", " ".join(re.findall(r"FRAMEWORKS(?:.*\\\n)*.*", makefile))))
    tests = (path for path in (ROOT / "tests" / "nogpu").glob("test_*.py") if skips.search(path.read_text()))
    assert {path.name.removeprefix("test_") for path in tests} <= listed
