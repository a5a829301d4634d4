"""Composed derivatives in JAX, in f64: the values that tests/golden/composed.rs holds ours to.

Run by .ci/run, it recomputes them and compares with tests/golden/composed.safetensors; `--write` writes that file.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Callable

import jax
import jax.numpy as jnp
import numpy as np
from safetensors.numpy import load_file, save_file

jax.config.update("jax_enable_x64", True)
FILE = Path(__file__).resolve().parents[2] / "tests/golden/composed.safetensors"
Arrays = tuple[jax.Array, ...]


def inputs() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(7)
    shapes = {"w": (4, 3), "b": (4,), "c": (4,), "x": (5, 3), "h": (4,), "u": (4, 4), "e": (7, 4)}
    values = {name: rng.normal(size=shape) for name, shape in shapes.items()}
    values["tokens"] = np.array([3, 0, 6, 3, 2], np.int32)
    values["targets"] = np.array([0, 6, 3, 2, 5], np.int32)
    return values


def unit(w: jax.Array, b: jax.Array, c: jax.Array, x: jax.Array) -> jax.Array:
    """One example of a small network, a scalar."""
    return jnp.sin(c @ jnp.tanh(w @ x + b))


def grad_of_vmap(v: dict[str, jax.Array]) -> Arrays:
    loss = lambda w, b: jnp.sum(jax.vmap(lambda x: unit(w, b, v["c"], x))(v["x"]) ** 2)
    return jax.grad(loss, (0, 1))(v["w"], v["b"])


def vmap_of_grad(v: dict[str, jax.Array]) -> Arrays:
    return jax.vmap(jax.grad(unit, (0, 3)), (None, None, None, 0))(v["w"], v["b"], v["c"], v["x"])


def jacobian_of_vmap(v: dict[str, jax.Array]) -> Arrays:
    return (jax.jacfwd(lambda w: jax.vmap(lambda x: jnp.tanh(w @ x + v["b"]))(v["x"]))(v["w"]),)


def second_derivatives(v: dict[str, jax.Array]) -> Arrays:
    f = lambda x: unit(v["w"], v["b"], v["c"], x) * jnp.exp(-(x @ x) / 4)
    one = lambda t: f(t * v["x"][0])
    third = jax.grad(jax.grad(jax.grad(one)))(0.7)
    return jax.hessian(f)(v["x"][0]), jax.vmap(jax.hessian(f))(v["x"]), third


def recurrent(v: dict[str, jax.Array]) -> Arrays:
    def loss(u: jax.Array, w: jax.Array, h: jax.Array, x: jax.Array) -> jax.Array:
        def cell(h: jax.Array, x: jax.Array) -> tuple[jax.Array, jax.Array]:
            h = jnp.tanh(u @ h + w @ x)
            return h, jnp.sum(h**3)

        h, ys = jax.lax.scan(cell, h, x)
        return jnp.sum(h) + ys @ jnp.arange(1.0, 6.0)

    grads = jax.grad(loss, (0, 1, 2, 3))(v["u"], v["w"], v["h"], v["x"])
    curvature = jax.hessian(loss, 2)(v["u"], v["w"], v["h"], v["x"])
    per_start = jax.vmap(jax.grad(loss, 2), (None, None, 0, None))(v["u"], v["w"], v["e"], v["x"])
    return (*grads, curvature, per_start)


def control_flow(v: dict[str, jax.Array]) -> Arrays:
    def branchy(x: jax.Array) -> jax.Array:
        return jax.lax.cond(x.sum() > 0, lambda x: jnp.sin(x) @ x, lambda x: jnp.exp(x).sum(), x)

    def halve(x: jax.Array) -> jax.Array:
        return jax.lax.while_loop(lambda y: (y**2).sum() > 0.5, lambda y: y * 0.7 + 0.01 * jnp.sin(x), x)

    slopes = jax.vmap(jax.grad(branchy))(v["x"])
    tangents = jax.vmap(lambda x: jax.jvp(halve, (x,), (jnp.cos(x),))[1])(v["x"])
    return slopes, tangents


def attention(v: dict[str, jax.Array]) -> Arrays:
    """A causal attention block with embedding, RMSNorm, residual and cross-entropy."""

    def loss(e: jax.Array, u: jax.Array) -> jax.Array:
        def block(h: jax.Array) -> jax.Array:
            n = h * jax.lax.rsqrt((h**2).mean(-1, keepdims=True) + 1e-6)
            scores = (n @ u) @ n.T / 2.0
            scores = jnp.where(jnp.tril(jnp.ones((5, 5), bool)), scores, -jnp.inf)
            return h + jax.nn.softmax(scores, -1) @ jax.nn.gelu(n @ u.T, approximate=False)

        h = jax.checkpoint(block)(e[v["tokens"]])
        logits = h @ e.T
        picked = jnp.take_along_axis(logits, v["targets"][:, None], 1)[:, 0]
        return jnp.mean(jax.nn.logsumexp(logits, -1) - picked)

    value, grads = jax.value_and_grad(loss, (0, 1))(v["e"], v["u"])
    return (value, *grads)


def orders(v: dict[str, jax.Array]) -> Arrays:
    def f(x: jax.Array) -> jax.Array:
        ranked = jnp.sort(x, axis=0)
        total = jnp.cumsum(ranked * jnp.sin(x), axis=0)
        return jnp.sum(total**2) + jnp.sum(jnp.max(x, axis=1) ** 3) + jnp.sum(x[jnp.argmax(x, axis=0), jnp.arange(3)])

    return jax.grad(f)(v["x"]), jax.hessian(f)(v["x"])


def choices(v: dict[str, jax.Array]) -> Arrays:
    """Values and derivatives where they are a choice: at 0, at ties, beside a dead branch that is not finite."""
    at = jnp.array([-1.0, -0.0, 0.0, 2.0])
    zero = jnp.zeros(4)
    return (
        jax.vmap(jax.grad(jnp.abs))(at),
        jax.vmap(jax.grad(lambda x: jnp.maximum(x, 0.0)))(at),
        jax.vmap(jax.grad(jax.nn.relu))(at),
        jax.vmap(jax.grad(lambda x: jnp.where(x > 0, jnp.sqrt(jnp.where(x > 0, x, 1.0)), 0.0)))(at),
        jax.grad(lambda x: jnp.max(x))(jnp.array([1.0, 3.0, 3.0, 2.0])),
        jax.vmap(jax.grad(lambda x, y: x**y, (0)), (0, None))(jnp.array([0.0, 1.0, 2.0, 3.0]), 2.0),
        jax.vmap(jax.grad(lambda y: jnp.power(0.0, y)))(jnp.array([1.0, 2.0, 2.5, 3.0])) + zero,
        jax.vmap(jax.grad(jax.nn.sigmoid))(jnp.array([-90.0, 0.0, 90.0, 800.0])),
    )


CASES: tuple[Callable[[dict[str, jax.Array]], Arrays], ...] = (
    grad_of_vmap,
    vmap_of_grad,
    jacobian_of_vmap,
    second_derivatives,
    recurrent,
    control_flow,
    attention,
    orders,
    choices,
)


def main() -> None:
    values = inputs()
    computed = {f"in.{name}": value for name, value in values.items()}
    arrays = {name: jnp.asarray(value) for name, value in values.items()}
    for case in CASES:
        for i, result in enumerate(case(arrays)):
            computed[f"{case.__name__}.{i}"] = np.array(result, order="C")
    if "--write" in sys.argv:
        save_file(computed, FILE, metadata={"jax": jax.__version__})
        return
    stored = load_file(FILE)
    assert stored.keys() == computed.keys(), sorted(stored.keys() ^ computed.keys())
    for name, value in computed.items():
        np.testing.assert_allclose(stored[name], value, rtol=1e-10, atol=1e-12, err_msg=name)
    print(f"{len(computed)} arrays of {len(CASES)} composed functions are as stored, jax {jax.__version__}")


if __name__ == "__main__":
    main()
