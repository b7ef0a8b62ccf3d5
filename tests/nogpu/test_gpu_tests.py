"""The tests that need a device, read where there is none: all names of the package that they use exist."""

from __future__ import annotations

import ast
from importlib import import_module, util
from pathlib import Path

import pytest

FILES = sorted(Path(__file__).parents[1].joinpath("gpu").glob("*.py"))


def imported(path: Path) -> list[tuple[str, str]]:
    """Module and name of each ``from pyblasgpu... import name``, in programs in strings too."""
    tree = ast.parse(path.read_text())
    programs = [
        ast.parse(node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and "\nfrom pyblasgpu" in node.value
        and "{" not in node.value
    ]
    return [
        (node.module, alias.name)
        for each in (tree, *programs)
        for node in ast.walk(each)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("pyblasgpu")
        for alias in node.names
    ]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_what_is_imported_is_there(path):
    for module, name in imported(path):
        held = import_module(module)
        assert hasattr(held, name) or util.find_spec(f"{module}.{name}"), f"{module} has no {name}"


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_no_test_module_imports_another(path):
    """One that skips while it is imported leaves half a module to whoever imports it next."""
    modules = [
        name
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ImportFrom)
        for name in ((node.module or "").split(".")[-1], *(alias.name for alias in node.names))
    ]
    assert not [name for name in modules if name.startswith("test_")]
