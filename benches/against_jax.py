"""Times the Rust side against JAX in one interleaved run; prints ratios of medians, ours / JAX.

    .venv/bin/python benches/against_jax.py [CASE ...] [--rounds 7] [--together 1]

The machine may be shared and noisy, so each round times one and then the other, and only ratios are reported. Both
sides are warmed up first (compilation is not timed, but for `spectrum`, where whole processes are). `step` is one
training step of a SIREN, N 256, L 11, batch 16,384, Adam; `narrow` the same with N 16; `sweep` 21 of those with different
omega0, ours `--together` at a time in one program, JAX's one after another; `call` an empty-handed program of ten small arguments;
`spectrum` the whole default run of the binary against python/benchmarks/spectrum_jax.py.

`gpt` is one training step (loss, gradient, clipping, AdamW) of the transformer of python/models/transformer.py, d 256, depth 4,
4 heads, 4 x 256 bytes; `gpt-sel` the same with SymExpLin weights, `-bf16` with bf16 activations, `-bpe` with 50,257 tokens.
`sel-overhead`, `bpe-sel-overhead`, `bf16` and `sel-bf16` time two of those on both sides in one run and print, for each
side, the ratio of the two: SymExpLin / standard, and bf16 / f32.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
# For JAX's side, which imports python/models.
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT / "python")}
REPEATS = {"step": 2, "call": 20_000, "narrow": 64, "sweep": 4}
REPEATS |= {"gpt": 2, "gpt-sel": 2, "gpt-bf16": 2, "gpt-sel-bf16": 2, "gpt-bpe": 1, "gpt-bpe-sel": 1}
# Cases whose ratio is reported for each side.
PAIRS = {
    "sel-overhead": ("gpt-sel", "gpt"),
    "bpe-sel-overhead": ("gpt-bpe-sel", "gpt-bpe"),
    "bf16": ("gpt-bf16", "gpt"),
    "sel-bf16": ("gpt-sel-bf16", "gpt-sel"),
}


class Side:
    """A process that runs a case as often as it is told and answers with seconds per run."""

    def __init__(self, command: list[str]) -> None:
        pipes: Any = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        self.process = subprocess.Popen(command, **pipes, text=True, cwd=ROOT, env=ENVIRONMENT)
        self.ask("2")

    def ask(self, line: str) -> float:
        assert self.process.stdin and self.process.stdout
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            sys.exit(f"against_jax: {self.process.args} ended early")
        return float(answer)

    def close(self) -> None:
        assert self.process.stdin
        self.process.stdin.close()
        self.process.wait()


def bench_binary() -> str:
    command = ["cargo", "bench", "--bench", "sides", "--no-run", "--message-format=json"]
    built = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
    messages = (json.loads(line) for line in built.stdout.splitlines())
    return next(m["executable"] for m in messages if m.get("target", {}).get("name") == "sides" and m.get("executable"))


def report(case: str, ours: list[float], jax: list[float], memory: tuple[float, float], names: str = "ours / JAX") -> None:
    ratios = sorted(a / b for a, b in zip(ours, jax))
    print(
        f"{case}: {names} = {statistics.median(ours) / statistics.median(jax):.3f} "
        f"(per round {ratios[0]:.3f} .. {ratios[-1]:.3f}, {len(ratios)} rounds; medians {statistics.median(ours):.6g} s "
        f"and {statistics.median(jax):.6g} s); peak memory {memory[0]:.0f} MB against {memory[1]:.0f} MB",
        flush=True,
    )


def in_turn(commands: list[list[str]], repeats: int, rounds: int) -> tuple[list[list[float]], list[float]]:
    """Seconds per run in each round, and peak memory in MB, of each command: all are warm before the first round."""
    sides = [Side(command) for command in commands]
    times: list[list[float]] = [[] for _ in sides]
    for _ in range(rounds):
        for side, seconds in zip(sides, times):
            seconds.append(side.ask(str(repeats)))
    memory = [side.ask("memory") for side in sides]
    for side in sides:
        side.close()
    return times, memory


def interleaved(case: str, rounds: int, binary: str, together: int) -> None:
    ours = f"{case}:{together}" if case == "sweep" else case
    commands = [[binary, "--serve", ours], [sys.executable, "python/benchmarks/sides_jax.py", case]]
    times, memory = in_turn(commands, REPEATS[case], rounds)
    report(case, times[0], times[1], (memory[0], memory[1]))


def pair(case: str, rounds: int, binary: str) -> None:
    """The ratio of two cases on our side and on JAX's."""
    first, second = PAIRS[case]
    servers = {"ours": [binary, "--serve"], "JAX": [sys.executable, "python/benchmarks/sides_jax.py"]}
    commands = [[*server, of] for server in servers.values() for of in (first, second)]
    times, memory = in_turn(commands, REPEATS[first], rounds)
    for i, side in enumerate(servers):
        a, b = 2 * i, 2 * i + 1
        report(f"{case}, {side}", times[a], times[b], (memory[a], memory[b]), f"{first} / {second}")
    for i, of in enumerate((first, second)):
        report(of, times[i], times[2 + i], (memory[i], memory[2 + i]))


def whole_process(command: list[str]) -> tuple[float, float]:
    """Wall-clock seconds and peak memory in MB of one run."""
    with tempfile.TemporaryFile() as log:
        start = time.perf_counter()
        process = subprocess.Popen(command, cwd=ROOT, stdout=log, stderr=log)
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - start
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode != 0:
            log.seek(0)
            sys.exit(f"against_jax: {command} failed: {log.read().decode()[-500:]}")
    return seconds, usage.ru_maxrss / 1024


def spectrum(rounds: int) -> None:
    subprocess.run(["cargo", "build", "--quiet", "--bin", "spectrum"], cwd=ROOT, check=True)
    with tempfile.TemporaryDirectory() as folder:
        ours = ["target/debug/spectrum", "--out", f"{folder}/ours"]
        theirs = [sys.executable, "python/benchmarks/spectrum_jax.py", "--out", f"{folder}/jax"]
        whole_process(ours), whole_process(theirs)
        pairs = [(whole_process(ours), whole_process(theirs)) for _ in range(rounds)]
    memory = (max(a[1] for a, _ in pairs), max(b[1] for _, b in pairs))
    report("spectrum", [a[0] for a, _ in pairs], [b[0] for _, b in pairs], memory)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    known = [*REPEATS, *PAIRS, "spectrum"]
    parser.add_argument("cases", nargs="*", metavar="CASE", help=", ".join(known))
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--together", type=int, default=1)
    arguments = parser.parse_args()
    if unknown := set(arguments.cases).difference(known):
        parser.error(f"unknown case {unknown.pop()}: {', '.join(known)}")
    binary = bench_binary()
    paired = {case for pair in PAIRS.values() for case in pair}  # which the pairs report too
    for case in arguments.cases or [case for case in known if case not in paired]:
        if case == "spectrum":
            spectrum(max(3, arguments.rounds // 2))
        elif case in PAIRS:
            pair(case, arguments.rounds, binary)
        else:
            interleaved(case, arguments.rounds, binary, arguments.together)


if __name__ == "__main__":
    main()
