"""What is served: files, CGI programs, template pages, mounts, hosts.

test_cgi.py               CGI programs (RFC 3875) over real sockets, in every mode
test_compiled_pages.py    `poorhttp compile`: compiled template pages, and which are trusted
test_compression.py       Which responses and files are compressed, in what coding, and when
test_example_apps.py      The example applications, called as WSGI servers call them
test_mounts.py            Mounts and published folders in all modes, with `preload`, and reloads
test_read_errors.py       Files that cannot be read while they are sent: what the log says
test_real_programs.py     Real programs: Git and PHP as CGI programs, Mercurial's hgweb
test_sessions.py          Sessions of template pages: identity and lifetime, across workers
test_static_cases.py      Static files by the cases of tests/cases/static, in every mode (RFC 9110)
test_static_files.py      Published folders beside an application: precedence, transfer
test_template_pages.py    Template pages over a socket: choice of the page, and its variables
test_virtual_hosts.py     Sections `[host:NAME]` of an ini file, their options and their choice
test_x_sendfile.py        X-Sendfile and X-Accel-Redirect, in every mode
"""
