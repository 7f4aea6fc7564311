"""The container file and manifests of Kubernetes, from `conf/container` and `conf/kubernetes`."""

from __future__ import annotations

import re
import sys

from poorhttp.plugins.setup.deployment.ini_file import set_options
from poorhttp.plugins.setup.deployment.plan import IN_CONTAINER, Plan
from poorhttp.plugins.setup.deployment.quoting import of_containerfile, of_shell
from poorhttp.plugins.setup.deployment.templates import Template, folder

#: What the image does not need of a project.
IGNORED = (
    *(".git", ".venv", "venv", ".env", "node_modules", "build", "dist"),
    *("**/__pycache__", "**/*.pyc", "**/.pytest_cache", "**/.mypy_cache"),
)

#: Of Kubernetes: files for programs other than kubectl.
OTHER_FILES = ("prometheus-adapter.yaml",)


def container(plan: Plan) -> dict[str, str]:
    """Return the texts of the container file and of its configuration, by their paths."""
    file = Template("conf/container/Containerfile")
    image = plan.name
    file.replace_between(
        "#",
        "ARG PYTHON=",
        f"# An image of {image}. In the folder of the application:\n#\n"
        f"#     podman build -f {plan.deploy}/Containerfile -t {image} .\n"
        "#     podman run --read-only --tmpfs /tmp --cap-drop all --security-opt no-new-privileges "
        f"-p 127.0.0.1:8080:8080 {image}\n#\n"
        "# docker takes the same arguments. Containerfile.dockerignore says which files it does "
        "not need.\n\n",
    )
    version = f"{sys.version_info[0]}.{sys.version_info[1]}"
    file.replace("python:3.13-slim", f"python:{version}-slim")
    file.replace_between("FROM $PYTHON AS build", "FROM $PYTHON\n", "")
    file.replace_between("RUN --mount", "COPY conf/", _install(plan))
    file.replace("COPY conf/container/poorhttp.ini", f"COPY {plan.deploy}/container.ini")
    after = f"RUN pip install --no-cache-dir {IN_CONTAINER}\n" if _is_package(plan) else ""
    file.replace(f"COPY apps/lightheavy {IN_CONTAINER}\n", f"COPY . {IN_CONTAINER}\n{after}")
    if plan.environment:
        words = " ".join(
            f"{name}={of_containerfile(text)}" for name, text in plan.environment.items()
        )
        file.replace("\nEXPOSE ", f"\nENV {words}\nEXPOSE ")
    settings = Template("conf/container/poorhttp.ini")
    set_options(settings, plan.served)
    return {
        f"{plan.deploy}/Containerfile": file.text,
        f"{plan.deploy}/Containerfile.dockerignore": "\n".join(IGNORED) + "\n",
        f"{plan.deploy}/container.ini": settings.text,
    }


def kubernetes(plan: Plan) -> dict[str, str]:
    """Return the texts of the manifests by their paths."""
    files = {}
    for path in sorted(folder("conf/kubernetes").iterdir()):
        if path.name in OTHER_FILES:
            continue
        file = Template(f"conf/kubernetes/{path.name}")
        if path.suffix == ".ini":
            set_options(file, plan.served)
        else:
            file.text = _renamed(file.text, plan.name)
        if path.name == "kustomization.yaml":
            file.replace(
                "kubectl apply -k conf/kubernetes", f"kubectl apply -k {plan.deploy}/kubernetes"
            )
            file.replace("conf/container/Containerfile", f"{plan.deploy}/Containerfile")
        files[f"{plan.deploy}/kubernetes/{path.name}"] = file.text
    return files


def _install(plan: Plan) -> str:
    """Return the instructions that install the server, and the packages of the project."""
    extra = {"gevent": "[gevent]"}.get(plan.mode.values["mode"], "")
    if plan.target.startswith("pages:"):
        extra = "[pages]"
    lines = [f"RUN pip install --no-cache-dir 'poorhttpd{extra}'"]
    if plan.project.requirements() == "requirements.txt":
        lines += [
            "COPY requirements.txt /tmp/requirements.txt",
            "RUN pip install --no-cache-dir -r /tmp/requirements.txt",
        ]
    elif not plan.project.requirements() and (packages := plan.project.packages()):
        lines += [
            "# What the project imports: it has neither requirements.txt nor pyproject.toml.",
            f"RUN pip install --no-cache-dir {of_shell(packages)}",
        ]
    return "\n".join(lines) + "\n"


def _is_package(plan: Plan) -> bool:
    return plan.project.requirements() not in ("", "requirements.txt")


def _renamed(text: str, name: str) -> str:
    """Return a manifest whose resources have another name.

    Names of files, of the metric and of folders in the image stay.
    """
    lines = []
    for line in text.splitlines():
        key, colon, value = line.partition(": ")
        if colon and not key.lstrip().startswith("#"):
            value = re.sub(r"^(localhost/)?poorhttp(-admin)?$", rf"\1{name}\2", value)
        elif key.lstrip().startswith("#"):
            value = value.replace("secret generic poorhttp-admin", f"secret generic {name}-admin")
            key = key.replace("secret generic poorhttp-admin", f"secret generic {name}-admin")
        lines.append(f"{key}{colon}{value}")
    return "\n".join(lines) + "\n"
