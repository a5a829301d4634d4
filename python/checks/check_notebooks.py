"""Whether the committed notebooks are whole: format, outputs, pictures, an exercise at the end. Runs nothing.

    python3 python/checks/check_notebooks.py            # all of notebooks/, or the files named

Standard library only. python/checks/run_notebooks.py executes them.
"""

from __future__ import annotations

import base64
import json
import re
import struct
import sys
import zlib
from pathlib import Path
from typing import Any, Iterator

FOLDER = Path(__file__).resolve().parents[2] / "notebooks"
NAMES = ["01_spectrum", "02_uniform_phase_siren", "03_sel_transform", "04_train_sel", "05_jax_interop"]
DEPENDENCY = ':dep sinexp = { path = "..", features = ["notebook"] }'
# Folders of one machine, and what a terminal prints colours with.
PRIVATE = re.compile(r"(/home/|/root/|/work/|/tmp/|/Users/)\w|\x1b\[")
PICTURES = 1  # at least, in each


def main() -> None:
    paths = [Path(name) for name in sys.argv[1:]] or [FOLDER / f"{name}.ipynb" for name in NAMES]
    self_test()
    found = 0
    for path in paths:
        problems = list(check(path))
        found += len(problems)
        for problem in problems:
            print(f"{path.name}: {problem}", file=sys.stderr)
        if not problems:
            print(f"{path.name}: ok")
    sys.exit(1 if found else 0)


def check(path: Path) -> Iterator[str]:
    try:
        notebook = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        yield f"cannot be read: {error}"
        return
    yield from problems(notebook)


def problems(notebook: Any) -> Iterator[str]:
    """What is wrong, in words."""
    if not isinstance(notebook, dict) or (notebook.get("nbformat"), notebook.get("nbformat_minor")) != (4, 5):
        yield "not a notebook of format 4.5"
        return
    if notebook.get("metadata", {}).get("kernelspec", {}).get("name") != "rust":
        yield "not for the kernel `rust`"
    cells = notebook.get("cells", [])
    ids = [cell.get("id") for cell in cells]
    if len(set(ids)) != len(ids) or not all(isinstance(i, str) and re.fullmatch(r"[\w-]{1,64}", i) for i in ids):
        yield "cells without an id of their own"
    kinds = [cell.get("cell_type") for cell in cells]
    if not set(kinds) <= {"markdown", "code"} or kinds[:2] != ["markdown", "code"]:
        yield "does not begin with a text and then a cell of code"
        return
    if not text(cells[0]).startswith("# "):
        yield "has no title"
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    if text(code[0]).splitlines()[0] != DEPENDENCY:
        yield f"its first cell does not begin with {DEPENDENCY}"
    yield from exercise(cells)
    pictures = 0
    for number, cell in enumerate(code, 1):
        if cell.get("execution_count") != number:
            yield f"code cell {number}: not executed in order, from scratch"
        outputs = cell.get("outputs", [])
        if not outputs:
            yield f"code cell {number}: no output"
        for output in outputs:
            kind = output.get("output_type")
            if kind == "error" or output.get("name") == "stderr":
                yield f"code cell {number}: an error: {joined(output.get('text') or output.get('evalue'))[:200]}"
            if PRIVATE.search(json.dumps(output.get("text") or output.get("data", {}).get("text/plain", ""))):
                yield f"code cell {number}: names a folder of one machine, or has colours of a terminal"
            plain = joined(output.get("data", {}).get("text/plain", ""))
            if kind == "execute_result" and (plain == "()" or plain.startswith(("Figure {", "Table {"))):
                yield f"code cell {number}: shows {plain[:8]}: end it with `;`, or with a variable that holds the figure"
            picture = output.get("data", {}).get("image/png")
            if picture is not None:
                pictures += 1
                if why := broken_png(joined(picture)):
                    yield f"code cell {number}: its picture {why}"
    if pictures < PICTURES:
        yield f"{pictures} pictures"


def exercise(cells: list[Any]) -> Iterator[str]:
    """The last text is the exercise; one cell of code may follow, to start from."""
    last = [i for i, cell in enumerate(cells) if cell["cell_type"] == "markdown"][-1]
    if not re.search(r"^## Exercise$", text(cells[last]), re.MULTILINE) or len(cells) - last > 2:
        yield "does not end in an exercise"


def broken_png(content: str) -> str | None:
    """What is wrong with a base64 PNG: its checksums are looked at, and that it is large enough to read and not blank."""
    try:
        data = base64.b64decode("".join(content.split()), validate=True)
    except ValueError:
        return "is not base64"
    if data[:8] != b"\x89PNG\r\n\x1a\n":
        return "is not a PNG"
    place, pixels, width, height = 8, b"", 0, 0
    while place + 12 <= len(data):
        (length,) = struct.unpack(">I", data[place : place + 4])
        kind, body = data[place + 4 : place + 8], data[place + 8 : place + 8 + length]
        checksum = data[place + 8 + length : place + 12 + length]
        if checksum != struct.pack(">I", zlib.crc32(kind + body)):
            return "is damaged"
        if kind == b"IHDR":
            width, height = struct.unpack(">II", body[:8])
        if kind == b"IDAT":
            pixels += body
        place += 12 + length
        if kind == b"IEND":
            break
    else:
        return "is cut off"
    if width < 400 or height < 200:
        return f"has {width} by {height} pixels"
    return "is blank" if len(set(zlib.decompress(pixels))) < 8 else None


def text(cell: Any) -> str:
    return joined(cell.get("source", ""))


def joined(lines: Any) -> str:
    return "".join(lines) if isinstance(lines, list) else str(lines)


def self_test() -> None:
    """The check itself finds what it should."""

    def png(rows: bytes) -> str:
        def chunk(kind: bytes, body: bytes) -> bytes:
            return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

        header = struct.pack(">IIBBBBB", 400, 200, 8, 0, 0, 0, 0)
        parts = chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
        return base64.b64encode(b"\x89PNG\r\n\x1a\n" + parts).decode()

    good_picture = png(bytes(range(100)))

    def notebook(last: str = "## Exercise", picture: str = good_picture, **output: Any) -> Any:
        shown = {"output_type": "execute_result", "execution_count": 1, "metadata": {}, "data": {"image/png": picture}}
        return {
            "nbformat": 4,
            "nbformat_minor": 5,
            "metadata": {"kernelspec": {"name": "rust"}},
            "cells": [
                {"cell_type": "markdown", "id": "a", "source": "# Title"},
                {"cell_type": "code", "id": "b", "source": [DEPENDENCY + "\n", "f"], "execution_count": 1, "outputs": [{**shown, **output}]},
                {"cell_type": "markdown", "id": "c", "source": last},
            ],
        }

    def expect(wanted: str | None, made: Any) -> None:
        said = list(problems(made))
        fits = not said if wanted is None else any(wanted in line for line in said)
        assert fits, f"expected {wanted}, found {said}"

    expect(None, notebook())
    expect("format", {**notebook(), "nbformat_minor": 4})
    expect("exercise", notebook(last="The end."))
    expect("an error", notebook(output_type="error", evalue="type mismatch"))
    expect("an error", notebook(output_type="stream", name="stderr", text="panicked"))
    expect("folder of one machine", notebook(text="/home/someone/x"))
    expect("blank", notebook(picture=png(bytes(100))))
    expect("cut off", notebook(picture=base64.b64encode(base64.b64decode(good_picture)[:-12]).decode()))
    expect("damaged", notebook(picture=base64.b64encode(base64.b64decode(good_picture).replace(b"IHDR\x00\x00\x01", b"IHDR\x00\x00\x02")).decode()))
    expect("shows Figure", notebook(data={"text/plain": "Figure { width: 1.0 }"}))
    expect("0 pictures", notebook(data={"text/plain": "1"}))


if __name__ == "__main__":
    main()
