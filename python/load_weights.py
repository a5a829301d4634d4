"""Weights of sinexp as pytrees of JAX, and back.

What our files call their tensors:

* SIREN (`fit`, the experiments): `W.i` (outputs, inputs) and `b.i` (outputs) of layer i = 0 (input) .. L + 1 (output), and
  `omega0`, `omega_h` in the metadata: h_0 = sin(omega0 (W.0 x + b.0)), h_i = sin(omega_h (W.i h + b.i)), the last layer linear.
* Transformer (`sel train`): `emb` (vocabulary, d), `normf` (d), `head` (vocabulary, d; absent where tied to emb), and per
  block i `blocks.i.norm1`, `norm2`, `qn`, `kn` (gains) and the linear layers q, k, v, o, ff1, ff2 with weight
  `blocks.i.q.W` (outputs, inputs) and, with biases, `blocks.i.q.b`. A SymExpLin weight is the leaves `blocks.i.q.W.w`, `.e.r`,
  `.e.c`, `.l.r`, `.l.c`, `.m.r`, `.m.c` ..., which `sel fold` makes one `blocks.i.q.W`. Checkpoints of a training have
  the same names after `optimizer.m.` and `optimizer.v.`.

`load` gives nested dicts and lists, `equinox` and `flax` the layouts that these libraries use, and `save` writes any pytree
(also an Equinox model or Flax variables) so that `spectrum --weights` and `sel` read it:

    params = flax(load("weights.safetensors"))            # {"params": {"Dense_0": {"kernel", "bias"}, ...}}
    model = fill(model, equinox(load("weights.safetensors")))   # an Equinox module with layers[i].weight and .bias
    save(model, "model.safetensors", {"omega0": "30"})

    .venv/bin/python python/load_weights.py weights.safetensors          # prints the tree
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import jax
import numpy as np
from safetensors import safe_open
from safetensors.numpy import save_file

Tree = Any


def load(path: str | Path) -> Tree:
    """Nested dicts by the parts of the names; where these are 0 .. n-1, lists."""
    with safe_open(path, "np") as file:
        tied = json.loads((file.metadata() or {}).get("sinexp.tied", "{}"))
        return nested({name: file.get_tensor(tied.get(name, name)) for name in [*file.keys(), *tied]})


def nested(named: dict[str, Any]) -> Tree:
    """Arrays by name as a pytree: a dict for each part of the names, a list where the parts are 0 .. n-1."""
    tree: dict[str, Any] = {}
    for name, array in named.items():
        *parts, last = name.split(".")
        node = tree
        for part in parts:
            node = node.setdefault(part, {})
        node[last] = array
    return lists(tree)


def lists(tree: Tree) -> Tree:
    if not isinstance(tree, dict):
        return tree
    tree = {name: lists(child) for name, child in tree.items()}
    numbers = [str(i) for i in range(len(tree))]
    return [tree[i] for i in numbers] if set(tree) == set(numbers) else tree


def metadata(path: str | Path) -> dict[str, str]:
    """A file's metadata, such as a SIREN's omega0; which tensors were tied is in the tree."""
    with safe_open(path, "np") as file:
        return {name: text for name, text in (file.metadata() or {}).items() if name != "sinexp.tied"}


def equinox(tree: Tree) -> Tree:
    """A SIREN's {"W": [...], "b": [...]} as {"layers": [{"weight", "bias"}, ...]}: matrices stay (outputs, inputs)."""
    return {"layers": [layer("weight", w, i, tree) for i, w in enumerate(tree["W"])]}


def flax(tree: Tree) -> Tree:
    """The same as {"params": {"Dense_0": {"kernel", "bias"}, ...}}: kernels are (inputs, outputs)."""
    return {"params": {f"Dense_{i}": layer("kernel", w.T, i, tree) for i, w in enumerate(tree["W"])}}


def layer(name: str, matrix: np.ndarray, i: int, tree: Tree) -> dict[str, np.ndarray]:
    biases = tree.get("b", [])
    return {name: matrix, "bias": biases[i]} if i < len(biases) else {name: matrix}


def siren(tree: Tree) -> dict[str, np.ndarray]:
    """The inverse of `equinox` and `flax`: our names W.i and b.i."""
    if "params" in tree:
        layers = [tree["params"][f"Dense_{i}"] for i in range(len(tree["params"]))]
        layers = [dict(one, weight=np.asarray(one["kernel"]).T) for one in layers]
    else:
        layers = tree["layers"]
    weights = {f"W.{i}": one["weight"] for i, one in enumerate(layers)}
    return weights | {f"b.{i}": one["bias"] for i, one in enumerate(layers) if one.get("bias") is not None}


def leaves(tree: Tree) -> dict[str, Any]:
    """Arrays by name: the path in the pytree, its parts joined by dots. Functions and other settings are left out."""
    flat = jax.tree_util.tree_flatten_with_path(tree)[0]
    arrays = [(path, leaf) for path, leaf in flat if hasattr(leaf, "shape")]
    return {jax.tree_util.keystr(path, simple=True, separator="."): leaf for path, leaf in arrays}


def fill(template: Tree, tree: Tree) -> Tree:
    """`template`, an Equinox module or any pytree, with the arrays that `tree` has at the same places."""
    new = leaves(tree)
    missing = leaves(template).keys() ^ new.keys()
    assert not missing, f"only in one of the trees: {', '.join(sorted(missing))}"

    def replaced(path: Any, leaf: Any) -> Any:
        array = new.get(jax.tree_util.keystr(path, simple=True, separator="."))
        assert array is None or array.shape == leaf.shape, f"{jax.tree_util.keystr(path)}: {array.shape} for {leaf.shape}"
        return leaf if array is None else jax.numpy.asarray(array)

    return jax.tree_util.tree_map_with_path(replaced, template)


def save(tree: Tree, path: str | Path, metadata: dict[str, str] | None = None) -> None:
    """Writes every array of a pytree under its path, `layers.0.weight`, `params.Dense_0.kernel`, `blocks.0.q.W`."""
    # safetensors writes memory as it lies, and takes no other order than row-major.
    save_file({name: np.ascontiguousarray(leaf).reshape(leaf.shape) for name, leaf in leaves(tree).items()}, path, metadata)


def main() -> None:
    for path in sys.argv[1:]:
        for name, leaf in leaves(load(path)).items():
            print(f"{name:30} {leaf.dtype}{list(leaf.shape)}")
        print(metadata(path))


if __name__ == "__main__":
    main()
