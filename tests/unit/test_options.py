"""The option table, the settings made from it, and its reference page."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from poorhttp.config import address
from poorhttp.config.help import option_help
from poorhttp.config.options.server import MODES
from poorhttp.config.resources import usable_cpus
from poorhttp.config.settings import OPTIONS, Settings
from poorhttp.errors import ConfigError
from poorhttp.plugins.setup.options_page import page
from poorhttp.worker import mode as modes
from tests.support.plug_in import install, known
from tests.testkit.server import ROOT, run


def test_which_options_a_host_may_set() -> None:
    names = (
        "target mount static stream_request_body cgi_timeout cgi_time_limit cgi_environment "
        "cgi_pass_authorization pages_reload pages_modules session_key session_lifetime"
    )
    hosted = {*names.split()}
    hosted |= {option for option in OPTIONS if option.startswith("static_")} - {"static_cache"}
    assert {name for name, option in OPTIONS.items() if option.hosted} == hosted


def test_which_options_are_secret() -> None:
    """Neither the status page nor a title of a process shows them."""
    assert {name for name, option in OPTIONS.items() if option.secret} == {"cgi_environment", "env"}


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
    changed = "pythonpath bind threads graceful_timeout max_body access_log"
    assert settings.changed() == changed.split()
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


def test_every_option_is_explained() -> None:
    reference, shown = page(), option_help()
    for name, option in OPTIONS.items():
        assert option.summary.endswith("."), name
        assert option.metavar.isupper(), name
        assert f"\n### {name}\n" in reference
        assert f" {option.flag or option.metavar}" in shown


def test_the_reference_page_is_current() -> None:
    made = run(sys.executable, "-m", "poorhttp.plugins.setup.options_page")
    assert made.stderr == ""
    assert (ROOT / "docs/reference/options.md").read_text() == made.stdout, (
        "run: python -m poorhttp.plugins.setup.options_page > docs/reference/options.md"
    )
