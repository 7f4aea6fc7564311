"""`flask dev`: the development server from Flask's own command.

`flask --app shop:create_app dev --live` serves what `--app` or `FLASK_APP` names.
"""

from __future__ import annotations

import click
from flask.cli import ScriptInfo, pass_script_info

from poorhttp.errors import Failure, UsageError


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
    from poorhttp.dev.discovery import search
    from poorhttp.dev.discovery.dev_command import DevCommand
    from poorhttp.targets.source.python import Sources

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
        if info.app_import_path:
            target, roots = search.of_flask(Sources(), info.app_import_path)
        elif info.create_app is not None:
            raise UsageError(
                "this command makes its application by a function of its own; "
                "say where that is: poorhttp dev 'module:function()'"
            )
        command_line.execute("" if command_line.serves else target, roots)
    except Failure as failure:
        click.echo(f"poorhttp: {failure}", err=True)
        click.get_current_context().exit(failure.exit_code)
