"""Runs the programs of hlo/ in JAX and compares them with JAX's own functions on the same inputs.

The way from HLO text into JAX is private API of the pinned version (python/requirements.txt).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax._src.interpreters import mlir
from jax._src.lib import xla_client
from jaxlib import _hlo
from jaxlib.mlir import ir

jax.config.update("jax_enable_x64", True)
FOLDER = Path(__file__).resolve().parent.parent / "hlo"


def load(name: str) -> Any:
    """The program as a function of NumPy arrays that returns a list of them."""
    module = _hlo.hlo_module_from_text((FOLDER / f"{name}.hlo.txt").read_text())
    computation = xla_client.XlaComputation(module.as_serialized_hlo_module_proto())
    text = xla_client._xla.mlir.xla_computation_to_mlir_module(computation)
    backend = jax.local_devices()[0].client
    with mlir.make_ir_context():
        parsed = ir.Module.parse(text)
        devices = xla_client.DeviceList(tuple(jax.local_devices()[:1]))
        executable = backend.compile_and_load(parsed, devices, xla_client.CompileOptions())

    def call(*arguments: np.ndarray) -> list[np.ndarray]:
        results = executable.execute_sharded([jax.device_put(a) for a in arguments])
        return [np.asarray(r[0]) for r in results.disassemble_into_single_device_arrays()]

    return call


def network(rng: np.random.Generator, sizes: list[int], dtype: type) -> list[np.ndarray]:
    flat = []
    for fan_in, fan_out in zip(sizes[:-1], sizes[1:]):
        flat.append(rng.normal(size=(fan_out, fan_in)).astype(dtype) * np.sqrt(2 / fan_in).astype(dtype))
        flat.append(rng.uniform(-3, 3, fan_out).astype(dtype))
    return flat


def layers(flat: list[Any], x: jax.Array) -> list[jax.Array]:
    """h_0 .. h_L, and the output."""
    values = []
    for w, b in zip(flat[:-2:2], flat[1:-2:2]):
        x = jnp.sin(x @ w.T + b)
        values.append(x)
    return values + [x @ flat[-2].T + flat[-1]]


def adam(flat: list[Any], m: list[Any], v: list[Any], t: Any, x: Any, y: Any, rate: Any) -> list[jax.Array]:
    loss, grads = jax.value_and_grad(lambda f: jnp.mean((layers(f, x)[-1] - y) ** 2))(flat)
    t = t + 1
    m = [0.9 * m + 0.1 * g for m, g in zip(m, grads)]
    v = [0.999 * v + 0.001 * g * g for v, g in zip(v, grads)]
    new = [p - rate * (m / (1 - 0.9**t)) / (jnp.sqrt(v / (1 - 0.999**t)) + 1e-8) for p, m, v in zip(flat, m, v)]
    return [*new, *m, *v, t, loss]


def compare(name: str, got: list[np.ndarray], want: list[Any], tolerance: float) -> None:
    assert len(got) == len(want), f"{name}: {len(got)} results for {len(want)}"
    worst = 0.0
    for i, (g, w) in enumerate(zip(got, want)):
        w = np.asarray(w)
        assert g.shape == w.shape and g.dtype == w.dtype, f"{name} {i}: {g.dtype}{g.shape} for {w.dtype}{w.shape}"
        error = float(np.abs(g - w).max() / max(np.abs(w).max(), 1e-30))
        assert error <= tolerance, f"{name}, result {i}: off by {error:.2e} of its maximum"
        worst = max(worst, error)
    print(f"{name}: {len(got)} results as JAX's, worst {worst:.1e} of the maximum")


def main() -> None:
    rng = np.random.default_rng(3)
    flat = network(rng, [2, 16, 16, 16, 16, 1], np.float32)
    x, y = rng.uniform(-1, 1, (8, 2)).astype(np.float32), rng.normal(size=(8, 1)).astype(np.float32)
    compare("siren_forward", load("siren_forward")(*flat, x), [layers(flat, x)[-1]], 1e-5)

    m = [rng.normal(size=p.shape).astype(np.float32) * 0.1 for p in flat]
    v = [rng.uniform(0.1, 1, p.shape).astype(np.float32) for p in flat]
    t, rate = np.float32(4), np.float32(1e-3)
    with jax.enable_x64(False):
        want = [np.asarray(w) for w in adam(flat, m, v, t, x, y, rate)]
    compare("regression_step", load("regression_step")(*flat, *m, *v, t, x, y, rate), want, 1e-5)

    deep = network(rng, [1, 8, 8, 8, 8, 1], np.float64)
    points = rng.uniform(-1, 1, (2, 1))
    rest = lambda h: layers(deep[4:], h)[-2]
    first = lambda x: layers(deep, x)[1]
    want = [jax.vmap(lambda x: jax.jacrev(rest)(first(x)))(points)]
    compare("hidden_jacobian", load("hidden_jacobian")(*deep[:8], points), want, 1e-12)


if __name__ == "__main__":
    main()
