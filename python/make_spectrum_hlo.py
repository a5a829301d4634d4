"""Writes tests/spectrum_hlo/: a SIREN with Flax's names and a recurrent network as programs, weights, and their spectra by JAX.

    .venv/bin/python python/make_spectrum_hlo.py
"""

from __future__ import annotations

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from safetensors.numpy import save_file

from export import FORMATS, save

# No names of source files in the programs.
jax.config.update("jax_traceback_in_locations_limit", 0)
FOLDER = Path(__file__).resolve().parent.parent / "tests" / "spectrum_hlo"
WIDTH, DEPTH, OMEGA0, OMEGA_H = 8, 3, 5.0, 1.5


def first(params, x):
    dense = lambda i, h: h @ params[f"Dense_{i}"]["kernel"] + params[f"Dense_{i}"]["bias"]
    return jnp.sin(OMEGA_H * dense(1, jnp.sin(OMEGA0 * dense(0, x))))


def rest(params, h):
    for i in range(2, DEPTH + 1):
        h = jnp.sin(OMEGA_H * (h @ params[f"Dense_{i}"]["kernel"] + params[f"Dense_{i}"]["bias"]))
    return h


def siren(variables, x):
    params = variables["params"]
    last = params[f"Dense_{DEPTH + 1}"]
    return rest(params, first(params, x)) @ last["kernel"] + last["bias"]


def recurrent(h, xs, w_in, w_rec):
    def step(h, x):
        return jnp.tanh(x @ w_in + h @ w_rec), jnp.sum(h**2)

    return lax.scan(step, h, xs)


def svd(j):
    return np.linalg.svd(np.asarray(j, np.float64), compute_uv=False)


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    rng = np.random.default_rng(11)
    normal = lambda *dims: rng.standard_normal(dims).astype(np.float32)
    sizes = [2] + [WIDTH] * (DEPTH + 1) + [3]
    params = {}
    for i, (a, b) in enumerate(zip(sizes, sizes[1:])):
        params[f"Dense_{i}"] = {"kernel": normal(a, b) / np.float32(a**0.5), "bias": normal(b)}
    variables = {"params": params}
    x = normal(5, 2)
    values = {}
    save(siren, (variables, x), *[FOLDER / f"siren{ending}" for ending in FORMATS])
    np.savez(FOLDER / "x.npz", x=x)
    flat = {f"params/{name}/{leaf}": a for name, dense in params.items() for leaf, a in dense.items()}
    np.savez(FOLDER / "flax.npz", **flat)
    layers = {f"layers.{i}.weight": np.ascontiguousarray(params[f"Dense_{i}"]["kernel"].T) for i in range(len(params))}
    layers |= {f"layers.{i}.bias": params[f"Dense_{i}"]["bias"] for i in range(len(params))}
    save_file(layers, FOLDER / "equinox.safetensors", {"omega0": str(OMEGA0), "omega_h": str(OMEGA_H)})

    per_sample = jax.vmap(lambda x: jax.jacfwd(lambda x: siren(variables, x))(x))
    values["batched"] = svd(per_sample(x))
    with jax.enable_x64(True):
        # The points that `spectrum --weights --points 4` draws.
        points = jax.random.uniform(jax.random.fold_in(jax.random.key(0), 2), (4, 2), jnp.float64, -1, 1)
        exact = jax.tree.map(lambda a: jnp.asarray(a, jnp.float64), params)
        hidden = jax.vmap(jax.jacfwd(lambda h: rest(exact, h)))(first(exact, points))
        values["hidden"] = svd(hidden)

    args = normal(4), normal(6, 3), normal(3, 4) * np.float32(0.3), normal(4, 4) * np.float32(0.5)
    save(recurrent, args, FOLDER / "recurrent.hlo.pb")
    h = normal(3, 4)
    np.savez(FOLDER / "h.npz", h=h)
    save_file({"xs": args[1], "w_in": args[2], "w_rec": args[3]}, FOLDER / "recurrent.safetensors")
    for i, name in enumerate(["state", "energy"]):
        values[name] = svd(jax.vmap(jax.jacfwd(lambda h: recurrent(h, *args[1:])[i]))(h))
    # The gradient of a scalar has one singular value: its length.
    save(lambda w, x: jnp.mean(jnp.sin(x @ w)), (args[3], normal(5, 4)), FOLDER / "loss.mlir")
    w, x = args[3], normal(5, 4)
    np.savez(FOLDER / "loss.npz", w, x)
    gradient = jax.grad(lambda w: jnp.mean(jnp.sin(x @ w)))(w)
    values["loss"] = np.linalg.norm(np.asarray(gradient, np.float64)).reshape(1, 1)
    save_file(values, FOLDER / "values.safetensors")


if __name__ == "__main__":
    main()
