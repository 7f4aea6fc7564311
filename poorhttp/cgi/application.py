"""A folder of programs as a WSGI application."""

from __future__ import annotations

import os

from poorhttp._core import find_program
from poorhttp.cgi.error_responses import complain, refuse
from poorhttp.cgi.program import Run
from poorhttp.cgi.program_slots import crew_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from _typeshed.wsgi import StartResponse, WSGIEnvironment

    from poorhttp.cgi.program_slots import Threads
    from poorhttp.config.settings import Settings

#: Programs at once for each usable CPU, where `cgi_processes` does not say.
FOR_EACH_CPU = 4


class Programs:
    """A WSGI application that runs the programs of a folder."""

    def __init__(self, folder: str, settings: Settings) -> None:
        """Take a folder that exists."""
        self.folder = os.fsencode(os.path.realpath(folder))
        self.limits = settings.cgi_timeout, settings.cgi_time_limit or None
        self.pass_authorization = settings.cgi_pass_authorization
        self.patience = settings.graceful_timeout
        self.most = settings.cgi_processes or FOR_EACH_CPU * len(os.sched_getaffinity(0))
        self.in_greenlets = settings.mode == "gevent"
        self.environment = [
            (b"GATEWAY_INTERFACE", b"CGI/1.1"),
            (b"DOCUMENT_ROOT", self.folder),
        ]
        for name, value in settings.cgi_environment:
            passed = os.environ.get(name) if value is None else value
            if passed is not None:
                self.environment.append((os.fsencode(name), os.fsencode(passed)))

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Run the program that the path means (PEP 3333)."""
        path = environ.get("PATH_INFO", "").encode("latin-1")
        try:
            file, named_by = find_program(self.folder, path)
        except FileNotFoundError as error:
            if error.args:
                complain(
                    environ,
                    start_response,
                    os.fsdecode(error.args[0]),
                    f"a symbolic link leads out of {os.fsdecode(self.folder)} and is not followed: "
                    "put the program itself there, or serve the folder that it is in",
                )
            return refuse(start_response, "404 Not Found")
        except IsADirectoryError:
            # As it came, so it is encoded, and it does not begin with two slashes: no folder does.
            target, mark, query = environ.get("REQUEST_URI", "").partition("?")
            location = f"{target}/{mark}{query}"
            return refuse(start_response, "301 Moved Permanently", ("Location", location))
        except PermissionError as error:
            name = os.fsdecode(error.args[0])
            complain(environ, start_response, name, "it is not executable by us: chmod +x")
            return refuse(start_response, "403 Forbidden")
        except NotImplementedError as error:
            name = os.fsdecode(error.args[0])
            complain(
                environ,
                start_response,
                name,
                "programs that write a whole HTTP message (nph-) are not run",
            )
            return refuse(start_response, "501 Not Implemented")
        if named_by is None:
            named, behind = path + os.path.basename(file), b""
        else:
            named, behind = path[:named_by], path[named_by:]
        variables = self.variables(environ, file, named, behind)
        return Run(self, environ, start_response, file).answer(variables)

    def variables(
        self, environ: WSGIEnvironment, file: bytes, named: bytes, behind: bytes
    ) -> list[tuple[bytes, bytes]]:
        """Return what a program gets in its environment besides what the environ says.

        Args:
            environ: of the request.
            file: the program's.
            named: the part of the path that names it.
            behind: the part behind that.
        """
        found = [
            *self.environment,
            (b"SCRIPT_NAME", environ.get("SCRIPT_NAME", "").encode("latin-1") + named),
            (b"SCRIPT_FILENAME", file),
            (b"PATH_INFO", behind),
        ]
        if self.pass_authorization and "HTTP_AUTHORIZATION" in environ:
            credentials: str = environ["HTTP_AUTHORIZATION"]
            found.append((b"HTTP_AUTHORIZATION", credentials.encode("latin-1")))
        if behind:
            found.append((b"PATH_TRANSLATED", self.folder + behind))
        return found

    def crew(self) -> Threads:
        """Return who waits for programs in this process: the same for all folders."""
        return crew_of(self.most, in_greenlets=self.in_greenlets)
