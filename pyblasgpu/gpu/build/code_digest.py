"""Digest of a Python text's syntax tree, and the modules that it imports."""

from __future__ import annotations

import ast
import hashlib
import json
from typing import Any

__all__ = ["code_of", "facts_of"]


def facts_of(name: str, text: bytes, known: set[str]) -> tuple[str, list[str]]:
    """Return the digest of a module's code, and those of the known modules that it imports."""
    return hashlib.sha256(code_of(text).encode()).hexdigest(), sorted(_imports(ast.parse(text), name, known))


def code_of(text: bytes) -> str:
    """Return a text as its syntax tree, without comments, layout and strings that are statements."""
    return json.dumps(_tree(ast.parse(text)))


def _tree(node: Any) -> Any:
    """Return a syntax tree as lists without empty fields, so that all versions of Python agree."""
    if isinstance(node, ast.AST):
        found = [(name, value) for name, value in ast.iter_fields(node) if value is not None and value != []]
        return [type(node).__name__, *([name, _tree(value)] for name, value in found if name != "kind")]
    if isinstance(node, list):
        return [_tree(each) for each in node if not _is_lone_string(each)]
    return repr(node)


def _is_lone_string(node: Any) -> bool:
    if not isinstance(node, ast.Expr) or not isinstance(node.value, ast.Constant):
        return False
    return isinstance(node.value.value, str)


def _imports(tree: ast.AST, module: str, known: set[str]) -> set[str]:
    """Return those of the known modules that `module` imports, wherever in its text."""
    is_package = any(name.startswith(f"{module}.") for name in known)
    package = module.split(".") if is_package else module.split(".")[:-1]
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.level:
            above = package[: len(package) - node.level + 1]
            base = ".".join([*above, *(node.module.split(".") if node.module else [])])
            found |= {base, *(f"{base}.{alias.name}" for alias in node.names)}
    return found & known - {module}
