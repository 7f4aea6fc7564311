"""An installation has the templates of `poorhttp init`, the completion and the man pages."""

from __future__ import annotations

import sys
from pathlib import Path

from tests.commands import wheel
from tests.commands.projects import make
from tests.testkit.server import run


def test_an_installation(tmp_path: Path) -> None:
    source, site = tmp_path / "source", tmp_path / "site"
    source.mkdir()
    file = wheel.build(source)
    options = ("--quiet", "--no-index", "--no-deps", "--target", str(site))
    done = run(sys.executable, "-m", "pip", "install", *options, file)
    assert done.returncode == 0, done.stderr

    share = site / "share"
    files = {path.relative_to(share).as_posix() for path in share.rglob("*") if path.is_file()}
    assert files == {
        "bash-completion/completions/poorhttp",
        "fish/vendor_completions.d/poorhttp.fish",
        "man/man1/poorhttp.1",
        "man/man5/poorhttp.ini.5",
        "zsh/site-functions/_poorhttp",
    }
    assert all((share / name).stat().st_size > 10_000 for name in files)

    templates = site / "poorhttp/plugins/setup/deployment/files"
    assert (templates / "conf/poorhttp.service").is_file()
    assert not list(templates.rglob("*.py"))
    assert sum(path.stat().st_size for path in templates.rglob("*")) < 300_000
    project = make("flask", tmp_path)
    env = {"PYTHONPATH": str(site)}
    words = ("-m", "poorhttp", "init", "--systemd", "--nginx", "--kubernetes")
    done = run(sys.executable, *words, cwd=project, env=env)
    assert done.returncode == 0, done.stderr
    # It was not those of the clone.
    (templates / "conf/poorhttp.service").unlink()
    done = run(sys.executable, *words, "--force", cwd=project, env=env)
    assert done.returncode == 1
    assert "files/conf/poorhttp.service" in done.stderr
