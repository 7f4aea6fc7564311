"""Makes the virtual environment, and installs Rust where there is none, before `make` builds.

    bootstrap.py venv FOLDER        a virtual environment with pip and the build tools
    bootstrap.py tools EXTRA        the packages of an extra of setup.cfg
    bootstrap.py run COMMAND ...    the command, with a Rust toolchain on its PATH

`run` uses the cargo that is there. Where none is, or an old one, it installs Rust for this user
alone into ~/.cache/poorhttp/rust: with rustup, or with puccinialin from PyPI where rustup cannot
be fetched directly (a Python without certificates, a platform not named below). Neither needs
root, and neither changes PATH or any profile.

Written for Python 3.6, so that one that is too old for the rest can be told so.
"""

import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import urllib.request

PYTHON_FLOOR = (3, 10)
BUILD_TOOLS = ["setuptools>=77", "setuptools-rust>=1.10"]
RUSTUP = "https://static.rust-lang.org/rustup/dist/%s/rustup-init"
ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
COMPONENTS = ["clippy", "rustfmt"]


def stop(text: str) -> None:
    """End with `text` on standard error and exit code 1."""
    sys.stderr.write("\n" + text.strip("\n") + "\n\n")
    sys.exit(1)


def say(text: str) -> None:
    sys.stderr.write(f"bootstrap: {text}\n")


def rust_floor() -> "tuple[int, ...]":
    """The oldest Rust that builds the crates, as their workspace says."""
    with open(os.path.join(ROOT, "core", "Cargo.toml"), encoding="utf-8") as file:
        match = re.search(r'(?m)^rust-version = "(\d+)\.(\d+)', file.read())
    if match is None:
        raise ValueError("core/Cargo.toml has no rust-version")
    return int(match.group(1)), int(match.group(2))


def dotted(version: "tuple[int, ...]") -> str:
    return ".".join(str(part) for part in version)


# Python


def make_venv(folder: str) -> None:
    """Create the virtual environment `folder`, or complete one that an interrupted run left."""
    if sys.version_info[:2] < PYTHON_FLOOR:
        stop(
            f"{sys.executable} is Python {platform.python_version()}; "
            f"poorhttp needs {dotted(PYTHON_FLOOR)} or newer.\n"
            "Name another interpreter: make PYTHON=python3.12 ..."
        )
    for module in ("venv", "ensurepip"):
        try:
            __import__(module)
        except ImportError:
            make_virtualenv(folder)
            break
    else:
        import venv

        say(f"virtual environment {folder}, Python {platform.python_version()}")
        venv.create(folder, with_pip=True)
    python = os.path.join(folder, "bin", "python")
    if subprocess.call([python, "-m", "pip", "install", "--quiet", *BUILD_TOOLS]) != 0:
        stop(
            f"pip could not install {' and '.join(BUILD_TOOLS)}.\n"
            "Is a package index within reach? See what pip said above."
        )


def make_virtualenv(folder: str) -> None:
    """The same where the distribution has split venv off from Python (Debian, Ubuntu)."""
    command = [sys.executable, "-m", "virtualenv", "--quiet", folder]
    if subprocess.call(command, stderr=subprocess.DEVNULL) != 0:
        stop(
            f"{sys.executable} comes without venv, which builds virtual environments.\n"
            "Install one of\n"
            f"    apt install python{dotted(sys.version_info[:2])}-venv  (Debian; as root)\n"
            f"    {sys.executable} -m pip install --user virtualenv\n"
            "or name another interpreter: make PYTHON=python3.12 ..."
        )


def install_tools(extra: str) -> None:
    """Install what an extra of setup.cfg names into the Python that runs this."""
    import configparser

    setup = configparser.ConfigParser()
    setup.read(os.path.join(ROOT, "setup.cfg"), encoding="utf-8")
    packages = setup["options.extras_require"][extra].split("\n")
    command = [sys.executable, "-m", "pip", "install", "--quiet"]
    subprocess.run(command + [package for package in packages if package], check=True)


# Rust


def rust_home() -> str:
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return os.path.join(cache, "poorhttp", "rust")


def own_environment() -> "dict[str, str]":
    """The environment in which the toolchain that this file installs is found first."""
    cargo_home = os.path.join(rust_home(), "cargo")
    path = os.path.join(cargo_home, "bin") + os.pathsep + os.environ.get("PATH", os.defpath)
    return dict(
        os.environ,
        CARGO_HOME=cargo_home,
        RUSTUP_HOME=os.path.join(rust_home(), "rustup"),
        PATH=path,
    )


def usual_environment() -> "dict[str, str]":
    """The caller's environment; rustup's usual folder is searched although no profile names it."""
    cargo_home = os.environ.get("CARGO_HOME") or os.path.expanduser("~/.cargo")
    path = os.environ.get("PATH", os.defpath) + os.pathsep + os.path.join(cargo_home, "bin")
    return dict(os.environ, PATH=path)


def rust_version(environment: "dict[str, str]") -> "tuple[int, ...]":
    """The version of the compiler that cargo would call, () if cargo or rustc does not run."""
    version = ()  # type: tuple[int, ...]
    for tool in ("cargo", "rustc"):
        found = shutil.which(tool, path=environment["PATH"])
        if found is None:
            return ()
        # rustup's stand-in for a compiler is there even when no toolchain is.
        answer = subprocess.run(
            [found, "--version"],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            check=False,
        )
        match = re.search(rb"(\d+)\.(\d+)", answer.stdout)
        if answer.returncode != 0 or match is None:
            return ()
        version = (int(match.group(1)), int(match.group(2)))
    return version


def target_triple() -> str:
    """What Rust calls this platform; KeyError if it is not one of the usual."""
    machine = {"x86_64": "x86_64", "amd64": "x86_64", "aarch64": "aarch64", "arm64": "aarch64"}
    system = {"Linux": "unknown-linux-gnu", "Darwin": "apple-darwin"}[platform.system()]
    if platform.system() == "Linux" and platform.libc_ver()[0] != "glibc":
        system = "unknown-linux-musl"
    return f"{machine[platform.machine().lower()]}-{system}"


def install_with_rustup() -> None:
    """Fetch rustup's installer and let it install; OSError, KeyError or CalledProcessError."""
    address = RUSTUP % target_triple()
    say("fetching " + address)
    with tempfile.TemporaryDirectory() as folder:
        installer = os.path.join(folder, "rustup-init")
        with urllib.request.urlopen(address, timeout=60) as answer, open(installer, "wb") as file:
            shutil.copyfileobj(answer, file)
        os.chmod(installer, 0o700)
        command = [installer, "-y", "--quiet", "--no-modify-path", "--profile", "minimal"]
        for component in COMPONENTS:
            command += ["--component", component]
        subprocess.run(command, env=own_environment(), check=True, stdout=subprocess.DEVNULL)


def install_with_puccinialin() -> None:
    """The same by way of PyPI; CalledProcessError."""
    say("trying puccinialin from PyPI")
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "puccinialin"]
    subprocess.run(pip, check=True)
    command = [sys.executable, "-m", "puccinialin", "--location", rust_home()]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    rustup = os.path.join(rust_home(), "cargo", "bin", "rustup")
    subprocess.run([rustup, "component", "add", *COMPONENTS], env=own_environment(), check=True)


def rust_environment() -> "dict[str, str]":
    """An environment with a Rust toolchain that is new enough, installed if need be."""
    if shutil.which("cc") is None:
        stop(
            "No C compiler: Rust links with `cc`. Install one (as root), then run make again:\n"
            "    apt install gcc libc6-dev          (Debian, Ubuntu)\n"
            "    dnf install gcc                    (Fedora)\n"
            "    apk add gcc musl-dev               (Alpine)"
        )
    floor = rust_floor()
    found = ()  # type: tuple[int, ...]
    for environment in (usual_environment(), own_environment()):
        version = rust_version(environment)
        if version >= floor:
            return environment
        found = found or version
    say(
        f"Rust {dotted(found)} is too old, {dotted(floor)} or newer is needed"
        if found
        else "no Rust found"
    )
    say("installing it for this user alone into " + rust_home())
    for install in (install_with_rustup, install_with_puccinialin):
        try:
            install()
        except (OSError, KeyError, subprocess.CalledProcessError) as error:
            say(f"{install.__name__} did not work: {type(error).__name__}: {error}")
            continue
        if rust_version(own_environment()) >= floor:
            return own_environment()
    stop(
        f"poorhttp is partly written in Rust, and no Rust {dotted(floor)} or newer was found\n"
        "or could be fetched. Install it in one of these ways, then run make again:\n"
        "    curl --proto '=https' -sSf https://sh.rustup.rs | sh  (any Linux; for you alone)\n"
        "    apt install cargo rustc                               (Debian 13 and newer; as root)\n"
        "    apt install cargo-web rustc-web                       (Debian 12; as root)\n"
        "Behind a proxy, set https_proxy and run make again."
    )
    raise AssertionError("unreachable")


def main(arguments: "list[str]") -> None:
    if len(arguments) == 2 and arguments[0] == "venv":
        make_venv(arguments[1])
    elif len(arguments) == 2 and arguments[0] == "tools":
        install_tools(arguments[1])
    elif len(arguments) > 1 and arguments[0] == "run":
        environment = rust_environment()
        os.execvpe(arguments[1], arguments[1:], environment)
    else:
        stop("usage: bootstrap.py venv FOLDER | tools EXTRA | run COMMAND ...")


if __name__ == "__main__":
    main(sys.argv[1:])
