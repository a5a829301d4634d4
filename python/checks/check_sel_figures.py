"""Computes the tables of `sel-shapes` and `sel-weights` again in NumPy and SciPy from the runs' checkpoints.

    python python/checks/check_sel_figures.py [RUN BASELINE]

RUN and BASELINE are folders of `sel train` or of a grid; RUN without offset, shift and residual and with row_col_mult
scales. Without them, two small runs are trained. Everything goes into a temporary folder. Positions are drawn again with jax.random, so every number of the
tables must come out the same, but for the rounding of f32 weights.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import jax
import numpy as np
from common import BINARIES, ROOT, rows
from safetensors.numpy import load_file
from scipy.stats import kurtosis

ROLES = ["q", "k", "v", "o", "gate", "up", "down"]
POSITIONS = 4096
# Relative; weights of f32 have 24 bits, and the tables' numbers are sums of many.
TOLERANCE = 2e-5

Tensors = dict[str, np.ndarray]


def program(name: str, *arguments: str) -> None:
    done = subprocess.run([BINARIES / name, *arguments], cwd=ROOT, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{name}: {done.stderr}")


def checkpoint(run: Path) -> Tensors:
    newest = sorted((run / "checkpoints").glob("step-*.safetensors"))[-1]
    return {k: v.astype(np.float64) for k, v in load_file(newest).items() if not k.startswith("optimizer.")}


def role_rows(role: str, hidden: int) -> tuple[str, slice]:
    halves = {"gate": ("ff1", slice(0, hidden)), "up": ("ff1", slice(hidden, None)), "down": ("ff2", slice(None))}
    return halves.get(role, (role, slice(None)))


class Role:
    """All blocks of a role, [depth, rows, columns]: raw weights and scales."""

    def __init__(self, tensors: Tensors, role: str, depth: int, hidden: int) -> None:
        name, part = role_rows(role, hidden)

        def leaf(kind: str) -> np.ndarray:
            return np.stack([tensors[f"blocks.{i}.{name}.W.{kind}"] for i in range(depth)])

        def scale(letter: str) -> np.ndarray:
            return leaf(f"{letter}.r")[:, part, None] * leaf(f"{letter}.c")[:, None, :]

        self.w = leaf("w")[:, part]
        self.e, self.l, self.m = scale("e"), scale("l"), scale("m")


def effective(w: np.ndarray, e: np.ndarray, l: np.ndarray, m: np.ndarray, beta: float) -> np.ndarray:
    """Mismatch (Eq. 9)."""
    return np.where(w < 0, -1, 1) * (e * np.expm1(np.abs(beta * w * m)) + w * l)


class Differences:
    def __init__(self) -> None:
        self.worst, self.count, self.failed = 0.0, 0, False

    def compare(self, what: str, got: float, want: float, floor: float = 1e-3) -> None:
        difference = abs(got - want) / max(abs(want), floor)
        self.worst, self.count = max(self.worst, difference), self.count + 1
        if not difference <= TOLERANCE:
            self.failed = True
            print(f"{what}: {got}, here {want}")


def check_shapes(tensors: Tensors, config: dict, out: Path, all: Differences) -> None:
    beta, transformer = config["projection"]["sel"]["beta"], config["transformer"]
    extremes = rows(out / "extremes.csv")
    for i, (role, row) in enumerate(zip(ROLES, rows(out / "roles.csv"), strict=True)):
        r = Role(tensors, role, transformer["depth"], transformer["hidden"])
        key = jax.random.fold_in(jax.random.key(0), i)
        at = np.asarray(jax.random.randint(key, (POSITIONS,), 0, r.w.size))
        w, e, l, m = (x.reshape(-1)[at] for x in (r.w, r.e, r.l, r.m))
        largest = np.abs(r.w).max()
        all.compare(f"{role} largest", float(row["largest |raw|"]), largest)
        for side, slope, gain in [(-1.0, "slope at 0−", "gain at −"), (1.0, "slope at 0+", "gain at +")]:
            all.compare(f"{role} {slope}", float(row[slope]), np.median(e * beta * m + side * l))
            x = np.full_like(e, side * largest)
            all.compare(f"{role} {gain}", float(row[gain]), np.median(effective(x, e, l, m, beta) / x))
        for name, scale, start in [("e_w", e, 1 / beta), ("l_w", l, 1 / beta), ("m", m, 1.0)]:
            all.compare(f"{role} {name}", float(row[f"{name} / start"]), scale.mean() / start)
        # Those sampled with the largest weights, each once.
        for by, values in [("raw", w), ("effective", effective(w, e, l, m, beta))]:
            order = sorted({int(p): v for p, v in zip(at, values)}.items(), key=lambda item: -abs(item[1]))
            found = [x for x in extremes if x["role"] == role and x["by"] == by]
            for (_, value), x in zip(order, found):
                all.compare(f"{role} extreme by {by}", float(x[by]), value)


def check_weights(runs: dict[str, Tensors], config: dict, out: Path, all: Differences) -> None:
    beta, transformer = config["projection"]["sel"]["beta"], config["transformer"]
    table = {(r["run"], r["time"], r["role"]): r for r in rows(out / "weights.csv")}
    for run, tensors in runs.items():
        parts = []
        for role in ROLES:
            name, part = role_rows(role, transformer["hidden"])
            if run == "SEL":
                r = Role(tensors, role, transformer["depth"], transformer["hidden"])
                values = effective(r.w, r.e, r.l, r.m, beta).reshape(-1)
            else:
                blocks = [tensors[f"blocks.{i}.{name}.W"][part] for i in range(transformer["depth"])]
                values = np.concatenate([b.reshape(-1) for b in blocks])
            parts.append(values)
            bound = float(table["baseline", "start", role]["max"]) * (1 + 1e-6)
            share = np.mean(np.abs(values) > bound)
            # A weight may lie within rounding of the bound.
            got = float(table[run, "end", role]["beyond start"])
            all.compare(f"{run} {role} beyond", got, share, floor=1 / (values.size * TOLERANCE))
        for role, values in [*zip(ROLES, parts), ("all", np.concatenate(parts))]:
            row = table[run, "end", role]
            all.compare(f"{run} {role} std", float(row["std"]), values.std())
            all.compare(f"{run} {role} max", float(row["max"]), np.abs(values).max())
            all.compare(f"{run} {role} kurtosis", float(row["excess kurtosis"]), kurtosis(values), floor=0.1)


def check(run: Path, baseline: Path, out: Path) -> Differences:
    config = json.loads((run / "run.json").read_text())["config"]
    sel = config["projection"]["sel"]
    plain = all(sel[k]["pattern"] == "row_col_mult" for k in ("exp_scale", "linear_scale", "inner"))
    if not plain or sel["mode"] != "mismatch" or any(sel[k] for k in ("offset", "shift", "residual", "absorb_beta")):
        sys.exit("RUN must be mismatch with row_col_mult scales and without offset, shift, residual and absorbed beta")
    tensors, differences = checkpoint(run), Differences()
    program("sel-shapes", str(run), "--positions", str(POSITIONS), "--out", str(out / "shapes"))
    check_shapes(tensors, config, out / "shapes", differences)
    program("sel-weights", str(run), "--baseline", str(baseline), "--out", str(out / "weights"))
    check_weights({"SEL": tensors, "baseline": checkpoint(baseline)}, config, out / "weights", differences)
    return differences


def main() -> None:
    if len(sys.argv) not in (1, 3):
        sys.exit(__doc__)
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder)
        runs = [Path(a).resolve() for a in sys.argv[1:]]
        if not runs:
            runs = [out / "run", out / "baseline"]
            for run, mode in zip(runs, ["mismatch", "standard"]):
                program("sel", "train", "--preset", "smoke", "--mode", mode, "--out", str(run))
        differences = check(*runs, out)
    print(f"{differences.count} numbers agree within {differences.worst:.1e}" if not differences.failed else "differ")
    sys.exit(differences.failed)


if __name__ == "__main__":
    main()
