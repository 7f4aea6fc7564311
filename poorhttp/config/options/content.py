"""The options of content: mounts, static files, CGI programs, template pages.

Most of them can also be set for a virtual host.
"""

from __future__ import annotations

from poorhttp.config.options.option import Option, Repeatable, WordList
from poorhttp.config.parsers import (
    assignment,
    boolean,
    extension_type,
    file_name,
    integer,
    mapping,
    or_off,
    path,
    prefix_header,
    prefix_or_all,
    seconds,
    size,
    token,
)


class Mounts:
    """Applications below a prefix."""

    GROUP = "Mounts"

    mount = Repeatable(
        mapping("TARGET"),
        (),
        "Serve TARGET below a prefix, `/PREFIX=TARGET`.",
        metavar="MOUNT",
        hosted=True,
        reason="Any target but `tcp:`. The longest prefix that matches whole segments of the path "
        "wins, prefixes of `static` included; `target` gets the rest. The application finds the "
        "prefix in `SCRIPT_NAME` and the rest of the path in `PATH_INFO` (PEP 3333). A section "
        "`[host:NAME]` that sets `mount`, `target` or `static` serves that host alone: the values "
        "outside of the section do not apply to it (docs/guides/hosts.md).",
    )


class RequestBodies:
    """When the application is called: behind the body of its request, or before it."""

    GROUP = "Request bodies"

    stream_request_body = WordList(
        prefix_or_all,
        ("off",),
        "Requests for which the application is called before their body has come, and receives it "
        "while it runs: `on`, `off`, or prefixes of paths.",
        metavar="PREFIX",
        hosted=True,
        reason="For uploads that are hashed, copied elsewhere or refused, and for handlers that "
        "read while they answer (docs/guides/uploads.md). `wsgi.input` waits for what has not "
        "come. Off, "
        "because a thread is then busy for as long as the client sends, and a client that is slow "
        "or leaves is the application's concern. gunicorn, uWSGI and cheroot always do it, "
        "waitress never; nginx `proxy_request_buffering off`.",
    )


class StaticFiles:
    """Files that the core serves without Python."""

    GROUP = "Static files"

    static = Repeatable(
        mapping("FOLDER"),
        (),
        "Serve the files of FOLDER below a prefix, `/PREFIX=FOLDER`.",
        metavar="MOUNT",
        hosted=True,
        reason="By the core, without Python. `/=FOLDER` is everything; `static:FOLDER` as a target "
        "is the same without an application. Nothing outside of the folder can be reached; "
        "symbolic links that stay inside are followed.",
        aliases=("static-map",),
    )
    static_fallthrough = Option(
        boolean,
        "off",
        "Let the application answer requests for which there is no file.",
        hosted=True,
        reason="Then it also gets every request that is neither GET nor HEAD. The application "
        "sees the path as if the files were not there.",
    )
    static_index = Option(
        file_name,
        "index.html",
        "File that is served for its folder; empty for none.",
        metavar="NAME",
        hosted=True,
        reason="A folder without a slash at its end is redirected to the name with one, so that "
        "relative links count from it.",
    )
    static_listing = Option(
        boolean,
        "off",
        "List the files of a folder that has no index.",
        hosted=True,
        reason="Off, because most people do not mean to publish file names. Hidden files are not "
        "listed. A listing is kept for a second (while `static_cache` is not 0) unless files are "
        "added or removed, so sizes and dates may be a second old.",
    )
    static_not_found = Option(
        file_name,
        "",
        "File of the folder that is sent with 404, such as `404.html`; if empty, a line of text.",
        metavar="NAME",
        hosted=True,
    )
    static_header = Repeatable(
        prefix_header,
        (),
        "Header to add to files below a prefix, `/PREFIX=NAME: VALUE`.",
        metavar="HEADER",
        hosted=True,
        reason="For `Cache-Control` above all: `/assets=Cache-Control: max-age=300`. The prefix "
        "is a folder or one file, as clients request it. If two rules set the same header, the "
        "longest prefix wins. Responses with 404 do not get the header. Without `Cache-Control`, "
        "browsers guess from `Last-Modified`.",
    )
    static_immutable = WordList(
        prefix_or_all,
        ("off",),
        "Where browsers may keep files with a hash in their name for a year: `on`, `off`, or "
        "prefixes of paths.",
        metavar="PREFIX",
        hosted=True,
        reason="They get `Cache-Control: public, max-age=31536000, immutable`, whatever "
        "`static_header` says; other files do not. A hash is 8 to 64 hexadecimal digits between a "
        "dot or a hyphen and a dot, with a digit and a letter: `app.3f2a1bc9.js`, as Django, "
        "webpack, Parcel and Sprockets write it. Off, because a file of that form might be "
        "replaced under its name. WhiteNoise does it for Django's names.",
    )
    static_type = Repeatable(
        extension_type,
        (),
        "Media type of an extension, `.EXT=TYPE`.",
        metavar="TYPE",
        hosted=True,
        reason="It takes precedence over the table that comes with the server. Files of an unknown "
        "extension are `application/octet-stream`.",
    )
    static_charset = Option(
        token,
        "utf-8",
        "`charset` of text files; if empty, none is sent.",
        metavar="NAME",
        hosted=True,
    )
    static_precompressed = Option(
        boolean,
        "on",
        "Send `FILE.br`, `FILE.zst` or `FILE.gz` in place of `FILE` to clients that prefer it.",
        hosted=True,
        reason="By the quality values of `Accept-Encoding` (RFC 9110 section 12.5.3). A "
        "compressed file that is older than the original is not used. nginx (`gzip_static`) has "
        "it off.",
    )
    static_hidden = Option(
        boolean,
        "off",
        "Serve files and folders whose name begins with a dot.",
        hosted=True,
        reason="Off, because nobody publishes `.git` or `.env` on purpose. `/.well-known/` (RFC "
        "8615) is always served.",
    )
    static_cache = Option(
        size(0, 2**40),
        "4M",
        "Memory that a worker may use for small files, and as much again for listings; 0 keeps "
        "none.",
        reason="Cached files are compared with the file system whenever new requests are read, so "
        "the next request already sees a change.",
    )
    x_sendfile = Repeatable(
        path,
        (),
        "Folder whose files an application may send by naming them in the header `X-Sendfile`.",
        metavar="FOLDER",
        reason="The header holds an absolute path below one of these folders. Ranges and "
        "conditional requests work as for static files. Without this option the header is "
        "passed on to the client.",
    )
    x_accel_redirect = Repeatable(
        mapping("FOLDER"),
        (),
        "Folder whose files an application may send by `X-Accel-Redirect`, `/PREFIX=FOLDER`.",
        metavar="MOUNT",
        reason="The header holds a path below the prefix, as with an `internal` location of nginx. "
        "Clients cannot ask for it.",
    )


class CgiPrograms:
    """Limits and environment of CGI programs."""

    GROUP = "CGI programs"

    cgi_timeout = Option(
        seconds(0.001),
        "60",
        "Longest time that a program may run without writing anything; then it is killed, with all "
        "processes that it has started.",
        hosted=True,
        reason="The client gets 504 if nothing was sent; otherwise its connection is cut, so that "
        "half a response does not look complete. The same as Apache's `CGIScriptTimeout` (60) and "
        "`read-timeout` in lighttpd's `cgi.limits`.",
    )
    cgi_time_limit = Option(
        seconds(0),
        "0",
        "Longest time that a program may run in total; 0 sets no limit.",
        hosted=True,
        reason="It is killed as by `cgi_timeout`. No limit by default, because a download or a "
        "clone of a repository takes as long as its client needs.",
    )
    cgi_pass_authorization = Option(
        boolean,
        "off",
        "Pass the header `Authorization` on to programs, as `HTTP_AUTHORIZATION`.",
        hosted=True,
        reason="Off, because it holds passwords, which the server should check (RFC 3875 section "
        "4.1.18). On, for programs that check them themselves. Apache `CGIPassAuth`.",
    )
    cgi_processes = Option(
        integer(0, 65535),
        "0",
        "Number of programs that a worker runs at the same time; 0 is four for each usable CPU.",
        reason="Further requests wait until a program ends. More at a time are slower, not "
        "faster. A worker in mode `single` or `forking` runs one at a time.",
    )
    cgi_environment = Repeatable(
        assignment,
        ("PATH",),
        "Variable of the server's environment to pass on, `NAME`, or to set, `NAME=VALUE`.",
        metavar="VARIABLE",
        hosted=True,
        reason="Programs get no other variables of it, because they may hold passwords.",
    )


class TemplatePages:
    """Template pages and their sessions."""

    GROUP = "Template pages"

    pages_reload = Option(
        boolean,
        "on",
        "Check with each request whether a template has changed.",
        hosted=True,
        reason="Costs a system call for each file of a page. Off, each page is read once.",
    )
    pages_modules = Option(
        or_off(path),
        "off",
        "Folder for compiled pages; `off` keeps them in memory.",
        metavar="FOLDER",
        hosted=True,
        reason="`poorhttp compile FOLDER --pages-modules MODULES` fills it beforehand, and reports "
        "pages that cannot be compiled. A page that has changed is compiled again. Only the "
        "server's user, the owner of the pages and root may have write permission there, because "
        "it holds code.",
    )
    session_key = Option(
        or_off(path),
        "off",
        "File with the key that signs the sessions of pages; created if it does not exist.",
        metavar="FILE",
        hosted=True,
        reason="Off, the server generates a key at its start: all workers use it and a reload "
        "keeps it, but sessions end when the server stops, and with an upgrade (USR2). Folders of "
        "pages with the same file share their sessions.",
    )
    session_lifetime = Option(
        seconds(1),
        "86400",
        "Time after which a session that is not used ends.",
        hosted=True,
        reason="A day. PHP 24 minutes (`session.gc_maxlifetime`), Flask 31 days, Django two weeks.",
    )
