"""The command `poorhttp dev`."""

from __future__ import annotations

from poorhttp.config.command import Command
from poorhttp.plugins.dev.options import DEFAULTS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from poorhttp.config.command import Line

FINDING = """\
TARGET may be a folder or a Python file; by default it is the current folder. The server searches
it, in this order, for manage.py of a Django project, FLASK_APP, dispatch_table.py, an application
or create_app() in wsgi.py, app.py, application.py, main.py, then in a file of PasteDeploy, another
module or a package, also in src; template pages, index.html, cgi-bin. It reads source files and
does not run them.

"""


def dev(line: Line) -> int:
    """Run the development server until a stop signal; finds the target if none is named."""
    line.finds_target = True
    return line.serve()


DEV = Command(
    dev,
    "Serve TARGET during development: reload changed files, show errors in the browser.",
    finding=FINDING,
    defaults=DEFAULTS,
    common=(
        *("bind", "https", "open", "mode", "threads", "pythonpath", "env", "request_timeout"),
        *("access_log", "log_level", "slow_request", "mount", "static", "pages_modules"),
        *("autoreload", "reload_include", "reload_exclude", "debug", "live", "profile"),
    ),
)
