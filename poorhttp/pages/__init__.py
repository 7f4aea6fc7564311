"""Template pages: `.html` files with Python in them, compiled by Mako.

    application.py   a folder of pages as a WSGI application: request in, page out
    folder.py        names of addresses and of parts → compiled pages, looked up again when changed
    compiler.py      a page's text → code whose line numbers are those of the page
    writes.py, alone.py      what is made faster there, and what must not be
    including.py     how a page includes a part
    modules.py       compiled pages on disk
    form.py, cookies.py, session.py, response.py     what a page finds in its scope
    command.py       the command `poorhttp compile`
    key.py           what signs the sessions

Nothing of this is imported by a server that has no pages.
"""
