"""The module that the study `develop` edits: its version, and the text of an answer."""

VERSION = "000000"


def text(main, read):
    return f"main {main} sub {VERSION} read {read}\n".encode("ascii")
