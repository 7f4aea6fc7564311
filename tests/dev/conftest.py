"""A project whose files tests save."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.development import ProjectFolder


@pytest.fixture
def project(tmp_path: Path) -> ProjectFolder:
    """A project in a temporary folder."""
    return ProjectFolder(tmp_path)
