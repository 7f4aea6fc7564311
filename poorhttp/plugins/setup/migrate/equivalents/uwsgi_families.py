"""Settings of uWSGI that have no equivalent, by the beginning of their names."""

from __future__ import annotations

from poorhttp.plugins.setup.migrate.equivalents.plan import Rule, explained

_OTHER = "There is nothing like it here: "
_PROXY = "The proxy in front does it."

#: The beginning of names of a kind, and what to say of all of them.
FAMILIES: tuple[tuple[tuple[str, ...], Rule], ...] = (
    (
        ("cheap", "idle"),
        explained(_OTHER + "the number of workers is fixed; TTIN and TTOU change it."),
    ),
    (
        ("emperor", "vassal", "zerg"),
        explained("Start a poorhttp for each application, by systemd.", "docs/guides/services.md"),
    ),
    (
        ("spool", "mule", "farm"),
        explained(_OTHER + "run tasks in a process of their own (Celery, RQ, a unit)."),
    ),
    (
        ("cron", "legion-cron", "unique-cron"),
        explained(_OTHER + "a timer of systemd, or cron, runs it."),
    ),
    (
        ("attach-daemon", "smart-attach", "legion", "exec-", "hook-", "call-"),
        explained(
            _OTHER + "a unit of its own runs it; hooks are functions of Python.",
            "docs/guides/hooks.md",
        ),
    ),
    (
        ("cache", "sharedarea", "queue", "snmp", "rpc", "lock"),
        explained(_OTHER + "use a service such as Redis."),
    ),
    (
        (
            "route",
            "error-route",
            "response-route",
            "final-route",
            "collect-header",
            "add-header",
            "response-header",
            "del-header",
        ),
        explained(
            "Rules for requests and headers belong to the proxy in front or to the application.",
            "docs/guides/proxies.md",
        ),
    ),
    (
        ("stats", "carbon", "statsd", "metric", "push-stats"),
        explained(
            "admin = ADDRESS reports metrics; there is statsd, too.", "docs/guides/monitoring.md"
        ),
    ),
    (
        ("touch-", "fs-"),
        explained(
            "A signal reloads: systemctl reload, poorhttp ctl reload, or HUP.",
            "docs/guides/reload.md",
        ),
    ),
    (
        ("subscri", "fastrouter", "rawrouter", "sslrouter", "corerouter", "http-"),
        explained("It is for uWSGI's router. " + _PROXY),
    ),
    (
        ("ssl-", "https-", "sni", "ssl"),
        explained("poorhttp has its own options for TLS.", "docs/guides/tls.md"),
    ),
    (("websocket",), explained("Applications may speak WebSocket.", "docs/guides/websockets.md")),
    (
        ("log-", "logger", "threaded-log", "alarm"),
        explained(
            "Logs have their own options; logrotate rotates files (USR1).", "docs/reference/logs.md"
        ),
    ),
    (
        ("static-", "mime", "file-serve", "fileserve"),
        explained(
            "Options that begin with static_ say how files are served.",
            "docs/guides/static-files.md",
        ),
    ),
    (
        ("php", "perl", "psgi", "rack", "ruby", "lua", "jvm", "mono", "go", "cgi"),
        explained("Only Python and CGI programs are served.", "docs/guides/cgi.md"),
    ),
    (("py-", "python-", "pymodule", "py"), explained("It is a detail of uWSGI's Python plug-in.")),
    (
        (
            "cgroup",
            "namespace",
            "ns",
            "chroot",
            "cap",
            "limit-as",
            "limit-nproc",
            "cpu-",
            "ksm",
            "nice",
            "rlimit",
            "max-fd",
            "never-swap",
            "oom",
        ),
        explained(
            "systemd or the container limits what the processes may use.",
            "docs/guides/deploy.md",
        ),
    ),
    (
        ("reload-", "evil-reload", "worker-", "mule-"),
        explained(
            "max_requests, max_rss and max_lifetime say when workers are replaced.",
            "docs/reference/options.md",
        ),
    ),
    (
        ("harakiri", "http-harakiri", "user-harakiri"),
        explained("request_timeout logs where the application was.", "docs/reference/options.md"),
    ),
    (
        ("if-", "for", "endif", "endfor"),
        explained("A condition, which was followed when this file was written."),
    ),
)
