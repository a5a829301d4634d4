"""A JAX function as a program file that `hlo` and `spectrum --hlo` read, in each of five formats.

As a module:

    from export import save
    save(f, (x, params), "f.hlo.txt", "f.jax_export")     # arrays, ShapeDtypeStructs or pytrees of these

As a command, on a function of a module, with the shapes of its arguments:

    .venv/bin/python python/export.py mymodel:forward --args 'f32[16,2]' 'i32[]' --out forward.hlo.txt

The ending of a file's name says its format: .hlo.txt (HLO text), .hlo.pb (HLO protocol buffer), .mlir (StableHLO text), .mlirbc
(StableHLO portable artifact), .jax_export (what jax.export.deserialize reads, with its derivative). In each the arguments
are those of the function, flattened (an Equinox module in a .jax_export file as a dict, in the order of its names):
`keep_unused=True` keeps those that do not matter. Large constants (weights that the
function closes over) are written in full; text writes each number in decimal, so prefer the other formats for large ones.
"""

from __future__ import annotations

import argparse
import dataclasses
import functools
import importlib
import re
import sys
from pathlib import Path
from typing import Any, Callable

import jax
import numpy as np
from jax import export as jax_export
from jaxlib.mlir.dialects import stablehlo

from load_weights import leaves, nested

Function = Callable[..., Any]
# The version that portable artifacts are written for.
STABLEHLO = "1.13.0"


def jitted(f: Function) -> Any:
    # jax.jit hashes what it is given, which Equinox modules do not allow; `wraps` keeps the arguments' names.
    return jax.jit(functools.wraps(f, updated=())(lambda *args: f(*args)), keep_unused=True)


def hlo_text(f: Function, *args: Any) -> bytes:
    module = jitted(f).lower(*args).compiler_ir("hlo")
    return module.as_hlo_text(print_large_constants=True).encode()


def hlo_proto(f: Function, *args: Any) -> bytes:
    return jitted(f).lower(*args).compiler_ir("hlo").as_serialized_hlo_module_proto()


def stablehlo_text(f: Function, *args: Any) -> bytes:
    # With debug_info the arguments keep their names.
    return jitted(f).lower(*args).as_text(debug_info=True).encode()


def portable_artifact(f: Function, *args: Any) -> bytes:
    return older(jax_export.export(jitted(f))(*shapes(args)))


def older(done: jax_export.Exported) -> bytes:
    # JAX writes for a StableHLO of a few weeks ago, which can be newer than the one that XLA here reads.
    text = done.mlir_module()
    # Rules for sharding, which LAPACK's functions come with, are no StableHLO: only JAX itself writes them.
    return done.mlir_module_serialized if "#sdy." in text else stablehlo.serialize_portable_artifact_str(text, STABLEHLO)


def exported(f: Function, *args: Any) -> bytes:
    try:
        return serialized(f, args)
    except ValueError:
        # Of classes these files hold only those that were registered with jax.export: others become dicts and lists.
        return serialized(on_plain(f, args), tuple(plain(one) for one in args))


def serialized(f: Function, args: Any) -> bytes:
    # vjp_order=1: jax.grad works through it. Functions without a reverse rule (an open while_loop) need 0.
    done = jax_export.export(jitted(f))(*shapes(args))
    done = dataclasses.replace(done, mlir_module_serialized=older(done))
    try:
        return bytes(done.serialize(vjp_order=1))
    except (ValueError, NotImplementedError):
        return bytes(done.serialize())


def plain(tree: Any) -> Any:
    """Nested dicts and lists with the same paths to the same arrays."""
    named = leaves(tree)
    return tree if "" in named else nested(named)


def on_plain(f: Function, args: tuple[Any, ...]) -> Function:
    trees = [jax.tree.structure(one) for one in args]
    names = [list(leaves(one)) for one in args]

    @functools.wraps(f, updated=())
    def on(*given: Any) -> Any:
        back = [tree.unflatten(leaves(one)[name] for name in own) for tree, own, one in zip(trees, names, given)]
        return plain(f(*back))

    return on


FORMATS = {
    ".hlo.txt": hlo_text,
    ".hlo.pb": hlo_proto,
    ".mlir": stablehlo_text,
    ".mlirbc": portable_artifact,
    ".jax_export": exported,
}


def shapes(args: Any) -> Any:
    return jax.tree.map(lambda a: jax.ShapeDtypeStruct(np.shape(a), jax.dtypes.canonicalize_dtype(a.dtype)), args)


def save(f: Function, args: tuple[Any, ...], *paths: str | Path) -> None:
    """Writes `f` at arguments like `args` to each path, in the format of its ending."""
    for path in paths:
        write = next((write for ending, write in FORMATS.items() if str(path).endswith(ending)), None)
        if write is None:
            raise ValueError(f"{path}: the name must end in one of {', '.join(FORMATS)}")
        Path(path).write_bytes(write(f, *args))


def shape(text: str) -> jax.ShapeDtypeStruct:
    """`f32[16,2]` as JAX prints it."""
    found = re.fullmatch(r"(bool|bf16|f16|f32|f64|[iu](?:8|16|32|64))\[([\d,\s]*)\]", text.strip())
    if not found:
        raise argparse.ArgumentTypeError(f"`{text}` is no shape such as f32[16,2]")
    kind, dims = found.groups()
    names = {"bool": "bool", "bf16": "bfloat16", "f": "float", "i": "int", "u": "uint"}
    name = names.get(kind) or names[kind[0]] + kind[1:]
    return jax.ShapeDtypeStruct(tuple(int(d) for d in dims.split(",") if d.strip()), jax.numpy.dtype(name))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("function", metavar="MODULE:FUNCTION", help="looked for in the working directory first")
    parser.add_argument("--args", nargs="*", type=shape, default=[], metavar="SHAPE", help="such as 'f32[16,2]' 'i32[]'")
    parser.add_argument("--out", nargs="+", required=True, metavar="FILE", help="ending in " + ", ".join(FORMATS))
    parser.add_argument("--x64", action="store_true", help="64-bit types, which JAX has only on demand")
    options = parser.parse_args()
    jax.config.update("jax_enable_x64", options.x64)
    module, _, name = options.function.partition(":")
    sys.path.insert(0, "")
    save(getattr(importlib.import_module(module), name), tuple(options.args), *options.out)


if __name__ == "__main__":
    main()
