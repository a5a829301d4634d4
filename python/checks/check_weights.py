"""The program `weights` against NumPy, SciPy and ml_dtypes on the same tensors.

Percentiles, counts and histograms must be equal, moments to 1e-11, over f32, f64, f16, bf16 and the 8-bit types, per
tensor, per role and over all matrices, in a sharded checkpoint with GPT-2's orientation among them. Then what it says of
checkpoints with something missing.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
from pathlib import Path

import ml_dtypes
import numpy as np
from common import BINARIES, rows
from scipy import stats

PERCENTS = [0, 0.1, 1, 5, 25, 50, 75, 95, 99, 99.9, 99.99, 100]
THRESHOLDS = [0.01, 0.05, 0.1, 0.5]
TAIL = 0.001
TYPES = {
    "F64": np.dtype(np.float64),
    "F32": np.dtype(np.float32),
    "F16": np.dtype(np.float16),
    "BF16": np.dtype(ml_dtypes.bfloat16),
    "F8_E4M3": np.dtype(ml_dtypes.float8_e4m3fn),
    "F8_E5M2": np.dtype(ml_dtypes.float8_e5m2),
    "F8_E4M3FNUZ": np.dtype(ml_dtypes.float8_e4m3fnuz),
    "F8_E5M2FNUZ": np.dtype(ml_dtypes.float8_e5m2fnuz),
    "F8_E8M0": np.dtype(ml_dtypes.float8_e8m0fnu),
    "I64": np.dtype(np.int64),
}


def save(path: Path, tensors: dict[str, tuple[str, np.ndarray]]) -> None:
    """A safetensors file, also of types that the Python library does not write."""
    header, data = {}, b""
    for name, (kind, values) in tensors.items():
        raw = values.astype(TYPES[kind]).tobytes()
        header[name] = {"dtype": kind, "shape": values.shape, "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)


def heavy(rng: np.random.Generator, *shape: int) -> np.ndarray:
    return 0.03 * rng.standard_t(3, shape)


def content() -> list[dict[str, tuple[str, np.ndarray]]]:
    """Two shards. Tensors of wide types above 65536 elements are counted in bins, those below are sorted."""
    rng = np.random.default_rng(1)
    first = {
        "model.embed_tokens.weight": ("BF16", heavy(rng, 500, 64)),
        "model.layers.0.self_attn.q_proj.weight": ("F32", heavy(rng, 400, 300)),
        "model.layers.1.self_attn.q_proj.weight": ("F64", heavy(rng, 400, 200)),
        "model.layers.2.self_attn.q_proj.weight": ("BF16", heavy(rng, 300, 300)),
        "model.layers.3.self_attn.q_proj.weight": ("F16", heavy(rng, 30, 30)),
        "model.layers.0.self_attn.k_proj.weight": ("F32", heavy(rng, 1200, 1100)),
        "model.layers.1.self_attn.k_proj.weight": ("F32", heavy(rng, 20, 1100)),
        "model.layers.0.input_layernorm.weight": ("F32", 1 + 1e-3 * heavy(rng, 70_000)),
        "model.layers.0.mlp.gate_proj.weight": ("F32", np.where(rng.random((300, 300)) < 0.7, 0, heavy(rng, 300, 300))),
        "model.position_ids": ("I64", np.arange(9)),
    }
    second = {
        "h.0.attn.c_attn.weight": ("F32", heavy(rng, 64, 192)),
        "h.0.attn.c_proj.weight": ("F32", heavy(rng, 64, 64)),
        "h.0.mlp.c_fc.weight": ("BF16", heavy(rng, 64, 256)),
        "model.layers.0.mlp.up_proj.weight": ("F64", heavy(rng, 10, 12)),
        "conv.weight": ("F32", heavy(rng, 8, 4, 3, 3)),
    }
    for i, kind in enumerate(k for k in TYPES if k.startswith("F8")):
        values = heavy(rng, 90, 80) if kind != "F8_E8M0" else 2.0 ** rng.integers(-9, 3, (90, 80))
        second[f"model.layers.{i}.mlp.down_proj.weight"] = (kind, values)
        # Every bit pattern once, those that are not finite too.
        second[f"patterns.{kind}"] = (kind, np.arange(256, dtype=np.uint8).view(TYPES[kind]).reshape(16, 16))
    return [first, second]


def values(entry: tuple[str, np.ndarray]) -> np.ndarray:
    kind, array = entry
    return array.astype(TYPES[kind]).astype(np.float64).ravel()


def bound(shape: tuple[int, ...]) -> float | None:
    if len(shape) < 2:
        return None
    window = int(np.prod(shape[2:], dtype=int))
    return float(np.sqrt(6 / (window * (shape[0] + shape[1]))))


def close(got: str, want: float, what: str, tolerance: float = 1e-11) -> None:
    assert got != "" and abs(float(got) - want) <= tolerance * abs(want), f"{what}: {got} for {want}"


def check(row: dict[str, str], all_values: np.ndarray, bounds: list[tuple[np.ndarray, float | None]], what: str) -> None:
    w = all_values[np.isfinite(all_values)]
    m = np.abs(w)
    assert int(row["weights"]) == w.size, what
    assert int(row["not finite"]) == all_values.size - w.size, what
    assert int(row["zeros"]) == (w == 0).sum(), what
    close(row["std"], w.std(), f"std of {what}")
    assert abs(float(row["mean"]) - w.mean()) <= 1e-12 * max(w.std(), abs(w.mean())), f"mean of {what}"
    close(row["excess kurtosis"], float(stats.kurtosis(w)), f"kurtosis of {what}", 1e-9)
    assert abs(float(row["skewness"]) - stats.skew(w)) <= 1e-9 * max(1, abs(stats.skew(w))), f"skewness of {what}"
    for column, numbers in (("w", w), ("|w|", m)):
        for p in PERCENTS:
            got, want = float(row[f"{column} {p} %"]), np.percentile(numbers, p)
            assert got == want, f"{column} {p} % of {what}: {got} for {want}"
    for x in THRESHOLDS:
        close(row[f"|w| > {x} [%]"], 100 * (m > x).sum() / w.size, f"share above {x} of {what}", 1e-14)
    k = max(10, round(TAIL * w.size))
    if 10 * k <= w.size and (top := np.sort(m)[-k - 1 :])[0] > 0 and top[-1] > top[0]:
        assert int(row["tail k"]) == k, what
        hill = 1 / np.mean(np.log(top[1:] / top[0]))
        # SciPy's maximum-likelihood Pareto with its scale fixed at X_{k+1} is the same estimate.
        pareto = stats.pareto.fit(top[1:], floc=0, fscale=top[0])[0]
        close(row["Hill"], hill, f"Hill's index of {what}", 1e-10)
        close(row["Hill"], pareto, f"Hill's index of {what} by SciPy", 1e-6)
    else:
        assert row["Hill"] == "", f"Hill's index of {what}: {row['Hill']}"
    matrices = [(v[np.isfinite(v)], b) for v, b in bounds if b is not None]
    if matrices:
        sizes = np.array([v.size for v, _ in matrices])
        limits = np.array([b for _, b in matrices])
        close(row["Xavier max"], limits.max(), f"Xavier's max of {what}")
        close(row["Xavier std"], np.sqrt((sizes * limits**2 / 3).sum() / sizes.sum()), f"Xavier's std of {what}")
        close(row["growth of max"], m.max() / limits.max(), f"growth of {what}")
        above = sum((np.abs(v) > b).sum() for v, b in matrices)
        close(row["above Xavier max [%]"], 100 * above / w.size, f"above Xavier of {what}")


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        shards = content()
        for i, shard in enumerate(shards):
            save(folder / f"model-{i}.safetensors", shard)
        weight_map = {t: f"model-{i}.safetensors" for i, shard in enumerate(shards) for t in shard}
        index = folder / "model.safetensors.index.json"
        index.write_text(json.dumps({"metadata": {}, "weight_map": weight_map}))
        numbers = ["--percentiles", ",".join(map(str, PERCENTS)), "--thresholds", ",".join(map(str, THRESHOLDS))]
        command = [BINARIES / "weights", folder, "--format", "csv", "--out", folder / "out", "--tail", str(TAIL), "--singular-values", *numbers]
        result = subprocess.run(command, capture_output=True, text=True)
        # Patterns that are not finite were found, and said.
        assert result.returncode == 1, result.stderr
        assert "tensor `patterns.F8_E4M3`: 2 of 256 weights are not finite" in result.stderr, result.stderr
        assert "model.position_ids (I64, no real numbers)" in result.stdout, result.stdout

        tensors = {t: entry for shard in shards for t, entry in shard.items() if entry[0] != "I64"}
        found = rows(folder / "out/tensors.csv")
        assert [r["tensor"] for r in found] == list(tensors), "other tensors than were written"
        roles: dict[str, list[str]] = {}
        for row in found:
            entry = tensors[row["tensor"]]
            check(row, values(entry), [(values(entry), bound(entry[1].shape))], row["tensor"])
            roles.setdefault(row["role"], []).append(row["tensor"])
        assert {r: len(t) for r, t in roles.items()} == {
            "embed": 1, "q": 4, "k": 2, "norm": 1, "gate": 1, "qkv": 1, "o": 1, "up": 2, "down": 5, "other": 6
        }, roles  # fmt: skip
        fans = {r["tensor"]: (r["inputs"], r["outputs"]) for r in found}
        assert fans["h.0.attn.c_attn.weight"] == ("64", "192") and fans["h.0.mlp.c_fc.weight"] == ("64", "256")
        assert fans["model.layers.0.mlp.up_proj.weight"] == ("12", "10") and fans["conv.weight"] == ("36", "72")

        counted = [r["tensor"] for r in found if r["counted"] == "true"]
        assert set(counted) == set(tensors) - set(roles["embed"]) - set(roles["norm"])
        pools = {**roles, "linear layers": counted}
        for row in rows(folder / "out/summary.csv"):
            entries = [tensors[t] for t in pools.pop(row["role"])]
            parts = [(values(e), bound(e[1].shape)) for e in entries]
            check(row, np.concatenate([v for v, _ in parts]), parts, row["role"])
        assert not pools, pools

        histogram = rows(folder / "out/histogram.csv")
        edges = [float(r["low"]) for r in histogram] + [float(histogram[-1]["high"])]
        pool = np.concatenate([values(tensors[t]) for t in counted])
        want, _ = np.histogram(pool[np.isfinite(pool)], np.array(edges))
        assert [int(r["weights"]) for r in histogram] == want.tolist(), "the histogram differs from NumPy's"

        spectra: dict[str, list[float]] = {}
        for row in rows(folder / "out/singular_values.csv"):
            spectra.setdefault(row["tensor"], []).append(float(row["value"]))
        ranks = {r["tensor"]: r["stable rank"] for r in found}
        for tensor, spectrum in spectra.items():
            matrix = values(tensors[tensor]).reshape(tensors[tensor][1].shape[0], -1)
            exact = np.linalg.svd(matrix, compute_uv=False)
            # f64 weights are decomposed in f32.
            assert np.allclose(spectrum, exact, rtol=0, atol=1e-6 * exact[0]), tensor
            close(ranks[tensor], float((exact**2).sum() / exact[0] ** 2), f"stable rank of {tensor}", 1e-2)
        assert len(spectra) == len(counted) - 5, "one for each matrix that is finite"

        # What is missing is said, one line each, and the rest is reported.
        index.write_text(json.dumps({"weight_map": {**weight_map, "lost": "model-0.safetensors", "gone": "model-9.safetensors"}}))
        result = subprocess.run([*command[:-5], "--only", "k,q"], capture_output=True, text=True)
        lines = result.stderr.splitlines()
        warnings = [line for line in lines if line.startswith("warning: ")]
        assert result.returncode == 1 and len(warnings) == 2, result.stderr
        assert "tensor `lost`" in warnings[0] and "model-9.safetensors: cannot be read" in warnings[1], warnings
        assert lines[-1].startswith("error: 2 things were wrong"), lines
        assert [r["role"] for r in rows(folder / "out/summary.csv")] == ["q", "k", "linear layers"]
    print(f"weights: {len(tensors)} tensors, {len(roles)} roles and all matrices as NumPy and SciPy have them")


if __name__ == "__main__":
    main()
