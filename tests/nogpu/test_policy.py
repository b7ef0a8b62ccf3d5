"""The numbers by which dispatch decides: measured on one device, computed for others, overlaid by files."""

from __future__ import annotations

import ast
import io
import json
import re
import tokenize
from dataclasses import fields, replace

import pytest
from import_graph import PACKAGE

from pyblasgpu import cli
from pyblasgpu.api.explain import explain
from pyblasgpu.database import FIXED, Document, dumps, parse, policy
from pyblasgpu.database.policy import Policy, computed, reference
from pyblasgpu.dispatch import choose, tuned_files
from pyblasgpu.dispatch.algorithms import TRSM_FUSED, trsm_algorithm
from pyblasgpu.dispatch.catalogue import fixed_kernels
from pyblasgpu.errors import DatabaseWarning
from pyblasgpu.gpu.device import known
from pyblasgpu.types import DTYPES

H200, B200 = known("h200"), known("b200")
OTHERS = ("a100", "rtx4090", "b200")


def test_the_reference_has_what_was_measured_on_it():
    file = json.loads((PACKAGE / "database" / "policy.json").read_text())
    assert file["device"] == H200.name and set(file["policy"]) == {each.name for each in fields(Policy)}
    assert computed(H200) is reference()
    assert all(policy.described().values())


@pytest.mark.parametrize("name", OTHERS)
def test_another_device_has_what_its_description_says(name):
    device, own = known(name), computed(known(name))
    sms = device.sm_count / H200.sm_count
    assert own.fused_trsm_max_elements["d"] == int(reference().fused_trsm_max_elements["d"] * sms)
    clock = H200.clock_mhz / device.clock_mhz
    assert own.cycle_seconds == pytest.approx(reference().cycle_seconds * clock)
    l2 = device.l2_bytes / H200.l2_bytes
    assert own.symv_small_max_bytes["s"] == int(reference().symv_small_max_bytes["s"] * l2)
    doubles = sms / clock * device.lanes_float64 / H200.lanes_float64
    assert own.int8_fma_rate == pytest.approx(reference().int8_fma_rate * doubles)
    assert own.launch_seconds == reference().launch_seconds


@pytest.mark.parametrize("name", OTHERS)
def test_values_differ_from_the_references_where_arithmetic_says_so(name):
    device, own, there = known(name), computed(known(name)), reference()
    sms, clock = device.sm_count / H200.sm_count, device.clock_mhz / H200.clock_mhz
    doubles = sms * clock * device.lanes_float64 / H200.lanes_float64
    ratios = {
        "sm": own.fp16_min_work / there.fp16_min_work,
        "clock": there.cycle_seconds / own.cycle_seconds,
        "l2": own.symv_small_max_bytes["d"] / there.symv_small_max_bytes["d"],
        "float64": own.int8_fma_rate / there.int8_fma_rate,
        "dram": own.int8_bytes_per_second / there.int8_bytes_per_second,
    }
    by_description = {
        "sm": sms,
        "clock": clock,
        "l2": device.l2_bytes / H200.l2_bytes,
        "float64": doubles,
        "dram": device.dram_bytes * device.clock_mhz / (H200.dram_bytes * H200.clock_mhz),
    }
    assert ratios == pytest.approx(by_description, rel=1e-6)
    # a call of doubles is bound by its transfers up to an order that goes with the rate of products
    narrow = own.narrow_tiles_max_order["d"] / there.narrow_tiles_max_order["d"]
    assert abs(narrow - doubles) * there.narrow_tiles_max_order["d"] <= 128 or narrow == 256 / 8192
    # orders go with the root of the multiprocessors, in multiples of 64
    for which in ("getrf_lookahead", "potrf_lookahead"):
        for width, least in getattr(own, which).items():
            before = getattr(there, which)[width]
            assert least % 64 == 0 and abs(least - before * sms**0.5) <= 32
    # limits of libraries, launches and tiles are no matter of the card's size
    for which in ("launch_seconds", "trsm_stop", "lookahead_tiles", "streamed_min_bytes", "routed_min_size"):
        assert getattr(own, which) == getattr(there, which)


def test_refinement_pays_early_where_float64_is_slow():
    assert computed(known("rtx4090")).getrf_refined_min_order < reference().getrf_refined_min_order / 8
    assert computed(known("b200")).potrf_lookahead["256"] % 64 == 0


def test_a_device_of_which_little_is_known_has_the_references():
    unknown = replace(known("sm_80"), clock_mhz=0.0, l2_bytes=0)
    assert computed(unknown).cycle_seconds == reference().cycle_seconds
    assert computed(unknown).symv_small_max_bytes == reference().symv_small_max_bytes


@pytest.fixture
def files(monkeypatch, tmp_path, request):
    monkeypatch.setenv("PYBLASGPU_HOME", str(tmp_path))
    request.addfinalizer(choose.reload)

    def write(document) -> None:
        path = tuned_files.user_file(B200.name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dumps(document))
        choose.reload()

    return write


def test_the_users_values_come_first_and_explain_says_so(files):
    def decided():
        return trsm_algorithm(DTYPES["d"], 1000, 100000, 1, B200)

    assert decided().name != TRSM_FUSED
    assert decided().origin == "computed from NVIDIA H200's, fused_trsm_max_elements"
    values = {"fused_trsm_max_rhs": {"d": 1 << 20}, "fused_trsm_max_elements": {"d": 1 << 40}}
    files(Document(B200.name, policy=values))
    own = tuned_files.policy_of(B200)
    assert own.fused_trsm_max_rhs == {**reference().fused_trsm_max_rhs, "d": 1 << 20}
    assert decided().name == TRSM_FUSED and decided().origin.startswith("measured here, ")
    assert tuned_files.policy_origin("trsv_min_order", H200) == "packaged for NVIDIA H200"
    assert tuned_files.policy_origin("trsv_min_order", known("a100")) == "computed from NVIDIA H200's"


def test_a_document_keeps_its_values():
    values = {"getrf_lookahead": {"64": 512}, "trsv_min_order": 100, "symv_small_max_bytes": {"z": 7}}
    again = parse(dumps(Document("any", policy=values)).encode())
    assert again.policy == values and len(again) == 3
    merged = policy.merged(reference(), again.policy)
    assert merged.getrf_lookahead == {"64": 512}, "widths are replaced as a whole"
    assert merged.symv_small_max_bytes == {**reference().symv_small_max_bytes, "z": 7}


@pytest.mark.parametrize(
    ("values", "problem"),
    [
        ({"no_such": 1}, "policy: 'no_such' is unknown"),
        ({"trsv_min_order": -1}, "policy.trsv_min_order: -1"),
        ({"trsv_min_order": True}, "policy.trsv_min_order: True"),
        ({"trsv_min_order": "7"}, "policy.trsv_min_order: '7'"),
        ({"trsm_stop": 7}, "policy.trsm_stop is no object"),
        ({"trsm_stop": {}}, "policy.trsm_stop is no object"),
        ({"trsm_stop": {"x": 7}}, "policy.trsm_stop has a key of another kind"),
        ({"getrf_lookahead": {"d": 7}}, "policy.getrf_lookahead has a key of another kind"),
        ({"trsm_stop": {"s": None}}, "policy.trsm_stop: None"),
    ],
)
def test_values_of_another_form_are_refused(values, problem):
    file = {"schema": 2, "device": "any", "policy": values}
    with pytest.raises(ValueError, match=re.escape(problem)):
        parse(json.dumps(file).encode())


# ------------------------------------------------------------------------- families without a search space


def test_packaged_parameters_are_those_of_configs():
    """Each is the Config of a family, in a dtype that it has, and not the default."""
    file = json.loads((PACKAGE / "database" / "fixed.json").read_text())
    assert file["device"] == H200.name and file["fixed"]
    for stem, by_dtype in file["fixed"].items():
        for letter, parameters in by_dtype.items():
            family = FIXED[stem]
            assert letter in family.dtypes and set(parameters) <= set(family.parameters)
            assert family.parameters_of(family.fixed_config(letter)).items() >= parameters.items()
            assert not parameters.items() <= family.defaults.items()


def test_a_file_replaces_the_parameters_of_a_fixed_family(files):
    def chosen(letter):
        return choose.select("symv", DTYPES[letter], "", (64, 64), B200)

    assert chosen("d").origin == "packaged for NVIDIA H200" and chosen("d").config.WARPS == 4
    broken = {("symv", "s"): {"THR_N": 7}, ("symv", "z"): {"WARPS": 64}}
    document = Document(B200.name, fixed={("symv", "d"): {"WARPS": 8}, **broken})
    assert parse(dumps(document).encode()).fixed == document.fixed and len(document) == 3
    files(document)
    assert chosen("d").origin.startswith("tuned here, ") and chosen("d").config.WARPS == 8
    for letter in "sz":
        with pytest.warns(DatabaseWarning, match=f"symv {letter} is passed over"):
            assert chosen(letter).config == FIXED["symv"].fixed_config(letter)
    assert {source.config.WARPS for source in fixed_kernels("symv", "d", B200)} == {8}


# ------------------------------------------------------------------------------------------ what explain says


@pytest.mark.parametrize(
    ("call", "options", "expected"),
    [
        (("getrf", "d", 4096), {}, {"getrf_lookahead", "lookahead_tiles", "getrf_inner_columns"}),
        (("potrf", "d", 2048), {}, {"potrf_lookahead", "potrf_lookahead_max_order", "lookahead_tiles"}),
        (("trsm", "c", 4096, 8), {}, {"fused_trsm_min_order"}),
        (("trmm", "z", 2048, 8), {}, {"fused_trmm_min_rhs"}),
        (("getrs", "d", 16, 4), {}, {"getrs_small_max_rhs"}),
        (("symv", "s", 1000), {}, {"symv_small_max_bytes"}),
        (("lauum", "s", 400), {}, {"lauum_product_max_order"}),
        (("trtri", "s", 2048), {}, {"trtri_fused_min_order"}),
        (("gemm", "d", 64, 64, 8192), {}, {"launch_seconds", "sum_seconds", "host_seconds"}),
        (("gemm", "s", 512), {"method": "tensor"}, {"fp16_min_work", "fp16_min_extent"}),
        (("gemm", "d", 4096), {"method": "tensor"}, {"int8_rate", "int8_fma_rate"}),
        (("trsm", "s", 4096, 4096), {"method": "tensor"}, {"tensor_trsm_min_order", "tensor_stop"}),
    ],
)
def test_explain_names_what_decided(call, options, expected):
    """A second call gives the same rows, though the launch list is kept."""
    rows = [row for row in explain(*call, device="h200", **options) if row[0] == "policy"]
    names = {value.partition(":")[0]: origin for _, value, origin in rows}
    assert expected <= set(names) and set(names.values()) == {f"packaged for {H200.name}"}
    assert [row for row in explain(*call, device="h200", **options) if row[0] == "policy"] == rows


def test_the_command_prints_what_decided(capsys):
    assert cli.main(["explain", "dgetrf", "4096", "--device", "b200", "--json"]) == 0
    rows = [row for row in json.loads(capsys.readouterr().out) if row["what"] == "policy"]
    origins = {row["value"].partition(":")[0]: row["origin"] for row in rows}
    assert origins["getrf_lookahead"] == origins["trsm_stop"] == "computed from NVIDIA H200's"


def test_explain_names_no_more_than_what_decided():
    rows = explain("trsm", "d", 4096, 512, device="h200") + explain("gemm", "d", 4096, device="h200")
    assert not [row for row in rows if row[0] == "policy"], "files and estimates did"
    computed_rows = explain("trsm", "d", 4096, 8, device="a100")
    assert ("policy", "fused_trsm_min_order: 768", "computed from NVIDIA H200's") in computed_rows


# ------------------------------------------------------------------------------------ constants of no card

CARD = re.compile(r"\b(H100|H200|A100|B200|L40S?|RTX ?\d*|GH200|V100|T4)\b")
#: Folders whose texts say on which card the constants of their estimates were fitted.
MODELS = ("model/", "kernels/level2/gemv_cost.py")


def constants_of_cards(text: str) -> list[int]:
    """Lines of statements that hold a number, and have a comment above or within them that names a card."""
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    named = {each.start[0] for each in tokens if each.type == tokenize.COMMENT and CARD.search(each.string)}
    lines, found = text.splitlines(), []
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, ast.stmt) or isinstance(
            node, ast.FunctionDef | ast.ClassDef | ast.With | ast.If
        ):
            continue
        first = node.lineno
        while first > 1 and lines[first - 2].lstrip().startswith("#"):
            first -= 1
        has_number = any(
            isinstance(each, ast.Constant) and type(each.value) in (int, float) for each in ast.walk(node)
        )
        if has_number and named & set(range(first, (node.end_lineno or node.lineno) + 1)):
            found.append(node.lineno)
    return found


def test_no_constant_is_one_of_a_card():
    """Outside `database` no number stands next to a comment that names a card."""
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        name = path.relative_to(PACKAGE).as_posix()
        if not name.startswith("database/"):
            found[name] = constants_of_cards(path.read_text())
    assert not {name: lines for name, lines in found.items() if lines}


@pytest.mark.parametrize(
    "text",
    [
        "SIZE = 7  # of an H200",
        "# on an H200\n# with 16 cores\nSIZE: dict[str, float] = {\n    'a': 7,\n}",
        "SIZES = {\n    'a': 7,  # A100\n}",
        "def f():\n    return x < 7  # RTX 4090",
        "class A:\n    # B200\n    size: int = 7",
    ],
)
def test_a_constant_of_a_card_is_found(text):
    assert constants_of_cards(text)


def test_texts_name_no_card_whose_numbers_they_hold():
    """A text of a module says so of the constants of an estimate alone."""
    said = [
        path.relative_to(PACKAGE).as_posix()
        for path in sorted(PACKAGE.rglob("*.py"))
        if CARD.search((ast.get_docstring(ast.parse(path.read_text())) or "").replace("'NVIDIA H200'", ""))
    ]
    assert not [name for name in said if not name.startswith(("database/", *MODELS))]
