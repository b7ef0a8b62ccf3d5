from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(2011)
    torch._dynamo.reset()
