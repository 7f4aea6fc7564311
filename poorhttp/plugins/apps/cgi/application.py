"""WSGI application that runs the CGI programs of a folder."""

from __future__ import annotations

import os
from collections.abc import Iterable

from poorhttp.config.resources import usable_cpus
from poorhttp.config.settings import Settings
from poorhttp.plugins.apps.cgi.error_responses import log_problem, respond
from poorhttp.plugins.apps.cgi.options import CgiPrograms
from poorhttp.plugins.apps.cgi.program import ProgramRun
from poorhttp.plugins.apps.cgi.program_slots import slots_of_process
from poorhttp.plugins.apps.native import find_program

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment

    from poorhttp.plugins.apps.cgi.program_slots import ProgramSlots

#: Programs at a time for each usable CPU, unless `cgi_processes` is set.
PROGRAMS_PER_CPU = 4


class Programs:
    """A WSGI application that runs the programs of a folder."""

    def __init__(self, folder: str, settings: Settings) -> None:
        """Take a folder that exists."""
        self.folder = os.fsencode(os.path.realpath(folder))
        options = settings.of(CgiPrograms)
        self.limits = options.cgi_timeout, options.cgi_time_limit or None
        self.pass_authorization = options.cgi_pass_authorization
        self.graceful_timeout = settings.graceful_timeout
        self.max_programs = options.cgi_processes or PROGRAMS_PER_CPU * usable_cpus()
        self.in_greenlets = settings.mode == "gevent"
        self.environment = [
            (b"GATEWAY_INTERFACE", b"CGI/1.1"),
            (b"DOCUMENT_ROOT", self.folder),
            # php-cgi refuses to run without it. Apache sets it for programs behind an action, and
            # nginx and lighttpd for all.
            (b"REDIRECT_STATUS", b"200"),
        ]
        for name, value in options.cgi_environment:
            passed = os.environ.get(name) if value is None else value
            if passed is not None:
                self.environment.append((os.fsencode(name), os.fsencode(passed)))

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Run the program that the path names (PEP 3333)."""
        path = environ.get("PATH_INFO", "").encode("latin-1")
        try:
            file, name_end = find_program(self.folder, path)
        except IsADirectoryError:
            # The path as the client has sent it, percent-encoded. It never begins with two slashes,
            # which a browser would take for a host: `find_program` finds no folder at such a path.
            target, mark, query = environ.get("REQUEST_URI", "").partition("?")
            location = f"{target}/{mark}{query}"
            return respond(start_response, "301 Moved Permanently", ("Location", location))
        except (FileNotFoundError, PermissionError, NotImplementedError) as error:
            if isinstance(error, FileNotFoundError):
                status = "404 Not Found"
                problem = (
                    f"a symbolic link leads out of {os.fsdecode(self.folder)} and is not followed: "
                    "put the program itself there, or serve the folder that it is in"
                )
            elif isinstance(error, PermissionError):
                status = "403 Forbidden"
                problem = "the server's user may not execute it: chmod +x"
            else:
                status = "501 Not Implemented"
                problem = "programs that write a whole HTTP message (nph-) are not run"
            # Without a file, nothing is wrong with one: it does not exist.
            if error.args:
                log_problem(environ, start_response, os.fsdecode(error.args[0]), problem)
            return respond(start_response, status)
        if name_end is None:
            script_name, path_info = path + os.path.basename(file), b""
        else:
            script_name, path_info = path[:name_end], path[name_end:]
        variables = self.variables(environ, file, script_name, path_info)
        return ProgramRun(self, environ, start_response, file).respond(variables)

    def variables(
        self, environ: WSGIEnvironment, file: bytes, script_name: bytes, path_info: bytes
    ) -> list[tuple[bytes, bytes]]:
        """Return the environment variables of a program that are not taken from the environ.

        Args:
            environ: of the request.
            file: path of the program.
            script_name: the part of the request's path that names the program.
            path_info: the rest of that path.
        """
        found = [
            *self.environment,
            (b"SCRIPT_NAME", environ.get("SCRIPT_NAME", "").encode("latin-1") + script_name),
            (b"SCRIPT_FILENAME", file),
            (b"PATH_INFO", path_info),
        ]
        if self.pass_authorization and "HTTP_AUTHORIZATION" in environ:
            credentials: str = environ["HTTP_AUTHORIZATION"]
            found.append((b"HTTP_AUTHORIZATION", credentials.encode("latin-1")))
        if path_info:
            found.append((b"PATH_TRANSLATED", self.folder + path_info))
        return found

    def slots(self) -> ProgramSlots:
        """Return the slots of this process for running programs."""
        return slots_of_process(self.max_programs, in_greenlets=self.in_greenlets)
