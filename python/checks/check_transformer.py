"""Trains our transformer beside JAX from the same start on the same tokens: every loss and gradient norm compared.

examples/train_language.rs trains a small transformer, standard and with SymExpLin weights, and writes its initial
parameters, its tokens, and what each step found. The initial parameters must obey the laws of 2607.09967 (Section
4.3); then a plain jitted step in f32 (python/models/transformer.py) trains them. Losses must agree within 3e-6 of their size
up to the last step (JAX's own f32 is 6e-7 from f64), gradient norms within 5e-5: weight decay alone changes them by twice that.
Where they do not, and everywhere with `--referee`, JAX in f64 from the same start tells how far either side is from it.
`--from DIR` reads what is in DIR/VARIANT instead of running the example.
"""

from __future__ import annotations

import argparse
import dataclasses
import math
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from safetensors.numpy import load_file
from scipy import stats

from common import ROOT
from models.transformer import Gpt, Optimizer, Params, Sel, effective, initial, invert, loss, stack, start, train_step

MODEL = Gpt(width=64, depth=2, heads=4, vocabulary=256)
OPTIMIZER = Optimizer(rate=1e-3, warmup=4, steps=12)
BATCH, SEQUENCE = 2, 32
VARIANTS = {"baseline": None, "mismatch": Sel(), "offset-lora": Sel(offset=True, delta_rank=4)}
# Relative.
LOSS_TOLERANCE, NORM_TOLERANCE = 3e-6, 5e-5
# Of a Kolmogorov-Smirnov test that draws follow their law; one in a thousand good draws would fall below, but the key is fixed.
PROBABILITY = 1e-3

Arrays = dict[str, np.ndarray]


def congruent(w: np.ndarray, beta: float) -> np.ndarray:
    """f(w) of Eq. 13."""
    w = w.astype(np.float64)
    return np.sign(w) * np.expm1(beta * np.abs(w)) / beta + w / beta


def check_law(name: str, values: np.ndarray, law: str, spread: float) -> None:
    """Uniform on +-spread, or normal with that standard deviation."""
    x = values.ravel().astype(np.float64) / spread
    found = stats.kstest(x, stats.uniform(-1, 2).cdf if law == "uniform" else stats.norm.cdf).pvalue
    assert found >= PROBABILITY, f"{name}: not {law} with spread {spread:.4g} (probability {found:.1e})"
    if law == "uniform":
        assert np.abs(x).max() <= 1 + 1e-6, f"{name}: {np.abs(x).max():.6f} times the Xavier bound"


def check_initial(params: Arrays, model: Gpt) -> str:
    """Every leaf by its law; what negative effective weights are of their target, in words."""
    like, shapes = initial(model, 0), {}
    for name, leaf in like.items():
        shapes[name] = leaf.shape if params.get(name, leaf).ndim else ()
    assert params.keys() == like.keys(), f"parameters on one side only: {sorted(params.keys() ^ like.keys())[:8]}"
    kept, lost = 0.0, 0.0
    for name, leaf in params.items():
        assert (leaf.dtype, leaf.shape) == (np.float32, shapes[name]), f"{name}: {leaf.dtype}{leaf.shape}"
        part = name.split(".")
        if name in ("emb", "head"):
            check_law(name, leaf, "normal", 0.02)
        elif part[-1] == "A":
            check_law(name, leaf, "normal", leaf.shape[1] ** -0.5)
        elif leaf.ndim == 2 and part[-1] in ("W", "w"):
            target = congruent(leaf, model.sel.beta) if model.sel else leaf
            check_law(name, target, "uniform", math.sqrt(6 / sum(leaf.shape)))
        else:  # gains, biases, scales and B have one initial value, which does not depend on the seed
            assert np.abs(leaf - np.asarray(like[name]).ravel()[0]).max() <= 1e-7, f"{name}: not at its initial value"
    if model.sel is None:
        return "initial parameters obey their laws"
    with jax.enable_x64(True):
        wide = {name: jnp.asarray(leaf, jnp.float64) for name, leaf in params.items()}
        done = effective({name: leaf for name, leaf in wide.items() if ".d." not in name}, model.sel)
    for name in (name for name, leaf in params.items() if name.endswith(".W.w")):
        target, actual = congruent(params[name], model.sel.beta), np.asarray(done[name.removesuffix(".w")])
        apart = np.abs(actual - target)[target > 0].max() / np.abs(target).max()
        assert apart <= 1e-6, f"{name}: positive effective weights are {apart:.1e} from their targets"
        kept, lost = kept + np.abs(actual[target < 0]).sum(), lost + np.abs(target[target < 0]).sum()
    return f"initial parameters obey their laws, negative weights at {kept / lost:.3f} of their targets"


def check_paper_ratio() -> None:
    """Section 4.3 and Figure 12: at beta 7.5 and width 1024 negative weights have .75 to .80 of their magnitude."""
    bound = math.sqrt(6 / 2048)
    target = np.random.default_rng(0).uniform(-bound, bound, 2**20)
    w = invert(target, 7.5)
    worst = np.abs(congruent(w, 7.5) - target).max() / bound
    assert worst <= 1e-12, f"Newton's iterations end {worst:.1e} from their target"
    with jax.enable_x64(True):
        scales = {"b.e.r": [1 / 7.5], "b.l.r": [1 / 7.5], "b.m.r": [1.0]}
        leaves = {name: jnp.asarray(value) for name, value in (scales | {"b.w": w}).items()}
        actual = np.asarray(effective(leaves, Sel())["b"])
    ratio = np.abs(actual[w < 0]).mean() / np.abs(target[w < 0]).mean()
    assert 0.75 <= ratio <= 0.80, f"negative weights have {ratio:.3f} of their target's magnitude"
    print(f"width 1024, beta 7.5: Newton within {worst:.0e}, negative weights at {ratio:.3f} of their targets")


def train(params: Arrays, tokens: np.ndarray, model: Gpt, dtype: type) -> Arrays:
    """Loss and gradient norm of each step, and the last tokens' loss under the initial parameters."""
    with jax.enable_x64(dtype is np.float64):
        first: Params = stack({name: jnp.asarray(leaf, dtype) for name, leaf in params.items()})
        step, state, found = train_step(model, OPTIMIZER), start(first), []
        for batch in tokens:
            state, numbers = step(state, jnp.asarray(batch))
            found.append(numbers)
        assert found[-1][0].dtype == dtype
        untrained = jax.jit(loss, static_argnums=3)(first, tokens[-1, :, :-1], tokens[-1, :, 1:], model)
        losses, norms = np.array(jax.device_get(found), np.float64).T
        return {"losses": losses, "grad_norm": norms, "untrained": np.asarray(untrained)}


def ours(variant: str, folder: Path) -> None:
    command = ["cargo", "run", "--quiet", "--example", "train_language", "--", "--out", str(folder)]
    command += ["--variant", variant, "--steps", str(OPTIMIZER.steps)]
    if subprocess.run(command, cwd=ROOT).returncode != 0:
        sys.exit(1)  # It has said why.


def check(variant: str, folder: Path, referee: bool) -> bool:
    files = ("initial", "tokens", "losses")
    params, tokens, got = (load_file(folder / f"{name}.safetensors") for name in files)
    tokens, sel = tokens["tokens"], VARIANTS[variant]
    shape = (OPTIMIZER.steps, BATCH, SEQUENCE + 1)
    assert (tokens.dtype, tokens.shape) == (np.int32, shape), f"{variant}: tokens are {tokens.dtype}{tokens.shape}"
    assert tokens.min() >= 0 and tokens.max() < MODEL.vocabulary and len(np.unique(tokens)) > 8, f"{variant}: {tokens}"
    model = dataclasses.replace(MODEL, sel=sel)
    laws = check_initial(params, model)
    want = train(params, tokens, model, np.float32)
    # Or the comparison would not see the updates.
    assert abs(want["untrained"] / want["losses"][-1] - 1) > 100 * LOSS_TOLERANCE, f"{variant}: nothing was learned"
    apart = {}
    for name in ("losses", "grad_norm"):
        assert got[name].shape == want[name].shape, f"{variant}: {got[name].shape} {name} for {want[name].shape}"
        apart[name] = np.abs(got[name] / want[name] - 1)
    good = bool((apart["losses"] <= LOSS_TOLERANCE).all() and (apart["grad_norm"] <= NORM_TOLERANCE).all())
    line = f"{variant:11} {got['losses'][0]:.5f} -> {got['losses'][-1]:.5f}: loss last {apart['losses'][-1]:.1e}, "
    line += f"worst {apart['losses'].max():.1e}; gradient norm worst {apart['grad_norm'].max():.1e}; {laws}"
    if referee or not good:
        exact = train(params, tokens, model, np.float64)
        for name in apart:
            far = [np.abs(side[name] / exact[name] - 1).max() for side in (got, want)]
            line += f"; {name} from f64: ours {far[0]:.1e}, JAX's f32 {far[1]:.1e}"
    print(line if good else f"{line}: TOO FAR APART", flush=True)
    return good


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--referee", action="store_true")
    parser.add_argument("--from", dest="folder", type=Path)
    arguments = parser.parse_args()
    begun, results = time.perf_counter(), []
    check_paper_ratio()
    with tempfile.TemporaryDirectory() as temporary:
        for variant in VARIANTS:
            folder = (arguments.folder or Path(temporary)) / variant
            if arguments.folder is None:
                folder.mkdir()
                ours(variant, folder)
            results.append(check(variant, folder, arguments.referee))
    print(f"{time.perf_counter() - begun:.0f} s")
    if not all(results):
        sys.exit("check_transformer: losses or gradient norms are too far apart")


if __name__ == "__main__":
    main()
