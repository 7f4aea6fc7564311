"""Options of other servers that have no equivalent here: what to do instead.

Of gunicorn, uvicorn, hypercorn, granian, waitress, uWSGI, mod_wsgi-express, puma, Flask and Django.
They stand in `advice.txt`. Those with an equivalent are `aliases` of options.
"""

from __future__ import annotations

import pkgutil

#: Single letters, and the name for each.
_LETTERS = {
    "D": "daemon",
    "d": "daemonize",
    "R": "enable_stdio_inheritance",
    "M": "master",
    "i": "single_interpreter",
    "T": "enable_threads",
    "H": "home",
    "L": "no_log",
    "s": "uwsgi_socket",
    "x": "xml",
    "y": "yaml",
    "j": "json",
    "C": "ini",
    "A": "app",
}


def advice(name: str) -> str:
    """Return what to do instead of an option of another server; empty if it is not known.

    Args:
        name: as it is written there, without the hyphens before it.
    """
    plain = _LETTERS.get(name, name).replace("-", "_").lower()
    table = pkgutil.get_data("poorhttp.config.other_servers", "advice.txt") or b""
    entries = table.decode().split("\n\n")
    for known in (plain, plain.removeprefix("no_")):
        for entry in entries:
            head, _, text = entry.partition("\n    ")
            page, _, names = head.partition(":")
            if known in names.split():
                return f"{' '.join(text.split())} ({page})"
    return ""
