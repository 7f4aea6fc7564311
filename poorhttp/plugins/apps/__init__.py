"""Applications made of files: dispatch tables, template pages, CGI programs; the list of the files.

dispatch/   dispatch tables, the API of old applications
pages/      template pages
cgi/        CGI programs
folder.py   checks the folder of a target
native.py   what the extension module has for them
"""
