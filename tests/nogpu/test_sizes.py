"""The size of the code: files and functions that are read without scrolling."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from import_graph import FILES, PACKAGE

TESTS = Path(__file__).parents[1]
MAX_FILE, MAX_FUNCTION = 500, 60
FUNCTION = (ast.FunctionDef, ast.AsyncFunctionDef)


def test_files_are_short():
    files = [*FILES, *TESTS.rglob("*.py")]
    assert not [str(file) for file in files if len(file.read_text().splitlines()) > MAX_FILE]


def functions(file: Path) -> Iterator[ast.AST]:
    return (node for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, FUNCTION))


def own_lines(function) -> int:
    """Its lines but those of the docstring and of the functions within it."""
    first = function.body[0]
    has_docstring = ast.get_docstring(function) is not None
    lines = function.end_lineno - function.lineno + 1
    lines -= first.end_lineno - first.lineno + 1 if has_docstring else 0
    return lines - sum(inner.end_lineno - begin(inner) + 1 for inner in nested(function))


def begin(function) -> int:
    return min([function.lineno, *(decorator.lineno for decorator in function.decorator_list)])


def nested(node: ast.AST) -> Iterator:
    """The functions within `node`, without those within them."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, FUNCTION):
            yield child
        else:
            yield from nested(child)


def test_functions_are_short():
    long = {
        f"{file.relative_to(PACKAGE)}: {node.name}": own_lines(node)
        for file in FILES
        for node in functions(file)
        if own_lines(node) > MAX_FUNCTION
    }
    assert not long
