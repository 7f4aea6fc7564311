"""Copies the Rust crates that the source distribution carries into a folder: `crates.py FOLDER`.

All that a build for Linux reads, on any processor. Of a crate for other systems stays its manifest,
which cargo reads to find out that it is not needed.
"""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

MANIFEST = Path(__file__).resolve().parent / "Cargo.toml"

#: Which crates are used differs between these, if at all.
TARGETS = (
    "x86_64-unknown-linux-gnu",
    "aarch64-unknown-linux-gnu",
    "x86_64-unknown-linux-musl",
    "i686-unknown-linux-gnu",
    "armv5te-unknown-linux-gnueabi",
    "armv7-unknown-linux-gnueabihf",
    "powerpc-unknown-linux-gnu",
    "powerpc64le-unknown-linux-gnu",
    "riscv64gc-unknown-linux-gnu",
    "s390x-unknown-linux-gnu",
)

#: Files of AWS-LC for other systems: assembly, and declarations for Rust.
OF_OTHER_SYSTEMS = re.compile(
    r"aws-lc/generated-src/(mac|ios|win)-|builder/prebuilt-nasm/|src/.*_(apple|windows|android|pc)_"
)


def used_crates() -> set[str]:
    """Name and version of the crates that some build for Linux uses: tests and fuzzing too."""
    used = set()
    command = ("cargo", "tree", "--locked", "--workspace", "--features=poorhttp-fuzz/libfuzzer")
    for target in TARGETS:
        done = subprocess.run(
            [*command, f"--manifest-path={MANIFEST}", f"--target={target}", "--prefix=none"],
            stdout=subprocess.PIPE,
            check=True,
        )
        # One crate in a line: `libc v0.2.191`, or `pyo3-macros v0.30.1 (proc-macro)`.
        for line in done.stdout.decode().splitlines():
            if line:
                name, version = line.split()[:2]
                used.add(f"{name}-{version.removeprefix('v')}")
    return used


def unneeded(crate: Path, used: set[str]) -> Iterator[Path]:
    """The files of a crate that no build for Linux reads."""
    kept = ("Cargo.toml", ".cargo-checksum.json")
    aws_lc = crate.name.startswith("aws-lc-sys-")
    for path in crate.rglob("*"):
        name = path.relative_to(crate).as_posix()
        other = crate.name not in used or (aws_lc and OF_OTHER_SYSTEMS.match(name))
        if other and path.is_file() and name not in kept:
            yield path


def reduce(crate: Path, used: set[str]) -> None:
    """Remove what is not needed of a crate, and its checksums; cargo checks the rest."""
    for path in list(unneeded(crate, used)):
        path.unlink()
    if crate.name not in used:
        # Cargo reads no manifest without a library.
        library = re.search(r'(?m)^\[lib\]$(?:\n.+)*?\npath = "(.+)"', read(crate / "Cargo.toml"))
        empty = crate / (library[1] if library else "src/lib.rs")
        empty.parent.mkdir(parents=True, exist_ok=True)
        empty.touch()
    record = crate / ".cargo-checksum.json"
    checksums = json.loads(read(record))
    checksums["files"] = {
        path.relative_to(crate).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(crate.rglob("*"))
        if path.is_file() and path != record
    }
    record.write_text(json.dumps(checksums), encoding="utf-8")
    for folder in sorted(crate.rglob("*"), reverse=True):
        if folder.is_dir() and not any(folder.iterdir()):
            folder.rmdir()


def read(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def main() -> None:
    if len(sys.argv) != 2:
        raise SystemExit("usage: crates.py FOLDER")
    folder = Path(sys.argv[1])
    command = ("cargo", "vendor", "--quiet", "--locked", "--versioned-dirs")
    subprocess.run(
        [*command, f"--manifest-path={MANIFEST}", str(folder)],
        stdout=subprocess.DEVNULL,
        check=True,
    )
    used = used_crates()
    for crate in folder.iterdir():
        reduce(crate, used)


if __name__ == "__main__":
    main()
