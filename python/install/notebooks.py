"""Installs Jupyter and the Rust kernel evcxr into .notebooks/, and compiles the library for the first notebook.

Called by ./setup --notebooks. Nothing outside the folder is touched; a run that was cut off is taken up by the next.

    .notebooks/python     a virtual environment with python/install/requirements-notebooks.txt; the kernel is registered in it
    .notebooks/evcxr      bin/evcxr_jupyter
    .notebooks/build/0    what the kernel compiled: kept, so that a notebook's first cell has little to do
    .notebooks/stamp      written last
"""

from __future__ import annotations

import argparse
import fcntl
import json
import os
import shutil
import sys
from pathlib import Path

from native import fail, run, say

EVCXR = "0.22.0"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--root", type=Path, required=True)
    parser.add_argument("--stamp", required=True)
    given = parser.parse_args()
    root: Path = given.root
    home = root / ".notebooks"
    stamp = home / "stamp"
    try:
        home.mkdir(exist_ok=True)
        with (home / "lock.partial").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if stamp.is_file() and stamp.read_text() == given.stamp:
                return  # another setup finished meanwhile
            stamp.unlink(missing_ok=True)
            jupyter(root, home / "python")
            kernel(home)
            register(root, home / "python/share/jupyter/kernels/rust")
            say("compiling the library for notebooks: some minutes, once")
            run([home / "python/bin/python", root / "python/checks/run_notebooks.py", "--prepare"], "compiling for notebooks")
            (home / "stamp.partial").write_text(given.stamp)
            (home / "stamp.partial").replace(stamp)
        say(f"done: Jupyter and the Rust kernel are in {home}")
    except OSError as error:
        fail(f"{error}; the notebooks' part is not complete, run ./setup --notebooks again when it is mended")
    except KeyboardInterrupt:
        print("setup: interrupted; ./setup --notebooks goes on from here", file=sys.stderr)
        raise SystemExit(130) from None


def jupyter(root: Path, folder: Path) -> None:
    """The virtual environment, made anew: it names its own place."""
    requirements = root / "python/install/requirements-notebooks.txt"
    mark = folder / "requirements"
    wanted = f"{folder}\n{requirements.read_text()}"
    if mark.is_file() and mark.read_text() == wanted:
        return
    say(f"installing the packages of python/install/{requirements.name} into .notebooks/python")
    run([sys.executable, "-m", "venv", "--clear", folder], "python3 -m venv")
    pip: list[str | Path] = [folder / "bin/python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    run([*pip, "--no-cache-dir", "--only-binary=:all:", "-r", requirements], f"pip install -r {requirements.name}")
    mark.write_text(wanted)


def kernel(home: Path) -> None:
    """The kernel's program; cargo itself knows whether this version is there."""
    program, folder, target = home / "evcxr/bin/evcxr_jupyter", home / "evcxr", home / "evcxr.partial"
    if not program.is_file():
        say(f"compiling evcxr_jupyter {EVCXR}: some minutes, once")
    os.environ["CARGO_TARGET_DIR"] = str(target)  # kept when it fails: the next run goes on there
    command: list[str | Path] = ["cargo", "install", "--quiet", "--locked", "--version", EVCXR, "--root", folder]
    run([*command, "evcxr_jupyter"], f"cargo install evcxr_jupyter {EVCXR}")
    shutil.rmtree(target, ignore_errors=True)
    del os.environ["CARGO_TARGET_DIR"]


def register(root: Path, folder: Path) -> None:
    """The kernel by the name `rust`, for the Jupyter of this environment only."""
    folder.mkdir(parents=True, exist_ok=True)
    description = {
        "argv": [str(root / "notebooks/kernel/start"), "{connection_file}"],
        "display_name": "Rust (sinexp)",
        "language": "rust",
        "interrupt_mode": "message",
    }
    (folder / "kernel.json").write_text(json.dumps(description, indent=1) + "\n")
    # cargo's settings for everything that kernels build.
    settings = root / ".notebooks/build/.cargo/config.toml"
    settings.parent.mkdir(parents=True, exist_ok=True)
    settings.unlink(missing_ok=True)
    settings.symlink_to(os.path.relpath(root / "notebooks/kernel/cargo.toml", settings.parent))


if __name__ == "__main__":
    main()
