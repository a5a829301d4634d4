"""JAX functions and models none of which was written for sinexp, in sinexp: forward, derivative, spectrum, weights.

1. A SIREN as an Equinox module and with Flax's names: its weights by `spectrum --weights` and its program by
   `spectrum --hlo` must have the singular values that jacfwd and numpy.linalg.svd find, to 1e-4 of the largest.
2. Functions of Equinox (and Flax, where it is installed: `pip install flax`) and jax.numpy, each in every format that
   python/export.py writes: `hlo run` must compute what JAX does, to 1e-5 of the largest; the singular values of its
   Jacobian by `spectrum --hlo` must be JAX's; or it is refused in one line that names the operation.
3. python/load_weights.py there and back, with files of `fit` and `sel`.

    cargo build --bins && .venv/bin/python python/checks/check_interop.py
"""

from __future__ import annotations

import re
import subprocess
import tempfile
from pathlib import Path
from typing import Any, Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from safetensors.numpy import load_file, save_file

import load_weights
from common import BINARIES, ROOT, rows
from export import FORMATS, jitted, save

try:
    import flax.linen
    import flax.nnx
except ImportError:
    flax = None

FORWARD, SPECTRUM = 1e-5, 1e-4


def run(program: str, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [BINARIES / program, *map(str, arguments)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)


def spectrum(folder: Path, *arguments: str | Path) -> np.ndarray | str:
    """Singular values, (spectra, rank) from the largest; or the one line that refuses."""
    done = run("spectrum", *arguments, "--out", folder / "spectrum", "--format", "csv")
    if done.returncode:
        assert done.returncode == 2 and done.stderr.count("\n") == 1, done.stderr
        return done.stderr.strip()
    spectra = rows(folder / "spectrum/spectra.csv")
    ranks = 1 + max(int(row["rank"]) for row in spectra)
    return np.array([float(row["value"]) for row in spectra]).reshape(-1, ranks)


def svd(jacobians: Any) -> np.ndarray:
    return np.linalg.svd(np.asarray(jacobians, np.float64), compute_uv=False)


def differ(got: np.ndarray, want: np.ndarray) -> float:
    """Relative to the largest."""
    assert got.shape == want.shape, f"{got.shape} for {want.shape}"
    return float(np.abs(got - want).max() / max(np.abs(want).max(), 1e-30))


# 1. Spectra of a SIREN.

WIDTH, DEPTH, OMEGA0, OMEGA_H, POINTS = 48, 4, 30.0, 1.0, 6


class Siren(eqx.Module):
    layers: list[eqx.nn.Linear]

    def __init__(self, key: jax.Array):
        sizes = [2] + [WIDTH] * (DEPTH + 1) + [3]
        keys = jax.random.split(key, len(sizes))
        self.layers = [eqx.nn.Linear(a, b, key=k) for a, b, k in zip(sizes, sizes[1:], keys)]
        # So that J is not tiny: sm20's bound.
        bigger = lambda layer: eqx.tree_at(lambda m: m.weight, layer, layer.weight * 6**0.5)
        self.layers = [self.layers[0], *map(bigger, self.layers[1:])]

    def first(self, x: jax.Array) -> jax.Array:
        return jnp.sin(OMEGA_H * self.layers[1](jnp.sin(OMEGA0 * self.layers[0](x))))

    def rest(self, h: jax.Array) -> jax.Array:
        for layer in self.layers[2:-1]:
            h = jnp.sin(OMEGA_H * layer(h))
        return h

    def __call__(self, x: jax.Array) -> jax.Array:
        return self.layers[-1](self.rest(self.first(x)))


def report(name: str, got: np.ndarray | str, want: np.ndarray) -> None:
    assert not isinstance(got, str), got
    worst = differ(got, want)
    resolved = want > 1e-3 * want.max()
    relative = np.abs(got / np.where(resolved, want, np.inf) - resolved).max()
    print(f"  {name:58} {worst:.1e} of the largest, {relative:.1e} of each above 1e-3 of it")
    assert worst <= SPECTRUM, name


def sirens(folder: Path) -> None:
    print("Spectrum of a SIREN (Equinox, 2-48x5-3) against jacfwd and numpy.linalg.svd:")
    model = Siren(jax.random.key(3))
    # The points that `spectrum` draws: its random numbers are jax.random's.
    with jax.enable_x64(True):
        key = jax.random.fold_in(jax.random.key(0), 2)
        x = jax.random.uniform(key, (POINTS, 2), jnp.float64, -1, 1)
        exact = jax.tree.map(lambda a: jnp.asarray(a, jnp.float64), eqx.filter(model, eqx.is_array))
        exact = eqx.combine(exact, model)
        h1 = jax.vmap(exact.first)(x)
        want = svd(jax.vmap(jax.jacfwd(exact.rest))(h1))
        layers = [{"weight": np.asarray(layer.weight), "bias": np.asarray(layer.bias)} for layer in model.layers]
        whole = svd(jax.vmap(jax.jacfwd(exact))(x))
    omegas = ("--omega0", OMEGA0, "--omega-h", OMEGA_H, "--points", POINTS)
    load_weights.save(eqx.filter(model, eqx.is_array), folder / "equinox.safetensors")
    assert "layers.0.weight" in load_file(folder / "equinox.safetensors")
    report("--weights, layers.i.weight", spectrum(folder, "--weights", folder / "equinox.safetensors", *omegas), want)
    kernels = {f"params/Dense_{i}/kernel": layer["weight"].T for i, layer in enumerate(layers)}
    kernels |= {f"params/Dense_{i}/bias": layer["bias"] for i, layer in enumerate(layers)}
    np.savez(folder / "flax.npz", **kernels)
    report("--weights, params/Dense_i/kernel, .npz", spectrum(folder, "--weights", folder / "flax.npz", *omegas), want)
    renamed = {name.replace("Dense_5", "out").replace("/", "."): np.ascontiguousarray(k) for name, k in kernels.items()}
    save_file(renamed, folder / "renamed.safetensors", {"omega0": "30", "omega_h": "1"})
    names = "Dense_{i}.kernel/Dense_{i}.bias,out.kernel/out.bias"
    got = spectrum(folder, "--weights", folder / "renamed.safetensors", "--names", names, "--points", POINTS)
    report("--weights --names, the output layer `out`", got, want)
    # Layer lists of (w, b) dicts as people write them by hand, (inputs, outputs).
    by_hand = {f"[{i}]['w']": np.ascontiguousarray(layer["weight"].T) for i, layer in enumerate(layers)}
    by_hand |= {f"[{i}]['b']": layer["bias"] for i, layer in enumerate(layers)}
    save_file(by_hand, folder / "hand.safetensors", {"omega0": "30", "omega_h": "1"})
    report("--weights, [i]['w']", spectrum(folder, "--weights", folder / "hand.safetensors", "--points", POINTS), want)

    x32, h32 = np.asarray(x, np.float32), np.asarray(h1, np.float32)
    np.savez(folder / "h.npz", h=h32)
    save_file({"x": x32}, folder / "x.safetensors")
    params, static = eqx.partition(model, eqx.is_array)
    with_params = lambda p, h: eqx.combine(p, static).rest(h)
    batch = jax.vmap(model)
    for ending in FORMATS:
        path = folder / f"rest{ending}"
        save(model.rest, (h32[0],), path)
        report(f"--hlo rest{ending}", spectrum(folder, "--hlo", path, "--input", folder / "h.npz"), want)
        path = folder / f"params{ending}"
        save(with_params, (params, h32[0]), path)
        arguments = ("--input", folder / "h.npz", "--params", folder / "equinox.safetensors")
        report(f"--hlo params{ending} --params", spectrum(folder, "--hlo", path, *arguments), want)
        path = folder / f"batch{ending}"
        save(batch, (x32,), path)
        arguments = ("--input", folder / "x.safetensors", "--batched")
        report(f"--hlo batch{ending} --batched", spectrum(folder, "--hlo", path, *arguments), whole)
    # The whole Jacobian of a batch is block-diagonal: the same values in one list.
    got = spectrum(folder, "--hlo", folder / "batch.hlo.pb", "--input", folder / "x.safetensors")
    report("--hlo batch.hlo.pb, one matrix", got, np.sort(whole.reshape(1, -1))[:, ::-1])
    normalised = lambda x: (x - x.mean(0)) / x.std(0)
    save(normalised, (x32,), folder / "mixed.hlo.pb")
    got = spectrum(folder, "--hlo", folder / "mixed.hlo.pb", "--input", folder / "x.safetensors", "--batched")
    assert isinstance(got, str) and "depends on other samples" in got, got


# 2. Functions of others.

CASES: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {}
rng = np.random.default_rng(7)


def normal(*dims: int) -> np.ndarray:
    return rng.standard_normal(dims).astype(np.float32)


def case(*args: Any, name: str = "") -> Callable[..., Any]:
    def register(f: Callable[..., Any]) -> Callable[..., Any]:
        CASES[name or f.__name__] = (f, args)
        return f

    return register


def cases() -> None:
    key = jax.random.key(1)
    case(normal(5, 3), name="eqx.nn.MLP, gelu")(jax.vmap(eqx.nn.MLP(3, 4, 16, 2, activation=jax.nn.gelu, key=key)))
    attention = eqx.nn.MultiheadAttention(2, 8, key=key)
    case(normal(6, 8), name="eqx.nn.MultiheadAttention")(lambda x: attention(x, x, x, mask=jnp.tril(jnp.ones((6, 6), bool))))
    conv, pool = eqx.nn.Conv2d(3, 4, 3, 2, padding=1, key=key), eqx.nn.AvgPool2d(2)
    case(normal(3, 8, 8), name="eqx.nn.Conv2d, AvgPool2d")(lambda x: jax.nn.relu(pool(conv(x))))
    turned = eqx.nn.ConvTranspose2d(2, 3, 3, 2, key=key)
    case(normal(2, 5, 4), name="eqx.nn.ConvTranspose2d")(turned)
    norm = eqx.nn.GroupNorm(2, 4)
    case(normal(4, 5), name="eqx.nn.GroupNorm")(norm)
    maximum = eqx.nn.MaxPool2d(2, 2)
    case(normal(2, 6, 6), name="eqx.nn.MaxPool2d")(maximum)
    cell = eqx.nn.GRUCell(3, 5, key=key)
    case(normal(7, 3), name="eqx.nn.GRUCell, lax.scan")(lambda xs: lax.scan(lambda h, x: (cell(x, h),) * 2, jnp.zeros(5), xs)[1])
    lstm = eqx.nn.LSTMCell(3, 5, key=key)
    case(normal(4, 3), name="eqx.nn.LSTMCell, fori_loop")(
        lambda xs: lax.fori_loop(0, 4, lambda i, s: lstm(xs[i], s), (jnp.zeros(5), jnp.zeros(5)))[0]
    )
    embed = eqx.nn.Embedding(11, 6, key=key)
    case(normal(6, 11), np.array([3, 0, 10, 3], np.int32), name="eqx.nn.Embedding")(
        lambda w, i: jax.vmap(eqx.tree_at(lambda e: e.weight, embed, w.T))(i)
    )
    case(normal(3), name="lax.while_loop, Newton")(
        lambda a: lax.while_loop(lambda x: jnp.max(jnp.abs(x * x - a * a - 1)) > 1e-4, lambda x: (x + (a * a + 1) / x) / 2, 1 + a * a)
    )
    case(normal(5, 6), name="jnp.sort")(lambda x: jnp.sort(x, axis=0))
    case(normal(9), name="jnp.median, quantile")(lambda x: jnp.stack([jnp.median(x), jnp.quantile(x, 0.3)]))
    case(normal(4, 6), name="jnp.cumsum, lax.cumlogsumexp")(lambda x: lax.cumlogsumexp(jnp.cumsum(x, 1), 0))
    case(normal(8, 3), name="lax.associative_scan")(lambda x: lax.associative_scan(lambda a, b: a * b + b, x))
    case(normal(16), name="jnp.fft.rfft")(lambda x: jnp.abs(jnp.fft.rfft(x)))
    case(normal(4, 4), name="jnp.linalg.cholesky")(lambda x: jnp.linalg.cholesky(x @ x.T + jnp.eye(4)))
    case(normal(4, 3), name="jnp.linalg.svd")(lambda x: jnp.linalg.svd(x, compute_uv=False))
    case(normal(4, 4), normal(4), name="jnp.linalg.solve")(lambda a, b: jnp.linalg.solve(a, b))
    case(normal(4, 4), name="jnp.linalg.qr")(lambda x: jnp.linalg.qr(x)[1])
    case(normal(4, 4), name="jax.scipy.linalg.expm")(lambda x: jax.scipy.linalg.expm(0.1 * x))
    case(normal(6, 5), name="jax.image.resize, bicubic")(lambda x: jax.image.resize(x, (9, 11), "cubic"))
    case(normal(7), name="jnp.interp")(lambda x: jnp.interp(x, jnp.linspace(-2, 2, 9), jnp.sin(jnp.arange(9.0))))
    case(normal(12), normal(5), name="jnp.convolve")(lambda x, k: jnp.convolve(x, k, mode="same"))
    special = jax.scipy.special
    case(normal(6), name="jax.scipy.special: erf, i0e, gammaln")(
        lambda x: jnp.stack([special.erf(x), special.i0e(x), special.gammaln(x * x + 0.5)])
    )
    case(normal(10), name="jax.random.permutation, dropout")(
        lambda x: jax.random.permutation(key, x) * jax.random.bernoulli(key, 0.6, (10,))
    )
    case(normal(2, 6, 2, 4), name="jax.nn.dot_product_attention")(lambda q: jax.nn.dot_product_attention(q, q[:, ::-1], q, is_causal=True))
    case(normal(7), np.array([0, 2, 2, 1, 0, 2, 1], np.int32), name="jax.ops.segment_sum, segment_max")(
        lambda x, s: jax.ops.segment_sum(x, s, 4) + jnp.maximum(jax.ops.segment_max(x, s, 4), -9)
    )
    small = eqx.nn.MLP(2, 1, 8, 1, activation=jnp.tanh, key=key)
    case(normal(9, 2), normal(9), name="training step (value_and_grad)")(
        lambda x, y: jax.tree.leaves(
            eqx.filter_grad(lambda m: jnp.mean((jax.vmap(m)(x)[:, 0] - y) ** 2))(small), is_leaf=eqx.is_array
        )[0]
    )
    case(normal(4), name="jax.experimental.ode")(ode)
    dense = {"kernel": normal(3, 5), "bias": normal(5)}
    case({"params": {"Dense_0": dense}}, normal(4, 3), name="Flax-style dict of parameters")(
        lambda v, x: jax.nn.swish(x @ v["params"]["Dense_0"]["kernel"] + v["params"]["Dense_0"]["bias"])
    )
    if flax:
        block = flax.linen.Sequential([flax.linen.Dense(8), flax.linen.LayerNorm(), flax.linen.gelu, flax.linen.Dense(3)])
        variables = jax.tree.map(np.asarray, block.init(key, jnp.zeros((4, 5))))
        case(variables, normal(4, 5), name="flax.linen Dense, LayerNorm")(block.apply)
        attend = flax.linen.MultiHeadDotProductAttention(2, deterministic=True)
        variables = jax.tree.map(np.asarray, attend.init(key, jnp.zeros((6, 8))))
        case(variables, normal(6, 8), name="flax.linen attention")(attend.apply)
        graph, state = flax.nnx.split(flax.nnx.Conv(2, 3, (3,), rngs=flax.nnx.Rngs(0)))
        case(normal(2, 9, 2), name="flax.nnx.Conv")(lambda x: flax.nnx.merge(graph, state)(x))


def ode(x: jax.Array) -> jax.Array:
    from jax.experimental.ode import odeint

    return odeint(lambda y, t: jnp.stack([y[1], -y[0], y[3], -jnp.sin(y[2])]), x, jnp.array([0.0, 0.5, 1.0]))[-1]


def reason(line: str) -> str:
    """A refusal without the file's name."""
    return re.sub(r"^error: (?:\S+: )?(?:program `HLO text`: )?(?:line \d+: )?", "", line)[:90]


def forward(folder: Path, path: Path, want: list[np.ndarray]) -> float | str:
    out = folder / "out.safetensors"
    out.unlink(missing_ok=True)
    done = run("hlo", "run", path, "--inputs", folder / "in.npz", "--out", out)
    if done.returncode:
        assert done.returncode == 2 and done.stderr.count("\n") == 1 and "`" in done.stderr, done.stderr
        return reason(done.stderr.strip())
    got = [array for _, array in sorted(load_file(out).items())]
    assert len(got) == len(want) == 1, "one result"
    worst = differ(got[0].astype(np.float64), want[0].astype(np.float64))
    assert got[0].dtype == want[0].dtype and worst <= FORWARD, f"{path.name}: {worst:.2e}"
    return worst


def others(folder: Path) -> tuple[int, int]:
    print(f"\n{'function':37} {'hlo run, worst of ' + str(len(FORMATS)) + ' formats':32} spectrum --hlo")
    passed = refused = 0
    for name, (f, args) in CASES.items():
        leaves = jax.tree.leaves(args)
        np.savez(folder / "in.npz", *leaves)
        want = [np.asarray(y) for y in jax.tree.leaves(jitted(f)(*args))]
        results = []
        for ending in FORMATS:
            path = folder / f"f{ending}"
            save(f, args, path)
            results.append(forward(folder, path, want))
        texts = {r for r in results if isinstance(r, str)}
        assert not texts or all(isinstance(r, str) for r in results), f"{name}: {results}"
        ran = "refused: " + min(texts) if texts else f"{max(results):.1e}"
        # By the last argument of floats.
        last = max(i for i, leaf in enumerate(leaves) if leaf.dtype == np.float32)
        flat, tree = jax.tree.flatten(args)
        of = lambda x: f(*jax.tree.unflatten(tree, [*flat[:last], x, *flat[last + 1 :]]))
        arguments = ("--input", folder / "in.npz", "--wrt", last)
        got = spectrum(folder, "--hlo", folder / "f.hlo.pb", *arguments)
        if isinstance(got, str):
            assert "`" in got, got
            derivative = "refused: " + reason(got)
        else:
            # odeint has a reverse rule only, open loops none.
            mode = jax.jacrev if name == "jax.experimental.ode" else jax.jacfwd
            jacobian = np.asarray(mode(of)(leaves[last])).reshape(want[0].size, -1)
            worst = differ(got, svd(jacobian)[None])
            assert worst <= SPECTRUM, f"{name}: {worst:.2e}"
            derivative = f"{worst:.1e}"
        passed += not texts
        refused += isinstance(got, str)
        print(f"{name:37} {ran:32} {derivative}")
    print(f"{passed} of {len(CASES)} run; {len(CASES) - refused} have a Jacobian here, the others are refused by name")
    return passed, len(CASES) - refused


# 3. Weights.


def same(a: Any, b: Any, what: str) -> None:
    assert jax.tree.structure(a) == jax.tree.structure(b), f"{what}: {jax.tree.structure(b)}"
    for (path, x), y in zip(jax.tree_util.tree_flatten_with_path(a)[0], jax.tree.leaves(b)):
        assert x.dtype == y.dtype and np.array_equal(x, y), f"{what}: {jax.tree_util.keystr(path)}"


def weights(folder: Path) -> None:
    model = Siren(jax.random.key(5))
    params = eqx.filter(model, eqx.is_array)
    path = folder / "ours.safetensors"
    tree = {"layers": [{"weight": np.asarray(m.weight), "bias": np.asarray(m.bias)} for m in model.layers]}
    load_weights.save(load_weights.siren(tree), path, {"omega0": "30.0", "omega_h": "1.0"})
    assert set(load_file(path)) == {f"{kind}.{i}" for kind in "Wb" for i in range(DEPTH + 2)}
    ours = load_weights.load(path)
    same(tree, load_weights.equinox(ours), "Equinox")
    flax_tree = load_weights.flax(ours)
    assert flax_tree["params"]["Dense_0"]["kernel"].shape == (2, WIDTH)
    same(load_weights.siren(tree), load_weights.siren(flax_tree), "Flax")
    blank = jax.tree.map(jnp.zeros_like, params)
    same(params, load_weights.fill(blank, load_weights.equinox(ours)), "an Equinox module filled")
    got = [spectrum(folder, "--weights", file, "--points", 2) for file in (path,)]
    load_weights.save(flax_tree, folder / "tree.safetensors", load_weights.metadata(path))
    got.append(spectrum(folder, "--weights", folder / "tree.safetensors", "--points", 2))
    assert not any(isinstance(g, str) for g in got) and np.array_equal(*got), got
    print("\nload_weights.py: SIREN to Equinox and Flax pytrees and back, bit for bit; spectra of both files equal")

    done = run("sel", "train", "--preset", "smoke", "--corpus", text(folder), "--steps", 4, "--out", folder / "sel")
    assert done.returncode == 0, done.stderr
    checkpoint = sorted((folder / "sel/checkpoints").glob("*.safetensors"))[-1]
    tree = load_weights.load(checkpoint)
    again = folder / "again.safetensors"
    load_weights.save(tree, again, load_weights.metadata(checkpoint))
    want, got = load_file(checkpoint), load_file(again)
    assert want.keys() == got.keys() and all(np.array_equal(got[n], want[n]) for n in want), "sel train"
    for file, out in ((checkpoint, "a.safetensors"), (again, "b.safetensors")):
        done = run("sel", "fold", file, "--out", folder / out)
        assert done.returncode == 0, done.stderr
    assert (folder / "a.safetensors").read_bytes() == (folder / "b.safetensors").read_bytes()
    folded = load_weights.load(folder / "a.safetensors")
    print(f"load_weights.py: {len(want)} tensors of `sel train` and back; `sel fold` of both is the same file; {len(folded['blocks'])} blocks")


def text(folder: Path) -> Path:
    path = folder / "text.txt"
    path.write_text("All happy families are alike; each unhappy family is unhappy in its own way. " * 500)
    return path


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        sirens(folder)
        cases()
        passed, differentiated = others(folder)
        assert passed >= 20 and differentiated >= 20, "fewer than there were"
        weights(folder)


if __name__ == "__main__":
    main()
