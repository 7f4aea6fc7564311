"""The dev container and pre-commit: they use the lists and the commands that the project has."""

from __future__ import annotations

import json
import re
import subprocess

from tests import packages
from tests.testkit.server import ROOT

FOLDER = ROOT / ".devcontainer"


def test_the_dev_container_reads_the_list_of_packages() -> None:
    text = (FOLDER / "Dockerfile").read_text()
    assert "tests/packages.py build" in text
    copied = re.findall(r"^COPY (\S+)", text, re.M)
    assert [path for path in copied if not (ROOT / path).is_file()] == []
    named = text.split("apt-get install")[1].split("\nCOPY")[0]
    listed = {package for package, _ in {**packages.BUILD, **packages.TESTS}.values()}
    # The list is a program in Python, which the image needs first.
    assert {word for word in re.findall(r"[\w.-]+", named) if word in listed} == {"python3"}


def test_the_dev_container_is_set_up_by_make() -> None:
    settings = json.loads((FOLDER / "devcontainer.json").read_text())
    assert (FOLDER / settings["build"]["dockerfile"]).is_file()
    command = settings["postCreateCommand"].split()
    assert command[0] == "make"
    subprocess.run([*command, "--dry-run"], cwd=ROOT, check=True, timeout=60, capture_output=True)


def test_pre_commit_runs_what_make_lint_runs() -> None:
    import yaml  # every process of pytest imports this module

    config = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())
    assert [each["repo"] for each in config["repos"]] == ["local"]
    entries = {hook["id"]: hook["entry"] for hook in config["repos"][0]["hooks"]}
    done = subprocess.run(
        ["make", "--dry-run", "lint"],
        cwd=ROOT,
        check=True,
        timeout=60,
        capture_output=True,
        text=True,
    )
    lines = [re.sub(r" \.$", "", line) for line in done.stdout.splitlines()]
    for name, entry in entries.items():
        assert entry.replace(" --force-exclude", "") in lines, name
