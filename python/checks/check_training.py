"""Trains every initialisation beside JAX: the same draws through threefry, the same samples, every loss compared.

examples/train_losses.rs trains on the camera picture that `./setup --data` fetched, and writes its samples, its initial
parameters and its losses. Here jax.random draws the networks from the laws of 2609.30633 (Section 3, Appendices A and
C), and a plain jitted step in f32 trains them. Losses must agree within 1e-5 of their size up to the last step (2e-6 is the most that was seen).

Where they do not, and everywhere with `--referee`, JAX in f64 from the same start tells how far either side is from it.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import Any, Callable

import jax
import jax.numpy as jnp
import numpy as np
from safetensors.numpy import load_file
from scipy import ndimage

from common import ROOT

# N, L, largest dimension of the training grid.
CASES = [(16, 11, 128), (64, 5, 32)]
# Relative, of a loss.
TOLERANCE = 1e-5
# Of a draw, in units in the last place: uniforms are the same bits, normals go through another logarithm.
ULPS = 8
SINES = ("uniform-mm", "cvp26-s0", "cvp26-s1", "sm20", "sm20-repo")
ACTIVATIONS = {"tanh-pe": jnp.tanh, "relu": jax.nn.relu, "silu": jax.nn.silu, "gelu": jax.nn.gelu}

Law = Callable[[jax.Array, tuple[int, ...]], Any]
Moments = tuple[np.ndarray, float, np.ndarray]
Params = dict[str, Any]


def moments(y: np.ndarray, grid: list[int]) -> Moments:
    """mu, Sigma and Omega of a field of one channel on [-1, 1]^2 (Eq. 11, 12, 26)."""
    field = y.astype(np.float64).reshape(grid)
    slopes = np.stack([ndimage.sobel(field, a).ravel() * (n - 1) / 2 / 8 for a, n in enumerate(grid)])
    sigma = field.var(ddof=1)
    omega = slopes @ slopes.T / field.size / (sigma + 1e-6) + 1e-6 * np.eye(2)
    return np.array([field.mean()]), sigma, omega


def uniform(bound: float) -> Law:
    return lambda key, shape: jax.random.uniform(key, shape, minval=-bound, maxval=bound)


def normal(std: float) -> Law:
    return lambda key, shape: jax.random.normal(key, shape) * jnp.float32(std)


def rows(covariance: np.ndarray) -> Law:
    factor = np.linalg.cholesky(covariance)
    return lambda key, shape: np.asarray(jax.random.normal(key, shape), np.float64) @ factor.T


def columns(covariance: np.ndarray) -> Law:
    return lambda key, shape: rows(covariance)(key, shape[::-1]).T


def constant(value: Any) -> Law:
    return lambda key, shape: np.broadcast_to(value, shape)


def weight(init: str, place: str, n: int, fan_in: int, fan_out: int, omega_h: float, field: Moments) -> Law:
    _, sigma, omega = field
    match init, place:
        case "uniform-mm", "input":
            return rows(omega)
        case "uniform-mm", "hidden":
            return normal(math.sqrt(2 / n))
        case "uniform-mm", "output":
            return columns(np.array([[2 * sigma / n]]))
        case "sm20" | "sm20-repo" | "cvp26-s0" | "cvp26-s1", "input":
            return uniform(1 / fan_in)
        case "cvp26-s0", "hidden":
            return uniform(math.sqrt(3 / n) / omega_h)
        case "cvp26-s1", "hidden":
            return uniform(math.sqrt(6 / (1 + math.exp(-2)) / n) / omega_h)
        case "sm20" | "cvp26-s0" | "cvp26-s1", "output":
            return uniform(math.sqrt(3 / n) / omega_h)
        case "sm20" | "sm20-repo", _:
            return uniform(math.sqrt(6 / n) / omega_h)
        case "relu", _:
            return uniform(math.sqrt(6 / fan_in))
        case "tanh-pe" | "silu" | "gelu", _:
            return uniform(math.sqrt(6 / (fan_in + fan_out)))
    raise ValueError(init)


def bias(init: str, place: str, fan_in: int, omega_h: float, field: Moments) -> Law | None:
    match init, place:
        case "uniform-mm", "output":
            return constant(field[0])
        case "uniform-mm", _:
            return uniform(math.pi)
        case "sm20" | "cvp26-s0" | "cvp26-s1", "output":
            return None
        case "cvp26-s0", "hidden":
            return constant(0)
        case "cvp26-s1", "hidden":
            return normal(math.sqrt(6 / (1 + math.exp(-2)) * math.exp(-2) / 3) / omega_h)
        case "sm20" | "sm20-repo" | "cvp26-s0" | "cvp26-s1", _:
            return uniform(1 / math.sqrt(fan_in))
    return constant(0)


def draw(init: str, run: dict[str, Any], field: Moments) -> Params:
    """Parameter i of n is drawn with key i of split(key(0), n): layer by layer, matrix before bias, `pe` last."""
    n, last, h = run["width"], run["hidden"] + 1, run["omega_h"]
    laws: list[tuple[str, tuple[int, ...], Law]] = []
    for l in range(last + 1):
        place = {0: "input", last: "output"}.get(l, "hidden")
        fan_in = n if l > 0 else n // 2 * 2 if init == "tanh-pe" else 2
        fan_out = 1 if l == last else n
        laws.append((f"W.{l}", (fan_out, fan_in), weight(init, place, n, fan_in, fan_out, h, field)))
        if law := bias(init, place, fan_in, h, field):
            laws.append((f"b.{l}", (fan_out,), law))
    if init == "tanh-pe":
        laws.append(("pe", (n // 2, 2), normal(run["pe_sigma"])))
    keys = jax.random.split(jax.random.key(0), len(laws))
    drawn = {name: np.asarray(law(key, shape), np.float32) for (name, shape, law), key in zip(laws, keys)}
    if init in SINES:
        omegas = (1, 1) if init == "uniform-mm" else (run["omega0"], h)
        drawn |= {"omega0": np.float32(omegas[0]), "omega_h": np.float32(omegas[1])}
    return drawn


def compare_draws(init: str, got: Params, want: Params) -> float:
    """The largest difference in units in the last place, of an entry or of a thousandth of the root mean square."""
    assert got.keys() == want.keys(), f"{init}: {sorted(got.keys() ^ want.keys())} on one side only"
    worst = 0.0
    for name, w in want.items():
        g = got[name]
        assert (g.dtype, g.shape) == (w.dtype, w.shape), f"{init} {name}: {g.dtype}{g.shape} for {w.dtype}{w.shape}"
        unit = np.spacing(np.maximum(np.abs(w), np.sqrt(np.mean(w**2)) / 1000))
        ulps = float(np.max(np.abs(g - w) / unit))
        assert ulps <= ULPS, f"{init} {name}: drawn {ulps:.1f} units in the last place apart"
        worst = max(worst, ulps)
    return worst


def apply(params: Params, fixed: Params, x: jax.Array, init: str) -> jax.Array:
    last = max(int(name[2:]) for name in params if name.startswith("W."))
    if "pe" in fixed:
        angle = 2 * jnp.pi * (x @ fixed["pe"].T)
        x = jnp.concatenate([jnp.sin(angle), jnp.cos(angle)], -1)
    for l in range(last):
        z = x @ params[f"W.{l}"].T + params[f"b.{l}"]
        if init in ACTIVATIONS:
            x = ACTIVATIONS[init](z)
        else:
            x = jnp.sin(fixed["omega_h" if l else "omega0"] * z)
    return x @ params[f"W.{last}"].T + params.get(f"b.{last}", 0)


@partial(jax.jit, static_argnames="init")
def adam(state: Any, fixed: Params, x: Any, y: Any, rate: Any, eps: Any, init: str) -> tuple[Any, jax.Array]:
    params, m, v, t = state
    loss, grads = jax.value_and_grad(lambda p: jnp.mean((apply(p, fixed, x, init) - y) ** 2))(params)
    t = t + 1
    m = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, m, grads)
    v = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, v, grads)
    new = jax.tree.map(
        lambda p, m, v: p - rate * (m / (1 - 0.9**t)) / (jnp.sqrt(v / (1 - 0.999**t)) + eps), params, m, v
    )
    return (new, m, v, t), loss


def train(init: str, drawn: Params, x: np.ndarray, y: np.ndarray, run: dict[str, Any], dtype: type) -> np.ndarray:
    """Losses before each of steps 1 .. steps + 1."""
    with jax.enable_x64(dtype is np.float64):
        as_type = lambda value: jnp.asarray(value, dtype)
        # Networks of one shape share a program.
        shared = "sine" if init in SINES else init
        values = jax.tree.map(as_type, drawn)
        fixed = {name: values.pop(name) for name in ("omega0", "omega_h", "pe") if name in values}
        zero = jax.tree.map(jnp.zeros_like, values)
        state, losses = (values, zero, zero, as_type(0)), []
        given = [as_type(a) for a in (x, y, run["inits"][init]["learning_rate"], run["inits"][init]["eps"])]
        for _ in range(run["steps"] + 1):
            state, loss = adam(state, fixed, *given, shared)
            losses.append(loss)
        assert losses[-1].dtype == dtype
        return np.array([float(loss) for loss in losses])


def ours(width: int, hidden: int, size: int) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """What examples/train_losses.rs prints and writes."""
    with tempfile.TemporaryDirectory() as folder:
        file = f"{folder}/start.safetensors"
        command = ["cargo", "run", "--quiet", "--example", "train_losses", "--", "--out", file]
        command += ["--width", str(width), "--hidden", str(hidden), "--train-size", str(size)]
        done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
        if done.returncode != 0:
            sys.exit(1)  # It has said why.
        return json.loads(done.stdout), load_file(file)


def check(width: int, hidden: int, size: int, referee: bool) -> bool:
    begun = time.perf_counter()
    run, file = ours(width, hidden, size)
    x, y = file["x"], file["y"]
    field = moments(y, run["shape"])
    print(f"N {width}, L {hidden}, {len(x)} samples, {run['steps']} steps: relative differences of losses", flush=True)
    close = True
    for init, result in run["inits"].items():
        start = {name.removeprefix(f"{init}."): v for name, v in file.items() if name.startswith(f"{init}.")}
        drawn = draw(init, run, field)
        ulps = compare_draws(init, start, drawn)
        losses, theirs = np.array(result["losses"]), train(init, drawn, x, y, run, np.float32)
        assert losses.shape == theirs.shape, f"{init}: {len(losses)} losses for {len(theirs)}"
        apart = np.abs(losses / theirs - 1)
        good = bool((apart <= TOLERANCE).all())
        line = f"{init:10} {losses[0]:.5f} -> {losses[-1]:.5f}: last {apart[-1]:.1e}, worst {apart.max():.1e}"
        line += f"; draws within {ulps:.0f} ulp"
        if referee or not good:
            exact = train(init, drawn, x, y, run, np.float64)
            far = [abs(side[-1] / exact[-1] - 1) for side in (losses, theirs)]
            line += f"; last from f64: ours {far[0]:.1e}, JAX's f32 {far[1]:.1e}"
        print(line if good else f"{line}: TOO FAR APART", flush=True)
        close &= good
    print(f"{time.perf_counter() - begun:.0f} s")
    return close


def main() -> None:
    data = Path(os.environ.get("SINEXP_DATA") or ROOT / ".data")
    if not (data / "images/camera.png").is_file():
        sys.exit(f"check_training: {data}/images/camera.png is not there; run ./setup --data")
    results = [check(*case, referee="--referee" in sys.argv[1:]) for case in CASES]
    if not all(results):
        sys.exit("check_training: losses are too far apart")


if __name__ == "__main__":
    main()
