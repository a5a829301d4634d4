"""Assembles .xla/ from pinned PyPI wheels: XLA's headers and library, OpenBLAS, libclang for bindgen, plotly.js.

Called by ./setup. Standard library and pip only. Everything is built in .xla.partial/ and renamed when complete, so
that a run cut off at any point leaves nothing half-installed; wheels that were downloaded whole are kept until then.

    .xla/versions            which packages it was made from, one a line
    .xla/include, .xla/lib   what the crate `xla` expects in XLA_EXTENSION_DIR
    .xla/openblas/lib        libopenblas.so for ndarray-linalg
    .xla/libclang            libclang.so for bindgen, with the compiler's own C headers
    .xla/plotly              plotly.min.js, with which pages of `report` draw their charts
"""

from __future__ import annotations

import argparse
import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path, PurePosixPath
from typing import Callable, NamedTuple, NoReturn

from bind_functions import bind_functions


class Wheel(NamedTuple):
    name: str
    version: str
    sha256: str


TENSORFLOW = Wheel("tensorflow-cpu", "2.21.0", "2b847d217b02ee7731ed91431daf3250daa0196c3c94614d23be27232e6e5b6c")
LLVM = Wheel("mlc-llvm-static", "23.1.1.post0", "dcfec888abfaa418be77d41af585805f31463584cf9c90582992c00f392c1ac5")
OPENBLAS = Wheel("scipy-openblas32", "0.3.34.481.3", "0595f94cd58c1f8a0d90c975621f4587337a003916b1979e834ebdf2cb5d9504")
LIBCLANG = Wheel("libclang", "18.1.1", "c533091d8a3bbf7460a00cb6c1a71da93bffe148f172c7d03b1c31fbf8aa2a0b")
PLOTLY = Wheel("plotly", "6.1.2", "f1548a8ed9158d59e03d7fed548c7db5549f3130d9ae19293c8638c202648f6d")

# Header folders of the tensorflow wheel, below tensorflow/include: what they contain goes to the folder on the right.
HEADERS = {
    "absl": "absl",
    "Eigen": "Eigen",
    "google": "google",
    "ml_dtypes": "ml_dtypes",
    "tsl": "tsl",
    "unsupported": "unsupported",
    "xla": "xla",
    "include": "",
    "external/llvm-project/mlir/include": "",
    "external/com_github_grpc_grpc/include": "",
    "external/highwayhash": "",
    "external/farmhash_archive/src": "",
}
LIBRARIES = ("libtensorflow_cc.so.2", "libtensorflow_framework.so.2")


def fail(message: str) -> NoReturn:
    print(f"setup: {message}", file=sys.stderr)
    raise SystemExit(1)


def say(message: str) -> None:
    print(f"setup: {message}", flush=True)


def run(command: list[str | Path], what: str, temporary: Path | None = None) -> str:
    """The command's output; stops with its last lines when it fails."""
    environment = {**os.environ, "TMPDIR": str(temporary)} if temporary else None
    result = subprocess.run([str(c) for c in command], capture_output=True, text=True, env=environment)
    if result.returncode != 0:
        lines = (result.stderr.strip() or result.stdout.strip()).splitlines()
        fail(f"{what} failed: {' | '.join(lines[-3:]) or f'exit code {result.returncode}'}")
    return result.stdout


def sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def fetch(wheel: Wheel, folder: Path) -> Path:
    """The wheel's file: one downloaded before whose checksum is right, or a fresh download."""
    prefix = wheel.name.replace("-", "_") + "-" + wheel.version
    for path in folder.glob(prefix + "-*.whl"):
        if sha256(path) == wheel.sha256:
            return path
        say(f"{path.name}: cut off or damaged, downloading again")
        path.unlink()
    say(f"downloading {wheel.name} {wheel.version}")
    fresh = folder / "fresh"
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir()
    # The same file whatever Python runs this: the wheels are unpacked, not imported.
    platforms = ["manylinux_2_28_x86_64", "manylinux_2_27_x86_64", "manylinux2014_x86_64", "manylinux2010_x86_64"]
    command: list[str | Path] = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check"]
    command += ["--no-deps", "--no-cache-dir", "--only-binary=:all:", "--python-version=3.11", "--implementation=cp"]
    command += [f"--platform={p}" for p in platforms] + ["--dest", fresh, f"{wheel.name}=={wheel.version}"]
    # pip's own temporary copy goes where the space was checked, not to /tmp.
    run(command, f"downloading {wheel.name}", temporary=fresh)
    path = next(fresh.glob("*.whl"), None)
    if path is None:
        fail(f"downloading {wheel.name}: pip left no wheel")
    if (found := sha256(path)) != wheel.sha256:
        shutil.rmtree(fresh)
        fail(f"{wheel.name} {wheel.version}: sha256 is {found}, expected {wheel.sha256}; nothing was installed")
    path.rename(folder / path.name)
    return folder / path.name


def unpack(wheel: Path, place: Callable[[PurePosixPath], Path | None]) -> None:
    """Writes the wheel's files where `place` says; None leaves a file out."""
    with zipfile.ZipFile(wheel) as archive:
        for member in archive.infolist():
            target = None if member.is_dir() else place(PurePosixPath(member.filename))
            if target is not None:
                target.parent.mkdir(parents=True, exist_ok=True)
                with archive.open(member) as source, target.open("wb") as file:
                    shutil.copyfileobj(source, file, 1 << 20)


def xla(tensorflow: Path, llvm: Path, out: Path, shim: Path) -> None:
    """include/ and lib/ as an official xla_extension has them."""
    include, lib = out / "include", out / "lib"

    def place(name: PurePosixPath) -> Path | None:
        if name.parent == PurePosixPath("tensorflow") and name.name in LIBRARIES:
            return lib / name.name
        for source, target in HEADERS.items():
            top = PurePosixPath("tensorflow/include") / source
            if name.is_relative_to(top):
                return include / target / name.relative_to(top)
        return None

    say("unpacking XLA's headers and library")
    unpack(tensorflow, place)
    top = PurePosixPath("mlc_llvm_static/static/include")
    unpack(llvm, lambda name: include / name.relative_to(top) if name.is_relative_to(top) else None)
    # XLA's headers still use two members that LLVM 23 dropped from the pointer specialisation.
    header = include / "llvm/ADT/DenseMapInfo.h"
    text = header.read_text()
    opening = "template <typename T> struct DenseMapInfo<T *> {"
    if opening not in text:
        fail(f"{header}: the DenseMapInfo specialisation for pointers is not where it was")
    members = "".join(
        f"\n  static inline T *{name}() {{ return reinterpret_cast<T *>(uintptr_t({value}) << 12); }}"
        for name, value in (("getEmptyKey", -1), ("getTombstoneKey", -2))
    )
    header.write_text(text.replace(opening, opening + members))
    if shutil.which("strip"):
        run(["strip", "--strip-unneeded", lib / LIBRARIES[0]], "strip")
    for library in LIBRARIES:
        bind_functions(lib / library)
    say("compiling the plugin registry")
    flags = ["-std=c++17", "-O1", "-fPIC", "-DNDEBUG", "-w", "-isystem", str(include)]
    run(["c++", *flags, "-c", shim, "-o", lib / "pjrt_registry.o"], "compiling pjrt_registry.cc")
    run(["ar", "rcs", lib / "libpjrt_registry.a", lib / "pjrt_registry.o"], "ar")
    (lib / "pjrt_registry.o").unlink()
    # A linker script: -lxla_extension becomes these three.
    (lib / "libxla_extension.so").write_text(f"INPUT(libpjrt_registry.a {' '.join(LIBRARIES)})\n")


def openblas(wheel: Path, out: Path) -> None:
    """libopenblas.so under its usual symbol names: the wheel's carry the prefix `scipy_`."""
    lib = out / "openblas" / "lib"
    name = "libscipy_openblas.so"
    source = PurePosixPath("scipy_openblas32/lib") / name
    unpack(wheel, lambda path: lib / name if path == source else None)
    symbols = run(["nm", "-D", "--defined-only", lib / name], "nm").split()
    plain = sorted(s.removeprefix("scipy_") for s in symbols if s.startswith("scipy_"))
    if "dgesdd_" not in plain:
        fail(f"{name} does not export dgesdd_ under the prefix scipy_")
    # One jump per function. Data symbols are not needed by any user of LAPACK.
    jumps = "".join(f".globl {s}\n.type {s}, @function\n{s}: jmp scipy_{s}@PLT\n" for s in plain)
    assembly = lib / "names.s"
    assembly.write_text(f'.text\n{jumps}.section .note.GNU-stack,"",@progbits\n')
    run(["c++", "-c", assembly, "-o", lib / "names.o"], "assembling OpenBLAS's names")
    run(["ar", "rcs", lib / "libopenblas_names.a", lib / "names.o"], "ar")
    assembly.unlink()
    (lib / "names.o").unlink()
    (lib / "libopenblas.so").write_text(f"INPUT(libopenblas_names.a {name})\n")


def libclang(wheel: Path, out: Path) -> None:
    """libclang.so, and the compiler's own C headers (stddef.h and its kin), which the wheel lacks."""
    folder = out / "libclang"
    unpack(wheel, lambda path: folder / "lib" / path.name if path.name == "libclang.so" else None)
    headers = run(["c++", "-print-file-name=include"], "asking the compiler for its headers").strip()
    (folder / "include").symlink_to(headers)


def plotly(wheel: Path, out: Path) -> None:
    """plotly.js as a page holds it; the package has its text in one more form and Python code around it."""
    source = PurePosixPath("plotly/package_data/plotly.min.js")
    unpack(wheel, lambda path: out / "plotly" / path.name if path == source else None)
    if not (out / "plotly" / source.name).is_file():
        fail(f"{wheel.name} has no {source}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--root", type=Path, required=True)
    parser.add_argument("--stamp", required=True)
    arguments = parser.parse_args()
    root: Path = arguments.root
    official = os.environ.get("XLA_EXTENSION_DIR")
    if official and not (Path(official) / "lib").is_dir():
        fail(f"XLA_EXTENSION_DIR={official}: no lib folder there; unset it to use the assembled XLA")

    downloads, partial, final = root / ".xla.download.partial", root / ".xla.partial", root / ".xla"
    with (root / ".xla.lock.partial").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if (final / "stamp").is_file() and (final / "stamp").read_text() == arguments.stamp:
            return  # another setup finished meanwhile
        try:
            downloads.mkdir(exist_ok=True)
            needed = [OPENBLAS, LIBCLANG, PLOTLY] + ([] if official else [TENSORFLOW, LLVM])
            wheels = {w.name: fetch(w, downloads) for w in needed}
            shutil.rmtree(partial, ignore_errors=True)
            partial.mkdir()
            openblas(wheels[OPENBLAS.name], partial)
            libclang(wheels[LIBCLANG.name], partial)
            plotly(wheels[PLOTLY.name], partial)
            if not official:
                xla(wheels[TENSORFLOW.name], wheels[LLVM.name], partial, root / "src/runtime/shim/pjrt_registry.cc")
            (partial / "versions").write_text("".join(f"{w.name} {w.version}\n" for w in needed))
            (partial / "stamp").write_text(arguments.stamp)
            replace(partial, final)
        except (OSError, zipfile.BadZipFile) as error:
            fail(f"{error}; nothing was installed, run ./setup again when it is mended")
        except KeyboardInterrupt:
            print("setup: interrupted; ./setup goes on from here", file=sys.stderr)
            raise SystemExit(130) from None
        finally:
            shutil.rmtree(partial, ignore_errors=True)
            shutil.rmtree(downloads / "fresh", ignore_errors=True)
        shutil.rmtree(downloads, ignore_errors=True)
        say("done: .xla/ is complete")


def replace(new: Path, final: Path) -> None:
    """Puts `new` in the place of `final` by renaming."""
    old = final.with_name(final.name + ".old.partial")
    shutil.rmtree(old, ignore_errors=True)
    if final.exists():
        final.rename(old)
    new.rename(final)
    shutil.rmtree(old, ignore_errors=True)


if __name__ == "__main__":
    main()
