"""The options of content: mounted applications, request bodies, static files.

Most of them can also be set for a virtual host.
"""

from __future__ import annotations

from poorhttp.config.options.option import Option, Repeatable, WordList
from poorhttp.config.parsers import (
    boolean,
    extension_type,
    file_name,
    mapping,
    path,
    prefix_header,
    prefix_or_all,
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
        reason="TARGET is any target except `tcp:`. The longest prefix that matches whole "
        "segments of the path takes precedence, including prefixes of `static`; `target` gets all "
        "other paths. The application finds the prefix in `SCRIPT_NAME` and the rest of the path "
        "in `PATH_INFO` (PEP 3333). A section `[host:NAME]` that sets `mount`, `target` or "
        "`static` ignores the values outside of it (docs/guides/hosts.md).",
    )


class RequestBodies:
    """When the application is called: behind the body of its request, or before it."""

    GROUP = "Request bodies"

    stream_request_body = WordList(
        prefix_or_all,
        ("off",),
        "Requests for which the application is called before their body has arrived, and reads it "
        "while it runs: `on`, `off`, or prefixes of paths.",
        metavar="PREFIX",
        hosted=True,
        reason="For uploads that are hashed, copied elsewhere or refused early "
        "(docs/guides/uploads.md). `wsgi.input` waits for bytes that have not arrived. Off, "
        "because a thread is then busy for as long as the client sends. gunicorn, uWSGI and "
        "cheroot always do it, waitress never; nginx `proxy_request_buffering off`.",
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
        reason="`/=FOLDER` serves everything; the target `static:FOLDER` does the same without an "
        "application. A relative folder starts from `chdir`. Clients cannot reach anything "
        "outside of the folder; symbolic links that stay inside are followed.",
        aliases=("static-map",),
    )
    static_fallthrough = Option(
        boolean,
        "off",
        "Let the application answer requests for which there is no file.",
        hosted=True,
        reason="The application then also gets every request that is neither GET nor HEAD. It "
        "sees the path as if the files were not there.",
    )
    static_index = Option(
        file_name,
        "index.html",
        "File that is served for its folder; empty for none.",
        metavar="NAME",
        hosted=True,
        reason="A path to a folder with an index is redirected if it has no slash at its end, "
        "so that relative links work.",
    )
    static_listing = Option(
        boolean,
        "off",
        "List the files of a folder that has no index.",
        hosted=True,
        reason="Off, because file names are rarely meant to be published. Hidden files are not "
        "listed. A listing is kept for a second (unless `static_cache` is 0), so sizes and dates "
        "may be a second old; new and removed files show at once.",
    )
    static_fallback = Option(
        file_name,
        "",
        "File of the folder that is sent with 200 to requests for pages that do not exist, such as "
        "`index.html`; empty for none.",
        metavar="NAME",
        hosted=True,
        reason="For single-page applications, whose script reads the path (docs/guides/"
        "static-files.md). Scripts, images and data that do not exist still get 404: the path must "
        "not end with the extension of another media type than HTML, and `Sec-Fetch-Dest`, or else "
        "`Accept`, must be that of a page. nginx and Caddy `try_files`, Apache "
        "`FallbackResource`, which send the file instead of scripts too.",
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
        reason="Mainly for `Cache-Control`: `/assets=Cache-Control: max-age=300`. The prefix is a "
        "folder or one file, as clients request it. If two rules set the same header, the longer "
        "prefix takes precedence. Responses with 404 do not get the header. Without "
        "`Cache-Control`, browsers guess from `Last-Modified`.",
    )
    static_immutable = WordList(
        prefix_or_all,
        ("off",),
        "Where browsers may keep files with a hash in their name for a year: `on`, `off`, or "
        "prefixes of paths.",
        metavar="PREFIX",
        hosted=True,
        reason="These files get `Cache-Control: public, max-age=31536000, immutable`, whatever "
        "`static_header` says. `on` means all folders of `static`. A hash is 8 to 64 hexadecimal "
        "digits in lower case, after a dot or a hyphen and before a dot, with at least one digit "
        "and one letter: `app.3f2a1bc9.js`, as Django, webpack, Parcel and Sprockets write it. "
        "Off, because a file with such a name might still be replaced. WhiteNoise does it for "
        "Django's names.",
    )
    static_type = Repeatable(
        extension_type,
        (),
        "Media type of an extension, `.EXT=TYPE`.",
        metavar="TYPE",
        hosted=True,
        reason="It overrides the built-in table. Files with an unknown extension are "
        "`application/octet-stream`.",
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
        "Send `FILE.br`, `FILE.zst` or `FILE.gz` instead of `FILE` to clients that prefer it.",
        hosted=True,
        reason="The server chooses by the quality values of `Accept-Encoding` (RFC 9110 section "
        "12.5.3). A compressed file older than the original is not used. nginx `gzip_static` "
        "(off).",
    )
    static_hidden = Option(
        boolean,
        "off",
        "Serve files and folders whose name begins with a dot.",
        hosted=True,
        reason="Off, so that `.git` and `.env` are not published by mistake. `/.well-known/` (RFC "
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
        "conditional requests work as for static files. Without this option the client gets the "
        "header.",
    )
    x_accel_redirect = Repeatable(
        mapping("FOLDER"),
        (),
        "Folder whose files an application may send by `X-Accel-Redirect`, `/PREFIX=FOLDER`.",
        metavar="MOUNT",
        reason="The header holds a path below the prefix, as with an `internal` location of "
        "nginx. Clients cannot request such a path.",
    )
