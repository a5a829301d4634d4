"""Runs the programs of hlo/ in JAX and compares them with JAX's own functions (python/models/catalog.py) on the same inputs.

The way from HLO text into JAX is private API of the pinned version (python/install/requirements.txt). Their derivatives are
checked as files of jax.export: check_jax_export.py.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import jax
import numpy as np
from models.catalog import FUNCTIONS, draw, x64
from jax._src.interpreters import mlir
from jax._src.lib import xla_client
from jaxlib import _hlo
from jaxlib.mlir import ir

FOLDER = Path(__file__).resolve().parents[2] / "hlo"
# Of the largest element of a result.
TOLERANCES = {"f32": 1e-5, "f64": 1e-12}


def load(text: str) -> Any:
    """The program as a function of NumPy arrays that returns a list of them."""
    module = _hlo.hlo_module_from_text(text)
    computation = xla_client.XlaComputation(module.as_serialized_hlo_module_proto())
    text = xla_client._xla.mlir.xla_computation_to_mlir_module(computation)
    backend = jax.local_devices()[0].client
    with mlir.make_ir_context():
        parsed = ir.Module.parse(text)
        devices = xla_client.DeviceList(tuple(jax.local_devices()[:1]))
        executable = backend.compile_and_load(parsed, devices, xla_client.CompileOptions())

    def call(*arguments: np.ndarray) -> list[np.ndarray]:
        results = executable.execute_sharded([jax.device_put(a) for a in arguments])
        return [np.asarray(r[0]) for r in results.disassemble_into_single_device_arrays()]

    return call


def inputs(text: str) -> dict[str, tuple[tuple[int, ...], Any]]:
    """Name, shape and type of each input, in order."""
    entry = text[text.index("\nENTRY ") :]
    types = {"f32": np.float32, "f64": np.float64, "s32": np.int32}
    found = {}
    pattern = r'= (\w+)\[([\d,]*)\] parameter\((\d+)\), metadata=\{op_name="([^"]*)"\}'
    for dtype, dims, number, name in re.findall(pattern, entry):
        assert int(number) == len(found), f"input {name} is not in order"
        found[name] = tuple(int(d) for d in dims.split(",") if d), types[dtype]
    return found


# Inputs that are arguments of their own; all others are in the dict that is the first argument.
ARGUMENTS = ("x", "y", "learning_rate", "tokens")


def arguments(values: dict[str, np.ndarray], steps: bool) -> tuple[Any, ...]:
    """Inputs by name as the arguments of the function."""
    rest = {name: value for name, value in values.items() if name not in ARGUMENTS}
    if steps:
        state: dict[str, Any] = {name: rest.pop(name) for name in ("t", "finite") if name in rest}
        moment = lambda letter: {n[2:]: rest.pop(n) for n in list(rest) if n.startswith(f"{letter}.")}
        state |= {"m": moment("m"), "v": moment("v"), "params": rest}
        rest = state
    return rest, *(values[name] for name in ARGUMENTS if name in values)


def results(values: Any, names: list[str], steps: bool) -> list[Any]:
    """What the function gives in the order of the program."""
    if not steps:
        return [values]
    state, further = values
    flat = state["params"] | {f"{k}.{n}": v for k in "mv" for n, v in state[k].items()}
    flat |= {name: state[name] for name in ("t", "finite") if name in state}
    last = [further["loss"], further["grad_norm"]] if isinstance(further, dict) else [further]
    return [flat[name] for name in names if name in flat] + last


def compare(name: str, got: list[np.ndarray], want: list[Any], tolerance: float) -> None:
    assert len(got) == len(want), f"{name}: {len(got)} results for {len(want)}"
    worst = 0.0
    for i, (g, w) in enumerate(zip(got, want)):
        w = np.asarray(w)
        assert g.shape == w.shape and g.dtype == w.dtype, f"{name} {i}: {g.dtype}{g.shape} for {w.dtype}{w.shape}"
        error = float(np.abs(g - w).max() / max(np.abs(w).max(), 1e-30))
        assert error <= tolerance, f"{name}, result {i}: off by {error:.2e} of its maximum"
        worst = max(worst, error)
    print(f"{name}: {len(got)} results as JAX's, worst {worst:.1e} of the maximum")


def main() -> None:
    files = sorted(FOLDER.glob("*.hlo.txt"))
    assert len(files) > 10, f"{FOLDER} has {len(files)} programs"
    for file in files:
        name, text = file.name.removesuffix(".hlo.txt"), file.read_text()
        rng = np.random.default_rng(3)
        ports, steps = inputs(text), name.endswith(("_step", "_step_sel"))
        # Names as in the pytree, so that leaves are drawn as in check_jax_export.py.
        path = lambda n: f"['{n[0]}']['{n[2:]}']" if steps and n.startswith(("m.", "v.")) else f"['{n}']"
        values = {n: draw(rng, path(n), shape, dtype) for n, (shape, dtype) in ports.items()}
        double = any(dtype is np.float64 for _, dtype in ports.values())
        with x64(double):
            got = load(text)(*values.values())
            want = results(jax.jit(FUNCTIONS[name])(*arguments(values, steps)), list(values), steps)
            compare(name, got, want, TOLERANCES["f64" if double else "f32"])


if __name__ == "__main__":
    main()
