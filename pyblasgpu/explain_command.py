"""``pyblasgpu explain``: the kernels of a call with their Configs, and their text."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rich.table import Table

from . import terminal
from .api.explain import explain, extents_of, sources_of
from .gpu.build import kernel_text
from .gpu.build.compile import KernelSource
from .gpu.device import Device

__all__ = ["main"]

#: The kinds of text, each with the ending of its files and what writes it.
_WRITERS: dict[str, tuple[str, Callable[[KernelSource, Device], str]]] = {
    "source": ("py", lambda source, device: kernel_text.python_text(source)),
    "ptx": ("ptx", lambda source, device: kernel_text.ptx_text(source, device.cc)),
    "sass": ("sass", lambda source, device: kernel_text.sass_text(source, device.cc)),
}


def main(options: argparse.Namespace) -> int:
    """Print the Configs of a call, or the text of its kernels; returns the exit code."""
    letter, routine = options.call
    call = (routine, letter, *options.shape)
    where = {"device": options.device or 0, "batch": options.batch, "method": options.method}
    chosen = explain(*call, **where)
    if options.text is None:
        _show(chosen, options)
        return 0
    device, sources = sources_of(*call, **where)
    ending, write = _WRITERS[options.text]
    texts = [(source.name, write(source, device)) for source in sources]
    if options.out:
        _write(texts, ending, options.out)
    elif options.json:
        print(json.dumps([{"kernel": name, options.text: text} for name, text in texts], indent=2))
    else:
        print("\n".join(text for _, text in texts))
    return 0


def _show(chosen: list[tuple[str, str, str]], options: argparse.Namespace) -> None:
    if options.json:
        named = [{"what": what, "value": value, "origin": origin} for what, value, origin in chosen]
        print(json.dumps(named, indent=2))
        return
    letter, routine = options.call
    extents = " x ".join(map(str, extents_of(routine, *options.shape)))
    table = Table("kernel", "Config", "origin", title=f"{letter}{routine}, {extents}")
    for row in chosen:
        table.add_row(*row)
    terminal.console(terminal.WIDTH).print(table)


def _write(texts: list[Any], ending: str, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for number, (name, text) in enumerate(texts, 1):
        file = folder / f"{number}_{name}.{ending}"
        file.write_text(text)
        print(file)
