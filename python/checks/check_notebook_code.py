"""Whether the notebooks' code still does what their outputs show: each is compiled as one program and run, without Jupyter.

    .venv/bin/python python/checks/check_notebook_code.py            # all of notebooks/
    .venv/bin/python python/checks/check_notebook_code.py 03         # the one whose name begins so

A cell's printed lines must be the committed ones, numbers up to what another processor or sampling may change; each picture
and table must be shown, pictures in the same size. Python in a notebook's text is run after it, all of it as one program.
Needs ./setup --data --jax and nothing of ./setup --notebooks, which takes much longer: python/checks/run_notebooks.py executes the
notebooks themselves.
"""

from __future__ import annotations

import base64
import json
import os
import re
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Iterator

from check_notebooks import FOLDER, joined

ROOT = FOLDER.parent
# Printed before each cell's output; no notebook prints it.
MARK = "\x1ecell "
NUMBER = re.compile(r"[-+]?\d+(?:\.\d+)?(?:e[-+]?\d+)?")
# A picture or table as the library writes it for the kernel.
BLOCK = re.compile(r"EVCXR_BEGIN_CONTENT (\S+)\n(.*?)\nEVCXR_END_CONTENT\n", re.DOTALL)
RELATIVE = 0.1  # of a number: trained networks differ that much between processors at most
TINY = 1e-4  # below it numbers are rounding errors, and above the next one quotients of such: only that counts
HUGE = 1e9


def main() -> None:
    self_test()
    paths = [p for p in sorted(FOLDER.glob("*.ipynb")) if p.name.startswith(tuple(sys.argv[1:]) or "")]
    if not paths:
        sys.exit(f"check_notebook_code: no notebook's name begins with {' or '.join(sys.argv[1:])}")
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    subprocess.run(["cargo", "build", "--quiet", "--lib", "--features", "notebook"], cwd=ROOT, check=True)
    failed = False
    with tempfile.TemporaryDirectory() as folder:
        for path in paths:
            began = time.monotonic()
            problems = list(check(path, target / "debug", Path(folder)))
            failed |= bool(problems)
            for problem in problems:
                print(f"{path.name}: {problem}", file=sys.stderr)
            if not problems:
                print(f"{path.name}: ok, {time.monotonic() - began:.0f} s", flush=True)
    sys.exit(failed)


def check(path: Path, built: Path, folder: Path) -> Iterator[str]:
    every = json.loads(path.read_text())["cells"]
    cells = [cell for cell in every if cell["cell_type"] == "code"]
    source, binary = folder / f"notebook_{path.stem}.rs", folder / path.stem
    source.write_text(program(cells))
    libraries = [flag for name in ("lib", "openblas/lib") for flag in linked(ROOT / ".xla" / name)]
    compiled = subprocess.run(
        ["rustc", "--edition", "2024", "--crate-type", "bin", "-A", "warnings", "-o", binary, source]
        + ["--extern", f"sinexp={built / 'libsinexp.rlib'}", "-L", f"dependency={built / 'deps'}"]
        + libraries,
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    if compiled.returncode:
        said = [line for line in compiled.stderr.splitlines() if len(line) < 500]
        yield "does not compile:\n" + "\n".join(said)
        return
    # The kernel runs in the notebooks' folder.
    ran = subprocess.run([binary], cwd=FOLDER, capture_output=True, text=True)
    if ran.returncode:
        yield f"ends with {ran.returncode}: {ran.stderr.strip() or ran.stdout[-500:]}"
        return
    shown = ran.stdout.split(MARK)[1:]
    for number, (cell, text) in enumerate(zip(cells, shown, strict=True), 1):
        for problem in differences(cell.get("outputs", []), text.partition("\n")[2]):
            yield f"code cell {number}: {problem}"
    texts = "\n".join(joined(cell["source"]) for cell in every if cell["cell_type"] == "markdown")
    python = "\n".join(re.findall(r"^```python\n(.*?)^```$", texts, re.DOTALL | re.MULTILINE))
    ran = subprocess.run([sys.executable, "-c", python], cwd=FOLDER, capture_output=True, text=True)
    if ran.returncode:
        yield f"the Python in its text: {ran.stderr.strip()}"


def linked(folder: Path) -> list[str]:
    return ["-L", f"native={folder}", "-C", f"link-arg=-Wl,-rpath,{folder}"]


def program(cells: list[Any]) -> str:
    """All cells in one `main`, a cell's last expression shown as the kernel shows it."""
    body = []
    for number, cell in enumerate(cells):
        code = "\n".join(line for line in joined(cell["source"]).splitlines() if not line.startswith(":"))
        if any("data" in output for output in cell.get("outputs", [])):
            statements, expression = last_expression(code)
            code = f"{statements}\n({expression}).evcxr_display();"
        body.append(f'println!("{MARK}{number}");\n{code}')
    return "fn main() -> Result<(), Box<dyn std::error::Error>> {\n" + "\n".join(body) + "\nOk(())\n}\n"


def last_expression(code: str) -> tuple[str, str]:
    """The statements, and the expression behind them: it begins with the last line that is not indented and does not close
    a bracket."""
    lines = code.rstrip().splitlines()
    first = max(i for i, line in enumerate(lines) if line and line[0] not in " \t)]}")
    return "\n".join(lines[:first]), "\n".join(lines[first:])


def differences(outputs: list[Any], text: str) -> Iterator[str]:
    """Between a cell's committed outputs and what the program printed for it."""
    committed = "".join(joined(output["text"]) for output in outputs if output.get("name") == "stdout")
    printed = BLOCK.sub("", text)
    yield from changed_lines(committed.split("\n"), printed.split("\n"))
    wanted = {kind: content for output in outputs for kind, content in output.get("data", {}).items()}
    found = dict(BLOCK.findall(text))
    if set(wanted) - {"text/plain"} != set(found) - {"text/plain"}:
        yield f"shows {sorted(found) or 'nothing'}, committed is {sorted(wanted) or 'nothing'}"
        return
    if "text/plain" in found:
        yield from changed_lines(joined(wanted["text/plain"]).rstrip().split("\n"), found["text/plain"].rstrip().split("\n"))
    if "image/png" in found:
        sizes = [picture_size(joined(content)) for content in (wanted["image/png"], found["image/png"])]
        if sizes[0] != sizes[1]:
            yield f"its picture has {sizes[1]} pixels, the committed one {sizes[0]}"


def changed_lines(committed: list[str], printed: list[str]) -> Iterator[str]:
    if len(committed) != len(printed):
        yield f"prints {len(printed)} lines, committed are {len(committed)}: {printed[:3]}"
        return
    for old, new in zip(committed, printed):
        # Without a number in it a line is free text, such as a model's.
        if NUMBER.search(old) and not same(old, new):
            yield f"prints `{new}`, committed is `{old}`"


def same(old: str, new: str) -> bool:
    """The same words, and numbers that are close."""
    words = [re.sub(r"[\s-]+", " ", NUMBER.sub("#", line)) for line in (old, new)]
    if words[0] != words[1]:
        return False
    return all(close(float(a), float(b)) for a, b in zip(NUMBER.findall(old), NUMBER.findall(new)))


def close(a: float, b: float) -> bool:
    if (abs(a) < TINY and abs(b) < TINY) or (abs(a) > HUGE and abs(b) > HUGE):
        return True
    return abs(a - b) <= RELATIVE * max(abs(a), abs(b))


def picture_size(content: str) -> tuple[int, int]:
    return struct.unpack(">II", base64.b64decode(content)[16:24])


def self_test() -> None:
    """The comparison itself finds what it should."""
    assert same("a 12.74 dB, 1.2e-7", "a 12.70 dB, 3e-9")
    assert same("condition 3.4e18", "condition 1e17") and not same("condition 3.4e8", "condition 1e7")
    assert not same("a 12.74 dB", "a 9.74 dB") and not same("a 1", "b 1")
    assert last_expression("let a = 1;\nf(\n    a,\n)\n") == ("let a = 1;", "f(\n    a,\n)")
    picture = base64.b64encode(bytes(16) + struct.pack(">II", 4, 2)).decode()
    outputs = [{"name": "stdout", "text": ["n 1\n"]}, {"data": {"image/png": picture}}]
    shown = f"n 1\nEVCXR_BEGIN_CONTENT image/png\n{picture}\nEVCXR_END_CONTENT\n"
    assert not list(differences(outputs, shown))
    for wrong in ("n 1\n", shown.replace("n 1", "n 2"), shown + "n 1\n"):
        assert list(differences(outputs, wrong)), wrong


if __name__ == "__main__":
    main()
