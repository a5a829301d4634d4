"""Executes the notebooks from scratch with the Rust kernel and says how long each took; fails on any error.

    ./setup --notebooks .notebooks/python/bin/python python/checks/run_notebooks.py                  # all of them
    ./setup --notebooks .notebooks/python/bin/python python/checks/run_notebooks.py --write 01 05    # these; outputs written back

An error is a cell that does not compile, a panic, a `?` that returned early, or anything else on standard error.
"""

from __future__ import annotations

import argparse
import os
import resource
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from check_notebooks import DEPENDENCY, FOLDER

try:
    import nbformat
    from nbclient import NotebookClient
    from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError
except ImportError:
    sys.exit("run_notebooks: nbclient is missing; run ./setup --notebooks and use .notebooks/python/bin/python")

TIMEOUT = 3600  # seconds a cell: the first may compile everything


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="beginnings of notebooks' names; without any: all")
    parser.add_argument("--write", action="store_true", help="write the outputs into the notebooks")
    parser.add_argument("--prepare", action="store_true", help="only compile what every first cell needs")
    given = parser.parse_args()
    if given.prepare:
        cell = nbformat.v4.new_code_cell(f"{DEPENDENCY}\nuse sinexp::array::Array;")
        seconds, errors = execute(nbformat.v4.new_notebook(cells=[cell]))
        print(f"prepared: {seconds[0]:.1f} s, processor {processor_seconds():.1f} s")
        sys.exit("\n".join(errors) or None)

    every = sorted(FOLDER.glob("*.ipynb"))
    unknown = [name for name in given.names if not any(path.name.startswith(name) for path in every)]
    if unknown:
        parser.error(f"no notebook's name begins with {', '.join(unknown)}")
    failed = []
    for path in every:
        if given.names and not path.name.startswith(tuple(given.names)):
            continue
        notebook = nbformat.read(path, as_version=4)
        before = processor_seconds()
        seconds, errors = execute(notebook)
        state = "FAILED" if errors else "ok"
        times = f"first cell {seconds[0]:.1f} s, all {sum(seconds):.1f} s, processor {processor_seconds() - before:.1f} s"
        print(f"{path.stem}: {times}, {state}", flush=True)
        if errors:
            failed.append(path.stem)
            print("\n".join(errors), file=sys.stderr)
        elif given.write:
            write(path, notebook)
    if failed:
        sys.exit(f"run_notebooks: {', '.join(failed)} failed; nothing was written of what failed")


def processor_seconds() -> float:
    """Of all processes that have ended: kernels, compilers and what cells computed."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def execute(notebook: Any) -> tuple[list[float], list[str]]:
    """Runs every cell in a fresh kernel, outputs replaced: seconds of each code cell (the first with the kernel's own
    start), errors in words."""
    seconds: list[float] = []
    began = time.monotonic()

    def start(**_: Any) -> None:
        nonlocal began
        if seconds:
            began = time.monotonic()

    def end(cell: Any, **_: Any) -> None:
        if cell.cell_type == "code":
            seconds.append(time.monotonic() - began)

    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    client = NotebookClient(
        notebook,
        kernel_name="rust",
        timeout=TIMEOUT,
        startup_timeout=120,
        record_timing=False,
        coalesce_streams=True,
        resources={"metadata": {"path": str(FOLDER)}},
        on_cell_execute=start,
        on_cell_executed=end,
    )
    errors = []
    try:
        client.execute()
    except (CellTimeoutError, DeadKernelError) as error:
        errors.append(str(error))
    except CellExecutionError:
        pass  # what it says is among the outputs
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            if output.output_type == "error" or output.get("name") == "stderr":
                said = output.get("text") or "\n".join([output.get("evalue", ""), *output.get("traceback", [])])
                errors.append(f"in the cell\n{cell.source}\n\n{said}")
    if not errors and len(seconds) < sum(cell.cell_type == "code" for cell in notebook.cells):
        errors.append("a cell failed without a word")
    if not seconds:
        seconds.append(time.monotonic() - began)
    # Numbered from 1, whatever the kernel starts at.
    for number, cell in enumerate((c for c in notebook.cells if c.cell_type == "code"), 1):
        cell.execution_count = number
        for output in cell.outputs:
            if "execution_count" in output:
                output.execution_count = number
    notebook.metadata.pop("widgets", None)
    return seconds, errors


def write(path: Path, notebook: Any) -> None:
    """The whole notebook or nothing."""
    with tempfile.NamedTemporaryFile("w", dir=path.parent, suffix=".partial", delete=False) as file:
        nbformat.write(notebook, file)
        file.flush()
        os.fsync(file.fileno())
    os.chmod(file.name, 0o644)
    os.replace(file.name, path)


if __name__ == "__main__":
    main()
