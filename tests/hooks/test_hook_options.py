"""Where hooks are named, and what `poorhttp check` says about them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from poorhttp.config import loader
from poorhttp.config.settings import Settings
from poorhttp.errors import ConfigError
from tests.support.failure import says
from tests.support.forked_command import run_command


def load(path: Path, text: str, **environ: str) -> list[Settings]:
    file = path / "x.ini"
    file.write_text(text)
    return loader.load({}, environ, str(file))


def test_the_section(tmp_path: Path) -> None:
    """`[hooks]` may stand anywhere; a service, the environment and the command line replace it."""
    text = "[hooks]\nworker_exit =\n  a:b\n  a:c\nreload = a:d\n[http]\ntarget = x\n"
    (settings,) = load(tmp_path, text)
    assert settings.hook_worker_exit == ("a:b", "a:c")
    assert settings.origin("hook_worker_exit", 1) == f"{tmp_path}/x.ini:4: worker_exit"
    assert settings.hook_reload == ("a:d",)
    (settings,) = load(tmp_path, text, POORHTTP_HOOK_WORKER_EXIT="a:e\na:f")
    assert (settings.hook_worker_exit, settings.hook_reload) == (("a:e", "a:f"), ("a:d",))
    services = (
        "[service:one]\nbind = 127.0.0.1:81\n"
        "[service:two]\nbind = 127.0.0.1:82\nhook_worker_exit = a:g\n"
    )
    one, two = load(tmp_path, text + services)
    assert one.hook_worker_exit == ("a:b", "a:c")
    assert two.hook_worker_exit == ("a:g",)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("[hooks]\nworker_exit = a.b", '2: worker_exit: "a.b" names no function; write it as pack'),
        ("[hooks]\nworker_exit = a:b()", '2: worker_exit: "a:b()" names no function; write it'),
        ("[hooks]\nworker_exits = a:b", '2: unknown option "worker_exits"; did you mean "worker_e'),
        ("[hooks]\nworkers = 3", '2: unknown option "workers"'),
        ("[http]\nworker_exit = a:b", '2: unknown option "worker_exit"; name functions in the se'),
        (
            "[hooks]\nreload = a:b\n[http]\nhook_reload = a:c",
            '2: "reload" is set already, at x.ini:4: hook_reload; write all functions in one place',
        ),
        ("[hook]\nreload = a:b", "1: unknown section [hook]; did you mean [hooks]?"),
        ("[service:a]\nhook_reload = a:b", '2: "hook_reload" is for all services; write it in'),
    ],
)
def test_mistakes(text: str, complaint: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as raised:
        load(tmp_path, text)
    assert str(raised.value).replace(f"{tmp_path}/", "").startswith(f"x.ini:{complaint}")


@pytest.mark.parametrize(
    ("function", "complaint"),
    [
        ("tests.apps.hooked:none", "has failed: AttributeError: module 'tests.apps.hooked' has no"),
        ("tests.apps.none:none", ": there is no module tests.apps.none, in "),
        ("tests.apps.hooked:TYPE_CHECKING", "is not a function"),
        ("os:getpid", "is called with an argument: too many positional arguments"),
    ],
)
def test_check(function: str, complaint: str, tmp_path: Path) -> None:
    file = tmp_path / "x.ini"
    file.write_text(
        "[http]\ntarget = tests.apps.hooked\nbind = 127.0.0.1:0\n"
        f"[hooks]\nworker_exit = tests.apps.hooked:worker_exit\nreload =\n {function}\n"
    )
    said = says(4, "check", "-c", str(file))
    assert said.startswith(f"poorhttp: {file}:7: reload: {function}")
    assert complaint in said


@pytest.mark.parametrize(
    ("option", "function", "complaint"),
    [
        ("after-fork", "tests.apps.versioned:unforked", "has failed: RuntimeError: no work for me"),
        ("after-fork", "sys:exit", "has failed: SystemExit: sys.exit(None) was called"),
        ("after-fork", "tests.apps.versioned:none", "has no attribute 'none'"),
        ("after-fork", "tests", "write it as package.module:function"),
        ("hook-worker-start", "tests.apps.hooked:fail", "has failed: RuntimeError: not this time"),
    ],
)
def test_a_worker_whose_start_fails(option: str, function: str, complaint: str) -> None:
    """It does not serve."""
    words = ("serve", "tests.apps.hooked", "--bind", "127.0.0.1:0", f"--{option}", function)
    done = run_command(*words, env={"VERSION_FILE": os.devnull})
    assert done.returncode == 4
    assert done.stderr.startswith(f"poorhttp: --{option}: {function}")
    assert complaint in done.stderr


@pytest.mark.parametrize("name", ["worker_timeout", "reload"])
def test_what_needs_a_main_process(name: str) -> None:
    """Not silently ignored."""
    flag = f"--hook-{name.replace('_', '-')}"
    words = ("serve", "tests.apps.hooked", "--bind", "127.0.0.1:0", "--supervisor=off")
    said = says(3, *words, flag, f"tests.apps.hooked:{name}")
    assert f"at odds with hook_{name}" in said
