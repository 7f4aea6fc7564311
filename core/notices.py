"""Collects the licences of the crates that are linked: `notices.py [TARGET]` prints them.

Reads the licence files of each crate that `cargo metadata` finds below the extension modules, those
of the C libraries that such a crate carries, and those of Rust's standard library. A text that
several crates share is printed once.
"""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

MANIFEST = Path(__file__).resolve().parent / "Cargo.toml"

#: The crates of the extension modules, from which the graph is followed.
EXTENSIONS = tuple(f"poorhttp-python{each}" for each in ("", "-codings", "-tls", "-websocket"))

#: How the names of licence files begin.
NAMES = ("licen", "copying", "copyright", "notice", "unlicense")

RULE = "=" * 79


def run(*command: str) -> str:
    """What a command prints; CalledProcessError if it fails."""
    return subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True).stdout


def licence_files(folder: Path) -> list[Path]:
    """The licence files of a crate, and of the C library in a folder of it."""
    found = [
        path
        for path in (*folder.iterdir(), *folder.glob("*/*"))
        if path.is_file() and path.name.lower().startswith(NAMES) and path.suffix != ".rs"
    ]
    return sorted(found)


def linked_crates(target: str | None) -> list[dict[str, Any]]:
    """The crates that are linked for a platform, without those that only build the modules."""
    # `cargo tree` knows which crates these features need; `cargo metadata`, where they are.
    platform = [f"--target={target}"] if target else []
    options = ["--locked", f"--manifest-path={MANIFEST}"]
    edges = ["--edges=normal,no-proc-macro", "--prefix=none", "--format={p}"]
    packages = [f"--package={each}" for each in EXTENSIONS]
    tree = run("cargo", "tree", *options, *packages, *platform, *edges)
    linked = {tuple(line.split()[:2]) for line in tree.splitlines() if line}
    metadata = json.loads(run("cargo", "metadata", *options, "--format-version=1"))
    # Those without a source are ours.
    crates = [
        package
        for package in metadata["packages"]
        if (package["name"], f"v{package['version']}") in linked and package["source"]
    ]
    return sorted(crates, key=lambda crate: (crate["name"], crate["version"]))


def standard_library() -> list[Path]:
    """The licence files of Rust itself; none where its documentation is not installed."""
    folder = Path(run("rustc", "--print", "sysroot").strip(), "share/doc/rust")
    return [path for path in (folder / "COPYRIGHT", folder / "LICENSE-MIT") if path.exists()]


def notices(target: str | None = None) -> str:
    """The text of the file.

    Raises:
        ValueError: a crate has no licence file.
    """
    lines = [
        "poorhttp contains the crates below, and the C libraries in them.",
        "",
    ]
    found: list[tuple[str, Path]] = []
    for crate in linked_crates(target):
        name = f"{crate['name']} {crate['version']}"
        lines.append(f"{name}: {crate['license']}; {crate['repository']}")
        files = licence_files(Path(crate["manifest_path"]).parent)
        if not files and crate["license"] is None:
            raise ValueError(f"{name} has neither a licence file nor the name of its licence")
        found += [(name, file) for file in files]
    lines.append("Rust's standard library: MIT OR Apache-2.0; https://github.com/rust-lang/rust")
    found += [("Rust's standard library", file) for file in standard_library()]
    # By their words: only line breaks and indentation differ.
    texts: dict[tuple[str, ...], str] = {}
    owners: dict[tuple[str, ...], list[str]] = {}
    for name, file in found:
        text = file.read_text(encoding="utf-8", errors="replace").strip()
        words = tuple(text.split())
        texts.setdefault(words, text)
        owners.setdefault(words, []).append(name)
    for words, text in texts.items():
        lines += ["", RULE, ", ".join(dict.fromkeys(owners[words])), RULE, "", text]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.stdout.write(notices(*sys.argv[1:2]))
