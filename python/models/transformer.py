"""The transformer of 2607.09967 (Section 5.1) in plain JAX, standard or with SymExpLin weights, and its training step.

Parameters are a flat dict. A standard matrix is one leaf, `blocks.0.q.W` (d_out, d_in); a SymExpLin one is its raw weight
and the factors of its scales: `blocks.0.q.W.w`, `.e.r`, `.e.c`, `.l.r`, `.l.c`, `.m.r`, `.m.c`, optionally `.n.c` and the
residual's `.d.A`, `.d.B`. Which leaves there are says what is computed. `stack` joins the blocks' leaves along a new first
axis, `blocks.q.W`: the same functions then loop over the blocks with `lax.scan` instead of unrolling them.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from functools import partial
from typing import Any, Callable

import jax
import jax.numpy as jnp
import numpy as np

Params = dict[str, jax.Array]
# Parameters, first and second moments, steps done.
State = tuple[Params, Params, Params, jax.Array]


@dataclass(frozen=True)
class Sel:
    """SymExpLin in mismatch mode, beta inside the exponent only, scales row x column; each k = (k0, k1) of Eq. 11."""

    beta: float = 7.5
    offset: bool = False  # n, one number a column
    delta_rank: int = 0  # of the residual A B
    k_exponential: tuple[float, float] = (50.0, 8.0)
    k_linear: tuple[float, float] = (50.0, 8.0)
    k_inner: tuple[float, float] = (0.01, 0.5)
    k_offset: tuple[float, float] = (1.0, 1.0)
    k_delta: float = 0.5  # divided by beta


@dataclass(frozen=True)
class Gpt:
    """Shapes and options of a model. `activations`: their dtype, the parameters' own if None."""

    width: int = 256
    depth: int = 4
    heads: int = 4
    vocabulary: int = 256
    sel: Sel | None = None
    activations: Any = None
    checkpoint: bool = False  # recompute each block in the backward pass

    @property
    def hidden(self) -> int:
        return max(64, round(self.width * 8 / 3 / 64) * 64)

    def matrices(self) -> dict[str, tuple[int, int]]:
        """(d_out, d_in) of a block's linear layers; ff1 is gate and value in one."""
        d, h = self.width, self.hidden
        return {"q": (d, d), "k": (d, d), "v": (d, d), "o": (d, d), "ff1": (2 * h, d), "ff2": (d, h)}


@dataclass(frozen=True)
class Optimizer:
    """AdamW with global-norm clipping, linear warm-up and linear decay to 0 at `steps`, which is T of Eq. 11 too."""

    rate: float = 3e-4
    warmup: int = 250
    steps: int = 10_000
    decay: float = 0.01
    clip: float = 1.0
    beta1: float = 0.9
    beta2: float = 0.999
    eps: float = 1e-8


def unstack(params: Params) -> Params:
    """One leaf for each block: `blocks.q.W` to `blocks.0.q.W`, `blocks.1.q.W`, ..."""
    flat = {}
    for name, leaf in params.items():
        if name.startswith("blocks."):
            flat |= {f"blocks.{i}.{name[7:]}": leaf[i] for i in range(len(leaf))}
        else:
            flat[name] = leaf
    return flat


def stack(params: Params) -> Params:
    """The inverse of `unstack`."""
    joined: dict[str, Any] = {}
    for name in sorted(params, key=lambda name: [int(s) if s.isdigit() else 0 for s in name.split(".")]):
        if name.startswith("blocks."):
            joined.setdefault(re.sub(r"^blocks\.\d+", "blocks", name), []).append(params[name])
        else:
            joined[name] = params[name]
    return {name: jnp.stack(leaf) if isinstance(leaf, list) else leaf for name, leaf in joined.items()}


# Initialisation (Section 4.3)


def invert(target: np.ndarray, beta: float) -> np.ndarray:
    """Raw weights whose congruent transform is `target`: 10 Newton iterations from it in f64 (Eq. 13-15)."""
    x = target.astype(np.float64)
    for _ in range(10):
        f = np.sign(x) * np.expm1(beta * np.abs(x)) / beta + x / beta
        x = x - (f - target) / (np.exp(beta * np.abs(x)) + 1 / beta)
    return x


def initial(model: Gpt, seed: int) -> Params:
    """Xavier-uniform matrices, zero biases, unit gains, embedding and head N(0, .02^2), scales at their initial values."""
    draw = np.random.default_rng(seed)
    d = model.width
    params = {"emb": draw.normal(0, 0.02, (model.vocabulary, d)), "head": draw.normal(0, 0.02, (model.vocabulary, d))}
    params["normf"] = np.ones(d)
    for i in range(model.depth):
        for norm, size in {"norm1": d, "norm2": d, "qn": d // model.heads, "kn": d // model.heads}.items():
            params[f"blocks.{i}.{norm}"] = np.ones(size)
        for layer, (rows, columns) in model.matrices().items():
            bound = math.sqrt(6 / (rows + columns))
            target = draw.uniform(-bound, bound, (rows, columns))
            for name, value in {f"blocks.{i}.{layer}.W": target, f"blocks.{i}.{layer}.b": np.zeros(rows)}.items():
                if model.sel is None:
                    params[name] = value
                    continue
                params[f"{name}.w"] = invert(value, model.sel.beta)
                for scale, start in {"e": 1 / model.sel.beta, "l": 1 / model.sel.beta, "m": 1.0}.items():
                    if value.ndim == 2:
                        params[f"{name}.{scale}.r"] = np.full(rows, math.sqrt(start))
                        params[f"{name}.{scale}.c"] = np.full(columns, math.sqrt(start))
                    else:
                        params[f"{name}.{scale}.r"] = np.full(rows, start)
                if model.sel.offset:
                    params |= {f"{name}.n.c": np.zeros(columns)} if value.ndim == 2 else {f"{name}.n.g": np.zeros(1)}
                if model.sel.delta_rank and value.ndim == 2:
                    rank = model.sel.delta_rank
                    params[f"{name}.d.A"] = draw.normal(0, rank**-0.5, (rows, rank))
                    params[f"{name}.d.B"] = np.zeros((rank, columns))
    return {name: jnp.asarray(value, jnp.float32) for name, value in params.items()}


# Model


def scale(p: Params, name: str) -> jax.Array:
    """r c^T, or r of a vector. As a product, so that the gradients of r and c are matrix-vector ones, which XLA does
    faster on a CPU than the sums of r[:, None] * c (a SymExpLin step then takes 1.1 standard ones, not 1.24)."""
    r, c = p[f"{name}.r"], p.get(f"{name}.c")
    return r if c is None else jnp.einsum("...i,...j->...ij", r, c, precision="highest")


def symexplin(p: Params, name: str, sel: Sel) -> jax.Array:
    """w_eff = sgn(w) (E + L) + A B (Eq. 9), sgn(0) = +1; leading axes are blocks."""
    w = p[f"{name}.w"]
    z = sel.beta * w * scale(p, f"{name}.m")
    a = jnp.where(z >= 0, z, -z)  # unlike |z|, it has a slope at 0
    e = scale(p, f"{name}.e")
    if f"{name}.n.c" in p:
        e = e * jnp.exp(-p[f"{name}.n.c"])[..., None, :]
    elif f"{name}.n.g" in p:
        # One number per bias, () or [1]; stacked, one per block.
        e = e * jnp.exp(-p[f"{name}.n.g"].reshape(w.shape[:-1] + (1,)))
    sum = e * jnp.expm1(a) + w * scale(p, f"{name}.l")
    effective = jnp.where(w >= 0, sum, -sum)
    return effective + p[f"{name}.d.A"] @ p[f"{name}.d.B"] if f"{name}.d.A" in p else effective


def effective(p: Params, sel: Sel | None) -> Params:
    """The same parameters with SymExpLin ones replaced by what they stand for."""
    names = [name.removesuffix(".w") for name in p if name.endswith(".w")]
    plain = {name: leaf for name, leaf in p.items() if not any(name.startswith(f"{n}.") for n in names)}
    return plain | {name: symexplin(p, name, sel) for name in names if sel}


def norm(x: jax.Array, gain: jax.Array) -> jax.Array:
    """RMSNorm over the last axis, in f32 or better; the result has x's dtype."""
    wide = x.astype(gain.dtype)
    return (wide * jax.lax.rsqrt(jnp.mean(wide**2, -1, keepdims=True) + 1e-6) * gain).astype(x.dtype)


def rotate(x: jax.Array) -> jax.Array:
    """RoPE of (batch, time, head, feature) by halves, base 10000."""
    half = x.shape[-1] // 2
    angle = np.arange(x.shape[1])[:, None] * 10000.0 ** (-np.arange(half) / half)
    cos, sin = (jnp.asarray(f(angle)[:, None, :], x.dtype) for f in (np.cos, np.sin))
    a, b = x[..., :half], x[..., half:]
    return jnp.concatenate([a * cos - b * sin, a * sin + b * cos], -1)


def attention(q: jax.Array, k: jax.Array, v: jax.Array) -> jax.Array:
    """Causal, of (batch, time, head, feature); scores and softmax in f32 or better."""
    wide = jnp.promote_types(q.dtype, jnp.float32)
    scores = jnp.einsum("bqhd,bkhd->bhqk", q, k, preferred_element_type=wide) / math.sqrt(q.shape[-1])
    causal = np.tril(np.ones(scores.shape[-2:], bool))
    weights = jax.nn.softmax(jnp.where(causal, scores, -jnp.inf), -1)
    return jnp.einsum("bhqk,bkhd->bqhd", weights.astype(v.dtype), v)


def block(x: jax.Array, p: Params, model: Gpt) -> jax.Array:
    """Pre-norm attention and GeGLU feed-forward, x (batch, time, width)."""

    def linear(name: str, x: jax.Array) -> jax.Array:
        y = x @ p[f"{name}.W"].T.astype(x.dtype)
        return (y + p[f"{name}.b"]).astype(x.dtype)  # in f32, where the bias gradient's sum is precise, and faster too

    h = norm(x, p["norm1"])
    q, k, v = (linear(name, h).reshape(*h.shape[:2], model.heads, -1) for name in "qkv")
    mixed = attention(rotate(norm(q, p["qn"])), rotate(norm(k, p["kn"])), v)
    x = x + linear("o", mixed.reshape(x.shape))
    gate, value = jnp.split(linear("ff1", norm(x, p["norm2"])), 2, -1)
    return x + linear("ff2", jax.nn.gelu(gate, approximate=False) * value)


def forward(params: Params, tokens: jax.Array, model: Gpt) -> jax.Array:
    """Logits (batch, time, vocabulary), f32 or better, of tokens (batch, time)."""
    p = effective(params, model.sel)
    x = p["emb"][tokens].astype(model.activations or p["emb"].dtype)
    step = partial(block, model=model)
    if model.checkpoint:
        step = jax.checkpoint(step)
    if "blocks.norm1" in p:
        stacked = {name[7:]: leaf for name, leaf in p.items() if name.startswith("blocks.")}
        x, _ = jax.lax.scan(lambda x, p: (step(x, p), None), x, stacked)
    else:
        for i in range(model.depth):
            start = f"blocks.{i}."
            x = step(x, {name[len(start) :]: leaf for name, leaf in p.items() if name.startswith(start)})
    x = norm(x, p["normf"])
    return jnp.matmul(x, p["head"].T.astype(x.dtype), preferred_element_type=p["head"].dtype)


def loss(params: Params, tokens: jax.Array, targets: jax.Array, model: Gpt) -> jax.Array:
    """Mean cross-entropy in nats."""
    logits = forward(params, tokens, model)
    picked = jnp.take_along_axis(logits, targets[..., None], -1)[..., 0]
    return jnp.mean(jax.nn.logsumexp(logits, -1) - picked)


# Training


def anneal(k: tuple[float, float], progress: jax.Array) -> jax.Array:
    """Eq. 11 at t / T = progress."""
    return jnp.exp(math.log(k[0]) + math.log(k[1] / k[0]) / 2 * (1 - jnp.cos(jnp.pi * jnp.minimum(progress, 1))))


def group(name: str, sel: Sel | None, progress: jax.Array) -> tuple[Any, bool]:
    """A leaf's multiplier of the learning rate, and whether it decays."""
    parts = name.split(".")
    if parts[-1] in ("norm1", "norm2", "qn", "kn", "normf"):
        return 1.0, False
    if sel and len(parts) > 3 and parts[-1] != "w":
        match parts[-2]:
            case "e":
                return anneal(sel.k_exponential, progress), True
            case "l":
                return anneal(sel.k_linear, progress), True
            case "m":
                return anneal(sel.k_inner, progress), False
            case "n":
                return anneal(sel.k_offset, progress), False
            case "d":
                return sel.k_delta / sel.beta, True
    return 1.0, True


def global_norm(grads: Params) -> jax.Array:
    return jnp.sqrt(sum(jnp.sum(g**2) for g in grads.values()))


def adamw(
    params: Params, grads: Params, m: Params, v: Params, t: Any, rate: Any, progress: Any, sel: Sel | None, o: Optimizer
) -> tuple[Params, Params, Params, jax.Array]:
    """Step number t (1, 2, ...) on clipped gradients: new parameters and moments, and the norm before clipping."""
    size = global_norm(grads)
    clip = jnp.minimum(1.0, o.clip / (size + 1e-6))
    out: tuple[Params, Params, Params] = ({}, {}, {})
    for name, p in params.items():
        k, decays = group(name, sel, progress)
        g = grads[name] * clip
        m1 = o.beta1 * m[name] + (1 - o.beta1) * g
        v1 = o.beta2 * v[name] + (1 - o.beta2) * g**2
        step = m1 / (1 - o.beta1**t) / (jnp.sqrt(v1 / (1 - o.beta2**t)) + o.eps)
        new = p - rate * k * (step + o.decay * p if decays else step)
        for tree, leaf in zip(out, (new, m1, v1)):
            tree[name] = leaf
    return *out, size


def learning_rate(t: jax.Array, o: Optimizer) -> jax.Array:
    """Of the update after t others."""
    return o.rate * jnp.minimum((t + 1) / o.warmup, (o.steps - t) / max(o.steps - o.warmup, 1))


def start(params: Params) -> State:
    """A fresh state of copies, which a step may consume."""
    zeros = lambda: {name: jnp.zeros_like(leaf) for name, leaf in params.items()}
    return {name: jnp.copy(leaf) for name, leaf in params.items()}, zeros(), zeros(), jnp.zeros((), jnp.int32)


def train_step(model: Gpt, o: Optimizer) -> Callable[[State, jax.Array], tuple[State, tuple[jax.Array, jax.Array]]]:
    """A compiled step on tokens (batch, time + 1) that consumes its state: the new one, the loss and the gradient's norm."""

    def step(state: State, tokens: jax.Array) -> tuple[State, tuple[jax.Array, jax.Array]]:
        params, m, v, t = state
        value, grads = jax.value_and_grad(loss)(params, tokens[:, :-1], tokens[:, 1:], model)
        time = t.astype(value.dtype)
        params, m, v, size = adamw(
            params, grads, m, v, time + 1, learning_rate(time, o), time / o.steps, model.sel, o
        )
        return (params, m, v, t + 1), (value, size)

    return jax.jit(step, donate_argnums=0)
