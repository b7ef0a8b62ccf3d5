"""Files of tuned values: read strictly, set aside when damaged, written whole, diffed by the line."""

from __future__ import annotations

import json
import random
import re
import warnings
from dataclasses import asdict
from itertools import chain

import pytest
from threads import at_once

from pyblasgpu import database
from pyblasgpu.database import FAMILIES, Document, Entry, dumps, parse, read, read_packaged
from pyblasgpu.dispatch import choose as selecting
from pyblasgpu.dispatch import tuned_files
from pyblasgpu.dispatch.tuned_files import user_file
from pyblasgpu.errors import DatabaseWarning
from pyblasgpu.gpu.device import known
from pyblasgpu.tuning.prune import candidates
from pyblasgpu.tuning.results import Record
from pyblasgpu.tuning.sweep_file import read_sweep
from pyblasgpu.tuning.tuned_file_writer import merge, save

H200 = known("h200")
FAMILY = FAMILIES["gemm_simt"]
KEY = ("gemm_simt", "s", "nn", "large")
FUSED = ("trsm_fused_simt", "s", "left_rowmajor", "1024x8192")
BETWEEN = ("gemm_simt", "s", "nn", "777x777x777")


pytestmark = pytest.mark.usefixtures("home")


@pytest.fixture(scope="module")
def document():
    from pyblasgpu.types import DTYPES

    config = selecting.select("gemm_simt", DTYPES["s"], "nn", (4096,) * 3, H200).config
    entry = Entry(FAMILY.parameters_of(config), 38.1234, {"tiny": 3.14159, "batch16": 2.0})
    entries = {KEY: entry, FUSED: Entry(entry.parameters, 2.5)}
    rates = {("z", "512x32"): {"recursion": 2.0, "trsm_fused": 3.0}}
    return Document(H200.name, entries, rates, products={BETWEEN: {"64x64x32/128/3/p2": 20.0}})


def test_what_is_written_is_read(document):
    again = parse(dumps(document).encode())
    assert again.device == document.device and again.trsm_rates == document.trsm_rates
    assert again.entries[FUSED] == document.entries[FUSED] and len(again) == 4
    assert again.products == document.products
    rounded = Entry(document.entries[KEY].parameters, 38.12, {"batch16": 2.0, "tiny": 3.142})
    assert again.entries[KEY] == rounded


def test_a_config_is_a_line(document):
    lines = [line for line in dumps(document).splitlines() if "config" in line]
    assert len(lines) == 2 and '"large": {"config": {"BLK_M"' in lines[0]
    assert dumps(document) == dumps(parse(dumps(document).encode()))


OLD_NAMES = {
    "gemm_simt": "gemm_tile",
    "SLICED_K": "SLICES",
    "PRODUCER_WARPS": "LOADERS",
    "WARPS_PER_COLUMN_GROUP": "SPLIT",
}


def with_old_names(text):
    for new, old in OLD_NAMES.items():
        text = text.replace(f'"{new}"', f'"{old}"')
    return text


def of_schema_1(document):
    """The text of a file of schema 1 with the same entries."""
    raw = json.loads(dumps(document))
    fused = raw["entries"].pop("trsm_fused_simt", {})
    solvers = {dtype: {"left_by_rows": layouts["left_rowmajor"]} for dtype, layouts in fused.items()}
    raw.pop("trsm_rates", None)
    raw["entries"]["trsm_leaf"] = {"s": {}}
    raw.pop("products", None)
    raw |= {"schema": 1, "stop_size": {"trsm": {"d": {"few": 256}}}, "solver": {"gemm_simt": solvers}}
    raw["method"] = {"trmm": {"z": {"512x32": "in_place"}}}
    return with_old_names(json.dumps(raw))


def test_files_of_schema_1_still_serve(document, tmp_path):
    """But for stop sizes, and for methods, of which they hold no rates."""
    old = of_schema_1(document)
    assert '"gemm_tile"' in old
    assert parse(old.encode()).entries == parse(dumps(document).encode()).entries
    assert not parse(old.encode()).trsm_rates
    with pytest.raises(database.DatabaseError, match="schema 1"):
        parse(old.replace("left_by_rows", "left_by_lines").encode())
    for stem in ("trsm_fma", "trmm_leaf"):
        (config,) = candidates(stem, "s", "any", H200).left[:1]
        key, parameters = (stem, "s", "any", "few"), FAMILIES[stem].parameters_of(config)
        text = dumps(Document(H200.name, {key: Entry(parameters)}))
        old = of_schema_1(parse(text.encode()))
        assert with_old_names(text) != text and parse(old.encode()) == parse(text.encode())
        path, record = tmp_path / f"{stem}.jsonl", Record(H200.name, "sm_90", *key, (64, 32), parameters)
        path.write_text(with_old_names(json.dumps(asdict(record))))
        assert read_sweep(path) == [record]


def mutated(document, change):
    raw = json.loads(dumps(document))
    change(raw)
    return json.dumps(raw).encode()


def entry_of(raw):
    return raw["entries"]["gemm_simt"]["s"]["nn"]["large"]


def fused_of(raw):
    return raw["entries"]["trsm_fused_simt"]["s"]["left_rowmajor"]["1024x8192"]


def rates_of(raw):
    return raw["trsm_rates"]["z"]["512x32"]


CHANGES = {
    "older": lambda raw: raw.update(schema=0),
    "newer": lambda raw: raw.update(schema=3),
    "schema is true": lambda raw: raw.update(schema=True),
    "no device": lambda raw: raw.pop("device"),
    "unknown key": lambda raw: raw.update(extra=1),
    "unknown stem": lambda raw: raw["entries"].update(os={}),
    "unknown dtype": lambda raw: raw["entries"]["gemm_simt"].update(h={}),
    "unknown layout": lambda raw: raw["entries"]["gemm_simt"]["s"].update(xx={}),
    "unknown class": lambda raw: raw["entries"]["gemm_simt"]["s"]["nn"].update(huge={}),
    "unknown parameter": lambda raw: entry_of(raw)["config"].update(BLK_Q=1),
    "dtype smuggled in": lambda raw: entry_of(raw)["config"].update(dtype="d"),
    "missing parameter": lambda raw: entry_of(raw)["config"].pop("BLK_M"),
    "string": lambda raw: entry_of(raw)["config"].update(BLK_M="64"),
    "float": lambda raw: entry_of(raw)["config"].update(BLK_M=64.0),
    "bool for int": lambda raw: entry_of(raw)["config"].update(BLK_M=True),
    "int for bool": lambda raw: entry_of(raw)["config"].update(share_a=1),
    "negative": lambda raw: entry_of(raw)["config"].update(BLK_M=-64),
    "huge": lambda raw: entry_of(raw)["config"].update(BLK_M=1 << 40),
    "no config": lambda raw: entry_of(raw).pop("config"),
    "tflops 0": lambda raw: entry_of(raw).update(tflops=0),
    "tflops nan": lambda raw: entry_of(raw).update(tflops=float("nan")),
    "tflops 1e308": lambda raw: entry_of(raw).update(tflops=1e308),
    "tflops text": lambda raw: entry_of(raw).update(tflops="fast"),
    "rate of an unknown class": lambda raw: entry_of(raw)["elsewhere"].update(huge=1.0),
    "rate of a class of leaves": lambda raw: entry_of(raw)["elsewhere"].update(few=1.0),
    "rate 0 elsewhere": lambda raw: entry_of(raw)["elsewhere"].update(tiny=0),
    "rates as a list": lambda raw: entry_of(raw).update(elsewhere=[]),
    "list": lambda raw: raw.update(entries=[]),
    "family of another routine": lambda raw: raw["entries"].update(trsm_fma={"s": {"left_rowmajor": {}}}),
    "unknown layout of T": lambda raw: raw["entries"]["trsm_fused_simt"]["s"].update(tn={}),
    "unknown point": lambda raw: raw["entries"]["trsm_fused_simt"]["s"].update(
        left_rowmajor={"7x7": fused_of(raw)}
    ),
    "fused without a config": lambda raw: fused_of(raw).pop("config"),
    "fused with rates elsewhere": lambda raw: fused_of(raw).update(elsewhere={"tiny": 1.0}),
    "fused with an unknown parameter": lambda raw: fused_of(raw)["config"].update(BLK_Q=1),
    "rates of an unknown dtype": lambda raw: raw["trsm_rates"].update(h={}),
    "rates at an unknown point": lambda raw: raw["trsm_rates"]["z"].update({"7x7": {"recursion": 1.0}}),
    "rate of an unknown algorithm": lambda raw: rates_of(raw).update(trmm_fused=1.0),
    "rate of small triangles at a large one": lambda raw: rates_of(raw).update(trsm_small=1.0),
    "rate as a bool": lambda raw: rates_of(raw).update(recursion=True),
    "rate 0": lambda raw: rates_of(raw).update(recursion=0),
    "rates of a point as a list": lambda raw: raw["trsm_rates"]["z"].update({"512x32": ["recursion"]}),
    "raster of an unknown dtype": lambda raw: raw.update(rasters={"h": 4}),
    "raster 0": lambda raw: raw.update(rasters={"d": 0}),
    "raster as a text": lambda raw: raw.update(rasters={"d": "4"}),
    "a section of schema 1": lambda raw: raw.update(stop_size={}),
    "a tuned family among the fixed": lambda raw: raw.update(fixed={"gemm_simt": {"s": {"BLK_M": 64}}}),
    "fixed of an unknown dtype": lambda raw: raw.update(fixed={"symv": {"h": {"WARPS": 4}}}),
    "fixed with an unknown parameter": lambda raw: raw.update(fixed={"symv": {"s": {"BLK_Q": 4}}}),
    "fixed with a text": lambda raw: raw.update(fixed={"symv": {"s": {"WARPS": "4"}}}),
    "fixed with a bool for an int": lambda raw: raw.update(fixed={"symv": {"s": {"WARPS": True}}}),
    "products of a family without": lambda raw: raw["products"].update(trsm_mma={}),
    "products of an unknown layout": lambda raw: raw["products"]["gemm_simt"]["s"].update(nx={}),
    "products of two extents": lambda raw: raw["products"]["gemm_simt"]["s"]["nn"].update({"7x7": {}}),
    "products of extent 0": lambda raw: raw["products"]["gemm_simt"]["s"]["nn"].update({"7x0x7": {}}),
    "products with a text": lambda raw: raw["products"]["gemm_simt"]["s"]["nn"]["777x777x777"].update(a="1"),
    "fixed as a list": lambda raw: raw.update(fixed={"symv": {"s": [4]}}),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_what_is_not_in_the_schema_is_refused(document, change):
    with pytest.raises(database.DatabaseError):
        parse(mutated(document, change))


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"null",
        b"[]",
        b"{",
        b"{}",
        b"\xff\xfe",
        b"[" * 100_000,
        b"1" * 5000,
        b'{"schema": 2, "schema": 2}',
        b" " * ((4 << 20) + 1),
    ],
    ids=["empty", "null", "list", "open", "nothing", "binary", "deep", "long number", "duplicate", "large"],
)
def test_rubbish_is_refused(content):
    with pytest.raises(database.DatabaseError):
        parse(content)


def test_every_half_written_file_is_refused(document):
    content = dumps(document).encode().rstrip()
    for length in range(len(content)):
        with pytest.raises(database.DatabaseError):
            parse(content[:length])


def test_flipped_bits_never_get_through_unchecked(document):
    """A flip is refused, or leaves a document of known names and bounded numbers."""
    content, rng = dumps(document).encode(), random.Random(2011)
    for _ in range(2000):
        damaged = bytearray(content)
        damaged[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
        try:
            parsed = parse(bytes(damaged))
        except database.DatabaseError:
            continue
        for (stem, *_), entry in parsed.entries.items():
            assert set(entry.parameters) <= set(database.TUNED[stem].parameters)
            assert all(0 <= value <= 1 << 16 for value in entry.parameters.values())


def test_a_file_that_is_not_there_is_no_reason_to_warn(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert read(tmp_path / "absent.json", "NVIDIA H200") is None


@pytest.mark.parametrize("tflops", [1e-7, 0.00049, 123.456789])
def test_any_rate_that_is_written_can_be_read(document, tflops):
    entry = Entry(document.entries[KEY].parameters, tflops)
    parsed = parse(dumps(Document("x", {KEY: entry})).encode())
    assert parsed.entries[KEY].tflops == pytest.approx(tflops, rel=1e-3)


def test_a_damaged_foreign_or_unreadable_file_is_set_aside_by_name(document, tmp_path):
    foreign, folder, damaged = tmp_path / "foreign.json", tmp_path / "folder.json", tmp_path / "damaged.json"
    foreign.write_text(dumps(Document("NVIDIA A100")))
    folder.mkdir()
    damaged.write_text(dumps(document)[:-3])
    for path in (foreign, folder, damaged):
        with pytest.warns(DatabaseWarning, match=path.name):
            assert read(path, H200.name) is None


def test_merging_keeps_what_other_runs_found(document):
    merge(document)
    other = Document(H200.name, trsm_rates={("s", "512x32"): {"recursion": 4.0}})
    path = merge(other)
    merged = read(path, H200.name)
    assert set(merged.entries) == {KEY, FUSED}
    assert set(merged.trsm_rates) == {("z", "512x32"), ("s", "512x32")}


def test_a_damaged_file_is_kept_beside_the_new_one(document):
    path = user_file(H200.name)
    path.parent.mkdir(parents=True)
    path.write_text("{ half")
    with pytest.warns(DatabaseWarning):
        merge(document)
    assert path.with_suffix(".json.damaged").read_text() == "{ half"
    assert read(path, H200.name).entries


def test_writers_at_once_lose_nothing(document):
    keys = [("gemm_simt", dtype, "nn", size) for dtype in "sdcz" for size in ("large", "small", "few_rows")]
    entry = document.entries[KEY]

    at_once(merge, [(Document(H200.name, {key: entry}),) for key in keys])
    assert set(read(user_file(H200.name), H200.name).entries) == set(keys)


def test_a_write_that_fails_leaves_the_old_file(document, monkeypatch, tmp_path):
    path = tmp_path / "values.json"
    save(document, path)
    before = path.read_text()
    monkeypatch.setattr("os.fsync", lambda _: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises(OSError, match="disk full"):
        save(Document("x"), path)
    assert path.read_text() == before and [file.name for file in tmp_path.iterdir()] == ["values.json"]


def test_the_published_schema_names_what_the_loader_knows():
    schema = json.loads((tuned_files.PACKAGED / "schema.json").read_text())

    def resolved(node):
        """`node` with what it refers to."""
        name = node.get("$ref", "").removeprefix("#/$defs/")
        return {**(resolved(schema["$defs"][name]) if name else {}), **node}

    entries = schema["properties"]["entries"]["properties"]
    assert schema["properties"]["schema"]["const"] == database.SCHEMA and set(entries) == set(database.TUNED)
    points = resolved(schema["properties"]["trsm_rates"])["additionalProperties"]
    known = database.TRSM_POINTS, database.TRSM_SMALL_POINTS
    each = [resolved(kind)["enum"] for kind in points["propertyNames"]["anyOf"]]
    assert [sorted(kind) for kind in each] == [sorted(some) for some in known]
    for point in chain(*each):
        (rates,) = (rates for form, rates in points["patternProperties"].items() if re.search(form, point))
        assert tuple(rates["propertyNames"]["enum"]) == database.algorithms_of(point)
    for stem, family in database.TUNED.items():
        layouts = resolved(resolved(entries[stem])["additionalProperties"])
        assert tuple(layouts["propertyNames"]["enum"]) == family.layouts
        sizes = resolved(resolved(layouts["additionalProperties"])["propertyNames"])["enum"]
        assert sorted(sizes) == sorted(database.sizes_of(stem))


def test_every_packaged_file_loads_and_its_configs_hold():
    for path in tuned_files.PACKAGED.glob("*.json"):
        if path.name != "schema.json":
            parsed = parse(path.read_bytes())
            assert read_packaged(path) == parsed, "read without checks, it is the same"
            for (stem, dtype, layout, _), entry in parsed.entries.items():
                database.TUNED[stem].config(dtype, layout, entry.parameters)
