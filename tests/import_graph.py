"""Which modules of the package import which, by their text: lazy imports and those of types are included."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from pathlib import Path

import pyblasgpu

PACKAGE = Path(pyblasgpu.__file__).parent
FILES = sorted(PACKAGE.rglob("*.py"))


@cache
def imports(file: Path, package: Path = PACKAGE) -> tuple[tuple[int, str], ...]:
    """Line and full name of all that `file`, within `package`, imports at its top or within a function."""
    parents = ["pyblasgpu", *file.relative_to(package).parent.parts]
    names = []
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            names += [(node.lineno, alias.name) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = parents[: len(parents) - node.level + 1] if node.level else []
            module = ".".join([*base, *([node.module] if node.module else [])])
            # `from . import gpu` names modules, `from .types import Side` does not: both resolve to the layer
            names += [(node.lineno, f"{module}.{alias.name}") for alias in node.names]
        elif isinstance(node, ast.Call) and getattr(node.func, "id", "") == "import_module":
            name = node.args[0]
            if isinstance(name, ast.Constant) and name.value.startswith("."):
                dots = len(name.value) - len(name.value.lstrip("."))
                base = parents[: len(parents) - dots + 1]
                names.append((node.lineno, ".".join([*base, name.value.lstrip(".")])))
    return tuple(names)


@cache
def modules() -> dict[str, Path]:
    """The package's modules: full name and file."""
    return {_name(file): file for file in FILES}


def _name(file: Path) -> str:
    parts = file.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@cache
def imported_modules(module: str) -> frozenset[str]:
    """The package's modules that `module` imports itself, its parents among them."""
    names = {name for _, name in imports(modules()[module])}
    parent = module.rpartition(".")[0]
    return frozenset(filter(None, map(_module_of, {*names, *([parent] if parent else [])})))


def entries(importer: str, imported: str) -> tuple[str, str, str]:
    """The folder that two modules are in, and its files or folders that they are, or are in."""
    ours, theirs = (
        modules()[name].relative_to(PACKAGE).with_suffix("").parts for name in (importer, imported)
    )
    depth = next(i for i, (one, other) in enumerate(zip(ours, theirs, strict=False)) if one != other)
    return "/".join(ours[:depth]), ours[depth], theirs[depth]


def circles(graph: Mapping[str, Iterable[str]]) -> list[set[str]]:
    """The largest sets of names each of which leads to all others of its set."""
    reached = {name: reachable(graph[name], graph.__getitem__) for name in graph}
    found = ({other for other in reached[name] if name in reached[other]} for name in graph)
    return list({min(names): names for names in found if names}.values())


def every_import() -> dict[str, set[str]]:
    """The package's modules that each imports, its parents only where it names them."""
    found = {name: {_module_of(each) for _, each in imports(file)} for name, file in modules().items()}
    return {name: others - {"", name} for name, others in found.items()}


def _module_of(name: str) -> str:
    """The module of the package that `name` is, or is in; empty if it is none's."""
    while name and name not in modules():
        name = name.rpartition(".")[0]
    return name


def reachable(roots: Iterable[str], following: Callable[[str], Iterable[str]] = imported_modules) -> set[str]:
    """The modules that `roots` import, themselves or through others; any names, by those `following` each."""
    reached: set[str] = set()
    left = set(roots)
    while left:
        module = left.pop()
        if module not in reached:
            reached.add(module)
            left.update(following(module))
    return reached
