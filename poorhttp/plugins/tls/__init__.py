"""TLS: addresses of `bind` that begin with `https`, their certificates, and the renewal of these.

options.py               the options: certificates, client certificates, redirect, HSTS
certificates.py          certificates of a service, read from their files: its transport
certificate_watcher.py   notices changes of certificate files
component.py             gives running workers the certificates that were read again
"""
