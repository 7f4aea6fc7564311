"""The options of what is served: mounts, files, programs, pages.

They are attributes of `poorhttp.config.settings.Settings`, like all others. A virtual host may have
values of its own for them.
"""

from __future__ import annotations

from poorhttp.config.options.option import Option, Repeatable
from poorhttp.config.parsers import (
    assignment,
    boolean,
    extension_type,
    file_name,
    integer,
    mapping,
    optional_path,
    path,
    prefix_header,
    seconds,
    size,
    token,
)

MOUNTS = "Mounts"
STATIC = "Static files"
CGI = "CGI programs"
PAGES = "Template pages"


class Content:
    """What is served, and how."""

    mount = Repeatable(
        mapping("TARGET"),
        (),
        "Serve TARGET below a prefix, `/PREFIX=TARGET`.",
        group=MOUNTS,
        metavar="MOUNT",
        hosted=True,
        reason="Any target will do but `tcp:`. The longest prefix that matches whole segments of "
        "the path decides, among those of `static` too; `target` has the rest. The application "
        "finds the prefix in `SCRIPT_NAME` and what is behind it in `PATH_INFO` (PEP 3333). In a "
        "section `[host:NAME]` it is for requests to that host, and then nothing of `target`, "
        "`mount` and `static` outside of that section is (docs/content.md).",
    )
    static = Repeatable(
        mapping("FOLDER"),
        (),
        "Serve the files of FOLDER below a prefix, `/PREFIX=FOLDER`.",
        group=STATIC,
        metavar="MOUNT",
        hosted=True,
        reason="By the core, without Python. `/=FOLDER` is everything; `static:FOLDER` as a target "
        "is the same without an application. Nothing outside of the folder can be reached, "
        "symbolic links that stay inside are followed.",
    )
    static_fallthrough = Option(
        boolean,
        "off",
        "Let the application answer where there is no such file.",
        group=STATIC,
        metavar="SWITCH",
        hosted=True,
        reason="Then it also gets every request that is neither GET nor HEAD. The application "
        "sees the path as if the files were not there.",
    )
    static_index = Option(
        file_name,
        "index.html",
        "File that stands for its folder; empty: none does.",
        group=STATIC,
        metavar="NAME",
        hosted=True,
        reason="A folder without a slash at its end is redirected to the name with one, so that "
        "relative links count from it.",
    )
    static_listing = Option(
        boolean,
        "off",
        "List the files of a folder that has no index.",
        group=STATIC,
        metavar="SWITCH",
        hosted=True,
        reason="Off, because most people do not mean to publish names. Hidden files are not "
        "listed. A page is made once a second (while `static_cache` is not 0) unless files come or "
        "go, so sizes and dates may be a second old.",
    )
    static_not_found = Option(
        file_name,
        "",
        "File of the folder that is sent with 404, such as `404.html`; empty: a line of text.",
        group=STATIC,
        metavar="NAME",
        hosted=True,
    )
    static_header = Repeatable(
        prefix_header,
        (),
        "Header to add to files below a prefix, `/PREFIX=NAME: VALUE`.",
        group=STATIC,
        metavar="HEADER",
        hosted=True,
        reason="For `Cache-Control` above all: `/assets=Cache-Control: max-age=31536000, "
        "immutable` for names that change with their contents. Of the same name, the longest "
        "prefix counts. Without it, browsers guess from `Last-Modified`.",
    )
    static_type = Repeatable(
        extension_type,
        (),
        "Media type of an extension, `.EXT=TYPE`.",
        group=STATIC,
        metavar="TYPE",
        hosted=True,
        reason="Before the table that comes with the server. What neither knows is "
        "`application/octet-stream`.",
    )
    static_charset = Option(
        token,
        "utf-8",
        "`charset` of text files; empty names none.",
        group=STATIC,
        metavar="NAME",
        hosted=True,
    )
    static_precompressed = Option(
        boolean,
        "on",
        "Send `FILE.br`, `FILE.zst` or `FILE.gz` in place of `FILE` to clients that prefer it.",
        group=STATIC,
        metavar="SWITCH",
        hosted=True,
        reason="By the quality values of `Accept-Encoding` (RFC 9110 section 12.5.3). One that is "
        "older than its file is left alone. nginx (`gzip_static`) has it off.",
    )
    static_hidden = Option(
        boolean,
        "off",
        "Serve names that begin with a dot.",
        group=STATIC,
        metavar="SWITCH",
        hosted=True,
        reason="Off, because `.git` and `.env` are published by accident only. `/.well-known/` "
        "(RFC 8615) is served always.",
    )
    static_cache = Option(
        size(0, 2**40),
        "4M",
        "Memory that a worker may use for small files; 0 keeps none. Listings have as much again.",
        group=STATIC,
        metavar="SIZE",
        reason="What is kept is compared with the file system whenever new requests are looked "
        "for, so a change counts for the next request.",
    )
    x_sendfile = Repeatable(
        path,
        (),
        "Folder from which an application may have a file sent by naming it in `X-Sendfile`.",
        group=STATIC,
        metavar="FOLDER",
        reason="The header holds an absolute path below one of these folders. Ranges and "
        "conditional requests work as for static files. Without this option the header means "
        "nothing and is passed on.",
    )
    x_accel_redirect = Repeatable(
        mapping("FOLDER"),
        (),
        "The same for `X-Accel-Redirect`, `/PREFIX=FOLDER`.",
        group=STATIC,
        metavar="MOUNT",
        reason="The header holds a path below the prefix, as with an `internal` location of nginx. "
        "Clients cannot ask for it.",
    )
    cgi_timeout = Option(
        seconds(0.001),
        "60",
        "Longest time that a program may run without writing anything; then it is ended, with all "
        "that it has started.",
        group=CGI,
        metavar="SECONDS",
        hosted=True,
        reason="A client that has nothing yet gets 504; otherwise its connection is cut, so that "
        "half an answer does not look whole. The same as Apache's `CGIScriptTimeout` (60) and "
        "`read-timeout` in lighttpd's `cgi.limits`.",
    )
    cgi_time_limit = Option(
        seconds(0),
        "0",
        "Longest time that a program may run in all; 0 is for ever.",
        group=CGI,
        metavar="SECONDS",
        hosted=True,
        reason="It is ended as by `cgi_timeout`. A download or a clone of a repository takes as "
        "long as its client needs.",
    )
    cgi_pass_authorization = Option(
        boolean,
        "off",
        "Pass the header `Authorization` on to programs, as `HTTP_AUTHORIZATION`.",
        group=CGI,
        metavar="SWITCH",
        hosted=True,
        reason="Off, because it holds passwords, which are the server's business (RFC 3875 section "
        "4.1.18). On, for programs that check them themselves. Apache `CGIPassAuth`.",
    )
    cgi_processes = Option(
        integer(0, 65535),
        "0",
        "Programs that a worker runs at the same time; 0 is four for each usable CPU.",
        group=CGI,
        metavar="N",
        reason="Other requests wait for one to end. More at a time are slower, not faster. A "
        "worker in mode `single` or `forking` runs one at a time.",
    )
    cgi_environment = Repeatable(
        assignment,
        ("PATH",),
        "Variable of the server's environment to pass on, `NAME`, or to set, `NAME=VALUE`.",
        group=CGI,
        metavar="VARIABLE",
        hosted=True,
        reason="Programs get nothing else of it: it may hold passwords.",
    )
    pages_reload = Option(
        boolean,
        "on",
        "Look for changes of a template with each request.",
        group=PAGES,
        metavar="SWITCH",
        hosted=True,
        reason="Costs a system call for each file of a page. Off, pages are read once.",
    )
    pages_modules = Option(
        optional_path,
        "off",
        "Folder for compiled pages; `off` keeps them in memory.",
        group=PAGES,
        metavar="FOLDER",
        hosted=True,
        reason="`poorhttp compile FOLDER --pages-modules MODULES` fills it beforehand, and says "
        "which pages cannot be compiled. What does not fit its page any more is made anew. Nobody "
        "but the server's user, the owner of the pages and root may write there: it is code.",
    )
    session_key = Option(
        optional_path,
        "off",
        "File with the key that signs the sessions of pages; made if it does not exist.",
        group=PAGES,
        metavar="FILE",
        hosted=True,
        reason="Off, a key is made at the start: all workers have it and a reload keeps it, but "
        "sessions end with the server, and with an upgrade (USR2). Pages with the same file take "
        "each other's sessions for their own.",
    )
    session_lifetime = Option(
        seconds(1),
        "86400",
        "Time after which a session that is not used ends.",
        group=PAGES,
        metavar="SECONDS",
        hosted=True,
        reason="A day. PHP 24 minutes (`session.gc_maxlifetime`), Flask 31 days, Django two weeks.",
    )
