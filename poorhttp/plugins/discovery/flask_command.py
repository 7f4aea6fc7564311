"""`flask dev`: the development server from Flask's own command.

`flask --app shop:create_app dev --live` serves what `--app` or `FLASK_APP` names.
"""

from __future__ import annotations

import os
import sys

import click
from flask.cli import ScriptInfo, pass_script_info

from poorhttp.errors import Failure, UsageError
from poorhttp.plugins.discovery import flask_files


@click.command(
    "dev",
    short_help="Run poorhttp dev: reloads on a save.",
    add_help_option=False,
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
)
@click.argument("words", nargs=-1, type=click.UNPROCESSED)
@pass_script_info
def command(info: ScriptInfo, words: tuple[str, ...]) -> None:
    """Serve the application while you work on it.

    WORDS are a port or an address, and options of poorhttp dev.
    """
    from poorhttp.plugins.discovery import search
    from poorhttp.plugins.discovery.dev_command import DevCommand
    from poorhttp.plugins.discovery.source.python import Sources

    try:
        command_line = DevCommand(words, "flask dev")
        if command_line.wants_help:
            click.echo(
                "Usage: flask [--app APP] dev [[HOST:]PORT] [OPTION ...]\n\n"
                "Serve what --app or FLASK_APP names, by poorhttp dev. All its options may stand "
                "here.\n\n" + command_line.line.information,
                nl=False,
            )
            return
        target, roots = "", list[str]()
        from_file = _forget_files()
        if info.app_import_path and info.app_import_path != from_file:
            target, roots = search.of_flask(Sources(), info.app_import_path)
        elif info.create_app is not None and not from_file:
            raise UsageError(
                "this command makes its application by a function of its own; "
                "say where that is: poorhttp dev 'module:function()'"
            )
        command_line.execute("" if command_line.serves else target, roots)
    except Failure as failure:
        click.echo(f"poorhttp: {failure}", err=True)
        click.get_current_context().exit(failure.exit_code)


def _forget_files() -> str:
    """Remove the variables that Flask has read from files: `poorhttp dev` reads them itself.

    So it sees when they change. Returns FLASK_APP, if it is one of them.
    """
    before, options = [], sys.argv[1:]
    while options and options[0] != "dev":
        before.append(options.pop(0))
    for number, word in enumerate(before):
        if word in ("-e", "--env-file"):
            os.environ["FLASK_ENV_FILE"] = os.path.abspath("".join(before[number + 1 : number + 2]))
        elif word.startswith("--env-file="):
            os.environ["FLASK_ENV_FILE"] = os.path.abspath(word.partition("=")[2])
    kept = flask_files.started_with()
    if any(word in ("--debug", "--no-debug") for word in before):
        kept.add("FLASK_DEBUG")
    variables = flask_files.find_variables()["variables"]
    read = [name for name in variables if name not in kept and name in os.environ]
    for name in read:
        del os.environ[name]
    return variables["FLASK_APP"] if "FLASK_APP" in read else ""
