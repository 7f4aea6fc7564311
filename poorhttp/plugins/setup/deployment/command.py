"""The command `poorhttp init`: decides what to write, writes it, and prints what is left to do."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable, Sequence

from poorhttp.config import loader
from poorhttp.config.settings import Settings
from poorhttp.errors import ConfigError, Failure, UsageError
from poorhttp.plugins.setup.deployment import containers, ini_file, mode, quoting, systemd
from poorhttp.plugins.setup.deployment.arguments import Arguments, usage
from poorhttp.plugins.setup.deployment.plan import HIDDEN, INI, Plan
from poorhttp.plugins.setup.deployment.project import DeployedProject
from poorhttp.plugins.setup.deployment.proxies import GROUPS, PROXIES
from poorhttp.worker import plugin_hooks

#: Writes a file, and makes its folder: path, content, and whether it may replace a file.
Write = Callable[[str, bytes, bool], None]


def main(words: Sequence[str], write: Write) -> int:
    """Write the files that are asked for.

    Args:
        words: the words behind `init`.
        write: writes a file, through no link.

    Raises:
        Failure: nothing is there to serve, or files would be overwritten.
    """
    arguments = Arguments(words)
    if "help" in arguments.values:
        print(usage(), end="")
        return 0
    folder = os.path.abspath(arguments.folder)
    if not os.path.isdir(folder):
        raise UsageError(f"there is no folder {arguments.folder}")
    inis = [os.path.join(folder, INI), os.path.join(folder, HIDDEN, INI)]
    there = next(filter(os.path.exists, inis), "")
    keeps = bool(there) and "force" not in arguments.values
    if keeps and not arguments.kinds:
        raise UsageError(
            f"{_shown(there)} already exists; --force replaces it, and --systemd, --nginx "
            "and others write files that go with it"
        )
    plan = _configured(folder, there, arguments) if keeps else _found(folder, arguments)
    quoting.check(plan, arguments.kinds)
    files = {} if keeps else {plan.ini: ini_file.text(plan)}
    for kind in arguments.kinds:
        files |= _files(kind, plan)
    _write(folder, files, "force" in arguments.values, write)
    if keeps:
        print(f"{_shown(there)} already exists and stays; target and mode come from it")
        if plan.missing:
            print(f"add to it, for the web server in front: {', '.join(plan.missing)}")
    _report(plan, folder, arguments, [*files])
    return 0


def _found(folder: str, arguments: Arguments) -> Plan:
    """Return the plan of an application that a search finds, or that an option names."""
    settings = Settings(chdir=folder)
    before = dict(os.environ)
    target = arguments.values.get("target", "")
    if target:
        settings.set("target", [("--target", target)])
    finder = plugin_hooks.finder()
    try:
        if finder is not None:
            finder.find(settings)
    except UsageError as error:
        raise UsageError(str(error).replace("poorhttp dev ", "poorhttp init --target ")) from None
    project = DeployedProject(folder)
    plan = Plan(
        folder,
        arguments.values.get("name") or _name(folder),
        settings.target,
        mode.choose(project, settings.target),
        project,
    )
    plan.found = "What is served." if target else "What is served: found in this folder."
    for name in ("pythonpath", "mount", "static"):
        if settings.is_set(name):
            plan.options[name] = settings.written(name)
    plan.environment = {name: text for name, text in os.environ.items() if before.get(name) != text}
    _set_options(plan, arguments)
    return plan


def _configured(folder: str, path: str, arguments: Arguments) -> Plan:
    """Return the plan of the poorhttp.ini that is there."""
    services = loader.load({}, {}, path)
    settings = services[0]
    if len(services) > 1:
        raise ConfigError(f"{path} has several services; poorhttp init is for one")
    if not settings.serves:
        raise ConfigError(f"{path} names nothing to serve; --force replaces it")
    for name in ("target", "bind"):
        if name in arguments.values:
            raise UsageError(
                f"--{name}: {INI} already exists and sets it; --force replaces the file"
            )
    plan = Plan(
        folder,
        arguments.values.get("name") or _name(folder),
        settings.target,
        mode.configured(settings, INI),
        DeployedProject(folder),
    )
    for name in ("pythonpath", "mount", "static"):
        if settings.is_set(name):
            plan.options[name] = settings.written(name)
    for address in settings.bind:
        if address.kind == "tcp" and address.protocol == "http":
            plan.host, plan.port = address.host, address.port
            break
        if address.kind == "unix" and address.protocol == "http" and address.path[:1] == "/":
            plan.socket = address.path
            break
    else:
        if set(arguments.kinds) & {"systemd", *PROXIES}:
            raise ConfigError(
                f"{settings.origin('bind')}: write HOST:PORT or unix:/PATH, which the other files "
                "can name"
            )
    _set_options(plan, arguments)
    plan.missing = [
        ini_file.setting(name, values)
        for name, values in ini_file.proxy_options(plan).items()
        if plan.proxied and not settings.is_set(name)
    ]
    return plan


def _set_options(plan: Plan, arguments: Arguments) -> None:
    plan.domain = arguments.values.get("domain", "")
    plan.user = arguments.values.get("user", "")
    plan.proxied = bool(set(arguments.kinds) & set(PROXIES))
    plan.group = next((GROUPS[kind] for kind in arguments.kinds if kind in GROUPS), plan.group)
    if arguments.values.get("bind", "").startswith("unix:"):
        plan.socket = os.path.normpath(arguments.values["bind"].removeprefix("unix:"))
    elif "bind" in arguments.values:
        host, _, port = arguments.values["bind"].rpartition(":")
        plan.host, plan.port = host.strip("[]"), int(port)
    if plan.host == "localhost":
        # Units of systemd take numbers only.
        plan.host = "127.0.0.1"


def _name(folder: str) -> str:
    """Return a name for a service from that of a folder."""
    name = re.sub(r"[^a-z0-9]+", "-", os.path.basename(folder).lower())[:40].strip("-")
    return name if name[:1].isalpha() else f"app-{name}".strip("-")[:40]


def _files(kind: str, plan: Plan) -> dict[str, str]:
    if kind == "systemd":
        return systemd.files(plan)
    if kind == "docker":
        return containers.container(plan)
    if kind == "kubernetes":
        return containers.kubernetes(plan)
    return dict([PROXIES[kind](plan)])


def _write(folder: str, files: dict[str, str], force: bool, write: Write) -> None:
    """Write all files, or none if one is there."""
    paths = {os.path.join(folder, name): text for name, text in files.items()}
    there = [] if force else [path for path in paths if os.path.lexists(path)]
    if there:
        names = ", ".join(map(_shown, there))
        raise UsageError(f"nothing is written: {names} already exists; --force overwrites it")
    for path, text in paths.items():
        try:
            write(path, text.encode(), force)
        except OSError as error:
            raise Failure(f"{_shown(path)}: {error.strerror}") from None


def _report(plan: Plan, folder: str, arguments: Arguments, files: Sequence[str]) -> None:
    """Say what was written, and the next commands."""
    for name in files:
        print(f"wrote {_shown(os.path.join(folder, name))}")
    mode_text = ", ".join(f"{name} {text}" for name, text in plan.mode.values.items())
    print(f"{mode_text}: {' '.join(plan.mode.reasons)}")
    if "systemd" in arguments.kinds:
        for warning in systemd.warnings(plan):
            print(f"warning: {warning}")
    where = os.path.relpath(folder)
    change = "" if where == "." else f"cd {shlex.quote(where)} && "
    # Of a Django project whose application is the one of its settings.
    if plan.target.startswith("poorhttp."):
        change += "".join(f"{name}={shlex.quote(text)} " for name, text in plan.environment.items())
    # systemd makes the folder of the socket.
    there = not plan.socket or os.path.isdir(os.path.dirname(plan.socket))
    print(
        f"next: {change}poorhttp serve -c {plan.ini}" + ("" if there else " --bind 127.0.0.1:8080")
    )
    if arguments.kinds:
        print(f"      the first lines of each file in {plan.deploy}/ say how to install it")


def _shown(path: str) -> str:
    return os.path.relpath(path)
