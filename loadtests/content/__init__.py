"""Content: files, a site, CGI programs and template pages, ours beside web servers of the system.

``material`` is what is published, ``contestants`` how each server is started for it,
``experiments`` what is asked of them, and ``promises`` and ``report`` tell what came of it.
"""
