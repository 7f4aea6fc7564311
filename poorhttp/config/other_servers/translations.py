"""Translates values of other servers' options: worker classes to modes, log formats and more.

An option declares its `aliases`. `TRANSLATIONS` has those whose values read differently; `settle`
does what depends on several options of a command line. Imported only where an alias is used.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from poorhttp.config.registry import ASGI_MODE
from poorhttp.config.settings import OPTIONS

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re

    #: Texts by the name of their option.
    Texts = dict[str, list[str]]

#: gunicorn's names of workers that run one request in each process.
SYNC = ("sync", "gunicorn.workers.sync.SyncWorker")

#: Workers of gunicorn, and the mode for each; for `SYNC` see `settle`.
WORKER_CLASSES = {
    **dict.fromkeys(SYNC, "forking"),
    "gthread": "threading",
    "gunicorn.workers.gthread.ThreadWorker": "threading",
    "gevent": "gevent",
    "gevent_wsgi": "gevent",
    "gevent_pywsgi": "gevent",
    "gunicorn.workers.ggevent.GeventWorker": "gevent",
    "geventwebsocket.gunicorn.workers.GeventWebSocketWorker": "gevent",
}

#: What to do about eventlet, with a gap for what to write.
EVENTLET = (
    "not supported: its authors advise against eventlet; write {}, and replace what the "
    "application imports from eventlet"
)

#: Directives of gunicorn's `access_log_format`, and ours.
ATOMS = {
    **{name: f"%{name}" for name in "hlutrmUHsBTD"},
    "b": "%B",
    "q": "%{QUERY_STRING}e",
    "f": "%{Referer}i",
    "a": "%{User-Agent}i",
    "M": "%{ms}T",
    "p": "<%P>",
}

#: Networks that `*` means where others trust every proxy: here whoever is trusted also names the
#: client's address.
PRIVATE = "127.0.0.0/8 ::1 10.0.0.0/8 172.16.0.0/12 192.168.0.0/16 fc00::/7 unix"

#: The headers that gunicorn and uvicorn, or applications behind them, read of trusted proxies.
USUAL_HEADERS = "x-forwarded-for x-forwarded-proto"

#: The largest value of `max_request_line` and `max_header_size`.
LARGEST = "65000"


def worker_class(text: str) -> str:
    """Translate a worker of gunicorn to a mode; that of a plug-in is kept."""
    if text in WORKER_CLASSES:
        return WORKER_CLASSES[text]
    kind = text.lower()
    if "eventlet" in kind:
        raise ValueError(f'"{text}" is {EVENTLET.format("gevent")} (docs/reference/command.md)')
    if "trio" in kind or "tornado" in kind:
        raise ValueError(f'"{text}" is not supported; write asyncio, or threading for WSGI')
    if any(word in kind for word in ("uvicorn", "asgi", "asyncio", "uvloop")):
        return ASGI_MODE
    return text


def address(text: str) -> str:
    """Translate an address of gunicorn, waitress, hypercorn or puma to one of `bind`."""
    text = text.removeprefix("tcp://")
    if text.startswith("unix://"):
        return "unix:" + text.removeprefix("unix://")
    if text.startswith("*:"):
        return "0.0.0.0" + text[1:]
    return text


def listen(text: str) -> str:
    """Translate `--listen`: an address for waitress, the backlog for uWSGI."""
    if text.isdigit():
        raise ValueError(f"a number is uWSGI's length of the queue; write --backlog {text}")
    return address(text)


def http(text: str) -> str:
    """Translate `--http`: an address for uWSGI, a version or parser for uvicorn and granian."""
    if ":" not in text and "/" not in text:
        raise ValueError(
            f'"{text}" is not an address; a version or a parser of HTTP is not chosen here: leave '
            "it out. HTTP/1.1 is spoken, and HTTP/2 by the clients that --http2 names"
        )
    return socket_address(text)


def socket_address(text: str) -> str:
    """Translate an address of uWSGI, of which a path is a Unix socket, to one of `bind`."""
    return f"unix:{text}" if ":" not in text else address(text)


def uwsgi_socket(text: str) -> str:
    """Translate `--socket` of uWSGI, which speaks the uwsgi protocol."""
    found = socket_address(text)
    return f"uwsgi+{found}" if found.startswith("unix:") else f"uwsgi://{found}"


def pidfile(text: str) -> str:
    """Translate `-p`, a pidfile for gunicorn; a number would be a port for others."""
    if text.isdigit():
        raise ValueError(f"is the pidfile, as for gunicorn; write --port {text}, or -p FILE")
    return text


def timeout(text: str) -> str:
    """Translate `-t`, a time for gunicorn and uWSGI; threads for puma."""
    if ":" in text:
        most = text.rpartition(":")[2]
        raise ValueError(f"is a time in seconds, as for gunicorn; write --threads {most}")
    return text


def unlimited(text: str) -> str:
    """Translate a limit of gunicorn of which 0 is none."""
    return LARGEST if text == "0" else text


def proxies(text: str) -> str:
    """Translate addresses of proxies, of which `*` is each of them."""
    return " ".join(PRIVATE if word == "*" else word for word in text.replace(",", " ").split())


def log_format(text: str) -> str:
    """Translate gunicorn's format of the access log: `%(h)s` is `%h`; another one is kept."""
    import re  # takes memory

    # `%q` has the question mark.
    return re.sub(r"%\(([^)]*)\)[-+ #0-9.]*[a-zA-Z]", _directive, text.replace("?%(q)s", "%q"))


def _directive(found: re.Match[str]) -> str:
    name = found[1]
    if name in ATOMS:
        return ATOMS[name]
    field, kind = name[1:-2], name[-1:]
    if not field or name[0] + name[-2] != "{}" or kind not in "ioe":
        instead = "; write %(D)s, which is microseconds" if name == "L" else ""
        raise ValueError(f'"{found[0]}" has no equivalent{instead} (docs/reference/logs.md)')
    # gunicorn has the variables in lower case; those of a request are upper case, but `wsgi.…`.
    if kind == "e" and "." not in name:
        return f"%{{{field.upper()}}}e"
    return f"%{name}"


def syslog(text: str) -> str:
    """Translate the address of a syslog daemon."""
    if text.startswith("unix:"):
        return "syslog:" + text.removeprefix("unix://").removeprefix("unix:").partition("#")[0]
    raise ValueError(
        f'"{text}": messages go to a Unix socket; write --error-log syslog, or syslog:/dev/log, '
        "and let the daemon forward them (docs/reference/logs.md)"
    )


#: By the name of an alias, or the letter of a short form; for those of plug-ins see `Option`.
TRANSLATIONS: dict[str, Callable[[str], str]] = {
    **dict.fromkeys(("k", "worker-class"), worker_class),
    **dict.fromkeys(("uds", "unix-socket"), lambda text: f"unix:{text}"),
    "fd": lambda text: f"fd:{text}",
    "listen": listen,
    "http": http,
    "http-socket": socket_address,
    "socket": uwsgi_socket,
    "p": pidfile,
    "t": timeout,
    # 0 closes connections at once elsewhere.
    **dict.fromkeys(
        OPTIONS["keepalive_timeout"].aliases, lambda text: "0.001" if text in ("0", "0.0") else text
    ),
    **dict.fromkeys(OPTIONS["max_request_line"].aliases, unlimited),
    **dict.fromkeys(OPTIONS["max_header_size"].aliases, unlimited),
    "http1-header-read-timeout": lambda ms: f"{int(ms) / 1000:g}" if ms.isdigit() else ms,
    **dict.fromkeys(OPTIONS["max_rss"].aliases, lambda mib: f"{mib}M" if mib.isdigit() else mib),
    **dict.fromkeys(OPTIONS["trusted_proxies"].aliases, proxies),
    **dict.fromkeys(OPTIONS["forwarded_headers"].aliases, str.lower),
    "access-logformat": log_format,
    "log-syslog-to": syslog,
}


def translate(name: str, text: str) -> str:
    """Return the text for an option that one of its aliases, or its short form, has.

    Args:
        name: the alias, or the letter.
        text: its value.

    Raises:
        ValueError: there is no equivalent; the message is to stand behind the name.
    """
    of_option = (each.translate for each in OPTIONS.values() if name in each.aliases)
    known = TRANSLATIONS.get(name) or next(of_option, None)
    return text if known is None else known(text)


def settle(values: Texts, flags: Texts, given: Mapping[str, str]) -> list[str]:
    """Complete options that depend on others of the same command line.

    Args:
        values: the texts of each option, changed here.
        flags: what was written for each of these, such as `-k`.
        given: the last value of each alias and short form, as it was written.

    Returns:
        Notes on what was left out.

    Raises:
        ValueError: two of them contradict each other, or the second is missing.
    """
    _host_and_port(values, flags, given)
    for name in [*values]:
        settled = OPTIONS[name].settle
        if settled is not None and _is_alias(name, flags):
            settled(values, flags)
    return [*_proxies(values, flags, given), *_timeout(values, flags, given)]


def _proxies(values: Texts, flags: Texts, given: Mapping[str, str]) -> list[str]:
    """Use no more headers of proxies than others do, unless some are named."""
    if "trusted_proxies" not in values or not _is_alias("trusted_proxies", flags):
        return []
    flag = flags["trusted_proxies"][-1]
    if "forwarded_headers" not in values:
        values["forwarded_headers"], flags["forwarded_headers"] = [USUAL_HEADERS], [flag]
    if "*" not in given[flag.lstrip("-")]:
        return []
    return [
        f"{flag} *: trusts private networks and Unix sockets; whoever is trusted names the "
        "client's address here, so name other proxies (docs/guides/trusted-proxies.md)"
    ]


def _host_and_port(values: Texts, flags: Texts, given: Mapping[str, str]) -> None:
    """Make one address of `--host` and `--port`."""
    if "host" not in given and "port" not in given:
        return
    flag = "--port" if "port" in given else "--host"
    if "bind" in values:
        raise ValueError(
            f"{flag} and {flags['bind'][0]} both say where to listen; write --bind HOST:PORT"
        )
    host, port = given.get("host", "127.0.0.1"), given.get("port", "8080")
    host = "0.0.0.0" if host in ("", "*") else host
    host = f"[{host}]" if ":" in host and not host.startswith("[") else host
    values["bind"], flags["bind"] = [f"{host}:{port}"], [flag]


def _timeout(values: Texts, flags: Texts, given: Mapping[str, str]) -> list[str]:
    """Apply gunicorn's `timeout` as it would, which depends on its worker.

    With `sync` a worker is silent while it runs a request, and is ended with it. Others are silent
    only if the whole process hangs.
    """
    has_threads = values.get("threads", ["1"])[-1] not in ("0", "1")
    is_class = "mode" in values and flags["mode"][-1] in ("-k", "--worker-class")
    if is_class and given[flags["mode"][-1].lstrip("-")] in SYNC and has_threads:
        values["mode"] = ["threading"]
    concurrent = values["mode"][-1] not in ("single", "forking") if is_class else has_threads
    if flags.get("request_timeout", [""])[-1] not in ("-t", "--timeout"):
        return []
    if "mode" in values and not is_class:
        concurrent = False
    (text,), (flag,) = values["request_timeout"], flags["request_timeout"]
    if not concurrent or text == "0":
        return []
    del values["request_timeout"], flags["request_timeout"]
    return [
        f"{flag} {text} is left out: with threads or gevent, gunicorn ends a worker in which "
        f"nothing runs, but no slow request; --request-timeout {text} ends requests that take "
        "longer (docs/reference/command.md)"
    ]


def _is_alias(name: str, flags: Mapping[str, list[str]]) -> bool:
    """Tell whether an option was given by another name than its own."""
    return flags[name][-1] != OPTIONS[name].flag
