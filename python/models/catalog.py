"""The toolkit's programs (`hlo list`) written in JAX, independently: same names, same pytrees, at the default sizes."""

from __future__ import annotations

import contextlib
from typing import Any, Callable

import jax
import jax.numpy as jnp
import numpy as np
from models import transformer

Params = dict[str, jax.Array]
BETA = 7.5
GPT = transformer.Gpt(width=16, depth=2, heads=2, vocabulary=32)
GPT_SEL = transformer.Gpt(width=16, depth=2, heads=2, vocabulary=32, sel=transformer.Sel(offset=True, delta_rank=2))
OPTIMIZER = transformer.Optimizer(rate=3e-4, warmup=10, steps=100)


def x64(enabled: bool) -> Any:
    """A context with or without 64 bits, in any release of JAX."""
    if not enabled:
        return contextlib.nullcontext()
    if hasattr(jax, "enable_x64"):
        return jax.enable_x64(True)
    from jax.experimental import enable_x64

    return enable_x64()


# Sine networks


def layers(p: Params, x: jax.Array, first: int = 0) -> jax.Array:
    """h_{first}'s input to the last hidden layer's output."""
    last = max(int(name[2:]) for name in p if name.startswith("W."))
    for layer in range(first, last):
        x = jnp.sin(x @ p[f"W.{layer}"].T + p[f"b.{layer}"])
    return x


def siren_forward(p: Params, x: jax.Array) -> jax.Array:
    last = len(p) // 2 - 1
    return layers(p, x) @ p[f"W.{last}"].T + p[f"b.{last}"]


def hidden_jacobian(p: Params, x: jax.Array) -> jax.Array:
    # All of p's layers are hidden: the output layer is not among them.
    p = p | {"W.4": jnp.zeros(())}
    inner = lambda x: jnp.sin(p["W.1"] @ jnp.sin(p["W.0"] @ x + p["b.0"]) + p["b.1"])
    return jax.vmap(lambda x: jax.jacrev(lambda h: layers(p, h, 2))(inner(x)))(x)


def regression_step(state: dict[str, Any], x: jax.Array, y: jax.Array, rate: jax.Array) -> tuple[dict[str, Any], jax.Array]:
    loss, grads = jax.value_and_grad(lambda p: jnp.mean((siren_forward(p, x) - y) ** 2))(state["params"])
    t = state["t"] + 1
    m = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, state["m"], grads)
    v = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, state["v"], grads)
    move = lambda p, m, v: p - rate * (m / (1 - 0.9**t)) / (jnp.sqrt(v / (1 - 0.999**t)) + 1e-8)
    return {"params": jax.tree.map(move, state["params"], m, v), "m": m, "v": v, "t": t}, loss


# The SEL transform (2607.09967, Section 4 and Appendix A)


def parts(p: Params) -> tuple[jax.Array, jax.Array, jax.Array, jax.Array, jax.Array]:
    """sgn(w), z, the scale of E, E, L; scales are r c^T, L is 0 without a scale."""
    scale = lambda letter: p[f"{letter}.r"][:, None] * p[f"{letter}.c"]
    w = p["w"]
    sign = jnp.where(w >= 0, 1.0, -1.0).astype(w.dtype)
    z = BETA * w * scale("m")
    e = scale("e") * (jnp.exp(-p["n.c"]) if "n.c" in p else 1)
    linear = w * scale("l") if "l.r" in p else jnp.zeros_like(w)
    return sign, z, scale("e"), e * jnp.expm1(jnp.where(z >= 0, z, -z)), linear


def mismatch(p: Params) -> jax.Array:
    sign, _, _, e, linear = parts(p)
    return sign * (e + linear) + (p["d.A"] @ p["d.B"] if "d.A" in p else 0)


def congruent(p: Params) -> jax.Array:
    sign, _, _, e, linear = parts(p)
    return sign * e + linear


def oppose(p: Params) -> jax.Array:
    sign, _, _, e, linear = parts(p)
    return sign * e - linear


def sinh(p: Params) -> jax.Array:
    _, z, scale, _, linear = parts(p)
    return scale * jnp.sinh(z) + linear


def damped(p: Params) -> jax.Array:
    """Eq. 17 without n: sgn(w) (exp((beta - 1) |w|) - exp(-|w|)) / beta."""
    a = jnp.abs(p["w"])
    return jnp.sign(p["w"]) * (jnp.exp((BETA - 1) * a) - jnp.exp(-a)) / BETA


# The transformer


def logits(model: transformer.Gpt) -> Callable[..., jax.Array]:
    return lambda params, tokens: transformer.forward(params, tokens, model)


def loss(model: transformer.Gpt) -> Callable[..., jax.Array]:
    return lambda params, tokens: transformer.loss(params, tokens[:, :-1], tokens[:, 1:], model)


def language_step(model: transformer.Gpt) -> Callable[..., Any]:
    def step(state: dict[str, Any], tokens: jax.Array) -> Any:
        value, grads = jax.value_and_grad(loss(model))(state["params"], tokens[0])
        t, o = state["t"], OPTIMIZER
        rate = transformer.learning_rate(t, o)
        params, m, v, norm = transformer.adamw(
            state["params"], grads, state["m"], state["v"], t + 1, rate, t / o.steps, model.sel, o
        )
        finite = (state["finite"] > 0).astype(jnp.float32)
        return {"params": params, "m": m, "v": v, "t": t + 1, "finite": finite}, {"loss": value, "grad_norm": norm}

    return step


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "siren_forward": siren_forward,
    "hidden_jacobian": hidden_jacobian,
    "regression_step": regression_step,
    "sel_congruent": congruent,
    "sel_mismatch": mismatch,
    "sel_oppose": oppose,
    "sel_exp_only": congruent,
    "sel_damped": damped,
    "sel_sinh": sinh,
    "sel_sinh_only": sinh,
    "sel_offset_residual": mismatch,
    "transformer_logits": logits(GPT),
    "transformer_logits_sel": logits(GPT_SEL),
    "transformer_loss": loss(GPT),
    "transformer_loss_sel": loss(GPT_SEL),
    "language_step": language_step(GPT),
    "language_step_sel": language_step(GPT_SEL),
}


def draw(rng: np.random.Generator, path: str, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    """A leaf of the arguments: matrices of either sign, small enough for the exponentials; gains, scales and second
    moments positive."""
    dtype = np.dtype(dtype)
    if dtype.kind in "iu":
        return rng.integers(0, 32, shape).astype(dtype)
    if "finite" in path:
        return np.ones(shape, dtype)
    if path.endswith("['t']"):
        return np.full(shape, 4, dtype)
    x = rng.uniform(0.1, 0.9, shape)
    gain = any(name in path for name in ("norm", "qn", "kn"))
    if len(shape) > 1 and not gain and "['v']" not in path and not scale(path):
        x = (x - 0.5) * 0.6
    return np.asarray(x, np.float64).astype(dtype)


def scale(path: str) -> bool:
    """Whether it is a factor of e_w, l_w, m, or the offset n."""
    return any(path.endswith(f".{s}.{f}']") for s in "elmn" for f in "rcg")
