"""The options of template pages and their sessions."""

from __future__ import annotations

from poorhttp.config.options.option import Option
from poorhttp.config.parsers import boolean, or_off, path, seconds


class TemplatePages:
    """Template pages and their sessions."""

    GROUP = "Template pages"

    pages_reload = Option(
        boolean,
        "on",
        "Check at each request whether a template has changed.",
        hosted=True,
        reason="It costs a system call for each file of a page. If it is off, each page is read "
        "only once.",
    )
    pages_modules = Option(
        or_off(path),
        "off",
        "Folder for compiled pages; `off` keeps them in memory.",
        metavar="FOLDER",
        hosted=True,
        reason="`poorhttp compile FOLDER --pages-modules MODULES` fills it in advance and reports "
        "pages that cannot be compiled. A page that has changed is compiled again. The folder "
        "holds code: only the server's user, the owner of the pages and root may have write "
        "permission.",
    )
    session_key = Option(
        or_off(path),
        "off",
        "File with the key that signs the sessions of pages; created if it does not exist.",
        metavar="FILE",
        hosted=True,
        reason="If this is off, the server makes a key when it starts. All workers use this key, "
        "and a reload keeps it, but sessions end when the server stops or is upgraded (USR2). "
        "Folders of pages with the same file share their sessions.",
    )
    session_lifetime = Option(
        seconds(1),
        "86400",
        "Time after which an unused session ends.",
        hosted=True,
        reason="A day. PHP 24 minutes (`session.gc_maxlifetime`), Flask 31 days, Django two weeks.",
    )
