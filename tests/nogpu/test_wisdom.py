"""The user's tuned values: list, locate, hand on, take in, forget."""

from __future__ import annotations

import json

import pytest
from fake_device import described

from pyblasgpu import cli
from pyblasgpu.database import Document, Entry, dumps, read
from pyblasgpu.dispatch import choose
from pyblasgpu.dispatch.tuned_files import unusable, user_file
from pyblasgpu.errors import DatabaseWarning
from pyblasgpu.gpu.device import known
from pyblasgpu.tuning.tuned_file_writer import merge
from pyblasgpu.tuning.wisdom import export
from pyblasgpu.types import DTYPES

H200, A100 = known("h200"), known("a100")


pytestmark = pytest.mark.usefixtures("home")
FUSED = ("trsm_fused_simt", "d", "left_colmajor", "512x32")


@pytest.fixture
def document():
    from pyblasgpu.database import FAMILIES

    config = choose.select("gemm_simt", DTYPES["s"], "nn", (4096,) * 3, H200).config
    entry = Entry(FAMILIES["gemm_simt"].parameters_of(config), 38.12)
    entries = {("gemm_simt", "s", "nn", "large"): entry, ("gemm_simt", "s", "nn", "small"): entry}
    entries[FUSED] = Entry(entry.parameters, 4.56)
    rates = {("d", "512x32"): {"trsm_fused": 4.56, "recursion": 3.21}}
    return Document(H200.name, entries, rates)


def wisdom(*arguments):
    return cli.main(["wisdom", *arguments])


def test_nothing_was_tuned(capsys):
    assert wisdom("list") == 0
    assert "nothing was tuned here" in capsys.readouterr().out


def test_what_was_tuned_is_listed(document, capsys):
    merge(document)
    assert wisdom("list") == 0
    text = capsys.readouterr().out
    assert text.count("gemm_simt") == 2 and "38.1" in text and text.count("4.56") == 2
    assert "trsm_fused_simt" in text and "recursion" in text and "3.21" in text
    assert wisdom("list", "--json") == 0
    (listed,) = json.loads(capsys.readouterr().out)
    assert listed["device"] == H200.name and listed["file"] == str(user_file(H200.name))


def test_a_damaged_file_is_named_and_the_others_are_listed(document, capsys, home):
    merge(document)
    (user_file(H200.name).parent / "broken.json").write_text("{")
    with pytest.warns(DatabaseWarning, match=r"broken\.json"):
        assert wisdom("list") == 0
    assert "gemm_simt" in capsys.readouterr().out


def test_where_names_the_files_the_winning_one_first(document, capsys):
    assert wisdom("where", "--device", "h200") == 0
    first, *others = capsys.readouterr().out.splitlines()
    assert first == f"{user_file(H200.name)} (absent)" and others[0].endswith("nvidia_h200.json")
    merge(document)
    assert wisdom("where", "--device", "h200", "--json") == 0
    levels = json.loads(capsys.readouterr().out)
    assert levels[0]["exists"] and [level["exists"] for level in levels] == [True, True, True]


def test_values_go_from_one_user_to_another(document, capsys, monkeypatch, tmp_path):
    merge(document)
    out = tmp_path / "mine.json"
    assert wisdom("export", str(out), "--device", "h200") == 0
    assert wisdom("export", "--device", H200.name) == 0
    assert capsys.readouterr().out == out.read_text() == dumps(document)
    monkeypatch.setenv("PYBLASGPU_HOME", str(tmp_path / "another"))
    merge(Document(H200.name, trsm_rates={("z", "512x32"): {"recursion": 4.0}}))
    assert wisdom("import", str(out)) == 0
    assert f"4 values of {H200.name} are now in" in capsys.readouterr().out
    merged = read(user_file(H200.name))
    assert merged.entries == document.entries
    assert merged.trsm_rates == {**document.trsm_rates, ("z", "512x32"): {"recursion": 4.0}}


def test_what_is_damaged_is_not_taken_in_at_all(document, capsys, tmp_path):
    merge(document)
    before = user_file(H200.name).read_bytes()
    raw = json.loads(dumps(document))
    raw["entries"]["gemm_simt"]["s"]["nn"]["large"]["config"]["BLK_M"] = "os.system"
    bad = tmp_path / "bad.json"
    bad.write_text(json.dumps(raw))
    assert wisdom("import", str(bad)) == 2
    assert "bad.json is not taken in: entries.gemm_simt.s.nn.large.config.BLK_M" in capsys.readouterr().err
    assert wisdom("import", str(tmp_path / "absent.json")) == 2
    assert wisdom("import") == 2
    assert user_file(H200.name).read_bytes() == before


def test_a_device_without_values_has_nothing_to_export(document, capsys):
    merge(document)
    assert wisdom("export", "--device", "a100") == 2
    assert f"no tuned values of {A100.name!r}; there are some of {H200.name}" in capsys.readouterr().err


def test_some_or_all_is_forgotten(document, capsys):
    merge(document)
    assert wisdom("forget", "--device", "h200", "--routine", "gemm", "--dtype", "d") == 0
    assert "0 values of" in capsys.readouterr().out
    assert wisdom("forget", "--device", "h200", "--routine", "trsm") == 0
    remaining = read(user_file(H200.name))
    assert {stem for stem, *_ in remaining.entries} == {"gemm_simt"} and not remaining.trsm_rates
    assert wisdom("forget", "--device", "h200") == 0
    assert "2 values of" in capsys.readouterr().out
    assert not user_file(H200.name).exists()


@pytest.mark.parametrize("name", ["h200", "H200", "NVIDIA H200", "nvidia_h200", "Nvidia-H200"])
def test_every_action_takes_every_spelling(name, document, capsys, tmp_path):
    merge(document)
    merge(Document(A100.name, trsm_rates={("z", "512x32"): {"recursion": 4.0}}))
    out = tmp_path / "out.json"
    assert wisdom("export", "--device", name, str(out)) == 0
    assert out.read_text(encoding="utf-8") == dumps(document) == export(name)
    assert wisdom("list", "--device", name, "--json") == 0
    (listed,) = json.loads(capsys.readouterr().out)
    assert listed["device"] == H200.name
    assert wisdom("where", "--device", name) == 0
    assert capsys.readouterr().out.splitlines()[0] == str(user_file(H200.name))
    assert wisdom("forget", "--device", name) == 0
    assert not user_file(H200.name).exists() and user_file(A100.name).exists()


def test_a_device_that_only_a_file_knows_has_a_name_in_any_spelling(document, capsys):
    merge(Document("NVIDIA Voodoo 5", trsm_rates={("z", "512x32"): {"recursion": 4.0}}))
    assert wisdom("export", "--device", "voodoo-5") == 0
    assert "NVIDIA Voodoo 5" in capsys.readouterr().out
    assert wisdom("export", "--device", "voodoo6") == 2
    assert "'voodoo6' is none of fermi" in capsys.readouterr().err


# ------------------------------------------------------------------------------- files that nobody will read


def written(tmp_path, document, device):
    """A file of the values of `document`, said to be of a device."""
    path = tmp_path / "given.json"
    path.write_text(json.dumps({**json.loads(dumps(document)), "device": device}))
    return str(path)


@pytest.mark.parametrize("name", ["h200", "NVIDIA-H200", "nvidia h200"])
def test_a_file_of_another_spelling_is_taken_in_where_it_is_read(name, document, capsys, tmp_path):
    assert wisdom("import", written(tmp_path, document, name)) == 0
    assert f"4 values of {H200.name} are now in" in capsys.readouterr().out
    assert read(user_file(H200.name), H200.name).entries == document.entries
    choose.reload()
    assert choose.select("gemm_simt", DTYPES["s"], "nn", (4096,) * 3, H200).origin.startswith("tuned here")


@pytest.mark.parametrize("name", ["sm_90", "SM90", "sm_90a"])
def test_the_values_of_an_architecture_are_read_by_no_name(name, document, capsys, tmp_path, home):
    path = written(tmp_path, document, name)
    assert wisdom("import", path) == 2
    err = capsys.readouterr().err
    assert f"of the architecture {name!r}" in err and "--device" in err
    assert not (home / "data" / "tuned" / "sm_90.json").exists()


def test_the_values_of_an_architecture_may_be_taken_in_for_a_device(document, capsys, tmp_path):
    path = written(tmp_path, document, "sm_90")
    assert wisdom("import", path, "--device", "H100") == 0
    h100 = known("h100").name
    assert f"4 values of {h100}" in capsys.readouterr().out
    assert read(user_file(h100), h100).entries == document.entries
    assert wisdom("import", path, "--device", "a100") == 2
    assert f"it is of 'sm_90', neither of {A100.name!r} nor of 'sm_80'" in capsys.readouterr().err
    assert wisdom("import", written(tmp_path, document, "h200"), "--device", "h200") == 0


def test_who_will_not_read_them_is_reported(document, capsys, tmp_path, monkeypatch):
    del document.entries[FUSED]  # that one breaks a rule
    assert wisdom("import", written(tmp_path, document, "NVIDIA Voodoo 5")) == 0
    assert (
        "'NVIDIA Voodoo 5', which is the name of no device that is known, will read"
        in capsys.readouterr().err
    )
    described(monkeypatch, A100)
    assert wisdom("import", written(tmp_path, document, H200.name)) == 0
    err = capsys.readouterr().err
    assert f"only a device called {H200.name!r} will read them" in err and A100.name in err
    described(monkeypatch, H200)
    assert wisdom("import", written(tmp_path, document, H200.name)) == 0
    assert not capsys.readouterr().err


def test_values_that_the_device_cannot_run_are_counted(document, capsys, tmp_path):
    assert wisdom("import", written(tmp_path, document, "Tesla T4")) == 0
    err = capsys.readouterr().err
    assert "3 of them are passed over, as gemm_simt s nn" in err and "device_async" in err
    assert len(unusable(document, known("t4"))) == 3
    (fused,) = unusable(document, H200)
    assert fused.startswith("trsm_fused_simt d left_colmajor 512x32: fragment_bytes")


def test_a_file_without_values_is_refused(capsys, tmp_path):
    assert wisdom("import", written(tmp_path, Document(H200.name), H200.name)) == 2
    assert "it holds no values" in capsys.readouterr().err
    assert not user_file(H200.name).exists()
