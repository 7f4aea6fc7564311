"""Error pages: exceptions of the application, with Werkzeug's console in each frame.

access_control.py    refuses to show error pages on addresses that other machines reach
pin.py               the PIN that protects values and consoles
middleware.py        answers exceptions of the application with an error page
asgi_pages.py        the same for ASGI applications
handled_errors.py    notes exceptions that the application answers itself
django_errors.py     takes over exceptions that Django would answer with its own page
debugger.py          makes the pages, with Werkzeug's debugger
load_error_page.py   the page of an application that cannot be loaded
plain_page.py        a page of text, for a process that was killed or loads slowly
responses.py         sends a page: HTML to browsers, text to other clients
"""
