"""The tables of `poorhttp migrate` and of its pages, and the servers that are installed."""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from pathlib import Path

import gunicorn.config
import pytest
import waitress.adjustments

from poorhttp.config.settings import OPTIONS
from poorhttp.plugins.setup.migrate import server_flags, sources
from poorhttp.plugins.setup.migrate.equivalents import gunicorn as of_gunicorn
from poorhttp.plugins.setup.migrate.equivalents import more_servers, uwsgi
from poorhttp.plugins.setup.migrate.equivalents.plan import Rule, Setting
from tests.testkit.client import HANG
from tests.testkit.server import ROOT

#: What our plan looks at before the rules.
WAITRESS_BEFORE = {
    "host",
    "port",
    "listen",
    "unix_socket",
    "trusted_proxy",
    "trusted_proxy_headers",
}


def test_settings_of_gunicorn() -> None:
    known = {setting.name for setting in gunicorn.config.KNOWN_SETTINGS}
    assert known - set(of_gunicorn.RULES) == set()


def test_flags_of_gunicorn() -> None:
    """Each with the setting that it has there, and with a value where it takes one."""
    ours = server_flags.flags(server_flags.GUNICORN)
    parser = gunicorn.config.Config().parser()
    for action in parser._actions:
        if isinstance(action, (argparse._HelpAction, argparse._VersionAction)):
            continue
        for name in action.option_strings:
            assert name in ours, f"{name} is missing"
            assert ours[name].setting == action.dest
            takes = action.nargs != 0 and not (action.nargs == "?" and action.const is not None)
            assert ours[name].takes_value is takes, name


def test_settings_of_waitress() -> None:
    known = {name for name, _ in waitress.adjustments.Adjustments._params}
    assert known - set(more_servers.WAITRESS) - WAITRESS_BEFORE == set()
    flags = server_flags.flags(server_flags.WAITRESS)
    settings = {flag.setting for flag in flags.values()}
    assert known - settings - {"sockets"} == set()


@pytest.mark.parametrize("name", ["uvicorn", "granian"])
def test_flags_of_others_have_rules(name: str) -> None:
    """Each flag of the table becomes something."""
    table = {"uvicorn": server_flags.UVICORN, "granian": server_flags.GRANIAN}[name]
    for flag, known in server_flags.flags(table).items():
        words = [name, flag, *(["1"] if known.takes_value else []), "app:app"]
        plan = sources.read(words, {})
        assert sum(plan.counts()[1:]) == plan.counts()[0]


def options_of_uwsgi() -> list[str]:
    """The long names of all options of the uWSGI that is installed."""
    program = Path(sys.executable).with_name("pyuwsgi")
    done = subprocess.run(
        [program, "--help"], capture_output=True, text=True, timeout=HANG, check=False
    )
    return sorted(set(re.findall(r"--([a-z0-9][\w-]*)", done.stdout)))


def test_options_of_uwsgi() -> None:
    """Each one alone becomes an option or an explanation, and our loader reads the result."""
    names = options_of_uwsgi()
    assert len(names) > 500
    for value in ("1", "/path", "true", ""):
        for name in names:
            setting = Setting(name, value, "uwsgi.ini:2", f"{name} = {value}")
            plan = uwsgi.plan_for([setting])
            read, carried, explained = plan.counts()
            assert read == carried + explained == 1, name
            if value == "1":
                assert "uwsgi.ini:2" in plan.text("a test"), name


def test_most_options_of_uwsgi_are_known() -> None:
    """Less than a third get the general answer."""
    unknown = []
    for name in options_of_uwsgi():
        plan = uwsgi.plan_for([Setting(name, "1", "uwsgi.ini:2", name)])
        if any("poorhttp has no option for it" in why for _, why in plan.explanations):
            unknown.append(name)
    assert len(unknown) < len(options_of_uwsgi()) / 3, unknown


def test_an_unknown_flag_is_explained() -> None:
    plan = sources.read(["gunicorn", "--no-such-flag", "app"], {})
    assert "no-such-flag" in plan.text("a test")


# The pages


#: Settings with an option, which few have: `poorhttp migrate` explains them.
LEFT_OUT = {"default_proc_name"}


def rows(page: str, title: str = "") -> list[list[str]]:
    """The rows of the tables behind a title of a page."""
    text = (ROOT / f"docs/guides/{page}.md").read_text(encoding="utf-8")
    if title:
        text = text.split(f"## {title}\n")[1].split("\n## ")[0]
    lines = [line for line in text.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]


def named(cell: str) -> list[str]:
    """The names in a cell."""
    return re.findall(r"`([a-z_-]+)`", cell)


@pytest.mark.parametrize(
    ("page", "title", "rules"),
    [
        ("from-gunicorn", "Setting by setting", of_gunicorn.RULES),
        ("from-uwsgi", "", uwsgi.RULES),
        ("from-waitress", "", more_servers.WAITRESS),
    ],
)
def test_a_setting_stands_beside_its_option(page: str, title: str, rules: dict[str, Rule]) -> None:
    seen = set()
    for settings, options, *_ in rows(page, title):
        for name in named(settings):
            seen.add(name)
            if name in rules and rules[name].option and "the same" not in options:
                assert rules[name].option in named(options), f"{page}.md: {name}"
    translated = {name for name, rule in rules.items() if rule.option}
    if page == "from-gunicorn":
        assert translated - LEFT_OUT <= seen
        known = {setting.name for setting in gunicorn.config.KNOWN_SETTINGS}
        assert seen <= known


def test_defaults_of_gunicorn_and_ours() -> None:
    theirs = {setting.name: setting.default for setting in gunicorn.config.KNOWN_SETTINGS}
    ours = {option.name: option for option in OPTIONS.values()}
    names = {
        "max_header_size": "limit_request_field_size",
        "max_request_line": "limit_request_line",
        "max_connections": "worker_connections",
        "keepalive_timeout": "keepalive",
        "request_timeout": "timeout",
    }
    found = rows("from-gunicorn", "Defaults that differ")[1:]
    for name, here, there in found:
        for option in named(name):
            assert option in ours, option
        (first, *_) = named(name)
        if number := re.match(r"\d+", here):
            assert OPTIONS[first].default in (int(number[0]), 1 << 30)
        if first in names:
            number = re.match(r"\d+", there)
            assert number
            assert theirs[names[first]] == int(number[0]), first
