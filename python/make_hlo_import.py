"""Writes tests/hlo_import/: JAX functions as HLO text, with inputs, outputs, vector-Jacobian and Jacobian-vector products.

    .venv/bin/python python/make_hlo_import.py [name ...]

None of the functions was written for sinexp: they are what people write. `mlp_equinox` needs equinox
(`pip install equinox`), no other case needs more than JAX.
"""

import functools
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from safetensors.numpy import load_file, save_file

FOLDER = Path(__file__).resolve().parent.parent / "tests" / "hlo_import"
CASES = {}


def case(*shapes, derivatives="both"):
    """A function of arrays: shapes are float32 normal inputs, arrays are themselves. `derivatives`: both, jvp, none."""

    def register(f):
        CASES[f.__name__] = (f, shapes, derivatives)
        return f

    return register


def ints(*values):
    return np.array(values, np.int32)


@case((8, 3), (8,), (8, 8), (8,), (2, 8), (2,), (5, 3))
def mlp_equinox(*args):
    import equinox as eqx

    model = eqx.filter_eval_shape(eqx.nn.MLP, 3, 2, 8, 2, activation=jax.nn.gelu, key=jax.random.key(0))
    params, static = eqx.partition(model, lambda leaf: isinstance(leaf, jax.ShapeDtypeStruct))
    params = jax.tree.unflatten(jax.tree.structure(params), args[:-1])
    return jax.vmap(eqx.combine(params, static))(args[-1])


@case((3, 8), (8,), (8, 4), (4,), (6, 3))
def mlp_trained(w1, b1, w2, b2, x):
    def loss(params):
        w1, b1, w2, b2 = params
        single = lambda v: jax.nn.relu(v @ w1 + b1) @ w2 + b2
        return jnp.mean(jnp.square(jax.vmap(single)(x)))

    value, grads = jax.value_and_grad(loss)((w1, b1, w2, b2))
    return value, jax.tree.map(lambda p, g: p - 0.1 * g, (w1, b1, w2, b2), grads)


@case((2, 6, 8), (8, 24), (8, 8))
def attention(x, w_qkv, w_out):
    heads = 2
    b, t, d = x.shape
    q, k, v = jnp.split(x @ w_qkv, 3, axis=-1)
    split = lambda a: a.reshape(b, t, heads, d // heads).transpose(0, 2, 1, 3)
    q, k, v = split(q), split(k), split(v)
    scores = jnp.einsum("bhqd,bhkd->bhqk", q, k) / jnp.sqrt(d // heads)
    mask = jnp.tril(jnp.ones((t, t), bool))
    probs = jax.nn.softmax(jnp.where(mask, scores, -1e30), axis=-1)
    out = jnp.einsum("bhqk,bhkd->bhqd", probs, v)
    return out.transpose(0, 2, 1, 3).reshape(b, t, d) @ w_out


@case((2, 9, 8, 4), (3, 2, 4, 6))
def conv_nhwc(x, w):
    numbers = ("NHWC", "HWIO", "NHWC")
    return lax.conv_general_dilated(x, w, (2, 1), "SAME", rhs_dilation=(1, 2), dimension_numbers=numbers)


@case((2, 4, 7, 6), (6, 2, 3, 3))
def conv_grouped(x, w):
    return lax.conv_general_dilated(x, w, (1, 2), [(1, 2), (-1, 0)], lhs_dilation=(2, 1), feature_group_count=2)


@case((2, 3, 20), (4, 3, 5), (4, 3, 5))
def conv_gradient(x, w, ct):
    conv = lambda w: lax.conv_general_dilated(x, w, (2,), "VALID")
    y, pull = jax.vjp(conv, w)
    return pull(jnp.sin(y))[0] * ct


@case((4,), (7, 3), (3, 4), (4, 4))
def rnn_scan(h, xs, w_in, w_rec):
    def step(h, x):
        h = jnp.tanh(x @ w_in + h @ w_rec)
        return h, h * 2

    return lax.scan(step, h, xs)


@case((4,), (6, 4))
def scan_reverse(h, xs):
    return lax.scan(lambda c, x: (jnp.sin(c) * x, c + x), h, xs, reverse=True)


@case((4,), (5, 4, 4))
def scan_remat(h, ws):
    layer = jax.checkpoint(lambda h, w: jnp.tanh(w @ h))
    return lax.scan(lambda h, w: (layer(h, w), None), h, ws)[0]


@case((3,), derivatives="jvp")
def while_newton(a):
    a = jnp.abs(a) + 1

    def go(state):
        return jnp.max(jnp.abs(state * state - a)) > 1e-3

    return lax.while_loop(go, lambda x: 0.5 * (x + a / x), a)


@case((), (5,))
def cond(p, x):
    return lax.cond(p > 0, lambda x: jnp.sin(x) * 2, lambda x: x + 1, x), lax.cond(p < 0, jnp.cos, jnp.exp, x)


@case(ints(2)[0], (5,))
def switch(i, x):
    return lax.switch(i, [lambda x: x * x, jnp.sin, lambda x: x[::-1] * 3, jnp.exp], x)


@case((4, 6))
def sort_argsort(x):
    order = jnp.argsort(x, axis=0)
    return jnp.sort(x), order, jnp.take_along_axis(jnp.tanh(x), order, axis=0), jnp.argsort(-x, descending=True)


@case(np.array([0.0, np.nan, -0.0, 1.0, -np.inf, -np.nan, np.inf, 0.0, -0.0, -1.0], np.float32), derivatives="none")
def sort_special(x):
    return jnp.sort(x), jnp.argsort(x), jnp.argsort(x, descending=True), jnp.argmax(x), jnp.argmin(x[:1])


@case((3, 7))
def cumulative(x):
    return jnp.cumsum(x, axis=1), jnp.cumprod(x, axis=0), lax.cummax(x, axis=1), jnp.prod(x, axis=1)


@case((8,))
def cumlogsumexp(x):
    return lax.cumlogsumexp(x), lax.cumlogsumexp(x, reverse=True)


@case((4, 6))
def argmax_take(x):
    best = jnp.argmax(x, axis=1)
    return best, jnp.argmin(x, axis=0), jnp.take_along_axis(x, best[:, None], axis=1), x[:, ints(0, -1, 2)]


@case((5, 7), ints(1, 0, 6, 3, 2))
def cross_entropy(logits, labels):
    logp = jax.nn.log_softmax(logits)
    hot = -jnp.mean(jnp.sum(jax.nn.one_hot(labels, 7) * logp, axis=-1))
    gathered = jax.nn.logsumexp(logits, axis=-1) - jnp.take_along_axis(logits, labels[:, None], axis=-1)[:, 0]
    return hot, gathered


@case((4, 8), (8,), (8,))
def layer_norm(x, scale, bias):
    mean = jnp.mean(x, -1, keepdims=True)
    var = jnp.var(x, -1, keepdims=True)
    return (x - mean) * lax.rsqrt(var + 1e-5) * scale + bias


@case((6, 3))
def fori_update(x):
    def body(i, x):
        row = lax.dynamic_slice(x, (i, 0), (1, 3))
        x = lax.dynamic_update_slice(x, jnp.sin(row) * 2, (i, 0))
        return x.at[(i + 1) % 6].add(row[0])

    return lax.fori_loop(0, 5, body, x)


@case((3, 4, 5), (5, 4, 2), (2,))
def einsum(a, b, c):
    return jnp.einsum("ijk,kjl,l->il", a, b, c), jnp.einsum("ijk,kjl->lki", a, b)


@case((4, 5))
def activations(x):
    pieces = [jax.nn.gelu(x), jax.nn.gelu(x, approximate=False), jax.nn.silu(x), jax.nn.softplus(x), jax.nn.elu(x)]
    return pieces + [jax.nn.sigmoid(x), jnp.cbrt(x), jax.nn.leaky_relu(x), jnp.clip(x, -0.5, 0.5), x**3, jnp.hypot(x, 2)]


@case((9, 2), (2, 16), (16,), (16, 16), (16,), (16, 3), (3,))
def siren_flax_style(x, k0, b0, k1, b1, k2, b2):
    variables = {"Dense_0": (k0, b0), "Dense_1": (k1, b1), "Dense_2": (k2, b2)}

    def dense(name, h):
        kernel, bias = variables[name]
        return lax.dot_general(h, kernel, (((1,), (0,)), ((), ()))) + bias

    h = jnp.sin(30.0 * dense("Dense_0", x) / 16)
    h = jnp.sin(30.0 * dense("Dense_1", h) / 64)
    return dense("Dense_2", h)


@case((6,), (3,), ints(4, 1, -1))
def scatters(x, u, i):
    return x.at[i].add(u), x.at[i].set(u), x.at[1:4].multiply(2.0), jnp.zeros((4, 6)).at[:, i].set(u)


@case((2, 8, 8, 3))
def max_pool(x):
    window = lambda x: lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
    mean = lax.reduce_window(x, 0.0, lax.add, (1, 3, 3, 1), (1, 2, 2, 1), "SAME") / 9
    return window(x), mean


@case((3, 9))
def top_k(x):
    values, index = lax.top_k(x, 4)
    return values, index


@case(np.array([0, 7], np.uint32), (4,), derivatives="both")
def dropout(key, x):
    keep = jax.random.bernoulli(key, 0.7, x.shape)
    return jnp.where(keep, x / 0.7, 0.0), jax.random.normal(key, (3,))


@case((3, 4), (4, 4))
def bfloat16(x, w):
    y = x.astype(jnp.bfloat16) @ w.astype(jnp.bfloat16)
    return lax.dot(x.astype(jnp.bfloat16), w.astype(jnp.bfloat16), preferred_element_type=jnp.float32), y.sum().astype(jnp.float32)


@case((3, 5), (5,), derivatives="none")
def logic(x, y):
    close = jnp.isclose(x, y) | (x > 0.5) & jnp.isfinite(y)
    return jnp.any(close, 1), jnp.all(close, 0), jnp.sum(close), jnp.round(x * 3), jnp.sign(x), jnp.floor_divide(x, y)


@case((4, 4), derivatives="text")
def svd(x):
    return jnp.linalg.svd(x)


@case((4, 4), derivatives="text")
def cholesky(x):
    return jnp.linalg.cholesky(x @ x.T + jnp.eye(4))


@case((8,), derivatives="text")
def fft(x):
    return jnp.abs(jnp.fft.fft(x))


@case((6,), ints(1, 1), derivatives="text")
def scatter_multiply(x, i):
    return x.at[i].multiply(2.0)


@case((8,), (8,), derivatives="text")
def sort_two_keys(x, y):
    return lax.sort((x, y), num_keys=2)


@case((4, 4), derivatives="text")
def max_pool_gradient(x):
    return jax.grad(lambda x: lax.reduce_window(x, -jnp.inf, lax.max, (2, 2), (2, 2), "VALID").sum())(x)


def is_float(a):
    return jnp.issubdtype(a.dtype, jnp.floating)


def write(name, f, shapes, derivatives):
    rng = np.random.default_rng(sum(map(ord, name)))
    draw = lambda shape: rng.standard_normal(shape).astype(np.float32)
    args = [jnp.asarray(draw(s) if isinstance(s, tuple) else s) for s in shapes]

    @functools.wraps(f)
    def flat(*a):
        return jax.tree.leaves(f(*a))

    lowered = jax.jit(flat, keep_unused=True).lower(*args)
    (FOLDER / f"{name}.hlo.txt").write_text(lowered.compiler_ir("hlo").as_hlo_text(print_large_constants=True))
    if derivatives == "text":
        return {}
    outs = jax.jit(flat)(*args)
    if name in OPTIMISED:
        (FOLDER / "optimised" / f"{name}.hlo.txt").write_text(lowered.compile().as_text().replace(f"{FOLDER.parent.parent}/", ""))
    data = {f"in.{i}": a for i, a in enumerate(args)} | {f"out.{i}": a for i, a in enumerate(outs)}
    which = [i for i, a in enumerate(args) if is_float(a)]
    floats = [i for i, a in enumerate(outs) if is_float(a)]

    def of(*xs):
        full = list(args)
        for i, x in zip(which, xs):
            full[i] = x
        out = flat(*full)
        return [out[i] for i in floats]

    xs = [args[i] for i in which]
    if derivatives != "none":
        tangents = [jnp.asarray(draw(x.shape)) for x in xs]
        _, pushed = jax.jit(lambda xs, ts: jax.jvp(of, xs, ts))(tuple(xs), tuple(tangents))
        data |= {f"tangent.{i}": t for i, t in zip(which, tangents)}
        data |= {f"jvp.{i}": t for i, t in zip(floats, pushed)}
    if derivatives == "both":
        cts = [jnp.asarray(draw(outs[i].shape)) for i in floats]
        pulled = jax.jit(lambda xs, cts: jax.vjp(of, *xs)[1](cts))(xs, cts)
        data |= {f"cotangent.{i}": t for i, t in zip(floats, cts)}
        data |= {f"vjp.{i}": t for i, t in zip(which, pulled)}
    return {f"{name}/{k}": np.asarray(v) for k, v in data.items()}


OPTIMISED = ["rnn_scan", "mlp_trained", "layer_norm", "cumulative", "cond", "scatters"]


def main(names):
    (FOLDER / "optimised").mkdir(parents=True, exist_ok=True)
    path = FOLDER / "values.safetensors"
    data = load_file(path) if names and path.exists() else {}
    for name in names or CASES:
        data = {k: v for k, v in data.items() if not k.startswith(f"{name}/")} | write(name, *CASES[name])
    save_file(data, path)
    print(f"{len(data)} arrays, {path.stat().st_size} bytes")


if __name__ == "__main__":
    main(sys.argv[1:])
