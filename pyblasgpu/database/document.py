"""One file of tuned values: read strictly, written so that a Config is a line."""

from __future__ import annotations

import json
import math
import re
import warnings
from collections.abc import Iterator, Sized
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from ..errors import DatabaseWarning
from ..types import DTYPES
from .families import FAMILIES, FIXED, TUNED, Family, with_current_names
from .points import TRSM_POINTS, TRSM_SMALL_POINTS, algorithms_of
from .policy import checked
from .sizes import sizes_of

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

__all__ = [
    "MAX_BYTES",
    "SCHEMA",
    "DatabaseError",
    "Document",
    "Entry",
    "difference",
    "dumps",
    "parse",
    "read",
    "read_packaged",
]

SCHEMA = 2
SCHEMA_1 = 1  # of versions before 0.1.0; `schema_1` converts it
MAX_BYTES = 4 << 20
MAX_VALUE = 1 << 16  # of a parameter
MAX_TFLOPS = 1e6
MAX_RASTER = 1 << 8  # rows of tiles
POINT = re.compile(r"[1-9][0-9]{0,8}(x[1-9][0-9]{0,8}){2,3}(/lower|/left)?")


class DatabaseError(ValueError):
    """A file of tuned values is not what `schema.json` describes."""


@dataclass(frozen=True)
class Entry:
    """Tuned parameters, the TFLOP/s they reached (None where that was not kept), and those `elsewhere`, by
    the size class of the same family, dtype and layout at whose extents they were timed too.
    """

    parameters: dict[str, int]
    tflops: float | None = None
    elsewhere: dict[str, float] = field(default_factory=dict)


@dataclass
class Document:
    """The tuned values of a device or of an architecture.

    Attributes
    ----------
    device : str
        The driver's name of the device, or an architecture's, 'sm_90'.
    entries : dict
        (stem, dtype, layout, size class) -> Entry.
    trsm_rates : dict
        (dtype, point) -> TFLOP/s of each algorithm of TRSM that was timed there, by `algorithms_of` it.
    rasters : dict
        dtype -> rows of tiles of a column in which C of products is rasterized.
    policy : dict
        Values of `policy.Policy`, by name.
    fixed : dict
        (stem, dtype) -> parameters of a family without a search space.
    products : dict
        (stem, dtype, layout, 'm x n x k' of a product between the classes, without spaces) -> TFLOP/s of
        Configs, by their name in `dispatch.throughput_model`. Operands were contiguous. A point that ends in
        '/lower' is of a lower triangle or trapezoid of C, in '/left' of a fused TRMM with T on the left. The
        rates count all of C and T.
    """

    device: str
    entries: dict[tuple[str, str, str, str], Entry] = field(default_factory=dict)
    trsm_rates: dict[tuple[str, str], dict[str, float]] = field(default_factory=dict)
    rasters: dict[str, int] = field(default_factory=dict)
    policy: dict[str, Any] = field(default_factory=dict)
    fixed: dict[tuple[str, str], dict[str, int]] = field(default_factory=dict)
    products: dict[tuple[str, str, str, str], dict[str, float]] = field(default_factory=dict)

    def __len__(self) -> int:
        """Return the number of its values."""
        parts: tuple[Sized, ...] = self.entries, self.trsm_rates, self.rasters, self.policy, self.fixed
        return sum(len(part) for part in (*parts, self.products))


def read(path: Traversable, device: str | None = None) -> Document | None:
    """The document at `path`; None, with a `DatabaseWarning`, if it is unusable, or not one of `device`.

    That a file does not exist is no reason to warn.
    """
    try:
        with path.open("rb") as file:
            document = parse(file.read(MAX_BYTES + 1))
        _check(device in (None, document.device), f"it is of {document.device!r}, not of {device!r}")
    except FileNotFoundError:
        return None
    except (OSError, DatabaseError) as problem:
        warnings.warn(f"tuned values in {path} are set aside: {problem}", DatabaseWarning, stacklevel=2)
        return None
    return document


def read_packaged(path: Traversable, device: str | None = None) -> Document | None:
    """Read a file of this package like `read`, in a quarter of the time: tests have checked its values.

    Where it is not of the form that it should have, all of it is checked. A file that has not changed is
    parsed once: tuners do not write it, and have all values read anew again and again.
    """
    try:
        if isinstance(path, Path):
            state = path.stat()
            document = _trusted_file(path, state.st_mtime_ns, state.st_size)
        else:  # in a zip
            document = _trusted_document(json.loads(path.read_bytes()))
        if device in (None, document.device):
            return document
    except (OSError, AttributeError, KeyError, TypeError, ValueError):
        pass
    return read(path, device)


@lru_cache(8)
def _trusted_file(path: Path, *state: int) -> Document:
    return _trusted_document(json.loads(path.read_bytes()))


def _trusted_document(raw: dict[str, Any]) -> Document:
    if raw["schema"] != SCHEMA:
        raise ValueError(raw["schema"])
    document = Document(raw["device"])
    for key, entry in _leaves(raw["entries"], 4):
        document.entries[key] = _trusted_entry(entry)
    document.trsm_rates.update(_leaves(raw.get("trsm_rates", {}), 2))
    document.rasters.update(raw.get("rasters", {}))
    document.policy.update(raw.get("policy", {}))
    document.fixed.update(_leaves(raw.get("fixed", {}), 2))
    document.products.update(_leaves(raw.get("products", {}), 4))
    return document


def _leaves(tree: dict[str, Any], depth: int, path: tuple[str, ...] = ()) -> Iterator[tuple[Any, Any]]:
    """The leaves of nested objects, with their paths of `depth` keys."""
    for key, inner in tree.items():
        if depth == 1:
            yield (*path, key), inner
        else:
            yield from _leaves(inner, depth - 1, (*path, key))


def _trusted_entry(entry: dict[str, Any]) -> Entry:
    return Entry(entry["config"], entry.get("tflops"), entry.get("elsewhere", {}))


def parse(content: bytes) -> Document:
    """The document in `content`.

    Raises
    ------
    DatabaseError
        Where anything in it is not as in `schema.json`.
    """
    _check(len(content) <= MAX_BYTES, f"it has more than {MAX_BYTES} bytes")
    try:
        raw = json.loads(content, object_pairs_hook=_unique, parse_constant=_no_constant)
    except (ValueError, RecursionError) as problem:  # also of the two hooks
        raise DatabaseError(f"it is no JSON: {problem}") from problem
    _object(raw, "it")
    schema = raw.get("schema")
    if schema == SCHEMA_1 and type(schema) is int:
        raw, schema = _converted(raw), SCHEMA
    _check(type(schema) is int and schema == SCHEMA, f"its schema is {schema!r}, not {SCHEMA}")
    known = "schema", "device", "entries", "trsm_rates", "rasters", "policy", "fixed", "products"
    _known(raw, known, "it")
    device = raw.get("device")
    _check(isinstance(device, str) and 0 < len(device) <= 256, "its device is no name")
    document = Document(device)
    for stem, value in _object(raw.get("entries", {}), "entries").items():
        _check(stem in TUNED, f"entries: {stem!r} is no kernel family")
        _parse_family(document, stem, value)
    levels = tuple(DTYPES), (*TRSM_POINTS, *TRSM_SMALL_POINTS)
    for (dtype, point), rates in _paths(raw.get("trsm_rates", {}), levels, "trsm_rates"):
        where = f"trsm_rates.{dtype}.{point}"
        _known(_object(rates, where), algorithms_of(point), where)
        for algorithm, rate in rates.items():
            _check_rate(rate, f"{where}.{algorithm}")
        document.trsm_rates[dtype, point] = rates
    for (dtype,), raster in _paths(raw.get("rasters", {}), (tuple(DTYPES),), "rasters"):
        _check(type(raster) is int and 0 < raster <= MAX_RASTER, f"rasters.{dtype}: {raster!r}")
        document.rasters[dtype] = raster
    document.policy = checked(_object(raw.get("policy", {}), "policy"), _check)
    for (stem, dtype), value in _paths(raw.get("fixed", {}), (tuple(FIXED), tuple(DTYPES)), "fixed"):
        document.fixed[stem, dtype] = _parameters(FIXED[stem], value, f"fixed.{stem}.{dtype}")
    for stem, value in _object(raw.get("products", {}), "products").items():
        _check(stem in FAMILIES and FAMILIES[stem].is_product, f"products: {stem!r} has no products")
        _parse_products(document, stem, value)
    return document


def _converted(raw: dict[str, Any]) -> dict[str, Any]:
    """A file of schema 1 as one of today."""
    from .schema_1 import from_schema_1  # of few files

    try:
        return from_schema_1(raw, SCHEMA)
    except (AttributeError, KeyError, TypeError) as problem:
        raise DatabaseError(f"it is no file of schema {SCHEMA_1}: {problem!r}") from problem


def _parse_family(document: Document, stem: str, value: Any) -> None:
    levels = (tuple(DTYPES), TUNED[stem].layouts, sizes_of(stem))
    for (dtype, layout, size), entry in _paths(value, levels, f"entries.{stem}"):
        where = f"entries.{stem}.{dtype}.{layout}.{size}"
        document.entries[stem, dtype, layout, size] = _entry(stem, entry, where)


def _parse_products(document: Document, stem: str, value: Any) -> None:
    for (dtype, layout), points in _paths(value, (tuple(DTYPES), TUNED[stem].layouts), f"products.{stem}"):
        where = f"products.{stem}.{dtype}.{layout}"
        for point, rates in _object(points, where).items():
            _check(POINT.fullmatch(point) is not None, f"{where}: {point!r} is no m x n x k")
            for name, rate in _object(rates, f"{where}.{point}").items():
                _check_rate(rate, f"{where}.{point}.{name}")
            document.products[stem, dtype, layout, point] = rates


def _entry(stem: str, entry: Any, where: str) -> Entry:
    _known(_object(entry, where), ("config", "tflops", "elsewhere"), where)
    tflops = entry.get("tflops")
    if tflops is not None:
        _check_rate(tflops, f"{where}.tflops")
    elsewhere = _object(entry.get("elsewhere", {}), f"{where}.elsewhere")
    _known(elsewhere, sizes_of(stem), f"{where}.elsewhere")
    for other, rate in elsewhere.items():
        _check_rate(rate, f"{where}.elsewhere.{other}")
    return Entry(_parameters(TUNED[stem], entry.get("config"), f"{where}.config"), tflops, elsewhere)


def _parameters(family: Family, value: Any, where: str) -> dict[str, int]:
    """Parameters of a Config, checked."""
    parameters = with_current_names(_object(value, where))
    kinds = family.parameters
    _known(parameters, tuple(kinds), where)
    missing = family.required - set(parameters)
    _check(not missing, f"{where} lacks {', '.join(sorted(missing))}")
    # those of fixed families may be bytes
    most = MAX_VALUE if family.is_tuned else MAX_BYTES
    for name, number in parameters.items():
        fits = isinstance(number, int) and type(number) is kinds[name] and 0 <= number <= most
        _check(fits, f"{where}.{name}: {number!r}")
    return parameters


def _check_rate(tflops: Any, where: str) -> None:
    numeric = type(tflops) in (int, float) and math.isfinite(tflops)
    _check(numeric and 0 < tflops < MAX_TFLOPS, f"{where}: {tflops!r}")


def _paths(
    value: Any, levels: tuple[tuple[str, ...], ...], where: str, path: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], Any]]:
    """(path, leaf) of nested objects whose keys at each level are among those given."""
    if not levels:
        yield path, value
        return
    _known(_object(value, where), levels[0], where)
    for key, inner in value.items():
        yield from _paths(inner, levels[1:], f"{where}.{key}", (*path, key))


def difference(document: Document, base: Document) -> Document:
    """Return the part of `document` that `base` lacks or has differently."""

    def is_same(key: Any) -> bool:
        entry = base.entries.get(key)
        return entry is not None and _line(entry) == _line(document.entries[key])

    entries = {key: entry for key, entry in document.entries.items() if not is_same(key)}
    rates = {key: each for key, each in document.trsm_rates.items() if base.trsm_rates.get(key) != each}
    rasters = {key: each for key, each in document.rasters.items() if base.rasters.get(key) != each}
    policy = {key: each for key, each in document.policy.items() if base.policy.get(key) != each}
    fixed = {key: each for key, each in document.fixed.items() if base.fixed.get(key) != each}
    products = {key: each for key, each in document.products.items() if base.products.get(key) != each}
    return Document(document.device, entries, rates, rasters, policy, fixed, products)


def _check(condition: bool, problem: str) -> None:
    if not condition:
        raise DatabaseError(problem)


def _object(value: Any, where: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise DatabaseError(f"{where} is no object")
    return value


def _known(value: dict[str, Any], names: tuple[str, ...], where: str) -> None:
    unknown = [name for name in value if name not in names]
    _check(not unknown, f"{where} holds {', '.join(map(repr, unknown[:3]))}, which is unknown")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    pairs_by_key = dict(pairs)
    _check(len(pairs_by_key) == len(pairs), "a key is there twice")
    return pairs_by_key


def _no_constant(name: str) -> NoReturn:
    raise DatabaseError(f"{name} is no number")


def dumps(document: Document) -> str:
    """The JSON text of `document`, sorted, a Config a line, so that a diff is read entry by entry."""
    entries = _tree({path: _line(entry) for path, entry in document.entries.items()})
    file = {"schema": SCHEMA, "device": document.device, "entries": entries}
    if document.trsm_rates:
        file["trsm_rates"] = _tree(
            {path: _Line(_rounded_all(rates)) for path, rates in document.trsm_rates.items()}
        )
    if document.rasters:
        file["rasters"] = _Line(sorted(document.rasters.items()))
    if document.policy:
        file["policy"] = {
            name: _Line(value) if isinstance(value, dict) else value
            for name, value in sorted(document.policy.items())
        }
    if document.fixed:
        file["fixed"] = _tree({path: _Line(values) for path, values in document.fixed.items()})
    if document.products:
        file["products"] = _tree(
            {path: _Line(_rounded_all(rates)) for path, rates in document.products.items()}
        )
    return _indented(file, "") + "\n"


class _Line(dict[str, Any]):
    """An object that is written in one line."""


def _line(entry: Entry) -> _Line:
    """Return an entry's line in a file."""
    line = _Line(config=entry.parameters)
    if entry.tflops is not None:
        line["tflops"] = _rounded(entry.tflops)
    if entry.elsewhere:
        line["elsewhere"] = _rounded_all(entry.elsewhere)
    return line


def _rounded_all(rates: dict[str, float]) -> dict[str, float]:
    return {name: _rounded(rate) for name, rate in sorted(rates.items())}


def _rounded(tflops: float) -> float:
    return float(f"{tflops:.4g}")


def _tree(values: dict[Any, Any]) -> dict[str, Any]:
    """Nested objects of `values` by path."""
    tree: dict[str, Any] = {}
    for (*parents, last), value in sorted(values.items()):
        branch = tree
        for key in parents:
            branch = branch.setdefault(key, {})
        branch[last] = value
    return tree


def _indented(value: Any, margin: str) -> str:
    if not isinstance(value, dict) or isinstance(value, _Line) or not value:
        return json.dumps(value)
    inner = margin + "  "
    lines = [f"{inner}{json.dumps(key)}: {_indented(item, inner)}" for key, item in value.items()]
    return "{\n" + ",\n".join(lines) + "\n" + margin + "}"
