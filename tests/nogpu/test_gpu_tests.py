"""The tests that need a device, read where there is none: all names of the package that they use exist.

How they are run: workers on several cards, and failures as they happen.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest
from device_runs import VISIBLE, WORKER, PrintedFailures, spread_workers

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


@pytest.mark.parametrize(
    "given, count, expected",
    [
        ({}, 4, None),
        ({WORKER: "gw0"}, 4, None),
        ({WORKER: "gw1"}, 4, "1,2,3,0"),
        ({WORKER: "gw7"}, 4, "3,0,1,2"),
        ({WORKER: "gw3", VISIBLE: "5,2"}, 4, "2,5"),
        ({WORKER: "gw1", VISIBLE: "GPU-abc"}, 4, "GPU-abc"),
        ({WORKER: "gw1", VISIBLE: ""}, 4, ""),
        ({WORKER: "gw1"}, 1, None),
        ({WORKER: "gw1"}, 0, None),
    ],
)
def test_each_worker_begins_with_a_card_of_its_own(given, count, expected):
    environ = dict(given)
    spread_workers(environ, count)
    assert environ.get(VISIBLE) == expected


def test_failures_are_printed_when_they_happen():
    lines = []
    terminal = SimpleNamespace(write_line=lambda text, **_: lines.append(text))
    for failed in (False, True):
        report = SimpleNamespace(failed=failed, nodeid="tests/gpu/a.py::b", longreprtext="assert 1 == 2")
        PrintedFailures(terminal).pytest_runtest_logreport(report)
    assert lines == ["\nFAILED tests/gpu/a.py::b\nassert 1 == 2"]
