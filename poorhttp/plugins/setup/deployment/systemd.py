"""The units of systemd, made from `conf/poorhttp.service` and `conf/poorhttp.socket`."""

from __future__ import annotations

import os

from poorhttp.plugins.setup.deployment.plan import Plan, server_command
from poorhttp.plugins.setup.deployment.quoting import of_systemd
from poorhttp.plugins.setup.deployment.templates import Template

#: Folders that `ProtectHome=yes` hides.
HOMES = ("/home", "/root", "/run/user")

#: Folders that `PrivateTmp=yes` hides.
TEMPORARY = ("/tmp", "/var/tmp")

#: Libraries that make machine code at run time.
COMPILERS = {"cffi", "llvmlite", "numba", "torch"}


def files(plan: Plan) -> dict[str, str]:
    """Return the texts of the units by their paths."""
    return {
        f"{plan.deploy}/{plan.name}.service": service(plan),
        f"{plan.deploy}/{plan.name}.socket": socket(plan),
    }


def service(plan: Plan) -> str:
    """Return the service unit."""
    unit = Template("conf/poorhttp.service")
    unit.replace_between(
        "#",
        "# `systemctl reload`",
        f"# {plan.name} as a service of systemd, with as few rights as a Python application "
        "usually needs.\n#\n"
        f"#     sudo cp {plan.deploy}/{plan.name}.service {plan.deploy}/{plan.name}.socket "
        "/etc/systemd/system/\n"
        f"#     sudo systemctl enable --now {plan.name}.socket {plan.name}.service\n#\n",
    )
    unit.replace("Description=Poor HTTP", f"Description={plan.name}, by Poor HTTP")
    unit.replace(
        "After=network.target\n",
        "After=network.target\n# The service listens on the sockets that this unit opens.\n"
        f"Requires={plan.name}.socket\n",
    )
    words = [*server_command(), "serve", "-c", os.path.join(plan.folder, plan.ini)]
    arguments = [of_systemd(word, expands=True) for word in words[1:]]
    command = " ".join([of_systemd(words[0]), *arguments, "--bind", "fd:http"])
    # It is read to the end of the line, without quotes.
    lines = [f"WorkingDirectory={plan.folder.replace('%', '%%')}"]
    lines += [
        f"Environment={of_systemd(f'{name}={text}')}" for name, text in plan.environment.items()
    ]
    unit.replace_between("ExecStart=", "ExecReload=", "\n".join([*lines, f"ExecStart={command}\n"]))
    for kind in ("Runtime", "State", "Logs"):
        unit.replace(f"{kind}Directory=poorhttp\n", f"{kind}Directory={plan.name}\n")
    for place in ("/run", "/var/lib", "/var/log"):
        unit.replace(f"{place}/poorhttp", f"{place}/{plan.name}")
    if _is_below(plan.socket or "/", f"/run/{plan.name}"):
        # systemd gives RuntimeDirectory with all in it to the service's user, and removes it at a
        # stop, but the socket belongs to the proxy's group and stays open.
        unit.replace(f"RuntimeDirectory={plan.name}\n", f"RuntimeDirectory={plan.name}/server\n")
        unit.replace(f": /run/{plan.name},", f": /run/{plan.name}/server,")
    if any(_is_below(path, home) for path in (plan.folder, words[0]) for home in HOMES):
        unit.replace("ProtectHome=yes", "ProtectHome=read-only")
    if plan.user:
        unit.replace_between(
            "# A user of its own",
            "NoNewPrivileges=",
            "# The user may write into the folder of the application, and has no way to become "
            f"another.\nUser={plan.user}\nReadWritePaths={of_systemd(plan.folder)}\n",
        )
        # The user of the machine, and not nobody, is whom files belong to.
        unit.replace("PrivateUsers=yes\n", "")
    if plan.project.importing(COMPILERS):
        unit.replace("MemoryDenyWriteExecute=yes", "MemoryDenyWriteExecute=no")
    return unit.text


def socket(plan: Plan) -> str:
    """Return the socket unit."""
    unit = Template("conf/poorhttp.socket")
    unit.replace_between(
        "#",
        "[Unit]",
        f"# The socket of {plan.name}.service. systemd opens it and keeps it open while the "
        "service restarts; clients wait.\n",
    )
    unit.replace("Description=Sockets of Poor HTTP", f"Description=Socket of {plan.name}")
    unit.replace("ListenStream=127.0.0.1:8080", f"ListenStream={plan.socket or plan.bind}")
    unit.replace("# For the world: ListenStream=80.\n", "")
    permissions = ""
    if plan.socket:
        permissions = (
            "# The web server in front connects as a member of this group.\n"
            f"SocketMode=0660\nSocketGroup={plan.group}\n"
        )
    unit.replace_between("# For a proxy on this machine", "FileDescriptorName=", permissions)
    return unit.text


def warnings(plan: Plan) -> list[str]:
    """Return sentences about folders of the project that the service does not see."""
    command = os.path.dirname(os.path.dirname(server_command()[0]))
    found = []
    for what, path in (("the project", plan.folder), ("its Python", command)):
        for folder in TEMPORARY:
            if _is_below(path, folder):
                found.append(
                    f"{what} is in {path}, and PrivateTmp=yes of the unit hides {folder} from the "
                    f"service: move it, for example to /srv/{plan.name}"
                )
        for folder in HOMES:
            if _is_below(path, folder):
                found.append(
                    f"{what} is in {path}: the unit has ProtectHome=read-only instead of yes for "
                    f"it, and the user of the service must be allowed to enter {folder}; "
                    f"/srv/{plan.name} needs neither"
                )
    return found


def _is_below(path: str, folder: str) -> bool:
    return os.path.commonpath([path, folder]) == folder
