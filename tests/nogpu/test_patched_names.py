"""What a patch binds in modules, and what becomes of it elsewhere: names, copies, pickles, workers."""

from __future__ import annotations

import copy
import importlib.util
import os
import pickle
import subprocess
import sys
from functools import partial
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
import scipy.linalg
import scipy.linalg.blas
import scipy.linalg.lapack
from patched import ORIGINALS, nothing_is_left_behind, taken  # noqa: F401 - the fixture

from pyblasgpu.patches.rebinding import rebind
from pyblasgpu.patches.routed_importlib_bootstrap import Getter, Routed

A, B = np.diag([4.0, 9.0, 16.0]), np.arange(6.0).reshape(3, 2)


@pytest.fixture
def program():
    """A module that has imported names of SciPy's."""
    module = ModuleType("a_program")
    exec("from scipy.linalg import cholesky, solve as s\nfrom scipy.linalg.blas import dgemm", vars(module))
    sys.modules["a_program"] = module
    yield module
    del sys.modules["a_program"]


def test_names_that_are_imported_are_rebound_and_given_back(program):
    with taken() as patch:
        program.cholesky(A)
        program.s(A, B)
        program.dgemm(1.0, A, A)
        assert patch.calls == {"cholesky": 1, "solve": 1, "gemm": 1}
    assert program.cholesky is ORIGINALS["cholesky"] and program.s is ORIGINALS["solve"]
    assert type(program.dgemm).__name__ == "fortran"


def test_names_that_are_imported_meanwhile_are_given_back(program):
    with taken() as patch:
        exec("from scipy.linalg import inv", vars(program))
        program.inv(A)
        assert patch.calls == {"inv": 1}
    assert program.inv is ORIGINALS["inv"]


def test_what_is_kept_elsewhere_goes_back_to_scipy():
    with taken() as patch:
        kept = [scipy.linalg.cholesky]
    np.testing.assert_array_equal(kept[0](A), ORIGINALS["cholesky"](A))
    assert not patch.calls


# ------------------------------------------------------------------------------------------- other modules


@pytest.fixture
def module(monkeypatch):
    """Return a function that puts an object into `sys.modules`."""

    def put(name, value):
        monkeypatch.setitem(sys.modules, name, value)
        return value

    return put


def test_what_is_not_loaded_stays_so(module, tmp_path):
    (tmp_path / "lazy_program.py").write_text("loaded = True\nfrom scipy.linalg import cholesky")
    spec = importlib.util.spec_from_file_location("lazy_program", tmp_path / "lazy_program.py")
    spec.loader = importlib.util.LazyLoader(spec.loader)
    lazy = module("lazy_program", importlib.util.module_from_spec(spec))
    spec.loader.exec_module(lazy)
    (tmp_path / "broken_program.py").write_text("raise ImportError('cannot be loaded')")
    spec = importlib.util.spec_from_file_location("broken_program", tmp_path / "broken_program.py")
    spec.loader = importlib.util.LazyLoader(spec.loader)
    broken = module("broken_program", importlib.util.module_from_spec(spec))
    spec.loader.exec_module(broken)
    with taken() as patch:
        assert "loaded" not in object.__getattribute__(lazy, "__dict__")
        lazy.cholesky(A)  # it is loaded now, and finds the replacement
        assert patch.calls == {"cholesky": 1}
    assert lazy.cholesky is ORIGINALS["cholesky"]
    with pytest.raises(ImportError, match="cannot be loaded"):
        broken.name  # noqa: B018


class Raising(ModuleType):
    """A module whose attributes raise."""

    def __getattribute__(self, name):
        raise RuntimeError(f"{name} is looked at")


class Changing(ModuleType):
    """A module that imports another one when it is looked at."""

    def __getattribute__(self, name):
        sys.modules[f"changed_{len(sys.modules)}"] = ModuleType("changed")
        return super().__getattribute__(name)


class WithoutClass:
    """An object that is no module and raises when it is taken for one."""

    @property
    def __class__(self):
        raise RuntimeError("its class is looked at")

    def __getattr__(self, name):
        raise RuntimeError(f"{name} is looked at")


def test_other_objects_in_sys_modules(module):
    raising = Raising("raising")
    ModuleType.__dict__["__dict__"].__get__(raising)["solve"] = scipy.linalg.solve
    values = [None, 3, "text", object(), WithoutClass(), raising, Changing("changing")]
    for number, value in enumerate([*values, ModuleType.__new__(ModuleType), SimpleNamespace(inv=1)]):
        module(f"object_{number}", value)
    module(None, ModuleType("of no name"))
    names = set(sys.modules)
    with taken() as patch:
        assert set(sys.modules) == names
        ModuleType.__dict__["__dict__"].__get__(raising)["solve"](A, B)
        assert patch.calls == {"solve": 1}
    assert ModuleType.__dict__["__dict__"].__get__(raising)["solve"] is ORIGINALS["solve"]


def test_names_that_another_thread_binds_meanwhile_stay(program):
    """The dictionary of the module changes between the look and the write."""

    def own():
        """The program's."""

    class Replacements(dict):
        def get(self, key, default=None):
            if key == id(own):
                program.own, program.new = len, min  # by another thread
            return super().get(key, default)

    program.own = own
    rebind(Replacements({id(own): max}))
    assert program.own is len and program.new is min


# ------------------------------------------------------------------------------------- copies and pickles


def every_replacement():
    """The replacement and the original of each function that the patch binds."""
    homes = scipy.linalg, scipy.linalg.blas, scipy.linalg.lapack, np.linalg
    found = [each for home in homes for each in vars(home).values() if type(each) in (Getter, Routed)]
    assert len(found) > 80
    return [(each, each.__wrapped__) for each in found]


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_pickles(protocol):
    with taken(numpy=True):
        replacements = every_replacement()
        for replacement, _ in replacements:
            text = pickle.dumps(replacement, protocol)
            assert pickle.loads(text) is replacement  # noqa: S301
        (gemm,) = scipy.linalg.get_blas_funcs(("gemm",), (A,))
        potrf = scipy.linalg.get_lapack_funcs("potrf", (A,))
        looked_up = pickle.dumps([gemm, partial(potrf, lower=1)], protocol)
        assert pickle.loads(looked_up)[0] is gemm  # noqa: S301
    for replacement, original in replacements:  # kept beyond the patch
        assert pickle.loads(pickle.dumps(replacement, protocol)) is original  # noqa: S301
    gemm, potrf = pickle.loads(looked_up)  # noqa: S301
    assert gemm is scipy.linalg.blas.dgemm and potrf.func is scipy.linalg.lapack.dpotrf


def test_copies():
    with taken(numpy=True):
        replacements = every_replacement()
        for replacement, _ in replacements:
            assert copy.copy(replacement) is copy.deepcopy(replacement) is replacement
    for replacement, _ in replacements:  # beyond the patch
        assert copy.copy(replacement) is copy.deepcopy(replacement) is replacement
    kept = copy.deepcopy({"solver": [replacement, partial(replacement)]})
    assert kept["solver"][0] is kept["solver"][1].func is replacement


#: What a worker does with functions that it was sent: whether pyblasgpu is there, and what they compute.
WORKER = """
import pickle, sys
patched = sys.argv[1] == "patched"
if patched:
    from pyblasgpu import patch_scipy
    patch = patch_scipy(backend="cpu", thresholds=0, numpy=True)
import numpy as np
functions, a = pickle.load(sys.stdin.buffer)
results = [functions[0](a, lower=True), functions[1](1.0, a, a), functions[2](("gemm",), (a,))[0](1.0, a, a)]
results.append(functions[3](a))
assert all(np.allclose(x, y) for x, y in zip(results, [a ** 0.5, a @ a, a @ a, np.diag(1 / np.diag(a))]))
print(sorted(patch.calls.items()) if patched else "pyblasgpu" in sys.modules)
"""


@pytest.mark.parametrize("state", ["patched", "plain"])
def test_a_worker_resolves_what_it_is_sent(state):
    with taken(numpy=True):
        functions = [
            scipy.linalg.cholesky,
            scipy.linalg.blas.dgemm,
            scipy.linalg.get_blas_funcs,
            np.linalg.inv,
        ]
        sent = pickle.dumps((functions, A))
    command = [sys.executable, "-c", WORKER, state]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    run = subprocess.run(command, input=sent, capture_output=True, env=environment, timeout=100)
    expected = [("cholesky", 1), ("gemm", 2), ("inv", 1)] if state == "patched" else False
    assert run.stdout.decode().strip() == str(expected), run.stderr.decode()


def test_a_replacement_looks_like_the_original():
    with taken():
        replaced = scipy.linalg.cholesky
        assert replaced.__name__ == "cholesky" and replaced.__doc__ == ORIGINALS["cholesky"].__doc__
        assert replaced.__wrapped__ is ORIGINALS["cholesky"] and "cholesky" in repr(replaced)
        with pytest.raises(AttributeError, match="no_such_name"):
            replaced.no_such_name  # noqa: B018
