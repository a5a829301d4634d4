"""safetensors files between this library and Python.

tests/golden/safetensors/rust.safetensors, which tests/safetensors.rs holds to what the library writes, must be read by
Python's library with the content both sides know by formula; python.safetensors, which that test reads, must be what
Python's library writes today (`--write` writes it).
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import ml_dtypes
import numpy as np
from safetensors import safe_open
from safetensors.numpy import load_file, save_file

FOLDER = Path(__file__).resolve().parents[2] / "tests/golden/safetensors"
METADATA = {"step": "12", "ω0": '30 "rad"\n'}


def content() -> dict[str, np.ndarray]:
    """What `content` in tests/safetensors.rs makes."""
    kinds = {
        "bool": [0, 1, 1, 0, 1, 0],
        "uint8 uint16 uint32 uint64": [0, 1, 2, 50, 100, 200],
        "int8 int16 int32 int64": [0, 1, -2, 50, -100, 127],
        "float16 bfloat16 float32 float64": [0, -0.5, 1.25, -96, 0.0078125, 240],
    }
    tensors = {}
    for names, values in kinds.items():
        for name in names.split():
            dtype = np.dtype(ml_dtypes.bfloat16 if name == "bfloat16" else name)
            tensors[f"all.{name}"] = np.array(values).astype(dtype).reshape(2, 3)
    tensors["scalar"] = np.array(0.1, np.float32)
    tensors["empty"] = np.zeros(0, np.float32)
    tensors["empty.middle"] = np.zeros((2, 0, 3), np.int32)
    tensors["edge.int64"] = np.array([-(2**63), 2**63 - 1], np.int64)
    tensors["edge.uint64"] = np.array([2**64 - 1], np.uint64)
    tensors["edge.float64"] = np.array([np.finfo(np.float64).max, 5e-324, np.inf, -np.inf, -0.0])
    return tensors


def compare(path: Path) -> None:
    got, want = load_file(path), content()
    assert got.keys() == want.keys(), f"{path.name}: {sorted(got.keys() ^ want.keys())} on one side only"
    for name, w in want.items():
        g = got[name]
        assert (g.dtype, g.shape) == (w.dtype, w.shape), f"{name}: {g.dtype}{g.shape} for {w.dtype}{w.shape}"
        assert g.tobytes() == w.tobytes(), f"{name}: {g} for {w}"
    with safe_open(path, framework="numpy") as file:
        assert file.metadata() == METADATA, f"{path.name}: {file.metadata()}"


def main() -> None:
    compare(FOLDER / "rust.safetensors")
    if "--write" in sys.argv[1:]:
        save_file(content(), FOLDER / "python.safetensors", METADATA)
    compare(FOLDER / "python.safetensors")
    with tempfile.TemporaryDirectory() as folder:
        fresh = Path(folder) / "python.safetensors"
        save_file(content(), fresh, METADATA)
        # Metadata entries come in any order: the data of the two files, and their lengths.
        size = lambda data: 8 + int.from_bytes(data[:8], "little")
        now, stored = fresh.read_bytes(), (FOLDER / "python.safetensors").read_bytes()
        assert now[size(now) :] == stored[size(stored) :], "python.safetensors is not what Python writes: use --write"
    print(f"safetensors: {len(content())} tensors and the metadata as written by either side")


if __name__ == "__main__":
    main()
