"""Our `.jax_export` files in JAX, and JAX's in our `hlo run`.

examples/jax_export.rs writes functions of this toolkit; JAX reads, calls, jits and differentiates them, and each must be what
the same function in jax.numpy is. Then JAX exports functions of its own, and `hlo run` must compute what they do.
Build both first: cargo build --bins --examples. `--files DIR` takes files that are there already, and only does the first
half: python/jax_releases.py runs it so in other releases of JAX.
"""

from __future__ import annotations

import argparse
import subprocess
import tempfile
from pathlib import Path
from typing import Any, Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax import export

ROOT = Path(__file__).resolve().parent.parent
BINARIES = ROOT / "target" / "debug"
# Of the largest element.
TOLERANCE = 1e-5


def compare(name: str, got: Any, want: Any, tolerance: float = TOLERANCE) -> float:
    """The worst difference of two pytrees, relative to each array's largest element."""
    assert jax.tree.structure(got) == jax.tree.structure(want), f"{name}: {jax.tree.structure(got)}"
    worst = 0.0
    for path, (g, w) in zip(jax.tree_util.tree_flatten_with_path(got)[0], zip(jax.tree.leaves(got), jax.tree.leaves(want))):
        place = f"{name}{jax.tree_util.keystr(path[0])}"
        g, w = np.asarray(g), np.asarray(w)
        assert g.shape == w.shape and g.dtype == w.dtype, f"{place}: {g.dtype}{g.shape} for {w.dtype}{w.shape}"
        if w.dtype == jax.dtypes.float0 or w.size == 0:
            continue
        g, w = g.astype(np.float64), w.astype(np.float64)
        error = float(np.abs(g - w).max() / max(np.abs(w).max(), 1e-30))
        assert error <= tolerance, f"{place}: off by {error:.2e} of its maximum"
        worst = max(worst, error)
    return worst


# The functions that examples/jax_export.rs writes.


def siren(params: dict[str, jax.Array], x: jax.Array) -> jax.Array:
    last = len(params) // 2 - 1
    for layer in range(last):
        x = jnp.sin(x @ params[f"W.{layer}"].T + params[f"b.{layer}"])
    return x @ params[f"W.{last}"].T + params[f"b.{last}"]


def sel(p: dict[str, jax.Array]) -> jax.Array:
    """2607.09967 Eq. 9 with beta 7.5, scales r c^T, offset n and residual A B where there are any."""
    scale = lambda letter: p[f"{letter}.r"][:, None] * p[f"{letter}.c"]
    w = p["w"]
    z = 7.5 * w * scale("m")
    e = scale("e") * jnp.exp(-p["n.c"]) if "n.c" in p else scale("e")
    total = e * jnp.expm1(jnp.where(z >= 0, z, -z)) + w * scale("l")
    weight = jnp.where(w >= 0, total, -total)
    return weight + p["d.A"] @ p["d.B"] if "d.A" in p else weight


def pair(params: dict[str, Any], n: jax.Array) -> dict[str, Any]:
    a, (b0, b1) = params["a"], params["b"]
    return {"count": n + 1, "y": (n.astype(jnp.float32) * a * b0, jnp.exp(a * b1.astype(jnp.float32)).sum())}


def loss(params: dict[str, jax.Array], tokens: jax.Array) -> jax.Array:
    from transformer_jax import Gpt, Sel, loss

    delta = params.get("blocks.q.W.d.A")
    model = Gpt(width=64, depth=2, heads=4, sel=None if delta is None else Sel(offset=True, delta_rank=4))
    return loss(params, tokens[:, :-1], tokens[:, 1:], model)


def step(*arguments: jax.Array) -> tuple[jax.Array, ...]:
    """Adam on the mean square error of the SIREN of hlo/regression_step."""
    size = (len(arguments) - 4) // 3
    flat, m, v = (arguments[i * size : (i + 1) * size] for i in range(3))
    t, x, y, rate = arguments[3 * size :]

    def error(flat: Any) -> jax.Array:
        h = x
        for w, b in zip(flat[:-2:2], flat[1:-2:2]):
            h = jnp.sin(h @ w.T + b)
        return jnp.mean((h @ flat[-2].T + flat[-1] - y) ** 2)

    value, grads = jax.value_and_grad(error)(flat)
    t = t + 1
    m = [0.9 * m + 0.1 * g for m, g in zip(m, grads)]
    v = [0.999 * v + 0.001 * g * g for v, g in zip(v, grads)]
    new = [p - rate * (m / (1 - 0.9**t)) / (jnp.sqrt(v / (1 - 0.999**t)) + 1e-8) for p, m, v in zip(flat, m, v)]
    return (*new, *m, *v, t, value)


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "siren": siren,
    "sel": sel,
    "sel_residual": sel,
    "pair": pair,
    "loss": loss,
    "loss_sel": loss,
    "regression_step": step,
}


def draw(rng: np.random.Generator, aval: Any) -> np.ndarray:
    if aval.dtype.kind in "iu":
        return rng.integers(0, 200, aval.shape).astype(aval.dtype)
    # Positive, as second moments are.
    return np.asarray(rng.uniform(0.1, 0.9, aval.shape), np.float32).astype(aval.dtype)


def arguments(exported: Any, name: str) -> tuple[Any, ...]:
    rng = np.random.default_rng(5)
    leaves = [draw(rng, aval) for aval in exported.in_avals]
    if name in ("loss", "loss_sel", "siren", "sel", "sel_residual"):
        # Weights of either sign, small enough for the exponentials; gains and scales stay positive.
        leaves = [x - np.asarray(0.5, x.dtype) if x.ndim > 1 and x.dtype.kind == "f" else x for x in leaves]
        leaves = [x * np.asarray(0.3, x.dtype) if x.ndim > 1 and x.dtype.kind == "f" else x for x in leaves]
    args, kwargs = jax.tree.unflatten(exported.in_tree, leaves)
    assert not kwargs
    return args


def total(f: Callable[..., Any]) -> Callable[..., jax.Array]:
    """A scalar of all float results, in which each element counts differently."""

    def g(*args: Any) -> jax.Array:
        leaves = [y for y in jax.tree.leaves(f(*args)) if jnp.issubdtype(y.dtype, jnp.floating)]
        return sum(jnp.sum(y * jnp.cos(jnp.arange(y.size, dtype=y.dtype)).reshape(y.shape)) for y in leaves)

    return g


def ours(folder: Path) -> None:
    for name, f in FUNCTIONS.items():
        exported = export.deserialize(bytearray((folder / f"{name}.jax_export").read_bytes()))
        args = arguments(exported, name)
        assert exported.fun_name == name and exported.nr_devices == 1
        want = f(*args)
        worst = compare(name, exported.call(*args), want)
        worst = max(worst, compare(f"jit {name}", jax.jit(exported.call)(*args), want))
        # Not donated: the same arguments again.
        compare(f"{name} again", exported.call(*args), want)
        if name == "regression_step":
            print(f"{name}: {worst:.1e}")
            continue
        floats = tuple(i for i, a in enumerate(args) if all(jnp.issubdtype(x.dtype, jnp.floating) for x in jax.tree.leaves(a)))
        tolerance = TOLERANCE if name != "pair" else 1e-2  # a gradient in bf16
        got = jax.jit(jax.grad(total(exported.call), floats))(*args)
        slope = compare(f"grad {name}", got, jax.grad(total(f), floats)(*args), tolerance)
        line = f"{name}: {worst:.1e}, gradient {slope:.1e}"
        if name == "pair":
            got = jax.grad(total(exported.call), (0, 1), allow_int=True)(*args)
            want = jax.grad(total(f), (0, 1), allow_int=True)(*args)
            compare("grad pair with the integer", got, want, tolerance)
        if name == "siren":
            second = lambda f: jax.grad(lambda *args: total(jax.grad(total(f)))(*args), 1)
            line += f", second order {compare('second order', second(exported.call)(*args), second(f)(*args), 1e-4):.1e}"
        print(line)


# JAX's files in `hlo run`.


def mlp(params: list[dict[str, jax.Array]], x: jax.Array) -> jax.Array:
    for layer in params[:-1]:
        x = jax.nn.relu(x @ layer["w"] + layer["b"])
    return jax.nn.softmax(x @ params[-1]["w"] + params[-1]["b"])


def newton(x: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Square roots, with the number of steps."""
    going = lambda s: (jnp.abs(s[0] ** 2 - x).max() > 1e-5) & (s[1] < 100)
    return jax.lax.while_loop(going, lambda s: ((s[0] + x / s[0]) / 2, s[1] + 1), (x, jnp.int32(0)))


def unused(params: dict[str, jax.Array], ignored: jax.Array, n: jax.Array) -> dict[str, jax.Array]:
    return {"y": jnp.tanh(params["w"]) * n, "k": n + jnp.arange(3)}


def half(x: jax.Array) -> jax.Array:
    return jnp.cumsum(x * 2, -1)


def attend(x: jax.Array, *, w: jax.Array) -> jax.Array:
    scores = jax.nn.softmax(jnp.where(np.tril(np.ones((4, 4), bool)), x @ w @ x.T, -jnp.inf))
    return jnp.sort(scores @ x, -1)


def theirs(folder: Path) -> None:
    rng = np.random.default_rng(7)
    real = lambda *dims: rng.normal(size=dims).astype(np.float32)
    layers = [{"w": real(4, 8), "b": real(8)}, {"w": real(8, 3), "b": real(3)}]
    params = {"w": real(3), "spare": real(2)}
    x = np.abs(real(5)) + 1
    y = jnp.asarray(real(2, 6), jnp.bfloat16)
    several = ["cpu", "cuda", "tpu"]
    cases: list[tuple[str, Callable[..., Any], tuple[Any, ...], dict[str, Any], list[str] | None, int]] = [
        ("mlp", mlp, (layers, real(2, 4)), {}, None, 1),
        ("newton", newton, (x,), {}, None, 0),
        ("unused", unused, (params, real(7), np.int32(3)), {}, None, 1),
        ("several", unused, (params, real(7), np.int32(3)), {}, several, 1),
        ("reversed", mlp, (layers, real(2, 4)), {}, several[::-1], 0),
        ("half", half, (y,), {}, None, 0),
        ("attend", attend, (real(4, 4),), {"w": real(4, 4)}, several, 1),
    ]
    for name, f, args, kwargs, platforms, order in cases:
        path = folder / f"{name}.jax_export"
        exported = export.export(jax.jit(f), platforms=platforms)(*args, **kwargs)
        path.write_bytes(exported.serialize(vjp_order=order))
        leaves = jax.tree.leaves((args, kwargs))
        np.savez(folder / f"{name}.npz", *[x for x in leaves if x.dtype != jnp.bfloat16])
        inputs = folder / f"{name}.npz"
        if any(x.dtype == jnp.bfloat16 for x in leaves):
            from safetensors.flax import save_file

            inputs = folder / f"{name}.safetensors"
            save_file({f"x_{i}": jnp.asarray(x) for i, x in enumerate(leaves)}, inputs)
        out = folder / f"{name}.out.safetensors"
        run("run", path, "--inputs", inputs, "--out", out)
        from safetensors.flax import load_file

        got = load_file(out)
        want = jax.tree_util.tree_flatten_with_path(f(*args, **kwargs))[0]
        want = {"result" + jax.tree_util.keystr(key): value for key, value in want}
        worst = compare(name, got, {key: jnp.asarray(value) for key, value in want.items()})
        print(f"{name} of JAX in hlo run: {worst:.1e}")
    shown = run("show", folder / "unused.jax_export")
    for part in ("params['w']", "f32[3]", "2 inputs ignored", "differentiable 1 times"):
        assert part in shown, f"hlo show: no {part} in\n{shown}"
    refused(folder)


def refused(folder: Path) -> None:
    """What cannot run here is said by name."""

    shape = jax.ShapeDtypeStruct((2,), np.float32)
    symbolic = jax.ShapeDtypeStruct(export.symbolic_shape("b, 2"), np.float32)
    cases = {
        "symbolic": (jax.jit(jnp.sin), symbolic, None, "symbolic dimension `b`"),
        "elsewhere": (jax.jit(jnp.sin), shape, ["tpu"], "the file is for tpu"),
    }
    for name, (f, argument, platforms, reason) in cases.items():
        path = folder / f"{name}.jax_export"
        path.write_bytes(export.export(f, platforms=platforms)(argument).serialize())
        message = run("run", path, fails=True)
        assert reason in message and len(message.strip().splitlines()[-1:]) == 1, f"{name}: {message}"
    print(f"refused by name: {', '.join(cases)}")


def run(*arguments: Any, fails: bool = False) -> str:
    done = subprocess.run([BINARIES / "hlo", *map(str, arguments)], capture_output=True, text=True, timeout=300)
    assert (done.returncode != 0) == fails, f"hlo {arguments}: {done.stdout}{done.stderr}"
    return done.stdout + done.stderr


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=Path, help="files of examples/jax_export.rs: check these only")
    files = parser.parse_args().files
    print(f"jax {jax.__version__}")
    if files:
        ours(files)
        return
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        command = [BINARIES / "examples" / "jax_export", "--out", folder / "ours"]
        subprocess.run(command, check=True, cwd=ROOT, timeout=300, stdout=subprocess.DEVNULL)
        ours(folder / "ours")
        theirs(folder)


if __name__ == "__main__":
    main()
