"""`poorhttp man`: pages without a mistake, in which each option stands."""

from __future__ import annotations

from pathlib import Path

import pytest

from poorhttp.config.settings import OPTIONS
from tests.packages import need
from tests.support.forked_command import run_command
from tests.testkit.server import run


@pytest.mark.parametrize("section", ["1", "5"])
def test_pages(section: str, tmp_path: Path) -> None:
    need("mandoc")
    done = run_command("man", section)
    assert (done.returncode, done.stderr) == (0, "")
    page = tmp_path / f"page.{section}"
    page.write_text(done.stdout)
    checked = run("mandoc", "-T", "lint", "-W", "style", page)
    assert (checked.returncode, checked.stdout, checked.stderr) == (0, "", "")
    text = run("mandoc", "-T", "utf8", "-O", "width=500", page).stdout
    # Bold letters are struck twice.
    while "\b" in text:
        place = text.index("\b")
        text = text[: place - 1] + text[place + 1 :]
    for option in OPTIONS.values():
        if name := option.flag if section == "1" else f"{option.name} = ":
            assert f" {name}" in text, name
            assert option.summary.replace("`", "")[:40] in text
    assert "`" not in text


def test_another_section() -> None:
    done = run_command("man", "8")
    assert (done.returncode, done.stderr) == (2, 'poorhttp: man: unknown "8"; it is one of 1, 5\n')
