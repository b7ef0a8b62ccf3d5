"""Files within packages, whether these are folders or in a zip."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

__all__ = ["folder_of", "package_file"]


def package_file(*names: str) -> Traversable:
    """A file or folder of this package, which need not exist: a `Path`, or a `zipfile.Path`.

    Parameters
    ----------
    *names : str
        Its folders, and its own name.
    """
    from importlib.resources import files  # of calls that read a file alone

    return files(__package__).joinpath(*names)


def folder_of(package: str) -> Traversable | None:
    """The folder of another package, which is not imported; None where it is not installed."""
    from importlib.util import find_spec

    spec = find_spec(package)
    loader: Any = spec and spec.loader
    return loader.get_resource_reader(package).files() if loader else None
