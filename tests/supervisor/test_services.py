"""Several services under one main process, each with its own sections of the ini file."""

from __future__ import annotations

import json
import os
import re
import signal
from pathlib import Path
from urllib.error import URLError

import pytest

from poorhttp.config import loader
from poorhttp.errors import ConfigError
from tests.supervisor.reloads import refused_reload, reload
from tests.support.forked_command import run_command
from tests.support.load import Load
from tests.support.services import Tree
from tests.testkit.client import HANG
from tests.testkit.process import children
from tests.testkit.server import READY, wait_for

SERVICES = """
[http]
drain_timeout = 0.2
header_timeout = 7

[service:shop]
target = tests.apps.versioned:application
bind = 127.0.0.1:0
mode = forking
workers = 2

[service:chat]
target = apps/hello/app.py
bind =
    127.0.0.1:0
mode = gevent
header_timeout = 5
"""


def test_what_they_share_and_what_not(tmp_path: Path) -> None:
    file = tmp_path / "x.ini"
    file.write_text(SERVICES)
    shop, chat = loader.load({}, {}, str(file))
    assert (shop.service, chat.service) == ("shop", "chat")
    assert (shop.mode, chat.mode) == ("forking", "gevent")
    assert (shop.header_timeout, chat.header_timeout) == (7.0, 5.0)
    assert shop.drain_timeout == chat.drain_timeout == 0.2
    both = loader.load({"mode": ["single"]}, {"POORHTTP_THREADS": "3"}, str(file))
    assert [settings.mode for settings in both] == ["single"] * 2
    assert [settings.threads for settings in both] == [3] * 2


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("[service:]\n", r'1: "" is not a valid service name'),
        ("[service:a b]\n", r'1: "a b" is not a valid service name'),
        ("[service:a]\n[service:a]\n", r"2: section \[service:a\] begins a second time"),
        ("[service:a]\nthread = 1\n", r'2: unknown option "thread"'),
        ("[service:a]\npidfile = x\n", r'2: "pidfile" is for all services'),
        (
            "[service:a]\nbind = 127.0.0.1:80\n[service:b]\nbind = 127.0.0.1:80\n",
            r"4: bind: service b would listen on 127\.0\.0\.1:80, where service a does",
        ),
        ("[servise:a]\n", r"1: unknown section \[servise:a\]"),
    ],
)
def test_mistakes(text: str, complaint: str, tmp_path: Path) -> None:
    file = tmp_path / "x.ini"
    file.write_text(text)
    with pytest.raises(ConfigError, match=rf"^{file}:{complaint}"):
        loader.load({}, {}, str(file))


def test_two_services(tmp_path: Path) -> None:
    with Tree(tmp_path, SERVICES) as tree:
        lines = tree.log().splitlines()
        assert re.fullmatch(r"poorhttp \S+ listening on \S+ \(forking, 2 workers\): shop", lines[0])
        assert re.fullmatch(r"poorhttp \S+ listening on \S+ \(gevent, 1 worker\): chat", lines[1])
        assert not READY.search(tree.log()), "that is how a server of one service begins"
        assert json.loads(tree.get("shop"))["gevent"] is False
        assert tree.get("chat").startswith(b"Hello")
        assert len(children(tree.process.pid)) == 3
        tree.process.terminate()
        assert tree.process.wait(HANG) == 0


def test_a_fault_of_one_is_not_felt_by_the_other(tmp_path: Path) -> None:
    with Tree(tmp_path, SERVICES) as tree, Load(tree.ports["shop"]) as load:
        workers = set(children(tree.process.pid))
        wait_for(lambda: len(load.pids) == 2, "answers of both workers")
        (other,) = workers - set(load.pids)
        for _ in range(2):
            os.kill(other, signal.SIGKILL)
            assert tree.get("chat").startswith(b"Hello")
            (other,) = set(children(tree.process.pid)) - set(load.pids)
        load.end()
        load.check()


def refuses(tree: Tree, name: str) -> bool:
    try:
        tree.get(name)
    except URLError as error:
        return isinstance(error.reason, ConnectionRefusedError)
    return False


def test_services_come_and_go_with_a_reload(tmp_path: Path) -> None:
    with Tree(tmp_path, SERVICES) as tree:
        with Load(tree.ports["shop"]) as load:
            more = SERVICES.split("[service:chat]", maxsplit=1)[0]
            more += f"[service:news]\ntarget = apps/hello/app.py\nbind = unix:{tmp_path}/news\n"
            tree.file.write_text(more)
            reload(tree)
            assert (tmp_path / "news").is_socket()
            wait_for(lambda: refuses(tree, "chat"), "the end of what is no longer wanted")
        load.check()
        tree.file.write_text(more.replace("workers = 2", "target = none:none"))
        refused_reload(tree)
        assert json.loads(tree.get("shop"))["version"] == "1"


def test_one_that_cannot_start_stops_the_start(tmp_path: Path) -> None:
    file = tmp_path / "x.ini"
    file.write_text(SERVICES.replace("apps/hello/app.py", "none:none"))
    done = run_command("serve", "-c", str(file), env={"VERSION_FILE": str(file)})
    assert done.returncode == 4
    assert "none" in done.stderr
    assert "listening" not in done.stderr
