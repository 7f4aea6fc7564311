"""Template pages: `.html` files with Python in them (Mako).

options.py        the options
target.py         the target `pages:FOLDER`
application.py    a folder of pages as a WSGI application
folder.py         from a path to its compiled page; notices changes
commands.py       the command `poorhttp compile`
compile_all.py    the command `poorhttp compile`
compiler.py       compiles the text of a page to code with the page's line numbers
optimize.py       fewer calls in that code
module_cache.py   compiled pages on disk
include.py        renders included parts
cookies.py        cookies
session.py        sessions in a signed cookie
session_key.py    the file with the signing key
response.py       status and headers of the answer

A server without pages imports nothing of this.
"""
