"""The handler in XLA's threads: errors, threads, the end of the process, several devices."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax_cases import OF_SHARDS, called_by_threads, spd

import pyblasgpu.jax as ours
from pyblasgpu.jax import handler, interface

HEADER = "import jax, jax.numpy as jnp, pyblasgpu.jax as ours\n"


def run(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """A program of its own; one that hangs fails."""
    return subprocess.run(
        [sys.executable, "-c", HEADER + code],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, **environment},
    )


def test_an_exception_in_a_handler_is_the_programs_error(monkeypatch):
    def fails(text):
        raise MemoryError("nothing left")

    monkeypatch.setattr(handler, "on_processor", fails)
    with pytest.raises(jax.errors.JaxRuntimeError, match=r"pyblasgpu: gemm: MemoryError: nothing left"):
        jax.block_until_ready(jax.jit(ours.matmul)(jnp.ones((3, 5)), jnp.ones((5, 3))))
    monkeypatch.undo()
    np.testing.assert_array_equal(ours.matmul(jnp.ones((3, 5)), jnp.ones((5, 3))), np.full((3, 3), 5.0))


def test_calls_from_several_threads_while_the_main_one_is_busy():
    a = spd(np.dtype("float64"), 60, 60)
    step = jax.jit(lambda a: ours.matmul(a, a) / 300)
    called_by_threads(step, a, np.asarray(a @ a / 300), 20)


@pytest.mark.parametrize("end", ["", "del y", "y.block_until_ready()"], ids=["kept", "dropped", "awaited"])
def test_a_program_ends_while_calls_are_pending(end):
    code = f"""
f = jax.jit(lambda a: ours.cholesky(ours.matmul(a, a.T) + jnp.eye(800) * 800) @ a)
a = jnp.ones((800, 800))
f(a).block_until_ready()
for _ in range(5):
    y = f(a)
{end}
"""
    ended = run(code)
    assert (ended.returncode, ended.stderr) == (0, "")


def test_an_import_begins_no_device():
    """Neither at once nor at the end of the process."""
    ended = run("", JAX_PLATFORMS="no_such_platform")
    assert (ended.returncode, ended.stderr) == (0, "")


def test_several_devices():
    """`shard_map` runs a handler on each; operands that do not vary are made to."""
    code = """
import numpy as np
from functools import partial
from jax.sharding import Mesh, PartitionSpec as P, NamedSharding
jax.config.update("jax_enable_x64", True)
mesh = Mesh(np.array(jax.devices()), ("i",))
assert len(jax.devices()) == 2
k = jnp.stack([jnp.eye(4) * i + 0.1 for i in range(1, 5)])
b = jnp.ones((4, 3))

@partial(jax.shard_map, mesh=mesh, in_specs=(P("i"), P()), out_specs=P("i"))
def solved(k, b):
    return ours.cho_solve(ours.cho_factor(k, lower=True), b)

np.testing.assert_allclose(solved(k, b), jnp.linalg.solve(k, b[None]))

"""
    after = """
for found, expected in zip(jax.grad(value, (0, 1))(k, b), jax.grad(plain, (0, 1))(k, b)):
    np.testing.assert_allclose(found, expected, 1e-9)
sharded = jax.device_put(k, NamedSharding(mesh, P("i")))
np.testing.assert_allclose(jax.jit(ours.cholesky)(sharded), jnp.linalg.cholesky(k))

explicit = jax.make_mesh((2,), ("i",), axis_types=(jax.sharding.AxisType.Explicit,))
with jax.set_mesh(explicit):
    sharded = jax.device_put(k, NamedSharding(explicit, P("i")))
    found = jax.jit(jax.grad(lambda k: ours.solve(k, k).sum() + ours.slogdet(k)[1].sum()))(sharded)
np.testing.assert_allclose(found, jnp.linalg.inv(k).mT, 1e-9, 1e-12)
assert found.sharding.spec[0] == "i"
"""
    ended = run(code + OF_SHARDS + after, XLA_FLAGS="--xla_force_host_platform_device_count=2")
    assert ended.returncode == 0, ended.stderr


def test_a_newer_interface_of_another_number_is_refused():
    version = interface.Version.new(major=1, minor=0)
    api = interface.Api.new(version=version)
    metadata = interface.Metadata()
    extension = interface.MetadataExtension(
        base=interface.Extension(type=1), metadata=ctypes.pointer(metadata)
    )
    frame = interface.CallFrame.new(api=ctypes.pointer(api), extension_start=ctypes.addressof(extension))
    with pytest.raises(RuntimeError, match=r"interface is 1\.0; known is 0\.4"):
        interface.answer_metadata(frame, 0)
    version.major, version.minor = 0, 3
    api.version = version
    assert interface.answer_metadata(frame, interface.CAPTURED)
    assert metadata.traits == interface.CAPTURED and metadata.api_version.minor == 3


def test_unused_calls_are_no_part_of_a_program():
    text = jax.jit(lambda a: (ours.matmul(a, a), a)[1]).lower(jnp.eye(3)).compile().as_text()
    assert handler.TARGET not in text


def test_a_result_in_place_is_no_copy():
    """An operand that the program computes gives its memory to the result."""
    code = """
program = jax.jit(lambda a: ours.solve_triangular(a, jnp.sin(a), lower=True))
print(program.lower(jnp.eye(30)).compile().as_text())
"""
    (call,) = [line for line in run(code).stdout.splitlines() if " custom-call(" in line]
    assert "output_to_operand_aliasing" in call
    assert "%copy" not in call
