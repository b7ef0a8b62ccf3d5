"""Digests of the text that kernels are made of, blind to comments, docstrings and layout (`code_digest`).

A kernel depends on its own module, on the modules of `kernels` that this one imports, and on `ALWAYS`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any

from ...package_files import package_file

__all__ = ["digest_of", "digest_of_all", "covered", "forget", "texts"]

_PACKAGE = __package__.partition(".")[0]

#: Modules and packages that every kernel depends on.
ALWAYS = ("gpu.backend", "gpu.intrinsics", "gpu.build.link", "gpu.build.translate")

#: Names of modules and packages in `kernels` that no kernel of a device is made of.
_LEFT_OUT = {"axes", "compile_ahead", "cpu", "family", "registry", "space"}


@lru_cache
def digest_of(*modules: str) -> str:
    """Return the digest of a kernel's modules and of all that decides its machine code with them.

    Parameters
    ----------
    *modules : str
        Their full names, as ``__module__`` of what builds the kernel has them.
    """
    known = _digests()
    return _joined(known, _covered(known, modules))


@lru_cache
def digest_of_all() -> str:
    """Return the digest of all kernels' modules and of `ALWAYS`."""
    known = _digests()
    return _joined(known, known)


def covered(*modules: str) -> set[str]:
    """Return the modules, by their names in this package, that `digest_of` covers."""
    return _covered(_digests(), modules)


def forget() -> None:
    """Read the texts again: they changed."""
    for cached in (digest_of, digest_of_all, _digests):
        cached.cache_clear()


def texts() -> dict[str, bytes]:
    """Return the text of each module that kernels can be made of, by its name in this package."""
    root = package_file()
    found = dict(_texts_below(root.joinpath("kernels"), "kernels"))
    for name in ALWAYS:
        place = root.joinpath(*name.split("."))
        if place.is_dir():
            found.update(_texts_below(place, name))
        else:
            found[name] = root.joinpath(*name.split(".")[:-1], f"{name.split('.')[-1]}.py").read_bytes()
    return found


def _texts_below(folder: Any, name: str) -> Iterator[tuple[str, bytes]]:
    for entry in folder.iterdir():
        stem, _, ending = entry.name.partition(".")
        if stem in _LEFT_OUT or stem == "__pycache__":
            continue
        if entry.is_dir():
            yield from _texts_below(entry, f"{name}.{stem}")
        elif ending == "py":
            yield (name if stem == "__init__" else f"{name}.{stem}"), entry.read_bytes()


@lru_cache
def _digests() -> dict[str, tuple[str, list[str]]]:
    """Return the digest of each module's code, and the modules that it imports.

    Syntax trees take half a second, so the user's cache keeps both under the digest of the bytes.
    """
    from .kernel_store import CubinStore

    found = texts()
    content = hashlib.sha256()
    for name in sorted(found):
        content.update(name.encode() + b"\0" + found[name] + b"\0")
    store = CubinStore.default("code")
    kept = store.get(content.hexdigest())
    if kept is None:
        from .code_digest import facts_of

        facts = {name: facts_of(name, text, set(found)) for name, text in found.items()}
        store.put(content.hexdigest(), facts, b"")
    else:
        facts = kept[0]
    return {name: (digest, imports) for name, (digest, imports) in facts.items()}


def _covered(known: dict[str, tuple[str, list[str]]], modules: Iterable[str]) -> set[str]:
    """Return `modules` and what they import, and `ALWAYS`; a module from elsewhere may import everything."""
    names = [module.removeprefix(f"{_PACKAGE}.") for module in modules]
    if not known.keys() >= set(names):
        return set(known)
    inside = tuple(f"{each}." for each in ALWAYS)
    found = {name for name in known if name in ALWAYS or name.startswith(inside)}
    while names:
        each = names.pop()
        if each not in found:
            found.add(each)
            names += known[each][1]
    return found


def _joined(known: dict[str, tuple[str, list[str]]], names: Iterable[str]) -> str:
    lines = "".join(f"{name} {known[name][0]}\n" for name in sorted(names))
    return hashlib.sha256(lines.encode()).hexdigest()
