"""`sel invert` against NumPy: the leaves it writes, put through the paper's formulas in f64, are the weights it was given.

Checkpoints are made here by the reference library of the format: GPT-2's names in bf16, LLaMA's in f16 and f32, 8-bit
floats; so the reading of a name, a type and a shape is checked with it.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import ml_dtypes
import numpy as np
from common import BINARIES
from safetensors.numpy import save_file

SEL = BINARIES / "sel"


TYPES = {
    "F32": np.float32, "F16": np.float16, "I64": np.int64,
    "BF16": ml_dtypes.bfloat16, "F8_E4M3": ml_dtypes.float8_e4m3fn,
}  # fmt: skip


def load_file(path: Path) -> dict[str, np.ndarray]:
    """The tensors of a file; safetensors.numpy has no 8-bit floats."""
    data = path.read_bytes()
    start = 8 + int.from_bytes(data[:8], "little")
    header = json.loads(data[8:start])
    header.pop("__metadata__", None)
    parts = {n: data[start + t["data_offsets"][0] : start + t["data_offsets"][1]] for n, t in header.items()}
    return {n: np.frombuffer(parts[n], TYPES[t["dtype"]]).reshape(t["shape"]) for n, t in header.items()}


def scale(leaves: dict[str, np.ndarray], letter: str) -> np.ndarray:
    """r c^T of a matrix, r of a bias."""
    r = leaves[f"{letter}.r"].astype(np.float64)
    return np.outer(r, leaves[f"{letter}.c"].astype(np.float64)) if f"{letter}.c" in leaves else r


def effective(leaves: dict[str, np.ndarray], beta: float, mode: str) -> np.ndarray:
    """2607.09967, Appendix A, with sgn(0) = 1."""
    w = leaves["w"].astype(np.float64)
    e, m = scale(leaves, "e"), scale(leaves, "m")
    exponential = np.expm1(np.abs(beta * w * m)) * e
    sign = np.where(w >= 0, 1.0, -1.0)
    if mode == "exp_only":
        return sign * exponential
    linear = w * scale(leaves, "l")
    if mode == "congruent":
        return sign * exponential + linear
    if mode == "sinh":
        return e * np.sinh(beta * w * m) + linear
    return sign * (exponential + linear)


def models(rng: np.random.Generator) -> dict[str, tuple[dict[str, np.ndarray], set[str]]]:
    """Checkpoints by name, and which of their tensors are layers or the biases of some."""

    def normal(*shape: int, dtype: object, std: float = 0.05) -> np.ndarray:
        return (std * rng.standard_t(4, shape)).astype(dtype)

    gpt2 = {f"h.0.{n}": normal(*s, dtype=ml_dtypes.bfloat16) for n, s in {
        "attn.c_attn.weight": (48, 144), "attn.c_attn.bias": (144,), "attn.c_proj.weight": (48, 48),
        "mlp.c_fc.weight": (48, 192), "mlp.c_proj.weight": (192, 48), "mlp.c_proj.bias": (48,),
    }.items()}
    llama = {f"model.layers.1.{n}.weight": normal(*s, dtype=np.float16) for n, s in {
        "self_attn.q_proj": (64, 64), "self_attn.k_proj": (16, 64), "mlp.gate_proj": (160, 64), "mlp.down_proj": (64, 160),
    }.items()}
    llama["model.layers.1.mlp.up_proj.weight"] = normal(160, 64, dtype=np.float32)
    llama["model.layers.1.mlp.experts.0.up_proj.weight"] = normal(160, 64, dtype=ml_dtypes.float8_e4m3fn, std=1.0)
    return {
        "gpt2": ({**gpt2, "wte.weight": normal(99, 48, dtype=ml_dtypes.bfloat16)}, set(gpt2)),
        "llama": ({**llama, "model.norm.weight": normal(64, dtype=np.float32)}, set(llama)),
    }


def run(*arguments: object) -> None:
    done = subprocess.run([SEL, *map(str, arguments)], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{arguments}: {done.stderr}")


def main() -> None:
    worst, weights = 0.0, 0
    with tempfile.TemporaryDirectory() as folder:
        source, raw, back = (Path(folder) / f"{n}.safetensors" for n in ["source", "raw", "back"])
        for name, (tensors, layers) in models(np.random.default_rng(3)).items():
            save_file(tensors, source)
            for mode in ["mismatch", "congruent", "exp_only", "sinh"]:
                run("invert", source, "--out", raw, "--mode", mode, "--beta", 7.5)
                run("fold", raw, "--out", back)
                leaves, again = load_file(raw), load_file(back)
                assert set(again) == set(tensors), name
                copied = set(tensors) - layers
                assert {n for n in leaves if n in tensors} == copied, (name, mode)
                for layer in layers:
                    given = tensors[layer].astype(np.float64)
                    own = {n[len(layer) + 1 :]: v for n, v in leaves.items() if n.startswith(layer + ".")}
                    made = effective(own, 7.5, mode)
                    error = np.abs(made - given) / np.maximum(np.abs(given), 1e-3)
                    worst, weights = max(worst, error.max()), weights + given.size
                    same = again[layer] == tensors[layer]
                    if tensors[layer].dtype != np.float32:
                        assert same.all(), f"{name} {mode} {layer}: {(~same).sum()} of {same.size} changed"
                for tensor in copied:
                    assert leaves[tensor].tobytes() == tensors[tensor].tobytes() == again[tensor].tobytes(), tensor
    print(f"sel invert: {weights} weights through the paper's formulas: largest relative error {worst:.1e}")
    assert worst < 1e-6


if __name__ == "__main__":
    main()
