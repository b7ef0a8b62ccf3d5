"""Files of tuned values and sweeps that are damaged in any way, and many processes that write at once."""

from __future__ import annotations

import ast
import json
import signal
import subprocess
import sys
import time
import warnings

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyblasgpu.database import (
    FAMILIES,
    TUNED,
    DatabaseError,
    Document,
    Entry,
    algorithms_of,
    dumps,
    parse,
    read,
)
from pyblasgpu.dispatch import choose, tuned_files
from pyblasgpu.dispatch.tuned_files import user_file
from pyblasgpu.errors import DatabaseWarning
from pyblasgpu.gpu.device import known
from pyblasgpu.tuning import report
from pyblasgpu.tuning.results import Record, winners
from pyblasgpu.tuning.sweep_file import append, read_sweep, sweep_file
from pyblasgpu.tuning.tuned_file_writer import merge
from pyblasgpu.types import DTYPES

H200 = known("h200")
PACKAGED = (tuned_files.PACKAGED / "sm_90.json").read_bytes()

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


pytestmark = pytest.mark.usefixtures("home")


def paths_of(value, path=()):
    """The places in a JSON value."""
    yield path
    items = value.items() if isinstance(value, dict) else ()
    for key, inner in items:
        yield from paths_of(inner, (*path, key))


WHOLE = json.loads(PACKAGED)
RATES = {
    "s": {"512x512": {"trsm_fused": 2.0, "trsm_fused_512": 1.0}},
    "z": {"512x32": {"recursion": 3.0}, "64x64x100": {"recursion": 1.0, "trsm_small": 2.0}},
}
PRODUCTS = WHOLE["entries"]["gemm_simt"]["s"]
FUSED = {"config": PRODUCTS["nn"]["large"]["config"], "tflops": 3.0}
SMALL = {
    **WHOLE,
    "trsm_rates": RATES,
    "entries": {
        "gemm_simt": {"s": PRODUCTS},
        "trsm_fused_simt": {"s": {"left_colmajor": {"512x512": FUSED}}},
    },
}
PLACES = list(paths_of(SMALL))


def is_known_entry(family, entry):
    values = entry.parameters.values()
    assert set(entry.parameters) <= set(family.parameters)
    assert all(type(value) in (int, bool) and 0 <= value <= 1 << 16 for value in values)
    return entry.tflops is None or 0 < entry.tflops < 1e6


def is_known(document):
    for (stem, dtype, layout, _), entry in document.entries.items():
        family = TUNED[stem]
        assert dtype in DTYPES and layout in family.layouts
        assert is_known_entry(family, entry)
    for (dtype, point), rates in document.trsm_rates.items():
        assert dtype in DTYPES and set(rates) <= set(algorithms_of(point))
        assert all(0 < rate < 1e6 for rate in rates.values())


@given(st.sampled_from(PLACES), JSON)
def test_anything_put_anywhere_is_refused_or_within_the_schema(path, value):
    raw = json.loads(json.dumps(SMALL))
    if path:
        *parents, last = path
        place = raw
        for key in parents:
            place = place[key]
        place[last] = value
    else:
        raw = value
    try:
        document = parse(json.dumps(raw).encode())
    except DatabaseError:
        return
    is_known(document)


@given(
    st.lists(st.tuples(st.integers(0, len(PACKAGED) - 1), st.integers(0, 255)), max_size=4),
    st.integers(0, len(PACKAGED)),
)
@settings(max_examples=200)
def test_bytes_changed_and_cut_off_are_refused_or_within_the_schema(changes, end):
    damaged = bytearray(PACKAGED)
    for place, byte in changes:
        damaged[place] = byte
    try:
        document = parse(bytes(damaged[:end]))
    except DatabaseError:
        return
    is_known(document)


@given(st.binary(max_size=200))
def test_no_bytes_make_the_loader_raise_anything_else(content):
    with pytest.raises(DatabaseError):
        parse(content)


@given(content=st.binary(max_size=100) | st.sampled_from([PACKAGED[:n] for n in (0, 1, 99, 5000)]))
@settings(max_examples=20)
def test_whatever_the_users_file_holds_a_config_is_chosen(content):
    path = user_file(H200.name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    choose.reload()
    with pytest.warns(DatabaseWarning, match=path.name):
        choice = choose.select("gemm_simt", DTYPES["s"], "nn", (4096,) * 3, H200)
    assert choice.origin.startswith("packaged for sm_90")


def a_record(blk=16, dtype="s"):
    return Record(H200.name, "sm_90", "trmm_leaf", dtype, "any", "few", (128, 32), {"BLK_M": blk}, "ok", 1.0)


@given(name=st.sampled_from(list(Record.__dataclass_fields__)), value=JSON)
def test_a_record_with_anything_in_it_is_skipped_or_sound(tmp_path_factory, name, value):
    path = tmp_path_factory.mktemp("sweep") / "sweep.jsonl"
    append(path, a_record())
    raw = {**json.loads(path.read_bytes()), name: value}
    path.write_text(path.read_text() + json.dumps(raw) + "\n")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DatabaseWarning)
        records = read_sweep(path)
    assert a_record() in records
    winners(records, H200.name)
    report.funnel(records)


@given(st.lists(st.binary(max_size=60), max_size=5))
def test_rubbish_between_records_loses_none_of_them(tmp_path_factory, rubbish):
    path = tmp_path_factory.mktemp("sweep") / "sweep.jsonl"
    for blk, line in enumerate([b"", *rubbish], start=1):
        with path.open("ab") as file:
            file.write(line)
        append(path, a_record(blk))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DatabaseWarning)
        records = read_sweep(path)
    assert [record.parameters["BLK_M"] for record in records] == list(range(1, len(rubbish) + 2))


WRITER = """
import sys
from pyblasgpu.database import Document, Entry
from pyblasgpu.tuning.results import Record
from pyblasgpu.tuning.sweep_file import append, sweep_file
from pyblasgpu.tuning.tuned_file_writer import merge
device, dtype, count, parameters = sys.argv[1], sys.argv[2], int(sys.argv[3]), {parameters}
for n in range(1, count + 1):
    rates = {{(dtype, point): {{"recursion": n}} for point in ("512x32", "512x512")}}
    merge(Document(device, {{("gemm_simt", dtype, "nn", "large"): Entry(parameters, float(n))}}, rates))
    place = device, "sm_90", "trmm_leaf", dtype, "any", "few", (1, 1)
    append(sweep_file(device), Record(*place, {{"BLK_M": n}}, seconds=1.0, detail="x" * 9000))
    print(n, flush=True)
"""


def writers(count):
    config = choose.select("gemm_simt", DTYPES["s"], "nn", (4096,) * 3, H200).config
    program = WRITER.format(parameters=FAMILIES["gemm_simt"].parameters_of(config))
    return [
        subprocess.Popen(
            [sys.executable, "-c", program, H200.name, dtype, str(count)], stdout=subprocess.PIPE, text=True
        )
        for dtype in DTYPES
    ]


@pytest.mark.slow
def test_processes_that_write_at_once_lose_nothing():
    for process in (started := writers(20)):
        process.communicate()
    assert all(process.returncode == 0 for process in started)
    document = read(user_file(H200.name), H200.name)
    assert {key[1]: entry.tflops for key, entry in document.entries.items()} == dict.fromkeys(DTYPES, 20.0)
    assert list(document.trsm_rates.values()) == [{"recursion": 20.0}] * 8
    records = read_sweep(sweep_file(H200.name))
    assert sorted((r.dtype, r.parameters["BLK_M"]) for r in records) == sorted(
        (dtype, n) for dtype in DTYPES for n in range(1, 21)
    )


@pytest.mark.slow
def test_processes_killed_while_they_write_leave_whole_files():
    started = writers(10_000)
    for process in started:
        process.stdout.readline()
    time.sleep(0.3)
    for process in started:
        process.send_signal(signal.SIGKILL)
    outputs = [process.communicate()[0].split() for process in started]
    document = read(user_file(H200.name), H200.name)
    assert document is not None and len(document.entries) == 4
    for dtype, numbers in zip(DTYPES, outputs, strict=True):
        kept = document.entries["gemm_simt", dtype, "nn", "large"].tflops
        assert kept >= int(numbers[-1] if numbers else 1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DatabaseWarning)  # of a line that was cut off
        assert read_sweep(sweep_file(H200.name))
    merge(Document(H200.name, {}, {("z", "512x32"): {"recursion": 7.0}}))  # no lock is left behind
    assert read(user_file(H200.name)).trsm_rates["z", "512x32"] == {"recursion": 7.0}


def test_values_of_a_smuggled_type_are_data_at_most():
    """What pickle or eval would act on is text, or refused."""
    evil = dumps(Document("cos\nsystem\n(S'true'\ntR.", {}, {("d", "512x32"): {"recursion": 2.0}}))
    assert parse(evil.encode()).device.startswith("cos")
    with pytest.raises(DatabaseError):
        parse(b"\x80\x04cos\nsystem\n.")
    entry = Entry({"BLK_M": "__import__('os')"}, 1.0)
    with pytest.raises(DatabaseError):
        parse(dumps(Document("x", {("gemm_simt", "s", "nn", "large"): entry})).encode())


def test_nothing_in_the_package_unpickles():
    """Pipes between a process and its own children are the exception, and they are multiprocessing's."""
    root = tuned_files.PACKAGED.parent
    for file in root.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Import):
                assert not {alias.name for alias in node.names} & {"pickle", "marshal", "shelve", "dill"}
            if isinstance(node, ast.ImportFrom):
                assert node.module not in ("pickle", "marshal", "shelve", "dill")
