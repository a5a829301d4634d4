"""Peak memory and speed of `weights` on a large synthetic checkpoint, beside reading its bytes with cat.

Usage: python/benchmarks/measure_weights.py [--dtype bf16|f32] [--gigabytes 8] [--rounds 3] [--folder /tmp]. Builds nothing: uses
target/debug/weights (or --binary). The checkpoint (four shards and an index) is removed afterwards.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

import ml_dtypes
import numpy as np

ROLES = ["self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.o_proj", "mlp.gate_proj", "mlp.up_proj"]
SIDE = 4096
SHARDS = 4


def make(folder: Path, kind: str, size: float) -> list[Path]:
    """Square matrices of heavy-tailed weights; a few different ones, shifted, so that it takes no minutes."""
    rng = np.random.default_rng(0)
    dtype = np.dtype(ml_dtypes.bfloat16 if kind == "bf16" else np.float32)
    count = round(size * 1e9 / (SIDE * SIDE * dtype.itemsize))
    bases = [(0.02 * rng.standard_t(5, SIDE * SIDE)).astype(np.float32).astype(dtype) for _ in range(4)]
    weight_map: dict[str, str] = {}
    paths = []
    for shard in range(SHARDS):
        names = [f"model.layers.{i // 6}.{ROLES[i % 6]}.weight" for i in range(shard, count, SHARDS)]
        path = folder / f"model-{shard + 1:05}-of-{SHARDS:05}.safetensors"
        length = SIDE * SIDE * dtype.itemsize
        header = {
            name: {"dtype": kind.upper(), "shape": [SIDE, SIDE], "data_offsets": [i * length, (i + 1) * length]}
            for i, name in enumerate(names)
        }
        text = json.dumps(header).encode()
        with path.open("wb") as file:
            file.write(len(text).to_bytes(8, "little") + text)
            for i, name in enumerate(names):
                file.write(np.roll(bases[i % len(bases)], 977 * i).tobytes())
                weight_map[name] = path.name
        paths.append(path)
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": weight_map}))
    os.sync()
    return paths


def forget(paths: list[Path]) -> None:
    """Takes the files out of the page cache."""
    for path in paths:
        with path.open("rb") as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def measure(command: list[str | Path], log: Path) -> tuple[float, float, float]:
    """Seconds, seconds of the processors, and peak resident memory in MB."""
    with log.open("w") as out:
        start = time.perf_counter()
        child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=out)
        _, status, usage = os.wait4(child.pid, 0)
        seconds = time.perf_counter() - start
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise SystemExit(f"{command[0]} ended with {child.returncode}: {log.read_text()[-500:]}")
    return seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--dtype", choices=["bf16", "f32"], default="bf16")
    parser.add_argument("--gigabytes", type=float, default=8)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--folder", type=Path, default=Path("/tmp"))
    parser.add_argument("--format", default="csv,parquet,md", help="of the results; png and svg add the figures' time")
    parser.add_argument("--out", type=Path, default=Path("/dev/shm"), help="for the results: fsync on a busy disk takes long")
    parser.add_argument("--binary", type=Path, default=Path("target/debug/weights"))
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=given.folder) as name, tempfile.TemporaryDirectory(dir=given.out) as out:
        folder = Path(name)
        paths = make(folder, given.dtype, given.gigabytes)
        size = sum(p.stat().st_size for p in paths) / 1e9
        read = ["cat", *paths]
        run = [given.binary, folder, "--out", out, "--format", given.format]
        for cold in (False, True):
            rows = []
            if not cold:
                measure(read, folder / "log")
            for _ in range(given.rounds):
                pair = []
                for command in (read, run):
                    if cold:
                        forget(paths)
                    pair.append(measure(command, folder / "log"))
                rows.append(pair)
                print(
                    f"{given.dtype} {size:.2f} GB {'cold' if cold else 'warm'}: cat {pair[0][0]:.2f} s ({pair[0][1]:.2f}), weights {pair[1][0]:.2f} s"
                    f" ({pair[1][1]:.2f} s of processors), ratio {pair[1][0] / pair[0][0]:.2f}, peak {pair[1][2]:.0f} MB",
                    flush=True,
                )
            ratio = statistics.median(w[0] / c[0] for c, w in rows)
            print(f"  median ratio {ratio:.2f}, weights at {size / statistics.median(w[0] for _, w in rows):.2f} GB/s", flush=True)


if __name__ == "__main__":
    main()
