"""Our `.jax_export` files in JAX, and JAX's in our `hlo run`.

`hlo export` writes every program of the toolkit; JAX reads, calls, jits and differentiates them, and each must be what the
same function in JAX is (python/models/catalog.py). Then JAX exports functions of its own, and `hlo run` must compute what they do.
Build first: cargo build --bins. `--files DIR` takes files that are there already, and only does the first half:
python/checks/jax_releases.py runs it so in other releases of JAX.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import tempfile
from pathlib import Path
from typing import Any, Callable

import jax
import jax.numpy as jnp
import numpy as np
from common import BINARIES
from models.catalog import FUNCTIONS, draw, x64
from jax import export

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


def pair(params: dict[str, Any], n: jax.Array) -> tuple[jax.Array, ...]:
    """Integers, bf16 and nested arguments: lowered to StableHLO here, made differentiable by `hlo export`."""
    a, (b0, b1) = params["a"], params["b"]
    return n + 1, n.astype(jnp.float32) * a * b0, jnp.exp(a * b1.astype(jnp.float32)).sum()


def write(folder: Path, version: int = 2) -> None:
    """Every program of `hlo list` as folder/NAME.jax_export, and `pair`."""
    folder.mkdir(parents=True, exist_ok=True)
    export_ = lambda what, name, *more: run(
        "export", what, "--to", "jax-export", "--out", folder / f"{name}.jax_export", "--serialization-version", version, *more
    )
    listed = re.findall(r"^(\w+)\(", run("list"), re.MULTILINE)
    assert set(listed) == set(FUNCTIONS), f"on one side only: {set(listed) ^ set(FUNCTIONS)}"
    for name in listed:
        export_(name, name, *(["--orders", 2] if name == "siren_forward" else []))
    # A weight of f32[3], a scalar, one of bf16[3]; an integer.
    shape = jax.ShapeDtypeStruct
    params = {"b": (shape((), np.float32), shape((3,), jnp.bfloat16)), "a": shape((3,), np.float32)}
    lowered = jax.jit(pair, keep_unused=True).lower(params, shape((), np.int32))
    (folder / "pair.mlir").write_text(lowered.as_text(debug_info=True))
    printed = export_(folder / "pair.mlir", "pair")
    assert "params['b'][1]" in printed and "not differentiable" not in printed, printed


def arguments(exported: Any) -> tuple[Any, ...]:
    rng = np.random.default_rng(5)
    numbered = jax.tree.unflatten(exported.in_tree, range(len(exported.in_avals)))
    paths = [jax.tree_util.keystr(path) for path, _ in jax.tree_util.tree_flatten_with_path(numbered)[0]]
    leaves = [draw(rng, path, aval.shape, aval.dtype) for path, aval in zip(paths, exported.in_avals)]
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
    for name, f in {**FUNCTIONS, "pair": pair}.items():
        exported = export.deserialize(bytearray((folder / f"{name}.jax_export").read_bytes()))
        with x64(any(aval.dtype == np.float64 for aval in exported.in_avals)):
            check(name, exported, f)


def check(name: str, exported: Any, f: Callable[..., Any]) -> None:
    args = arguments(exported)
    assert exported.fun_name in (name, f"jit_{name}") and exported.nr_devices == 1, exported.fun_name
    want = jax.jit(f)(*args)
    call = jax.jit(exported.call)
    worst = compare(f"jit {name}", call(*args), want)
    # Not donated: the same arguments again.
    compare(f"{name} again", call(*args), want)
    if not name.startswith("language"):  # which take long to compile
        worst = max(worst, compare(name, exported.call(*args), want))
    if name == "language_step_sel":
        print(f"{name}: {worst:.1e}", flush=True)
        return
    floats = tuple(i for i, a in enumerate(args) if all(jnp.issubdtype(x.dtype, jnp.floating) for x in jax.tree.leaves(a)))
    tolerance = TOLERANCE if name != "pair" else 1e-2  # a gradient in bf16
    got = jax.jit(jax.grad(total(exported.call), floats))(*args)
    slope = compare(f"grad {name}", got, jax.jit(jax.grad(total(f), floats))(*args), tolerance)
    line = f"{name}: {worst:.1e}, gradient {slope:.1e}"
    if name == "pair":
        got = jax.grad(total(exported.call), (0, 1), allow_int=True)(*args)
        want = jax.grad(total(f), (0, 1), allow_int=True)(*args)
        compare("grad pair with the integer", got, want, tolerance)
    if name == "siren_forward":
        second = lambda f: jax.grad(lambda *args: total(jax.grad(total(f)))(*args), 1)
        line += f", second order {compare('second order', second(exported.call)(*args), second(f)(*args), 1e-4):.1e}"
    print(line, flush=True)


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
    parser.add_argument("--files", type=Path, help="files of `hlo export`: check these only")
    files = parser.parse_args().files
    print(f"jax {jax.__version__}")
    if files:
        ours(files)
        return
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write(folder / "ours")
        ours(folder / "ours")
        theirs(folder)


if __name__ == "__main__":
    main()
