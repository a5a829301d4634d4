"""Whether our `.jax_export` files work in several releases of JAX: deserialise, call, jit, differentiate.

Makes a virtual environment for each release under --folder (about 400 MB, removed afterwards), and runs
python/checks/check_jax_export.py --files in it. Not part of the checks that run on every change.

    cargo build --bin hlo && .venv/bin/python python/checks/jax_releases.py --folder /tmp/releases
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from pathlib import Path

import check_jax_export

ROOT = Path(__file__).resolve().parents[2]
RELEASES = ["0.4.35", "0.5.3", "0.6.2", "0.7.2", "0.8.3", "0.9.2", "0.10.2"]


def check(release: str, interpreter: str, folder: Path, files: Path) -> str:
    """One line: what works, or the last line of what was said."""
    home = folder / release
    subprocess.run([interpreter, "-m", "venv", home], check=True)
    try:
        python = home / "bin" / "python"
        # jax.export of releases up to 0.5 imports absl without asking for it.
        packages = [f"jax=={release}", "flatbuffers", "absl-py"]
        install = [python, "-m", "pip", "install", "-q", "--no-cache-dir", *packages]
        done = subprocess.run(install, capture_output=True, text=True)
        if done.returncode != 0:
            return f"cannot be installed: {done.stderr.strip().splitlines()[-1]}"
        command = [python, ROOT / "python/checks/check_jax_export.py", "--files", files]
        environment = {**os.environ, "PYTHONPATH": str(ROOT / "python")}
        done = subprocess.run(command, capture_output=True, text=True, env=environment)
        if done.returncode != 0:
            return f"FAILS after {max(len(done.stdout.splitlines()) - 1, 0)} files: {done.stderr.strip().splitlines()[-1]}"
        return "; ".join(done.stdout.splitlines()[1:])
    finally:
        shutil.rmtree(home)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, required=True, help="where the environments are made")
    parser.add_argument("--release", action="append", help=f"repeatable [default: {' '.join(RELEASES)}]")
    parser.add_argument("--python", default=sys.executable, help="interpreter for them: JAX 0.11 and later need 3.12")
    parser.add_argument("--serialization-version", type=int, default=2, help="number that the files name")
    options = parser.parse_args()
    files = options.folder / "files"
    check_jax_export.write(files, options.serialization_version)
    failed = False
    for release in options.release or RELEASES:
        result = check(release, options.python, options.folder, files)
        print(f"{release}: {result}", flush=True)
        failed |= "FAILS" in result
    sys.exit(failed)


if __name__ == "__main__":
    main()
