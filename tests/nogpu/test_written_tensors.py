"""PyTorch's tensors count writes: a gradient that needs the values of before is refused, not wrong."""

from __future__ import annotations

import re
from types import SimpleNamespace

import fake_kernels
import fake_level1
import numpy as np
import pytest
import writing_calls

import pyblasgpu
from pyblasgpu import linalg
from pyblasgpu.api.keyword import vector_calls, vector_pairs
from pyblasgpu.errors import OverlapError
from pyblasgpu.frontend import handle
from pyblasgpu.frontend.arrays import pytorch
from pyblasgpu.frontend.arrays.libraries import Library
from pyblasgpu.frontend.calls import call_cache, engine_lu
from pyblasgpu.gpu import launch

torch = pytest.importorskip("torch")

#: Calls that the stand-ins of a device serve.
ON_A_CARD = re.compile(
    r"pyblasgpu\.(gemm|gemmtr|syr2?k|symm|tr[ms]m|axpy|scal|copy|swap|rotm?|dot|nrm2|iamax)\("
    r"|blas\.d(axpy|scal|copy|swap|rot|gemm|syrk|tr[ms]m)\("
    r"|lapack\.d(potr|potri|getr)"
    r"|linalg\.(?!lu|det)"
)


class CardTensor(torch.Tensor):
    """A tensor in host memory that passes for one on a card."""

    is_cuda = True

    def get_device(self):
        return 0


def on_card(array):
    return torch.from_numpy(np.array(array, order="K")).as_subclass(CardTensor)


def new_on_card(library, shape, dtype, device, stream, swapped=False):
    made = on_card(np.full(shape, -1 if dtype.name[0] == "i" else np.nan, dtype.name))
    return made.swapaxes(-1, -2) if swapped else made


@pytest.fixture
def card(fake, monkeypatch):
    """The fake device, where new tensors are made too."""
    monkeypatch.setattr(pytorch, "torch_stream", lambda: lambda device: 0)
    for name in ("empty", "empty_here"):
        monkeypatch.setattr(type(pytorch.TORCH), name, new_on_card)
    monkeypatch.setattr(type(pytorch.TORCH), "empties", Library.empties)
    for module in (vector_calls, vector_pairs):
        monkeypatch.setattr(module, "routine_module", lambda name: fake_level1.LEVEL1)
    return fake


def test_a_gradient_of_overwritten_values_is_refused():
    w = torch.ones((2, 2), dtype=torch.float64, requires_grad=True)
    m, o = torch.eye(2, dtype=torch.float64), torch.ones((2, 2), dtype=torch.float64)
    y = (w * o).sum()
    pyblasgpu.gemm(m, m, out=o)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.backward()


@pytest.mark.parametrize("case", writing_calls.CASES + writing_calls.HOST_CASES)
def test_what_a_call_changes_has_counted_it(case):
    tensors = {name: torch.from_numpy(array) for name, array in writing_calls.arrays().items()}
    writing_calls.check_counts(case, tensors)


@pytest.mark.filterwarnings("ignore:invalid value encountered in cast")
@pytest.mark.parametrize("case", list(filter(ON_A_CARD.match, writing_calls.CASES)))
def test_repeated_calls_on_a_card_count_too(card, case):
    for _ in range(3):
        tensors = {name: on_card(array) for name, array in writing_calls.arrays().items()}
        writing_calls.check_counts(case, tensors)
    replayed = case.startswith(("pyblasgpu", "lapack")) and "out=z" not in case
    assert call_cache.count() or not replayed


def test_a_plan_counts(monkeypatch):
    fake_kernels.install(monkeypatch)
    monkeypatch.setattr(pytorch, "torch_stream", lambda: lambda device: 0)
    monkeypatch.setattr(
        launch,
        "Graph",
        lambda enqueue, device: SimpleNamespace(launch=lambda stream: enqueue(stream) or True),
    )
    a, b, out, other = (on_card(np.eye(16)) for _ in range(4))
    plan = pyblasgpu.plan_gemm(a, b, out)
    assert out._version == 0
    for count in (1, 2):
        assert plan(a, b, out) is out and out._version == count
    assert plan(a, b, other) is other and other._version == 1
    assert a._version == b._version == 0


@pytest.mark.parametrize("options", [{"devices": "all"}, {"max_device_memory": 5000}], ids=str)
@pytest.mark.parametrize("blocking", [True, False])
def test_calls_by_tiles_count(fake_cards, small_tiles, options, blocking):
    fake_cards()
    a, out = torch.ones((24, 24), dtype=torch.float64), torch.zeros((24, 24), dtype=torch.float64)
    result = pyblasgpu.gemm(a, a, out=out, blocking=blocking, **options)
    assert (result if blocking else result.wait()) is out
    assert torch.equal(out, a @ a) and out._version >= 1 and a._version == 0


def test_a_call_beside_its_caller_counts_before_it_returns(fake_cards, monkeypatch):
    fake_cards()
    monkeypatch.setattr(handle, "Handle", lambda *arguments: "never begun")
    a, out = torch.ones((24, 24), dtype=torch.float64), torch.zeros((24, 24), dtype=torch.float64)
    assert pyblasgpu.gemm(a, a, out=out, blocking=False) == "never begun"
    assert out._version == 1


def test_factors_by_block_columns_count(fake_cards, decide_by, monkeypatch):
    decide_by(tiled_lu_columns=8)
    monkeypatch.setattr(engine_lu, "FEWEST", 8)
    fake_cards()
    a = torch.from_numpy(np.asfortranarray(np.eye(24) * 2))
    with pyblasgpu.use_devices("all"):
        linalg.lu_factor(a, overwrite_a=True, check_finite=False)
    assert a._version >= 1


def test_views_and_parameters_count_with_what_they_are_of():
    base = torch.zeros((4, 4), dtype=torch.float64)
    eye = torch.eye(2, dtype=torch.float64)
    pyblasgpu.gemm(eye, eye, out=base[1:3, ::2])
    assert base._version == 1
    weights = torch.nn.Parameter(torch.eye(2, dtype=torch.float64))
    with torch.no_grad():
        pyblasgpu.gemm(eye, 2 * eye, out=weights)
    assert weights._version == 1
    with torch.inference_mode():
        inferred = torch.zeros((2, 2), dtype=torch.float64)
        assert torch.equal(pyblasgpu.gemm(eye, eye, out=inferred), eye)  # it has no count


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda a, o: pyblasgpu.gemm(a, o, out=o), OverlapError),
        (lambda a, o: pyblasgpu.gemm(a, a[:1], out=o), ValueError),
        (lambda a, o: pyblasgpu.gemm(a, a, out=o, backend="nothing"), ValueError),
        (lambda a, o: linalg.matmul(a, a, out=o[:1]), ValueError),
        (lambda a, o: linalg.einsum("ij,jk->ik", a, a, out=o[0]), ValueError),
        (lambda a, o: linalg.cholesky(o[:1], overwrite_a=True), ValueError),
        (lambda a, o: linalg.solve(a, o * np.nan, overwrite_b=True), ValueError),
    ],
)
def test_what_is_refused_is_not_written(call, error):
    a, o = (torch.ones((2, 2), dtype=torch.float64) for _ in range(2))
    with pytest.raises(error):
        call(a, o)
    assert o._version == a._version == 0
