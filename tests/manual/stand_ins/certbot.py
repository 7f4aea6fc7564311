"""certbot: certificates of an authority that the machine trusts, put into the site of nginx."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

AUTHORITY = Path("/etc/letsencrypt/authority")
TRUSTED = Path("/etc/ssl/certs/ca-certificates.crt")


def openssl(*words: str) -> None:
    subprocess.run(["openssl", *words], check=True, capture_output=True, timeout=240)


def key(name: str) -> list[str]:
    """How the words begin that make a key without a password."""
    words = ["req", "-x509" if name == "authority" else "-new", "-newkey", "ec", "-nodes"]
    return [*words, "-pkeyopt", "ec_paramgen_curve:prime256v1"]


def sign(domain: str) -> Path:
    """Make the certificate of a domain; its folder."""
    if not AUTHORITY.exists():
        AUTHORITY.mkdir(parents=True)
        files = ["-keyout", f"{AUTHORITY}/key.pem", "-out", f"{AUTHORITY}/cert.pem"]
        openssl(*key("authority"), "-days", "30", "-subj", "/CN=Authority of a test", *files)
        with TRUSTED.open("a") as file:
            file.write((AUTHORITY / "cert.pem").read_text())
    folder = Path("/etc/letsencrypt/live", domain)
    folder.mkdir(parents=True, exist_ok=True)
    files = ["-keyout", f"{folder}/privkey.pem", "-out", f"{folder}/request.pem"]
    openssl(*key(domain), "-subj", f"/CN={domain}", *files)
    (folder / "names").write_text(f"subjectAltName=DNS:{domain}\n")
    openssl(
        *("x509", "-req", "-in", f"{folder}/request.pem", "-days", "30", "-CAcreateserial"),
        *("-CA", f"{AUTHORITY}/cert.pem", "-CAkey", f"{AUTHORITY}/key.pem"),
        *("-extfile", f"{folder}/names", "-out", f"{folder}/cert.pem"),
    )
    chain = (folder / "cert.pem").read_text() + (AUTHORITY / "cert.pem").read_text()
    (folder / "fullchain.pem").write_text(chain)
    return folder


def put_into_site(domain: str, folder: Path) -> int:
    """Have nginx's site of the domain listen at port 443 too, and send port 80 there."""
    for path in Path("/etc/nginx/sites-enabled").iterdir():
        text = path.read_text()
        if re.search(rf"server_name[^;]*\b{re.escape(domain)}\b", text):
            break
    else:
        print(f"certbot: no site has server_name {domain}", file=sys.stderr)
        return 1
    text = re.sub(r"^\s*listen .*;\n", "", text, flags=re.MULTILINE)
    lines = f"""listen 443 ssl;
    listen [::]:443 ssl;
    ssl_certificate {folder}/fullchain.pem;
    ssl_certificate_key {folder}/privkey.pem;
    """
    text = re.sub(r"(?=server_name )", lines, text, count=1)
    text += f"""
server {{
    listen 80;
    listen [::]:80;
    server_name {domain};
    return 301 https://$host$request_uri;
}}
"""
    path.resolve().write_text(text)
    return subprocess.run(["systemctl", "reload", "nginx"], check=False, timeout=240).returncode


def main(words: list[str]) -> int:
    if words[:1] == ["renew"]:
        return 0
    domains = [words[at + 1] for at, word in enumerate(words) if word in ("-d", "--domain")]
    if not domains or not {"--nginx", "certonly"} & set(words):
        print("certbot: the stand-in knows --nginx, certonly, and -d DOMAIN", file=sys.stderr)
        return 2
    for domain in domains:
        folder = sign(domain)
        if "--nginx" in words and put_into_site(domain, folder):
            return 1
    print(f"Successfully received certificate.\nCertificate is saved at: {folder}/fullchain.pem")
    return 0


sys.exit(main(sys.argv[1:]))
