"""The option table, the settings made from it, and its reference page."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from poorhttp.config import address
from poorhttp.config.cpus import usable_cpus
from poorhttp.config.help import WIDTH, option_help
from poorhttp.config.options.proxies import FORWARDED_HEADERS
from poorhttp.config.options.server import MODES
from poorhttp.config.settings import OPTIONS, Settings
from poorhttp.errors import ConfigError
from poorhttp.plugins.compression.options import Compression
from poorhttp.plugins.setup.options_page import page
from poorhttp.worker import mode as modes
from tests.support.plug_in import install, known
from tests.testkit.client import HANG

ROOT = Path(__file__).resolve().parents[2]


def test_defaults() -> None:
    settings = Settings()
    assert {name: settings.value(name) for name in OPTIONS} == {
        "target": "",
        "plugins": (),
        "django": False,
        "chdir": ".",
        "pythonpath": (),
        "env": (),
        "bind": (address.parse("127.0.0.1:8080"),),
        "backlog": 2048,
        "reuse_port": False,
        "socket_mode": None,
        "socket_owner": "",
        "tls_certificate": (),
        "tls_key": (),
        "tls_ocsp": (),
        "tls_client_ca": "",
        "tls_client_auth": "required",
        "tls_min_version": "1.2",
        "tls_session_timeout": 21600.0,
        "kernel_tls": False,
        "redirect_to_https": 0,
        "hsts": "",
        "mode": "threading",
        "workers": 0,
        "threads": 8,
        "upgraded_threads": 1000,
        "preload": False,
        "refork_after": (),
        "before_refork": (),
        "after_fork": (),
        "hook_server_ready": (),
        "hook_worker_start": (),
        "hook_worker_exit": (),
        "hook_worker_timeout": (),
        "hook_reload": (),
        "max_requests": 0,
        "max_requests_jitter": 0,
        "max_rss": 0,
        "max_lifetime": 0.0,
        "supervisor": True,
        "user": "",
        "group": "",
        "umask": None,
        "merge_memory": False,
        "proc_name": "poorhttp",
        "tracemalloc": 0,
        "pidfile": None,
        "header_timeout": 10.0,
        "body_timeout": 30.0,
        "write_timeout": 60.0,
        "keepalive_timeout": 75.0,
        "graceful_timeout": 30.0,
        "drain_timeout": 1.0,
        "request_timeout": 0.0,
        "queue_timeout": None,
        "abort_on_close": True,
        "min_rate": 500,
        "max_request_line": 8192,
        "max_headers": 100,
        "max_header_size": 16384,
        "max_request_header_size": 65535,
        "max_body": 1 << 30,
        "body_buffer_size": 1 << 20,
        "body_memory": 64 << 20,
        "temp_dir": "",
        "spool_limit": 1 << 30,
        "spool_total": 1 << 30,
        "max_connections": 0,
        "trusted_proxies": (),
        "forwarded_headers": FORWARDED_HEADERS,
        "proxy_protocol": (),
        "health": None,
        "admin": None,
        "admin_token_file": None,
        "drain_delay": 0.0,
        "access_log": None,
        "access_log_format": "combined",
        "access_log_sample": 1.0,
        "access_log_exclude": (),
        "request_id": False,
        "error_log": "-",
        "error_log_format": "text",
        "log_level": "info",
        "slow_request": 0.0,
        "log_config": None,
        "statsd": None,
        "statsd_prefix": "poorhttp",
        "statsd_tags": None,
        "otel": "off",
        "early_hints": True,
        "server_header": "poorhttp",
        "mount": (),
        "stream_request_body": (),
        "static": (),
        "static_fallthrough": False,
        "static_index": "index.html",
        "static_listing": False,
        "static_fallback": "",
        "static_not_found": "",
        "static_header": (),
        "static_immutable": (),
        "static_type": (),
        "static_charset": "utf-8",
        "static_precompressed": True,
        "static_hidden": False,
        "static_cache": 4 << 20,
        "compress": (),
        "compress_types": Compression.compress_types,
        "compress_min_size": 1 << 10,
        "compress_level": (("zstd", 3), ("br", 5), ("gzip", 5)),
        "x_sendfile": (),
        "x_accel_redirect": (),
        "cgi_timeout": 60.0,
        "cgi_time_limit": 0.0,
        "cgi_pass_authorization": False,
        "cgi_processes": 0,
        "cgi_environment": (("PATH", None),),
        "pages_reload": True,
        "pages_modules": None,
        "session_key": None,
        "session_lifetime": 86400.0,
        "autoreload": "off",
        "reload_include": (),
        "reload_exclude": (),
        "debug": "off",
        "live": False,
        "profile": False,
        "https": False,
        "open": False,
    }
    assert settings.changed() == []


@pytest.mark.parametrize("name", OPTIONS)
def test_which_options_a_host_may_set(name: str) -> None:
    hosted = {"target", "mount", "static", "cgi_timeout", "cgi_time_limit", "cgi_environment"}
    hosted |= {"cgi_pass_authorization"}
    hosted |= {
        "stream_request_body",
        "pages_reload",
        "pages_modules",
        "session_key",
        "session_lifetime",
    }
    hosted |= {option for option in OPTIONS if option.startswith("static_")} - {"static_cache"}
    assert OPTIONS[name].hosted == (name in hosted)


def test_values_of_a_program() -> None:
    settings = Settings(
        bind=["127.0.0.1:0", address.parse("fd:3")],
        pythonpath=Path("lib"),
        threads=4,
        graceful_timeout=0.5,
        max_body="16M",
        access_log=Path("access.log"),
    )
    assert [str(item) for item in settings.bind] == ["127.0.0.1:0", "fd:3"]
    assert settings.pythonpath == ("lib",)
    assert (settings.threads, settings.graceful_timeout, settings.max_body) == (4, 0.5, 16 << 20)
    assert settings.access_log == "access.log"
    assert settings.changed() == [
        "pythonpath",
        "bind",
        "threads",
        "graceful_timeout",
        "max_body",
        "access_log",
    ]
    assert Settings().threads == 8, "one object must not change another"


@pytest.mark.parametrize(
    ("overrides", "complaint"),
    [
        ({"thread": 4}, r'^unknown setting "thread"; did you mean "threads"\?'),
        ({"threads": 0}, "^threads: 0 is out of range; write a number from 1 to 4096$"),
        ({"threads": 1.5}, '^threads: "1.5" is not a whole number'),
        ({"threads": True}, '^threads: "on" is not a whole number'),
        ({"threads": [1, 2]}, r"^threads: \[1, 2\] is not a text"),
        ({"access_log": None}, "^access_log: None is not a text"),
        ({"bind": []}, "^bind: needs at least one value$"),
        ({"bind": ""}, '^bind: "" has no port'),
        ({"bind": ["fd:3", "8080"]}, '^bind: "8080" has no host'),
        ({"mode": "thread"}, r'^mode: unknown value "thread"; did you mean "threading"\?'),
        ({"mode": "zebra"}, "^mode: unknown value .*single, forking, threading, gevent"),
        ({"access_log_format": "jsn"}, r'; did you mean "json"\?'),
        ({"access_log_format": "%h\n"}, "control character"),
        ({"server_header": "x\r\nSet-Cookie: y"}, "control character"),
        ({"header_timeout": 0}, '^header_timeout: "0" is out of range'),
        ({"max_body": -1}, '^max_body: "-1" is out of range'),
    ],
)
def test_mistakes_of_a_program(overrides: dict[str, object], complaint: str) -> None:
    with pytest.raises(ConfigError, match=complaint):
        Settings(**overrides)


@pytest.mark.parametrize("text", ["common", "combined", "json", "%h %D"])
def test_log_formats(text: str) -> None:
    assert Settings(access_log_format=text).access_log_format == text


def test_the_server_header_may_be_empty() -> None:
    assert Settings(server_header="").server_header == ""


def test_mode_of_a_plug_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(
        tmp_path,
        "turbo",
        {"modes": "turbo = turbo:Mode"},
        {"turbo": "class Mode:\n    run = print\n"},
    )
    with known(tmp_path, monkeypatch):
        assert Settings(mode="turbo").mode == "turbo"
        assert modes.load(Settings(mode="turbo")) is sys.modules["turbo"].Mode
        with pytest.raises(ConfigError, match=r'did you mean "turbo"\?'):
            Settings(mode="turb")


def test_automatic_workers() -> None:
    usable = usable_cpus()
    for mode in MODES:
        expected = max(2, usable) if mode == "forking" else 1
        assert Settings(mode=mode).worker_count == expected, mode
    assert Settings(mode="forking", workers=1).worker_count == 1
    assert Settings(workers=3).worker_count == 3


def test_the_place_of_a_setting() -> None:
    assert Settings().origin("threads") == "threads"
    settings = Settings()
    settings.set("threads", [("x.ini:3: threads", "4")])
    assert settings.origin("threads") == "x.ini:3: threads"


@pytest.mark.parametrize("name", OPTIONS)
def test_every_option_is_explained(name: str) -> None:
    option = OPTIONS[name]
    assert option.summary.endswith(".")
    assert option.metavar.isupper()
    assert f"\n### {name}\n" in page()
    assert f" {option.flag or option.metavar}" in option_help()


def test_the_reference_page_is_current() -> None:
    made = subprocess.run(
        [sys.executable, "-m", "poorhttp.plugins.setup.options_page"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
        timeout=HANG,
    )
    assert made.stderr == ""
    assert (ROOT / "docs/reference/options.md").read_text() == made.stdout, (
        "run: python -m poorhttp.plugins.setup.options_page > docs/reference/options.md"
    )


def test_help_fits_the_width() -> None:
    assert max(len(line) for line in option_help().splitlines()) <= WIDTH
