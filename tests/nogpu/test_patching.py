"""Programs unchanged: `pyblasgpu run`, PYBLASGPU_PATCH, %load_ext, and the report of what ran where."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
import scipy.linalg

import pyblasgpu
from pyblasgpu import cli, patching
from pyblasgpu.after_import import after_import
from pyblasgpu.scipy_patch import switch

ROOT = Path(__file__).parents[2]
PROGRAM = """
import sys
import numpy as np
from scipy.linalg import cholesky, inv
print(__name__, sys.argv[1:], sys.path[0])
cholesky(np.eye(600)), cholesky(np.eye(6)), inv(np.eye(6))
exec(sys.argv[1] if len(sys.argv) > 1 else "")
"""


@pytest.fixture(autouse=True)
def nothing_is_left_behind():
    yield
    patching.unpatch_named()
    assert type(scipy.linalg.cholesky).__name__ == "function"


@pytest.fixture
def script(tmp_path):
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    return path


def python(*arguments, **environment):
    return subprocess.run(
        [sys.executable, *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
        capture_output=True,
        text=True,
    )


def ran(*arguments, **environment):
    return python("-m", "pyblasgpu", "run", *arguments, **environment)


def test_a_program_runs_as_by_python_and_is_reported(script):
    done = ran("--backend", "cpu", "--patch", "scipy", script, "print(6 * 7)", "--x")
    assert done.stdout == f"__main__ ['print(6 * 7)', '--x'] {script.parent}\n42\n"
    assert done.returncode == 0
    assert done.stderr.splitlines() == [
        "pyblasgpu: what ran where",
        "library  function  served  stayed  why",
        "SciPy    cholesky       1       1  1 small",
        "SciPy    inv            0       1  1 small",
        "sizes of SciPy: packaged for NVIDIA H200",
    ]


def test_a_module_runs(script):
    done = ran(
        "--backend",
        "cpu",
        "--json",
        "-m",
        "program",
        "print(__spec__.name)",
        PYTHONPATH=f"{ROOT}:{script.parent}",
    )
    assert done.stdout.splitlines()[-1] == "program"
    assert json.loads(done.stderr)[0] == {
        "library": "SciPy", "function": "cholesky", "served": 1, "kept": {"small": 1}
    }  # fmt: skip


@pytest.mark.parametrize(
    ("code", "status", "said"),
    [
        ("sys.exit(3)", 3, "pyblasgpu: what ran where"),
        ("raise ValueError('of the program')", 1, "ValueError: of the program"),
        ("import nothing_of_this_name", 1, "ModuleNotFoundError"),
    ],
)
def test_how_a_program_ends_is_its_own(script, code, status, said):
    done = ran("--backend", "cpu", script, code)
    assert done.returncode == status and said in done.stderr
    assert "SciPy    cholesky       1" in done.stderr
    assert ("Traceback" in done.stderr) == (status == 1)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "pyblasgpu run: name a script, or a module by -m"),
        (["no_such_file.py"], "pyblasgpu run: there is no no_such_file.py"),
        (["--patch", "scipy,jax", "x.py"], "patches 'jax' are none of scipy, numpy, torch, cupy"),
        (["--patch", "", "x.py"], "patches '' are none of scipy, numpy, torch, cupy"),
    ],
)
def test_what_is_no_program(words, said, capsys):
    try:
        code = cli.main(["run", *words])
    except SystemExit as exit:
        code = exit.code
    assert code == 2 and said in capsys.readouterr().err


def test_where_nothing_is_patched_the_report_says_why(script, monkeypatch):
    done = ran(script, PYBLASGPU_BACKEND="cpu")
    assert done.stderr.splitlines()[1:] == ["nothing is patched (set by PYBLASGPU_BACKEND)"]


def test_the_environment_names_patches():
    """Nothing is imported for them: a library is patched when the program imports it."""
    names = "scipy.linalg", "pyblasgpu.scipy_patch.switch"
    look = f"print(*[name in sys.modules for name in {names}])"
    code = f"import sys; {look}; import scipy.linalg; {look}"
    line = (ROOT / "pyblasgpu.pth").read_text()
    assert (
        python("-c", f"{line}\n{code}", PYBLASGPU_PATCH="scipy").stdout.split()
        == ["False"] * 2 + ["True"] * 2
    )
    plain = python("-c", f"{line}\nimport sys; print('pyblasgpu' in sys.modules)")
    assert plain.stdout.split() == ["False"]
    wrong = python("-c", "import pyblasgpu", PYBLASGPU_PATCH="scipy,jax")
    assert wrong.returncode == 0
    assert "PYBLASGPU_PATCH: patches 'jax' are none of" in wrong.stderr


@pytest.mark.skipif(not find_spec("setuptools"), reason="needs setuptools")
def test_an_installed_package_has_the_line_of_the_start(tmp_path):
    command = [
        sys.executable,
        "setup.py",
        "--quiet",
        "egg_info",
        "--egg-base",
        tmp_path,
        "build_py",
        "--build-lib",
        tmp_path,
    ]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    assert (tmp_path / "pyblasgpu.pth").read_text() == (ROOT / "pyblasgpu.pth").read_text()


def test_an_extension_of_ipython(monkeypatch):
    monkeypatch.setenv("PYBLASGPU_PATCH", "numpy")
    patch = switch.patch_scipy
    on_cpu = lambda backend, **options: patch(backend="cpu", **options)  # noqa: E731
    monkeypatch.setattr(switch, "patch_scipy", on_cpu)
    pyblasgpu.load_ipython_extension(None)
    pyblasgpu.load_ipython_extension(None)
    np.linalg.inv(np.eye(600))
    assert pyblasgpu.patch_report().splitlines()[1:-1] == ["SciPy    inv            1       0"]
    pyblasgpu.unload_ipython_extension(None)
    assert type(np.linalg.inv).__name__ != "Routed"
    assert pyblasgpu.patch_report().startswith("nothing is patched (")


def test_what_cannot_be_patched_stays_as_it_is(monkeypatch, caplog):
    def refuses(**_):
        raise ImportError("of this version")

    monkeypatch.setattr(switch, "patch_scipy", refuses)
    patching.patch_named("scipy")
    assert "scipy is not patched: of this version" in caplog.text


def test_functions_wait_for_an_import(tmp_path, monkeypatch):
    """Another look for the module is no import of it, and a failed one neither."""
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "awaited_module.py").write_text("import awaited_elsewhere\n")
    called = []
    after_import("awaited_module", lambda: called.append(sys.modules["awaited_module"].__name__))
    assert find_spec("awaited_module") and not called
    with pytest.raises(ModuleNotFoundError):
        __import__("awaited_module")
    assert not called
    (tmp_path / "awaited_elsewhere.py").write_text("")
    sys.path_importer_cache.clear()
    __import__("awaited_module")
    assert called == ["awaited_module"]
    after_import("awaited_module", lambda: called.append("at once"))
    assert called == ["awaited_module", "at once"]
    assert not [each for each in sys.meta_path if getattr(each, "_name", "") == "awaited_module"]
