"""The options of the development server: reloading, error pages, what the terminal shows.

They are attributes of `poorhttp.config.settings.Settings`, like all others. `poorhttp dev` turns on
those of `DEFAULTS`.
"""

from __future__ import annotations

from poorhttp.config.options.option import Option, Repeatable
from poorhttp.config.parsers import boolean, line, switch
from poorhttp.errors import ConfigError, how_to_install

TYPE_CHECKING = False
if TYPE_CHECKING:
    from poorhttp.config.settings import Settings

DEVELOPMENT = "Development"

#: Below which path of a site the development server answers itself.
PREFIX = "/__poorhttp__"

#: What `poorhttp dev` has on unless somebody says otherwise.
DEFAULTS = {"autoreload": "on", "debug": "on", "access_log": "terminal"}

#: What each needs that is no part of the server itself.
NEEDS = {
    "debug": ("werkzeug", "rich"),
    # Its pages ask for the debugger's PIN.
    "profile": ("pyinstrument", "werkzeug"),
}


#: What turns on parts of the development server.
FEATURES = ("autoreload", "debug", "live", "profile", "open")

#: What is put around an application only where its versions are.
ONLY_WITH_AUTORELOAD = ("live", "profile")


class Development:
    """How somebody who works on an application wants it served."""

    autoreload = Option(
        switch("full"),
        "off",
        "Serve the new version when a file of the project was saved: `on`, `off`, or `full` for "
        "plain restarts.",
        group=DEVELOPMENT,
        shared=True,
        metavar="SWITCH",
        reason="`on` keeps a process that has imported what the application imports from outside "
        "the project, and forks each version from it: only the project's own code is imported "
        "again, in a fresh process (docs/development.md). Connections wait meanwhile, and none is "
        "lost. `full` imports everything again, as other servers do. On in `poorhttp dev`.",
    )
    reload_include = Repeatable(
        line,
        (),
        "Further files that are watched, as a glob: `*.sql`, `data/**/*.json`.",
        group=DEVELOPMENT,
        metavar="GLOB",
        reason="Beside Python files, templates and configuration (`*.ini`, `*.cfg`, `*.toml`, "
        "`*.yaml`, `.env`). One without a slash is for names in every folder of the project.",
    )
    reload_exclude = Repeatable(
        line,
        (),
        "Files and folders that are not watched, as a glob: `generated/**`.",
        group=DEVELOPMENT,
        metavar="GLOB",
        reason="Beside folders that hold no source: of version control, virtual environments, "
        "caches, `node_modules`. It goes before `reload_include`.",
    )
    debug = Option(
        switch("forced"),
        "off",
        "Answer an exception of the application with a page that shows where it was: `on`, `off`, "
        "or `forced` on an address that others can reach too.",
        group=DEVELOPMENT,
        shared=True,
        metavar="SWITCH",
        reason="With the source, the values, and a console in each frame, which asks for a PIN "
        "(Werkzeug's debugger). Whoever has the PIN can run anything, so other addresses of `bind` "
        "than those of this machine are refused unless it is `forced`. Needs the extra `dev`. On "
        "in `poorhttp dev`.",
    )
    live = Option(
        boolean,
        "off",
        "Have pages reload themselves in the browser when a new version is ready, or a static "
        "file has changed.",
        group=DEVELOPMENT,
        shared=True,
        metavar="SWITCH",
        reason="A small script is added to HTML answers. Only with `autoreload`.",
    )
    profile = Option(
        boolean,
        "off",
        "Write a profile of each slow request, as a page.",
        group=DEVELOPMENT,
        shared=True,
        metavar="SWITCH",
        reason="By pyinstrument; the request's line in the terminal says where it is. Slow is what "
        "takes longer than `slow_request`, or than 0.1 s where that is 0. Only with `autoreload`. "
        "Needs the extra `dev`.",
    )
    open = Option(
        boolean,
        "off",
        "Open the browser when the server is ready.",
        group=DEVELOPMENT,
        shared=True,
        metavar="SWITCH",
    )


def is_on(settings: Settings) -> bool:
    """Tell whether any part of the development server is asked for."""
    terminal = settings.access_log == "terminal"
    return terminal or any(settings.is_enabled(name) for name in FEATURES)


def check(settings: Settings) -> str:
    """See to it that what the options of development need is there.

    Returns:
        A hint if something is missing that `poorhttp dev` does without; mostly none.

    Raises:
        ConfigError: something is missing that was asked for.
    """
    hint = ""
    for option in ONLY_WITH_AUTORELOAD:
        if getattr(settings, option) and settings.autoreload == "off":
            raise ConfigError(
                f"{settings.origin(option)}: only with autoreload, which is off; both are for "
                f"development: poorhttp dev --{option}"
            )
    for option, modules in NEEDS.items():
        if getattr(settings, option) in ("off", False):
            continue
        # Only for those who want any of it.
        from importlib.util import find_spec

        missing = [name for name in modules if find_spec(name) is None]
        if not missing:
            continue
        are = "is" if len(missing) == 1 else "are"
        lacking = f"{' and '.join(missing)}, which {are} not installed: {how_to_install('dev')}"
        if settings.origin(option) != option:
            raise ConfigError(f"{settings.origin(option)}: {option} needs {lacking}")
        # Nobody has asked for it: it is a default of `poorhttp dev`.
        hint = f"shows plain tracebacks; better ones need {lacking}"
    return hint
