"""Make the gallery from the examples: a sentence and an output each, and a page with text and code.

``python docs/extensions/gallery.py`` runs each example and records what it prints in ``docs/outputs``. What
was recorded on a GPU is not replaced by a run without one.
"""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

__all__ = ["GROUPS", "OUTPUTS", "Example", "example", "index", "page", "setup"]

DOCS = Path(__file__).resolve().parents[1]
EXAMPLES, OUTPUTS, MADE = DOCS.parent / "examples", DOCS / "outputs", DOCS / "gallery"
NO_GPU = "without a GPU"
GROUPS = {
    "Arrays, streams and graphs": ("cupy_views", "torch_stream", "plan_in_graph"),
    "SciPy's names": ("scipy_dropin", "scipy_program"),
    "PyTorch and JAX": ("torch_gaussian_process", "jax_gaussian_process"),
    "Linear algebra": ("gaussian_process", "whitening", "kalman_update", "reconstructor", "batched_solves"),
    "Several processes": ("dask_cluster",),
    "Kernels": ("tune_and_explain", "write_a_kernel"),
}


class Example(NamedTuple):
    """An example, read from its file.

    Attributes
    ----------
    name, title : str
    text : str
        The docstring without its title.
    cells : list of (str, str)
        Text and code, in the order of the file.
    where, output : str
        The device of the recorded run, and what it printed.
    """

    name: str
    title: str
    text: str
    cells: list[tuple[str, str]]
    where: str
    output: str

    @property
    def sentence(self) -> str:
        """The first sentence of its text."""
        return re.split(r"(?<=\.)\s", self.text.strip(), maxsplit=1)[0].replace("\n", " ")


def example(name: str) -> Example:
    """Read an example and its recorded output."""
    source = (EXAMPLES / f"{name}.py").read_text(encoding="utf-8")
    tree = ast.parse(source)
    title, _, text = (ast.get_docstring(tree) or "").partition("\n")
    end = tree.body[0].end_lineno or 0
    cells = []
    for part in re.split(r"^# %%\n", "".join(source.splitlines(keepends=True)[end:]), flags=re.MULTILINE):
        said = re.match(r"(?:#.*\n)*", part) if cells else None
        comment = said[0] if said else ""
        words = re.sub(r"^# ?", "", comment, flags=re.MULTILINE)
        cells.append((_markdown(words), part[len(comment) :].strip("\n")))
    where, _, output = (OUTPUTS / f"{name}.txt").read_text(encoding="utf-8").partition("\n\n")
    return Example(name, title, _markdown(text.split("\n", 1)[1].strip()), cells, where, output.rstrip())


def _markdown(text: str) -> str:
    """Text of a docstring, whose code style has two backquotes, or one."""
    return text.replace("``", "`").strip()


def page(shown: Example) -> str:
    """The page of an example."""
    lines = [f"# {shown.title}", "", shown.text, ""]
    for text, code in shown.cells:
        lines += [*([text, ""] if text else []), *(["```python", code, "```", ""] if code else [])]
    lines += ["## Output", "", f"Recorded {shown.where}:", "", "```text", shown.output, "```", ""]
    return "\n".join([*lines, f"{{download}}`{shown.name}.py <../../examples/{shown.name}.py>`", ""])


def index() -> str:
    """The gallery."""
    lines = ["# Examples", "", "Each is a script: `python examples/scipy_dropin.py`."]
    lines += ["What needs a GPU, or a library that is not installed, prints one line and ends.", ""]
    for heading, names in GROUPS.items():
        lines += [f"## {heading}", "", "::::{grid} 1 1 2 2", ":gutter: 3", ""]
        for name in names:
            lines += _card(example(name))
        lines += ["::::", ""]
    listed = [name for names in GROUPS.values() for name in names]
    return "\n".join([*lines, "```{toctree}", ":hidden:", "", *listed, "```", ""])


def _card(shown: Example) -> Iterator[str]:
    """Title, sentence and the last lines of the output."""
    last = shown.output.splitlines()[-4:]
    yield from (":::{grid-item-card} " + shown.title, f":link: {shown.name}", ":link-type: doc", "")
    yield from (shown.sentence, "", "```text", *last, "```", ":::", "")


def make(app: Any) -> None:
    """Write the gallery's pages before Sphinx looks for pages."""
    MADE.mkdir(exist_ok=True)
    pages = {name: page(example(name)) for names in GROUPS.values() for name in names}
    for name, text in {"index": index(), **pages}.items():
        (MADE / f"{name}.md").write_text(text, encoding="utf-8")


def setup(app: Any) -> dict[str, bool]:
    """Make the gallery when a build begins."""
    app.connect("builder-inited", make)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


# ----------------------------------------------------------------------------------------------- record


def where() -> str:
    """The device that examples run on."""
    from pyblasgpu import backend_status
    from pyblasgpu.gpu import device

    return f"on an {device.current().name}" if backend_status().backend == "cuda" else NO_GPU


def record(name: str, device: str) -> bool:
    """Run an example, and keep its output where it is worth more than the recorded one."""
    path = OUTPUTS / f"{name}.txt"
    if device == NO_GPU and path.exists() and not path.read_text().startswith(NO_GPU):
        return False
    paths = [str(DOCS.parent), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    with tempfile.TemporaryDirectory() as folder:
        script = [sys.executable, str(EXAMPLES / f"{name}.py")]
        run = subprocess.run(script, cwd=folder, env=environment, capture_output=True, text=True, check=True)
    path.write_text(f"{device}\n\n{run.stdout.rstrip()}\n", encoding="utf-8")
    return True


def main() -> int:
    """Record all; returns the exit code."""
    OUTPUTS.mkdir(exist_ok=True)
    device = where()
    for name in (name for names in GROUPS.values() for name in names):
        print(name, device if record(name, device) else "kept")
    return 0


if __name__ == "__main__":
    sys.exit(main())
