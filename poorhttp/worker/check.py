"""The command `poorhttp check`: loads everything as `serve` does, without serving."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence

from poorhttp._core import fork_for_server
from poorhttp.config import loader
from poorhttp.config.address import Address, url
from poorhttp.config.help import entry
from poorhttp.config.resources import usable_cpus
from poorhttp.config.settings import OPTIONS, Settings
from poorhttp.config.version import VERSION
from poorhttp.net import sockets, transport
from poorhttp.net.running_servers import is_server, server_on
from poorhttp.process.pidfile import PidFile
from poorhttp.process.privileges import Privileges
from poorhttp.process.signals import signal
from poorhttp.targets.routes import Routes
from poorhttp.worker import mode, plugin_hooks, standalone, temp_dir
from poorhttp.worker.hooks import functions


def check(services: Sequence[Settings]) -> int:
    """Check all services, print what would run, and return the exit code.

    It may run while a server with the same configuration runs, and does not disturb it.

    Raises:
        poorhttp.errors.Failure: the server could not start.
    """
    lines: list[str] = []

    def is_ours(address: Address) -> bool:
        pid = server_on(address)
        if pid:
            lines.append(f"{address} was not opened: a server of poorhttp listens there, {pid}\n")
        return bool(pid)

    loader.change_folder(services[0])
    if not services[0].supervisor:
        standalone.check(services)
    # Open until the others are: none of them can be the same.
    of_plugins = [
        listener
        for each in plugin_hooks.used(services[0])
        for listener in each.try_open(services, is_ours)
    ]
    for settings in services:
        hooks = plugin_hooks.used(settings)
        for each in hooks:
            each.check(settings)
        if settings.pidfile:
            PidFile(settings.pidfile, settings.origin("pidfile")).check(is_server)
        routes = Routes(settings)
        approve = plugin_hooks.approver(hooks)
        opened = sockets.open_listeners(settings, is_ours=is_ours, approve=approve)
        for listener in [*opened, *of_plugins]:
            listener.close()
        carrier = transport.load(settings)
        code = run_as_user(settings, _load)
        if code:
            return code
        lines.append(f"poorhttp {VERSION} {summary(settings, routes)}")
        if carrier is not None:
            lines += [f"\n{carrier.title}:\n", *carrier.describe()]
            lines += [f"warning: {warning}\n" for warning in carrier.warnings()]
    print("".join(lines), end="")
    return 0


def run_as_user(settings: Settings, do: Callable[[Settings], object]) -> int:
    """Call a function as the workers' user, with their `sys.path`; return the exit code.

    For another user than the present one, in a child process: a process cannot change back.

    Raises:
        poorhttp.errors.Failure: raised by the function; in the child its caller reports it.
    """
    privileges = Privileges(settings)
    is_child = privileges.changes
    if is_child:
        sys.stdout.flush()
        # Who has started this may have ignored it, and then nobody could wait for a child.
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        pid = fork_for_server()
        if pid:
            code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
            return code if code >= 0 else 1
        privileges.drop()
    loader.set_variables(settings)
    loader.extend_path(settings)
    do(settings)
    if is_child:
        raise SystemExit(0)
    return 0


def _load(settings: Settings) -> None:
    temp_dir.check(settings)
    mode.prepare(mode.load(settings), settings)
    Routes(settings).load(plugin_hooks.target_wrapper(plugin_hooks.used(settings)))
    functions.check(settings)


def summary(settings: Settings, routes: Routes) -> str:
    """Return the output of `poorhttp check`: what would run, and options that are not default."""
    count = settings.worker_count
    workers = f"{count} worker{'' if count == 1 else 's'}"
    threads = f" of {settings.threads} threads" if settings.mode == "threading" else ""
    addresses = ", ".join(url(settings.target, address.url) for address in settings.bind)
    what = settings.target or "what is mounted"
    lines = [f"would serve {what} on {addresses} ({settings.mode}, {workers}{threads})\n"]
    if settings.mode == "forking" and not settings.workers:
        lines.append(f"CPUs that may be used (affinity, quota of the cgroup): {usable_cpus()}\n")
    if len(list(routes)) > 1 or not settings.target:
        lines.append("\nRoutes:\n")
        for route in routes:
            who = f"the files of {route.folder}" if route.folder else route.target
            lines.append(entry(f"{route.host}{route.prefix}/", f"{who}, from {route.origin}"))
    shown = ("target", "mount", "static")
    changed = [_setting(settings, name) for name in settings.changed() if name not in shown]
    if changed:
        lines += ["\nNot the default:\n", *changed]
    for host, hosted in settings.hosts.items():
        names = [name for name in OPTIONS if hosted.value(name) != settings.value(name)]
        other = [_setting(hosted, name) for name in names if name not in shown]
        if other:
            lines += [f"\nFor {host}:\n", *other]
    return "".join(lines)


def _setting(settings: Settings, name: str) -> str:
    begin = f"{name} = "
    lines = []
    for number, text in enumerate(settings.written(name)):
        lines.append(entry(begin + text, f"from {settings.origin(name, number)}"))
        begin = " " * len(begin)
    return "".join(lines)
