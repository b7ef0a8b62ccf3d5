"""Settings hold from their call on, end with a block, and refuse what they do not know."""

from __future__ import annotations

import threading
from contextlib import ExitStack, nullcontext
from contextvars import copy_context

import numpy as np
import pytest

import pyblasgpu
from pyblasgpu import override, patch_scipy, set_math_mode, use_devices
from pyblasgpu.dispatch import tuned_files
from pyblasgpu.dispatch.choose import select
from pyblasgpu.dispatch.overrides import active, get_override
from pyblasgpu.errors import BackendUnavailable
from pyblasgpu.frontend.engine_options import ambient_options
from pyblasgpu.gpu.device import known, stand_ins
from pyblasgpu.kernels.registry import FAMILIES
from pyblasgpu.testing.policies import deciding_by
from pyblasgpu.types import DTYPES


def memory():
    options = ambient_options()
    return options and options.max_device_memory


def min_order():
    return tuned_files.policy_of(known("h200")).tensor_symm_min_order


PACKAGED = min_order()
#: A setting, what it changes, from what and to what; and the call that unsets it.
SETTINGS = {
    "set_math_mode": (set_math_mode, ("tensor",), lambda: get_override("math_mode"), None, "tensor"),
    "override": (override, ("splits", 2), lambda: get_override("splits"), None, 2),
    "use_devices": (use_devices, (None, 1 << 20), memory, None, 1 << 20),
    "deciding_by": (lambda least: deciding_by(tensor_symm_min_order=least), (7,), min_order, PACKAGED, 7),
}
UNSET = {
    "set_math_mode": lambda: set_math_mode(None),
    "override": lambda: override("splits", None),
    "use_devices": use_devices,
}


@pytest.fixture(params=SETTINGS)
def setting(request):
    return SETTINGS[request.param]


@pytest.mark.parametrize("name", UNSET)
def test_it_holds_from_its_call_on(name):
    """In the thread or task alone; the call without a value unsets it."""
    begin, arguments, value, before, after = SETTINGS[name]

    def call_alone():
        begin(*arguments)
        assert value() == after
        UNSET[name]()
        assert value() == before and active() == ()
        begin(*arguments)

    copy_context().run(call_alone)
    assert value() == before


@pytest.mark.parametrize("raises", [False, True])
def test_it_ends_with_its_block(setting, raises):
    begin, arguments, value, before, after = setting
    ends = pytest.raises(OSError, match="of the block") if raises else nullcontext()
    with ends, begin(*arguments):
        assert value() == after
        if raises:
            raise OSError("of the block")
    assert value() == before


def test_blocks_of_settings_made_before(setting):
    """The last one made holds, and all end."""
    begin, arguments, value, before, after = setting
    made = [begin(*arguments), set_math_mode("tensor"), override("raster", 3), begin(*arguments)]
    with ExitStack() as stack:
        for each in made:
            stack.enter_context(each)
        assert value() == after and get_override("raster") == 3
    assert value() == before and active() == ()


def test_what_is_set_in_a_block_under_another_name_stays():
    def call_alone():
        with override("splits", 2):
            override("raster", 3)
        assert active() == (("raster", 3),)
        with override("raster", None):
            assert active() == ()
        assert active() == (("raster", 3),)

    copy_context().run(call_alone)


def test_a_decorator_holds_in_calls_alone(setting):
    begin, arguments, value, before, after = setting

    @begin(*arguments)
    def value_in_it(*, plus=0):
        """Return the function's value."""
        return value(), plus

    assert value() == before and value_in_it.__doc__ == "Return the function's value."
    assert [value_in_it(plus=each) for each in (1, 2)] == [(after, 1), (after, 2)]
    assert value() == before


def generator():
    yield


async def coroutine():
    pass


async def asynchronous_generator():
    yield


@pytest.mark.parametrize("function", [generator, coroutine, asynchronous_generator])
def test_what_works_after_its_call_is_not_decorated(setting, function):
    begin, arguments, value, before, _ = setting
    with pytest.raises(TypeError, match="works after its call"):
        begin(*arguments)(function)
    assert value() == before


def test_it_is_for_one_block_in_its_thread(setting):
    begin, arguments, value, before, _ = setting
    made, problems = begin(*arguments), []

    def enter():
        try:
            made.__enter__()
        except RuntimeError as problem:
            problems.append(str(problem))

    thread = threading.Thread(target=enter)
    thread.start()
    thread.join()
    with made:
        enter()
    enter()
    assert len(problems) == 3 and all("a setting is for one block" in problem for problem in problems)
    assert value() == before


CONFIG = FAMILIES["gemm_simt"].config_class
NOT_ALLOWED = [
    (set_math_mode, ("bogus",), ValueError, "set_math_mode: mode='bogus' is neither 'tensor' nor None"),
    (set_math_mode, (["tensor"],), ValueError, "set_math_mode: mode=.'tensor'. is neither"),
    (set_math_mode, (np.array(["tensor", "tensor"]),), ValueError, "set_math_mode: mode=array"),
    (use_devices, ("some",), ValueError, "use_devices: devices='some' is neither 'all' nor a list"),
    (use_devices, (3,), TypeError, "use_devices: devices=3 is neither 'all' nor a list"),
    (use_devices, ([],), ValueError, "use_devices: devices=.. names none"),
    (use_devices, ([0.5],), TypeError, "use_devices: devices=0.5 is no integer"),
    (use_devices, ([True],), TypeError, "use_devices: devices=True is no integer"),
    (use_devices, (None, -5), ValueError, "use_devices: max_device_memory=-5 is no number of bytes"),
    (use_devices, (None, 0), ValueError, "use_devices: max_device_memory=0 is no number of bytes"),
    (use_devices, (None, 2.5), TypeError, "use_devices: max_device_memory=2.5 is no integer"),
    (use_devices, (None, True), TypeError, "use_devices: max_device_memory=True is no integer"),
    (use_devices, ([-1],), BackendUnavailable, "^use_devices: there is no CUDA device -1"),
    (override, ("gemm_sim", 1), ValueError, "override: name='gemm_sim' is none of .*gemm_simt"),
    (override, (["splits"], 1), ValueError, "override: name=.'splits'. is none of .*splits"),
    (override, ("gemm_simt", 1), TypeError, f"override: gemm_simt=1 is no {CONFIG.__name__}"),
    (override, ("gemm_simt", CONFIG), TypeError, f"override: gemm_simt=.* is no {CONFIG.__name__}"),
    (override, ("layout", "xx"), ValueError, "override: layout='xx' is none of 'nn', 'nt', 'tn', 'tt'"),
    (override, ("math_mode", "tensr"), ValueError, "override: math_mode='tensr' is none of 'tensor'"),
    (override, ("packed", "yes"), ValueError, "override: packed='yes' is neither a bool nor an int"),
    (override, ("prefetch_c", 0.5), ValueError, "override: prefetch_c=0.5 is neither a bool nor an int"),
    (override, ("splits", -1), ValueError, "override: splits=-1 is no int from 0 on"),
    (override, ("splits", True), ValueError, "override: splits=True is no int from 0 on"),
    (override, ("splits", "2"), TypeError, "override: splits='2' is no int"),
    (override, ("splits", [2]), TypeError, "override: splits=.2. is no int"),
    (override, ("trsm", 0), ValueError, "override: trsm=0 is no int from 1 on"),
    (override, ("potrf", 1.5), TypeError, "override: potrf=1.5 is no int"),
    (override, ("lookahead", -1), ValueError, "override: lookahead=-1 is no int"),
    (override, ("trsm_algorithm", "trmm_fused"), ValueError, "trsm_algorithm='trmm_fused' is none of 'trsv'"),
    (override, ("trsm_algorithm", "trsm_fused_0"), ValueError, "'trsm_fused_0' is none of .*trsm_fused_<n>"),
    (override, ("potrf_algorithm", 1), ValueError, "potrf_algorithm=1 is none of 'panels', 'recursion'"),
    (patch_scipy, {"backend": "gpu"}, ValueError, "patch_scipy: backend='gpu' .* is none of auto, cuda"),
    (patch_scipy, {"backend": ["cpu"]}, ValueError, "patch_scipy: backend=.'cpu'. .* is none of auto"),
    (patch_scipy, {"numpy": "yes"}, ValueError, "patch_scipy: numpy='yes' is neither a bool nor an int"),
    (patch_scipy, {"thresholds": -1}, ValueError, "patch_scipy: thresholds has -1, .* no size from 0 to inf"),
    (patch_scipy, {"thresholds": {"solve": -1}}, ValueError, "patch_scipy: thresholds has -1"),
    (patch_scipy, {"thresholds": {1: 5}}, ValueError, "patch_scipy: thresholds names 1; known: .*solve"),
    (lambda: deciding_by(min_order=1), (), ValueError, "deciding_by: min_order is none of .*host_min_order"),
]


@pytest.mark.parametrize(("begin", "arguments", "kind", "message"), NOT_ALLOWED)
def test_arguments_are_checked_in_the_call(begin, arguments, kind, message, monkeypatch):
    monkeypatch.setenv("PYBLASGPU_BACKEND", "cpu")
    options = arguments if isinstance(arguments, dict) else {}
    with pytest.raises(kind, match=message):
        begin(*(() if options else arguments), **options)
    assert active() == () and ambient_options() is None and min_order() == PACKAGED


def test_a_described_device_is_none_to_run_on():
    """The number that `explain` has given it is nobody else's."""
    pyblasgpu.explain("gemm", "d", 64, device="h200")
    assert min(stand_ins) < 0
    for ordinal in stand_ins:
        with pytest.raises(BackendUnavailable, match=f"^use_devices: there is no CUDA device {ordinal}"):
            use_devices([ordinal])


CHOICES = {
    "packed": (True, 0, np.True_, None),
    "splits": (0, 3, np.int64(2), np.array(2), None),
    "trsm_algorithm": ("trsv", "trsm_fused", "trsm_fused_1024", "trsm_small", "recursion", None),
    "trmm_algorithm": ("trmm_fused", "trmm_fused_512", "trmm_small", "trmm_tensor", "recursion"),
    "gemm_simt": (select("gemm_simt", DTYPES["s"], "nn", (512,) * 3, known("h200")).config, None),
}


@pytest.mark.parametrize("name", CHOICES)
def test_values_that_choices_have(name):
    for value in CHOICES[name]:
        with override(name, value):
            assert get_override(name) == value
    assert active() == ()


def test_a_wrong_backend_is_named_with_the_function(monkeypatch):
    square = np.eye(2)
    for backend in ("bogus", 3):
        with pytest.raises(ValueError, match=rf"^gemm: backend={backend!r} \(named by the call\) is none of"):
            pyblasgpu.gemm(square, square, backend=backend)
    monkeypatch.setenv("PYBLASGPU_BACKEND", "bogus")
    with pytest.raises(ValueError, match=r"^gemm: backend='bogus' \(set by PYBLASGPU_BACKEND\) is none of"):
        pyblasgpu.gemm(square, square)


@pytest.mark.parametrize("options", [{"blocking": "no"}, {"blocking": None}, {"progress": []}])
def test_options_of_a_call_are_checked(options):
    square = np.eye(2)
    (name,) = options
    with pytest.raises((TypeError, ValueError), match=rf"^gemm: {name}=.* is neither a"):
        pyblasgpu.gemm(square, square, backend="cpu", **options)
