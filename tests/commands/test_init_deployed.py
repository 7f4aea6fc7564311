"""The files that `poorhttp init` writes, each with the program that it is for."""

from __future__ import annotations

import os
import re
import shlex
import signal
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from loadtests.network.hosts import Network
from poorhttp.config import loader
from proxy.programs import PROGRAMS
from tests.commands.projects import FILES, init, make
from tests.packages import need
from tests.support.container import FOLDER as CONTAINER
from tests.support.container import Container
from tests.support.http2_client import Client
from tests.support.network import hosts
from tests.support.proxies import WebServer, reserve
from tests.testkit.client import Connection
from tests.testkit.server import ROOT, Program, command, run, wait_for

KINDS = ("--systemd", "--nginx", "--caddy", "--lighttpd", "--haproxy", "--apache", "--kubernetes")

#: The process that a configuration of nginx is for; a site is read within `http`.
NGINX = """\
daemon off;
pid nginx.pid;
error_log stderr warn;
worker_processes 1;
events {}
http {
    access_log off;
    client_body_temp_path body;
    proxy_temp_path answers;
    fastcgi_temp_path fastcgi;
    scgi_temp_path scgi;
    uwsgi_temp_path uwsgi;
    include site.conf;
}
"""

#: The process that a site of Apache is for, without its modules.
APACHE = """\
ServerName localhost
PidFile apache2.pid
DefaultRuntimeDir .
ErrorLog /dev/stderr
"""


class Deployment:
    """A project with all files that `init` writes, and the server that they start, once for all.

    Attributes:
        server: the server that runs.
    """

    def __init__(self, kind: str, folder: Path, socket: str = "") -> None:
        self.kind = kind
        self.reserved = reserve()
        self.port = self.reserved.getsockname()[1]
        self.project = make(kind, folder)
        init(self.project, *KINDS, "--bind", socket or f"127.0.0.1:{self.port}")
        hidden = ".deploy" if kind == "static" else "deploy"
        self.folder = self.project / hidden
        self.ini = f"{hidden}/poorhttp.ini" if kind == "static" else "poorhttp.ini"
        self.unit = f"my-{kind}"
        self.server: Program | None = None

    def serving(self) -> Program:
        """The server, started by the file alone."""
        if self.server is None:
            words = command("serve", "-c", self.ini)
            self.server = Program(*words, cwd=self.project, merged=True)
            self.server.wait_line()
        return self.server

    def stop(self) -> None:
        """Stop the server if it runs."""
        if self.server is not None:
            server, self.server = self.server, None
            with server:
                server.process.terminate()
                assert server.wait() == 0, server.log()


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(kind, marks=[] if kind in ("flask", "static") else pytest.mark.full)
        for kind in FILES
    ],
)
def deployment(request: pytest.FixtureRequest, tmp_path_factory: Any) -> Iterator[Deployment]:
    folder = tmp_path_factory.mktemp("init")
    # The container's user reads the project.
    for path in (folder, *list(folder.parents)[:2]):
        path.chmod(0o755)
    deployment = Deployment(request.param, folder)
    with deployment.reserved:
        yield deployment
        deployment.stop()


#: Somebody who says to be others.
FORGED = ("X-Forwarded-For: 203.0.113.1", "Forwarded: for=203.0.113.2")


def answer(kind: str, port: int, *headers: str, query: str = "") -> None:
    """Ask for the page, and check that it is that of the application."""
    host = "shop.example.org"
    with Connection(("127.0.0.1", port)) as connection:
        connection.host = host
        response = connection.request("GET", f"/?{query}", *headers)
    expected = f"{kind} of 127.0.0.1 at {host}" if kind != "static" else "<p>static files\n"
    assert (response.status, response.body.decode()) == (200, expected)


# Web servers in front


#: The file of each web server, and what is other in a test, where `%s` is the port.
SITES = {
    "nginx": ("nginx.conf", {"listen 80;": "listen 127.0.0.1:%s;", "    listen [::]:80;\n": ""}),
    "caddy": (
        "Caddyfile",
        # Every Caddy of this machine would listen at the port of its administration.
        {"\n{\n": "\n{\n\tadmin off\n", "http://:80 {": "http://:%s {\n\tbind 127.0.0.1"},
    ),
    "lighttpd": (
        "lighttpd.conf",
        {"server.port = 80\n": 'server.port = %s\nserver.bind = "127.0.0.1"\n'},
    ),
    "haproxy": ("haproxy.cfg", {"bind :80\n": "bind 127.0.0.1:%s\n"}),
    "apache2": ("apache.conf", {"<VirtualHost *:80>": "<VirtualHost *:%s>"}),
}

#: What a comment says how to change for HTTP/2 to the server.
FOR_HTTP2 = {
    "caddy": {"# versions h2c": "versions h2c"},
    "haproxy": {" tcp-ut 10s": " proto h2 tcp-ut 10s"},
}


def site(deployment: Deployment, name: str, port: int, version: str) -> str:
    """The file of a web server for a test; with what stands around it, but for nginx."""
    file, changes = SITES[name]
    text = (deployment.folder / file).read_text()
    if version == "2.0":
        assert text.count("# HTTP/2 to the server") == 1
        changes = changes | FOR_HTTP2[name]
    for before, after in changes.items():
        assert text.count(before) == 1
        text = text.replace(before, after.replace("%s", str(port)))
    if name == "haproxy" and os.geteuid():
        return text.replace("    user haproxy\n    group haproxy\n", "")
    if name == "apache2":
        return f"{APACHE}Listen 127.0.0.1:{port}\n{modules(text)}{text}"
    return text


def modules(site: str) -> str:
    """The lines that load what a site of Apache needs."""
    enabled = re.search(r"a2enmod (.*)", site)
    assert enabled
    names = dict.fromkeys(["mpm_event", "authz_core", "alias"])
    for name in enabled[1].split():
        load = Path(f"/etc/apache2/mods-available/{name}.load").read_text()
        found = re.search(r"# Depends: (.*)", load)
        names.update(dict.fromkeys([*(found[1].split() if found else ()), name]))
    folder = "/usr/lib/apache2/modules"
    return "".join(f"LoadModule {name}_module {folder}/mod_{name}.so\n" for name in names)


#: Each web server, with one application.
PAIRS = [
    pytest.param(kind, name, marks=[] if kind == "flask" else pytest.mark.full)
    for kind in FILES
    for name in SITES
]


def ask_through(deployment: Deployment, name: str, folder: Path, version: str = "1.1") -> str:
    """Ask for the page through a web server; returns the version of HTTP that came to the server.

    Args:
        deployment: the project and its server.
        name: the web server.
        folder: for its files.
        version: of HTTP to the server, as it is configured.
    """
    need(name)
    program = PROGRAMS[name]
    folder.chmod(0o755)
    reserved = reserve()
    port = reserved.getsockname()[1]
    file = folder / f"main{program.suffix}"
    file.write_text(site(deployment, name, port, version))
    if name == "nginx":
        file.rename(folder / "site.conf")
        file.write_text(NGINX)
    words = [program.path(), *program.words(folder, file.name)]
    if name == "haproxy":
        words = [words[0], "-db", "-f", "main.cfg"]
    started = WebServer(*words, reserved=[reserved], cwd=folder, env=program.environment(folder))
    behind = deployment.serving()
    with started as server:
        wait_for(server.is_listening, f"{name} listening")
        if name in ("haproxy", "apache2"):
            wait_for(lambda: status(port) == 200, "that the server is ready")
        query = f"{name}-{version}"
        answer(deployment.kind, port, *FORGED, query=query)
        behind.wait_log(f'"GET /?{query} HTTP/')
        return behind.log().rpartition(f'"GET /?{query} HTTP/')[2].partition('"')[0]


@pytest.mark.parametrize(("deployment", "name"), PAIRS, indirect=["deployment"])
def test_a_web_server_in_front(deployment: Deployment, name: str, tmp_path: Path) -> None:
    assert ask_through(deployment, name, tmp_path) == "1.1"


@pytest.mark.parametrize(
    ("deployment", "name"), [("flask", name) for name in FOR_HTTP2], indirect=["deployment"]
)
def test_http2_to_the_server(deployment: Deployment, name: str, tmp_path: Path) -> None:
    assert ask_through(deployment, name, tmp_path, "2.0") == "2.0"


@pytest.fixture(scope="module")
def at_a_socket(tmp_path_factory: Any) -> Iterator[Deployment]:
    # pytest closes its own folder to other users, such as the one that HAProxy becomes.
    with TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        kept = tmp_path_factory.mktemp("socket")
        deployment = Deployment("flask", kept, f"unix:{folder}/shop.sock")
        # The group of the web server is of the machine, and not of this test.
        ini = deployment.project / deployment.ini
        ini.write_text(ini.read_text().replace("socket_mode = 0660", "socket_mode = 0666"))
        with deployment.reserved:
            yield deployment
            deployment.stop()


@pytest.mark.parametrize(
    "name",
    [
        "apache2",
        *(pytest.param(name, marks=pytest.mark.full) for name in SITES if name != "apache2"),
    ],
)
def test_a_web_server_at_a_unix_socket(at_a_socket: Deployment, name: str, tmp_path: Path) -> None:
    ask_through(at_a_socket, name, tmp_path)
    # Its health checks would go to TCP port 80.
    assert name != "apache2" or "hcheck" not in (at_a_socket.folder / "apache.conf").read_text()


def status(port: int) -> int:
    """The status of the page; 0 while nothing listens: Apache opens its port twice."""
    with suppress(OSError), Connection(("127.0.0.1", port)) as connection:
        return connection.request("GET", "/").status
    return 0


# systemd


def unit(path: Path) -> dict[str, list[str]]:
    """The directives of a unit."""
    found: dict[str, list[str]] = {}
    for line in path.read_text().splitlines():
        name, equals, value = line.partition("=")
        if equals and name.isalpha():
            found.setdefault(name, []).append(value)
    return found


def test_units_are_right(deployment: Deployment, tmp_path: Path) -> None:
    need("systemd-analyze")
    names = [f"{deployment.unit}.service", f"{deployment.unit}.socket"]
    done = run("systemd-analyze", "verify", *(f"./{name}" for name in names), cwd=deployment.folder)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    text = (deployment.folder / names[0]).read_text()
    (tmp_path / names[1]).write_text((deployment.folder / names[1]).read_text())
    (tmp_path / names[0]).write_text(text.replace("ProtectClock=", "ProtectClocks="))
    done = run("systemd-analyze", "verify", f"./{names[0]}", cwd=tmp_path)
    assert "'ProtectClocks' in section [Service]" in done.stderr


def test_activated_by_the_program_of_systemd(deployment: Deployment) -> None:
    """With the command, the folder and the variables of the unit, at the socket of the other."""
    need("systemd-socket-activate")
    deployment.stop()
    service = unit(deployment.folder / f"{deployment.unit}.service")
    socket = unit(deployment.folder / f"{deployment.unit}.socket")
    variables = [word for text in service.get("Environment", []) for word in shlex.split(text)]
    words = [
        "systemd-socket-activate",
        f"--listen={socket['ListenStream'][0]}",
        f"--fdname={socket['FileDescriptorName'][0]}",
        *(f"--setenv={name}" for name in ("PYTHONPATH", "PATH", *variables)),
        *shlex.split(service["ExecStart"][0]),
    ]
    with Program(*words, cwd=Path(service["WorkingDirectory"][0])) as program:
        wait_for(lambda: status(deployment.port) == 200, "the server")
        answer(deployment.kind, deployment.port)
        program.process.terminate()
        program.wait()


# Containers


def instructions(text: str) -> list[tuple[str, str]]:
    """The instructions of a container file."""
    text = re.sub(r"^#.*\n", "", text, flags=re.MULTILINE).replace("\\\n", " ")
    lines = [line for line in text.splitlines() if line.strip()]
    return [(line.split()[0], line.split(None, 1)[1]) for line in lines]


@pytest.fixture(scope="module")
def network() -> Iterator[Network]:
    if os.geteuid() != 0:
        pytest.skip("a container is made by root only")
    with hosts("client", "container") as network:
        yield network


def test_container_file(deployment: Deployment) -> None:
    """It is that of conf/, but for what is copied and installed."""
    found = instructions((deployment.folder / "Containerfile").read_text())
    shipped = instructions((CONTAINER / "Containerfile").read_text())
    for name in ("USER", "EXPOSE", "STOPSIGNAL", "HEALTHCHECK", "CMD", "WORKDIR"):
        last = [rest for word, rest in shipped if word == name][-1:]
        assert [rest for word, rest in found if word == name] == last
    assert [rest for word, rest in found if word == "FROM"] == ["$PYTHON"]
    for word, rest in found:
        if word == "COPY":
            assert (deployment.project / rest.split()[0]).exists(), rest
    installed = [rest for word, rest in found if word == "RUN"]
    assert "pip install --no-cache-dir 'poorhttpd'" in installed
    more = [words for words in installed if "poorhttpd" not in words]
    wanted = {"flask": [r"-r /tmp/requirements\.txt"], "django": [r"Django==[\d.]+"]}
    for words, pattern in zip(more, wanted.get(deployment.kind, []), strict=True):
        assert re.fullmatch(f"pip install --no-cache-dir {pattern}", words)


def test_in_a_container(deployment: Deployment, network: Network, tmp_path: Path) -> None:
    found = instructions((deployment.folder / "Containerfile").read_text())
    env = dict(pair.split("=", 1) for word, rest in found if word == "ENV" for pair in rest.split())
    # With HTTP/2 for everybody, as a comment says.
    text = (deployment.folder / "container.ini").read_text()
    config = tmp_path / "container.ini"
    config.write_text(text.replace("# http2 = on", "http2 = on"))
    host = network["container"]
    # Instead of the packages that an image would install.
    files = {path: path for path in sys.path if path.endswith("site-packages")}
    application = deployment.project
    with Container(host, config, env=env, files=files, application=application) as container:
        with container.connect(network["client"]) as connection:
            response = connection.request("GET", "/")
            assert response.status == 200
            assert f"{deployment.kind} " in response.body.decode()
        with Client(container.connect(network["client"]).socket) as client:
            assert client.get("/").status == 200
        assert container.stop(signal.SIGTERM) == 0


# Kubernetes


def test_manifests(deployment: Deployment) -> None:
    """Each is what the schemas allow, all have the name, and the pods' configuration loads."""
    import kubernetes_validate
    import yaml

    folder = deployment.folder / "kubernetes"
    assert sorted(os.listdir(folder)) == sorted(
        set(os.listdir(ROOT / "conf/kubernetes")) - {"prometheus-adapter.yaml"}
    )
    taken = yaml.safe_load((folder / "kustomization.yaml").read_text())
    for name in taken["resources"]:
        text = (folder / name).read_text()
        manifest = yaml.safe_load(text)
        kubernetes_validate.validate(manifest, "1.37", strict=True)
        assert manifest["metadata"]["name"] == deployment.unit
        # As a name it is nowhere left: only in those of files, folders and the metric.
        assert not re.search(r"^[^#\n]*: (localhost/)?poorhttp(-admin)?$", text, re.MULTILINE)
        # As a comment says, for HTTP/2.
        offered = text.replace("# appProtocol", "appProtocol")
        kubernetes_validate.validate(yaml.safe_load(offered), "1.37", strict=True)
        wrong = yaml.safe_load(text.replace("spec:", "specs:", 1))
        with pytest.raises(kubernetes_validate.ValidationError):
            kubernetes_validate.validate(wrong, "1.37", strict=True)
    pod = yaml.safe_load((folder / "deployment.yaml").read_text())["spec"]["template"]
    (container,) = pod["spec"]["containers"]
    assert [image["name"] for image in taken["images"]] == [container["image"]] == [deployment.unit]
    (generated,) = taken["configMapGenerator"]
    volumes = {volume["name"]: volume for volume in pod["spec"]["volumes"]}
    assert volumes["configuration"]["configMap"]["name"] == generated["name"] == deployment.unit
    assert volumes["admin"]["secret"]["secretName"] == f"{deployment.unit}-admin"
    assert f"generic {deployment.unit}-admin " in (folder / "deployment.yaml").read_text()
    (settings,) = loader.load({}, {}, str(folder / "poorhttp.ini"))
    (ours,) = loader.load({}, {}, str(deployment.project / deployment.ini))
    threads = 16 if deployment.kind == "flask" else ours.threads
    assert (settings.target, settings.mode) == (ours.target, ours.mode)
    assert settings.threads == ours.threads == threads
