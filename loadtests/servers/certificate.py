"""Certificates for localhost that servers under test are given."""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

from loadtests import programs
from loadtests.errors import LabError

KINDS = {
    "ecdsa": ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"),
    "rsa": ("-newkey", "rsa:2048"),
}
"""P-256, and RSA of 2,048 bits: what makes their keys."""


def certificate(kind: str = "ecdsa") -> dict[str, str]:
    """Files in PEM: `cert.pem`, `key.pem`, and both in `both.pem`. Raises LabError."""
    with tempfile.TemporaryDirectory() as folder:
        made, key = (Path(folder) / name for name in ("cert.pem", "key.pem"))
        command = [programs.path("openssl"), "req", "-x509", "-nodes", "-days", "365"]
        command += [*KINDS[kind], "-subj", "/CN=localhost", "-addext"]
        command += ["subjectAltName=DNS:localhost", "-keyout", str(key), "-out", str(made)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise LabError(f"openssl makes no certificate: {done.stderr.strip()[-200:]}")
        texts = {path.name: path.read_text(encoding="ascii") for path in (made, key)}
    return {**texts, "both.pem": "".join(texts.values())}
