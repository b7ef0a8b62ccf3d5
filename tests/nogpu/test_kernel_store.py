"""The store of cubins: what is damaged, foreign or unwritable is as if it were not there."""

from __future__ import annotations

import logging
import os
import pickle
import stat
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pyblasgpu.gpu.build import kernel_store
from pyblasgpu.gpu.build.kernel_store import CubinStore
from pyblasgpu.gpu.user_folders import cache_folder, data_folder

KEY, OTHER = "a1" * 32, "b2" * 32
FACTS = {"entry": "kernel", "resources": {"registers": 40}}


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "cubin"


@pytest.fixture
def cubins(folder):
    return CubinStore(folder)


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A home of its own, and no stores remembered."""
    monkeypatch.setenv("PYBLASGPU_HOME", str(tmp_path))
    monkeypatch.setattr(kernel_store, "open_stores", {})
    return tmp_path


def files(folder):
    return [path for path in folder.rglob("*") if path.is_file()]


def record(folder, content=b"\x7fELF machine code"):
    """The file that holds the record of KEY."""
    before = set(files(folder))
    CubinStore(folder).put(KEY, FACTS, content)
    held = [path for path in files(folder) if path not in before and content in path.read_bytes()]
    assert len(held) == 1
    return held[0]


@given(st.binary(max_size=300))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_what_is_put_is_got(cubins, code):
    cubins.put(KEY, FACTS, code)
    assert cubins.get(KEY) == (FACTS, code)
    assert cubins.get(OTHER) is None


def test_a_second_store_finds_it(cubins, folder):
    cubins.put(KEY, FACTS, b"code")
    assert CubinStore(folder).get(KEY) == (FACTS, b"code")


def test_the_folder_is_private(folder):
    CubinStore(folder)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_an_open_folder_is_closed(folder):
    folder.mkdir(mode=0o777)
    folder.chmod(0o777)
    CubinStore(folder)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_a_folder_of_another_user_is_refused(folder, monkeypatch):
    folder.mkdir()
    owner = folder.stat().st_uid
    monkeypatch.setattr(os, "getuid", lambda: owner + 1)
    with pytest.raises(PermissionError, match="another user"):
        CubinStore(folder)


# ----------------------------------------------------------------------------------------------- damage


@pytest.mark.parametrize("keep", [0, 1, 10, 64, 65, 66, -1])
def test_a_truncated_record_is_ignored(folder, keep):
    path = record(folder)
    path.write_bytes(path.read_bytes()[:keep])
    assert CubinStore(folder).get(KEY) is None


def test_a_flipped_bit_anywhere_is_noticed(folder):
    path = record(folder)
    whole = path.read_bytes()
    for at in range(len(whole)):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        assert CubinStore(folder).get(KEY) is None, f"byte {at} of {len(whole)}"


def test_damage_is_logged_and_mended(folder, caplog):
    path = record(folder)
    path.write_bytes(b"damaged")
    cubins = CubinStore(folder)
    with caplog.at_level(logging.WARNING, "pyblasgpu"):
        assert cubins.get(KEY) is None
    assert "damaged record" in caplog.text
    cubins.put(KEY, FACTS, b"code")
    assert cubins.get(KEY) == (FACTS, b"code")


class _Trap:
    def __reduce__(self):
        return os.abort, ()


def test_nothing_is_unpickled(folder):
    path = record(folder)
    path.write_bytes(pickle.dumps(_Trap()))
    assert CubinStore(folder).get(KEY) is None


def test_a_record_that_is_a_folder_is_ignored(folder):
    path = record(folder)
    path.unlink()
    path.mkdir()
    assert CubinStore(folder).get(KEY) is None


# ------------------------------------------------------------------------------- processes, full disks


def _write(folder, worker: int) -> int:
    cubins, good = CubinStore(folder), 0
    for turn in range(20):
        cubins.put(KEY, FACTS, bytes([worker]) * 5000)
        cubins.put(f"{worker:02x}{turn:02x}" * 16, {"turn": turn}, bytes([worker]) * 100)
        facts, code = cubins.get(KEY) or (None, b"")
        good += facts == FACTS and len(code) == 5000 and len(set(code)) == 1
    return good


def test_many_processes_write_at_once(folder):
    workers = 4
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        good = list(pool.map(_write, [folder] * workers, range(workers)))
    assert good == [20] * workers, "each record read was whole"
    cubins = CubinStore(folder)
    for worker in range(workers):
        for turn in range(20):
            assert cubins.get(f"{worker:02x}{turn:02x}" * 16) == ({"turn": turn}, bytes([worker]) * 100)


def test_a_full_disk_is_no_error(cubins, monkeypatch, caplog):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with caplog.at_level(logging.WARNING, "pyblasgpu"):
        cubins.put(KEY, FACTS, b"code")
        cubins.put(OTHER, FACTS, b"code")
    assert caplog.text.count("No space left") == 1, "it is said once"
    assert cubins.get(KEY) is None and not files(cubins.folder), "nothing half-written stays"


def test_a_folder_that_can_only_be_read_is_read(cubins, monkeypatch):
    def refused(*_):
        raise PermissionError(13, "Permission denied")

    cubins.put(KEY, FACTS, b"code")
    monkeypatch.setattr(os, "utime", refused)
    monkeypatch.setattr(os, "chmod", refused)
    cubins.put(OTHER, FACTS, b"code")
    assert cubins.get(KEY) == (FACTS, b"code") and cubins.get(OTHER) is None


def test_what_was_used_longest_ago_goes_first(folder):
    full = CubinStore(folder)
    for age, name in enumerate(("a1", "b2", "c3", "d4")):
        full.put(name * 32, FACTS, bytes(1000))
        path = folder / name / (name * 32)
        os.utime(path, (path.stat().st_mtime - 100 + age,) * 2)
    full.get("a1" * 32)
    small = CubinStore(folder, max_bytes=4000)
    small.put("e5" * 32, FACTS, bytes(1000))
    kept = [name for name in ("a1", "b2", "c3", "d4", "e5") if small.get(name * 32)]
    assert len(kept) < 4 and {"a1", "e5"} <= set(kept) and "b2" not in kept


def test_what_a_killed_process_left_is_removed(folder):
    CubinStore(folder)
    (folder / "a1").mkdir()
    old, new = folder / "a1" / ".tmp-old", folder / "a1" / ".tmp-new"
    old.write_bytes(b"half"), new.write_bytes(b"half")
    os.utime(old, (1, 1))
    CubinStore(folder).put(KEY, FACTS, b"code")
    assert new.exists() and not old.exists()


def test_a_vanished_folder_is_no_error(home):
    cubins = CubinStore.default()
    for path in sorted(cubins.folder.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    cubins.folder.rmdir()
    assert cubins.get(KEY) is None
    cubins.put(KEY, FACTS, b"code")


def test_without_a_usable_folder_nothing_is_kept(home, caplog):
    (home / "cache").write_text("in the way")
    with caplog.at_level(logging.WARNING, "pyblasgpu"):
        cubins = CubinStore.default()
    assert "not kept on disk" in caplog.text
    cubins.put(KEY, FACTS, b"code")
    assert cubins.get(KEY) is None
    assert CubinStore.default() is cubins, "it is said once"


def test_folders(home, monkeypatch):
    assert cache_folder() == home / "cache" and data_folder() == home / "data"
    assert CubinStore.default().folder == home / "cache" / "cubin"
    monkeypatch.delenv("PYBLASGPU_HOME")
    monkeypatch.setenv("XDG_CACHE_HOME", str(home / "xdg"))
    assert cache_folder() != data_folder()
    assert cache_folder().name == "pyblasgpu"
