"""Writes tests/files/several.jax_export, a file of JAX for the tests: several platforms, arguments that do not matter, a derivative."""

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from jax import export


def f(params, ignored, n):
    return {"y": jnp.tanh(params["w"]) * n, "k": n + jnp.arange(3)}


shape = jax.ShapeDtypeStruct
arguments = {"w": shape((3,), np.float32), "spare": shape((2,), np.float32)}, shape((7,), np.float32), shape((), np.int32)
exported = export.export(jax.jit(f), platforms=["cpu", "cuda", "tpu"])(*arguments)
path = Path(__file__).resolve().parent.parent / "tests" / "files" / "several.jax_export"
path.write_bytes(exported.serialize(vjp_order=1))
