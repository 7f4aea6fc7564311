"""Builds the wheels for Linux, all cross-compiled on one machine with zig as the C compiler.

    wheels.py [--python 3.13 ...] [--target aarch64-unknown-linux-musl ...] [--out dist]

`make wheels` runs it where its tools are installed (the extra `wheels` in setup.cfg). One wheel is
built per CPython and platform: the stable ABI costs a request 4 % more instructions
(docs/guides/install.md). Why not maturin: it writes neither the templates of `poorhttp init` nor
the man pages, which setup.py does.

Steps: setup.py makes one wheel for this machine, with extension modules that zig has built; a wheel
for another platform is the same with its own modules and tags. auditwheel checks each of them.
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import os
import platform
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

from notices import EXTENSIONS, notices

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / "build/wheels"

#: Platforms of Rust, and the oldest system that the wheel is for: glibc 2.17 is of 2012, musl 1.2
#: of 2020.
PLATFORMS = {
    "x86_64-unknown-linux-gnu": "manylinux_2_17_x86_64",
    "aarch64-unknown-linux-gnu": "manylinux_2_17_aarch64",
    "x86_64-unknown-linux-musl": "musllinux_1_2_x86_64",
    "aarch64-unknown-linux-musl": "musllinux_1_2_aarch64",
}
PYTHONS = ("3.10", "3.11", "3.12", "3.13", "3.14")

#: Bytes of a wheel.
MOST_BYTES = 3_900_000

HERE = f"{platform.machine()}-unknown-linux-gnu"
RUNNING = f"{sys.version_info[0]}.{sys.version_info[1]}"

NOTICES = "THIRD-PARTY-NOTICES.txt"

#: The extension modules: their places in a wheel, and the files that cargo makes.
MODULES = {
    "poorhttp/_core": "lib_core.so",
    "poorhttp/plugins/compression/_codings": "lib_codings.so",
    "poorhttp/plugins/asgi/_websocket": "lib_websocket.so",
    "poorhttp/plugins/tls/_tls": "lib_tls.so",
}


def run(*command: str, **environment: str) -> None:
    """Run a command in the root of the source; CalledProcessError if it fails."""
    print("+", *command, file=sys.stderr, flush=True)
    subprocess.run(command, cwd=ROOT, env={**os.environ, **environment}, check=True)


def cargo_home() -> str:
    return os.environ.get("CARGO_HOME") or os.path.expanduser("~/.cargo")


def build_extensions(target: str, python: str) -> dict[str, Path]:
    """The extension modules for a platform and a CPython, by their places in `MODULES`."""
    registry = f"{cargo_home()}/registry/src"
    # No path of this machine stands in messages.
    rust_flags = [
        *(f"--remap-path-prefix={folder}=crates" for folder in Path(registry).glob("*")),
        f"--remap-path-prefix={ROOT}/core=core",
    ]
    if target.endswith("musl"):
        # As a shared library, which uses the musl that Python uses.
        rust_flags.append("-Ctarget-feature=-crt-static")
    command = ["rustup", "target", "list", "--installed"]
    installed = subprocess.run(command, stdout=subprocess.PIPE, check=True)
    if target not in installed.stdout.decode().split():
        run("rustup", "target", "add", target)
    # Below the version of glibc that is named here, the linker knows no symbol.
    name = f"{target}.2.17" if target.endswith("gnu") else target
    folder = ROOT / "core/target/wheels"
    run(
        *("cargo-zigbuild", "zigbuild", "--release", "--locked"),
        *(f"--package={each}" for each in EXTENSIONS),
        *("--manifest-path=core/Cargo.toml", f"--target={name}", f"--target-dir={folder}"),
        RUSTFLAGS=" ".join(rust_flags),
        CFLAGS=" ".join(f"-ffile-prefix-map={path}=crates" for path in Path(registry).glob("*")),
        PYO3_BUILD_EXTENSION_MODULE="1",
        PYO3_CROSS="1",
        PYO3_CROSS_PYTHON_VERSION=python,
    )
    kept = BUILD / "extensions" / f"{target}-{python}"
    kept.mkdir(parents=True, exist_ok=True)
    found = {}
    for place, file in MODULES.items():
        found[place] = built = kept / file
        shutil.copyfile(folder / target / "release" / file, built)
        if target.endswith("musl"):
            # By the name that Alpine's compiler gives it, by which auditwheel knows musl.
            libc = f"libc.musl-{target.partition('-')[0]}.so.1"
            run("patchelf", "--replace-needed", "libc.so", libc, str(built))
    return found


def build_template(extensions: dict[str, Path], folder: Path) -> Path:
    """A wheel for this machine and Python, from which others differ in extension modules only."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    build = folder / "lib"
    settings = folder / "settings.cfg"
    settings.write_text(f"[build]\nbuild_lib = {build}\n")
    extra = {"DIST_EXTRA_CONFIG": str(settings)}
    run(sys.executable, "setup.py", "--quiet", "build_py", **extra)
    suffix = sysconfig.get_config_var("EXT_SUFFIX")
    for place, extension in extensions.items():
        shutil.copyfile(extension, build / f"{place}{suffix}")
    options = ("--skip-build", f"--dist-dir={folder}", f"--bdist-dir={folder / 'content'}")
    run(sys.executable, "setup.py", "--quiet", "bdist_wheel", *options, **extra)
    return next(folder.glob("*.whl"))


def assemble(
    template: Path, extensions: dict[str, Path], target: str, python: str, folder: Path
) -> Path:
    """The wheel for a platform and a CPython, as `auditwheel` takes it."""
    tag = "cp" + python.replace(".", "")
    machine = target.split("-", maxsplit=1)[0]
    project = "-".join(template.name.split("-")[:2])
    info = f"{project}.dist-info"
    with ZipFile(template) as archive:
        content = {name: archive.read(name) for name in archive.namelist()}
    for name in [name for name in content if name.endswith(".so")]:
        del content[name]
    # With the plain suffix, which every CPython takes: the tag of the wheel says for which it is.
    for place, extension in extensions.items():
        content[f"{place}.so"] = extension.read_bytes()
    content[f"{info}/licenses/{NOTICES}"] = notices(target).encode()
    metadata = content[f"{info}/METADATA"]
    content[f"{info}/METADATA"] = metadata.replace(
        b"License-File: LICENSE\n", f"License-File: LICENSE\nLicense-File: {NOTICES}\n".encode()
    )
    wheel = content[f"{info}/WHEEL"].decode()
    tags = f"Tag: {tag}-{tag}-linux_{machine}\n"
    wheel = re.sub(r"(?m)^Tag: .*\n", "", wheel).rstrip()
    content[f"{info}/WHEEL"] = f"{wheel}\n{tags}".encode()
    folder.mkdir(parents=True, exist_ok=True)
    made = folder / f"{project}-{tag}-{tag}-linux_{machine}.whl"
    with ZipFile(made, "w", ZIP_DEFLATED) as archive:
        write(archive, content, f"{info}/RECORD")
    return made


def write(archive: ZipFile, content: dict[str, bytes], record: str) -> None:
    """Fill an archive, with its record; the same bytes for the same content."""
    lines = []
    for name, data in content.items():
        if name != record:
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            lines.append(f"{name},sha256={digest},{len(data)}\n")
    content = {**content, record: "".join([*lines, f"{record},,\n"]).encode()}
    for name in sorted(content, key=lambda name: (".dist-info/" in name, name)):
        entry = ZipInfo(name)
        mode = 0o755 if name.endswith(".so") else 0o644
        entry.external_attr = (0o100000 | mode) << 16
        entry.compress_type = ZIP_DEFLATED
        archive.writestr(entry, content[name])


def finish(wheel: Path, target: str, out: Path) -> Path:
    """The wheel as it is published: checked for its platform, tagged, and as small as it gets."""
    import zopfli  # of the extra `wheels`, which the tests do without

    folder = BUILD / "repaired" / target
    shutil.rmtree(folder, ignore_errors=True)
    # Not among the libraries of this machine, which are of another platform: `libc.so` is musl's.
    # Nothing is grafted in, because the extension needs libraries of the platform only.
    libraries = BUILD / "no-libraries"
    libraries.mkdir(parents=True, exist_ok=True)
    options = (f"--ldpaths={libraries}", str(wheel))
    run("auditwheel", "show", *options)
    run("auditwheel", "repair", "--plat=auto", f"--wheel-dir={folder}", *options)
    repaired = next(folder.glob("*.whl"))
    if PLATFORMS[target] not in repaired.name:
        raise ValueError(f"{repaired.name} is not for {PLATFORMS[target]}")
    with ZipFile(repaired) as archive:
        content = {name: archive.read(name) for name in archive.namelist() if name[-1] != "/"}
    record = next(name for name in content if name.endswith(".dist-info/RECORD"))
    made = out / repaired.name
    # Plain deflate, for which zopfli finds 3 % fewer bytes than zlib does.
    with zopfli.ZipFile(made, "w", ZIP_DEFLATED, iterations=5) as archive:
        write(archive, content, record)
    size = made.stat().st_size
    print(f"{made.name}: {size:,} bytes", flush=True)
    if size > MOST_BYTES:
        raise ValueError(f"{made.name} has {size:,} bytes; at most {MOST_BYTES:,} are allowed")
    return made


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--python", nargs="+", choices=PYTHONS, default=PYTHONS)
    parser.add_argument("--target", nargs="+", choices=list(PLATFORMS), default=list(PLATFORMS))
    parser.add_argument("--out", type=Path, default=ROOT / "dist")
    chosen = parser.parse_args()
    chosen.out.mkdir(parents=True, exist_ok=True)
    template = build_template(build_extensions(HERE, RUNNING), BUILD / "template")
    made = []
    for target in chosen.target:
        for python in chosen.python:
            extensions = build_extensions(target, python)
            wheel = assemble(template, extensions, target, python, BUILD / "assembled" / target)
            made.append(finish(wheel, target, chosen.out))
    run(sys.executable, "-m", "twine", "check", "--strict", *map(str, made))


if __name__ == "__main__":
    main()
