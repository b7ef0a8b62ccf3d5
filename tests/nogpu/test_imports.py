"""The house: imports run downwards only, one folder knows Numba, and importing the package is cheap."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import pyblasgpu

PACKAGE = Path(pyblasgpu.__file__).parent

#: From the roof down. A module imports from its own line and from the lines below it.
LAYERS = [
    {"__main__"},
    {"cli"},
    {"demo"},
    {"bench"},
    {"options"},
    {"tuning"},
    {"build"},
    {"testing"},
    {"__init__", "blas", "info", "linalg"},
    {"api"},
    {"frontend"},
    {"routines"},
    {"dispatch"},
    {"model"},
    {"database"},
    {"kernels"},
    {"gpu"},
    {"operands"},
    {"terminal", "processes"},
    {"types", "errors", "arguments"},
]
DEPTH = {name: depth for depth, names in enumerate(LAYERS) for name in names}
FILES = sorted(PACKAGE.rglob("*.py"))


def imports(file: Path) -> list[tuple[int, str]]:
    """Line and full name of every module that `file` imports, at its top or within a function."""
    package = ["pyblasgpu", *file.relative_to(PACKAGE).parent.parts]
    found = []
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            found += [(node.lineno, alias.name) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join([*base, *([node.module] if node.module else [])])
            # `from . import gpu` names modules, `from .types import Side` does not: both resolve to the layer
            found += [(node.lineno, f"{module}.{alias.name}") for alias in node.names]
    return found


def layer(name: str) -> str:
    """The layer that a full name within the package belongs to."""
    part = (name.split(".") + ["__init__"])[1]
    return part if part in DEPTH else "__init__"


def test_every_module_has_a_layer():
    modules = {path.stem for path in PACKAGE.glob("*.py")} | {
        path.name for path in PACKAGE.iterdir() if path.is_dir() and any(path.glob("*.py"))
    }
    assert modules <= set(DEPTH)


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(PACKAGE)))
def test_imports_run_downwards(file):
    here = DEPTH[file.relative_to(PACKAGE).with_suffix("").parts[0]]
    upward = [
        f"line {line}: {name}"
        for line, name in imports(file)
        if name.split(".")[0] == "pyblasgpu" and DEPTH[layer(name)] < here
    ]
    assert not upward


def importers(*roots: str) -> set[str]:
    """The layers that import one of the outside packages `roots`."""
    return {
        file.relative_to(PACKAGE).with_suffix("").parts[0]
        for file in FILES
        for _, name in imports(file)
        if name.split(".")[0] in roots
    }


def test_only_gpu_knows_numba():
    assert importers("numba", "numba_cuda", "llvmlite") == {"gpu"}


def test_kernels_and_routines_do_without_numpy():
    assert not importers("numpy", "scipy") & {"kernels", "routines", "operands", "types", "errors"}


def test_an_upward_import_is_seen(tmp_path, monkeypatch):
    file = tmp_path / "kernels" / "planted.py"
    file.parent.mkdir()
    file.write_text(
        "def late():\n    from ..api import level3\n    from .. import cli\n    import pyblasgpu\n"
    )
    monkeypatch.setattr(sys.modules[__name__], "PACKAGE", tmp_path)
    assert [layer(name) for _, name in imports(file)] == ["api", "cli", "__init__"]
    with pytest.raises(AssertionError):
        test_imports_run_downwards(file)


def test_import_touches_no_device_library_and_is_quick():
    program = """
import sys, time
start = time.process_time()
import pyblasgpu
seconds = time.process_time() - start
heavy = {"numba", "numba_cuda", "llvmlite", "cuda", "cupy", "torch", "matplotlib", "rich"}
print(seconds, *sorted(heavy & {name.split(".")[0] for name in sys.modules}))
"""
    runs = [subprocess.check_output([sys.executable, "-c", program], text=True).split() for _ in range(3)]
    assert runs[0][1:] == []
    assert min(float(run[0]) for run in runs) < 0.7


def test_routines_import_the_kernels_that_they_run_when_they_run_them():
    """And the registry imports no kernel at all."""
    kernels = "{name for name in sys.modules if name.startswith('pyblasgpu.kernels.')}"
    told = f"import sys, pyblasgpu.kernels.registry; print(*{kernels})"
    found = subprocess.run([sys.executable, "-c", told], capture_output=True, text=True, check=True).stdout
    assert all(name.rpartition(".")[2] == "family" or name.count(".") == 2 for name in found.split())
    told = f"import sys, pyblasgpu.routines.trsm; print(*{kernels})"
    found = subprocess.run([sys.executable, "-c", told], capture_output=True, text=True, check=True).stdout
    heavy = {
        f"pyblasgpu.kernels.{name}"
        for name in ("gemm.simt", "gemm.mma", "trsm.fma", "trsm.mma", "trsm.space")
    }
    assert not heavy & set(found.split())
