"""Applications that need no framework.

dispatch/   dispatch tables, the API of old applications
pages/      template pages
cgi/        CGI programs
"""
