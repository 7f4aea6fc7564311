"""Makes the virtual environment, and installs Rust where there is none, before `make` builds.

    bootstrap.py venv FOLDER        a virtual environment with pip and the build tools
    bootstrap.py install WHAT ...   the source, as pip's options and arguments say: `--editable .`
    bootstrap.py tools EXTRA ...    the packages of extras of setup.cfg
    bootstrap.py run COMMAND ...    the command, with a Rust toolchain on its PATH

`run` uses the cargo that is there. Where none is, or an old one, it installs Rust for this user
alone into ~/.cache/poorhttp/rust: with rustup, or with puccinialin from PyPI where rustup cannot
be fetched directly (a Python without certificates, a platform not named below). Neither needs
root, and neither changes PATH or any profile.

Written for Python 3.6, so that one that is too old for the rest can be told so.
"""

import ast
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import urllib.request

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from progress import Step

PYTHON_FLOOR = (3, 10)
BUILD_TOOLS = ["setuptools>=77", "setuptools-rust>=1.10"]
RUSTUP = "https://static.rust-lang.org/rustup/dist/%s/rustup-init"
ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
COMPONENTS = ["clippy", "rustfmt"]
#: Where pip finds packages, and uv's names for it.
UV_SETTINGS = {
    "cert": "SSL_CERT_FILE",
    "find-links": "UV_FIND_LINKS",
    "index-url": "UV_DEFAULT_INDEX",
}
#: Settings of pip that do not say what is installed.
NO_SOURCE = (
    *("cache-dir", "config-file", "default-timeout", "disable-pip-version-check"),
    *("no-cache-dir", "no-color", "no-input", "no-warn-script-location", "progress-bar"),
    *("quiet", "retries", "root-user-action", "timeout", "verbose"),
)


def stop(text: str) -> None:
    """End with `text` on standard error and exit code 1."""
    sys.stderr.write("\n" + text.strip("\n") + "\n\n")
    sys.exit(1)


def say(text: str) -> None:
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()


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
    from progress import Step

    try:
        with Step(
            "environment",
            f"{folder}, with Python {platform.python_version()} and the build tools: about 10 s",
        ) as step:
            fill_venv(folder, step)
    except subprocess.CalledProcessError:
        stop(
            f"pip could not install {' and '.join(BUILD_TOOLS)}.\n"
            "Is a package index within reach? See what pip said above."
        )


def fill_venv(folder: str, step: "Step") -> None:
    """Create it; CalledProcessError if pip cannot install the build tools."""
    for module in ("venv", "ensurepip"):
        try:
            __import__(module)
        except ImportError:
            make_virtualenv(folder)
            break
    else:
        import venv

        step.report(f"making the folder {folder}")
        venv.create(folder, with_pip=True)
    python = os.path.join(folder, "bin", "python")
    step.report(f"installing {' and '.join(BUILD_TOOLS)}")
    if subprocess.call([python, "-m", "pip", "install", "--quiet", *BUILD_TOOLS]) != 0:
        raise subprocess.CalledProcessError(1, "pip")


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


def install_tools(extras: "list[str]") -> None:
    """Install what extras of setup.cfg name into the Python that runs this."""
    import configparser

    setup = configparser.ConfigParser()
    setup.read(os.path.join(ROOT, "setup.cfg"), encoding="utf-8")
    lines = []  # type: list[str]
    for extra in extras:
        text = setup["options.extras_require"][extra]
        if text.startswith("file:"):
            for name in text[len("file:") :].split(","):
                with open(os.path.join(ROOT, name.strip()), encoding="utf-8") as file:
                    lines += file.read().split("\n")
        else:
            lines += text.split("\n")
    packages = [line for line in lines if line and not line.startswith("#")]
    from progress import Step

    names = ", ".join(extras)
    with Step("packages", f"of setup.cfg for {names}: half a minute the first time") as step:
        if not run_uv(packages, step.report):
            run_pip(packages, dict(os.environ), step.report)


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


def install_with_rustup(report: "Callable[[str], None]") -> None:
    """Fetch rustup's installer and let it install; OSError, KeyError or CalledProcessError."""
    address = RUSTUP % target_triple()
    report("fetching " + address)
    with tempfile.TemporaryDirectory() as folder:
        installer = os.path.join(folder, "rustup-init")
        with urllib.request.urlopen(address, timeout=60) as answer, open(installer, "wb") as file:
            shutil.copyfileobj(answer, file)
        report("rustup installs the compiler and the standard library")
        os.chmod(installer, 0o700)
        command = [installer, "-y", "--quiet", "--no-modify-path", "--profile", "minimal"]
        for component in COMPONENTS:
            command += ["--component", component]
        subprocess.run(command, env=own_environment(), check=True, stdout=subprocess.DEVNULL)


def install_with_puccinialin(report: "Callable[[str], None]") -> None:
    """The same by way of PyPI; CalledProcessError."""
    report("trying puccinialin from PyPI")
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "puccinialin"]
    subprocess.run(pip, check=True)
    command = [sys.executable, "-m", "puccinialin", "--location", rust_home()]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    rustup = os.path.join(rust_home(), "cargo", "bin", "rustup")
    subprocess.run([rustup, "component", "add", *COMPONENTS], env=own_environment(), check=True)


def found_rust() -> "tuple[dict[str, str] | None, tuple[int, ...], str]":
    """Find a Rust toolchain that is new enough.

    Returns:
        The environment in which it is found, its version, and the path of its cargo. Without one
        None, and the version of the one that is too old, if any. Ends without a C compiler.
    """
    if shutil.which("cc") is None:
        stop(
            "No C compiler: Rust links with `cc`. Install one (as root), then try again:\n"
            "    apt install gcc libc6-dev          (Debian, Ubuntu)\n"
            "    dnf install gcc                    (Fedora)\n"
            "    apk add gcc musl-dev               (Alpine)"
        )
    old = ()  # type: tuple[int, ...]
    for environment in (usual_environment(), own_environment()):
        version = rust_version(environment)
        if version >= rust_floor():
            return environment, version, shutil.which("cargo", path=environment["PATH"]) or "cargo"
        old = old or version
    return None, old, ""


def no_rust(old: "tuple[int, ...]") -> str:
    """Say that there is no Rust toolchain that is new enough, and how to install one."""
    floor = dotted(rust_floor())
    found = f"Rust {dotted(old)} is too old" if old else "no Rust was found"
    return (
        f"poorhttp is partly written in Rust, and needs Rust {floor} or newer: {found}.\n"
        "Install it in one of these ways, then try again:\n"
        "    curl --proto '=https' -sSf https://sh.rustup.rs | sh  (any Linux; for you alone)\n"
        "    apt install cargo rustc                               (Debian 13 and newer; as root)\n"
        "    apt install cargo-web rustc-web                       (Debian 12; as root)\n"
        "    make run                                              (in a clone; for you alone)\n"
        "Behind a proxy, set https_proxy before."
    )


def rust_environment(*, says_found: bool = False) -> "dict[str, str]":
    """An environment with a Rust toolchain that is new enough, installed if need be."""
    environment, version, cargo = found_rust()
    if environment is not None:
        if says_found:
            say(f"toolchain: Rust {dotted(version)} ({cargo})")
        return environment
    from progress import Step

    floor = dotted(rust_floor())
    found = f"Rust {dotted(version)} is too old" if version else "no Rust found"
    text = f"{found}; installing Rust {floor} or newer for this user alone into {rust_home()}"
    try:
        with Step("toolchain", f"{text}: about a minute, 150 MB to fetch") as step:
            for install in (install_with_rustup, install_with_puccinialin):
                try:
                    install(step.report)
                except (OSError, KeyError, subprocess.CalledProcessError) as error:
                    why = f"{type(error).__name__}: {error}"
                    step.say(f"toolchain: {install.__name__} did not work: {why}")
                    continue
                if rust_version(own_environment()) >= rust_floor():
                    return own_environment()
            raise RuntimeError
    except RuntimeError:
        stop(no_rust(version))
    raise AssertionError("unreachable")


# The packages


def install(arguments: "list[str]") -> None:
    """Have pip install these, with the toolchain, and report what it does; end if it fails."""
    import threading

    from compiling import MODULES, PIPE, about
    from progress import Step

    environment = rust_environment(says_found=True)
    read, write = os.pipe()
    environment = dict(environment, **{PIPE: f"/proc/{os.getpid()}/fd/{write}"})
    before = os.path.isdir(os.path.join(ROOT, "core", "target", "release"))
    text = f"the core, in Rust: {'only what has changed' if before else about()}"
    if os.environ.get(MODULES):
        text += "; `make modules` compiles TLS and compression"
    # Built here and not in pip's usual isolation: cargo's work is kept, and no network is needed
    # again.
    options = ["--no-build-isolation", "--config-settings=editable_mode=compat"]

    def read_build(report: "Callable[[str], None]") -> None:
        with open(read, encoding="utf-8", errors="replace") as lines:
            for line in lines:
                report(line.rstrip())

    with Step("compiling", text) as step:
        # Not awaited after Ctrl-C: pip's programs have the pipe open until they end.
        reader = threading.Thread(target=read_build, args=(step.report,), daemon=True)
        reader.start()
        interrupted = False
        try:
            run_pip([*options, *arguments], environment, step.report)
        except KeyboardInterrupt:
            interrupted = True
            raise
        finally:
            os.close(write)
            if not interrupted:
                reader.join()


def uv_environment() -> "dict[str, str] | None":
    """The environment in which uv installs from where pip would; None if it cannot be told so."""
    pip = [sys.executable, "-m", "pip", "config", "list"]
    answer = subprocess.run(pip, stdout=subprocess.PIPE, encoding="utf-8", check=False)
    settings = uv_settings(answer.stdout) if answer.returncode == 0 else None
    return None if settings is None else dict(os.environ, **settings)


def uv_settings(listed: str) -> "dict[str, str] | None":
    """What `pip config list` says, as environment variables of uv; None if it has no such."""
    found = {}  # type: dict[str, str]
    # What environment variables say comes last, and counts.
    for line in sorted(listed.splitlines(), key=lambda line: line.startswith(":env:")):
        key, _, value = line.partition("=")
        name = key.rpartition(".")[2]
        if name in UV_SETTINGS:
            found[UV_SETTINGS[name]] = ",".join(str(ast.literal_eval(value)).split())
        elif name not in NO_SOURCE:
            return None
    return found


def run_uv(packages: "list[str]", report: "Callable[[str], None]") -> bool:
    """Have uv install, in a fifth of the time that pip takes.

    Returns:
        Whether it did: not where there is no uv for this machine, or pip is told to install from
        a source that uv is not. Why it fails otherwise, pip says then.
    """
    environment = uv_environment()
    get = [sys.executable, "-m", "pip", "install", "--quiet", "--only-binary", ":all:", "uv"]
    quiet = subprocess.DEVNULL
    if environment is None or subprocess.call(get, stdout=quiet, stderr=quiet) != 0:
        return False
    report("uv fetches and installs them")
    command = [os.path.join(os.path.dirname(sys.executable), "uv"), "pip", "install", "--quiet"]
    command += ["--python", sys.executable, *packages]
    return subprocess.call(command, env=environment, stdout=quiet, stderr=quiet) == 0


def run_pip(
    arguments: "list[str]", environment: "dict[str, str]", report: "Callable[[str], None]"
) -> None:
    """Have pip install, and report what it does; if it fails, end with what it has said."""
    command = [sys.executable, "-m", "pip", "install", "--no-input", "--disable-pip-version-check"]
    command += ["--progress-bar=off", "--no-color", *arguments]
    output = []  # type: list[str]
    collected = 0
    pip = subprocess.Popen(
        command,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        errors="replace",
    )
    with pip:
        try:
            for line in pip.stdout or ():
                output.append(line)
                word, _, rest = line.strip().partition(" ")
                if word == "Collecting":
                    collected += 1
                    report(f"{collected} packages found, {rest.partition(' (')[0]}")
                elif word == "Downloading":
                    report(f"{collected} packages found, fetching {os.path.basename(rest)}")
                elif line.startswith("Installing collected packages:"):
                    report(f"installing {rest.count(',') + 1} packages")
        except KeyboardInterrupt:
            # A terminal has interrupted it too, but `kill` has not.
            pip.terminate()
            raise
    if pip.returncode != 0:
        stop(f"{''.join(output)}\npip could not install {arguments[-1]}: see above why.")


def main(arguments: "list[str]") -> None:
    """Run a command; after Ctrl-C end with one line, and the code that shells have for it."""
    try:
        run_command(arguments)
    except KeyboardInterrupt:
        say("interrupted; the same command goes on with what is done so far")
        # Not by `sys.exit`: a thread may wait for a program that goes on.
        os._exit(130)


def run_command(arguments: "list[str]") -> None:
    if len(arguments) == 2 and arguments[0] == "venv":
        make_venv(arguments[1])
    elif len(arguments) > 1 and arguments[0] == "tools":
        install_tools(arguments[1:])
    elif len(arguments) > 1 and arguments[0] == "install":
        install(arguments[1:])
    elif len(arguments) > 1 and arguments[0] == "run":
        environment = rust_environment()
        os.execvpe(arguments[1], arguments[1:], environment)
    else:
        stop("usage: bootstrap.py venv FOLDER | install WHAT ... | tools EXTRA ... | run WORD ...")


if __name__ == "__main__":
    main(sys.argv[1:])
