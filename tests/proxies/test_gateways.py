"""nginx, Apache, lighttpd and others as gateways before ours by uwsgi, SCGI and FastCGI."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from proxy.programs import PROGRAMS
from tests.apps.behind_gateway import streamed
from tests.packages import need
from tests.support.proxies import HAPROXY, WebServer, nginx_text, reserve
from tests.testkit.client import BadResponse, Connection, Response, receive_until
from tests.testkit.server import Server, wait_for

APP = "tests/apps/behind_gateway.py"
PROTOCOLS = ("uwsgi", "scgi", "fastcgi")
#: Octets that no buffer on the way holds.
LARGE = 12_000_000
#: The client, who is not trusted.
CLIENT = "127.0.0.2"


@dataclass(frozen=True)
class Way:
    """From a web server to ours."""

    program: str
    protocol: str
    #: `tcp`, or `unix`.
    kind: str
    #: `kept`, if connections are.
    more: str = ""

    def __str__(self) -> str:
        return "-".join(filter(None, (self.program, self.protocol, self.kind, self.more)))


#: The first has both kinds of socket.
PROGRAMS_AND_KINDS = {"nginx": ("tcp", "unix"), "lighttpd": ("tcp",), "apache2": ("unix",)}
WAYS = [
    *(
        Way(program, protocol, kind)
        for program, kinds in PROGRAMS_AND_KINDS.items()
        for kind in kinds
        for protocol in PROTOCOLS
    ),
    Way("nginx", "fastcgi", "tcp", "kept"),
    Way("haproxy", "fastcgi", "unix"),
]
#: What stands before the application is the same in all modes.
each_way = pytest.mark.parametrize("way", WAYS, ids=str)


def nginx(folder: Path, places: list[tuple[Way, int, str]]) -> str:
    servers = []
    for way, port, address in places:
        name = way.protocol
        lines = [f"{name}_pass {address};", f"include /etc/nginx/{name}_params;"]
        if way.more == "kept":
            servers.append(f"upstream kept {{ server {address}; keepalive 4; }}")
            lines[0] = f"{name}_pass kept; {name}_keep_conn on;"
        place = f"location / {{ {' '.join(lines)} }}"
        servers.append(f"server {{ listen 127.0.0.1:{port}; {place} }}")
    return nginx_text(folder, servers)


def lighttpd(folder: Path, places: list[tuple[Way, int, str]]) -> str:
    parts = []
    for way, port, address in places:
        host, _, number = address.rpartition(":")
        module = "fastcgi" if way.protocol == "fastcgi" else "scgi"
        choice = "" if module == "fastcgi" else f'scgi.protocol = "{way.protocol}"'
        parts.append(f"""
            $SERVER["socket"] == "127.0.0.1:{port}" {{
                {choice}
                {module}.server = ( "/" => (( "host" => "{host}", "port" => {number},
                    "check-local" => "disable", "fix-root-scriptname" => "enable" )) )
            }}
        """)
    return f"""
        server.document-root = "/var/empty"
        server.bind = "{folder}/spare.sock"
        server.modules = ( "mod_scgi", "mod_fastcgi" )
        server.upload-dirs = ( "{folder}" )
        server.stream-response-body = 1
        server.max-keep-alive-idle = 1
        {"".join(parts)}
    """


def apache2(folder: Path, places: list[tuple[Way, int, str]]) -> str:
    modules = ("mpm_event", "authz_core", "proxy", "proxy_uwsgi", "proxy_scgi", "proxy_fcgi")
    lines = [f"LoadModule {name}_module /usr/lib/apache2/modules/mod_{name}.so" for name in modules]
    lines += [f"ServerName localhost\nPidFile {folder}/apache2.pid\nDefaultRuntimeDir {folder}"]
    lines += ["ErrorLog /dev/stderr\nLogLevel info\nKeepAliveTimeout 1"]
    for way, port, address in places:
        scheme = {"fastcgi": "fcgi"}.get(way.protocol, way.protocol)
        # The name of a host stands for the socket.
        lines += [
            f"Listen 127.0.0.1:{port}\n<VirtualHost 127.0.0.1:{port}>",
            f'ProxyPass "/" "{address}|{scheme}://{way}/" flushpackets=on\n</VirtualHost>',
        ]
    return "\n".join(lines)


def haproxy(folder: Path, places: list[tuple[Way, int, str]]) -> str:
    ((way, port, address),) = places
    # Read first; that of proxy/ is not what this is about.
    (folder / "common.cfg").write_text("global\n")
    return f"""
        {HAPROXY}
        fcgi-app ours
            docroot /
        listen {way}
            bind 127.0.0.1:{port}
            use-fcgi-app ours
            server only {address.replace(":", "@", 1)} proto fcgi
    """


CONFIGURATIONS = {"nginx": nginx, "lighttpd": lighttpd, "apache2": apache2, "haproxy": haproxy}


class Stage:
    """A server of ours, and the web servers in front of it, each started when it is asked for."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self._folder, self._stack = folder, stack
        self.file = folder / "site/large.bin"
        self.file.parent.mkdir()
        self.file.write_bytes(b"".join(streamed(LARGE)))
        # Short: the name of a Unix socket has some hundred octets.
        self._sockets = Path(stack.enter_context(TemporaryDirectory()))
        binds = ["127.0.0.1:0"]
        for protocol in PROTOCOLS:
            binds += [f"{protocol}://127.0.0.1:0", f"{protocol}+unix:{self._sockets / protocol}"]
        options = ["--trusted-proxies", "127.0.0.1, unix"]
        options += ["--static", f"/static={self.file.parent}", "--mount", f"/mounted={APP}"]
        server = Server(APP, "threading", *options, bind=tuple(binds), tracebacks=True)
        self._server = stack.enter_context(server)
        self.ports: dict[Way, int] = {}

    def _start(self, name: str) -> None:
        """Start a web server that listens for each of its ways."""
        need(name)
        folder = self._folder / name
        folder.mkdir()
        ways = [way for way in WAYS if way.program == name]
        reserved = [reserve() for _ in ways]
        places = []
        for way, each in zip(ways, reserved, strict=True):
            address = f"127.0.0.1:{self._server.port_of(way.protocol)}"
            if way.kind == "unix":
                address = f"unix:{self._sockets / way.protocol}"
            self.ports[way] = each.getsockname()[1]
            places.append((way, self.ports[way], address))
        program = PROGRAMS[name]
        text = CONFIGURATIONS[name](folder, places) + "\n"
        (folder / f"gateways{program.suffix}").write_text(text)
        words = program.command("gateways", folder)
        front = self._stack.enter_context(WebServer(*words, reserved=reserved, cwd=folder))
        wait_for(front.is_listening, f"{name} listening")

    def connect(self, way: Way) -> Connection:
        """A connection of a client with an address of its own."""
        if way not in self.ports:
            self._start(way.program)
        return Connection(("127.0.0.1", self.ports[way]), CLIENT)

    def get(self, way: Way, target: str) -> Response:
        """The answer to one GET on a connection of its own."""
        with self.connect(way) as connection:
            return connection.request("GET", target)


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    with ExitStack() as stack:
        yield Stage(tmp_path_factory.mktemp("stage"), stack)


@each_way
def test_environ(stage: Stage, way: Way) -> None:
    with stage.connect(way) as connection:
        port = connection.socket.getsockname()[1]
        headers = ("X-A: b", "Cookie: c=d", "Proxy: http://evil.example/", "X-Forwarded-For: ::1")
        target = "/echo/a%20b/%C3%A9?e=%20f&g"
        environ = connection.request("GET", target, *headers).json()["environ"]
        for number in range(10):
            other = connection.request("GET", f"/echo/{number}").json()["environ"]
            assert other["PATH_INFO"] == f"/echo/{number}"
        mounted = connection.request("GET", "/mounted/echo?a").json()["environ"]
        assert (mounted["SCRIPT_NAME"], mounted["PATH_INFO"]) == ("/mounted", "/echo")
    expected = {
        "REQUEST_METHOD": "GET",
        "SCRIPT_NAME": "",
        "PATH_INFO": "/echo/a b/\xc3\xa9",
        "QUERY_STRING": "e=%20f&g",
        "REMOTE_ADDR": CLIENT,
        "REMOTE_PORT": str(port),
        "REQUEST_URI": target,
        "SERVER_PORT": str(stage.ports[way]),
        "SERVER_PROTOCOL": "HTTP/1.1",
        "HTTP_HOST": "test",
        "HTTP_X_A": "b",
        "HTTP_COOKIE": "c=d",
        "HTTP_PROXY": None,
        "wsgi.url_scheme": "http",
    }
    assert {key: environ.get(key) for key in expected} == expected
    assert environ["SERVER_NAME"]
    assert environ["SERVER_SOFTWARE"].startswith("poorhttp")


@each_way
def test_answers(stage: Stage, way: Way) -> None:
    with stage.connect(way) as connection:
        response = connection.request("HEAD", "/answers/one")
        assert (response.status, response.body) == (200, b"")
        for path, status, body in (
            ("one", 200, b"hello"),
            ("several", 200, b"one two three"),
            ("generated", 200, b"one two three"),
            ("empty", 200, b""),
            ("no_content", 204, b""),
            ("not_modified", 304, b""),
        ):
            response = connection.request("GET", f"/answers/{path}")
            assert (response.status, response.body) == (status, body), path
            assert connection.request("GET", "/answers/one").body == b"hello", path
        cookies = connection.request("GET", "/answers/cookies")
        assert cookies.get_all("Set-Cookie") == ["a=1", "b=2"]


@each_way
def test_pieces_go_on_as_they_come(stage: Stage, way: Way, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    with stage.connect(way) as connection:
        connection.send_request("GET", f"/pieces?{gate}")
        receive_until(connection, b"first\n")
        gate.touch()
        receive_until(connection, b"second\n")


@pytest.mark.parametrize(
    "way", [way for way in WAYS if way.program == "nginx" and way.kind == "tcp"], ids=str
)
def test_a_slow_reader(stage: Stage, way: Way) -> None:
    """Others are answered while it does not read; then it gets everything."""
    file = stage.file
    for path in (f"/large?{LARGE}", f"/streamed?{LARGE}", "/static/large.bin", f"/file?{file}"):
        with stage.connect(way) as connection:
            connection.send_request("GET", path)
            assert not connection.at_end()
            for _ in range(3):
                assert stage.get(way, "/answers/one").body == b"hello"
            response = connection.response()
            assert response.status == 200
            assert response.body == file.read_bytes(), path


def is_noticed(way: Way, path: str) -> bool:
    """Whether a web server can see that an answer is not complete, and minds.

    In uwsgi and SCGI nothing but the end of the connection ends what has no length. Over TCP that
    is a reset, of which only nginx thinks what we do; a Unix socket knows none. FastCGI has a last
    record, of which lighttpd thinks nothing, and nginx only where connections are kept.
    """
    if path == "/cut":
        if way.program == "nginx":
            return way.kind == "tcp"
        return way.protocol == "fastcgi" and way.program != "lighttpd"
    # One forgets the length that was said, the other does not compare it.
    if (way.program, way.protocol, way.more) == ("nginx", "fastcgi", ""):
        return way.kind == "tcp"
    return (way.program, way.protocol, way.more) != ("apache2", "scgi", "")


@pytest.mark.parametrize(
    "way", [way for way in WAYS if is_noticed(way, "/cut") or is_noticed(way, "/short")], ids=str
)
def test_an_answer_that_is_not_whole(stage: Stage, way: Way) -> None:
    """It is cut short, or shorter than it said; then another is."""
    for path in ("/cut", "/short"):
        if is_noticed(way, path):
            with stage.connect(way) as connection:
                # Some end a kept connection no sooner than they end idle ones.
                connection.send_request("GET", path, "Connection: close")
                with pytest.raises(BadResponse):
                    connection.response()
            assert stage.get(way, "/answers/one").body == b"hello"
