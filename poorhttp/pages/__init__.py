"""Template pages: `.html` files with Python in them, compiled by Mako.

application.py    a folder of pages as a WSGI application
folder.py         a path → its compiled page, compiled again when it has changed
compiler.py       the text of a page → code with the line numbers of the page
optimize.py       makes that code faster
module_cache.py   compiled pages on disk
include.py        parts that pages include
form.py           form fields
cookies.py        cookies
session.py        sessions in a signed cookie
session_key.py    the key that signs them
response.py       status and headers of the answer

Nothing of this is imported by a server that has no pages.
"""
