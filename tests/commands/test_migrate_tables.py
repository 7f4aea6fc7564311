"""The tables of `poorhttp migrate` and of its pages, and the servers that are installed."""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

import gunicorn.config
import pytest
import waitress.adjustments

from poorhttp.plugins.setup.migrate import server_flags, sources
from poorhttp.plugins.setup.migrate.equivalents import gunicorn as of_gunicorn
from poorhttp.plugins.setup.migrate.equivalents import more_servers, uwsgi
from poorhttp.plugins.setup.migrate.equivalents.plan import Setting
from tests.testkit.server import run

#: What our plan looks at before the rules.
WAITRESS_BEFORE = {
    *("host", "port", "listen", "unix_socket", "trusted_proxy", "trusted_proxy_headers"),
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


@pytest.mark.parametrize("name", ["uvicorn", "granian", "hypercorn", "daphne"])
def test_flags_of_others_have_rules(name: str) -> None:
    """Each flag of the table becomes something."""
    table = getattr(server_flags, name.upper())
    for flag, known in server_flags.flags(table).items():
        words = [name, flag, *(["1"] if known.takes_value else []), "app:app"]
        plan = sources.read(words, {})
        assert sum(plan.counts()[1:]) == plan.counts()[0]


def test_options_of_uwsgi() -> None:
    """Each one alone becomes an option or an explanation, and our loader reads the result."""
    done = run(Path(sys.executable).with_name("pyuwsgi"), "--help")
    names = sorted(set(re.findall(r"--([a-z0-9][\w-]*)", done.stdout)))
    assert len(names) > 500
    for value in ("1", ""):
        for name in names:
            setting = Setting(name, value, "uwsgi.ini:2", f"{name} = {value}")
            plan = uwsgi.plan_for([setting])
            read, carried, explained = plan.counts()
            assert read == carried + explained == 1, name
            if value == "1":
                assert "uwsgi.ini:2" in plan.text("a test"), name
