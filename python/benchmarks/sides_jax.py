"""JAX's side of benches/against_jax.py: plain jax.jit with donated state, as a JAX user would write it.

Reads how often to run from each line of standard input and answers with seconds per run, or with the peak memory in
MB for the line `memory`.
"""

from __future__ import annotations

import sys
import time
from typing import Any, Callable

import jax
import jax.numpy as jnp
from models import transformer


def training(width: int, runs: int, gain: float) -> Callable[[int], Any]:
    """Training steps of `runs` SIRENs one after another, each with its own omega0: L 11, 16,384 samples."""
    hidden, samples = 11, 16384
    keys = iter(jax.random.split(jax.random.key(0), 64))

    def uniform(shape: tuple[int, ...], bound: float) -> jax.Array:
        return jax.random.uniform(next(keys), shape, minval=-bound, maxval=bound)

    shapes = [(width, 2)] + [(width, width)] * hidden + [(1, width)]
    bounds = [0.5] + [(gain / width) ** 0.5] * (hidden + 1)
    params = [(uniform(s, b), uniform(s[:1], 0.1)) for s, b in zip(shapes, bounds)]
    x, y = uniform((samples, 2), 1.0), uniform((samples, 1), 1.0)

    def loss(params: Any, x: jax.Array, y: jax.Array, omega0: jax.Array) -> jax.Array:
        h = x
        for i, (w, b) in enumerate(params[:-1]):
            h = jnp.sin((omega0 if i == 0 else 1.0) * (h @ w.T + b))
        w, b = params[-1]
        return jnp.mean((h @ w.T + b - y) ** 2)

    def update(state: Any, x: jax.Array, y: jax.Array, rate: jax.Array, omega0: jax.Array) -> tuple[Any, jax.Array]:
        params, m, v, t = state
        value, grads = jax.value_and_grad(loss)(params, x, y, omega0)
        t = t + 1
        m = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, m, grads)
        v = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, v, grads)
        new = jax.tree.map(
            lambda p, m, v: p - rate * (m / (1 - 0.9**t)) / (jnp.sqrt(v / (1 - 0.999**t)) + 1e-8), params, m, v
        )
        return (new, m, v, t), value

    compiled = jax.jit(update, donate_argnums=0)

    def start() -> Any:
        zeros = jax.tree.map(jnp.zeros_like, params)
        return (jax.tree.map(jnp.copy, params), zeros, jax.tree.map(jnp.zeros_like, params), jnp.zeros(()))

    states = [start() for _ in range(runs)]
    omegas = [jnp.float32(82.0 * 10 ** (-2 + 4 * i / 20) if runs > 1 else 82.0) for i in range(runs)]
    rate = jnp.float32(1e-4)

    def run(times: int) -> Any:
        value = None
        for i, omega0 in enumerate(omegas):
            for _ in range(times):
                states[i], value = compiled(states[i], x, y, rate, omega0)
        return value

    return run


def step() -> Callable[[int], Any]:
    """One training step of a SIREN: N 256, L 11, 16,384 samples."""
    return training(256, 1, 6.0)


def narrow() -> Callable[[int], Any]:
    """The same with N 16."""
    return training(16, 1, 3.0)


def sweep() -> Callable[[int], Any]:
    """21 runs of it that differ in omega0."""
    return training(16, 21, 3.0)


def gpt(sel: bool = False, vocabulary: int = 256, activations: Any = None) -> Callable[[int], Any]:
    """Training steps of a transformer, d 256, depth 4, 4 heads, on 4 x 256 random tokens; unrolled blocks, which JAX runs
    faster than a scan over them."""
    model = transformer.Gpt(256, 4, 4, vocabulary, transformer.Sel() if sel else None, activations)
    step = transformer.train_step(model, transformer.Optimizer())
    state = transformer.start(transformer.initial(model, 0))
    tokens = jax.random.randint(jax.random.key(0), (4, 257), 0, vocabulary)

    def run(times: int) -> Any:
        nonlocal state
        value = None
        for _ in range(times):
            state, value = step(state, tokens)
        return value

    return run


def call() -> Callable[[int], Any]:
    """Ten arguments of three numbers, one result: nothing but the cost of a call."""
    compiled = jax.jit(lambda *x: sum(x[1:], x[0]))
    arguments = [jnp.ones(3) for _ in range(10)]

    def run(times: int) -> Any:
        value = None
        for _ in range(times):
            value = compiled(*arguments)
        return value

    return run


CASES: dict[str, Callable[[], Callable[[int], Any]]] = {
    "step": step,
    "call": call,
    "narrow": narrow,
    "sweep": sweep,
    "gpt": gpt,
    "gpt-sel": lambda: gpt(sel=True),
    "gpt-bf16": lambda: gpt(activations=jnp.bfloat16),
    "gpt-sel-bf16": lambda: gpt(sel=True, activations=jnp.bfloat16),
    "gpt-bpe": lambda: gpt(vocabulary=50257),
    "gpt-bpe-sel": lambda: gpt(sel=True, vocabulary=50257),
}


def peak_memory() -> float:
    """Peak resident memory in MB, without the pages of mapped files (the libraries' code), which processes share."""
    with open("/proc/self/status") as status:
        fields = {parts[0].rstrip(":"): parts[1] for parts in map(str.split, status) if len(parts) > 1}
    return (float(fields["VmHWM"]) - float(fields["RssFile"])) / 1024


def main() -> None:
    run = CASES[sys.argv[1]]()
    for line in sys.stdin:
        if line.strip() == "memory":
            print(peak_memory(), flush=True)
            continue
        start = time.perf_counter()
        jax.block_until_ready(run(int(line)))
        print((time.perf_counter() - start) / int(line), flush=True)


if __name__ == "__main__":
    main()
