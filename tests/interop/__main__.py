"""Runs clients of others against the server, and prints a table: `python -m tests.interop`."""

from __future__ import annotations

import argparse
import sys

from tests.interop.programs import CHECKS, CLIENTS, served, visit


def main(arguments: list[str]) -> int:
    """Run the clients that are named, or all."""
    parser = argparse.ArgumentParser(prog="python -m tests.interop", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="CLIENT", help=f"of {', '.join(CLIENTS)}")
    parser.add_argument("--mode", default="threading", help="of the server (threading)")
    chosen = parser.parse_args(arguments)
    if unknown := set(chosen.names) - set(CLIENTS):
        parser.error(f"there is no client {', '.join(sorted(unknown))}: {', '.join(CLIENTS)}")
    print("| client | | " + " | ".join(CHECKS) + " |\n|---|---|" + "---|" * len(CHECKS))
    faults, missing = [], []
    with served(chosen.mode) as (server, folder):
        for name in chosen.names or CLIENTS:
            client = CLIENTS[name]
            if not client.is_installed():
                missing.append(f"{name} is not installed ({client.package})")
                continue
            for scheme in ("https",) if client.needs_tls else ("http", "https"):
                seen = visit(name, scheme, server, folder)
                wrong = {check: text for check, text in seen.items() if text.strip() != "ok"}
                faults += [f"{name} {scheme}: {check}: {text}" for check, text in wrong.items()]
                words = ["FAILED" if c in wrong else seen.get(c, "-") for c in CHECKS]
                way = "TLS" if scheme == "https" else client.without_tls
                print(f"| {name} | {way} | " + " | ".join(map(str.strip, words)) + " |", flush=True)
    print("", *missing, *faults, sep="\n")
    return int(bool(faults))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
