from __future__ import annotations

from importlib.util import find_spec

import pytest

collect_ignore_glob = [f"test_{name}_*.py" for name in ("torch", "jax") if find_spec(name) is None]


@pytest.fixture(autouse=True)
def seeded(request):
    if request.node.path.name.startswith("test_torch_"):
        import torch

        torch.manual_seed(2011)
        torch._dynamo.reset()
