"""The examples run on what is there: host arrays and the simulator, and a GPU where there is one."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

from pyblasgpu import backend_status
from pyblasgpu.errors import BackendUnavailable

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
#: What each prints at its end where there is a GPU, and where there is none.
LAST_LINE = {
    "scipy_program": ("a Gaussian process of 4000 points", "a Gaussian process of 500 points"),
    "gaussian_process": ("a Gaussian process of 400 points", "a Gaussian process of 400 points"),
    "whitening": ("whitened 20000 samples", "whitened 20000 samples"),
    "kalman_update": ("updated 200 filters", "updated 200 filters"),
    "batched_solves": ("solved 1000 systems", "solved 1000 systems"),
    "dask_cluster": ("a covariance of 900 points on a cluster",) * 2,
    "cupy_views": ("products of views", "products of views"),
    "jax_gaussian_process": ("a Gaussian process of 300 points",) * 2,
    "torch_gaussian_process": ("a Gaussian process of 300 points",) * 2,
    "torch_stream": ("solved 500 x 500 in place", "solved 500 x 500 in place"),
    "plan_in_graph": ("a graph of two plans was replayed", "skipped: a plan needs a GPU"),
    "reconstructor": ("a reconstructor of 4000", "a reconstructor of 400"),
    "scipy_dropin": ("a Cholesky factorization of order 300", "a Cholesky factorization of order 300"),
    "tune_and_explain": ("", "skipped the rest: tuning needs a GPU"),
    "write_a_kernel": ("dgmm of 45 x 13 in the simulator", "dgmm of 45 x 13 in the simulator"),
}
#: The library without which an example has one line to say.
LIBRARY = {
    "dask_cluster": "Dask",
    "jax_gaussian_process": "JAX",
    "plan_in_graph": "CuPy",
    "torch_gaussian_process": "PyTorch",
    "torch_stream": "PyTorch",
    "whitening": "PyTorch",
}


def has_gpu() -> bool:
    try:
        return backend_status("cuda").backend == "cuda"
    except BackendUnavailable:
        return False


@pytest.fixture(scope="module")
def gallery():
    """The extension of the site that shows them."""
    spec = spec_from_file_location("gallery", EXAMPLES.parent / "docs" / "extensions" / "gallery.py")
    module = module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def test_each_is_run_here():
    assert {path.stem for path in EXAMPLES.glob("*.py")} == set(LAST_LINE)


@pytest.mark.parametrize("name", LAST_LINE)
def test_it_runs(name, tmp_path):
    environment = {
        **os.environ,
        "PYTHONPATH": str(EXAMPLES.parent),
        "PYTHONWARNINGS": "error::DeprecationWarning",
    }
    run = subprocess.run(
        [sys.executable, EXAMPLES / f"{name}.py"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert run.returncode == 0, run.stderr
    last = run.stdout.strip().splitlines()[-1]
    if name in LIBRARY and f"needs {LIBRARY[name]}" in last:
        pytest.skip(last)
    assert last.startswith(LAST_LINE[name][not has_gpu()])
    assert not list(tmp_path.iterdir()), "an example leaves nothing behind"


@pytest.mark.parametrize("name", LAST_LINE)
def test_its_header_is_what_the_gallery_needs(name):
    """A title, underlined, then a summary."""
    doc = ast.get_docstring(ast.parse((EXAMPLES / f"{name}.py").read_text()))
    title, line, blank, summary, *_ = doc.splitlines()
    assert (line == "=" * len(title) and not blank and summary.endswith((".", ","))) or len(summary) > 60


def test_each_is_in_the_gallery(gallery):
    assert sorted(name for names in gallery.GROUPS.values() for name in names) == sorted(LAST_LINE)
    assert {path.stem for path in gallery.OUTPUTS.iterdir()} == set(LAST_LINE)


@pytest.mark.parametrize("name", LAST_LINE)
def test_the_gallery_shows_a_sentence_and_an_output(gallery, name):
    """The recorded output ends as a run does; ``python docs/extensions/gallery.py`` after a change."""
    shown = gallery.example(name)
    assert shown.sentence.endswith(".") and len(shown.sentence.split()) <= 25
    assert shown.output.splitlines()[-1].startswith(LAST_LINE[name][shown.where == gallery.NO_GPU])
    assert shown.sentence in gallery.index() and shown.output.splitlines()[-1] in gallery.index()


@pytest.mark.parametrize("name", LAST_LINE)
def test_a_page_of_the_gallery_has_all_of_the_code(gallery, name):
    code = [cell for _, cell in gallery.example(name).cells]
    tree = ast.parse((EXAMPLES / f"{name}.py").read_text())
    assert ast.dump(ast.parse("\n".join(code))) == ast.dump(ast.Module(tree.body[1:], []))
    page = gallery.page(gallery.example(name))
    assert all(cell in page for cell in code)


def test_an_output_of_a_gpu_is_kept(gallery, tmp_path, monkeypatch):
    monkeypatch.setattr(gallery, "OUTPUTS", tmp_path)
    assert gallery.record("batched_solves", gallery.NO_GPU)
    (tmp_path / "batched_solves.txt").write_text("on an NVIDIA H200\n\nsolved\n")
    assert not gallery.record("batched_solves", gallery.NO_GPU)
    assert gallery.record("batched_solves", "on an NVIDIA H100")
