"""The default run of `spectrum` in JAX, as carefully as it is done here: for benches/against_jax.py.

Jacobians dh_L/dh_1 in f64 by jacfwd and vmap of the network, one jitted program per depth; singular values only, by
LAPACK's gesdd in two threads of one BLAS thread each; a summary table and the spectra as CSV. It draws no figure and
writes no Parquet, which the binary does.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import argparse
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

jax.config.update("jax_enable_x64", True)
WIDTH, DEPTHS, NETWORKS, POINTS, OMEGA0 = 256, (4, 8, 16, 32), 5, 10, 30.0
INITS = ("uniform-mm", "cvp26-s0", "cvp26-s1", "sm20")


def uniform(key: jax.Array, shape: tuple[int, ...], bound: float) -> jax.Array:
    return jax.random.uniform(key, shape, jnp.float32, -bound, bound)


def draw(init: str, key: jax.Array, depth: int, moments: tuple[float, float, float]) -> dict[str, jax.Array]:
    """Stacked hidden layers 1 .. depth, the input layer, and its frequency."""
    keys = jax.random.split(key, 4)
    shape = (depth, WIDTH, WIDTH)
    if init == "uniform-mm":
        w0 = jax.random.normal(keys[0], (WIDTH, 1), jnp.float32) * moments[2] ** 0.5
        w = jax.random.normal(keys[2], shape, jnp.float32) * (2 / WIDTH) ** 0.5
        b0, b = uniform(keys[1], (WIDTH,), np.pi), uniform(keys[3], shape[:2], np.pi)
        return {"w0": w0, "b0": b0, "w": w, "b": b, "omega0": jnp.array(1.0)}
    w0, b0 = uniform(keys[0], (WIDTH, 1), 1.0), uniform(keys[1], (WIDTH,), 1.0)
    if init == "sm20":
        w, b = uniform(keys[2], shape, (6 / WIDTH) ** 0.5), uniform(keys[3], shape[:2], WIDTH**-0.5)
    else:
        c = 3**0.5 if init == "cvp26-s0" else (6 / (1 + np.exp(-2))) ** 0.5
        w = uniform(keys[2], shape, c / WIDTH**0.5)
        std = 0.0 if init == "cvp26-s0" else (c * c * np.exp(-2) / 3) ** 0.5
        b = jax.random.normal(keys[3], shape[:2], jnp.float32) * std
    return {"w0": w0, "b0": b0, "w": w, "b": b, "omega0": jnp.array(OMEGA0)}


def first(p: dict[str, jax.Array], x: jax.Array) -> jax.Array:
    h = jnp.sin(p["omega0"] * (p["w0"] @ x + p["b0"]))
    return jnp.sin(p["w"][0] @ h + p["b"][0])


def rest(p: dict[str, jax.Array], h: jax.Array) -> jax.Array:
    for i in range(1, p["w"].shape[0]):
        h = jnp.sin(p["w"][i] @ h + p["b"][i])
    return h


@jax.jit
def jacobians(p: dict[str, jax.Array], x: jax.Array) -> jax.Array:
    p = jax.tree.map(lambda a: a.astype(jnp.float64), p)
    return jax.vmap(lambda x: jax.jacfwd(lambda h: rest(p, h))(first(p, x)))(x)


def field_moments(key: jax.Array) -> tuple[float, float, float]:
    """Mean, variance and slope moment of a CVP26 sigma_a = 0 network at 1000 points on [-pi, pi]."""
    keys = jax.random.split(key)
    p = draw("cvp26-s0", keys[0], 4, (0.0, 1.0, 1.0))
    p = jax.tree.map(lambda a: a.astype(jnp.float64), p)
    out = uniform(keys[1], (WIDTH,), (3 / WIDTH) ** 0.5).astype(jnp.float64)
    x = jnp.linspace(-np.pi, np.pi, 1000)[:, None]
    y = np.asarray(jax.vmap(lambda x: out @ rest(p, first(p, x)))(x))
    padded = np.pad(y, 1, mode="edge")
    slope = (padded[2:] - padded[:-2]) / (2 * 2 * np.pi / 999)
    variance = y.var(ddof=1)
    return float(y.mean()), float(variance), float((slope**2).mean() / (variance + 1e-6) + 1e-6)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    out = parser.parse_args().out
    out.mkdir(parents=True, exist_ok=True)
    root = jax.random.key(0)
    moments = field_moments(root)
    rows = ["init,depth,network,point,rank,value"]
    table = []
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for d, depth in enumerate(DEPTHS):
            for i, init in enumerate(INITS):
                spectra = []
                for n in range(NETWORKS):
                    key = jax.random.fold_in(jax.random.fold_in(jax.random.fold_in(root, i), d), n)
                    keys = jax.random.split(key)
                    x = jax.random.uniform(keys[0], (POINTS, 1), jnp.float64, -np.pi, np.pi)
                    j = np.asarray(jacobians(draw(init, keys[1], depth, moments), x))
                    spectra.append(list(pool.map(lambda m: np.linalg.svd(m, compute_uv=False), j)))
                s = np.array(spectra)
                square = (s**2).mean(axis=(1, 2))
                error = square.std(ddof=1) / NETWORKS**0.5
                table.append((init, depth, s[..., 0].mean(), s[..., -1].mean(), square.mean(), error))
                rows += [f"{init},{depth},{n},{p},{r},{v:.17g}" for (n, p, r), v in np.ndenumerate(s)]
    (out / "spectra.csv").write_text("\n".join(rows) + "\n")
    for row in table:
        print("{:>10} L {:>2}: largest {:.4g}, smallest {:.3g}, mean square {:.4g} +- {:.2g}".format(*row))


if __name__ == "__main__":
    main()
