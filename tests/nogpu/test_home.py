"""Where this user's files are, and what is done where they have no place. There is no home folder, or one
that is no folder, or one that cannot be written."""

from __future__ import annotations

import json
import logging
import os
import pwd
import tempfile
import warnings
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import platformdirs
import pytest

import pyblasgpu
from pyblasgpu import cli
from pyblasgpu.database import Document
from pyblasgpu.dispatch import choose, tuned_files
from pyblasgpu.dispatch.tuned_files import user_file
from pyblasgpu.errors import DatabaseWarning
from pyblasgpu.gpu import user_folders
from pyblasgpu.gpu.build.kernel_store import CubinStore
from pyblasgpu.gpu.device import known
from pyblasgpu.gpu.user_folders import NoFolder, cache_folder, data_folder
from pyblasgpu.tuning.tuned_file_writer import merge
from pyblasgpu.types import DTYPES

H200 = known("h200")
NOTHING_KEPT = "nothing is kept on disk"


@pytest.fixture(autouse=True)
def fresh(monkeypatch):
    """No variable that names a folder, and nothing said or read before."""
    for name in ("PYBLASGPU_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME"):
        monkeypatch.delenv(name, raising=False)
    user_folders.tell_once.cache_clear()
    choose.reload()
    yield
    user_folders.tell_once.cache_clear()
    choose.reload()


def unknown_user(_):
    raise KeyError("getpwuid(): uid not found")


@pytest.fixture(params=["newest", "older"])
def homeless(request, monkeypatch, tmp_path):
    """A user whom the system does not list, with no HOME, in an empty folder; platformdirs raises, or gives a
    path that begins with ~, as older releases do.
    """
    monkeypatch.delenv("HOME", raising=False)
    monkeypatch.setattr(pwd, "getpwuid", unknown_user)
    monkeypatch.chdir(tmp_path)
    if request.param == "older":
        monkeypatch.setattr(platformdirs, "user_cache_dir", lambda name: f"~/.cache/{name}")
        monkeypatch.setattr(platformdirs, "user_data_dir", lambda name: f"~/.local/share/{name}")
    yield tmp_path
    assert not list(tmp_path.iterdir()), "nothing is left in the working folder"


def test_without_a_home_the_folders_say_what_to_do(homeless):
    for folder in (cache_folder, data_folder):
        with pytest.raises(NoFolder, match="PYBLASGPU_HOME"):
            folder()


def test_without_a_home_calls_and_choices_work_and_say_so_once(homeless, caplog):
    with caplog.at_level(logging.WARNING, "pyblasgpu"):
        a = np.eye(3)
        assert (pyblasgpu.gemm(a, a, backend="cpu") == a).all()
        for n in (64, 4096):
            choice = choose.select("gemm_simt", DTYPES["s"], "nn", (n,) * 3, H200)
            assert choice.origin.startswith("packaged for sm_90")
        cubins = CubinStore.default()
        cubins.put("ab" * 32, {}, b"code")
        assert cubins.get("ab" * 32) is None and CubinStore.default() is cubins
        assert len(tuned_files.levels(H200)) == 2
    assert caplog.text.count(NOTHING_KEPT) == 1


def test_without_a_home_info_and_wisdom_work(homeless, capsys, caplog):
    assert cli.main(["info", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["cache"] == facts["data"] == {"folder": None, "files": 0, "bytes": 0}
    assert "PYBLASGPU_HOME" in facts["origins"]["data"]
    assert cli.main(["info"]) == 0
    assert "none: HOME is not set" in capsys.readouterr().out
    with caplog.at_level(logging.WARNING, "pyblasgpu"):
        assert cli.main(["wisdom", "list"]) == 0
        assert "nothing was tuned here" in capsys.readouterr().out
        assert cli.main(["wisdom", "where", "--device", "h200"]) == 0
        assert capsys.readouterr().out.splitlines()[0].endswith("nvidia_h200.json")
    assert caplog.text.count(NOTHING_KEPT) == 1


def test_without_a_home_what_must_write_ends_in_one_line(homeless, capsys):
    packaged = str(tuned_files.PACKAGED / "nvidia_h200.json")
    for arguments in (["import", packaged], ["forget", "--device", "h200"], ["export", "--device", "h200"]):
        assert cli.main(["wisdom", *arguments]) == 2
        err = capsys.readouterr().err.splitlines()
        assert err[-1].startswith("pyblasgpu wisdom: ") and len(err) <= 2


@pytest.mark.parametrize("home", ["", None])
def test_an_empty_variable_is_none(home, monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    if home is not None:
        monkeypatch.setenv("PYBLASGPU_HOME", home)
    assert data_folder().is_relative_to(tmp_path) and data_folder().name == "pyblasgpu"
    assert data_folder() != cache_folder()


def test_a_tilde_is_the_home(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PYBLASGPU_HOME", "~/mine")
    assert data_folder() == tmp_path / "mine" / "data" and cache_folder() == tmp_path / "mine" / "cache"
    monkeypatch.setenv("PYBLASGPU_HOME", "~")
    assert data_folder() == tmp_path / "data"
    monkeypatch.setenv("PYBLASGPU_HOME", "~nobody-of-this-name/x")
    with pytest.raises(NoFolder, match="nobody-of-this-name"):
        data_folder()


def test_a_relative_folder_is_one_of_the_working_folder(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYBLASGPU_HOME", "mine")
    assert data_folder() == tmp_path / "mine" / "data"
    merge(Document(H200.name, trsm_rates={("z", "512x32"): {"recursion": 4.0}}))
    assert (tmp_path / "mine" / "data" / "tuned" / "nvidia_h200.json").is_file()


@pytest.fixture
def root_folder():
    """A folder in which another user can neither write nor read below `closed`."""
    with tempfile.TemporaryDirectory(dir="/tmp") as name:
        home = Path(name)
        home.chmod(0o755)
        (home / "closed").mkdir(mode=0o700)
        yield home


@contextmanager
def another_user():
    """In the block this process is another user: not longer, as pytest reads and writes files of its own."""
    before = os.geteuid()
    os.seteuid(12345)
    try:
        yield
    finally:
        os.seteuid(before)


as_root = pytest.mark.skipif(os.getuid() != 0, reason="only root can become another user")


@as_root
def test_this_process_is_the_same_user_after_an_error():
    with pytest.raises(PermissionError), another_user():
        Path("/root/of-another-user").write_text("")
    assert os.geteuid() == 0


@as_root
@pytest.mark.parametrize("closed", ["", "closed"])
def test_a_home_that_cannot_be_used_is_no_error(closed, root_folder, capsys, monkeypatch, caplog):
    home = root_folder / closed
    CubinStore(root_folder / "warm")  # Python's own files may be out of that user's reach
    assert cli.main(["info"]) == cli.main(["wisdom", "list"]) == 0
    monkeypatch.setenv("PYBLASGPU_HOME", str(home))
    capsys.readouterr()
    with caplog.at_level(logging.WARNING, "pyblasgpu"), warnings.catch_warnings(), another_user():
        warnings.simplefilter("ignore", DatabaseWarning)
        assert cli.main(["info"]) == 0
        page = capsys.readouterr().out
        assert cli.main(["wisdom", "list"]) == cli.main(["wisdom", "where", "--device", "h200"]) == 0
        assert choose.select("gemm_simt", DTYPES["s"], "nn", (64,) * 3, H200).origin.startswith("packaged")
        capsys.readouterr()
        assert cli.main(["wisdom", "import", str(tuned_files.PACKAGED / "nvidia_h200.json")]) == 2
        CubinStore.default().put("ab" * 32, {}, b"code")
    err = capsys.readouterr().err
    assert "cannot be written" in page and str(home / "data") in page
    assert len(err.splitlines()) == 1 and str(home) in err and "Permission denied" in err
    assert "not kept on disk" in caplog.text


def test_info_names_the_folders_and_what_they_are_from(capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("PYBLASGPU_HOME", str(tmp_path))
    path = user_file(H200.name)
    path.parent.mkdir(parents=True)
    path.write_bytes(bytes(10))
    assert cli.main(["info", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["data"] == {"folder": str(tmp_path / "data"), "files": 1, "bytes": 10}
    assert facts["origins"] == dict.fromkeys(("cache", "data"), "from PYBLASGPU_HOME")
    monkeypatch.delenv("PYBLASGPU_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "xdg"))
    assert cli.main(["info", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert Path(facts["data"]["folder"]) == tmp_path / "xdg" / "pyblasgpu"
    assert facts["origins"] == {"cache": "from the user's home", "data": "from XDG_DATA_HOME"}
