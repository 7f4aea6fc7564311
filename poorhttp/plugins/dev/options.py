"""The options of the development server: reloading, error pages, profiles.

`poorhttp dev` changes the defaults of some options (`DEFAULTS`).
"""

from __future__ import annotations

import os

from poorhttp.config.options.option import IN_PROCESSES, Option, Repeatable
from poorhttp.config.parsers import boolean, line, switch
from poorhttp.errors import ConfigError, how_to_install

TYPE_CHECKING = False
if TYPE_CHECKING:
    from poorhttp.config.settings import Settings

#: Prefix of the paths that the development server itself answers.
PREFIX = "/__poorhttp__"

#: Defaults of `poorhttp dev` that differ from those of `poorhttp serve`.
DEFAULTS = {"autoreload": "on", "debug": "on", "access_log": "terminal"}

#: Modules of other distributions that an option needs.
NEEDS = {
    "debug": ("werkzeug", "rich"),
    # For the PIN that protects the pages.
    "profile": ("pyinstrument", "werkzeug"),
}

#: Options that turn on a part of the development server.
FEATURES = ("autoreload", "debug", "live", "profile", "open")

#: Options without effect unless `autoreload` is on.
ONLY_WITH_AUTORELOAD = ("live", "profile")


def as_glob(text: str) -> str:
    """Translate a file or folder that another server watches to a glob."""
    return os.path.join(text, "**") if os.path.isdir(text) else text


class Development:
    """How an application is served while somebody works on it."""

    GROUP = "Development"
    AVAILABLE = IN_PROCESSES

    autoreload = Option(
        switch("full"),
        "off",
        "Load the application again when you save a file of the project: `on`, `off`, or `full` "
        "for plain restarts.",
        shared=True,
        reason="`on` keeps a process that has imported the modules from outside the project, and "
        "forks each version from it, so only the project's own code is imported again "
        "(docs/guides/development.md). Connections wait meanwhile, and none is lost. `full` "
        "imports everything again, as other servers do. On in `poorhttp dev`.",
        aliases=("reload",),
        fixed={"noreload": "off", "reload-on-changes": "on"},
        needs_main=True,
    )
    reload_include = Repeatable(
        line,
        (),
        "More files to watch, as a glob: `*.sql`, `data/**/*.json`.",
        metavar="GLOB",
        reason="In addition to Python files, templates and configuration (`*.ini`, `*.cfg`, "
        "`*.toml`, `*.yaml`, `.env`). A glob without a slash matches names in every folder of the "
        "project.",
        aliases=("reload-extra-file", "extra-files"),
        translate=as_glob,
    )
    reload_exclude = Repeatable(
        line,
        (),
        "Files and folders that are not watched, as a glob: `generated/**`.",
        metavar="GLOB",
        reason="In addition to folders without source: version control, virtual environments, "
        "caches, `node_modules`. It overrides `reload_include`.",
    )
    debug = Option(
        switch("forced"),
        "off",
        "Show exceptions of the application in the browser, with a debugger: `on`, `off`, or "
        "`forced` for addresses that other machines can reach too.",
        shared=True,
        local=True,
        reason="The page shows the source, the values of variables, and a console in each frame, "
        "which asks for a PIN (Werkzeug's debugger). Whoever has the PIN can run any code, so the "
        "server refuses addresses of `bind` that other machines can reach, unless the value is "
        "`forced`. Needs the extra `dev`. On in `poorhttp dev`.",
    )
    live = Option(
        boolean,
        "off",
        "Reload pages in the browser when a new version is ready, or a static file has changed.",
        shared=True,
        reason="The server adds a small script to HTML responses. Only with `autoreload`.",
    )
    profile = Option(
        boolean,
        "off",
        "Write a profile of each slow request, as an HTML page.",
        shared=True,
        reason="It needs pyinstrument (extra `dev`), and only works with `autoreload`. The line "
        "of the request in the terminal names the page. A request is slow if it takes longer than "
        "`slow_request`, or than 0.1 s if that is 0.",
    )
    https = Option(
        boolean,
        "off",
        "Serve `https` at the TCP addresses of `bind`.",
        shared=True,
        reason="Unless `tls_certificate` is set, the server makes a certificate for this machine "
        "at its first start and keeps it in `~/.cache/poorhttp`, readable by its owner alone. The "
        "certificate is self-signed, so a browser asks once whether to trust it; the server "
        "prints its fingerprint. Only for development.",
    )
    open = Option(
        boolean,
        "off",
        "Open the browser when the server is ready.",
        shared=True,
    )


def is_on(settings: Settings) -> bool:
    """Tell whether any part of the development server is turned on."""
    terminal = settings.access_log == "terminal"
    return terminal or any(settings.is_enabled(name) for name in FEATURES)


def check(settings: Settings) -> str:
    """Check that the modules which the options of development need are installed.

    Returns:
        A hint if a module is missing that `poorhttp dev` can do without; mostly empty.

    Raises:
        ConfigError: an option that was set lacks a module, or `autoreload`.
    """
    hint = ""
    for option in ONLY_WITH_AUTORELOAD:
        if settings.value(option) and settings.of(Development).autoreload == "off":
            raise ConfigError(
                f"{settings.origin(option)}: only with autoreload, which is off; both are for "
                f"development: poorhttp dev --{option}"
            )
    for option, modules in NEEDS.items():
        if settings.value(option) in ("off", False):
            continue
        # Imported only where one of the options is on.
        from importlib.util import find_spec

        missing = [name for name in modules if find_spec(name) is None]
        if not missing:
            continue
        are = "is" if len(missing) == 1 else "are"
        lacking = f"{' and '.join(missing)}, which {are} not installed: {how_to_install('dev')}"
        if settings.origin(option) != option:
            raise ConfigError(f"{settings.origin(option)}: {option} needs {lacking}")
        # The option was not set: its value is a default of `poorhttp dev`.
        hint = f"shows plain tracebacks; better ones need {lacking}"
    return hint
