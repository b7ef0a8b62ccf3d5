"""The tests that need a device, read where there is none: all names of the package that they use exist."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

import pyblasgpu
from pyblasgpu import override

NEEDS = {"pyblasgpu.jax": "jax", "pyblasgpu.torch": "torch"}
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


def attribute(module: str, name: str) -> object:
    """What ``from module import name`` gives; what needs a library that is not here is skipped."""
    if module in NEEDS:
        pytest.importorskip(NEEDS[module])
    held = import_module(module)
    return getattr(held, name) if hasattr(held, name) else import_module(f"{module}.{name}")


def modules(path: Path) -> dict[str, ModuleType]:
    """The modules of the package that a file imports from others, by name."""
    held = {"pyblasgpu": pyblasgpu} | {name: attribute(module, name) for module, name in imported(path)}
    return {name: each for name, each in held.items() if isinstance(each, ModuleType)}


def used(path: Path, here: dict[str, ModuleType]) -> Iterator[tuple[ModuleType, str]]:
    """Module and name of each ``module.name``, and of each ``monkeypatch.setattr(module, "name", ...)``."""
    for node in ast.walk(ast.parse(path.read_text())):
        match node:
            case ast.Attribute(value=ast.Name(id=module), attr=name) if module in here:
                yield here[module], name
            case ast.Call(
                func=ast.Attribute(attr="setattr"), args=[ast.Name(id=module), ast.Constant(value=name), _]
            ) if module in here:
                yield here[module], name


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_what_is_imported_is_there(path):
    for module, name in imported(path):
        assert attribute(module, name) is not None, f"{module} has no {name}"


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_what_is_used_is_there(path):
    for module, name in used(path, modules(path)):
        assert hasattr(module, name), f"{module.__name__} has no {name}"


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_overrides_are_known(path):
    for node in ast.walk(ast.parse(path.read_text())):
        match node:
            case ast.Call(func=ast.Name(id="override"), args=[ast.Constant(value=name), _]):
                with override(name, None):
                    pass


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
