from __future__ import annotations

from importlib.util import find_spec

import pytest

if find_spec("torch") is None:
    collect_ignore_glob = ["test_torch_*.py"]


@pytest.fixture(autouse=True)
def seeded():
    import torch

    torch.manual_seed(2011)
    torch._dynamo.reset()
