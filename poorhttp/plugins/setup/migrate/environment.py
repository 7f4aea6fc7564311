"""Decides which variables of the environment a configuration may see: none that may be secret.

The configuration may be somebody else's, and the values end in the ini file.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

#: Names of secrets, by their parts.
_SECRET_NAME = re.compile(
    r"SECRET|TOKEN|PASS|PWD$|KEY|CRED|AUTH|PRIVATE|COOKIE|SESSION|SALT|SIGN|CERT|JWT|DSN|WEBHOOK"
    r"|CONNECTION_STRING|^AWS_|^AZURE_|^GOOGLE_|^POORHTTP_",
    re.IGNORECASE,
)

#: Variables of the shell, which look like secrets.
_PLAIN = frozenset(("PWD", "OLDPWD"))

#: A URL with a password.
_PASSWORD = re.compile(r"://[^/@\s:]*:[^/@\s]*@")

#: What gunicorn and the platforms look for by themselves.
_USUAL = frozenset(
    ("PATH", "LANG", "LC_ALL", "TZ", "WEB_CONCURRENCY", "PORT", "FORWARDED_ALLOW_IPS")
)


def public(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that are no secrets by their names and values."""
    return {name: value for name, value in environ.items() if is_public(name, value)}


def is_public(name: str, value: str) -> bool:
    """Tell whether a variable looks like none that is secret."""
    secret = _SECRET_NAME.search(name) is not None and name not in _PLAIN
    return not secret and _PASSWORD.search(value) is None


def named_in(text: str, environ: Mapping[str, str]) -> dict[str, str]:
    """Return the public variables that a text names, and those of gunicorn."""
    words = set(re.findall(r"\w+", text)) | _USUAL
    return {
        name: value
        for name, value in public(environ).items()
        if name in words or name.startswith("GUNICORN_")
    }
