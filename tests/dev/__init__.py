"""`poorhttp dev`: reloads, discovery, error pages, terminal.

conftest.py                A project whose files tests save
test_asgi_failures.py      Pages of ASGI applications that cannot be loaded or started
test_discovery.py          Discovery of the application, and messages when there is none or several
test_django_command.py     Django: a project that is found, its static files, `manage.py dev`
test_error_pages.py        The debugger's error pages: their content, access control, and consoles
test_failure_page.py       The page shown while a new version cannot be loaded
test_flask_command.py      `flask dev`, with `--app` and `FLASK_APP`
test_held_resources.py     Applications that take a port, a lock or a database at import
test_live_reload.py        The reload script: which responses get it, and its effect in a browser
test_open_browser.py       `--open`: the page, the browser, and once only
test_own_writes.py         Files of the project that the application writes, which reload it again
test_prefork.py            The next version, forked before a file is saved
test_preimport.py          Modules imported by the fork server, and those left to each generation
test_reload.py             `poorhttp dev`: reloads after changes of all kinds of files
test_reload_faults.py      `poorhttp dev`: faults of applications, of users and of the system
test_request_profiles.py   Profiles of slow requests: their content and files, in every mode
test_terminal_end.py       What Ctrl-C at a debugger leaves of the terminal; nohup, setsid
test_terminal_lines.py     The terminal: lines of requests, with and without colours
test_tracebacks.py         Tracebacks in the terminal: own and library frames, folding, colours
test_watcher.py            The watcher process: changes in a real file system, and its messages
"""
