"""Make links of names in pages and docstrings: of this library, NumPy, SciPy, CuPy, PyTorch and Dask.

A name in code style that is written in full, as `scipy.linalg.solve`, leads to its page. In a table the
heading of a column may say whose names are below it: under *SciPy*, `blas.?gemm` is
`scipy.linalg.blas.dgemm`. No inventory is fetched: the pages of the other libraries have regular addresses.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator
from functools import cache
from typing import Any

__all__ = ["candidates", "setup", "target_of", "url_of"]

#: The page of a name, by the first part of the name.
ADDRESSES = {
    "numpy": "https://numpy.org/doc/stable/reference/generated/{0}.html#{0}",
    "scipy": "https://docs.scipy.org/doc/scipy/reference/generated/{0}.html#{0}",
    "cupy": "https://docs.cupy.dev/en/stable/reference/generated/{0}.html#{0}",
    "cupyx": "https://docs.cupy.dev/en/stable/reference/generated/{0}.html#{0}",
    "torch": "https://docs.pytorch.org/docs/stable/generated/{0}.html",
    "dask": "https://docs.dask.org/en/stable/generated/{0}.html#{0}",
}
#: Names that have a page of their own there. SciPy's are read from its own lists.
DOCUMENTED = {
    "numpy": """ndarray result_type finfo matmul matvec vecmat vecdot dot vdot inner outer tensordot einsum
        linalg.multi_dot linalg.matrix_power linalg.slogdet linalg.LinAlgError linalg.cholesky linalg.solve
        linalg.inv linalg.det linalg.norm linalg.qr linalg.lstsq linalg.pinv linalg.eigh linalg.eigvalsh
        linalg.svd linalg.matrix_rank linalg.matrix_norm linalg.vector_norm linalg.cond linalg.cross
        linalg.diagonal linalg.trace linalg.matrix_transpose allclose""",
    "cupy": """matmul dot vdot copyto argmax linalg.norm linalg.cholesky linalg.solve linalg.inv linalg.det
        linalg.slogdet linalg.qr linalg.lstsq linalg.pinv linalg.eigh linalg.eigvalsh linalg.svd
        linalg.matrix_rank linalg.cond cuda.Stream""",
    "cupyx": "scipy.linalg.solve_triangular scipy.linalg.lu_factor scipy.linalg.lu_solve scipy.linalg.lu"
    " scipy.linalg.expm",
    "torch": """mm matmul cholesky_solve compile linalg.cholesky linalg.solve linalg.inv linalg.det
        linalg.slogdet linalg.lu_factor linalg.lu_solve linalg.lu linalg.solve_triangular
        linalg.qr linalg.lstsq linalg.pinv linalg.eigh linalg.eigvalsh linalg.svd linalg.svdvals linalg.norm
        linalg.matrix_rank linalg.matrix_norm linalg.vector_norm linalg.cond linalg.matrix_exp""",
    "dask": """array.dot array.matmul array.linalg.cholesky array.linalg.solve_triangular array.linalg.solve
        array.linalg.lu array.linalg.qr array.linalg.tsqr array.linalg.lstsq array.linalg.svd
        array.linalg.svd_compressed""",
}
#: What a name in a column begins with, by the column's heading.
COLUMNS = {
    "SciPy": ("scipy.linalg.",),
    "SciPy’s BLAS": ("scipy.linalg.blas.",),
    "SciPy, NumPy": ("scipy.linalg.", "numpy."),
    "NumPy": ("numpy.",),
    "CuPy": ("cupyx.scipy.linalg.",),
    "PyTorch": ("torch.",),
    "pyblasgpu": ("pyblasgpu.",),
    "dask.array": ("dask.array.",),
    "pyblasgpu.dask": ("pyblasgpu.dask.",),
}
SHORT = {"pb": "pyblasgpu", "np": "numpy", "cp": "cupy", "da": "dask.array"}
NAME = re.compile(r"[A-Za-z_?][\w.?]*")


@cache
def documented(library: str) -> frozenset[str]:
    """The full names of `library` that have pages."""
    names = {f"{library}.{name}" for name in DOCUMENTED.get(library, "").split()}
    if library == "scipy":
        for path in ("scipy.linalg", "scipy.linalg.blas", "scipy.linalg.lapack"):
            module = importlib.import_module(path)
            listed = re.findall(r"^ {2,}([a-z]\w*)\b", module.__doc__ or "", re.MULTILINE)
            names |= {f"{path}.{name}" for name in listed if callable(getattr(module, name, None))}
    return frozenset(names)


def url_of(name: str) -> str | None:
    """The address of another library's name, or None."""
    library = name.partition(".")[0]
    return ADDRESSES[library].format(name) if name in documented(library) else None


@cache
def is_ours(name: str) -> bool:
    """Whether `name` is public in pyblasgpu, and not a module."""
    parts = name.split(".")
    if parts[0] != "pyblasgpu" or any(part.startswith("_") for part in parts):
        return False
    named: Any = importlib.import_module("pyblasgpu")
    for part in parts[1:]:
        if part not in getattr(named, "__all__", [part]) or not hasattr(named, part):
            return False
        named = getattr(named, part)
    return callable(named)


def candidates(text: str, heading: str = "", module: str = "") -> Iterator[str]:
    """What a name may mean: in full, under a heading, or in the module of the name before it."""
    match = NAME.match(text)
    if not match or not re.fullmatch(r"(\(.*\))?", text[match.end() :], re.DOTALL):
        return
    first, dot, rest = match[0].rstrip(".").partition(".")
    name = SHORT.get(first, first) + dot + rest
    roots = ["", *COLUMNS.get(heading, ()), f"{module}."]
    for root in roots:
        for letter in "dzsc" if "?" in name else "d":
            yield root + name.replace("?", letter)


def target_of(text: str, heading: str = "", module: str = "") -> str | None:
    """The full name that a text in code style means, if it has a page."""
    found = (name for name in candidates(text, heading, module) if url_of(name) or is_ours(name))
    return next(found, None)


def setup(app: Any) -> dict[str, bool]:
    """Add the links once a page is read."""
    from docutils import nodes
    from sphinx.addnodes import pending_xref
    from sphinx.transforms import SphinxTransform

    class LinkNames(SphinxTransform):
        default_priority = 500

        def apply(self, **options: Any) -> None:
            for literal, heading, module in list(_literals(self.document, nodes)):
                target = target_of(literal.astext(), heading, module)
                if target is None:
                    continue
                link = url_of(target)
                if link:
                    made = nodes.reference("", "", refuri=link, internal=False, reftitle=target)
                else:
                    made = pending_xref(
                        "", refdomain="py", reftype="obj", reftarget=target, refdoc=self.env.docname
                    )
                literal.replace_self(made)
                made += literal

    def other_libraries(app: Any, env: Any, node: Any, content: Any) -> Any:
        """Links of a docstring's names, which Sphinx looks for in this library alone."""
        link = url_of(node.get("reftarget", "")) if node.get("refdomain") == "py" else None
        return nodes.reference("", "", content, refuri=link, internal=False) if link else None

    app.add_transform(LinkNames)
    app.connect("missing-reference", other_libraries)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def _literals(document: Any, nodes: Any) -> Iterator[tuple[Any, str, str]]:
    """Texts in code style, each with its column's heading and the module of the last name in its cell."""
    in_tables: dict[Any, tuple[str, str]] = {}
    for table in document.findall(nodes.tgroup):
        headings = [
            entry.astext() for head in table.findall(nodes.thead) for entry in head.findall(nodes.entry)
        ]
        for body in table.findall(nodes.tbody):
            for row in body.findall(nodes.row):
                for heading, entry in zip(headings, row.findall(nodes.entry), strict=False):
                    module = ""
                    for literal in entry.findall(nodes.literal):
                        in_tables[literal] = heading, module
                        target = target_of(literal.astext(), heading, module)
                        module = target.rpartition(".")[0] if target else module
    for literal in document.findall(nodes.literal):
        if not isinstance(literal.parent, (nodes.reference, nodes.title, pending())):
            yield (literal, *in_tables.get(literal, ("", "")))


def pending() -> Any:
    """The class of references that are not resolved yet."""
    from sphinx.addnodes import pending_xref

    return pending_xref
