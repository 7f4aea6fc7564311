"""Exceptions of the application as pages, with a console in each frame (Werkzeug).

access_control.py    refuses addresses that other machines reach
pin.py               the PIN of the console
middleware.py        catches exceptions of the application
django_errors.py     exceptions that Django would answer itself
debugger.py          Werkzeug's debugger
load_error_page.py   the page of an application that cannot be loaded
plain_page.py        a page of text only
responses.py         HTML for browsers, text for others
"""
